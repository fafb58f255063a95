"""rows: softmax, normalisations and sums along rows: threads share a row, which is loaded once and kept in registers.

    for i, k: m[i] = max(m[i], A[i, k])        for i in blockIdx.x:
    for i, k: e[i, k] = exp(A[i, k] - m[i])        for k, t in threadIdx.x: a[k, t] = A[…]          registers
    for i, k: s[i] += e[i, k]              →       for k, t: m = max(m, a[k, t])                    shuffles
    for i, k: B[i, k] = e[i, k] / s[i]             for k, t: e[k, t] = exp(a[k, t] - m)             registers
                                                   for k, t: s += e[k, t]                           shuffles
                                                   for k, t: B[…] = e[k, t] / s

A row of up to 32 times 16 values is one for a warp, several rows a block; a longer one has a block. Rows that do not
fit into registers are read again, from L2, and what is computed of them is computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopwright.autosched.decision import Decision
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.facts import Access, BlockFacts
from loopwright.autosched.gpu.machine import IN_FLIGHT, GpuMachine
from loopwright.autosched.gpu.roofline import note_roofline
from loopwright.autosched.gpu.row_threads import RowThreads, row_threads
from loopwright.autosched.machine import bytes_of
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.row_blocks import facts_in, inner_buffers, row_axes, row_run
from loopwright.autosched.row_nest import along_row
from loopwright.autosched.small_steps import fused, join_dimensions, loops_below, operand_of
from loopwright.ir import Buffer, Call, Div, collect
from loopwright.schedule import BlockRV, LoopRV, Schedule

_FEW_ROWS = 64  # of so many, a block for each would leave most multiprocessors without work
_SHARED_OUT_ROW = 1 << 17
_WHOLE = 1 << 12  # elements that chunks are multiples of: guards of several kernels take minutes to prove


class Rows:
    """Takes runs of blocks that share their rows, one reduction or more among them."""

    name = "rows"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        count = row_run(pending)
        while count and not any(facts_in(entry).is_reduction for entry in pending[:count]):
            count = 0
        return 0 if are_few_and_long(pending[:count]) else count

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: GpuMachine, decision: Decision
    ) -> None:
        blocks = [facts_in(entry) for entry in entries]
        rows = row_axes(entries)
        kept = inner_buffers(entries, program)
        _check(blocks, rows, kept)
        group = _Group(sch, blocks, rows, kept)
        inputs = group.inputs()
        shared = row_threads(*group.row(), len(inputs) or 1, group.count(), machine)
        if not group.is_sum():
            shared = shared._replace(several=1)  # each row waits at barriers
        group.schedule(shared, inputs, decision)
        note_roofline(decision, blocks, machine)


@dataclass
class _Group:
    """Blocks of a program that work on the same rows."""

    sch: Schedule
    blocks: Sequence[BlockFacts]
    rows: int
    kept: Sequence[Buffer]  # what only these blocks use

    # --- what there is --------------------------------------------------------------------------------------------

    def row(self) -> tuple[int | None, int]:
        """The length of a row, and the bytes of its widest element in memory."""
        lengths = {facts.extent(along_row(facts, self.rows)) for facts in self.blocks if along_row(facts, self.rows)}
        dtypes = [str(access.buffer.dtype) for facts in self.blocks for access in (*facts.reads, *facts.writes)]
        if len(lengths) != 1:
            raise NotWorthIt("the blocks have rows of different lengths")
        return lengths.pop(), max(bytes_of(dtype) for dtype in dtypes)

    def count(self) -> int | None:
        """How many rows there are."""
        return self.blocks[0].extent(self.blocks[0].axes[: self.rows])

    def is_sum(self) -> bool:
        """Whether there is one reduction, and nothing else but what one thread computes of its result."""
        return self.blocks[0].is_reduction and all([self._is_number(facts) for facts in self.blocks[1:]])

    def inputs(self) -> list[Buffer]:
        """What the group reads along its rows, element by element: more than once, or for a reduction.

        What only a reduction reads is loaded in vectors that way.
        """
        readers: dict[Buffer, int] = {}
        for facts in self.blocks:
            for buffer in {access.buffer for access in facts.reads if access.buffer not in self.kept}:
                if all(self._is_row(access, facts) for access in facts.reads if access.buffer is buffer):
                    readers[buffer] = readers.get(buffer, 0) + (2 if facts.is_reduction else 1)
        return [buffer for buffer, count in readers.items() if count > 1]

    def _is_row(self, access: Access, facts: BlockFacts) -> bool:
        """Whether the access is of the element that the block is at."""
        axes = [axis.var for axis in facts.axes if axis.extent != 1]
        moving = [form for form in access.forms if form is not None and form.terms]
        return (
            access.is_affine
            and [list(form.terms.items()) for form in moving] == [[(var, 1)] for var in axes]
            and not any(form.const for form in moving)
        )

    # --- steps ----------------------------------------------------------------------------------------------------

    def schedule(self, plan: RowThreads, inputs: Sequence[Buffer], decision: Decision) -> None:
        sch = self.sch
        names = [facts.name for facts in self.blocks]
        names = self._inline(names, bool(plan.scope))
        if plan.rows > 1 and self.rows > 1:
            of_rows = {facts.name for facts in self.blocks if facts.is_reduction or self._is_number(facts)}
            self._join_rows([name for name in names[:-1] if name in of_rows])
        anchor = sch.get_block(names[-1])
        row = fused(sch, sch.get_loops(anchor)[: self.rows])
        if plan.rows > 1:
            blocks, several, row = sch.split(row, [None, plan.several, plan.rows])
            sch.bind(blocks, "blockIdx.x")
            sch.bind(row, "threadIdx.y")
            sch.unroll(several)
        else:
            sch.bind(row, "blockIdx.x")
        for name in reversed(names[:-1]):
            sch.compute_at(sch.get_block(name), row)
        caches = self._cache(plan, inputs, names, row)
        if plan.scope:
            self._join_axes([*caches, *[sch.get_block(name) for name in names[:-1]]])
        for block in [*caches, *[sch.get_block(name) for name in names]]:
            self._share_out(block, row, plan)
        numbers = [facts.name for facts in self.blocks if self._is_number(facts)]
        for block in caches:
            self._put(block, plan.scope)
        for name in names[:-1]:
            self._put(sch.get_block(name), "shared" if name in numbers else plan.scope)
        self._note(plan, inputs, decision)

    def _inline(self, names: Sequence[str], keeps_rows: bool) -> list[str]:
        """Numbers of a row are computed where they are read, but for those that divide and the like: by one thread.

        A division is some ten instructions, and a branch, which no compiler moves out of the loop along the row. Rows
        that nobody keeps are computed again: memory is slower.
        """
        result = []
        for facts, name in zip(self.blocks, names, strict=True):
            is_cheap = not _is_costly(facts) if self._is_number(facts) else not keeps_rows
            if not facts.is_reduction and is_cheap and name != names[-1]:
                self.sch.compute_inline(self.sch.get_block(name))
            else:
                result.append(name)
        return result

    def _is_number(self, facts: BlockFacts) -> bool:
        """Whether it computes one value of a row."""
        return not facts.is_reduction and not along_row(facts, self.rows)

    def _cache(self, plan: RowThreads, inputs: Sequence[Buffer], names: Sequence[str], row: LoopRV) -> list[BlockRV]:
        """Each thread loads its part of the row, and the blocks read that."""
        sch = self.sch
        result = []
        for buffer in inputs if plan.scope else ():
            readers = [sch.get_block(name) for name in names]
            readers = [block for block in readers if buffer in [region.buffer for region in sch.get(block).reads]]
            if not readers:
                continue
            cache = sch.cache_read(readers[0], operand_of(sch, readers[0], buffer), "global", consumer_blocks=readers)
            sch.compute_at(cache, row)
            result.append(cache)
        return result

    def _join_axes(self, blocks: Sequence[BlockRV]) -> None:
        """Kept rows of several axes have one dimension: a part of a thread is no box of several."""
        for block in blocks:
            axes = len(self.sch.get(block).writes[0].buffer.shape) - self.rows
            if axes > 1 and self.sch.get(block).init is None:
                join_dimensions(self.sch, block, axes)

    def _join_rows(self, names: Sequence[str]) -> None:
        """Numbers of rows have one dimension: those of a block are no box of two, and memory is as large as a box."""
        for name in names:
            block = self.sch.get_block(name)
            join_dimensions(self.sch, block, len(self.sch.get(block).writes[0].buffer.shape))

    def _share_out(self, block: BlockRV, row: LoopRV, plan: RowThreads) -> None:
        """Threads have neighbouring parts of a row, of as many elements as one load has."""
        sch = self.sch
        loops = loops_below(sch, block, row)
        if not loops:
            return
        along = fused(sch, loops)
        lane: LoopRV | None = None
        if plan.lanes > 1:
            along, lane = sch.split(along, [None, plan.lanes])
        step, thread = sch.split(along, [None, plan.threads])
        sch.bind(thread, "threadIdx.x")
        if lane is not None:
            if sch.get(block).init is None:
                sch.vectorize(lane)
            else:
                sch.unroll(lane)
        if plan.scope == "local":
            sch.unroll(step)
        elif plan.steps is None or plan.steps > IN_FLIGHT:
            sch.unroll(sch.split(step, [None, IN_FLIGHT])[1])

    def _put(self, block: BlockRV, scope: str) -> None:
        """What a thread alone uses is its own; what all threads of a row use is the block's."""
        is_row = self.sch.get(block).init is None
        if not is_row:
            self.sch.set_scope(block, 0, "shared")
        elif scope:
            self.sch.set_scope(block, 0, scope)

    def _note(self, plan: RowThreads, inputs: Sequence[Buffer], decision: Decision) -> None:
        who = f"{plan.threads} threads a row" + (f", {plan.rows} rows a block" if plan.rows > 1 else "")
        who += f", {plan.several} after each other" if plan.several > 1 else ""
        length = self.row()[0]
        decision.chose(who, f"rows of {length if length is not None else 'unknown'} elements, {plan.lanes} a load")
        if inputs:
            names = ", ".join([buffer.name for buffer in inputs])
            where = {"local": "registers", "shared.dyn": "shared memory", "": "L2"}[plan.scope]
            decision.chose(
                f"{names} kept in {where}" if plan.scope else f"{names} read again", "it is read once from memory"
            )


def _is_costly(facts: BlockFacts) -> bool:
    """Whether it divides, or calls functions such as sqrt."""
    values = [store.value for store in facts.stores]
    return bool(facts.costly_calls) or any(collect(value, Div, Call) for value in values)


def are_few_and_long(group: Sequence[Entry]) -> bool:
    """Whether several blocks a row, and a kernel for each step, take less time than one block a row for all steps."""
    for facts in map(facts_in, group if len(group) > 1 else ()):
        rows, length = facts.extent(facts.spatial), facts.extent(facts.reduce)
        if not facts.is_reduction or rows is None or length is None:
            continue
        if rows <= _FEW_ROWS and length >= _SHARED_OUT_ROW and length % _WHOLE == 0:
            return True
    return False


def _check(blocks: Sequence[BlockFacts], rows: int, kept: Sequence[Buffer]) -> None:
    """What is passed on inside the group must be the group's own, as threads of other blocks may not see it."""
    for facts in blocks[:-1]:
        if facts.write.buffer not in kept:
            raise NotWorthIt(f"{facts.write.buffer.name} is read after the group as well")
