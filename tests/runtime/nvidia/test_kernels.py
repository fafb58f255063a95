"""Loading and launching kernels, on a driver of the tests' own whose kernels are Python functions."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from fake_gpu import FakeGpu, Launch, fake_driver, needs_compiler

import loopwright as lw
from loopwright import nd
from loopwright.runtime import ffi, time_evaluator
from loopwright.runtime.call_errors import ArgumentCountMismatch, ArgumentKindMismatch, DeviceMismatch
from loopwright.runtime.nvidia import driver
from loopwright.runtime.nvidia.driver import OtherImageLoaded
from loopwright.runtime.nvidia.errors import CudaError, KernelFailed, KernelImageRefused, KernelLaunchRefused
from loopwright.runtime.nvidia.kernels import Image, KernelModule

pytestmark = needs_compiler


def module(*kernels: str, arch: int = 90, **flags: bool) -> KernelModule:
    return KernelModule([Image(" ".join(["cubin", *kernels]).encode(), arch, **flags)])


def test_a_kernel_gets_its_arguments(gpu: FakeGpu):
    seen = []

    def scale(launch: Launch) -> None:
        n, factor = launch.argument(2, ctypes.c_int32), launch.argument(3, ctypes.c_float)
        a, b = [(ctypes.c_float * n).from_address(launch.argument(k, ctypes.c_uint64)) for k in range(2)]
        b[:] = [value * factor for value in a]
        seen.append((launch.size[:9], launch.shared_bytes))

    gpu.kernel("scale", scale)
    a = nd.array(np.arange(5, dtype="float32"), lw.cuda(1))
    b = nd.empty((5,), device=lw.cuda(1))
    kernel = module("scale").kernel("scale", "*A *B n factor")
    kernel(a, b, 5, 3.0, grid=(2, 1), block=128, shared=1000)
    assert b.numpy().tolist() == [0, 3, 6, 9, 12]
    assert seen == [([2, 1, 1, 128, 1, 1, 0, 0, 0], 1000)]
    kernel(a, b, np.int32(5), np.float32(2), grid=(4, 2), block=(8, 4), cluster=2)
    assert seen[1] == ([4, 2, 1, 8, 4, 1, 2, 1, 1], 0)
    assert kernel.figures(1) == (1024, 256, 40)


def test_nothing_is_loaded_before_the_first_launch_and_then_once(gpu: FakeGpu):
    gpu.kernel("one", lambda launch: None)
    gpu.kernel("two", lambda launch: None)
    both, again = module("one", "two"), module("one", "two")
    one, two = both.kernel("one", ""), again.kernel("two", "")
    assert both._handle == again._handle
    assert gpu.calls() == []
    for kernel in (one, two, one):
        kernel(grid=1, block=32)
    assert gpu.calls().count("cuModuleLoadDataEx") == 1
    one(grid=1, block=32, device=1)
    assert gpu.calls().count("cuModuleLoadDataEx") == 1
    del both, one
    two(grid=1, block=1)
    assert "cuModuleUnload" not in gpu.calls()
    del again, two, kernel
    assert gpu.calls().count("cuModuleUnload") == 2


def test_dynamic_shared_memory_is_asked_for_once(gpu: FakeGpu):
    gpu.kernel("k", lambda launch: None)
    kernel = module("k", "shared").kernel("k", "")
    for size in (100_000, 50_000, 100_000, 200_000):
        kernel(grid=1, block=32, shared=size)
    assert [call for call in gpu.calls() if "attribute" in call] == ["attribute 8 = 100000", "attribute 8 = 200000"]


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        ({"grid": (1, 70000), "block": 32}, "the grid has 70000 blocks along y, and cuda(0) allows 65535"),
        ({"grid": 1 << 40, "block": 32}, "the grid has 1099511627776 blocks along x, and cuda(0) allows 2147483647"),
        ({"grid": 1, "block": (1, 1, 128)}, "the block has 128 threads along z, and cuda(0) allows 64"),
        ({"grid": 1, "block": (64, 32)}, "the block has 2048 threads, and cuda(0) allows 1024"),
        ({"grid": -1, "block": 1}, "a size is negative"),
        (
            {"grid": 1, "block": 1, "shared": 232448},
            "needs 232704 bytes of shared memory (256 of them static), and cuda(0) has 232448",
        ),
    ],
)
def test_limits_are_told_with_figures(gpu: FakeGpu, sizes: dict, why: str):
    gpu.kernel("k", lambda launch: pytest.fail("it was launched"))
    with pytest.raises(KernelLaunchRefused, match=r"kernel k cannot be launched on cuda\(0\)") as caught:
        module("k").kernel("k", "")(**sizes)
    assert why in caught.value.why


def test_a_launch_without_threads_does_nothing(gpu: FakeGpu):
    module("k").kernel("k", "")(grid=(0, 1 << 50), block=32)
    assert gpu.calls() == []


def test_the_best_image_is_loaded(gpu: FakeGpu):
    loaded = []
    for name in ("k80", "k86", "k90", "k90a", "ptx80"):
        gpu.kernel(name, lambda launch: loaded.append(1))
    images = {
        "k80": Image(b"cubin k80", 80),
        "k90": Image(b"cubin k90", 90),
        "k90a": Image(b"cubin k90a", 90, is_exact=True),
        "ptx80": Image(b"ptx ptx80", 80, is_ptx=True),
    }

    def best(*names: str) -> str:
        made = KernelModule([images[name] for name in names])
        for name in names:
            try:
                made.kernel(name, "")(grid=1, block=1)
            except KernelImageRefused as error:
                assert f"the image has no kernel {name}" in str(error)
            else:
                return name
        return "none"

    assert best("k80", "k90", "k90a", "ptx80") == "k90a"
    assert best("k80", "k90", "ptx80") == "k90"
    with pytest.warns(OtherImageLoaded, match="built for sm_80, PTX for compute_80"):
        assert best("k80", "ptx80") == "ptx80"
    assert len(loaded) == 3


def test_an_image_for_another_gpu_is_refused(gpu: FakeGpu):
    with pytest.raises(KernelImageRefused, match=r"built for sm_80, sm_100a, and cuda\(0\) is sm_90") as caught:
        KernelModule([Image(b"cubin k", 80), Image(b"cubin k", 100, is_exact=True)]).kernel("k", "")(grid=1, block=1)
    assert caught.value.hint == "build for the architecture of this GPU"


def test_damaged_and_newer_images_are_refused_with_the_drivers_words(gpu: FakeGpu):
    images = [Image(b"garbage", 90), Image(b"newer k", 90, is_ptx=True)]
    with pytest.raises(KernelImageRefused, match=r"the driver \(CUDA 13.0\) loads no image of the kernels") as caught:
        KernelModule(images).kernel("k", "")(grid=1, block=1)
    assert "sm_90: CUDA_ERROR_INVALID_IMAGE line 1: no image" in caught.value.why
    assert "PTX for compute_90: CUDA_ERROR_UNSUPPORTED_PTX_VERSION" in caught.value.why
    assert "install a newer NVIDIA driver" in caught.value.hint


def test_where_the_best_image_is_refused_the_next_is_taken_with_a_note(gpu: FakeGpu):
    gpu.kernel("k", lambda launch: None)
    made = KernelModule([Image(b"broken", 90), Image(b"ptx k", 80, is_ptx=True)])
    with pytest.warns(OtherImageLoaded, match="sm_90: CUDA_ERROR_INVALID_IMAGE"):
        made.kernel("k", "")(grid=1, block=1)
    assert made.note() == "sm_90: CUDA_ERROR_INVALID_IMAGE line 1: no image"
    assert module("k").note() is None


def test_arguments_are_checked(gpu: FakeGpu):
    kernel = module("k").kernel("k", "*A n")
    a = nd.empty((4,), device=lw.cuda(0))
    with pytest.raises(ArgumentCountMismatch, match="k: 1 arguments, expected 2"):
        kernel(a, grid=1, block=1)
    with pytest.raises(ArgumentKindMismatch, match="argument A is int, expected a tensor on a GPU"):
        kernel(4, 4, grid=1, block=1)
    with pytest.raises(ArgumentKindMismatch, match="argument n is NDArray, expected a number"):
        kernel(a, a, grid=1, block=1)
    with pytest.raises(DeviceMismatch, match=r"argument A lies on cpu\(0\), and the kernel runs on a GPU"):
        kernel(nd.empty((4,)), 4, grid=1, block=1)
    with pytest.raises(DeviceMismatch, match=r"the kernel and its tensors are on cuda\(0\), cuda\(1\)"):
        kernel(a, 4, grid=1, block=1, device=1)


def test_a_kernel_that_failed_is_looked_for_among_the_last(gpu: FakeGpu):
    gpu.kernel("first", lambda launch: None)
    gpu.kernel("second", lambda launch: None)
    made = module("first", "second")
    lw.cuda(0).sync()
    for name in ("first", "second"):
        made.kernel(name, "")(grid=1, block=1)
    gpu.fail("cuCtxSynchronize", 700)
    with pytest.raises(KernelFailed, match=r"cuCtxSynchronize.*ILLEGAL_ADDRESS") as caught:
        lw.cuda(0).sync()
    assert caught.value.why == "launched on cuda(0) since it was last waited for: first, second"


def test_a_refused_launch_names_kernel_and_sizes(gpu: FakeGpu):
    gpu.kernel("k", lambda launch: None)
    gpu.fail("cuLaunchKernel", 701)
    with pytest.raises(KernelLaunchRefused, match="kernel k cannot be launched") as caught:
        module("k").kernel("k", "")(grid=3, block=(16, 16))
    assert "OUT_OF_RESOURCES for 3×1×1 blocks of 16×16×1 threads with 40 registers" in caught.value.why
    gpu.fail("cuLaunchKernel", 400)
    with pytest.raises(CudaError, match=r"kernel k: cuLaunchKernel on cuda\(0\): CUDA_ERROR_INVALID_HANDLE"):
        module("k").kernel("k", "")(grid=1, block=1)


def test_checked_launches_name_the_argument_and_the_kernel():
    program = """
import ctypes, os
import loopwright as lw
from loopwright import nd
from loopwright.runtime.nvidia.kernels import Image, KernelModule
fake = ctypes.CDLL(os.environ["LOOPWRIGHT_CUDA_DRIVER"])
body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda launch: None)
fake.fake_kernel(b"k", body)
module = KernelModule([Image(b"cubin k", 90)])
kernel = module.kernel("k", "*A *B n")
a = nd.empty((4,), device=lw.cuda(0))
plain = kernel._value
kernel._value = lambda name, value: ctypes.c_void_p(value) if type(value) is int and value > 99 else plain(name, value)
def attempt(*args):
    try: kernel(*args, grid=1, block=1)
    except lw.LoopwrightError as error: print(type(error).__name__, error.problem)
    else: print("fine")
attempt(a, a, 4)
attempt(a, 12345678, 4)
fake.fake_fail(b"cuStreamSynchronize", 700, 0, 1)
attempt(a, a, 4)
"""
    environment = {**os.environ, "LOOPWRIGHT_CUDA_DRIVER": fake_driver(), "LOOPWRIGHT_CUDA_CHECK": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "fine",
        "DeviceMismatch kernel k: argument 1 (B) points to host memory, or to nothing",
        "KernelFailed kernel k: waiting for it on cuda(0): CUDA_ERROR_ILLEGAL_ADDRESS (as the test wanted)",
    ], done.stderr


def test_launches_follow_the_current_stream(gpu: FakeGpu):
    streams = []
    gpu.kernel("k", lambda launch: streams.append(launch.stream))
    kernel = module("k").kernel("k", "")
    dev = lw.cuda(0)
    mine = dev.create_raw_stream()
    dev.set_raw_stream(mine)
    kernel(grid=1, block=1)
    other = threading.Thread(target=lambda: kernel(grid=1, block=1))  # each thread has a stream of its own
    other.start()
    other.join()
    dev.free_raw_stream(mine)
    kernel(grid=1, block=1)
    assert streams == [mine, None, None]


def test_what_compiled_code_calls_raises_the_same_errors(gpu: FakeGpu):
    address = driver.symbols()["lw_cuda_launch"]
    launch = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(
        address
    )
    kernel = module("k").kernel("missing", "")
    safe_call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p)
    sizes = (ctypes.c_int64 * 9)(1, 1, 1, 1, 1, 1)
    host = safe_call(lambda handle, args, count, result: launch(kernel.handle, None, None, sizes, 0, None))
    with pytest.raises(KernelImageRefused, match="the image has no kernel missing"):
        ffi.function_from_address(ffi.address_of(host), host)()


def test_the_time_of_a_gpu_is_taken_by_events(gpu: FakeGpu):
    counts = []
    gpu.kernel("k", lambda launch: counts.append(1))
    kernel = module("k").kernel("k", "*A")
    a = nd.empty((4,), device=lw.cuda(1))
    gpu.calls()
    result = time_evaluator(lambda a: kernel(a, grid=1, block=1), lw.cuda(1), number=3, repeat=2)(a)
    assert len(counts) == 1 + 2 * 3 and len(result.results) == 2 and result.mean > 0
    calls = gpu.calls()
    assert calls.count("cuEventRecord") == 4 and calls.count("cuEventSynchronize") == 2
    assert gpu.library.fake_events() == 0


@pytest.mark.parametrize(
    ("options", "size"), [({"cache_flush_bytes": 1000}, 1000), ({"f_preproc": "l2_cache_flush_cuda"}, 100 << 20)]
)
def test_the_l2_cache_can_be_made_cold(gpu: FakeGpu, options: dict, size: int):
    gpu.library.fake_set_memory(1 << 30)
    gpu.kernel("k", lambda launch: None)
    kernel = module("k").kernel("k", "*A")
    a = nd.empty((4,), device=lw.cuda(0))
    lw.cuda(0).trim()
    time_evaluator(lambda a: kernel(a, grid=1, block=1), number=1, repeat=3, **options)(a)
    calls = [call for call in gpu.calls() if call in ("cuMemsetD8Async", "cuEventRecord", "cuLaunchKernel")]
    assert calls == ["cuLaunchKernel", *["cuMemsetD8Async", "cuEventRecord", "cuLaunchKernel", "cuEventRecord"] * 3]
    assert gpu.library.fake_reserved() == size + 16
