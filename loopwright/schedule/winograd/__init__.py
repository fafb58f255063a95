"""Winograd: convolutions of tiles, from fewer products than results times taps.

Start with `matrices.py` (what is computed, and its proof), then `convolution.py` (which blocks are meant) and
`tiles.py` (the blocks that take their place). `bound.py` says how far rounding can go.
"""

from loopwright.schedule.winograd.bound import amplification, direct_factor, error_bound, error_factor, safe_range
from loopwright.schedule.winograd.matrices import Transforms, check, transforms

__all__ = [
    "Transforms",
    "amplification",
    "check",
    "direct_factor",
    "error_bound",
    "error_factor",
    "safe_range",
    "transforms",
]
