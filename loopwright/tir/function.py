"""`tir.function`: functions, and layouts as functions of indices."""

from loopwright.arith.index_map import IndexMap
from loopwright.ir import PrimFunc

__all__ = ["IndexMap", "PrimFunc"]
