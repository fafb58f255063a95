"""Small floats: float16, bfloat16 and float8, which are computed with by way of float32.

`transform/passes/legalize_low_precision.py` writes that down, `math/low_precision.py` has their bits, and each backend
keeps them in the way its registers allow.
"""

from __future__ import annotations

from loopwright.runtime.dtype import DataType


def is_small_float(dtype: DataType) -> bool:
    """Whether it is a float of fewer than 32 bits."""
    return dtype.is_float and dtype.bits < 32
