"""Statements as Python closures: each is compiled once to a function without arguments that runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from loopwright.evaluator.calls import CallCompiler
from loopwright.evaluator.errors import AxisOutsideDomain, BadRegion, FailedCheck
from loopwright.evaluator.expressions import Scope, Store
from loopwright.evaluator.locations import Run
from loopwright.evaluator.memory import Memory, Pointer
from loopwright.evaluator.values import Body, Value
from loopwright.ir import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    Buffer,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    LetStmt,
    MatchBufferRegion,
    Prefetch,
    SeqStmt,
    Stmt,
    StringImm,
    Var,
    While,
    const,
)
from loopwright.ir.assertion_errors import error_of, shown
from loopwright.runtime.call_errors import SEPARATOR, WorkspaceExhausted
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import NotBuilt


class Step(NamedTuple):
    """What `on_step` is told before a store or a block runs."""

    kind: str  # "store" or "block"
    statement: Stmt  # the BufferStore or the BlockRealize
    loops: dict[str, Value]  # loop variables and block axes around it, outermost first
    buffer: Buffer | None = None  # of a store
    indices: tuple[Value, ...] = ()
    value: Value = None

    def __str__(self) -> str:
        where = ", ".join([f"{name}={value}" for name, value in self.loops.items()])
        if self.buffer is None:
            assert isinstance(self.statement, BlockRealize)
            return f"block {self.statement.block.name_hint} at {where}"
        indices = ", ".join([str(index) for index in self.indices])
        return f"{self.buffer.name}[{indices}] = {self.value}" + (f" at {where}" if where else "")


OnStep = Callable[[Step], object]


class StatementCompiler(CallCompiler):
    """Compiles statements."""

    def __init__(self, check: bool, on_step: OnStep | None = None) -> None:
        super().__init__(check)
        self.on_step = on_step
        self.matched: set[Var] = set()  # variables that match_buffers bind

    def inside(self, var: Var, body: Callable[[], Value]) -> Value:
        """What `body` compiles, with `var` shown among the iteration variables."""
        outer = self.scope
        self.scope = Scope(var, self.slots[var], outer)
        compiled = body()
        self.scope = outer
        return compiled

    # --- simple statements ----------------------------------------------------------------------------------------

    def visit_SeqStmt(self, stmt: SeqStmt) -> Run:
        parts = [self.visit(part) for part in stmt.seq]

        def run() -> None:
            for part in parts:
                part()

        return run

    def visit_Evaluate(self, stmt: Evaluate) -> Run:
        run: Run = self.visit(stmt.value)
        return run

    def visit_Prefetch(self, stmt: Prefetch) -> Run:
        return lambda: None

    def visit_BufferStore(self, stmt: BufferStore) -> Run:
        prepare, commit = self.compile_store(stmt)
        return lambda: commit(prepare())

    def compile_store(self, stmt: BufferStore) -> Store:
        """The two halves of a store; the step hook is told between them."""
        location = self.place(stmt.buffer, stmt.indices, stmt, writes=True)
        store = self.store(stmt.buffer, self.value(stmt.value), location, stmt.value.dtype.lanes, stmt)
        if self.on_step is None:
            return store
        on_step, scope, prepare = self.on_step, self.scope, store.prepare
        indices = [self.visit(index) for index in stmt.indices]

        def message() -> Value:
            ready = prepare()
            on_step(
                Step(
                    "store",
                    stmt,
                    self.loops(scope),
                    stmt.buffer,
                    tuple([tuple(i) if isinstance(i, list) else i for i in [index() for index in indices]]),
                    ready[1],
                )
            )
            return ready

        return Store(message, store.commit)

    def visit_LetStmt(self, stmt: LetStmt) -> Run:
        value, bind = self.visit(stmt.value), self.binder(stmt.var)
        self.numbers.let(stmt.var, stmt.value)
        body = self.visit(stmt.body)

        def run() -> None:
            bind(value())
            body()

        return run

    def visit_AttrStmt(self, stmt: AttrStmt) -> Run:
        run: Run = self.visit(stmt.body)
        return run

    def visit_AssertStmt(self, stmt: AssertStmt) -> Run:
        check, body = self.assertion(stmt), self.visit(stmt.body)

        def run() -> None:
            check()
            body()

        return run

    def assertion(self, stmt: AssertStmt) -> Run:
        condition, scope = self.concrete(stmt.condition, self.visit(stmt.condition)), self.scope
        _, text, parts = error_of(stmt)
        message = stmt.message.value if isinstance(stmt.message, StringImm) else text
        values = [self.concrete(part, self.visit(part)) for part in parts]

        def check() -> None:
            if not condition():
                said = shown(message, [value() for value in values]) if values else message
                raise FailedCheck(said, self.loops(scope), stmt)

        return check

    def visit_DeclBuffer(self, stmt: DeclBuffer) -> Run:
        run: Run = self.visit(stmt.body)
        return run

    # --- control --------------------------------------------------------------------------------------------------

    def visit_IfThenElse(self, stmt: IfThenElse) -> Run:
        condition = self.concrete(stmt.condition, self.visit(stmt.condition))
        then_case = self.visit(stmt.then_case)
        if stmt.else_case is None:

            def when() -> None:
                if condition():
                    then_case()

            return when
        else_case = self.visit(stmt.else_case)

        def choose() -> None:
            if condition():
                then_case()
            else:
                else_case()

        return choose

    def visit_While(self, stmt: While) -> Run:
        condition, body = self.concrete(stmt.condition, self.visit(stmt.condition)), self.visit(stmt.body)

        def run() -> None:
            while condition():
                body()

        return run

    def visit_For(self, stmt: For) -> Run:
        low = self.concrete(stmt.min, self.visit(stmt.min))
        extent = self.concrete(stmt.extent, self.visit(stmt.extent))
        slots = self.loop_slots(stmt)
        body = self.inside(stmt.loop_var, lambda: self.visit(stmt.body))
        return self.loop(stmt, low, extent, slots, body)

    def loop(self, stmt: For, low: Run, extent: Run, slots: Sequence[int], body: Run) -> Run:
        """A loop that runs its iterations one after the other."""
        frame = self.frame
        if len(slots) == 1:
            (slot,) = slots

            def run() -> None:
                begin = low()
                for value in range(begin, begin + extent()):
                    frame[slot] = value
                    body()

            return run

        def run_thread() -> None:
            begin = low()
            for value in range(begin, begin + extent()):
                for slot in slots:
                    frame[slot] = value
                body()

        return run_thread

    def loop_slots(self, stmt: For) -> list[int]:
        slots = [self.slot(stmt.loop_var)]
        self.numbers.loop(stmt.loop_var, stmt.min, stmt.extent)
        if stmt.thread_binding is not None and stmt.thread_binding.var is not stmt.loop_var:
            slots.append(self.slot(stmt.thread_binding.var))
            self.numbers.loop(stmt.thread_binding.var, stmt.min, stmt.extent)
        return slots

    # --- memory ---------------------------------------------------------------------------------------------------

    def new_memory(self, name: str, dtype: DataType, sizes: Sequence[Value]) -> Run:
        """What makes a pointer to fresh memory; sizes are numbers or closures."""
        element, lanes, check = dtype.element, dtype.lanes, self.check

        def make() -> Pointer:
            count = prod([size if isinstance(size, int) else size() for size in sizes]) * lanes
            try:
                return Pointer(Memory.allocate(count, element, check))
            except (MemoryError, OverflowError):  # the second: more bytes than a Python object may have
                raise _no_memory(name, count * element.nbytes) from None

        return make

    def constant_memory(self, name: str, dtype: DataType, data: object) -> Run:
        """What makes a pointer to memory that holds `data`."""
        array = np.array(values_of(data)).reshape(-1)
        array.flags.writeable = False
        pointer = Pointer(Memory.of_array(array))
        return lambda: pointer

    def visit_Allocate(self, stmt: Allocate) -> Run:
        sizes = [self.constant_or_run(extent) for extent in stmt.extents]
        start = self.allocation_of(stmt.buffer_var, self.new_memory(stmt.buffer_var.name, stmt.dtype, sizes))
        body = self.visit(stmt.body)

        def run() -> None:
            start()
            body()

        return run

    def allocation_of(self, data: Var, make: Run) -> Run:
        """What gives a pointer fresh memory, which `make` makes."""
        bind = self.pointer(data)
        return lambda: bind(make())

    def visit_AllocateConst(self, stmt: AllocateConst) -> Run:
        make = self.constant_memory(stmt.buffer_var.name, stmt.dtype, stmt.data)
        bind = self.pointer(stmt.buffer_var)
        body = self.visit(stmt.body)

        def run() -> None:
            bind(make())
            body()

        return run

    def visit_BufferRealize(self, stmt: BufferRealize) -> Run:
        allocate = self._allocation(stmt.buffer)
        body = self.visit(stmt.body)

        def run() -> None:
            allocate()
            body()

        return run

    def _allocation(self, buffer: Buffer) -> Run:
        """What gives `buffer` memory of its own."""
        sizes = [self.constant_or_run(size) for size in buffer.shape]
        if buffer.strides:
            last = buffer.elem_offset
            for size, stride in zip(buffer.shape, buffer.strides, strict=True):
                last = last + (size - 1) * stride
            sizes = [self.constant_or_run(last + 1)]
        return self.allocation_of(buffer.data, self.new_memory(buffer.name, buffer.dtype, sizes))

    # --- blocks ---------------------------------------------------------------------------------------------------

    def visit_Block(self, block: Block) -> Run:
        run: Run = self.visit(self.realized(block))
        return run

    def realized(self, block: Block) -> BlockRealize:
        """What a block without a realization means: it has no axes to bind, and runs always."""
        if block.iter_vars:
            raise NotBuilt("evaluation of a block without bindings for its axes", "bind them in a BlockRealize")
        return BlockRealize((), const(True), block)

    def visit_BlockRealize(self, stmt: BlockRealize) -> Run:
        holds, enter, body = self.compile_block(stmt, self.visit)

        def always() -> None:
            enter()
            body()

        def run() -> None:
            if holds():
                enter()
                body()

        predicate = stmt.predicate
        return always if isinstance(predicate, IntImm) and predicate.value else run

    def compile_block(self, stmt: BlockRealize, compile_body: Callable[[Stmt], Body]) -> tuple[Run, Run, Body]:
        """Whether the block runs, what its start does (axes, memory, sub-buffers, step hook), and its body."""
        block = stmt.block
        holds = self.concrete(stmt.predicate, self.visit(stmt.predicate))
        values = [self.concrete(value, self.visit(value)) for value in stmt.iter_values]
        domains = [self._domain(axis) for axis in block.iter_vars]
        slots = [self.slot(axis.var) for axis in block.iter_vars]
        for axis, bound in zip(block.iter_vars, stmt.iter_values, strict=True):
            self.numbers.let(axis.var, bound)
        outer, outside = self.scope, self.scope
        for axis, slot in zip(block.iter_vars, slots, strict=True):
            outside = Scope(axis.var, slot, outside)
        self.scope = outside
        starts = [self._allocation(buffer) for buffer in block.alloc_buffers]
        starts += [self._match(match) for match in block.match_buffers]
        body = compile_body(block.body)
        self.scope = outer
        frame, on_step = self.frame, self.on_step
        names = [axis.var.name for axis in block.iter_vars]
        steps = list(zip(slots, values, domains, names, strict=True))

        def enter() -> None:
            for slot, value, domain, name in steps:
                frame[slot] = now = value()
                if domain is not None and now not in (domain if type(domain) is range else domain()):
                    allowed = domain if isinstance(domain, range) else domain()
                    raise AxisOutsideDomain(block.name_hint, name, now, allowed, self.loops(outer), stmt)
            for start in starts:
                start()
            if on_step is not None:
                on_step(Step("block", stmt, self.loops(outside)))

        return holds, enter, body

    def _domain(self, axis: IterVar) -> range | Callable[[], range] | None:
        """The values the axis may have: a range, or a closure that gives it."""
        if not self.check or axis.dom is None:
            return None
        low, extent = self.constant_or_run(axis.dom.min), self.constant_or_run(axis.dom.extent)
        if isinstance(low, int) and isinstance(extent, int):
            return range(low, low + extent)
        begin = (lambda: low) if isinstance(low, int) else low
        count = (lambda: extent) if isinstance(extent, int) else extent
        return lambda: range(begin(), begin() + count())

    def _match(self, match: MatchBufferRegion) -> Run:
        """What makes a buffer stand for a region of another: memory, offset, strides and shape."""
        buffer, source = match.buffer, match.source.buffer
        begin = source.elem_offset
        source_strides = source.effective_strides()
        for span, stride in zip(match.source.region, source_strides, strict=True):
            begin = begin + span.min * stride
        offset, data = self.visit(begin), self.visit(source.data)
        rank = len(buffer.shape)
        kept = len(source_strides) - rank
        extents = [span.extent for span in match.source.region][kept:]
        checks = [self._bind_or_check(buffer, "extent", a, b) for a, b in zip(buffer.shape, extents, strict=True)]
        if buffer.strides:
            pairs = zip(buffer.strides, source_strides[kept:], strict=True)
            checks += [self._bind_or_check(buffer, "stride", a, b) for a, b in pairs]
        else:
            # A unit dimension's stride is never used.
            rows = zip(buffer.shape, buffer.effective_strides(), source_strides[kept:], strict=True)
            checks += [self._bind_or_check(buffer, "stride", a, b, size) for size, a, b in rows]
        bind = self.pointer(buffer.data)
        own: Run | None = None
        set_own: Callable[[Value], None] | None = None
        if self._binds(buffer.elem_offset):
            set_own = self.binder(buffer.elem_offset)  # type: ignore[arg-type]
        else:
            own = self.visit(buffer.elem_offset)
        dtype = source.dtype.element

        def run() -> None:
            for check in checks:
                check()
            if set_own is not None:
                set_own(offset())
                bind(data())
            else:
                assert own is not None
                bind(data().moved(offset() - own(), dtype))

        return run

    def _binds(self, declared: Expr) -> bool:
        """Whether a match_buffer gives the declared variable its value, rather than compare with it."""
        if isinstance(declared, Var) and (declared not in self.slots or declared in self.matched):
            self.matched.add(declared)
            return True
        return False

    def _bind_or_check(self, buffer: Buffer, what: str, declared: Expr, actual: Expr, size: Expr | None = None) -> Run:
        value, scope = self.visit(actual), self.scope
        if self._binds(declared):
            bind = self.binder(declared)  # type: ignore[arg-type]
            return lambda: bind(value())
        expected = self.visit(declared)
        extent = None if size is None else self.visit(size)

        def check() -> None:
            if expected() != value() and (extent is None or extent() > 1):
                problem = f"it declares {what} {expected()}, but the region has {what} {value()}"
                raise BadRegion(buffer, problem, self.loops(scope))

        return check


def _no_memory(name: str, size: int) -> WorkspaceExhausted:
    message = f"no memory for the intermediate buffer {name}, which has {size:,} bytes"
    return WorkspaceExhausted(SEPARATOR.join((message, "", "free memory, or tile the program")))


def values_of(data: object) -> np.ndarray:
    """The values of a constant: a numpy array, or a tensor that speaks DLPack."""
    if not isinstance(data, np.ndarray) and hasattr(data, "__dlpack__"):
        return np.from_dlpack(data)
    return np.asarray(data)
