"""The scheduling rules for GPUs, a file or folder each. `GPU_RULES` is the list of them, asked in order.

`default.py` is the shortest; its rules come last and take whatever is left, so that every program runs.
"""

from __future__ import annotations

from typing import Final

from loopwright.autosched.gpu.rule import GpuRule
from loopwright.autosched.gpu.rules.default import DEFAULT_RULES
from loopwright.autosched.gpu.rules.elementwise import Elementwise
from loopwright.autosched.gpu.rules.gemm import Gemm
from loopwright.autosched.gpu.rules.rows import Rows

GPU_RULES: Final[list[GpuRule]] = [
    Gemm(),  # first: a product is a reduction of rows too
    Rows(),  # before element-wise work: what stands around a reduction is done with it
    Elementwise(),
    *DEFAULT_RULES,  # last: they take whatever is left
]

__all__ = ["GPU_RULES"]
