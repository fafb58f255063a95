"""check_async_order: a kernel with asynchronous operations is refused where their order is not what it needs.

    T.bulk_copy_async(T.address_of(S[0]), …, T.address_of(full[0]))
    T.mbarrier_arrive(T.address_of(full[0]))
    B[tx] = S[tx]                                     refused: nothing orders this after the copy
    T.mbarrier_wait(T.address_of(full[0]), 0)

`analysis/async_order` says what is checked. Kernels written by hand are checked, and those that `specialize_warps` and
`use_warpgroups` have derived from a program in the order of its text: the check knows nothing of how they were made.

Needs: all barriers (`insert_barriers`), buffers with their shapes.  Leaves: the function as it is.
"""

from __future__ import annotations

from loopwright.analysis.async_order import check_async_order as check
from loopwright.ir import PrimFunc, deep
from loopwright.ir.passes import function_pass
from loopwright.runtime.description import UNPROVED


@function_pass
@deep
def check_async_order(func: PrimFunc) -> PrimFunc:
    """The function, whose asynchronous kernels are in order; a function that nobody has proved is not looked at."""
    if not func.attrs.get(UNPROVED, False):
        check(func)
    return func
