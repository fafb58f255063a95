"""vectorize_outer_loops: where an innermost loop makes no good vectors, a loop around it with unit stride does.

    for j in range(512):                         →    for j_chunk in range(8):
        C[i, j] = 0.0                                     for j in T.vectorized(64):
        for k in range(512):                                  C[i, j_chunk * 64 + j] = 0.0
            C[i, j] += A[i, k] * B[k, j]                      for k in range(512):
                                                                  C[i, j_chunk * 64 + j] += …

A float sum keeps its order, so its own loop stays scalar; a loop that walks columns would gather. C compilers
interchange such loops; vectors over an outer loop keep the accumulators in registers as well. Each cell still sees its
own updates in their order: results are the same, bit for bit.

The loop is chosen only where it is all gain: every access has stride 0 or 1 in it, every store stride 1, and no cell is
touched by two of its iterations (in one dimension, all accesses to a written buffer have the same index, which names
the iteration). A loop that a schedule has vectorized, unrolled around or bound keeps what the schedule said.

Needs: no blocks; before `flatten_buffers`, since dimensions tell iterations apart.  Leaves: vectorized loops.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from loopwright.arith import Analyzer, linear_coefficients
from loopwright.codegen.expression_facts import division_can_fail
from loopwright.ir import (
    BinaryExpr,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Cast,
    DeclBuffer,
    Expr,
    FloatImm,
    For,
    ForKind,
    IntImm,
    Max,
    Min,
    Node,
    Not,
    Op,
    PrimFunc,
    Select,
    SeqStmt,
    Stmt,
    Var,
    Visitor,
    const,
    deep,
    is_zero,
    seq,
    structural_equal,
    uses_var,
)
from loopwright.ir.passes import function_pass
from loopwright.target import CpuDescription
from loopwright.transform.cpu_of import cpu_of
from loopwright.transform.folding import substitute_folding
from loopwright.transform.known_ops import IF_THEN_ELSE, LANE_WISE
from loopwright.transform.memory_strides import Access, stride_of
from loopwright.transform.renew_definitions import renew_definitions
from loopwright.transform.statements import StmtRewriter

SHORT: Final = 8  # iterations: an innermost loop of fewer is unrolled, and makes no vectors worth having
CHUNK: Final = "_chunk"  # ends the name of a loop over vectors
_REGISTERS: Final = 4  # vectors side by side: enough sums to hide the latency of one
_FEWEST_LANES: Final = 4
_MOST_TILE: Final = 16  # accumulators in registers


class _Nest(NamedTuple):
    """What the body of a loop does."""

    accesses: list[Access]
    loops: list[For]
    innermost: list[For]


class _Unfit(Exception):
    """The body has a statement or an expression that is better left alone."""


class _Read(Visitor):
    """Collects the accesses and the loops of a body made of stores, loops and lane-wise arithmetic alone."""

    def __init__(self) -> None:
        self.nest = _Nest([], [], [])

    def visit_children(self, node: Node) -> None:
        if not isinstance(node, _PLAIN) or (isinstance(node, Expr) and node.dtype.lanes != 1):
            raise _Unfit
        for child in node.children():
            self.visit(child)

    def visit_For(self, loop: For) -> None:
        if loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED) or loop.annotations:
            raise _Unfit
        before = len(self.nest.loops)
        self.nest.loops.append(loop)
        self.visit_children(loop)
        if len(self.nest.loops) == before + 1:
            self.nest.innermost.append(loop)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.nest.accesses.append(load)
        self.visit_children(load)

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.nest.accesses.append(store)
        self.visit_children(store)

    def visit_Buffer(self, buffer: Buffer) -> None:
        return

    def visit_BinaryExpr(self, expr: BinaryExpr) -> None:
        if division_can_fail(expr):
            raise _Unfit
        self.visit_children(expr)

    def visit_Call(self, call: Call) -> None:
        if call.op is IF_THEN_ELSE or not isinstance(call.op, Op) or call.op not in LANE_WISE:
            raise _Unfit
        self.visit_children(call)


_PLAIN: Final = (
    BinaryExpr,
    BufferLoad,
    BufferStore,
    Call,
    Cast,
    FloatImm,
    For,
    IntImm,
    Not,
    Select,
    SeqStmt,
    Var,
)


class _VectorizeOuterLoops(StmtRewriter):
    def __init__(self, cpu: CpuDescription) -> None:
        self.cpu = cpu
        self.facts = Analyzer()

    def visit_For(self, loop: For) -> Stmt:
        body = self.visit(loop.body)
        if body is not loop.body:  # a loop further in was better
            return loop.with_(body=body)
        if loop.kind is not ForKind.SERIAL or loop.annotations or isinstance(body, (BufferStore, DeclBuffer)):
            return loop
        look = _Read()
        try:
            look.visit(body)
        except _Unfit:
            return loop
        nest = look.nest
        if not any(self._makes_poor_vectors(inner) for inner in nest.innermost):
            return loop
        if not (self._has_unit_strides(nest, loop.loop_var) and self._iterations_are_apart(nest, loop.loop_var)):
            return loop
        return self._in_vectors(loop, nest)

    def _makes_poor_vectors(self, loop: For) -> bool:
        """Whether the code generator had better not make vectors of an innermost loop."""
        if loop.kind is ForKind.UNROLLED or (isinstance(loop.extent, IntImm) and loop.extent.value < SHORT):
            return True
        look = _Read()
        look.visit(loop.body)
        for access in look.nest.accesses:
            stride = stride_of(access, loop.loop_var, self.facts)
            if stride not in (0, 1):
                return True
            if stride == 0 and isinstance(access, BufferStore) and keeps_order(access):
                return True
        return False

    def _has_unit_strides(self, nest: _Nest, var: Var) -> bool:
        """Whether lanes over `var` are neighbours in memory, or one cell that all lanes read."""
        if any(uses_var(part, lambda used: used is var) for loop in nest.loops for part in (loop.min, loop.extent)):
            return False
        for access in nest.accesses:
            stride = stride_of(access, var, self.facts)
            if stride != 1 and (stride != 0 or isinstance(access, BufferStore)):
                return False
        return True

    def _iterations_are_apart(self, nest: _Nest, var: Var) -> bool:
        """Whether no cell that is written is touched by two iterations of the loop over `var`."""
        inner = {loop.loop_var for loop in nest.loops}
        written = {access.buffer for access in nest.accesses if isinstance(access, BufferStore)}
        memory = {buffer.data for buffer in written}
        by_buffer: dict[Buffer, list[Access]] = {buffer: [] for buffer in written}
        for access in nest.accesses:
            if access.buffer in by_buffer:
                by_buffer[access.buffer].append(access)
            elif access.buffer.data in memory:
                return False  # one memory in two shapes
        if len(memory) != len(written):
            return False
        return all(self._name_iteration(accesses, var, inner) for accesses in by_buffer.values())

    def _name_iteration(self, accesses: list[Access], var: Var, inner: set[Var]) -> bool:
        """Whether in some dimension all accesses have one index, which inner loops leave and each iteration changes."""
        first, *others = accesses
        for dimension, index in enumerate(first.indices):
            found = linear_coefficients(index, [var], self.facts)
            if found is None or not isinstance(found[0][0], IntImm) or found[0][0].value == 0:
                continue
            if uses_var(found[1], inner.__contains__):
                continue
            if all(self._is_same(index, other.indices[dimension]) for other in others):
                return True
        return False

    def _is_same(self, a: Expr, b: Expr) -> bool:
        return structural_equal(a, b) or self.facts.can_prove_equal(a, b)

    def _in_vectors(self, loop: For, nest: _Nest) -> Stmt:
        """Chunks of as many lanes as registers hold, then shorter ones, then what is left one by one."""
        widest = max((access.buffer.dtype for access in nest.accesses), key=lambda dtype: dtype.bits)
        lanes = self.cpu.native_vector_lanes(str(widest))
        tile = 1
        for inner in nest.loops:
            if inner.kind is ForKind.UNROLLED and isinstance(inner.extent, IntImm):
                tile *= max(1, inner.extent.value)
        registers = max(1, min(_REGISTERS, _MOST_TILE // tile))
        widths = [lanes * registers]
        if isinstance(loop.extent, IntImm):
            while widths[-1] // 2 >= _FEWEST_LANES:
                widths.append(widths[-1] // 2)
        elif registers > 1:
            widths.append(lanes)  # for a size that is not known, each width is code of its own
        var = loop.loop_var
        start, left = const(0, var.dtype), loop.extent
        parts: list[Stmt] = []
        for width in widths:
            count = left // width
            if width < _FEWEST_LANES or is_zero(count):
                continue
            parts.append(_chunks(loop, start, count, width))
            start, left = start + count * width, left % width
        if not parts:
            return loop
        if not is_zero(left):
            rest = Var(var.name, var.dtype)
            body = substitute_folding(renew_definitions(loop.body), {var: start + rest})
            parts.append(For(rest, const(0, var.dtype), left, loop.kind, body))
        return seq(parts)


def keeps_order(update: BufferStore) -> bool:
    """Whether an update of one cell by all iterations of a loop depends on their order: float sums round."""
    return update.value.dtype.is_float and not isinstance(update.value, (Max, Min))


def _chunks(loop: For, start: Expr, count: Expr, width: int) -> Stmt:
    """`count` vectors of `width` iterations each, from iteration `start` on."""
    var = loop.loop_var
    zero = const(0, var.dtype)
    lane, chunk = Var(var.name, var.dtype), Var(var.name + CHUNK, var.dtype)
    is_one = isinstance(count, IntImm) and count.value == 1
    first = start if is_one else start + chunk * width if not is_zero(start) else chunk * width
    index = lane if is_zero(first) else first + lane
    body = substitute_folding(renew_definitions(loop.body), {var: index})
    vectors = For(lane, zero, const(width, var.dtype), ForKind.VECTORIZED, body)
    return vectors if is_one else For(chunk, zero, count, ForKind.SERIAL, vectors)


@function_pass
@deep
def vectorize_outer_loops(func: PrimFunc) -> PrimFunc:
    """Where an innermost loop makes no good vectors, a loop around it with unit stride does."""
    if func.attrs.get("tir.noalias", True) in (False, 0):
        return func  # two arguments may be one memory
    return func.with_(body=_VectorizeOuterLoops(cpu_of(func)).visit(func.body))
