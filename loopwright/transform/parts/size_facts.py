"""size_facts: what is known of a function's sizes before anything runs.

The variables of its buffers' shapes are sizes: no caller can give a negative one.
"""

from __future__ import annotations

from loopwright.arith import Analyzer, ConstIntBound
from loopwright.ir import PrimFunc, Var


def size_facts(func: PrimFunc) -> Analyzer:
    """An analyzer that knows the symbolic sizes of the function's buffers not to be negative."""
    facts = Analyzer()
    for buffer in func.argument_buffers():
        for extent in buffer.shape:
            if isinstance(extent, Var) and extent.dtype.kind == "int":
                facts.update(extent, ConstIntBound(0, (1 << (extent.dtype.bits - 1)) - 1))
    return facts
