"""GEMMs on tensor cores of sm_90a: one warp loads slabs of both operands (TMA), warpgroups multiply them (wgmma).

`matmul.py` says which blocks are taken and how operands lie in memory, `tiles.py` which tiles there are and what they
cost, `planning.py` picks one, `steps.py` schedules it, `epilogue.py` stores the results, and `rule.py` is the rule.
"""

from loopwright.autosched.gpu.rules.tensor_gemm.rule import TensorGemm

__all__ = ["TensorGemm"]
