"""Thread owners: memory that each thread has for itself, and whose it is after a step.

    C = T.alloc_buffer((2,), scope="local")             each of three threads has a C, which it sums into;
    for t in T.thread_binding(3, thread="threadIdx.x"):     with t unrolled there is one, summed into three times
        …  C[vi] = C[vi] + A[vi, vj]

A step that keeps the order of all that happens may still change who owns what. Then what flows through that memory is
proved, whatever else the step has to show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from loopwright.analysis.accesses import accesses_of
from loopwright.analysis.memory_owners import Owners, written_owners
from loopwright.ir import BlockRealize, PrimFunc, SeqStmt, Stmt
from loopwright.schedule.proof.loop_kinds import owned_memory
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


def with_owners_proved(view: View, after: View, step: Step) -> Step:
    """The step, which has to show that values are kept in memory that belongs to other threads than before."""
    if step.proof is Proof.GIVEN or (step.proof is Proof.VALUES and step.buffers is None):
        return step
    if not (view.index.has_threads or after.index.has_threads):
        return step
    old, new = written_owners(view.function.body), written_owners(after.function.body)
    if old is None or new is None:
        if not any(owned_memory(part) for part in _changed(view.function, after.function)):
            return step  # what stays as it is belongs to whom it belonged
        old, new = _owners(view.function), _owners(after.function)
    changed = [buffer for buffer in old if buffer in new and old[buffer] != new[buffer]]
    if not changed:
        return step
    return replace(step, proof=Proof.VALUES, buffers=[*(step.buffers or ()), *changed])


def _changed(before: PrimFunc, after: PrimFunc) -> list[Stmt]:
    """The statements below the root that only one of two versions has."""
    old, new = _parts(before), _parts(after)
    known = set(old) & set(new)
    return [part for part in (*old, *new) if part not in known]


def _parts(function: PrimFunc) -> Sequence[Stmt]:
    body = function.body
    if not isinstance(body, BlockRealize) or not isinstance(body.block.body, SeqStmt):
        return (body,)
    return body.block.body.seq


@lru_cache(maxsize=16)  # a version is asked about as it comes, and as it goes
def _owners(function: PrimFunc) -> Owners:
    buffers = owned_memory(function.body)
    if not buffers:
        return {}
    program = accesses_of(function)
    return {buffer: program.owners(buffer) for buffer in buffers}
