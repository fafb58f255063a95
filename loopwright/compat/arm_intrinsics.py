"""Names of `tvm.tir.tensor_intrin.arm_cpu` whose intrinsics are not registered here: scripts put them into lists."""

from __future__ import annotations

from typing import Final

DP4A_INTRIN: Final = "dp4a"  # of GPUs
