"""privatise_buffers: memory that the iterations of a parallel loop share by accident is allocated in each of them.

    B = T.alloc_buffer((10,))                  →    for i in T.parallel(8):
    for i in T.parallel(8):                             B_data = T.allocate([10], "float32", "global")
        for j in range(3):                              B = T.decl_buffer((10,), data=B_data)
            B[i + j] = A[i + j] + 1.0                   for j in range(3):
        C[i] = B[i] + B[i + 1] + B[i + 2]                   B[i + j] = A[i + j] + 1.0
                                                        C[i] = B[i] + B[i + 1] + B[i + 2]

Only buffers in whose cells iterations meet, and none of whose values leaves its iteration
(`analysis/private_memory.py`); `compact_buffers` then makes them as small as one iteration needs.
Needs: inits not yet written, as the schedule proved the loop.  Leaves: no race that private memory would have avoided.
"""

from __future__ import annotations

from loopwright.analysis.races import privatised
from loopwright.ir import PrimFunc
from loopwright.ir.passes import function_pass


@function_pass
def privatise_buffers(func: PrimFunc) -> PrimFunc:
    """Memory that the iterations of a parallel loop share by accident is allocated in each of them."""
    return privatised(func)
