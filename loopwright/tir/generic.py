"""`tir.generic`: arithmetic that matches types first."""

from loopwright.ir.operators import add, cast, floordiv
from loopwright.ir.operators import div as divide
from loopwright.ir.operators import mul as multiply
from loopwright.ir.operators import sub as subtract

__all__ = ["add", "cast", "divide", "floordiv", "multiply", "subtract"]
