"""compact_buffers: an allocation shrinks to the part of it that is used where it lives.

    for i in range(8):                                  →    for i in range(8):
        B_data = T.allocate([64], "float32", "global")           B_data = T.allocate([8], "float32", "global")
        B = T.decl_buffer((64,), data=B_data)                    B = T.decl_buffer((8,), data=B_data)
        for j in range(8):                                       for j in range(8):
            B[i * 8 + j] = A[i * 8 + j]                              B[j] = A[i * 8 + j]

A dimension shrinks when the indices used inside the allocation's scope span a number of cells that is known here and
less than the whole; indices then count from the first one used. A guard `i * 8 + j < 20` around an access of
`B[n + i * 8 + j]` bounds its index. What data decides (an index that is loaded) and what
leaves our sight (a pointer that is handed on) keeps its whole extent. A buffer with strides of its own keeps them;
where blocks asked for alignment (`buffer_dim_align`, which `write_allocations` notes at the allocation), the strides
of the new shape honour it.

Needs: no blocks.  Leaves: no `buffer_dim_align`.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from contextlib import ExitStack
from typing import Final, NamedTuple

from loopwright.analysis.thread_axes import axis_of, is_shared_along, scope_of, tag_of
from loopwright.arith import Analyzer, interval_of
from loopwright.ir import (
    GE,
    LE,
    LT,
    Allocate,
    And,
    AttrStmt,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    DeclBuffer,
    Expr,
    For,
    IfThenElse,
    IntImm,
    Let,
    LetStmt,
    Prefetch,
    PrimFunc,
    Ramp,
    Range,
    Rewriter,
    Stmt,
    Var,
    Visitor,
    const,
    deep,
    structural_equal,
    uses_var,
)
from loopwright.ir.attributes import python_value
from loopwright.ir.node import rewrite_tuple
from loopwright.ir.passes import function_pass
from loopwright.ir.visitor import variables_in
from loopwright.transform.errors import BlockNotLowered
from loopwright.transform.parts.flat_index import is_literal, sub_index
from loopwright.transform.parts.known_ops import ADDRESS_OF, LIKELY, PREFETCH
from loopwright.transform.parts.purity import has_data
from loopwright.transform.passes.write_allocations import ALIGN_KEY, allocated_size, strides_for

LARGE: Final = 1 << 16  # a variable that may be so large counts as one that nothing bounds
UNKNOWN_HIGH: Final = (1 << 31) - 1  # what the bound of a 32-bit index is when nothing is known


class Span(NamedTuple):
    """The indices from `low` to `high`, both included."""

    low: Expr
    high: Expr


class Compact(NamedTuple):
    """The buffer that takes the place of an old one, and the index of the old one that is its first, each dimension."""

    old: Buffer
    buffer: Buffer
    first: tuple[Expr, ...]


class Use:
    """How one allocation is used: the hull of the indices of each dimension (None: all of it), as far as seen."""

    def __init__(self, depth: int) -> None:
        self.depth = depth  # of loops around the allocation
        self.sharing: list[tuple[Var, Range]] = []  # those among them whose threads share the memory
        self.buffer: Buffer | None = None
        self.is_plain = True  # one buffer without offset, used by loads and stores alone
        self.spans: list[Span | None] = []
        self.hidden: list[Var] = []  # variables bound inside, other than loops


class CollectUses(Visitor):
    """Finds what of each allocation is used, and what takes its place."""

    def __init__(self) -> None:
        self.facts = Analyzer()
        self.loops: list[tuple[Var, Range]] = []
        self.tags: dict[Var, str] = {}  # of those around that run threads
        self.lets: list[Var] = []
        self.guards: list[LT | LE] = []  # which hold here
        self.narrowed: dict[Var, Range] = {}  # the threads of the role
        self.uses: dict[Var, Use] = {}  # by memory
        self.found: dict[Var, Compact] = {}
        self.has_notes = False  # on allocations, to be removed

    # -- what is around

    def visit_For(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        domain = Range.from_min_extent(loop.min, loop.extent)
        self._loop(loop.loop_var, domain, tag_of(loop), loop.body)

    def visit_AttrStmt(self, node: AttrStmt) -> None:
        self.visit(node.value)
        if tag_of(node):
            axis = axis_of(node)
            domain = Range.from_min_extent(const(0, axis.var.dtype), axis.extent)
            self._loop(axis.var, domain, axis.tag, node.body)
        else:
            self.visit(node.body)

    def _loop(self, var: Var, domain: Range, tag: str, body: Stmt) -> None:
        if tag:
            self.tags[var] = tag
        self.loops.append((var, domain))
        with self.facts.bound(var, domain):
            self.visit(body)
        self.loops.pop()

    def visit_IfThenElse(self, node: IfThenElse) -> None:
        self.visit(node.condition)
        before, around = len(self.guards), self.narrowed
        parts = _parts(node.condition)
        self.guards += [part for part in parts if isinstance(part, (LT, LE)) and not has_data(part)]
        self.narrowed = around | self._narrowed(parts)
        self.visit(node.then_case)
        del self.guards[before:]
        self.narrowed = around
        if node.else_case is not None:
            self.visit(node.else_case)

    def _narrowed(self, conditions: Sequence[Expr]) -> dict[Var, Range]:
        """The threads for which conditions such as `32 <= tx` and `tx < 96` hold: those of a role."""
        result: dict[Var, Range] = {}
        domains = dict(self.loops) | self.narrowed
        for condition in conditions:
            if not isinstance(condition, (LT, GE)) or not isinstance(condition.b, IntImm):
                continue
            var, number = condition.a, condition.b
            domain = result.get(var, domains.get(var)) if isinstance(var, Var) and var in self.tags else None
            if not isinstance(var, Var) or domain is None or not isinstance(domain.min, IntImm):
                continue
            end = domain.min + domain.extent
            if not isinstance(end, IntImm):
                continue
            low = max(domain.min.value, number.value) if isinstance(condition, GE) else domain.min.value
            high = min(end.value, number.value) if isinstance(condition, LT) else end.value
            result[var] = Range.from_min_extent(const(low, var.dtype), const(max(0, high - low), var.dtype))
        return result

    def _let(self, let: LetStmt | Let) -> None:
        self.visit(let.value)
        self.lets.append(let.var)
        self.visit(let.body)
        self.lets.pop()

    visit_LetStmt = visit_Let = _let

    def visit_Allocate(self, node: Allocate) -> None:
        use = Use(len(self.loops))
        use.hidden = list(self.lets)
        scope = scope_of(node.buffer_var)
        use.sharing = [loop for loop in self.loops if is_shared_along(scope, self.tags.get(loop[0], ""))]
        self.uses[node.buffer_var] = use
        self.visit(node.body)
        if use.buffer is not None and use.buffer.dtype is not node.dtype:
            use.is_plain = False  # its extents count other elements than the allocation's
        aligned = python_value(node.annotations.get(ALIGN_KEY))
        self.has_notes = self.has_notes or ALIGN_KEY in node.annotations
        if use.is_plain and (aligned or any(span is not None for span in use.spans)):
            compact = self.compacted(use, aligned)
            if compact is not None:
                self.found[node.buffer_var] = compact

    def visit_DeclBuffer(self, node: DeclBuffer) -> None:
        use = self.uses.get(node.buffer.data)
        if use is not None:
            if use.buffer is None and is_literal(node.buffer.elem_offset, 0):
                use.buffer = node.buffer
            else:
                use.is_plain = False  # a second view, or a part
        self.visit(node.body)

    def visit_Block(self, block: Block) -> None:
        raise BlockNotLowered("compact_buffers", block)

    # -- what is used

    def visit_Var(self, var: Var) -> None:
        if var in self.uses:
            self.uses[var].is_plain = False  # a bare pointer

    def visit_Buffer(self, buffer: Buffer) -> None:
        """Met on its own: nothing is known of how it is used."""
        if buffer.data in self.uses:
            self.uses[buffer.data].is_plain = False

    def visit_Call(self, call: Call) -> None:
        if call.op is PREFETCH and isinstance(call.args[0], Call) and call.args[0].op is ADDRESS_OF:
            # A hint may point past the end: it neither needs the memory nor keeps it from moving.
            load = call.args[0].args[0]
            if isinstance(load, BufferLoad):
                for index in load.indices:
                    self.visit(index)
                return
        if call.op is ADDRESS_OF and isinstance(call.args[0], BufferLoad):
            self.visit_Buffer(call.args[0].buffer)
        self.visit_children(call)

    def visit_Prefetch(self, node: Prefetch) -> None:
        pass

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self._access(load.buffer, load.indices)

    def visit_BufferStore(self, store: BufferStore) -> None:
        self._access(store.buffer, store.indices)
        self.visit(store.value)

    def _access(self, buffer: Buffer, indices: Sequence[Expr]) -> None:
        for index in indices:
            self.visit(index)
        use = self.uses.get(buffer.data)
        if use is None or not use.is_plain:
            return
        if buffer is not use.buffer:
            use.is_plain = False
            return
        is_first = not use.spans
        if is_first:
            use.spans = [Span(const(0), const(0))] * len(indices)
        for axis, index in enumerate(indices):
            known = use.spans[axis]
            if known is not None:
                span = self._span(index, buffer.shape[axis], use)
                use.spans[axis] = span if is_first or span is None else self._hull(known, span)

    def _span(self, index: Expr, size: Expr, use: Use) -> Span | None:
        """The values of `index` while the loops inside the allocation run, in terms of what is known around it.

        What threads share holds the cells of all of them, though the memory is allocated under their loop.
        """
        first = last = index
        if isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value >= 0:
            first, last = index.base, index.base + index.stride * (index.lanes - 1)
        inner = dict([*use.sharing, *self.loops[use.depth :]])
        inner |= {var: domain for var, domain in self.narrowed.items() if var in inner}
        if first.dtype.lanes > 1 or has_data(index):
            return None
        low = interval_of(first, inner, self.facts)
        high = low if last is first else interval_of(last, inner, self.facts)
        if low is None or high is None or has_data(low.min_value) or has_data(high.max_value):
            return None  # a loop whose bounds are loaded: what lies there may change while the buffer lives
        hidden = {*inner, *self.lets[len(use.hidden) :]}
        if uses_var(low.min_value, hidden.__contains__) or uses_var(high.max_value, hidden.__contains__):
            return None
        # Accesses lie inside the buffer: a guard that makes it so does not show in the interval.
        zero = const(0, low.min_value.dtype)
        least = zero if self.facts.can_prove(low.min_value <= zero) else low.min_value
        greatest = high.max_value
        for guard in self.guards if first is last else ():
            most = self._under_guard(last, guard, hidden)
            if most is not None and self.facts.can_prove(most < greatest):
                greatest = most
        if self.facts.can_prove(greatest >= size - 1):
            greatest = self.facts.simplify(size - 1)
        if is_literal(least, 0) and self.facts.can_prove_equal(greatest, size - 1):
            return None  # all of it
        return Span(least, greatest)

    def _under_guard(self, index: Expr, guard: LT | LE, hidden: Container[Var]) -> Expr | None:
        """The greatest value of an index that is a guarded value, but for what is known around the allocation."""
        most = self.facts.simplify(index - guard.a + guard.b - (1 if isinstance(guard, LT) else 0))
        return None if uses_var(most, hidden.__contains__) else most

    def _hull(self, a: Span, b: Span) -> Span | None:
        low, high = self._end(a.low, b.low, least=True), self._end(a.high, b.high, least=False)
        return None if low is None or high is None else Span(low, high)

    def _end(self, a: Expr, b: Expr, least: bool) -> Expr | None:
        if structural_equal(a, b) or self.facts.can_prove(a <= b):
            return a if least else b
        return (b if least else a) if self.facts.can_prove(b <= a) else None

    def compacted(self, use: Use, aligned: object) -> Compact | None:
        """What takes the place of the buffer; None where nothing changes."""
        buffer = use.buffer
        if buffer is None or not use.is_plain:
            return None
        shape, first = list(buffer.shape), [const(0, extent.dtype) for extent in buffer.shape]
        for axis, span in enumerate(use.spans):
            extent = None if span is None else self.extent(span, buffer.shape[axis])
            if span is not None and extent is not None:
                shape[axis], first[axis] = extent, span.low
        changed = any(new is not old for new, old in zip(shape, buffer.shape, strict=True))
        if not changed and not aligned:
            return None
        strides = buffer.strides
        if isinstance(aligned, (list, tuple)):
            strides = strides_for(tuple(shape), aligned) or strides
        return Compact(buffer, buffer.with_(shape=tuple(shape), strides=strides), tuple(first))

    def extent(self, span: Span, size: Expr) -> Expr | None:
        """How many cells hold the span, if that is a number and fewer than there are."""
        count = _extent(span, size, self.facts)
        return None if count is None else const(count, size.dtype)


def _parts(condition: Expr) -> list[Expr]:
    """The conditions that all have to hold."""
    if isinstance(condition, And):
        return [*_parts(condition.a), *_parts(condition.b)]
    if isinstance(condition, Call) and condition.op is LIKELY:
        return _parts(condition.args[0])
    return [condition]


def _extent(span: Span, size: Expr, facts: Analyzer) -> int | None:
    """How many cells hold the span, if that is a number here and fewer than there are."""
    extent = facts.simplify(span.high - span.low + 1)
    greatest = extent.value if isinstance(extent, IntImm) else int(facts.interval(extent)[1])
    if greatest < 1 or greatest >= UNKNOWN_HIGH:
        return None
    if isinstance(size, IntImm):
        return greatest if greatest < size.value else None
    return None if _grows_with_a_size(extent, greatest, facts) else greatest


def _grows_with_a_size(extent: Expr, greatest: int, facts: Analyzer) -> bool:
    """Whether `greatest` comes from the limits of a type: of `n // 2` it is 2**30, and no buffer has so many cells.

    Then it would be less if the variables were.
    """
    with ExitStack() as less:
        for var in variables_in(extent):
            low, high = map(int, facts.interval(var))
            if high >= LARGE:
                low = max(low, -high // 4)
                half = Range.from_min_extent(const(low, var.dtype), const(high // 2 - low, var.dtype))
                less.enter_context(facts.bound(var, half))
        return int(facts.interval(extent)[1]) < greatest


class ShrinkBuffers(Rewriter):
    """Puts the smaller buffers in."""

    def __init__(self, compact: Mapping[Var, Compact]) -> None:
        self.compact = compact
        self.found = {each.old: each for each in compact.values()}
        self.facts = Analyzer()

    def visit_Allocate(self, node: Allocate) -> Stmt:
        annotations = node.annotations
        if ALIGN_KEY in annotations:
            annotations = {key: value for key, value in annotations.items() if key != ALIGN_KEY}
        compact = self.compact.get(node.buffer_var)
        if compact is None:
            return node.with_(body=self.visit(node.body), annotations=annotations)
        buffer = compact.buffer
        extents = (allocated_size(buffer),) if buffer.strides else buffer.shape
        return node.with_(extents=extents, body=self.visit(node.body), annotations=annotations)

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        compact = self.found.get(buffer)
        return buffer if compact is None else compact.buffer

    def _indices(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        visited = rewrite_tuple(indices, self.visit)
        compact = self.found.get(buffer)
        if compact is None:
            return visited
        return tuple([self._shifted(*pair) for pair in zip(visited, compact.first, strict=True)])

    def _shifted(self, index: Expr, first: Expr) -> Expr:
        if is_literal(first, 0):
            return index
        shifted = sub_index(index, first)
        if isinstance(shifted, Ramp):
            return shifted.with_(base=self.facts.simplify(shifted.base))
        return self.facts.simplify(shifted)

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        indices = self._indices(load.buffer, load.indices)
        return load.with_(buffer=self.visit_Buffer(load.buffer), indices=indices)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        indices = self._indices(store.buffer, store.indices)
        return store.with_(buffer=self.visit_Buffer(store.buffer), value=self.visit(store.value), indices=indices)

    def visit_Prefetch(self, node: Prefetch) -> Stmt:
        compact = self.found.get(node.buffer)
        if compact is None:
            return node
        bounds = [
            Range.from_min_extent(self._shifted(part.min, first), part.extent)
            for part, first in zip(node.bounds, compact.first, strict=True)
        ]
        return node.with_(buffer=compact.buffer, bounds=tuple(bounds))


@function_pass
@deep
def compact_buffers(func: PrimFunc) -> PrimFunc:
    """An allocation shrinks to the part of it that is used where it lives."""
    collect = CollectUses()
    collect.visit(func.body)
    if not collect.found and not collect.has_notes:
        return func
    return func.with_(body=ShrinkBuffers(collect.found).visit(func.body))
