"""Statements around barriers: all threads of a block run them together, each in slots of its own.

What the threads do between two barriers runs thread by thread (`analysis/thread_work.py` says what stands between
barriers). Threads that part before a barrier are an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from loopwright.analysis.thread_axes import (
    Axis,
    axis_of,
    is_allreduce,
    is_barrier,
    is_block_tag,
    is_of_block,
    is_shuffle,
    is_thread_tag,
    is_virtual_tag,
    same_axis,
    tag_of,
)
from loopwright.evaluator.errors import BarrierDivergence, UninitialisedRead
from loopwright.evaluator.locations import Run
from loopwright.evaluator.thread_memory import Group, Thread, Threads, axis_key
from loopwright.evaluator.thread_shuffles import ShuffleCompiler
from loopwright.evaluator.values import Value
from loopwright.ir import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    BlockRealize,
    BufferRealize,
    Call,
    CommReducer,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)
from loopwright.runtime.errors import NotBuilt


class GroupCompiler(ShuffleCompiler):
    """Compiles statements to functions of the threads that run them."""

    def group(self, stmt: Stmt) -> Group:
        """The statement as a function of the threads that run it."""
        kept = self.together.once(stmt, self.axes)
        turns = self.together.crossing(stmt, self.axes)
        if kept is not None or turns:
            return self._once(stmt, list(self.axes) if kept is None else kept, turns)
        if not self.together.is_cut(stmt, self.axes):
            return self._each(stmt)
        if is_barrier(stmt):
            return self._sync(stmt)
        if is_allreduce(stmt):
            return self.allreduce(stmt)
        if is_shuffle(stmt):
            return self.shuffled(stmt)
        compiled = _TOGETHER.get(type(stmt))
        if compiled is None:
            raise NotBuilt(f"evaluation of a barrier inside {type(stmt).__name__}")
        group: Group = getattr(self, compiled)(stmt)
        return group

    def _each(self, stmt: Stmt) -> Group:
        run = self.as_thread(self.visit(stmt))

        def each(threads: Threads) -> None:
            for k, thread in enumerate(threads):
                try:
                    run(thread)
                except UninitialisedRead:
                    # Is it a thread still to come that writes the cell? Then that is what is wrong.
                    for later in threads[k + 1 :]:
                        with suppress(UninitialisedRead):
                            run(later)
                    raise

        return each

    def _once(self, stmt: Stmt, kept: Sequence[Axis], turns: Sequence[Axis]) -> Group:
        """One thread runs the statement for all that differ only along the other axes.

        Those that differ only along an axis of `turns` come one after the other: together they count as one.
        """
        apart = [axis for axis in kept if axis not in turns] if turns else None
        run = self.as_thread(self.visit(stmt), apart)

        def once(threads: Threads) -> None:
            self.barrier()
            chosen: dict[tuple[int, ...], Thread] = {}
            for thread in threads:
                chosen.setdefault(tuple([thread.index[axis] for axis in kept]), thread)
            for thread in chosen.values():
                run(thread)
            self.barrier()

        return once

    def _sync(self, stmt: Stmt) -> Group:
        assert isinstance(stmt, Evaluate) and isinstance(stmt.value, Call)
        scope = getattr(stmt.value.args[0], "value", "shared") if stmt.value.args else "shared"
        if scope == "global":
            raise NotBuilt("evaluation of a barrier of all blocks", "end the kernel, and begin another")
        return lambda threads: self.barrier()

    def fork(self, node: For | AttrStmt) -> Group:
        """Each thread becomes as many as the axis is long."""
        axis = axis_of(node)
        low, extent = [self.as_thread(run) for run in self.bounds(node)]
        slots = [slot - self.threads_from for slot in self.axis_slots(node)]
        self.axes.append(axis)
        body: Group = self.inside(axis.var, lambda: self.group(node.body))
        self.axes.pop()
        is_virtual, key = is_virtual_tag(axis.tag), axis_key(axis)

        def run(threads: Threads) -> None:
            result = []
            for thread in threads:
                begin = low(thread)
                for value in range(begin, begin + extent(thread)):
                    own = list(thread.slots)
                    for slot in slots:
                        own[slot] = value
                    current = {**thread.current, key: value}
                    result.append(Thread(own, {**thread.index, axis: value}, current))
            if not is_virtual:
                self.barrier()
            body(result)
            if not is_virtual:
                self.barrier()

        return run

    def _share(self, node: For, axis: Axis) -> Group:
        """A loop bound to an axis that runs already: each thread has one of its iterations."""
        low, extent = [self.as_thread(run) for run in self.bounds(node)]
        start = self.as_thread(self.bounds(axis.node)[0])
        slots = [slot - self.threads_from for slot in self.axis_slots(node)]
        self.together.alias(node.loop_var, axis)
        body: Group = self.inside(node.loop_var, lambda: self.group(node.body))

        def share(threads: Threads) -> None:
            active = []
            for thread in threads:
                number = thread.index[axis] - start(thread)
                if number < extent(thread):
                    for slot in slots:
                        thread.slots[slot] = low(thread) + number
                    active.append(thread)
            self.barrier()
            body(active)
            self.barrier()

        return share

    def group_seq(self, stmt: SeqStmt) -> Group:
        parts = [self.group(part) for part in stmt.seq]

        def run(threads: Threads) -> None:
            for part in parts:
                part(threads)

        return run

    def group_for(self, stmt: For) -> Group:
        tag = tag_of(stmt)
        if is_thread_tag(tag):
            axis = same_axis(stmt, self.axes)
            return self.fork(stmt) if axis is None else self._share(stmt, axis)
        if is_block_tag(tag):
            raise NotBuilt("evaluation of barriers in block loops inside thread loops")
        low, extent = [self.as_thread(run) for run in self.bounds(stmt)]
        slots = [slot - self.threads_from for slot in self.loop_slots(stmt)]
        body: Group = self.inside(stmt.loop_var, lambda: self.group(stmt.body))

        def run(threads: Threads) -> None:
            begin = self._agreed(stmt, f"the start of loop {stmt.loop_var.name}", threads, low)
            count = self._agreed(stmt, f"the length of loop {stmt.loop_var.name}", threads, extent)
            for value in range(begin or 0, (begin or 0) + (count or 0)):
                for thread in threads:
                    for slot in slots:
                        thread.slots[slot] = value
                body(threads)

        return run

    def _agreed(self, stmt: Stmt, what: str, threads: Threads, ask: Callable[[Thread], Value]) -> Value:
        """The value that is the same in all threads; BarrierDivergence when it is not."""
        first: tuple[str, Value] | None = None
        for thread in threads:
            value = ask(thread)
            if first is None:
                first = thread.name, value
            elif value != first[1]:
                raise BarrierDivergence(what, first, (thread.name, value), stmt)
        return None if first is None else first[1]

    def group_if(self, stmt: IfThenElse) -> Group:
        condition = self.steered(stmt.condition)
        then_case = self.group(stmt.then_case)
        else_case = None if stmt.else_case is None else self.group(stmt.else_case)

        def run(threads: Threads) -> None:
            chosen = self._agreed(stmt, f"the condition {stmt.condition}", threads, lambda t: bool(condition(t)))
            if chosen:
                then_case(threads)
            elif else_case is not None:
                else_case(threads)

        return run

    def group_while(self, stmt: While) -> Group:
        condition, body = self.steered(stmt.condition), self.group(stmt.body)

        def run(threads: Threads) -> None:
            while self._agreed(stmt, f"the condition {stmt.condition}", threads, lambda t: bool(condition(t))):
                body(threads)

        return run

    def _after(self, start: Run, body: Group) -> Group:
        first = self.as_thread(start)

        def run(threads: Threads) -> None:
            for thread in threads:
                first(thread)
            body(threads)

        return run

    def group_let(self, stmt: LetStmt) -> Group:
        value, bind = self.visit(stmt.value), self.binder(stmt.var)
        for axis in self.axes:
            if self.together.depends(stmt.value, [axis]):
                self.together.alias(stmt.var, axis)
        return self._after(lambda: bind(value()), self.group(stmt.body))

    def group_allocate(self, stmt: Allocate | BufferRealize) -> Group:
        if isinstance(stmt, Allocate):
            data = stmt.buffer_var
            sizes = [self.constant_or_run(extent) for extent in stmt.extents]
            start = self.allocation_of(data, self.new_memory(data.name, stmt.dtype, sizes))
        else:
            data, start = stmt.buffer.data, self._allocation(stmt.buffer)
        run = self._after(start, self.group(stmt.body))

        def fresh(threads: Threads) -> None:
            self.pool.discard(data)
            run(threads)

        return fresh

    def group_constant(self, stmt: AllocateConst) -> Group:
        make = self.constant_memory(stmt.buffer_var.name, stmt.dtype, stmt.data)
        bind = self.pointer(stmt.buffer_var)
        return self._after(lambda: bind(make()), self.group(stmt.body))

    def group_assert(self, stmt: AssertStmt) -> Group:
        return self._after(self.assertion(stmt), self.group(stmt.body))

    def group_body(self, stmt: AttrStmt | DeclBuffer) -> Group:
        if isinstance(stmt, AttrStmt):
            if stmt.attr_key == "reduce_scope" and isinstance(stmt.node, CommReducer):
                return self.with_reducer(stmt, self.group)
            if is_thread_tag(tag_of(stmt)):
                if any([axis.tag == tag_of(stmt) for axis in self.axes]) and not is_virtual_tag(tag_of(stmt)):
                    raise NotBuilt(f"evaluation of a second launch of {tag_of(stmt)} inside the first")
                return self.fork(stmt)
        return self.group(stmt.body)

    def group_block(self, stmt: BlockRealize) -> Group:
        block = stmt.block
        for axis, value in zip(block.iter_vars, stmt.iter_values, strict=True):
            for thread_axis in self.axes:
                if self.together.depends(value, [thread_axis]):
                    self.together.alias(axis.var, thread_axis)
        holds, enter, body = self.compile_block(stmt, self.group)
        test, start = self.as_thread(holds), self.as_thread(enter)
        of_block = [buffer.data for buffer in block.alloc_buffers if is_of_block(buffer.scope())]

        def run(threads: Threads) -> None:
            if not self._agreed(stmt, f"the condition of block {block.name_hint!r}", threads, lambda t: bool(test(t))):
                return
            for data in of_block:
                self.pool.discard(data)
            for thread in threads:
                start(thread)
            body(threads)

        return run


_TOGETHER: Final[dict[type[Stmt], str]] = {
    SeqStmt: "group_seq",
    For: "group_for",
    IfThenElse: "group_if",
    While: "group_while",
    LetStmt: "group_let",
    Allocate: "group_allocate",
    BufferRealize: "group_allocate",
    AllocateConst: "group_constant",
    AssertStmt: "group_assert",
    AttrStmt: "group_body",
    DeclBuffer: "group_body",
    BlockRealize: "group_block",
}
