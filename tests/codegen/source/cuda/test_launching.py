"""Modules for a GPU launch their kernels: which grid, which arguments, which memory; on a driver that only pretends."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.codegen.source.cuda import images
from loopwright.runtime.call_errors import DeviceMismatch, ShapeMismatch
from loopwright.runtime.device_errors import NoCudaDriver
from loopwright.runtime.nvidia import driver, memory
from loopwright.runtime.nvidia.errors import DeviceOutOfMemory
from loopwright.runtime.tensor import from_dlpack
from loopwright.script import tir as T
from loopwright.target import gpu as gpu_of_target
from tests.cuda_programs import PROGRAMS, axpy, vector_add

sys.path.insert(0, str(Path(__file__).parents[3] / "runtime"))
from fake_gpu import FakeGpu, Launch, compiled_by_name, gpu, needs_compiler  # noqa: F401

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def _no_nvrtc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(images, "compile_cuda", compiled_by_name)
    forget_the_gpu()
    yield
    forget_the_gpu()


def forget_the_gpu() -> None:
    """What was found of the GPU of this machine, or of the pretended one."""
    driver.find_driver.cache_clear()
    gpu_of_target._gpu_of_this_machine.cache_clear()
    gpu_of_target._describe.cache_clear()


def floats(launch: Launch, position: int, count: int) -> ctypes.Array:
    return (ctypes.c_float * count).from_address(launch.argument(position, ctypes.c_uint64))


def test_a_vector_add(gpu: FakeGpu):  # noqa: F811
    sizes = []

    def add(launch: Launch) -> None:
        n = launch.argument(3, ctypes.c_int32)
        a, b, c = [floats(launch, k, n) for k in range(3)]
        c[:] = [x + y for x, y in zip(a, b)]
        sizes.append((list(launch.size[:6]), launch.shared_bytes))

    gpu.kernel("main_kernel", add)
    schedule, args = vector_add()
    module = lw.build(schedule, args, target="cuda -arch=sm_90")
    for device in (0, 1):
        a, b = [lw.nd.array(np.arange(1000, dtype="float32") + k, lw.cuda(device)) for k in range(2)]
        c = lw.nd.empty((1000,), device=lw.cuda(device))
        module(a, b, c)
        np.testing.assert_array_equal(c.numpy(), 2 * np.arange(1000) + 1)
    assert sizes == [([4, 1, 1, 256, 1, 1], 0)] * 2
    result = module.time_evaluator(module.entry_name, lw.cuda(0), number=2, repeat=2)
    assert result is not None


def test_memory_of_another_place_is_refused(gpu: FakeGpu):  # noqa: F811
    gpu.kernel("main_kernel", lambda launch: pytest.fail("launched"))
    schedule, args = vector_add()
    module = lw.build(schedule, args, target="cuda")
    host = np.zeros(3, "float32")
    here, there = lw.nd.array(host, lw.cuda(0)), lw.nd.array(host, lw.cuda(1))
    for given in (host, lw.nd.array(host)):
        with pytest.raises(DeviceMismatch, match=r"argument B is in the memory of the host") as caught:
            module(here, given, here)
        assert "nd.array(B, loopwright.cuda(0))" in str(caught.value)
    with pytest.raises(DeviceMismatch, match=r"argument C is on cuda\(1\), and A on cuda\(0\)"):
        module(here, here, there)
    with pytest.raises(ShapeMismatch):
        module(here, lw.nd.array(np.zeros(4, "float32"), lw.cuda(0)), here)


def test_scalars_have_the_bytes_of_their_types(gpu: FakeGpu):  # noqa: F811
    seen = []

    def body(launch: Launch) -> None:
        kinds = (ctypes.c_float, ctypes.c_int64, ctypes.c_int64)
        seen.append([launch.argument(2 + k, kind) for k, kind in enumerate(kinds)])

    gpu.kernel("axpy_kernel", body)
    module = lw.build(axpy, target="cuda -arch=sm_90")
    names = [parameter.name for parameter in module.kernels.kernels["axpy_kernel"].parameters]
    assert names == ["X", "Y", "a", "n", "shift"]
    x = lw.nd.array(np.zeros(100, "float32"), lw.cuda(0))
    module(2.5, -(1 << 40), x, lw.nd.array(x, lw.cuda(0)))
    assert seen == [[2.5, 100, -(1 << 40)]]


def test_temporaries_are_memory_of_the_device(gpu: FakeGpu):  # noqa: F811
    pointers = []
    gpu.kernel("main_kernel", lambda launch: pointers.append(launch.argument(1, ctypes.c_uint64)))
    gpu.kernel("main_kernel_1", lambda launch: pointers.append(launch.argument(2, ctypes.c_uint64)))
    inputs, args, given, wanted = PROGRAMS["two_kernels"]()
    module = lw.build(inputs, args, target="cuda -arch=sm_90")
    names = [[p.name for p in kernel.parameters] for kernel in module.kernels.kernels.values()]
    assert names == [["A", "S"], ["A", "B", "S"]]
    tensors = [lw.nd.array(array, lw.cuda(0)) for array in (*given, *wanted)]
    before = gpu.used()
    gpu.calls()
    module(*tensors)
    assert pointers[0] == pointers[1] != 0
    calls = [call for call in gpu.calls() if "Alloc" in call or "Free" in call or "Launch" in call]
    assert len(calls) == 4 and "Alloc" in calls[0] and "Free" in calls[3], calls
    gpu.fail("cuLaunchKernel", 701)
    with pytest.raises(lw.LoopwrightError, match="main_kernel cannot be launched"):
        module(*tensors)
    assert gpu.used() == before
    gpu.library.fake_set_memory(before)
    with pytest.raises(DeviceOutOfMemory):
        module(*tensors)


def test_dynamic_shared_memory_and_empty_tensors(gpu: FakeGpu):  # noqa: F811
    launches = []
    gpu.kernel("main_kernel", lambda launch: launches.append(launch.shared_bytes))
    gpu.kernel("reversed_dynamic_kernel", lambda launch: launches.append(launch.shared_bytes))
    inputs, args, given, wanted = PROGRAMS["dynamic_shared"]()
    lw.build(inputs, args, target="cuda")(*[lw.nd.array(array, lw.cuda(0)) for array in (*given, *wanted)])
    assert launches == [1024]
    schedule, args = vector_add()
    lw.build(schedule, args, target="cuda")(*[lw.nd.empty((0,), device=lw.cuda(0)) for _ in range(3)])
    assert launches == [1024]


def test_conditions_and_loops_of_the_host(gpu: FakeGpu):  # noqa: F811
    seen = []
    gpu.kernel("steps_kernel", lambda launch: seen.append(launch.argument(1, ctypes.c_int32)))

    @T.prim_func
    def steps(A: T.Buffer(32), n: T.int32):
        for k in range(n):
            for i in T.thread_binding(32, thread="threadIdx.x"):
                A[i] = T.Cast("float32", k)

    module = lw.build(steps, target="cuda")
    module(lw.nd.empty((32,), device=lw.cuda(0)), 3)
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_is_launched(name, gpu: FakeGpu):  # noqa: F811
    inputs, args, given, wanted = PROGRAMS[name]()
    module = lw.build(inputs, args, target="cuda -arch=sm_90")
    seen = []
    for kernel in module.kernels.kernels.values():
        gpu.kernel(kernel.name, lambda launch, kernel=kernel: seen.append((list(launch.size[3:6]), list(kernel.block))))
    arrays = [lw.nd.array(one, lw.cuda(0)) if isinstance(one, np.ndarray) else one for one in (*given, *wanted)]
    module(*arrays)
    assert len(seen) >= len(module.kernels.kernels)
    assert all([block == wanted_block for block, wanted_block in seen])


def test_without_a_driver_a_call_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOOPWRIGHT_CUDA_DRIVER", "libcuda-nowhere.so")
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    module = lw.build([A, B], target="cuda")
    with pytest.raises(NoCudaDriver, match="CUDA cannot be used here"):
        module(np.zeros(4, "float32"), np.zeros(4, "float32"))


def further(tensor: lw.nd.NDArray, by: int) -> lw.nd.NDArray:
    """The tensor that begins so many bytes behind `tensor`."""
    capsule = memory.view(tensor.__dlpack__(), tensor.shape)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    ctypes.c_uint64.from_address(pointer(capsule, b"dltensor")).value += by  # `data`, the first field
    return from_dlpack(capsule)


@pytest.mark.parametrize(
    ("columns", "shift", "is_wide"), [(64, 0, True), (64, 4, False), (62, 0, False), (60, 16, True)]
)
def test_wide_accesses_are_launched_where_memory_is_aligned(columns, shift, is_wide, gpu: FakeGpu):  # noqa: F811
    seen = []
    for name in ("main_kernel", "main_kernel_unaligned"):
        gpu.kernel(name, lambda launch, name=name: seen.append((name, launch.argument(0, ctypes.c_uint64) % 16)))
    m = te.var("m")
    A = te.placeholder((4, m), name="A")
    B = te.compute((4, m), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, lane = s[B].split(B.op.axis[1], factor=4)
    block, thread = s[B].split(outer, factor=32)
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.y"))
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    s[B].vectorize(lane)
    module = lw.build(s, [A, B], target="cuda -arch=sm_90")
    a, b = [lw.nd.empty((4, columns), device=lw.cuda(0)) for _ in range(2)]
    module(further(a, shift), b)
    assert seen == [("main_kernel" if is_wide else "main_kernel_unaligned", shift % 16)]
