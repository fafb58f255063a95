"""write_inits: the start value of every reduction becomes a nest of its own, at its one definite place.

    for i, k in T.grid(4, 8):                       →    for i in range(4):
        with T.block("C"):                                   with T.block("C_init"):
            vi, vk = T.axis.remap("SR", [i, k])                  vi = T.axis.spatial(4, i)
            with T.init():                                       C[vi] = 0
                C[vi] = 0                                    for k in range(8):
            C[vi] = C[vi] + A[vi, vk]                            with T.block("C"):
                                                                     vi, vk = T.axis.remap("SR", [i, k])
                                                                     C[vi] = C[vi] + A[vi, vk]

Where that place is, `analysis/reduction_init.py` says: evaluator, proofs and lowering share it.
Needs: nothing.  Leaves: no block with an init.
"""

from __future__ import annotations

from loopwright.analysis import reduction_init
from loopwright.ir import PrimFunc, deep
from loopwright.ir.passes import function_pass


@function_pass
@deep
def write_inits(func: PrimFunc) -> PrimFunc:
    """The start value of every reduction becomes a nest of its own."""
    return func.with_(body=reduction_init.write_inits(func.body))
