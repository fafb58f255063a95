"""rewrite_parallel_vectorize_unroll: does what the notes on the root block allow, now that sizes are known.

    for i0, j0, i1: …       →      for i0_j0_fused in T.parallel(8): for i1: …            limit 8 = tasks of i0 and j0

In every nest of the root, outer data loops are fused as long as their tasks stay within the limit, and parallelised
where there is enough to do. Innermost data loops along memory become vectors; short loops around them are unrolled.
"""

from __future__ import annotations

from math import ceil, prod
from typing import Final

from loopwright.arith import Analyzer
from loopwright.autosched.facts import const
from loopwright.ir import BlockRealize, For, ForKind, IterType, SeqStmt, Stmt, Var, substitute, uses_var
from loopwright.ir import const as number
from loopwright.schedule import BlockRV, LoopRV, Schedule
from loopwright.schedule.handles import block_key
from loopwright.schedule.view import View
from loopwright.tune.sketches.blocks import leaf_blocks, recorded_loops
from loopwright.tune.sketches.notes import PARALLEL, UNROLL, UNROLL_IMPLICIT, VECTORIZE, number_of
from loopwright.tune.sketches.postprocs.postproc import Postproc

_FEW_VECTORS: Final = 8  # written out one after the other


class RewriteParallelVectorizeUnroll(Postproc):
    """Parallel tasks, vectors and unrolled loops, in every nest."""

    name = "rewrite_parallel_vectorize_unroll"

    def apply(self, sch: Schedule) -> bool:
        root = sch.get_block("root")
        notes = dict(sch.get(root).annotations)
        for key in (PARALLEL, VECTORIZE, UNROLL, UNROLL_IMPLICIT):
            if key in notes:
                sch.unannotate(root, key)
        jobs, vectors = number_of(notes.get(PARALLEL)), number_of(notes.get(VECTORIZE))
        steps = number_of(notes.get(UNROLL, notes.get(UNROLL_IMPLICIT)))
        if vectors > 1:
            for block in leaf_blocks(sch):
                self._vectorize(sch, block, vectors)
        if steps > 1:
            for block in leaf_blocks(sch):
                _unroll(sch, block, steps)
        if jobs > 1 and self.machine.cores > 1:
            for nest in _nests(sch.view()):
                self._parallelize(sch, nest, jobs)
        return True

    def _parallelize(self, sch: Schedule, nest: For, limit: int) -> None:
        loops = _outer_data_loops(sch.view(), nest)
        if not loops or _instances(sch.view(), nest) < self.machine.fork_cycles:
            return
        chosen: list[For] = []
        for loop in loops:
            if prod([_extent(one) for one in [*chosen, loop]]) > limit:
                break
            chosen.append(loop)
        if prod([_extent(one) for one in chosen]) >= self.machine.cores:
            handles = _handles(sch, chosen)
            sch.parallel(handles[0] if len(handles) == 1 else sch.fuse(*handles))
            return
        used = loops[: len(chosen) + 1]  # one loop more has more iterations than tasks: runs of them
        count = prod([_extent(one) for one in used])
        if count < self.machine.cores:
            return
        handles = _handles(sch, used)
        fused = handles[0] if len(handles) == 1 else sch.fuse(*handles)
        tasks, _ = sch.split(fused, [None, ceil(count / limit)])
        sch.parallel(tasks)

    def _vectorize(self, sch: Schedule, block: BlockRV, most: int) -> None:
        view = sch.view()
        realize = view.realize(block.key)
        loops = view.all_loops_above(view.block_path(block.key))
        if not loops or any(loop.kind is ForKind.VECTORIZED for loop in loops):
            return
        inner = loops[-1]
        if inner.kind is not ForKind.SERIAL or _extent(inner) < 2 or not _is_data_loop(view, inner):
            return
        if _stride(realize, inner.loop_var, [loop.loop_var for loop in loops]) != 1:
            return
        lanes = min(self.machine.lanes(str(realize.block.writes[0].buffer.dtype)), most)
        (handle,) = recorded_loops(sch, block, [inner.loop_var])
        if _extent(inner) > lanes:
            outer, handle = sch.split(handle, [None, lanes])
            if ceil(_extent(inner) / lanes) <= _FEW_VECTORS:
                sch.unroll(outer)
        sch.vectorize(handle)


def _handles(sch: Schedule, loops: list[For]) -> list[LoopRV]:
    first = sch.view().blocks_below(loops[-1])[0].block
    return recorded_loops(sch, BlockRV(block_key(first), first.name_hint), [loop.loop_var for loop in loops])


def _extent(loop: For) -> int:
    return const(loop.extent) or 1


def _nests(view: View) -> list[For]:
    """The outermost loops, in the order of the program."""
    result: list[For] = []
    pending: list[Stmt] = [view.root.block.body]
    while pending:
        statement = pending.pop(0)
        if isinstance(statement, For):
            result.append(statement)
        elif isinstance(statement, SeqStmt):
            pending = [*statement.seq, *pending]
    return result


def _outer_data_loops(view: View, nest: For) -> list[For]:
    """The loops from the outermost inwards, directly in one another, that no block reduces over."""
    result: list[For] = []
    statement: Stmt = nest
    while isinstance(statement, For) and statement.kind is ForKind.SERIAL and _is_data_loop(view, statement):
        result.append(statement)
        statement = statement.body
    return result


def _is_data_loop(view: View, loop: For) -> bool:
    """Whether no block below reduces over the loop."""
    own = {loop.loop_var}.__contains__
    for realize in view.blocks_below(loop):
        pairs = zip(realize.block.iter_vars, realize.iter_values, strict=True)
        if any(axis.iter_type == IterType.CommReduce and uses_var(value, own) for axis, value in pairs):
            return False
    return True


def _instances(view: View, nest: For) -> int:
    """How many times blocks run in a nest."""
    total = 0
    for realize in view.blocks_below(nest):
        path = view.block_path(block_key(realize.block))
        total += prod([_extent(loop) for loop in view.all_loops_above(path)])
    return total


def _stride(realize: BlockRealize, var: Var, loops: list[Var]) -> int | None:
    """How far the written cell moves in the last dimension for one step of a loop; None where it moves otherwise."""
    values = {axis.var: value for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)}
    facts = Analyzer()

    def at(step: int) -> list[int | None]:
        here = {other: number(step if other is var else 0, other.dtype) for other in loops}
        region = realize.block.writes[0].region
        return [const(facts.simplify(substitute(substitute(part.min, values), here))) for part in region]

    if not realize.block.writes or not realize.block.writes[0].region:
        return None
    before, after = at(0), at(1)
    if None in before or None in after or before[:-1] != after[:-1]:
        return None
    return (after[-1] or 0) - (before[-1] or 0)


def _unroll(sch: Schedule, block: BlockRV, most: int) -> None:
    """Unroll serial loops from the inside until `most` statements stand in a row; of the last one a part."""
    view = sch.view()
    count = 1
    for loop in reversed(view.loops_of(block.key)):
        extent = _extent(loop)
        if loop.kind is ForKind.VECTORIZED:
            continue
        if loop.kind is ForKind.UNROLLED:
            count *= extent
            continue
        if loop.kind is not ForKind.SERIAL or len(view.blocks_below(loop)) > 1:
            return
        part = max([size for size in range(1, extent + 1) if extent % size == 0 and count * size <= most], default=1)
        if part > 1:
            (handle,) = recorded_loops(sch, block, [loop.loop_var])
            sch.unroll(handle if part == extent else sch.split(handle, [None, part])[1])
        if part < extent:
            return
        count *= part
