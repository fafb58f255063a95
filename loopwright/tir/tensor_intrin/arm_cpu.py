"""`tir.tensor_intrin.arm_cpu`: dot products of 4 results and 4 products each."""

from loopwright.transform.tensor_intrinsics import TensorIntrin

ARM_DOT_4x4_i8_NEON_INTRIN = "dot_4x4_i8i8s32_neon"
ARM_DOT_4x4_i8_SDOT_INTRIN = "dot_4x4_i8i8s32_sdot"
ARM_DOT_4x4_u8_UDOT_INTRIN = "dot_4x4_u8u8u32_udot"
ARM_DOT_4x4_u8_HDOT_INTRIN = "dot_4x4_u8u8i32_hdot"

neon_4x4_i8i8i32_desc = TensorIntrin.get(ARM_DOT_4x4_i8_NEON_INTRIN).desc
neon_4x4_i8i8i32_impl = TensorIntrin.get(ARM_DOT_4x4_i8_NEON_INTRIN).impl
