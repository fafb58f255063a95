"""What the matrix intrinsics of warps do with the memory that they have pointers to.

    T.ptx_mma(…, A.data, 0, B.data, 0, C.data, 0, False)         reads A and B, reads and writes C
    T.tvm_load_matrix_sync(F.data, 16, 16, 16, 0, p, n, "row_major")    writes F, reads where p points

All 32 lanes of a warp make such a call together. Which part of a buffer it touches an attribute may say:

    T.attr(0, "touched_regions", T.tvm_tuple(1, S[i, 0], 16, 8))      the calls inside read S[i:i + 16, 0:8]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright.ir.annotations import TOUCHED
from loopwright.ir.buffer import BufferLoad, BufferRegion
from loopwright.ir.expr import Call, Expr, IntImm, Range
from loopwright.ir.machine_intrinsics import tvm_tuple
from loopwright.ir.operators import const
from loopwright.ir.stmt import AttrStmt, Stmt

READS: Final = 1
WRITES: Final = 2
BOTH: Final = READS | WRITES

# By intrinsic: the arguments that point to memory, and what is done there. What is written may be a part of it.
MATRIX_OPERANDS: Final[dict[str, dict[int, int]]] = {
    "tir.ptx_mma": {6: READS, 8: READS, 10: BOTH},
    "tir.ptx_ldmatrix": {3: WRITES, 5: READS},
    "tir.mma_fill": {1: WRITES},
    "tir.mma_store": {2: WRITES, 3: READS},
    "tir.tvm_fill_fragment": {0: WRITES},
    "tir.tvm_load_matrix_sync": {0: WRITES, 5: READS},
    "tir.tvm_store_matrix_sync": {0: READS, 5: WRITES},
    "tir.tvm_mma_sync": {0: WRITES, 2: READS, 4: READS, 6: READS},
}

# By intrinsic: the arguments that point to a lane's own part of a matrix, and where the offset of each stands, or the
# number of its fragment.
LANE_OPERANDS: Final[dict[str, dict[int, int]]] = {
    "tir.ptx_mma": {6: 7, 8: 9, 10: 11},
    "tir.ptx_ldmatrix": {3: 4},
    "tir.mma_fill": {1: 2},
    "tir.mma_store": {3: 4},
    "tir.tvm_fill_fragment": {0: 4},
    "tir.tvm_load_matrix_sync": {0: 4},
    "tir.tvm_store_matrix_sync": {0: 4},
    "tir.tvm_mma_sync": {0: 1, 2: 3, 4: 5, 6: 7},
}


def with_regions(body: Stmt, regions: Sequence[tuple[BufferRegion, int]]) -> Stmt:
    """`body`, whose calls read (`READS`) or write (`WRITES`) these regions through their pointers."""
    told: list[Expr] = []
    for region, does in regions:
        begin = BufferLoad(region.buffer, tuple([part.min for part in region.region]))
        told += [const(does), begin, *[part.extent for part in region.region]]
    return AttrStmt(const(0), TOUCHED, tvm_tuple(*told), body) if told else body


def regions_of(attr: AttrStmt) -> list[tuple[BufferRegion, int]]:
    """What the attribute says."""
    result = []
    rest = list(attr.value.args) if isinstance(attr.value, Call) else []
    while rest:
        does, begin = rest[:2]
        assert isinstance(does, IntImm) and isinstance(begin, BufferLoad)
        rank = len(begin.indices)
        extents, rest = rest[2 : 2 + rank], rest[2 + rank :]
        ranges = [Range.from_min_extent(low, size) for low, size in zip(begin.indices, extents, strict=True)]
        result.append((BufferRegion(begin.buffer, tuple(ranges)), does.value))
    return result
