"""`tir.tensor_intrin`: the machines' intrinsics by the names that scripts import."""

from loopwright import tir
from loopwright.tir.tensor_intrin import arm_cpu, x86


def test_every_name_is_registered():
    for module in (x86, arm_cpu):
        for name in [value for key, value in vars(module).items() if key.endswith("_INTRIN")]:
            assert tir.TensorIntrin.get(name).name == name
    assert x86.dot_product_16x4_u8i8i32_desc is tir.TensorIntrin.get(x86.VNNI_DOT_16x4_INTRIN).desc
