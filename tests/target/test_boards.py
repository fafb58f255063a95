from __future__ import annotations

import pytest

from loopwright import target
from loopwright.runtime.devices import DeviceUnavailable
from loopwright.target import Target, UnknownBoard, describe


@pytest.mark.parametrize(
    ("made", "kind", "keys", "pointer_bits"),
    [
        (target.arm_cpu("rasp4b64"), "llvm", ("arm_cpu", "cpu"), 64),
        (target.arm_cpu("rasp3b"), "llvm", ("arm_cpu", "cpu"), 32),
        (target.riscv_cpu("sifive-u74"), "llvm", ("arm_cpu", "cpu"), 64),
        (target.riscv_cpu("sifive-e31"), "llvm", ("arm_cpu", "cpu"), 32),
        (target.stm32("stm32F7xx"), "c", ("arm_cpu", "cpu"), 32),
        (target.stm32("stm32G0xx"), "c", ("arm_cpu", "cpu"), 32),
        (target.stm32("stm32U5xx"), "c", ("arm_cpu", "cpu"), 32),
    ],
    ids=str,
)
def test_boards_are_targets_that_can_be_described(made, kind, keys, pointer_bits):
    assert (made.kind, made.keys) == (kind, keys)
    assert describe(made).pointer_bits == pointer_bits
    assert Target(str(made)) == made == Target(made.export())


def test_every_board_of_the_tables_describes_a_machine():
    from loopwright.target import boards

    for model in boards._ARM:
        assert describe(target.arm_cpu(model)).triple.startswith(("arm", "aarch64"))
    for model in boards._RISCV:
        assert describe(target.riscv_cpu(model)).triple.startswith("riscv")
    for series in boards._STM32:
        assert describe(target.stm32(series)).triple.startswith("thumb")


def test_gpus():
    assert target.cuda(arch="sm_80").arch == "sm_80"
    assert target.cuda().supports_integer_dot_product is False
    assert target.cuda(arch="sm_80").supports_integer_dot_product is True
    assert target.mali("rk3399").keys == ("mali", "opencl", "gpu")
    assert target.bifrost().device_name == "bifrost"
    assert target.intel_graphics().thread_warp_size == 16
    assert target.rocm("gfx900", options=["-max_num_threads=512"]).max_num_threads == 512
    assert target.hexagon("v69", num_cores=4).attrs["num-cores"] == 4


def test_options_come_last_and_win():
    assert target.arm_cpu("rasp4b64", "-mcpu=cortex-a53 -num-cores=2").mcpu == "cortex-a53"


def test_old_names_warn():
    with pytest.warns(DeprecationWarning, match="use target.arm_cpu"):
        assert target.rasp() == target.arm_cpu("rasp3b")
    with pytest.warns(DeprecationWarning, match="use Target"):
        assert target.create("llvm") == Target("llvm")


def test_unknown_models_list_candidates():
    with pytest.raises(UnknownBoard, match="stm32: unknown model 'stm32F8xx'") as caught:
        target.stm32("stm32F8xx")
    assert "stm32F7xx" in str(caught.value)
    with pytest.raises(ValueError, match="riscv_cpu: unknown model 'sifive-u99'"):
        target.riscv_cpu("sifive-u99")


def test_from_device():
    assert Target.from_device("cpu") == Target("llvm")
    assert describe(Target.from_device("llvm")).is_host
    with pytest.raises(DeviceUnavailable, match=r"Target\.from_device: the device cuda"):
        Target.from_device("cuda")


def test_numbers_have_defaults():
    cpu = Target("llvm")
    assert (cpu.max_num_threads, cpu.thread_warp_size, cpu.max_block_size_x) == (1, 1, 1)
    assert (cpu.max_shared_memory_per_block, cpu.l2_cache_size_bytes, cpu.max_function_args) == (0, 0, -1)
    assert Target("nvidia/nvidia-a100").l2_cache_size_bytes == 41943040
    assert Target("metal").max_function_args == 31
    assert cpu.get_kind_attr("default_keys") == ("cpu",)
    assert cpu.get_kind_attr("no such thing") is None


def test_features_by_the_words_of_scripts():
    arm = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a76").features
    assert (arm.has_dotprod, arm.has_sve, arm.has_asimd, arm.is_aarch64) == (True, False, True, True)
    x86 = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=cascadelake").features
    assert (x86.has_vnni, x86.has_avx512, x86.is_aarch64, x86.has_dotprod) == (True, True, False, False)
    assert x86.no_such_feature is None
    assert "avx512f" in x86
    assert "has_sve" in dir(x86)


def test_composite_targets_hold_targets():
    both = Target({"kind": "composite", "devices": ["llvm", {"kind": "cuda", "arch": "sm_80"}]})
    assert Target(str(both)) == both
    with pytest.raises(ValueError, match="unknown target kind 'lvm'"):
        Target({"kind": "composite", "devices": ["lvm"]})
