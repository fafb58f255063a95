"""sample_compute_location: a place to compute a block at, drawn from those where that is proved to be right.

The decision is a number: -2 in the expressions of its consumers, -1 where it stands, or the depth of a loop of its
first consumer. Loops of one iteration are left out, and so are loops below which only a reduction goes on, and data
loops inside reduction loops: there the block would be computed again and again. A decision that no longer fits falls to
the one before it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from loopwright.ir import BlockRealize, For, IntImm, IterType, uses_var
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.handles import Mark, block_key, mark_var
from loopwright.schedule.primitives.compute.compute_at import compute_at
from loopwright.schedule.primitives.compute.compute_inline import compute_inline
from loopwright.schedule.primitives.queries import get_consumers
from loopwright.schedule.proof.find_mismatch import find_mismatch
from loopwright.schedule.step import LoopResult, Proof, Step
from loopwright.schedule.view import View


def sample_compute_location(
    view: View, random: Random, block: BlockRealize, decision: int | None = None, is_owed: bool = False
) -> tuple[list[LoopResult], int]:
    """One of the places where `block` may be computed; the decision is its number.

    Where a proof of all steps together comes afterwards, a decision is taken for right if its step can be built: that
    proof is of the very step, and where it fails, the steps are replayed with a proof at each.
    """
    candidates = _candidates(view, block)
    if decision is None:
        decision = random.choice(compute_locations(view, block))
        return [candidates[decision][0]], decision
    for number in sorted(candidates, reverse=True):
        location, build = candidates[number]
        if number <= int(decision) and (build is None or _is_right(view, build, is_owed)):
            return [location], number
    return [candidates[-1][0]], -1


def compute_locations(view: View, block: BlockRealize) -> list[int]:
    """The numbers of the places where `block` may be computed."""
    places = _candidates(view, block).items()
    return sorted([number for number, (_, build) in places if build is None or _is_right(view, build)])


def _candidates(view: View, block: BlockRealize) -> dict[int, tuple[LoopResult, Callable[[], Step] | None]]:
    """The places by their numbers, each with the step that has to be right."""
    answer: dict[int, tuple[LoopResult, Callable[[], Step] | None]] = {-1: (LoopResult(mark_var(Mark.ROOT)), None)}
    if len(view.block_path(block_key(block.block))) == 1:
        return answer
    answer[-2] = LoopResult(mark_var(Mark.INLINE)), lambda: compute_inline(view, block)
    consumers = [view.realize(result.key) for result in get_consumers(view, block)]
    if not consumers:
        return answer
    nests = [view.loops_of(block_key(consumer.block)) for consumer in consumers]
    shared = [loop for loop in nests[0] if all(any(loop is other for other in nest) for nest in nests[1:])]
    for depth, loop in enumerate(_worth(consumers[0], shared)):
        unit = isinstance(loop.extent, IntImm) and loop.extent.value == 1
        if not unit:
            answer[depth] = LoopResult(loop.loop_var), partial(compute_at, view, block, loop)
    return answer


def _worth(consumer: BlockRealize, loops: list[For]) -> list[For]:
    """The loops down to the first data loop inside a reduction loop, without reduction loops at the end."""
    kept: list[For] = []
    reduces = False
    for loop in loops:
        if _is_reduced(consumer, loop):
            reduces = True
        elif reduces:
            break
        kept.append(loop)
    while kept and _is_reduced(consumer, kept[-1]):
        kept.pop()
    return kept


def _is_reduced(consumer: BlockRealize, loop: For) -> bool:
    """Whether only reduction axes run over the loop."""
    kinds = [
        axis.iter_type
        for axis, value in zip(consumer.block.iter_vars, consumer.iter_values, strict=True)
        if uses_var(value, {loop.loop_var}.__contains__)
    ]
    return bool(kinds) and all(kind == IterType.CommReduce for kind in kinds)


def _is_right(view: View, build: Callable[[], Step], is_owed: bool = False) -> bool:
    """Whether a step can be built and, unless that is owed, proved."""
    try:
        step = build()
    except ScheduleError:
        return False
    if is_owed or step.proof is not Proof.VALUES:
        return True
    return find_mismatch(view.function, step.after, step.origins, step.buffers) is None
