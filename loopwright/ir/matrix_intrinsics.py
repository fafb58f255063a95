"""What the matrix intrinsics of warps do with the memory that they have pointers to.

    T.ptx_mma(…, A.data, 0, B.data, 0, C.data, 0, False)         reads A and B, reads and writes C
    T.tvm_load_matrix_sync(F.data, 16, 16, 16, 0, p, n, "row_major")    writes F, reads where p points

All 32 lanes of a warp make such a call together.
"""

from __future__ import annotations

from typing import Final

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
