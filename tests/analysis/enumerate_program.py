"""Every iteration of a small program, one by one: the oracle for the analysis."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from loopwright import ir
from loopwright.ir import ForKind

_ARITHMETIC = {
    ir.Add: lambda a, b: a + b,
    ir.Sub: lambda a, b: a - b,
    ir.Mul: lambda a, b: a * b,
    ir.FloorDiv: lambda a, b: a // b,
    ir.FloorMod: lambda a, b: a % b,
    ir.Div: lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    ir.Mod: lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
    ir.Min: min,
    ir.Max: max,
    ir.LT: lambda a, b: a < b,
    ir.LE: lambda a, b: a <= b,
    ir.GT: lambda a, b: a > b,
    ir.GE: lambda a, b: a >= b,
    ir.EQ: lambda a, b: a == b,
    ir.NE: lambda a, b: a != b,
}


@dataclass
class Found:
    """What went wrong: (buffer, indices, loop values) for single accesses, (loop, buffer, indices) for meetings.

    `carried`: (loop, buffer) where an iteration reads what another one wrote, or where others than this loop look.
    """

    outside: set = field(default_factory=set)
    early: set = field(default_factory=set)
    meetings: set = field(default_factory=set)
    carried: set = field(default_factory=set)

    @property
    def races(self) -> set:
        """Meetings in memory that cannot be that of each iteration alone."""
        return {(loop, buffer, at) for loop, buffer, at in self.meetings if (loop, buffer) in self.carried}


def _uses(root: ir.Stmt) -> Counter[ir.Buffer]:
    found: Counter[ir.Buffer] = Counter()

    def look(node: ir.Node) -> None:
        if isinstance(node, (ir.BufferLoad, ir.BufferStore)):
            found[node.buffer] += 1

    ir.pre_order_visit(root, look)
    return found


class Enumerate:
    """Runs a function on no data at all: only sizes, indices and conditions matter."""

    def __init__(self, function: ir.PrimFunc, sizes: dict[ir.Var, int] | None = None) -> None:
        self.values: dict[ir.Var, int] = dict(sizes or {})
        self.arguments = set(function.buffer_map.values())
        self.found = Found()
        self.homes: dict[ir.Buffer, tuple] = {}
        self.written: dict = {}  # cell → the iteration that wrote it last
        self.loops: list[ir.For] = []
        self.touched: dict[ir.For, dict] = {}  # running parallel loop → cell → iterations that read and wrote it
        self.statement(function.body)
        self.used_outside(function.body)

    def used_outside(self, root: ir.Stmt) -> None:
        """A buffer of the caller, or one that is used beside a parallel loop, is one for all its iterations."""
        uses = _uses(root)

        def look(node: ir.Node) -> None:
            if isinstance(node, ir.For) and node.kind is ForKind.PARALLEL:
                own = _uses(node.body)
                for buffer in own:
                    if buffer in self.arguments or uses[buffer] > own[buffer]:
                        self.found.carried.add((node.loop_var.name, buffer.name))

        ir.pre_order_visit(root, look)

    def statement(self, s: ir.Stmt) -> None:
        if isinstance(s, ir.SeqStmt):
            for item in s.seq:
                self.statement(item)
        elif isinstance(s, ir.For):
            self.loop(s)
        elif isinstance(s, ir.IfThenElse):
            if self.value(s.condition):
                self.statement(s.then_case)
            elif s.else_case is not None:
                self.statement(s.else_case)
        elif isinstance(s, ir.BlockRealize):
            for axis, value in zip(s.block.iter_vars, s.iter_values):
                self.values[axis.var] = self.value(value)
            for buffer in s.block.alloc_buffers:
                self.homes[buffer] = self.iteration()
            if self.value(s.predicate):
                assert s.block.init is None
                self.statement(s.block.body)
        elif isinstance(s, ir.BufferStore):
            self.value(s.value)
            self.access(s.buffer, [self.value(index) for index in s.indices], True)
        else:
            assert isinstance(s, ir.Evaluate)

    def iteration(self) -> tuple:
        return tuple((loop.loop_var.name, self.values[loop.loop_var]) for loop in self.loops)

    def loop(self, s: ir.For) -> None:
        low, extent = self.value(s.min), self.value(s.extent)
        self.loops.append(s)
        if s.kind is ForKind.PARALLEL:
            self.touched[s] = {}
        for k in range(low, low + extent):
            self.values[s.loop_var] = k
            self.statement(s.body)
        for cell, seen in self.touched.pop(s, {}).items():
            if any(a != b and "w" in seen[a] | seen[b] for a in seen for b in seen):
                self.found.meetings.add((s.loop_var.name, cell[0].name, cell[2]))
        self.loops.pop()

    def access(self, buffer: ir.Buffer, indices: list[int], writes: bool) -> None:
        shape = [self.value(extent) for extent in buffer.shape]
        at = tuple(indices)
        exists = all(0 <= index < size for index, size in zip(indices, shape))
        if not exists:
            self.found.outside.add((buffer.name, at, self.iteration()))
        home = self.homes.get(buffer, ())
        cell = (buffer, home, at)
        for loop, cells in self.touched.items():
            if loop.loop_var.name not in dict(home):
                seen = cells.setdefault(cell, {}).setdefault(self.values[loop.loop_var], set())
                seen.add("w" if writes else "r")
        now = self.iteration()
        for depth, loop in enumerate(self.loops):
            if not writes and self.written.get(cell, now)[: depth + 1] != now[: depth + 1]:
                self.found.carried.add((loop.loop_var.name, buffer.name))
        if writes:
            self.written[cell] = now
        elif exists and buffer not in self.arguments and cell not in self.written:
            self.found.early.add((buffer.name, at, self.iteration()))

    def value(self, e: ir.Expr) -> int:
        if isinstance(e, ir.IntImm):
            return e.value
        if isinstance(e, ir.FloatImm):
            return 0
        if isinstance(e, ir.Var):
            return self.values[e]
        if isinstance(e, ir.BufferLoad):
            self.access(e.buffer, [self.value(index) for index in e.indices], False)
            return 0
        if isinstance(e, ir.Call) and e.op.name == "tir.if_then_else":
            return self.value(e.args[1] if self.value(e.args[0]) else e.args[2])
        if isinstance(e, ir.And):
            return bool(self.value(e.a) and self.value(e.b))
        if isinstance(e, ir.Or):
            return bool(self.value(e.a) or self.value(e.b))
        if isinstance(e, ir.Not):
            return not self.value(e.a)
        return _ARITHMETIC[type(e)](self.value(e.a), self.value(e.b))
