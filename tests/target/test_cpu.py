from __future__ import annotations

import pytest

from loopwright.target import Target, UnknownCpu, describe, detect_host, host_description
from loopwright.target.architectures import AARCH64, ARM, GENERIC, RISCV64, WASM32, X86_64, architecture_of


def x86(options: str):
    return describe(f"llvm -mtriple=x86_64-linux-gnu {options}")


def arm64(options: str):
    return describe(f"llvm -mtriple=aarch64-linux-gnu {options}")


@pytest.mark.parametrize(
    ("cpu", "bits", "registers", "fma", "f16", "f16_convert"),
    [
        ("x86-64", 128, 16, False, False, False),
        ("nehalem", 128, 16, False, False, False),
        ("sandybridge", 256, 16, False, False, False),
        ("ivybridge", 256, 16, False, False, True),
        ("core-avx2", 256, 16, True, False, True),
        ("znver3", 256, 16, True, False, True),
        ("skylake-avx512", 512, 32, True, False, True),
        ("znver4", 512, 32, True, False, True),
        ("sapphirerapids", 512, 32, True, True, True),
    ],
)
def test_x86_generations(cpu, bits, registers, fma, f16, f16_convert):
    found = x86(f"-mcpu={cpu}")
    assert (found.vector_bits, found.registers, found.has_fma) == (bits, registers, fma)
    assert (found.has_native_f16, found.has_f16_convert) == (f16, f16_convert)
    assert found.pointer_bits == 64
    assert not found.is_host


@pytest.mark.parametrize(
    ("cpu", "f16", "dot", "bf16_dot", "sve"),
    [
        ("cortex-a72", False, False, False, False),
        ("cortex-a76", True, True, False, False),
        ("neoverse-n1", True, True, False, False),
        ("apple-m2", True, True, True, False),
        ("neoverse-v1", True, True, True, True),
    ],
)
def test_aarch64_generations(cpu, f16, dot, bf16_dot, sve):
    found = arm64(f"-mcpu={cpu}")
    assert (found.vector_bits, found.registers, found.has_fma, found.has_f16_convert) == (128, 32, True, True)
    assert found.has_native_f16 == f16
    assert found.units.has_int8_dot == dot
    assert found.units.has_bf16_dot == bf16_dot
    assert found.units.has_scalable_vectors == sve


def test_features_add_what_they_imply_and_take_what_needs_them():
    assert x86("-mcpu=x86-64 -mattr=+avx512f").features >= {"avx512f", "avx2", "avx", "fma", "f16c", "sse4.2"}
    without_avx = x86("-mcpu=sapphirerapids -mattr=-avx")
    assert without_avx.vector_bits == 128
    assert not {"avx", "avx2", "fma", "avx512f", "avx512fp16"} & without_avx.features
    assert "amx-tile" in without_avx.features
    assert x86("-mcpu=x86-64 -mattr=+avx512f,-avx2").vector_bits == 256  # plain AVX is left
    assert arm64("-mcpu=neoverse-v1 -mattr=-fullfp16").units.has_scalable_vectors is False


@pytest.mark.parametrize(
    ("options", "dtype", "lanes"),
    [
        ("-mcpu=x86-64", "float32", 4),
        ("-mcpu=sandybridge", "float32", 8),
        ("-mcpu=sandybridge", "int32", 4),
        ("-mcpu=core-avx2", "int8", 32),
        ("-mcpu=core-avx2", "float64x3", 4),
        ("-mcpu=core-avx2", "float16", 8),  # computed as float32
        ("-mcpu=core-avx2", "bfloat16", 8),
        ("-mcpu=core-avx2", "bool", 32),
        ("-mcpu=core-avx2", "e4m3_float8", 8),
        ("-mcpu=knl", "int8", 32),
        ("-mcpu=knl", "int32", 16),
        ("-mcpu=skylake-avx512", "int8", 64),
        ("-mcpu=sapphirerapids", "float16", 32),
        ("-mcpu=sapphirerapids", "bfloat16", 16),  # dot products alone do not make arithmetic
        ("-mcpu=sapphirerapids -vector-width=256", "float32", 8),
        ("-mcpu=sapphirerapids -vector-width=256", "int8", 32),
        ("-mcpu=sandybridge -vector-width=512", "int32", 4),
        ("-mcpu=core-avx2", "handle", 4),
    ],
)
def test_native_vector_lanes(options, dtype, lanes):
    assert x86(options).native_vector_lanes(dtype) == lanes


def test_other_architectures():
    assert describe("llvm -mtriple=riscv64-linux-gnu -mattr=+v").native_vector_lanes("float32") == 4
    assert describe("llvm -mtriple=riscv64-linux-gnu").native_vector_lanes("float64") == 1
    wasm = describe("llvm -mtriple=wasm32-unknown-wasi -mattr=+simd128")
    assert (wasm.pointer_bits, wasm.vector_bits, wasm.num_cores) == (32, 128, 1)
    arm = describe("llvm -mtriple=armv7-linux-gnueabihf -mcpu=cortex-a9 -mattr=+neon")
    assert (arm.native_vector_lanes("int32"), arm.native_vector_lanes("float32")) == (4, 2)
    unknown = describe("llvm -mtriple=s390x-linux-gnu -mcpu=z13")
    assert (unknown.vector_bits, unknown.has_fma) == (64, False)


@pytest.mark.parametrize(
    ("triple", "architecture"),
    [
        ("x86_64-unknown-linux-gnu", X86_64),
        ("arm64-apple-darwin", AARCH64),
        ("aarch64_be-linux-gnu", AARCH64),
        ("thumbv7em-none-eabi", ARM),
        ("riscv64gc-unknown-linux-gnu", RISCV64),
        ("wasm32-unknown-unknown", WASM32),
        ("sparcv9-sun-solaris", GENERIC),
    ],
)
def test_architecture_of(triple, architecture):
    assert architecture_of(triple) is architecture


def test_llvm_without_a_cpu_means_this_machine():
    host, cpu = detect_host(), describe(Target("llvm"))
    assert cpu is host_description()
    assert cpu.is_host
    assert (cpu.triple, cpu.name, cpu.num_cores, cpu.cache_sizes) == (
        host.triple,
        host.cpu,
        host.num_cores,
        host.caches,
    )
    assert cpu.features >= {name for name, has in host.features.items() if has}
    assert describe(cpu) is cpu


def test_host_with_features_and_cores_changed():
    cpu = describe("llvm -num-cores=3")
    assert cpu.num_cores == 3
    assert cpu.features == host_description().features


def test_a_device_target_is_described_by_its_host():
    assert describe(Target("cuda")) == host_description()
    assert describe(Target("cuda", host="llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")).name == "cortex-a72"


def test_an_unknown_cpu_lists_its_neighbours():
    with pytest.raises(UnknownCpu, match="unknown CPU 'haswel' for x86_64") as caught:
        x86("-mcpu=haswel")
    assert "haswell" in str(caught.value)
    with pytest.raises(ValueError, match="unknown CPU 'neoverse-n7' for aarch64"):
        arm64("-mcpu=neoverse-n7")


def test_a_cpu_of_another_architecture_says_so():
    with pytest.raises(UnknownCpu, match="unknown CPU 'cortex-a72' for x86_64") as caught:
        x86("-mcpu=cortex-a72")
    assert caught.value.why == "cortex-a72 is a CPU of the architecture aarch64"
    assert caught.value.hint == "replace -mtriple=x86_64-linux-gnu by -mtriple=aarch64-linux-gnu"
    error = UnknownCpu("cortex-a72", X86_64)
    assert error.hint == "add -mtriple=aarch64-linux-gnu"


def test_this_machine_is_offered_only_where_the_target_means_it():
    assert "or leave -mcpu out for this machine" in str(UnknownCpu("haswel", X86_64))
    with pytest.raises(UnknownCpu) as caught:
        arm64("-mcpu=cortex-a7x")
    assert "this machine" not in str(caught.value)


@pytest.mark.parametrize("architecture", [X86_64, AARCH64], ids=lambda a: a.name)
def test_llvm_knows_every_cpu_and_feature_of_the_table(architecture, capfd):
    """LLVM only warns, on standard error, about a name it does not know."""
    from loopwright.codegen.llvm.engine import compile_text

    names = {name for cpu in architecture.cpus for name in architecture.features_of(cpu)}
    names |= set(architecture.implies) | set(architecture.brings) | architecture.baseline
    text = "define void @f() {\n  ret void\n}\n"
    triple = f"{architecture.name}-unknown-linux-gnu"
    for cpu in architecture.cpus:
        compile_text(text, Target(f"llvm -mtriple={triple} -mcpu={cpu}"), opt_level=0)
    compile_text(text, Target(f"llvm -mtriple={triple} -mattr={','.join('+' + name for name in sorted(names))}"), 0)
    assert "not a recognized" not in capfd.readouterr().err
