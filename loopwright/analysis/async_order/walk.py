"""Walk: the events of one block of a kernel, for given values of its sizes and scalars.

The text is run once, for all threads together: a condition splits them, a loop goes as often as the threads that go
most often. Only integers are computed that decide what happens: iterations, conditions, slots, parities. What else a
statement computes is left away, and its accesses are footprints.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from loopwright.analysis.async_order.block import Block
from loopwright.analysis.async_order.calls import Calls
from loopwright.analysis.async_order.events import Event, Mask, NotKnown, Touch, Trace
from loopwright.analysis.async_order.footprints import Footprint, Site, TooLarge
from loopwright.analysis.async_order.kernels import (
    COPIES,
    SYNCHRONISES,
    AsyncKernel,
    Memory,
    block_axes,
    variable_of,
)
from loopwright.analysis.async_order.sites import Plain, plain, reads_of
from loopwright.analysis.async_order.values import Env, Value, is_counter
from loopwright.analysis.warp_roles import role_of
from loopwright.ir import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferStore,
    Call,
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
    any_node,
    collect,
)

MOST_EVENTS: Final = 1200  # of a role


class _Cut(Exception):
    """Enough has been seen of some threads."""


class Walk(Block):
    """Collects the events of a block; what one `before` has seen of the text need not be looked at again."""

    def __init__(
        self, kernel: AsyncKernel, memory: Memory, values: dict[Var, int], block: dict[Var, int], before: Walk | None
    ) -> None:
        env = Env(before.env if before is not None else None)
        env.vars.update(values)
        env.vars.update(block)
        super().__init__(kernel, memory, env)
        self.loops: list[tuple[str, int]] = []
        self.begin = 0  # of the events of a role
        self.depth = 0  # of conditions that split threads
        self.owners: dict[Var, Mask] = {}  # of counters
        self.plains: dict[Node, Plain] = before.plains if before is not None else {}
        self.known: dict[tuple[object, ...], tuple[Touch, ...]] = {}
        self.has_events: dict[Node, bool] = before.has_events if before is not None else {}
        self.calls = Calls(self, self.reads)

    def trace(self) -> Trace:
        """All that happens."""
        for let in self.kernel.lets:
            if let.var not in self.kernel.maps:
                self.env.vars[let.var] = self.env.value(let.value)
        for axis in block_axes(self.kernel):
            self.env.vars.setdefault(variable_of(axis), 0)
        with np.errstate(all="ignore"):
            try:
                self.visit(self.kernel.body, self.everyone)
            except _Cut:
                self.leave(self.everyone)
        return Trace(self.threads, self.events, self.cut, list(self.doubts))

    # --- statements -------------------------------------------------------------------------------------------------

    def visit(self, statement: Stmt, mask: Mask) -> None:
        """The events of the statement, which the threads of the mask run."""
        if isinstance(statement, SeqStmt):
            for part in statement.seq:
                self.visit(part, mask)
        elif isinstance(statement, BufferStore) and is_counter(statement.buffer) and len(statement.indices) == 1:
            self.count(statement, mask)
        elif not self.synchronises(statement) and not isinstance(statement, (Allocate, DeclBuffer, AttrStmt)):
            self.touch(statement, self._plain(statement), mask)
        elif isinstance(statement, Evaluate):
            assert isinstance(statement.value, Call)
            self.calls.call(statement, statement.value, mask)
        elif isinstance(statement, For):
            self.loop(statement, mask)
        elif isinstance(statement, IfThenElse):
            self.choice(statement, mask)
        elif isinstance(statement, LetStmt):
            self.touch(statement, self._reads(statement.value, statement), mask)
            self.env.vars[statement.var] = self.env.value(statement.value)
            self.visit(statement.body, mask)
        elif isinstance(statement, AttrStmt):
            role = role_of(statement)
            outer, self.role = self.role, self.role if role is None else role.name
            self.visit(statement.body, mask)
            self.role = outer
        elif isinstance(statement, (Allocate, DeclBuffer)):
            data = statement.buffer_var if isinstance(statement, Allocate) else statement.buffer.data
            self.owners.setdefault(data, mask)
            self.visit(statement.body, mask)
        elif isinstance(statement, AssertStmt):
            self.visit(statement.body, mask)
        else:
            raise NotKnown(f"a {type(statement).__name__} has synchronisation in it")

    def synchronises(self, statement: Stmt) -> bool:
        """Whether threads wait, or tell others something, inside the statement."""
        result = self.has_events.get(statement)
        if result is None:
            result = self.has_events[statement] = any_node(
                statement, lambda node: isinstance(node, Call) and node.op.name in SYNCHRONISES
            )
        return result

    def count(self, store: BufferStore, mask: Mask) -> None:
        """A thread counts in its own memory."""
        self.touch(store, self._plain(store), mask)
        data, at = store.buffer.data, self.env.value(store.indices[0])
        cells = self.env.cells.setdefault(data, {})
        if not isinstance(at, int):
            cells.clear()
            return
        value, owner = self.env.value(store.value), self.owners.get(data)
        old = cells.get(at)
        if owner is mask:
            cells[at] = value
        elif value is None or old is None:  # what other threads have there, they do not look at before they store to it
            cells[at] = value if old is None else None
        else:
            cells[at] = np.where(mask.bits, value, old)

    def loop(self, loop: For, mask: Mask) -> None:
        self.touch(loop, self._reads(loop.extent, loop), mask)
        low = self.number(loop.min, f"the first iteration of loop {loop.loop_var.name}")
        extent = self.number(loop.extent, f"the number of iterations of loop {loop.loop_var.name}")
        most = int(np.max(extent[mask.bits])) if isinstance(extent, np.ndarray) else extent
        for k in range(most):
            if len(self.events) - self.begin > MOST_EVENTS:
                raise _Cut
            inside = self.mask(mask.bits & (extent > k)) if isinstance(extent, np.ndarray) else mask
            self.env.vars[loop.loop_var] = low + k
            self.loops.append((loop.loop_var.name, low + k if isinstance(low, int) else k))
            self.where = tuple(self.loops)
            try:
                self.visit(loop.body, inside)
            finally:
                self.loops.pop()
                self.where = tuple(self.loops)

    def choice(self, choice: IfThenElse, mask: Mask) -> None:
        self.touch(choice, self._reads(choice.condition, choice), mask)
        condition = self.env.value(choice.condition)
        if condition is None and self.only_copies(choice):
            self.maybe(choice, mask)
            return
        condition = self.number(choice.condition, "a condition around synchronisation")
        if not isinstance(condition, np.ndarray):
            case = choice.then_case if condition else choice.else_case
            if case is not None:
                self.visit(case, mask)
            return
        for bits, case in ((mask.bits & condition, choice.then_case), (mask.bits & ~condition, choice.else_case)):
            if case is not None and bits.any():
                self.part(case, self.mask(bits))

    def only_copies(self, choice: IfThenElse) -> bool:
        """Whether threads do nothing but begin copies under a condition, which is the same for all of them."""
        if choice.else_case is not None or any_node(choice.condition, self.thread_variables.__contains__):
            return False
        names = {call.op.name for call in collect(choice.then_case, Call) if call.op.name in SYNCHRONISES}
        return names <= COPIES

    def maybe(self, choice: IfThenElse, mask: Mask) -> None:
        """Copies that may happen: they have to be in order, and nobody relies on them."""
        before, self.is_certain = self.is_certain, False
        self.visit(choice.then_case, mask)
        self.is_certain = before

    def part(self, case: Stmt, mask: Mask) -> None:
        """What some threads do."""
        if self.has_cut and not (mask.bits & ~self.cut).any():
            return
        self.depth += 1
        if self.depth == 1:
            self.begin = len(self.events)
        try:
            self.visit(case, mask)
        except _Cut:
            if self.depth > 1:
                raise
            self.leave(mask)
        finally:
            self.depth -= 1
            if self.depth == 0:
                self.begin = len(self.events)

    # --- accesses ---------------------------------------------------------------------------------------------------

    def _plain(self, statement: Stmt) -> Plain:
        result = self.plains.get(statement)
        if result is None:
            result = self.plains[statement] = plain(statement, self.tracked)
        return result

    def _reads(self, expr: Expr, statement: Stmt) -> Plain:
        result = self.plains.get(expr)
        if result is None:
            result = self.plains[expr] = reads_of(expr, statement, self.tracked)
        return result

    def reads(self, expr: Expr, statement: Stmt, mask: Mask) -> None:
        """The threads compute an expression."""
        if not isinstance(expr, (IntImm, Var)):
            self.touch(statement, self._reads(expr, statement), mask)

    def touch(self, statement: Stmt, what: Plain, mask: Mask) -> None:
        """The threads run a statement without synchronisation."""
        if what.sites:
            touches = self._touches(what, mask)
            if touches:
                self.emit(Event("touch", mask, self.where, statement, touches))
        for data in what.changed:
            if data in self.env.cells and not isinstance(statement, BufferStore):
                self.env.cells[data].clear()
        for buffer in what.escapes:
            self.doubts[f"a call gets the address of {buffer.name}"] = None

    def _touches(self, what: Plain, mask: Mask) -> tuple[Touch, ...]:
        env = self.env
        values = [_key(env.vars.get(var)) for var in what.free if var not in self.thread_variables]
        counted = [(at, _key(value)) for data in what.counters for at, value in env.cells.get(data, {}).items()]
        # Statements may share nodes: it takes all of the sites to tell one from another.
        key = (what.sites, mask.number, self.is_certain, tuple(values), tuple(counted))
        result = self.known.get(key)
        if result is None:
            found = [(self.footprint(site, mask), site) for site in what.sites]
            result = tuple([Touch(item, site.is_write, site.node) for item, site in found if item is not None])
            self.known[key] = result
        return result

    def footprint(self, site: Site, mask: Mask) -> Footprint | None:
        """What the threads touch by an access."""
        try:
            result = self.footprints.of_site(site, mask.bits, site.buffer.data in self.memory.shared)
            if result is not None and not self.is_certain:
                result.is_exact = False
            return result
        except TooLarge as error:
            self.doubts[str(error)] = None
            return None


def _key(value: Value) -> object:
    return value.tobytes() if isinstance(value, np.ndarray) else value
