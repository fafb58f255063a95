"""Vectorized loops before they are vectors: all lanes run each statement together.

A store happens once every lane has made its loads; under a condition only the lanes where it holds go on. What is
bound inside the loop lives in slots of its own at the end of the frame, so a lane is a copy of those slots.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright.analysis.vector_loops import runs_in_lockstep
from loopwright.evaluator.locations import Run
from loopwright.evaluator.statements import OnStep, StatementCompiler
from loopwright.evaluator.values import Value
from loopwright.ir import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)

Lanes = list[list[Value]]
InLockstep = Callable[[Lanes], None]


class LockstepCompiler(StatementCompiler):
    """Compiles statements, vectorized loops included."""

    def __init__(self, check: bool, on_step: OnStep | None = None) -> None:
        super().__init__(check, on_step)
        self.lanes_from = 0  # the first slot that lanes keep for themselves

    def visit_For(self, stmt: For) -> Run:
        if self.in_lockstep or not runs_in_lockstep(stmt):
            return super().visit_For(stmt)
        low = self.concrete(stmt.min, self.visit(stmt.min))
        extent = self.concrete(stmt.extent, self.visit(stmt.extent))
        return self._vectorized(stmt, low, extent)

    def _vectorized(self, stmt: For, low: Run, extent: Run) -> Run:
        frame, first = self.frame, len(self.frame)
        self.in_lockstep, self.lanes_from = True, first
        (slot, *_) = self.loop_slots(stmt)
        body: InLockstep = self.inside(stmt.loop_var, lambda: self.lockstep(stmt.body))
        self.in_lockstep = False

        def run() -> None:
            begin = low()
            lanes = []
            for value in range(begin, begin + extent()):
                frame[slot] = value
                lanes.append(frame[first:])
            body(lanes)

        return run

    def lockstep(self, stmt: Stmt) -> InLockstep:
        """The statement as a function of the lanes that run it."""
        compiled: InLockstep = getattr(self, _LOCKSTEP.get(type(stmt), "each_lane"))(stmt)
        return compiled

    def _in_lane(self, run: Run) -> Callable[[list[Value]], Value]:
        """Run something as one lane, which keeps what it binds."""
        frame, first = self.frame, self.lanes_from

        def as_lane(lane: list[Value]) -> Value:
            frame[first:] = lane
            result = run()
            lane[:] = frame[first:]
            return result

        return as_lane

    def each_lane(self, stmt: Stmt) -> InLockstep:
        run = self._in_lane(self.visit(stmt))

        def each(lanes: Lanes) -> None:
            for lane in lanes:
                run(lane)

        return each

    def lockstep_seq(self, stmt: SeqStmt) -> InLockstep:
        parts = [self.lockstep(part) for part in stmt.seq]

        def run(lanes: Lanes) -> None:
            for part in parts:
                part(lanes)

        return run

    def lockstep_store(self, stmt: BufferStore) -> InLockstep:
        store = self.compile_store(stmt)
        prepare = self._in_lane(store.prepare)
        frame, first = self.frame, self.lanes_from

        def run(lanes: Lanes) -> None:
            ready = [prepare(lane) for lane in lanes]
            for lane, item in zip(lanes, ready, strict=True):
                frame[first:] = lane  # the memory a lane writes may be its own
                store.commit(item)

        return run

    def lockstep_if(self, stmt: IfThenElse) -> InLockstep:
        condition = self._in_lane(self.concrete(stmt.condition, self.visit(stmt.condition)))
        then_case = self.lockstep(stmt.then_case)
        else_case = None if stmt.else_case is None else self.lockstep(stmt.else_case)

        def run(lanes: Lanes) -> None:
            chosen = [bool(condition(lane)) for lane in lanes]
            then_case([lane for lane, holds in zip(lanes, chosen, strict=True) if holds])
            if else_case is not None:
                else_case([lane for lane, holds in zip(lanes, chosen, strict=True) if not holds])

        return run

    def lockstep_for(self, stmt: For) -> InLockstep:
        low = self._in_lane(self.concrete(stmt.min, self.visit(stmt.min)))
        extent = self._in_lane(self.concrete(stmt.extent, self.visit(stmt.extent)))
        slots = [slot - self.lanes_from for slot in self.loop_slots(stmt)]
        body: InLockstep = self.inside(stmt.loop_var, lambda: self.lockstep(stmt.body))

        def run(lanes: Lanes) -> None:
            bounds = [(low(lane), extent(lane)) for lane in lanes]
            for k in range(max([count for _, count in bounds], default=0)):
                active = []
                for lane, (begin, count) in zip(lanes, bounds, strict=True):
                    if k < count:
                        for slot in slots:
                            lane[slot] = begin + k
                        active.append(lane)
                body(active)

        return run

    def lockstep_while(self, stmt: While) -> InLockstep:
        condition = self._in_lane(self.concrete(stmt.condition, self.visit(stmt.condition)))
        body = self.lockstep(stmt.body)

        def run(lanes: Lanes) -> None:
            active = [lane for lane in lanes if condition(lane)]
            while active:
                body(active)
                active = [lane for lane in active if condition(lane)]

        return run

    def lockstep_after(self, start: Run, body: Stmt) -> InLockstep:
        """Something every lane does first, then the body in lockstep."""
        first, rest = self._in_lane(start), self.lockstep(body)

        def run(lanes: Lanes) -> None:
            for lane in lanes:
                first(lane)
            rest(lanes)

        return run

    def lockstep_let(self, stmt: LetStmt) -> InLockstep:
        value, bind = self.visit(stmt.value), self.binder(stmt.var)
        self.numbers.let(stmt.var, stmt.value)
        return self.lockstep_after(lambda: bind(value()), stmt.body)

    def lockstep_allocate(self, stmt: Allocate | AllocateConst) -> InLockstep:
        if isinstance(stmt, AllocateConst):
            make = self.constant_memory(stmt.buffer_var.name, stmt.dtype, stmt.data)
        else:
            sizes = [self.constant_or_run(extent) for extent in stmt.extents]
            make = self.new_memory(stmt.buffer_var.name, stmt.dtype, sizes)
        bind = self.pointer(stmt.buffer_var)
        return self.lockstep_after(lambda: bind(make()), stmt.body)

    def lockstep_realize(self, stmt: BufferRealize) -> InLockstep:
        return self.lockstep_after(self._allocation(stmt.buffer), stmt.body)

    def lockstep_assert(self, stmt: AssertStmt) -> InLockstep:
        return self.lockstep_after(self.assertion(stmt), stmt.body)

    def lockstep_body(self, stmt: AttrStmt | DeclBuffer) -> InLockstep:
        return self.lockstep(stmt.body)

    def lockstep_bare_block(self, block: Block) -> InLockstep:
        return self.lockstep(self.realized(block))

    def lockstep_block(self, stmt: BlockRealize) -> InLockstep:
        holds, enter, body = self.compile_block(stmt, self.lockstep)
        test, start = self._in_lane(holds), self._in_lane(enter)

        def run(lanes: Lanes) -> None:
            active = [lane for lane in lanes if test(lane)]
            for lane in active:
                start(lane)
            body(active)

        return run


_LOCKSTEP: Final[dict[type[Stmt], str]] = {
    SeqStmt: "lockstep_seq",
    BufferStore: "lockstep_store",
    IfThenElse: "lockstep_if",
    For: "lockstep_for",
    While: "lockstep_while",
    LetStmt: "lockstep_let",
    Allocate: "lockstep_allocate",
    AllocateConst: "lockstep_allocate",
    BufferRealize: "lockstep_realize",
    AssertStmt: "lockstep_assert",
    AttrStmt: "lockstep_body",
    DeclBuffer: "lockstep_body",
    Block: "lockstep_bare_block",
    BlockRealize: "lockstep_block",
}
