"""vectorize_outer_loops: where an innermost loop makes no good vectors, a loop around it with unit stride does.

A short innermost loop of updates with unit stride becomes vectors here as well: what it updates then stays in registers
over the loop around it, which LLVM unrolls before it would make vectors.

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

from typing import Final

from loopwright.arith import Analyzer
from loopwright.ir import (
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Expr,
    For,
    ForKind,
    IntImm,
    Max,
    Min,
    PrimFunc,
    Stmt,
    Var,
    const,
    deep,
    is_zero,
    seq,
    uses_var,
)
from loopwright.ir.operators import maximum
from loopwright.ir.passes import function_pass
from loopwright.target import CpuDescription
from loopwright.transform.parts.clone_definitions import clone_definitions
from loopwright.transform.parts.cpu_of import cpu_of
from loopwright.transform.parts.folding import substitute_folding
from loopwright.transform.parts.memory_strides import stride_of
from loopwright.transform.parts.plain_nest import Nest, is_parallelizable, read_nest
from loopwright.transform.parts.statements import StmtRewriter

SHORT: Final = 8  # iterations: an innermost loop of fewer is unrolled, and makes no vectors worth having
CHUNK: Final = "_chunk"  # ends the name of a loop over vectors
_REGISTERS: Final = 4  # vectors side by side: enough sums to hide the latency of one
_FEWEST_LANES: Final = 4
_MOST_TILE: Final = 16  # accumulators in registers


class _VectorizeOuterLoops(StmtRewriter):
    def __init__(self, cpu: CpuDescription) -> None:
        self.cpu = cpu
        self.facts = Analyzer()

    def visit_For(self, loop: For) -> Stmt:
        body = self.visit(loop.body)
        if body is not loop.body:  # a loop further in was better
            return loop.with_(body=body)
        if loop.kind is not ForKind.SERIAL or loop.annotations or isinstance(body, DeclBuffer):
            return loop
        nest = read_nest(body)
        if nest is None:
            return loop
        if not nest.loops and not self._is_short(loop, nest):
            return loop
        if nest.loops and not any(self._makes_poor_vectors(inner) for inner in nest.innermost):
            return loop
        if not (self._has_unit_strides(nest, loop.loop_var) and is_parallelizable(nest, loop.loop_var, self.facts)):
            return loop
        return self._in_vectors(loop, nest)

    def _is_short(self, loop: For, nest: Nest) -> bool:
        """Whether a few registers hold what all iterations update."""
        written = {access.buffer for access in nest.accesses if isinstance(access, BufferStore)}
        is_update = any(access.buffer in written for access in nest.accesses if isinstance(access, BufferLoad))
        if not is_update or not isinstance(loop.extent, IntImm):
            return False
        return SHORT <= loop.extent.value <= _REGISTERS * self._lanes(nest)

    def _lanes(self, nest: Nest) -> int:
        """How many elements of the widest type a vector has."""
        widest = max((access.buffer.dtype for access in nest.accesses), key=lambda dtype: dtype.bits)
        return self.cpu.native_vector_lanes(str(widest))

    def _makes_poor_vectors(self, loop: For) -> bool:
        """Whether the code generator had better not make vectors of an innermost loop."""
        if loop.kind is ForKind.UNROLLED or (isinstance(loop.extent, IntImm) and loop.extent.value < SHORT):
            return True
        inside = read_nest(loop.body)
        for access in inside.accesses if inside is not None else []:
            stride = stride_of(access, loop.loop_var, self.facts)
            if stride not in (0, 1):
                return True
            if stride == 0 and isinstance(access, BufferStore) and keeps_order(access):
                return True
        return False

    def _has_unit_strides(self, nest: Nest, var: Var) -> bool:
        """Whether lanes over `var` are neighbours in memory, or one cell that all lanes read."""
        if any(uses_var(part, lambda used: used is var) for loop in nest.loops for part in (loop.min, loop.extent)):
            return False
        for access in nest.accesses:
            stride = stride_of(access, var, self.facts)
            if stride != 1 and (stride != 0 or isinstance(access, BufferStore)):
                return False
        return True

    def _in_vectors(self, loop: For, nest: Nest) -> Stmt:
        """Chunks of as many lanes as registers hold, then shorter ones, then what is left one by one."""
        lanes = self._lanes(nest)
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
        if not self.facts.can_prove(left >= 0):
            left = maximum(left, const(0, left.dtype))  # a remainder of a negative extent would be iterations
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
            body = substitute_folding(clone_definitions(loop.body), {var: start + rest})
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
    body = substitute_folding(clone_definitions(loop.body), {var: index})
    vectors = For(lane, zero, const(width, var.dtype), ForKind.VECTORIZED, body)
    return vectors if is_one else For(chunk, zero, count, ForKind.SERIAL, vectors)


@function_pass
@deep
def vectorize_outer_loops(func: PrimFunc) -> PrimFunc:
    """Where an innermost loop makes no good vectors, a loop around it with unit stride does."""
    if func.attrs.get("tir.noalias", True) in (False, 0):
        return func  # two arguments may be one memory
    return func.with_(body=_VectorizeOuterLoops(cpu_of(func)).visit(func.body))
