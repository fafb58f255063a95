"""What a block reads and writes, when its author left that out.

Accesses are widened over the loops inside the block, and all accesses of one buffer are joined into one box, in the
order of first appearance; where they lie apart by an axis that is reduced over, the box covers all its values. What
cannot be bounded covers the whole dimension: a region may be too large, never too small. Access through raw pointers
cannot be bounded at all and is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from loopwright.arith import Analyzer, IntervalSet, hull_while_running, reduced_ranges
from loopwright.ir import (
    Add,
    Allocate,
    AllocateConst,
    AttrStmt,
    BinaryExpr,
    Block,
    BlockRealize,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Call,
    Cast,
    DeclBuffer,
    Expr,
    FloorDiv,
    FloorMod,
    For,
    IntImm,
    IterVar,
    Let,
    LetStmt,
    Max,
    Min,
    Mul,
    Node,
    Ramp,
    Range,
    Sub,
    Var,
    Visitor,
    any_node,
    const,
    deep,
    is_one,
    structural_equal,
    substitute,
)
from loopwright.ir.operators import cast, maximum, minimum
from loopwright.runtime.errors import SourceLine
from loopwright.script.parser.errors import OpaqueAccess


class Interval(NamedTuple):
    """The integers from `low` to `high`; one object twice for a single point."""

    low: Expr
    high: Expr


Box = list[Interval | None]  # None: the whole dimension


@deep
def infer_regions(block: Block, span: SourceLine) -> tuple[list[BufferRegion], list[BufferRegion]]:
    """The regions that `block` reads and writes, in terms of its own iteration variables."""
    result = _Accesses(block, span)
    if block.init is not None:
        result.visit(block.init)
    started = set(result.writes)  # a reduction's own output is not listed among what it reads
    result.visit(block.body)
    local = {*block.alloc_buffers, *result.declared}
    reads = [result.region(b, box) for b, box in result.reads.items() if b not in local and b not in started]
    writes = [result.region(b, box) for b, box in result.writes.items() if b not in local]
    return reads, writes


class _Accesses(Visitor):
    def __init__(self, block: Block, span: SourceLine) -> None:
        self.block = block
        self.span = span
        self.reads: dict[Buffer, Box] = {}
        self.writes: dict[Buffer, Box] = {}
        self.inner: dict[Var, Callable[[], Interval | None]] = {}  # variables that have no meaning outside the block
        self.allocated: set[Var] = {buffer.data for buffer in block.alloc_buffers}
        self.declared: set[Buffer] = set()
        self.matched = {match.buffer: match.source for match in block.match_buffers}
        self.arith = Analyzer()
        self.reduced = reduced_ranges(block.iter_vars)

    # --- the walk ---

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self._touch(self.reads, load.buffer, load.indices)
        self.visit_children(load)

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.visit(store.value)
        for index in store.indices:
            self.visit(index)
        self._touch(self.writes, store.buffer, store.indices)

    def visit_For(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        self._bind_range(loop.loop_var, loop.min, loop.extent)
        self.visit(loop.body)

    def visit_LetStmt(self, let: LetStmt | Let) -> None:
        self.visit(let.value)
        value = let.value
        self.inner[let.var] = lambda: self._interval(value)
        self.visit(let.body)

    visit_Let = visit_LetStmt

    def visit_AttrStmt(self, attr: AttrStmt) -> None:
        if isinstance(attr.node, IterVar) and attr.node.dom is not None:
            self._bind_range(attr.node.var, attr.node.dom.min, attr.node.dom.extent)
        self.visit_children(attr)

    def visit_Allocate(self, allocate: Allocate | AllocateConst) -> None:
        self.allocated.add(allocate.buffer_var)
        self.visit_children(allocate)

    visit_AllocateConst = visit_Allocate

    def visit_DeclBuffer(self, declared: DeclBuffer) -> None:
        if declared.buffer.data not in self.allocated:
            raise OpaqueAccess(self.block.name_hint, declared.buffer.data.name, self.span)
        self.declared.add(declared.buffer)
        self.visit(declared.body)

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        for value in realize.iter_values:
            self.visit(value)
        self.visit(realize.predicate)
        block = realize.block
        values = {axis.var: value for axis, value in zip(block.iter_vars, realize.iter_values, strict=True)}
        self._nested(block, values)

    def visit_Block(self, block: Block) -> None:
        for axis in block.iter_vars:
            assert axis.dom is not None
            self._bind_range(axis.var, axis.dom.min, axis.dom.extent)
        self._nested(block, {})

    def _nested(self, block: Block, values: dict[Var, Expr]) -> None:
        for kind, regions in ((self.reads, block.reads), (self.writes, block.writes)):
            for region in regions:
                self._touch_region(kind, substitute(region, values))

    def visit_Call(self, call: Call) -> None:
        if call.op.name == "tir.address_of" and isinstance(call.args[0], BufferLoad):
            raise OpaqueAccess(self.block.name_hint, f"to {call.args[0].buffer.name}", self.span)
        self.visit_children(call)

    def visit_Var(self, var: Var) -> None:
        if var.dtype == "handle" and var not in self.allocated and var not in self.inner:
            raise OpaqueAccess(self.block.name_hint, var.name, self.span)

    def _bind_range(self, var: Var, low: Expr, extent: Expr) -> None:
        def interval() -> Interval | None:
            first, last = self._interval(low), self._interval(low + extent - 1)
            return None if first is None or last is None else Interval(first.low, last.high)

        self.inner[var] = interval

    # --- boxes ---

    def _touch(self, kind: dict[Buffer, Box], buffer: Buffer, indices: tuple[Expr, ...]) -> None:
        if buffer in self.matched:
            self._touch_region(kind, self.matched[buffer])
            return
        self._join(kind, buffer, [self._interval(index) for index in indices])

    def _touch_region(self, kind: dict[Buffer, Box], region: BufferRegion) -> None:
        if region.buffer in self.matched:
            region = self.matched[region.buffer]
        box: Box = []
        for part in region.region:
            first = self._interval(part.min)
            last = first if is_one(part.extent) else self._interval(part.min + part.extent - 1)
            if first is None or last is None:
                box.append(None)
            else:
                box.append(first if last is first else Interval(first.low, last.high))
        self._join(kind, region.buffer, box)

    def _join(self, kind: dict[Buffer, Box], buffer: Buffer, box: Box) -> None:
        known = kind.get(buffer)
        kind[buffer] = box if known is None else [self._hull(a, b) for a, b in zip(known, box, strict=True)]

    def _hull(self, a: Interval | None, b: Interval | None) -> Interval | None:
        if a is None or b is None:
            return None
        low, high = self._pick(a.low, b.low, 1), self._pick(a.high, b.high, -1)
        if low is None or high is None:
            result = hull_while_running(IntervalSet(*a), IntervalSet(*b), self.reduced, self.arith)
            return None if result is None else Interval(*result)
        return a if low is a.low and high is a.high else Interval(low, high)

    def _pick(self, a: Expr, b: Expr, sign: int) -> Expr | None:
        """The lesser bound (the greater for sign -1), when the two differ by a constant."""
        if a is b or structural_equal(a, b):
            return a
        gap = self.arith.simplify(b - a)
        return (a if gap.value * sign >= 0 else b) if isinstance(gap, IntImm) else None

    def region(self, buffer: Buffer, box: Box) -> BufferRegion:
        """The box as a region of the buffer."""
        ranges = []
        for interval, extent in zip(box, buffer.shape, strict=True):
            if interval is None:
                ranges.append(Range.from_min_extent(const(0, extent.dtype), extent))
            elif interval.low is interval.high:
                ranges.append(Range.from_min_extent(interval.low, const(1, interval.low.dtype)))
            else:
                size = self.arith.simplify(interval.high - interval.low + 1)
                ranges.append(Range.from_min_extent(self.arith.simplify(interval.low), size))
        return BufferRegion(buffer, tuple(ranges))

    # --- intervals ---

    def _interval(self, index: Expr) -> Interval | None:
        """The values `index` takes over all iterations inside the block; None when it cannot be bounded."""
        if self._is_outer(index):
            return Interval(index, index)
        return self._inner_interval(index)

    def _is_outer(self, index: Expr) -> bool:
        """Whether the value is the same during the whole block, and says so without reading memory."""

        def is_inner(node: Node) -> bool:
            return isinstance(node, (BufferLoad, Ramp, Broadcast)) or (isinstance(node, Var) and node in self.inner)

        return not any_node(index, is_inner)

    def _inner_interval(self, index: object) -> Interval | None:
        if isinstance(index, IntImm):
            return Interval(index, index)
        if isinstance(index, Var):
            return self.inner[index]() if index in self.inner else Interval(index, index)
        if isinstance(index, Broadcast):
            return self._inner_interval(index.value)
        if isinstance(index, Ramp):
            base = self._inner_interval(index.base)
            if base is None or not isinstance(index.stride, IntImm):
                return None
            reach = index.stride.value * (index.lanes - 1)
            return Interval(base.low, base.high + reach) if reach >= 0 else Interval(base.low + reach, base.high)
        if isinstance(index, Cast) and index.dtype.is_int and index.value.dtype.is_int:
            value = self._inner_interval(index.value)
            return None if value is None else Interval(cast(value.low, index.dtype), cast(value.high, index.dtype))
        if isinstance(index, (Add, Sub, Mul, FloorDiv, FloorMod, Min, Max)):
            return self._of_binary(index)
        return None

    def _of_binary(self, index: BinaryExpr) -> Interval | None:
        a, b = self._inner_interval(index.a), self._inner_interval(index.b)
        if isinstance(index, FloorMod) and isinstance(index.b, IntImm) and index.b.value > 0:
            return Interval(const(0, index.dtype), const(index.b.value - 1, index.dtype))
        if a is None or b is None:
            return None
        if isinstance(index, Add):
            return Interval(a.low + b.low, a.high + b.high)
        if isinstance(index, Sub):
            return Interval(a.low - b.high, a.high - b.low)
        if isinstance(index, Min):
            return Interval(minimum(a.low, b.low), minimum(a.high, b.high))
        if isinstance(index, Max):
            return Interval(maximum(a.low, b.low), maximum(a.high, b.high))
        if isinstance(index, Mul):
            if isinstance(index.a, IntImm):
                a, b = b, a
            if not isinstance(b.low, IntImm) or b.low is not b.high:
                return None
            bounds = a.low * b.low, a.high * b.low
            return Interval(*bounds) if b.low.value >= 0 else Interval(bounds[1], bounds[0])
        if isinstance(index, FloorDiv) and isinstance(index.b, IntImm) and index.b.value > 0:
            return Interval(a.low // index.b, a.high // index.b)
        return None
