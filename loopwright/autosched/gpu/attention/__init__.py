"""Attention by tensor cores of sm_90a, as one kernel with roles: `plan.py` has its sizes, `kernel.py` writes it."""

from __future__ import annotations

from loopwright.autosched.gpu.attention.kernel import attention_kernel
from loopwright.autosched.gpu.attention.plan import AttentionPlan, AttentionShape, attention_plan, attention_shape

__all__ = ["AttentionPlan", "AttentionShape", "attention_kernel", "attention_plan", "attention_shape"]
