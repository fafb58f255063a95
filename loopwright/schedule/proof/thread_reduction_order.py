"""Turns: the order of a reduction over threads, which depends on what stands beside it.

    for tx in T.thread_binding(4, thread="threadIdx.x"):     →    for tx in T.thread_binding(4, thread="threadIdx.x"):
        for k in range(8):                                            for k in range(8):
            with T.block("C"): …  # reduces over tx and k                 with T.block("A_copy"): …
                                                                          with T.block("C"): …

On the left the threads take turns at the whole loop k: thread 0 makes its eight updates, then thread 1. On the right
something else stands in that loop, so they take turns in each of its iterations (docs/semantics.md, "Threads"). So a
step that keeps the order of everything in the text may change the order of updates; where it does, all is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from loopwright.analysis.commuting_updates import update_law
from loopwright.analysis.thread_axes import tag_of
from loopwright.analysis.thread_regions import write_regions
from loopwright.analysis.thread_work import is_arithmetic
from loopwright.ir import (
    Block,
    BlockRealize,
    For,
    ForKind,
    IfThenElse,
    IterType,
    LetStmt,
    PrimFunc,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    structural_equal,
    uses_var,
)
from loopwright.schedule.errors import NotProved
from loopwright.schedule.handles import BlockKey
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import Path, View


class Turn(NamedTuple):
    """A block that reduces over threads: the loops around its turn, and those that are inside."""

    around: tuple[Var, ...]
    inside: tuple[Var, ...]


def with_turns_proved(method: str, view: View, step: Step) -> Step:
    """The step, which has to show that every value is kept where it changes who comes when in a reduction."""
    if not view.index.has_threads:
        return step  # a step that binds the first loop compares everything where turns come up
    after = View(step.after)
    old, new = _turns(view), _turns(after)
    changed = [key for key, turn in new.items() if old.get(key) != turn]
    if not changed:
        return step
    if step.proof is Proof.ORDER_KEPT:
        paths = [path for key in changed for path in (view.index.blocks.get(key), after.block_path(key))]
        if runs_alike(view.function, step.after) or all([path is not None and _is_alone(path) for path in paths]):
            return step
    if step.proof is not Proof.GIVEN:
        return replace(step, proof=Proof.VALUES, buffers=None)
    for key in changed:
        realize = after.block_path(key)[-1]
        assert isinstance(realize, BlockRealize)
        if not _commutes(realize.block):
            name = realize.block.name_hint
            problem = f"threads would take turns at block {name} in another way, and the order of its updates counts"
            raise NotProved(method, problem, step.at)
    return step


def runs_alike(before: PrimFunc, after: PrimFunc) -> bool:
    """Whether two programs, with what their threads do written as serial loops, are one but for who runs the loops."""
    old, new = (write_regions(function.body, implied=False) for function in (before, after))
    if old.reason is not None or new.reason is not None:
        return False
    serial = _Serial()
    return structural_equal(serial.visit(old.body), serial.visit(new.body))


def only_turns_change(after: View, loop: Var) -> bool:
    """Whether all that the kernel of `loop` runs is one block whose updates commute: any order will do."""
    inside = after.loop(loop)
    paths = [path for path in after.index.blocks.values() if inside in path]
    return len(paths) == 1 and _is_alone(paths[0], inside)


def _is_alone(path: Path, kernel: For | None = None) -> bool:
    """Whether a block whose updates commute is all that its kernel runs, or that this loop ran when it was bound."""
    first = next((place for place, node in enumerate(path) if node is kernel or tag_of(node)), len(path))
    realize = path[-1]
    assert isinstance(realize, BlockRealize)
    return not any([isinstance(node, SeqStmt) for node in path[first:]]) and _commutes(realize.block)


class _Serial(Rewriter):
    """Bound loops as loops of one thread."""

    def visit_For(self, loop: For) -> Stmt:
        result = self.rebuild(loop)
        if result.thread_binding is None:
            return result
        kind = ForKind.SERIAL if result.kind is ForKind.THREAD_BINDING else result.kind
        return result.with_(kind=kind, thread_binding=None)


def _turns(view: View) -> dict[BlockKey, Turn]:
    """The blocks that reduce over threads."""
    result: dict[BlockKey, Turn] = {}
    for key, path in view.index.blocks.items():
        turn = _turn_of(path)
        if turn is not None:
            result[key] = turn
    return result


def _turn_of(path: Path) -> Turn | None:
    realize = path[-1]
    assert isinstance(realize, BlockRealize)
    reduced = [
        value
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
        if axis.iter_type is IterType.CommReduce
    ]
    bound = {loop.loop_var for loop in path if isinstance(loop, For) and _is_bound(loop)}
    for statement in path:
        if isinstance(statement, LetStmt) and uses_var(statement.value, bound.__contains__):
            bound.add(statement.var)
    if not any([uses_var(value, bound.__contains__) for value in reduced]):
        return None
    first = len(path) - 1
    while _goes_inside(path[first - 1]):
        first -= 1
    return Turn(_loops(path[:first]), _loops(path[first:]))


def _goes_inside(statement: Stmt) -> bool:
    """Whether what is right around a block is part of its turn."""
    if isinstance(statement, For):
        return statement.kind in (ForKind.SERIAL, ForKind.UNROLLED)
    if isinstance(statement, LetStmt):
        return is_arithmetic(statement.value)
    return isinstance(statement, IfThenElse) and statement.else_case is None


def _is_bound(statement: Stmt) -> bool:
    return isinstance(statement, For) and statement.kind is ForKind.THREAD_BINDING


def _loops(statements: Sequence[Stmt]) -> tuple[Var, ...]:
    return tuple([item.loop_var for item in statements if isinstance(item, For)])


def _commutes(block: Block) -> bool:
    fields = {region.buffer: region.buffer for region in block.writes}
    return update_law(block.body, fields, block.iter_vars) is not None
