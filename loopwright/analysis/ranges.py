"""Quick proofs: bounds of an affine form over a loop nest, without isl.

Each loop variable is replaced by its last or first value, innermost first; bounds may depend on outer loops and on
parameters, so rectangles and triangles with symbolic sizes come out exactly. Only *yes* is an answer here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loopwright.arith.affine import Form, Part
from loopwright.arith.linear import add_into
from loopwright.ir import SizeVar, Var

if TYPE_CHECKING:
    from loopwright.analysis.instances import Loop

DEPTH = 4  # parts within parts looked into


class Ranges:
    """Bounds of forms in one program, whose variables in `sizes` are never negative."""

    def __init__(self, sizes: set[Var]) -> None:
        self.sizes = sizes

    def is_at_most(self, form: Form, limit: int, loops: Sequence[Loop], known: Sequence[Form] = ()) -> bool:
        """Whether form ≤ limit is proved for all iterations of `loops` where no form of `known` is negative."""
        first = self.greatest(form, loops)
        if first is not None and first <= limit:
            return True
        helpful: list[Form] = []
        for fact in known:
            if (lower := _with_fact(form, fact)) is form:
                continue
            result = self.greatest(lower, loops)
            if result is not None and result <= limit:
                return True
            if result is not None and (first is None or result < first):
                helpful.append(fact)
        # Several facts at once, each where it says more than those before it.
        least = first
        for fact in helpful if len(helpful) > 1 else ():
            result = self.greatest(lower := _with_fact(form, fact), loops)
            if result is not None and (least is None or result < least):
                form, least = lower, result
        if least is not None and least <= limit:
            return True
        for divisor, times in _by_remainders(form, known):
            if self.is_at_most(times, divisor * limit + divisor - 1, loops, known):
                return True
        return False

    def greatest(self, form: Form, loops: Sequence[Loop], depth: int = DEPTH) -> int | None:
        """An upper bound of `form` over all iterations, or None when none was found."""
        result = self.top(form, loops, depth)
        if result is None:
            return None
        const = result.const
        for term, k in result.terms.items():
            low, high = self._limits(term, loops, depth)
            end_value = high if k > 0 else low
            if end_value is None:
                return None
            const += k * end_value
        return const

    def top(self, form: Form, loops: Sequence[Loop], depth: int = DEPTH) -> Form | None:
        """An upper bound of `form` over all iterations, in terms that these do not change; None when none was found."""
        terms, const = dict(form.terms), form.const
        own = {loop.var for loop in loops}
        for loop in reversed(loops):
            const = self._without_parts(terms, const, loops, own, depth)
            k = terms.pop(loop.var, 0)
            if k:
                end = loop.high if k > 0 else loop.low
                if end is None:
                    return None
                add_into(terms, end.terms, k)
                const += k * end.const
        return Form(terms, const)

    def _without_parts(
        self, terms: dict[Var | Part, int], const: int, loops: Sequence[Loop], own: set[Var], depth: int
    ) -> int:
        """Replace parts that vary with the loops by their extreme values; those of parameters alone may cancel."""
        for term in [term for term in terms if isinstance(term, Part) and term.variables & own]:
            k = terms[term]
            if term.op == "times" and depth and (rest := self._end_of_product(term, k, loops, depth)) is not None:
                del terms[term]
                add_into(terms, rest.terms, k)
                const += k * rest.const
                continue
            low, high = self._limits(term, loops, depth)
            end = high if k > 0 else low
            if end is not None:
                del terms[term]
                const += k * end
        return const

    def _end_of_product(self, term: Part, k: int, loops: Sequence[Loop], depth: int) -> Form | None:
        """A form of parameters that a loop variable times one that is not negative never passes."""
        low = self._ends(term.args[1], loops, depth)[0]
        if low is None or low < 0:
            return None
        (var,) = term.args[0].terms
        loop = next((loop for loop in loops if loop.var is var), None)
        end = None if loop is None else loop.high if k > 0 else loop.low
        if end is None or end.terms:
            return None
        return Form({item: c * end.const for item, c in term.args[1].terms.items() if end.const}, 0)

    def _limits(self, term: Var | Part, loops: Sequence[Loop], depth: int) -> tuple[int | None, int | None]:
        if isinstance(term, Var):
            return (0 if term in self.sizes or isinstance(term, SizeVar) else None), None
        if depth == 0:
            return None, None
        if term.op == "mod":
            inner = self._ends(term.args[0], loops, depth)
            last = term.divisor - 1
            if inner[0] is not None and inner[0] >= 0 and inner[1] is not None and inner[1] <= last:
                return inner
            return 0, last
        if term.op in ("quotient", "remainder"):
            return None, None
        ends = [self._ends(arg, loops, depth) for arg in term.args]
        if term.op in ("times", "product"):
            (a, b), (c, d) = ends
            if a is None or c is None or a < 0 or c < 0:
                return None, None
            return a * c, None if b is None or d is None else b * d
        if term.op in ("floor", "trunc"):
            low, high = ends[0]
            # Rounding to zero and rounding down agree where nothing is negative; below, rounding down is lower.
            above = high if high is None or term.op == "floor" or high >= 0 else high + term.divisor - 1
            return (
                None if low is None else low // term.divisor,
                None if above is None else above // term.divisor,
            )
        lows, highs = [low for low, _ in ends if low is not None], [high for _, high in ends if high is not None]
        if term.op == "min":
            return min(lows) if len(lows) == len(ends) else None, min(highs) if highs else None
        return max(lows) if lows else None, max(highs) if len(highs) == len(ends) else None

    def _ends(self, form: Form, loops: Sequence[Loop], depth: int) -> tuple[int | None, int | None]:
        least = self.greatest(form.negated(), loops, depth - 1)
        return None if least is None else -least, self.greatest(form, loops, depth - 1)


def _with_fact(form: Form, fact: Form) -> Form:
    """form + k * fact: as fact ≥ 0, it is not below `form`; useful where the sum loses a variable."""
    for term, c in form.terms.items():
        k, rest = divmod(-c, fact.terms[term]) if term in fact.terms else (0, 1)
        if k > 0 and rest == 0:
            return form.plus(fact, k)
    return form


def _by_remainders(form: Form, known: Sequence[Form]) -> list[tuple[int, Form]]:
    """d and d * form, a quotient floor(x / d) in it written as x - x mod d, where a fact speaks of that remainder.

    Such a fact says more of quotients than their bounds do: where i is even and at least 1, i // 2 is at least 1.
    """
    result: list[tuple[int, Form]] = []
    for rest in dict.fromkeys([term for fact in known for term in fact.terms]):
        if not isinstance(rest, Part) or rest.op != "mod":
            continue
        for term, k in form.terms.items():
            if not isinstance(term, Part) or term.op != "floor" or term.divisor != rest.divisor:
                continue
            if term.args[0].key == rest.args[0].key:
                others = Form({other: c for other, c in form.terms.items() if other is not term}, form.const)
                times = others.times(rest.divisor).plus(term.args[0], k).plus(Form({rest: 1}, 0), -k)
                result.append((rest.divisor, times))
    return result
