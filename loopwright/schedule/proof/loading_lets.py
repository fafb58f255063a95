"""Loading lets: a let between loops that loads what the loops around it write.

    for i in range(8):
        x: T.int32 = B[0]            what an earlier iteration may have written
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[x, v]

The load is part of no block, so the proof of values does not see which write it meets. A step leaves such nests as they
are, unless it keeps the order of all that happens. Where nothing in the outermost loop writes that memory, the let is
as good as its value.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.analysis.effects import effects
from loopwright.ir import BlockRealize, For, LetStmt, Stmt, any_statement
from loopwright.schedule.errors import NotProved
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import Path, View


def check_lets_kept(method: str, view: View, after: View, step: Step) -> None:
    """Refuse a step that changes a nest in which a let between loops loads what the nest writes."""
    old, new = view.index.loading, after.index.loading
    if step.proof not in (Proof.VALUES, Proof.LEMMA) or not (old or new):
        return
    before, now = _nests(old), _nests(new)
    for nest, (let, name) in {**before, **now}.items():
        if nest not in before or nest not in now:
            problem = f"{let.var.name} is loaded from {name}, which the loops around it write"
            hint = f"load {name} in the block that uses {let.var.name}: then it is seen which write the load meets"
            raise NotProved(method, problem, step.at, hint=hint)


def _nests(loading: Sequence[Path]) -> dict[Stmt, tuple[LetStmt, str]]:
    """The outermost loops with such a let inside, with the let and the name of what it loads."""
    result: dict[Stmt, tuple[LetStmt, str]] = {}
    for path in loading:
        let = path[-1]
        assert isinstance(let, LetStmt)
        position = next((k for k, node in enumerate(path) if isinstance(node, For)), None)
        if position is None or not any_statement(let.body, lambda node: isinstance(node, BlockRealize)):
            continue
        value, nest = effects(let.value, path[:-1]), effects(path[position], path[:position])
        met = [buffer.name for data, buffer in value.reads.items() if data in nest.writes or nest.reaches_outside]
        if met:
            result[path[position]] = let, met[0]
    return result
