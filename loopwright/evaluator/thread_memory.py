"""Memory of threads: one copy for each block or thread where the scope says so, and a watch on who touches what.

Memory of a narrower scope than where it is allocated exists once for each thread or block: its pointer is set again
whenever another one runs. Two threads that touch one cell between barriers, one of them writing, are an error in
whatever order they ran; so are two blocks, at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from loopwright.analysis.thread_axes import Axis, axis_of, is_of_block, is_shared_along, is_virtual_tag, scope_of
from loopwright.analysis.thread_work import Together
from loopwright.evaluator.errors import ThreadRace, element
from loopwright.evaluator.locations import Place, Run
from loopwright.evaluator.lockstep import LockstepCompiler
from loopwright.evaluator.statements import OnStep
from loopwright.evaluator.values import Value
from loopwright.evaluator.watch import Watch
from loopwright.ir import (
    AttrStmt,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    CommReducer,
    Expr,
    For,
    Node,
    Stmt,
    Var,
    pre_order_visit,
)


class Thread:
    """One thread of a block: its own slots, and its index along each axis."""

    __slots__ = ("current", "index", "name", "slots")

    def __init__(self, slots: list[Value], index: dict[Axis, int], current: dict[str, int]) -> None:
        self.slots, self.index = slots, index
        self.current = current  # the indices of its block and its own, by tag
        self.name = self.name_along(index)

    def name_along(self, axes: Iterable[Axis]) -> str:
        """`(ty=0, tx=3)`: its index along some axes."""
        return f"({', '.join([f'{axis.var.name}={self.index[axis]}' for axis in axes])})"


Threads = list[Thread]
Key = tuple[tuple[str, int], ...]


def axis_key(axis: Axis) -> str:
    """What a thread's index along the axis goes by: its tag; of a virtual axis, which no other has, its variable."""
    # By address, since keys are text, and variables of one name are not one.
    return f"{axis.tag} {id(axis.var)}" if is_virtual_tag(axis.tag) else axis.tag
Group = Callable[[Threads], None]


class Private:
    """Memory that exists once for each block or thread, though it is allocated outside their loops."""

    def __init__(self, tags: frozenset[str], bind: Callable[[Value], None], make: Run) -> None:
        self.tags, self.bind, self.make = tags, bind, make
        self.copies: dict[Key, Value] = {}

    def switch(self, current: dict[str, int]) -> None:
        """Set the pointer to the copy of the thread that is to run."""
        key = _index_along(self.tags, current)
        result = self.copies.get(key)
        if result is None:
            result = self.copies[key] = self.make()
        self.bind(result)


class Inner(Private):
    """Memory that threads along some axes allocate for those that they become along others."""

    def __init__(self, around: frozenset[str], tags: frozenset[str], bind: Callable[[Value], None], make: Run) -> None:
        super().__init__(tags | around, bind, make)
        self.around = around
        self.born: set[Key] = set()  # the threads around that have allocated it

    def start(self, current: dict[str, int]) -> None:
        """A thread allocates it: what its threads had before is gone."""
        mine = _index_along(self.around, current)
        self.born.add(mine)
        self.copies = {key: copy for key, copy in self.copies.items() if not set(mine) <= set(key)}
        self.switch(current)

    def switch(self, current: dict[str, int]) -> None:
        if _index_along(self.around, current) in self.born:
            super().switch(current)


class Pooled(Private):
    """Memory that threads share, though it is allocated in their loop: one for each index along the other axes."""

    def __init__(
        self, tags: frozenset[str], bind: Callable[[Value], None], make: Run, is_alive: Callable[[], bool]
    ) -> None:
        super().__init__(tags, bind, make)
        self.is_alive = is_alive

    def switch(self, current: dict[str, int]) -> None:
        if self.is_alive():
            super().switch(current)


def _index_along(tags: Iterable[str], current: dict[str, int]) -> Key:
    return tuple([(tag, current.get(tag, -1)) for tag in tags])


class ThreadMemoryCompiler(LockstepCompiler):
    """Compiles blocks, allocations and accesses; `GroupCompiler` adds what threads do together."""

    def __init__(self, check: bool, on_step: OnStep | None = None) -> None:
        super().__init__(check, on_step)
        self.axes: list[Axis] = []  # at compile time: the thread axes around
        self.block_tags: list[str] = []  # at compile time: the block axes around
        self.turn_keys: list[str] = []  # at compile time: the loops around whose virtual threads take turns
        self.together = Together()
        self.owners: dict[Var, frozenset[str]] = {}  # who has memory of their own; set for each function
        self.threads_from = 0  # the first slot that threads keep for themselves
        self.reducer: CommReducer | None = None
        self.private: dict[Var, Private] = {}
        self.outside: list[Private] = []  # of these, what the threads around use
        self.inner: list[Private] = []  # what threads allocate for those that they become, or for blocks inside
        # At run time:
        self.current: dict[str, int] = {}  # the indices of the running block and thread
        self.interval = Watch("")
        self.blocks: list[Watch[str]] = []
        self.turns: list[Watch[str]] = []  # one for each loop of virtual threads that the running thread is in
        self.pool: set[Var] = set()  # memory that threads share, and one of them has allocated

    # --- blocks ---------------------------------------------------------------------------------------------------

    def private_in(self, node: Stmt) -> list[Private]:
        """The memory from outside that is not one for all, and is used in a statement."""
        result: dict[Var, None] = {}

        def look(part: Node) -> None:
            data = part.buffer.data if isinstance(part, (BufferLoad, BufferStore)) else part
            if isinstance(data, Var) and data in self.private:
                result[data] = None
            elif isinstance(part, Block):
                for match in part.match_buffers:
                    if match.source.buffer.data in self.private:
                        result[match.source.buffer.data] = None

        pre_order_visit(node, look)
        return [self.private[data] for data in result]

    def bounds(self, node: For | AttrStmt) -> tuple[Run, Run]:
        """The first value and the number of values of an axis."""
        if isinstance(node, For):
            return self.concrete(node.min, self.visit(node.min)), self.concrete(node.extent, self.visit(node.extent))
        return (lambda: 0), self.concrete(node.value, self.visit(node.value))

    def axis_slots(self, node: For | AttrStmt) -> list[int]:
        return self.loop_slots(node) if isinstance(node, For) else [self.slot(axis_of(node).var)]

    def blocks_of(self, node: For | AttrStmt) -> Run:
        """Blocks of threads: one after the other, each with memory of its own, none touching what another writes."""
        axis, frame = axis_of(node), self.frame
        low, extent = self.bounds(node)
        slots, outside = self.axis_slots(node), self.private_in(node)
        self.block_tags.append(axis.tag)
        body = self.inside(axis.var, lambda: self.visit(node.body))
        self.block_tags.pop()

        def run() -> None:
            watch = Watch("")
            self.blocks.append(watch)
            before = self.current
            begin = low()
            for value in range(begin, begin + extent()):
                watch.now = f"{axis.var.name}={value}"
                self.current = {**before, axis.tag: value}
                for slot in slots:
                    frame[slot] = value
                for memory in (*outside, *self.inner):
                    memory.switch(self.current)
                body()
            self.blocks.pop()
            self.current = before
            for memory in (*outside, *self.inner):
                memory.switch(before)

        return run

    # --- memory ---------------------------------------------------------------------------------------------------

    def allocation_of(self, data: Var, make: Run) -> Run:
        scope = scope_of(data)
        if not self.axes:
            if scope == "global":
                return super().allocation_of(data, make)
            memory = self.private[data] = Private(self.owners.get(data, frozenset()), self.pointer(data), make)

            def start() -> None:
                memory.copies.clear()
                memory.switch(self.current)

            return start
        around = frozenset([*self.block_tags, *[axis_key(axis) for axis in self.axes], *self.turn_keys])
        owners = self.owners.get(data, frozenset())
        sharing = frozenset([tag for tag in around if is_shared_along(scope, tag)])
        if sharing or is_of_block(scope):
            return self._pooled(data, owners if is_of_block(scope) else (owners | around) - sharing, make)
        if owners <= around:
            return super().allocation_of(data, make)
        inner = Inner(around, owners, self.pointer(data), make)
        self.inner.append(inner)
        return lambda: inner.start(self.current)

    def _pooled(self, data: Var, tags: frozenset[str], make: Run) -> Run:
        """Memory that threads share, allocated by whichever of them comes first."""
        pool = self.pool
        memory = Pooled(tags, self.pointer(data), make, lambda: data in pool)
        self.inner.append(memory)

        def start() -> None:
            if data not in pool:
                pool.add(data)
                memory.copies.clear()
            memory.switch(self.current)

        return start

    # --- races ----------------------------------------------------------------------------------------------------

    def read(self, buffer: Buffer, location: Place, at: Node) -> Callable[[int], Value]:
        return self.watched_read(super().read(buffer, location, at), buffer, location, at)

    def write(self, buffer: Buffer, location: Place, at: Node) -> Callable[[int, Value], None]:
        return self.watched_write(super().write(buffer, location, at), buffer, location, at)

    def watched_read(
        self, one: Callable[[int], Value], buffer: Buffer, offset: Place, at: Node
    ) -> Callable[[int], Value]:
        """The read, with a look at who else touches the cell."""
        watch = self._watch(buffer, offset, False, at)
        if watch is None:
            return one

        def read(k: int) -> Value:
            watch(k)
            return one(k)

        return read

    def watched_write(
        self, one: Callable[[int, Value], None], buffer: Buffer, location: Place, at: Node
    ) -> Callable[[int, Value], None]:
        """The write, with a look at who else touches the cell."""
        watch = self._watch(buffer, location, True, at)
        if watch is None:
            return one

        def write(k: int, value: object) -> None:
            watch(k)
            one(k, value)

        return write

    def _watch(self, buffer: Buffer, location: Place, writes: bool, at: Node) -> Callable[[int], None] | None:
        touch = self.watched_touch(writes, at)
        if touch is None:
            return None
        frame, slot = self.frame, self.slots[buffer.data]
        size = buffer.dtype.element.nbytes if self.numeric else 1

        def watch(k: int) -> None:
            pointer = frame[slot]
            touch((pointer.memory, pointer.offset + k * size), lambda: element(buffer, location.indices_of(k)))

        return watch

    def watched_touch(self, writes: bool, at: Node) -> Callable[[Value, Callable[[], str]], None] | None:
        """A look at who else touches a cell, which has a name for the message; None where there is one thread."""
        in_threads = bool(self.axes)
        if not self.check or not (in_threads or self.block_tags):
            return None

        def touch(cell: Value, name: Callable[[], str]) -> None:
            if in_threads:
                result = self.interval.touch(cell, writes)
                if result is not None:
                    raise ThreadRace(result.other, self.interval.now, result.what, name(), False, at)
            for turns in self.turns:
                result = turns.touch(cell, writes)
                if result is not None:
                    raise ThreadRace(result.other, turns.now, result.what, name(), False, at)
            for blocks in self.blocks:
                result = blocks.touch(cell, writes)
                if result is not None:
                    raise ThreadRace(f"({result.other})", f"({blocks.now})", result.what, name(), True, at)

        return touch

    def watched_handoff(self, buffer: Buffer, location: Place, call: Call) -> Callable[[int], None] | None:
        """Between barriers of a block a status word is memory like any other; other blocks touch it atomically."""
        in_threads = bool(self.axes)
        if not self.check or not (in_threads or self.block_tags):
            return None
        frame, slot, size = self.frame, self.slots[buffer.data], buffer.dtype.nbytes
        takes, writes = call.op.name == "tir.take_ticket", call.op.name == "tir.publish"

        def watch(k: int) -> None:
            pointer = frame[slot]
            cell = pointer.memory, pointer.offset + k * size
            stretches = [(self.interval, False)] if in_threads else []
            for one, are_blocks in [*stretches, *[(blocks, True) for blocks in self.blocks]]:
                met = one.touch_atomically(cell) if are_blocks or takes else one.touch(cell, writes)
                if met is not None:
                    name = element(buffer, location.indices_of(k))
                    pair = [f"({who})" if are_blocks else who for who in (met.other, one.now)]
                    raise ThreadRace(pair[0], pair[1], met.what, name, are_blocks, call)

        return watch

    # --- threads --------------------------------------------------------------------------------------------------

    def as_thread(self, run: Run, along: Sequence[Axis] | None = None) -> Callable[[Thread], Value]:
        """Run something as one thread, which keeps what it binds; races are told `along` these axes only."""
        frame, first, outside = self.frame, self.threads_from, self.outside

        def run_as(thread: Thread) -> Value:
            frame[first:] = thread.slots
            self.current = thread.current
            for memory in (*outside, *self.inner):
                memory.switch(thread.current)
            self.interval.now = thread.name if along is None else thread.name_along(along)
            result = run()
            thread.slots[:] = frame[first:]
            return result

        return run_as

    def barrier(self) -> None:
        self.interval.clear()

    def steered(self, expr: Expr) -> Callable[[Thread], Value]:
        return self.as_thread(self.concrete(expr, self.visit(expr)))
