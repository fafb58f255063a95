"""`tir.tensor_intrin.x86`: dot products of 16 results and 4 products each."""

from loopwright.transform.tensor_intrinsics import TensorIntrin

VNNI_DOT_16x4_INTRIN = "dot_16x4_vnni"
AVX512_DOT_16x4_INTRIN = "dot_16x4_avx512"

dot_product_16x4_u8i8i32_desc = TensorIntrin.get(VNNI_DOT_16x4_INTRIN).desc
dot_product_16x4_u8i8i32_vnni = TensorIntrin.get(VNNI_DOT_16x4_INTRIN).impl
dot_product_16x4_u8i8i32_avx512 = TensorIntrin.get(AVX512_DOT_16x4_INTRIN).impl
