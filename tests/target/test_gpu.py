from __future__ import annotations

import pytest

from loopwright.target import BadTargetAttribute, Target, UnknownGpuArchitecture, describe_gpu, gpu, list_tags
from loopwright.target.gpus import BOARDS, LIMITS


def test_an_architecture_alone():
    found = describe_gpu("cuda -arch=sm_80")
    assert (found.arch, found.capability, found.name, found.is_host) == ("sm_80", (8, 0), "", False)
    assert (found.max_shared_memory_per_block, found.static_shared_memory_per_block) == (163 << 10, 48 << 10)
    assert (found.max_threads_per_block, found.max_threads_per_multiprocessor, found.warp_size) == (1024, 2048, 32)
    assert (found.registers_per_block, found.l2_cache_bytes, found.memory_bandwidth) == (65536, 0, 0)
    assert describe_gpu(found) is found
    assert str(found) == "GPU (sm_80, 16 multiprocessors)"


@pytest.mark.parametrize("arch", "sm_75 sm_86 sm_89 sm_90 sm_90a sm_100a sm_100f sm_120 sm_121a".split())
def test_architectures_that_are_known(arch: str):
    assert describe_gpu(f"cuda -arch={arch}").arch == arch


def test_a_board():
    h100 = describe_gpu("nvidia/nvidia-h100")
    assert (h100.name, h100.arch, h100.multiprocessors) == ("nvidia/nvidia-h100", "sm_90a", 132)
    assert h100.max_shared_memory_per_block == 227 << 10  # the 48 KiB of the tag are those without asking
    assert (h100.memory_bandwidth, h100.float16_flops, h100.l2_cache_bytes) == (3.35e12, 989.4e12, 50 << 20)
    assert describe_gpu("nvidia/rtx-4090").multiprocessors == 128
    assert describe_gpu("nvidia/geforce-rtx-4090").l2_cache_bytes == 72 << 20


def test_every_tag_of_a_gpu_can_be_described():
    tags = [tag for tag in list_tags() if tag.startswith("nvidia/")]
    assert set(BOARDS) <= set(tags)
    for tag in tags:
        assert describe_gpu(tag).number in LIMITS, tag


def test_options_say_more_than_the_architecture():
    found = describe_gpu(
        "cuda -arch=sm_90a -max_threads_per_block=512 -max_shared_memory_per_block=100000 "
        "-registers_per_block=32768 -l2_cache_size_bytes=1000"
    )
    assert (found.max_threads_per_block, found.max_shared_memory_per_block) == (512, 100000)
    assert (found.registers_per_block, found.l2_cache_bytes) == (32768, 1000)
    small = describe_gpu("cuda -arch=sm_90 -max_shared_memory_per_block=16384")
    assert (small.max_shared_memory_per_block, small.static_shared_memory_per_block) == (16384, 16384)
    assert describe_gpu("cuda -arch=sm_80 -max_num_threads=256").max_threads_per_block == 256
    with pytest.raises(BadTargetAttribute, match="max_threads_per_block is a positive integer, but got 0"):
        describe_gpu("cuda -arch=sm_80 -max_threads_per_block=0")


@pytest.mark.parametrize(
    ("arch", "hint"),
    [
        ("sm_85", "use sm_86, sm_87, sm_89"),
        ("sm_91a", "use sm_90a, sm_89, sm_87"),
        ("sm_80a", "use sm_80, sm_75, sm_86"),
        ("sm90", "use sm_90, sm_89, sm_87"),
        ("hopper", "use one of sm_35, "),
    ],
)
def test_a_wrong_architecture_names_the_nearest(arch: str, hint: str):
    with pytest.raises(UnknownGpuArchitecture, match=f"unknown GPU architecture '{arch}'") as caught:
        describe_gpu(f"cuda -arch={arch}")
    assert caught.value.hint.startswith(hint)


def test_units_follow_the_architecture():
    turing, ampere, hopper = [describe_gpu(f"cuda -arch={arch}") for arch in ("sm_75", "sm_80", "sm_90a")]
    assert (turing.has_matrix_unit, turing.has_async_copy, turing.has_bfloat16_arithmetic) == (True, False, False)
    assert (ampere.has_async_copy, ampere.has_clusters, ampere.has_float8_conversion) == (True, False, False)
    assert (hopper.has_clusters, hopper.has_wgmma, hopper.is_exact) == (True, True, True)
    assert not describe_gpu("cuda -arch=sm_90").has_wgmma
    assert all(one.has_dp4a and one.has_float16_arithmetic for one in (turing, ampere, hopper))


@pytest.mark.parametrize(
    ("threads", "shared", "registers", "blocks"),
    [(128, 0, 32, 16), (1024, 0, 32, 2), (128, 0, 255, 2), (32, 0, 16, 32), (128, 40 << 10, 32, 5), (1024, 0, 255, 0)],
)
def test_blocks_on_a_multiprocessor(threads: int, shared: int, registers: int, blocks: int):
    assert describe_gpu("cuda -arch=sm_90").blocks_per_multiprocessor(threads, shared, registers) == blocks


def test_only_gpus_are_described():
    with pytest.raises(BadTargetAttribute, match="kind is cuda, for a GPU to be described, but got 'llvm'"):
        describe_gpu("llvm")


def test_boards_by_the_names_of_the_driver():
    assert gpu._board_named("NVIDIA H100 80GB HBM3") is BOARDS["nvidia/nvidia-h100"]
    assert gpu._board_named("NVIDIA GeForce RTX 4090") is BOARDS["nvidia/geforce-rtx-4090"]
    assert gpu._board_named("NVIDIA A100-SXM4-40GB") is BOARDS["nvidia/nvidia-a100"]
    assert gpu._board_named("NVIDIA Something") is None


def test_an_emulated_gpu_is_the_same_on_every_machine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpu, "_gpu_of_this_machine", lambda index: pytest.fail("it was asked for"))
    gpu._describe.cache_clear()
    assert describe_gpu("cuda -model=emulated").arch == "sm_80"


@pytest.mark.parametrize("model", ["emulatd", "emulate", "emulation", "Emulated", "emulater"])
def test_a_misspelt_emulation_is_no_gpu(model: str):
    with pytest.raises(BadTargetAttribute, match=f"attribute model is emulated, .*, but got '{model}'") as caught:
        describe_gpu(f"cuda -arch=sm_90 -model={model}")
    assert caught.value.hint == "write -model=emulated to run kernels on the CPU"


def test_models_are_names_of_gpus():
    assert describe_gpu("cuda -arch=sm_70 -model=v100").arch == describe_gpu("cuda -arch=sm_70").arch


def test_without_a_gpu_cuda_means_an_sm_80(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpu, "_gpu_of_this_machine", lambda index: None)
    gpu._describe.cache_clear()
    assert describe_gpu(Target("cuda")).arch == "sm_80"
    gpu._describe.cache_clear()
