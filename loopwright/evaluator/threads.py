"""Threads: loops bound to blocks and threads, memory scopes, barriers, reductions over threads.

What the threads of a block do between two barriers runs thread by thread; statements around barriers run for all
threads together (`analysis/thread_axes.py` says what those are). Two threads that touch one cell between barriers, one
of them writing, are an error in whatever order they ran; so are threads that part before a barrier.

A thread is a copy of the slots that are bound inside its loop. Memory of a narrower scope than where it is allocated
exists once for each thread or block: its pointer is set again whenever another one runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from loopwright.analysis.thread_axes import (
    Axis,
    Together,
    axis_of,
    is_allreduce,
    is_barrier,
    is_block_tag,
    is_of_block,
    is_thread_tag,
    is_virtual_tag,
    same_axis,
    scope_of,
    tag_of,
)
from loopwright.evaluator.errors import BarrierDivergence, ThreadRace, UninitialisedRead, element
from loopwright.evaluator.lockstep import LockstepCompiler
from loopwright.evaluator.places import Place, Run
from loopwright.evaluator.statements import OnStep
from loopwright.evaluator.watch import Watch
from loopwright.ir import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRealize,
    BufferStore,
    Call,
    CommReducer,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    IntImm,
    LetStmt,
    Node,
    SeqStmt,
    Stmt,
    Var,
    While,
    pre_order_visit,
)
from loopwright.runtime.errors import NotBuilt


class Thread:
    """One thread of a block: its own slots, and its index along each axis."""

    __slots__ = ("current", "index", "name", "slots")

    def __init__(self, slots: list[Any], index: dict[Axis, int], current: dict[str, int]) -> None:
        self.slots, self.index = slots, index
        self.current = current  # the indices of its block and its own, by tag
        self.name = f"({', '.join([f'{axis.var.name}={value}' for axis, value in index.items()])})"


Threads = list[Thread]
Group = Callable[[Threads], None]


class _Private:
    """Memory that exists once for each block or thread, though it is allocated outside their loops."""

    def __init__(self, tags: frozenset[str], bind: Callable[[Any], None], make: Run) -> None:
        self.tags, self.bind, self.make = tags, bind, make
        self.copies: dict[tuple[tuple[str, int], ...], Any] = {}

    def switch(self, current: dict[str, int]) -> None:
        """Set the pointer to the copy of the thread that is to run."""
        key = tuple([(tag, current.get(tag, -1)) for tag in self.tags])
        found = self.copies.get(key)
        if found is None:
            found = self.copies[key] = self.make()
        self.bind(found)


class ThreadCompiler(LockstepCompiler):
    """Compiles statements, thread loops included."""

    def __init__(self, check: bool, on_step: OnStep | None = None) -> None:
        super().__init__(check, on_step)
        self.axes: list[Axis] = []  # at compile time: the thread axes around
        self.block_depth = 0  # at compile time: the block axes around
        self.together = Together()
        self.owners: dict[Var, frozenset[str]] = {}  # who has memory of their own; set for each function
        self.threads_from = 0  # the first slot that threads keep for themselves
        self.reducer: CommReducer | None = None
        self.private: dict[Var, _Private] = {}
        self.outside: list[_Private] = []  # of these, what the threads around use
        # At run time:
        self.current: dict[str, int] = {}  # the indices of the running block and thread
        self.interval = Watch()
        self.blocks: list[Watch] = []
        self.pool: dict[Var, Any] = {}  # memory of the block, while its threads get the pointer

    # --- loops ----------------------------------------------------------------------------------------------------

    def visit_For(self, stmt: For) -> Run:
        return self._threads(stmt) or super().visit_For(stmt)

    def visit_AttrStmt(self, stmt: AttrStmt) -> Run:
        if stmt.attr_key == "reduce_scope" and isinstance(stmt.node, CommReducer):
            return self._with_reducer(stmt, self.visit)  # type: ignore[no-any-return]
        return self._threads(stmt) or super().visit_AttrStmt(stmt)

    def _with_reducer(self, stmt: AttrStmt, compile_body: Callable[[Stmt], Any]) -> Any:
        assert isinstance(stmt.node, CommReducer)
        outer, self.reducer = self.reducer, stmt.node
        body = compile_body(stmt.body)
        self.reducer = outer
        return body

    def _threads(self, node: For | AttrStmt) -> Run | None:
        tag = tag_of(node)
        if is_block_tag(tag):
            return self._blocks(node)
        if not is_thread_tag(tag):
            return None
        if self.axes:
            return self._turns(node) if is_virtual_tag(tag) else None
        if self.in_lockstep:
            raise NotBuilt("evaluation of thread loops inside vectorized loops")
        frame, first = self.frame, len(self.frame)
        self.in_threads, self.threads_from = True, first
        outside = self.outside = self._private_in(node)
        group = self._fork(node)
        self.in_threads = False

        def run() -> None:
            before = self.current
            self.interval.clear()
            group([Thread(frame[first:], {}, before)])
            self.current = before
            for memory in outside:
                memory.switch(before)

        return run

    def _turns(self, node: For | AttrStmt) -> Run:
        """Virtual threads that one thread runs between barriers, one after the other."""
        axis, frame = axis_of(node), self.frame
        low, extent = self._bounds(node)
        slots = self._axis_slots(node)
        body = self.inside(axis.var, lambda: self.visit(node.body))

        def run() -> None:
            name, begin = self.interval.now, low()
            for value in range(begin, begin + extent()):
                self.interval.now = f"{name[:-1]}, {axis.var.name}={value})"
                for slot in slots:
                    frame[slot] = value
                body()
            self.interval.now = name

        return run

    def _private_in(self, node: Stmt) -> list[_Private]:
        """The memory from outside that is not one for all, and is used in a statement."""
        found: dict[Var, None] = {}

        def look(part: Node) -> None:
            data = part.buffer.data if isinstance(part, (BufferLoad, BufferStore)) else part
            if isinstance(data, Var) and data in self.private:
                found[data] = None
            elif isinstance(part, Block):
                for match in part.match_buffers:
                    if match.source.buffer.data in self.private:
                        found[match.source.buffer.data] = None

        pre_order_visit(node, look)
        return [self.private[data] for data in found]

    def _bounds(self, node: For | AttrStmt) -> tuple[Run, Run]:
        """The first value and the number of values of an axis."""
        if isinstance(node, For):
            return self.concrete(node.min, self.visit(node.min)), self.concrete(node.extent, self.visit(node.extent))
        return (lambda: 0), self.concrete(node.value, self.visit(node.value))

    def _axis_slots(self, node: For | AttrStmt) -> list[int]:
        return self.loop_slots(node) if isinstance(node, For) else [self.slot(axis_of(node).var)]

    def _blocks(self, node: For | AttrStmt) -> Run:
        """Blocks of threads: one after the other, each with memory of its own, none touching what another writes."""
        axis, frame = axis_of(node), self.frame
        low, extent = self._bounds(node)
        slots, outside = self._axis_slots(node), self._private_in(node)
        self.block_depth += 1
        body = self.inside(axis.var, lambda: self.visit(node.body))
        self.block_depth -= 1

        def run() -> None:
            watch = Watch()
            self.blocks.append(watch)
            before = self.current
            begin = low()
            for value in range(begin, begin + extent()):
                watch.now = f"{axis.var.name}={value}"
                self.current = {**before, axis.tag: value}
                for slot in slots:
                    frame[slot] = value
                for memory in outside:
                    memory.switch(self.current)
                body()
            self.blocks.pop()
            self.current = before
            for memory in outside:
                memory.switch(before)

        return run

    # --- memory ---------------------------------------------------------------------------------------------------

    def allocation_of(self, data: Var, make: Run) -> Run:
        scope = scope_of(data)
        if not self.axes:
            if scope == "global":
                return super().allocation_of(data, make)
            memory = self.private[data] = _Private(self.owners.get(data, frozenset()), self.pointer(data), make)

            def start() -> None:
                memory.copies.clear()
                memory.switch(self.current)

            return start
        if not is_of_block(scope):
            return super().allocation_of(data, make)
        bind, pool = self.pointer(data), self.pool

        def once() -> None:
            if data not in pool:
                pool[data] = make()
            bind(pool[data])

        return once

    # --- races ----------------------------------------------------------------------------------------------------

    def read(self, buffer: Buffer, place: Place, at: Node) -> Callable[[int], Any]:
        return self.watched_read(super().read(buffer, place, at), buffer, place, at)

    def write(self, buffer: Buffer, place: Place, at: Node) -> Callable[[int, Any], None]:
        return self.watched_write(super().write(buffer, place, at), buffer, place, at)

    def watched_read(
        self, one: Callable[[int], Any], buffer: Buffer, place: Place, at: Node
    ) -> Callable[[int], Any]:
        """The read, with a look at who else touches the cell."""
        watch = self._watch(buffer, place, False, at)
        if watch is None:
            return one

        def read(k: int) -> Any:
            watch(k)
            return one(k)

        return read

    def watched_write(
        self, one: Callable[[int, Any], None], buffer: Buffer, place: Place, at: Node
    ) -> Callable[[int, Any], None]:
        """The write, with a look at who else touches the cell."""
        watch = self._watch(buffer, place, True, at)
        if watch is None:
            return one

        def write(k: int, value: Any) -> None:
            watch(k)
            one(k, value)

        return write

    def _watch(self, buffer: Buffer, place: Place, writes: bool, at: Node) -> Callable[[int], None] | None:
        in_threads = bool(self.axes)
        if not self.check or not (in_threads or self.block_depth):
            return None
        frame, slot = self.frame, self.slots[buffer.data]
        size = buffer.dtype.element.nbytes if self.numeric else 1

        def watch(k: int) -> None:
            pointer = frame[slot]
            cell = pointer.memory, pointer.offset + k * size
            if in_threads:
                found = self.interval.touch(cell, writes)
                if found is not None:
                    name = element(buffer, place.indices_of(k))
                    raise ThreadRace(found.other, self.interval.now, found.what, name, False, at)
            for blocks in self.blocks:
                found = blocks.touch(cell, writes)
                if found is not None:
                    name = element(buffer, place.indices_of(k))
                    raise ThreadRace(f"({found.other})", f"({blocks.now})", found.what, name, True, at)

        return watch

    # --- all threads together ---------------------------------------------------------------------------------------

    def _as_thread(self, run: Run) -> Callable[[Thread], Any]:
        """Run something as one thread, which keeps what it binds."""
        frame, first, outside = self.frame, self.threads_from, self.outside

        def as_thread(thread: Thread) -> Any:
            frame[first:] = thread.slots
            self.current = thread.current
            for memory in outside:
                memory.switch(thread.current)
            self.interval.now = thread.name
            result = run()
            thread.slots[:] = frame[first:]
            return result

        return as_thread

    def _barrier(self) -> None:
        self.interval.clear()

    def group(self, stmt: Stmt) -> Group:
        """The statement as a function of the threads that run it."""
        kept = self.together.once(stmt, self.axes)
        if kept is not None:
            return self._once(stmt, kept)
        if not self.together.is_cut(stmt, self.axes):
            return self._each(stmt)
        if is_barrier(stmt):
            return self._sync(stmt)
        if is_allreduce(stmt):
            return self._allreduce(stmt)
        compiled = _TOGETHER.get(type(stmt))
        if compiled is None:
            raise NotBuilt(f"evaluation of a barrier inside {type(stmt).__name__}")
        group: Group = getattr(self, compiled)(stmt)
        return group

    def _each(self, stmt: Stmt) -> Group:
        run = self._as_thread(self.visit(stmt))

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

    def _once(self, stmt: Stmt, kept: Sequence[Axis]) -> Group:
        """One thread runs the statement for all that differ only along the other axes."""
        run = self._as_thread(self.visit(stmt))

        def once(threads: Threads) -> None:
            self._barrier()
            chosen: dict[tuple[int, ...], Thread] = {}
            for thread in threads:
                chosen.setdefault(tuple([thread.index[axis] for axis in kept]), thread)
            for thread in chosen.values():
                run(thread)
            self._barrier()

        return once

    def _sync(self, stmt: Stmt) -> Group:
        assert isinstance(stmt, Evaluate) and isinstance(stmt.value, Call)
        scope = getattr(stmt.value.args[0], "value", "shared") if stmt.value.args else "shared"
        if scope == "global":
            raise NotBuilt("evaluation of a barrier of all blocks", "end the kernel, and begin another")
        return lambda threads: self._barrier()

    def _fork(self, node: For | AttrStmt) -> Group:
        """Each thread becomes as many as the axis is long."""
        axis = axis_of(node)
        low, extent = [self._as_thread(run) for run in self._bounds(node)]
        slots = [slot - self.threads_from for slot in self._axis_slots(node)]
        self.axes.append(axis)
        body: Group = self.inside(axis.var, lambda: self.group(node.body))
        self.axes.pop()
        is_virtual = is_virtual_tag(axis.tag)

        def fork(threads: Threads) -> None:
            made = []
            for thread in threads:
                begin = low(thread)
                for value in range(begin, begin + extent(thread)):
                    own = list(thread.slots)
                    for slot in slots:
                        own[slot] = value
                    current = thread.current if is_virtual else {**thread.current, axis.tag: value}
                    made.append(Thread(own, {**thread.index, axis: value}, current))
            if not is_virtual:
                self._barrier()
            body(made)
            if not is_virtual:
                self._barrier()

        return fork

    def _share(self, node: For, axis: Axis) -> Group:
        """A loop bound to an axis that runs already: each thread has one of its iterations."""
        low, extent = [self._as_thread(run) for run in self._bounds(node)]
        start = self._as_thread(self._bounds(axis.node)[0])
        slots = [slot - self.threads_from for slot in self._axis_slots(node)]
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
            self._barrier()
            body(active)
            self._barrier()

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
            return self._fork(stmt) if axis is None else self._share(stmt, axis)
        if is_block_tag(tag):
            raise NotBuilt("evaluation of barriers in block loops inside thread loops")
        low, extent = [self._as_thread(run) for run in self._bounds(stmt)]
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

    def _agreed(self, stmt: Stmt, what: str, threads: Threads, ask: Callable[[Thread], Any]) -> Any:
        """The value that is the same in all threads; BarrierDivergence when it is not."""
        first: tuple[str, Any] | None = None
        for thread in threads:
            value = ask(thread)
            if first is None:
                first = thread.name, value
            elif value != first[1]:
                raise BarrierDivergence(what, first, (thread.name, value), stmt)
        return None if first is None else first[1]

    def _steered(self, expr: Expr) -> Callable[[Thread], Any]:
        return self._as_thread(self.concrete(expr, self.visit(expr)))

    def group_if(self, stmt: IfThenElse) -> Group:
        condition = self._steered(stmt.condition)
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
        condition, body = self._steered(stmt.condition), self.group(stmt.body)

        def run(threads: Threads) -> None:
            while self._agreed(stmt, f"the condition {stmt.condition}", threads, lambda t: bool(condition(t))):
                body(threads)

        return run

    def _after(self, start: Run, body: Group) -> Group:
        first = self._as_thread(start)

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
            self.pool.pop(data, None)
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
                return self._with_reducer(stmt, self.group)  # type: ignore[no-any-return]
            if is_thread_tag(tag_of(stmt)):
                if any([axis.tag == tag_of(stmt) for axis in self.axes]) and not is_virtual_tag(tag_of(stmt)):
                    raise NotBuilt(f"evaluation of a second launch of {tag_of(stmt)} inside the first")
                return self._fork(stmt)
        return self.group(stmt.body)

    def group_block(self, stmt: BlockRealize) -> Group:
        block = stmt.block
        for axis, value in zip(block.iter_vars, stmt.iter_values, strict=True):
            for thread_axis in self.axes:
                if self.together.depends(value, [thread_axis]):
                    self.together.alias(axis.var, thread_axis)
        holds, enter, body = self.compile_block(stmt, self.group)
        test, start = self._as_thread(holds), self._as_thread(enter)
        of_block = [buffer.data for buffer in block.alloc_buffers if is_of_block(buffer.scope())]

        def run(threads: Threads) -> None:
            if not self._agreed(stmt, f"the condition of block {block.name_hint!r}", threads, lambda t: bool(test(t))):
                return
            for data in of_block:
                self.pool.pop(data, None)
            for thread in threads:
                start(thread)
            body(threads)

        return run

    # --- reductions over threads --------------------------------------------------------------------------------------

    def _allreduce(self, stmt: Stmt) -> Group:
        """tvm_thread_allreduce(n, values…, condition, results…, threads…): every thread gets the whole."""
        assert isinstance(stmt, Evaluate) and isinstance(stmt.value, Call)
        arguments, reducer = stmt.value.args, self.reducer
        if reducer is None:
            raise NotBuilt("evaluation of a reduction over threads without a reduce_scope around it")
        count = arguments[0].value if isinstance(arguments[0], IntImm) else 1
        values, condition = arguments[1 : 1 + count], arguments[1 + count]
        results, over = arguments[2 + count : 2 + 2 * count], set(arguments[2 + 2 * count :])
        rest = [axis for axis in self.axes if not self.together.names(axis) & over]
        take = self._as_thread(self._values([*values]))
        holds = self._steered(condition)
        combine, identity = self._combiner(reducer)
        put = self._as_results(results)

        def run(threads: Threads) -> None:
            self._barrier()
            totals: dict[tuple[int, ...], list[Any]] = {}
            for thread in threads:
                key = tuple([thread.index[axis] for axis in rest])
                found = totals.get(key) or identity()
                totals[key] = combine(found, take(thread)) if holds(thread) else found
            self._barrier()
            for thread in threads:
                put(thread, totals[tuple([thread.index[axis] for axis in rest])])
            self._barrier()

        return run

    def _values(self, exprs: Sequence[Expr]) -> Run:
        runs = [self.visit(expr) for expr in exprs]
        return lambda: [run() for run in runs]

    def _combiner(self, reducer: CommReducer) -> tuple[Callable[[list[Any], list[Any]], list[Any]], Run]:
        left, right = [self.slot(var) for var in reducer.lhs], [self.slot(var) for var in reducer.rhs]
        result, frame = self._values(reducer.result), self.frame

        def combine(a: list[Any], b: list[Any]) -> list[Any]:
            for slot, value in zip([*left, *right], [*a, *b], strict=True):
                frame[slot] = value
            found: list[Any] = result()
            return found

        return combine, self._values(reducer.identity_element)

    def _as_results(self, results: Sequence[Expr]) -> Callable[[Thread, list[Any]], None]:
        stores = []
        for result in results:
            if isinstance(result, BufferLoad):
                var = Var("total", result.dtype)
                slot = self.slot(var)
                run = self.visit(BufferStore(result.buffer, var, result.indices))
            else:
                raise NotBuilt("evaluation of a reduction over threads into a bare pointer", "name an element, R[0]")
            stores.append((slot, run))
        frame, box = self.frame, [[]]  # type: ignore[var-annotated]

        def store() -> None:
            for (slot, run), value in zip(stores, box[0], strict=True):
                frame[slot] = value
                run()

        as_thread = self._as_thread(store)

        def put(thread: Thread, values: list[Any]) -> None:
            box[0] = values
            as_thread(thread)

        return put


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
