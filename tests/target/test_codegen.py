"""What scripts ask about LLVM and CPUs."""

from __future__ import annotations

from loopwright.target import Target, codegen


def test_features_of_targets():
    sve = Target("llvm -mtriple=aarch64-linux-gnu -mattr=+sve")
    assert codegen.target_has_features("sve", sve) and not codegen.target_has_features(["sve", "sme"], sve)
    assert "avx2" in codegen.llvm_get_cpu_features("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell")
    with Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"):
        assert codegen.llvm_cpu_has_features("avx512bw") and "haswell" in codegen.llvm_get_cpu_archlist()


def test_the_version_and_this_machine():
    assert codegen.llvm_version_major() >= 15 and codegen.llvm_get_system_triple().count("-") >= 2
    assert codegen.llvm_lookup_intrinsic_id("llvm.fma") == codegen.llvm_get_intrinsic_name("llvm.fma")
