"""LoopHints: what LLVM is told about a loop, from what is known of it here.

    for i in T.grid(32):                     around a unit-stride loop: not to be vectorized, its stride is 512
        for j in T.grid(32):                 vectorize as it stands; unroll the vectors, if anything
            C[i * 512 + j] = …

Left alone, LLVM unrolls a short innermost loop first, and then makes vectors of the loop around it, with gathers: a
blocked matmul ran ten times slower than the same loops compiled by gcc. So:

- an unrolled loop is written out, where that is not too much (`unrolling.py`);
- a loop around such tiles is left as it is;
- an innermost loop whose accesses all have stride 0 or 1, stores 1, and in which no value flows from one iteration to
  another, is vectorized before it is unrolled;
- a loop around others whose lanes would lie apart in memory makes no vectors, nor does one whose lanes lie far apart;
- a loop over what vectors left over, `n - n // 4 * 4` iterations, stays as it is;
- a loop that stores the lanes of vectors one by one is unrolled a few times, never as a whole: thousands of stores in
  one basic block took LLVM seconds.

About any other loop LLVM decides. No loop is told `vectorize.enable`: that would let LLVM reorder float sums, and print
a remark where it does not obey.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from loopwright import ir
from loopwright.analysis.effects import is_pure_call
from loopwright.arith import Analyzer, linear_coefficients
from loopwright.codegen.llvm.unrolling import holds_tile, is_worth_unrolling
from loopwright.ir.visitor import Visitor

_SHORT: Final = 16  # iterations: fewer are better unrolled, and take LLVM less time
_FARTHEST: Final = 8  # elements: lanes further apart are each a load of their own, and a vector saves nothing

_UNROLL: Final = ("llvm.loop.unroll.full",)
_KEEP: Final = ("llvm.loop.unroll.disable",)
# What LLVM makes of the loop, it may unroll.
_VECTORIZE: Final = (
    "llvm.loop.unroll.disable",
    "llvm.loop.vectorize.followup_vectorized -> llvm.loop.isvectorized, i32 1",
)
# A loop of scalable vectors is never unrolled: how many iterations are left over is not known. So two go side by side.
_SIDE_BY_SIDE: Final = (*_VECTORIZE, "llvm.loop.interleave.count, i32 2")
NO_VECTORS: Final = ("llvm.loop.vectorize.enable, i1 false",)
_IN_FOURS: Final = ("llvm.loop.unroll.count, i32 4",)


class Hints(NamedTuple):
    """What the code generator knows of one loop."""

    properties: tuple[str, ...] = ()  # that LLVM is told
    carried: frozenset[ir.Var] = frozenset()  # memory that an innermost loop updates in place, cell by cell


class LoopHints:
    """Answers for the loops of one function."""

    def __init__(self, scalable: bool = False) -> None:
        self.facts = Analyzer()
        self.vectorize = _SIDE_BY_SIDE if scalable else _VECTORIZE

    def of(self, loop: ir.For) -> Hints:
        """What is known of a loop."""
        if loop.kind is ir.ForKind.UNROLLED and is_worth_unrolling(loop):
            return Hints(_UNROLL)
        if holds_tile(loop):
            return Hints(_KEEP)
        if is_rest(loop):
            return Hints((*_KEEP, *NO_VECTORS))
        look = _Read()
        look.visit(loop.body)
        if look.has_vectors:
            return Hints(_IN_FOURS) if look.scatters and not look.has_loops and _is_long(loop) else Hints()
        if not look.accesses:
            return Hints()
        strides = [self._stride(access, loop.loop_var) for access in look.accesses]
        if look.has_loops:
            return Hints(NO_VECTORS) if any(stride not in (-1, 0, 1) for stride in strides) else Hints()
        if look.is_plain and _is_long(loop) and self._is_independent(look.accesses, strides):
            return Hints(self.vectorize)
        if any(stride is not None and abs(stride) > _FARTHEST for stride in strides):
            return Hints(NO_VECTORS, self._carried(look, strides))
        return Hints((), self._carried(look, strides))

    def _carried(self, look: _Read, strides: list[int | None]) -> frozenset[ir.Var]:
        cells = [cell for cell, stride in zip(look.accesses, strides, strict=True) if stride == 0]
        return frozenset([cell.buffer.data for cell in cells if isinstance(cell, ir.BufferStore)])

    def _stride(self, access: ir.BufferLoad | ir.BufferStore, var: ir.Var) -> int | None:
        (index,) = access.indices
        result = linear_coefficients(index, [var], self.facts)
        return result[0][0].value if result is not None and isinstance(result[0][0], ir.IntImm) else None

    def _is_independent(self, accesses: list[ir.BufferLoad | ir.BufferStore], strides: list[int | None]) -> bool:
        """Whether lanes are neighbours, and every cell that is written belongs to one iteration."""
        written: dict[ir.Var, ir.Expr] = {}
        for access, stride in zip(accesses, strides, strict=True):
            if isinstance(access, ir.BufferStore):
                if stride != 1:
                    return False
                written[access.buffer.data] = access.indices[0]
            elif stride not in (0, 1):
                return False
        return all(
            self.facts.can_prove_equal(access.indices[0], written[access.buffer.data])
            for access in accesses
            if access.buffer.data in written
        )


def is_rest(loop: ir.For) -> bool:
    """Whether a loop has the iterations that are left of some number when vectors have done theirs."""
    extent = loop.extent
    if isinstance(extent, ir.FloorMod):
        return isinstance(extent.b, ir.IntImm) and 0 < extent.b.value <= _SHORT
    if not isinstance(extent, ir.Sub) or not isinstance(extent.b, ir.Mul):
        return False
    vectors, lanes = extent.b.a, extent.b.b
    if not isinstance(vectors, ir.FloorDiv) or not isinstance(lanes, ir.IntImm) or not 0 < lanes.value <= _SHORT:
        return False
    return ir.structural_equal(vectors.b, lanes) and ir.structural_equal(vectors.a, extent.a)


def _is_long(loop: ir.For) -> bool:
    return not isinstance(loop.extent, ir.IntImm) or loop.extent.value >= _SHORT


def _are_neighbours(index: ir.Expr) -> bool:
    return isinstance(index, ir.Ramp) and isinstance(index.stride, ir.IntImm) and index.stride.value == 1


class _Read(Visitor):
    """The accesses of a loop's body, and whether there is anything in it but stores."""

    def __init__(self) -> None:
        self.accesses: list[ir.BufferLoad | ir.BufferStore] = []
        self.has_loops = False
        self.has_vectors = False
        self.scatters = False  # lanes are stored one by one
        self.is_plain = True

    def visit_For(self, loop: ir.For) -> None:
        self.has_loops = True
        self.visit_children(loop)

    def visit_While(self, loop: ir.While) -> None:
        self.has_loops = True
        self.visit_children(loop)

    def visit_Stmt(self, statement: ir.Stmt) -> None:
        self.is_plain = self.is_plain and isinstance(statement, (ir.SeqStmt, ir.DeclBuffer))
        self.visit_children(statement)

    def visit_BufferLoad(self, load: ir.BufferLoad) -> None:
        self.accesses.append(load)
        self.has_vectors = self.has_vectors or load.dtype.lanes != 1
        self.visit_children(load)

    def visit_BufferStore(self, store: ir.BufferStore) -> None:
        self.accesses.append(store)
        self.has_vectors = self.has_vectors or store.value.dtype.lanes != 1
        self.scatters = self.scatters or (store.value.dtype.lanes != 1 and not _are_neighbours(store.indices[-1]))
        self.visit_children(store)

    def visit_Call(self, call: ir.Call) -> None:
        if not is_pure_call(call) or call.op.name == "tir.if_then_else":
            self.is_plain = False
        self.visit_children(call)
