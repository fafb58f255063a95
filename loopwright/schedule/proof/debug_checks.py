"""Second look: what `debug_mask` has checked again after every step. A failure here is a bug of ours.

Bit 1: the index. Every loop and block is where it says, and what the step gives handles of is in the program.
Bit 2: the proof. It is done once more by the exact test, without the lemma of `same_source.py`: for every buffer,
where the step said that only some can have changed or that the order is kept, and for every loop whose iterations run
at the same time, changed or not.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from loopwright.ir import Block, Node, PrimFunc, Stmt
from loopwright.runtime.errors import InternalError
from loopwright.schedule.proof.find_mismatch import Mismatch, Race, find_mismatch, find_race
from loopwright.schedule.proof.loop_kinds import concurrent_loops
from loopwright.schedule.step import BlockResult, LoopResult, Proof, Step
from loopwright.schedule.view import View

INDEX: Final = 1
PROOF: Final = 2
ALL: Final = INDEX | PROOF


def look_again(method: str, before: PrimFunc, step: Step, mask: int) -> None:
    """Check a step once more that has been accepted."""
    if mask & INDEX:
        _check_index(method, step)
    if mask & PROOF:
        _check_proof(method, before, step)


def _check_index(method: str, step: Step) -> None:
    index = View(step.after).index
    for path in [*index.loops.values(), *index.blocks.values()]:
        for outer, inner in pairwise(path):
            if not any(child is inner for child in _inside(outer)):
                raise InternalError(f"{method} left an index in which {inner} is not where it says")
    for result in step.results:
        if isinstance(result, LoopResult) and result.var not in index.loops:
            raise InternalError(f"{method} gives a handle of loop {result.var.name}, which is not in the program")
        if isinstance(result, BlockResult) and result.key not in index.blocks:
            raise InternalError(f"{method} gives a handle of block {result.key}, which is not in the program")


def _inside(statement: Stmt) -> list[Node]:
    """The statements right inside one, through the block of a BlockRealize."""
    children = list(statement.children())
    return [*children, *[inner for child in children if isinstance(child, Block) for inner in child.children()]]


def _check_proof(method: str, before: PrimFunc, step: Step) -> None:
    if step.proof is not Proof.GIVEN:
        result = find_mismatch(step.given or before, step.after, step.origins, None, by_lemmas=False)
        if isinstance(result, Mismatch):
            raise InternalError(f"{method} was accepted, but would change a value: {result.why()}")
    for loop in concurrent_loops(View(step.after)):
        race = find_race(step.after, loop.loop_var)
        if isinstance(race, Race):
            raise InternalError(f"{method} was accepted, but: {race.why()}")
