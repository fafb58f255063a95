"""detect_common_subexpr: the parts that an expression computes several times."""

from __future__ import annotations

from loopwright.arith.structure import Structure
from loopwright.ir import Expr, as_expr, deep
from loopwright.ir.visitor import has_children


@deep
def detect_common_subexpr(e: Expr, threshold: int) -> dict[Expr, int]:
    """{part: how often it stands in `e`} for the parts that stand there at least `threshold` times.

    What a common part holds counts once for all its copies. Each part is given by the first of its occurrences.
    """
    count = _Count()
    count.walk(as_expr(e), 1)
    whole: dict[int, Expr] = {number: expr for number, (expr, _) in count.found.items()}
    left = {number: times for number, (_, times) in count.found.items()}
    result: dict[Expr, int] = {}
    # Larger parts first: what they hold is theirs.
    for number in sorted(whole, key=lambda each: (-count.sizes[each], each)):
        times = left[number]
        if times >= max(threshold, 2):
            result[whole[number]] = times
            for inner, held in count.parts(whole[number]).items():
                if inner != number and inner in left:
                    left[inner] -= held * (times - 1)
    return result


class _Count:
    def __init__(self) -> None:
        self.structure = Structure()
        self.found: dict[int, tuple[Expr, int]] = {}
        self.sizes: dict[int, int] = {}

    def walk(self, e: Expr, times: int) -> int:
        """Count the parts of `e`; returns its size."""
        if not has_children(type(e)):
            return 1
        size = 1
        for child in e.children():
            if isinstance(child, Expr):
                size += self.walk(child, times)
        number = self.structure.number(e)
        first, before = self.found.get(number, (e, 0))
        self.found[number] = first, before + times
        self.sizes[number] = size
        return size

    def parts(self, e: Expr) -> dict[int, int]:
        """How often each part stands in `e`."""
        held: dict[int, int] = {}
        pending = [e]
        while pending:
            part = pending.pop()
            if has_children(type(part)):
                number = self.structure.number(part)
                held[number] = held.get(number, 0) + 1
                pending += [child for child in part.children() if isinstance(child, Expr)]
        return held
