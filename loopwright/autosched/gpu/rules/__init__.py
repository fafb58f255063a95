"""The scheduling rules for GPUs, a file or folder each. `GPU_RULES` is the list of them, asked in order.

`default.py` is the shortest; its rules come last and take whatever is left, so that every program runs.
"""

from __future__ import annotations

from typing import Final

from loopwright.autosched.gpu.rule import GpuRule
from loopwright.autosched.gpu.rules.attention import FusedAttention
from loopwright.autosched.gpu.rules.default import DEFAULT_RULES
from loopwright.autosched.gpu.rules.elementwise import Elementwise, Together
from loopwright.autosched.gpu.rules.gemm import Gemm, ImplicitGemm
from loopwright.autosched.gpu.rules.moments import MeanAndSquares
from loopwright.autosched.gpu.rules.reduction import Reduction
from loopwright.autosched.gpu.rules.rows import Rows
from loopwright.autosched.gpu.rules.scan import Scan
from loopwright.autosched.gpu.rules.tensor_gemm import TensorGemm
from loopwright.autosched.gpu.rules.transpose import Transpose
from loopwright.autosched.gpu.rules.windows import Windows

GPU_RULES: Final[list[GpuRule]] = [
    TensorGemm(),  # before all others: what it takes is a product, and a reduction of rows too
    Gemm(),  # first: a product is a reduction of rows too
    ImplicitGemm(),  # before windows: those of a convolution are a reduction of many
    ImplicitGemm(may_split=False),
    Windows(),  # before reductions: a window is a short one
    MeanAndSquares(),  # before reductions, which it has two of
    Reduction(),  # before rows: those of a reduction alone may be too few, or too long
    Rows(),  # before element-wise work: what stands around a reduction is done with it
    Transpose(),  # before element-wise work, which it is
    Together(),  # before element-wise work alone, which it is
    Elementwise(),
    FusedAttention(),  # before the default binding, which would run a task of a CPU in each thread
    Scan(),  # before the default binding, which would run strips of columns in a thread each
    *DEFAULT_RULES,  # last: they take whatever is left
]

__all__ = ["GPU_RULES"]
