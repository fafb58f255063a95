"""Matrix products on GPUs: a tile a block in shared memory, a tile a thread in registers.

`rule.py` says which blocks are taken as they are, `implicit.py` which are made a product (convolutions), `tiles.py`
which tiles there are and what they cost, `steps.py` schedules them, and `add_parts.py` adds up parts of sums.
"""

from loopwright.autosched.gpu.rules.gemm.add_parts import add_parts
from loopwright.autosched.gpu.rules.gemm.implicit import ImplicitGemm
from loopwright.autosched.gpu.rules.gemm.planning import is_epilogue
from loopwright.autosched.gpu.rules.gemm.rule import Gemm

__all__ = ["Gemm", "ImplicitGemm", "add_parts", "is_epilogue"]
