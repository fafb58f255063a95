"""reorder: the loops of a nest in another order.

    for i, j in T.grid(4, 5):      →      for j, i in T.grid(5, 4):
        …                                     …

Loops that are not named keep their place. Proved: every read sees the value it saw before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from loopwright.analysis.effects import effects
from loopwright.ir import For, Var, uses_var
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.schedule.proof.lemmas import permutation_is_free
from loopwright.schedule.rewrite.nests import nest
from loopwright.schedule.rewrite.plain_loops import check_hoistable_bounds
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


def reorder(view: View, ordered_loops: Sequence[For]) -> Step:
    """Permute the named loops in the places they hold."""
    wanted = list(ordered_loops)
    if len({loop.loop_var for loop in wanted}) != len(wanted):
        names = ", ".join(loop.loop_var.name for loop in wanted)
        raise BadStepArgument("reorder", f"a loop is named twice among {names}", hint="name each loop once")
    if not wanted:
        raise BadStepArgument("reorder", "no loops are given")
    chain = _chain(view, wanted)
    locations = iter(wanted)
    named = {loop.loop_var for loop in wanted}
    permuted = [next(locations) if loop.loop_var in named else loop for loop in chain]
    _check_extents(permuted)
    path = view.loop_path(chain[0].loop_var)
    _check_evaluated(view, chain, permuted)
    after = view.replaced(path, nest(permuted, chain[-1].body))
    same = all(a is b for a, b in zip(chain, permuted, strict=True))
    proof = Proof.ORDER_KEPT if same else Proof.VALUES
    if not same and permutation_is_free(chain[0], path[:-1]):
        proof = Proof.LEMMA
    touched = effects(chain[0], path[:-1])
    buffers = list({**touched.reads, **touched.writes}.values())  # what others touch is read and written as before
    return Step(after, proof, at=chain[0], buffers=buffers)


def _chain(view: View, wanted: Sequence[For]) -> list[For]:
    """The loops from the outermost named one to the innermost, each the only statement in the one before."""
    paths = [view.loop_path(loop.loop_var) for loop in wanted]
    longest = max(paths, key=len)
    for loop in wanted:
        if not any(statement is loop for statement in longest):
            problem = f"loop {loop.loop_var.name} is not in one nest with the others"
            blocks = [realize.block for realize in view.blocks_below(longest[-1])]
            names = ", ".join([item.loop_var.name for item in view.all_loops_above(longest)])
            hint = f"name loops of one nest: those around block {blocks[0].name_hint} are {names}" if blocks else None
            raise NotSupported("reorder", problem, loop, hint)
    start = min(len(path) for path in paths) - 1
    chain = longest[start:]
    for outer, inner in pairwise(chain):
        if not isinstance(outer, For) or outer.body is not inner:
            raise NotSupported("reorder", "there are other statements between the loops", outer)
    return [loop for loop in chain if isinstance(loop, For)]


def _check_evaluated(view: View, chain: Sequence[For], permuted: Sequence[For]) -> None:
    """The bounds of a loop may be evaluated outside of those loops that come to stand inside it."""
    path = view.loop_path(chain[0].loop_var)
    for position, loop in enumerate(permuted):
        inside = {other.loop_var for other in permuted[position + 1 :]}
        passed = [other for other in chain[: chain.index(loop)] if other.loop_var in inside]
        if passed:
            around = (*path[:-1], *permuted[:position])
            check_hoistable_bounds("reorder", view, loop, passed, around)


def _check_extents(loops: Sequence[For]) -> None:
    inner: set[Var] = set()
    for loop in reversed(loops):
        inner.add(loop.loop_var)
        if uses_var(loop.extent, inner.__contains__) or uses_var(loop.min, inner.__contains__):
            problem = f"the bounds of loop {loop.loop_var.name} depend on a loop that would be inside it"
            raise NotSupported("reorder", problem, loop)
