"""What can be done wrong with kernels on a GPU: each is an error, nothing is lost, and the next call works."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.codegen.source.cuda import images
from loopwright.codegen.source.cuda.errors import KernelTooLarge, NoCppCompiler, UnknownThreadOrder
from loopwright.runtime.call_errors import (
    ArgumentCountMismatch,
    ArgumentKindMismatch,
    DeviceMismatch,
    DtypeMismatch,
    KernelStopped,
    OverlappingArguments,
    RankMismatch,
    ShapeMismatch,
    StrideMismatch,
)
from loopwright.runtime.device_errors import NoSuchGpu
from loopwright.runtime.errors import InternalError
from loopwright.runtime.nvidia.errors import DeviceOutOfMemory, KernelImageRefused, KernelLaunchRefused
from loopwright.runtime.nvidia.nvrtc import KernelDoesNotCompile, NoNvrtc
from loopwright.script import tir as T
from loopwright.transform.on_request.split_host_device import ThreadsUnknown
from tests.cuda_programs import PROGRAMS

sys.path.insert(0, str(Path(__file__).parents[3] / "runtime"))
from fake_gpu import FakeGpu, compiled_by_name, fake_driver, gpu, needs_compiler  # noqa: F401

pytestmark = needs_compiler


@T.prim_func
def copy_rows(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 32), "float32")
    B = T.match_buffer(b, (n, 32), "float32")
    for i in T.thread_binding(n, thread="blockIdx.y"):
        for j in T.thread_binding(32, thread="threadIdx.x"):
            B[i, j] = A[i, j]


@pytest.fixture
def by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "compile_cuda", compiled_by_name)


@pytest.fixture
def launches(gpu: FakeGpu, by_name: None) -> Iterator[list[int]]:  # noqa: F811
    """The number of blocks of each launch. After the test a good call still works, and no memory is lost."""
    done: list[int] = []
    gpu.kernel("copy_rows_kernel", lambda launch: done.append(launch.size[1]))
    gpu.library.fake_set_memory(1 << 28)
    before = gpu.used()
    yield done
    gc.collect()  # errors hold on to the arguments
    count = len(done)
    lw.build(copy_rows, target="cuda")(rows(), rows())
    assert len(done) == count + 1 and gpu.used() == before


def rows(count: int = 4, width: int = 32, dtype: str = "float32", device: int = 0) -> lw.nd.NDArray:
    return lw.nd.empty((count, width), dtype, lw.cuda(device))


class Transposed:
    """A tensor of another library that is not contiguous."""

    def __init__(self, tensor: lw.nd.NDArray) -> None:
        self.tensor = tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, stream: int | None = None, **options: object) -> object:
        from loopwright.runtime.dlpack import _capsule_pointer, _DLTensor

        capsule = self.tensor.__dlpack__(stream=stream)
        held = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
        for pair in (held.shape, held.strides):
            pair[0], pair[1] = pair[1], pair[0]
        return capsule


ARGUMENTS: dict[str, tuple[Callable[[], tuple[object, ...]], type, str]] = {
    "numpy": (lambda: (rows(), np.zeros((4, 32), "float32")), DeviceMismatch, "B is in the memory of the host"),
    "CPU tensor": (lambda: (lw.nd.empty((4, 32)), rows()), DeviceMismatch, "argument A is in the memory of the host"),
    "two GPUs": (lambda: (rows(), rows(device=1)), DeviceMismatch, r"argument B is on cuda\(1\), and A on cuda\(0\)"),
    "too few": (lambda: (rows(),), ArgumentCountMismatch, r"called with 1 argument\(s\), expected 2"),
    "a list": (lambda: (rows(), [1, 2]), ArgumentKindMismatch, r"B \(number 2\) is not a tensor"),
    "nothing": (lambda: (None, rows()), ArgumentKindMismatch, r"A \(number 1\) is not a tensor"),
    "dtype": (lambda: (rows(dtype="int32"), rows()), DtypeMismatch, "element type int32, expected float32"),
    "rank": (lambda: (rows(), lw.nd.empty((32,), device=lw.cuda(0))), RankMismatch, r"1 dimension\(s\), expected 2"),
    "shape": (lambda: (rows(), rows(5)), ShapeMismatch, r"shape \(5, 32\), expected \(4, 32\)"),
    "one tensor twice": (lambda: (x := rows(), x), OverlappingArguments, "A and B overlap"),
    "not contiguous": (
        lambda: (lw.nd.from_dlpack(Transposed(rows(32, 4))), rows()),
        StrideMismatch,
        r"strides \(1, 4\) \(in elements\), expected \(32, 1\)",
    ),
    "grid": (lambda: (rows(65536), rows(65536)), KernelLaunchRefused, "cannot be launched"),
}


@pytest.mark.parametrize("is_exported", [False, True])
def test_arguments(is_exported: bool, launches: list[int], tmp_path: Path):
    module = lw.build(copy_rows, target="cuda -arch=sm_90")
    if is_exported:
        module = lw.runtime.load_module(module.export_library(tmp_path / "copy.so"))
    for name, (make, kind, text) in ARGUMENTS.items():
        with pytest.raises(kind, match=text):
            module(*make())
        assert launches == [], name
        module(rows(7), rows(7))
        module(rows(0), rows(0))  # no error, and no launch
        assert launches.pop() == 7 and launches == [], name


def test_hints_speak_of_a_gpu(launches: list[int]):
    module = lw.build(copy_rows, target="cuda")
    for name, words in [("a list", "nd.array(B, loopwright.cuda(0))"), ("not contiguous", "x.contiguous() of torch")]:
        with pytest.raises(lw.LoopwrightError) as caught:
            module(*ARGUMENTS[name][0]())
        assert words in str(caught.value)
    with pytest.raises(KernelLaunchRefused, match=r"the grid has 65536 blocks along y, and .* allows 65535"):
        module(*ARGUMENTS["grid"][0]())


def test_memory_and_devices(launches: list[int], gpu: FakeGpu):  # noqa: F811
    a = rows()
    with pytest.raises(NoSuchGpu, match="2 devices"):
        rows(device=7)
    with pytest.raises(DeviceOutOfMemory, match=r"cuda\(0\) has no 4096.0 MiB"):
        lw.nd.empty((1 << 30,), device=lw.cuda(0))
    inputs, args, given, wanted = PROGRAMS["two_kernels"]()
    module = lw.build(inputs, args, target="cuda")
    for kernel in module.kernels.kernels.values():
        gpu.kernel(kernel.name, lambda launch: None)
    tensors = [lw.nd.array(array, lw.cuda(0)) for array in (*given, *wanted)]
    gpu.library.fake_set_memory(gpu.used())
    with pytest.raises(DeviceOutOfMemory):
        module(*tensors)  # whose temporary does not fit
    gpu.library.fake_set_memory(1 << 28)
    module(*tensors)
    assert a.numpy().shape == (4, 32)


def test_images(launches: list[int]):
    with pytest.raises(KernelImageRefused, match=r"built for sm_100, and cuda\(0\) is sm_90"):
        lw.build(copy_rows, target="cuda -arch=sm_100")(rows(), rows())


@pytest.mark.parametrize("version, word", [("11000", "the driver is for CUDA 11.0, and CUDA 11.2 is needed")])
def test_a_driver_that_is_too_old(version: str, word: str):
    program = (
        "import numpy, loopwright as lw\nfrom loopwright import te\n"
        "A = te.placeholder((4,), name='A'); B = te.compute((4,), lambda i: A[i] + 1.0, name='B')\n"
        "module = lw.build([A, B], target='cuda')\n"
        "for _ in range(2):\n"
        "    try: module(numpy.zeros(4, 'float32'), numpy.zeros(4, 'float32'))\n"
        "    except lw.LoopwrightError as error: print(type(error).__name__, error)\n"
    )
    environment = {**os.environ, "LOOPWRIGHT_CUDA_DRIVER": fake_driver(), "FAKE_CUDA_VERSION": version}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.stdout.count("CudaDriverTooOld") == 2 and done.stdout.count(word) == 2, done.stdout + done.stderr


def test_nvrtc_is_missing(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):  # noqa: F811
    def missing(*args: object, **options: object) -> None:
        raise NoNvrtc("looked for it")

    gpu.kernel("copy_rows_kernel", lambda launch: None)
    module = lw.build(copy_rows, target="cuda -arch=sm_90")
    assert "copy_rows_kernel" in module.get_source()
    monkeypatch.setattr(images, "compile_cuda", missing)
    for use in (
        lambda: module(rows(), rows()),
        lambda: module.export_library(tmp_path / "copy.so"),
        lambda: module.get_source("ptx"),
    ):
        with pytest.raises(NoNvrtc, match=r"pip install \"loopwright\[cuda\]\""):
            use()
    assert not (tmp_path / "copy.so").exists()
    monkeypatch.setattr(images, "compile_cuda", compiled_by_name)  # as if it had been installed
    module(rows(), rows())


def test_text_that_nvrtc_refuses_is_our_mistake(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch):  # noqa: F811
    def refused(text: str, *args: object, **options: object) -> None:
        raise KernelDoesNotCompile(text, "kernel.cu(4): error: expected a ;\nmore of the log")

    monkeypatch.setattr(images, "compile_cuda", refused)
    with pytest.raises(InternalError, match=r"NVRTC refuses the generated text: .*expected a ;") as caught:
        lw.build(copy_rows, target="cuda")(rows(), rows())
    assert "more of the log" in caught.value.fields["log"]


# --- what is refused when it is built ---


@T.prim_func
def long_grid(A: T.Buffer((70000, 32))):
    for i in T.thread_binding(70000, thread="blockIdx.y"):
        for j in T.thread_binding(32, thread="threadIdx.x"):
            A[i, j] = T.float32(1)


@T.prim_func
def many_threads(A: T.Buffer(4096)):
    for i in T.thread_binding(4096, thread="threadIdx.x"):
        A[i] = T.float32(1)


@T.prim_func
def deep_block(A: T.Buffer((128, 2))):
    for i in T.thread_binding(128, thread="threadIdx.z"):
        for j in T.thread_binding(2, thread="threadIdx.x"):
            A[i, j] = T.float32(1)


@T.prim_func
def much_shared(A: T.Buffer(64), B: T.Buffer(64)):
    S = T.alloc_buffer((20000,), scope="shared")
    for i in T.thread_binding(64, thread="threadIdx.x"):
        for k in range(312):
            S[k * 64 + i] = A[i]
        B[i] = S[i] + S[311 * 64 + i]


@T.prim_func
def unknown_threads(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    for i in T.thread_binding(n, thread="threadIdx.x"):
        A[i] = T.float32(1)


@pytest.mark.parametrize(
    "program, kind, text",
    [
        (long_grid, KernelTooLarge, "launched with 70,000 blocks along y, and the target has at most 65,535 along y"),
        (many_threads, KernelTooLarge, r"4096 threads a block \(4096 × 1 × 1\), and the target has 1024 threads"),
        (deep_block, KernelTooLarge, "128 threads along z, and the target has 64 along z"),
        (much_shared, KernelTooLarge, r"needs 79,872 bytes of shared memory|needs 80,000 bytes of shared memory"),
        (unknown_threads, ThreadsUnknown, "threadIdx.x has n threads, which is no constant"),
    ],
)
@pytest.mark.parametrize("target", ["cuda -arch=sm_90", "cuda -model=emulated"])
def test_kernels_that_do_not_fit(program: object, kind: type, text: str, target: str):
    with pytest.raises(kind, match=text):
        lw.build(program, target=target)


def test_too_many_arguments():
    tensors = [te.placeholder((4,), name=f"A{k}") for k in range(520)]
    total = tensors[0]
    B = te.compute((4,), lambda i: sum([tensor[i] for tensor in tensors[1:]], total[i]), name="B")
    with pytest.raises(KernelTooLarge, match=r"takes 4,168 bytes of arguments \(521 of them\), .* 4,096 bytes"):
        lw.build([*tensors, B], target="cuda -arch=sm_61")


# --- emulated modules ---


def test_misuse_of_emulation(gpu: FakeGpu, by_name: None):  # noqa: F811
    module = lw.build(copy_rows, target="cuda -model=emulated")
    with pytest.raises(DeviceMismatch, match="expected the CPU") as caught:
        module(rows(), rows())
    assert "x.copyto(loopwright.cpu(0))" in str(caught.value)
    with pytest.raises(UnknownThreadOrder, match="sideways"):
        module.set_thread_order("sideways")
    a, b = np.ones((65536, 32), "float32"), np.zeros((65536, 32), "float32")
    with pytest.raises(KernelStopped, match="65536 blocks along y, and a GPU has at most 65535"):
        module(a, b)
    module(a[:0], b[:0])
    module(a[:9], b[:9])
    assert b.sum() == 9 * 32
    with pytest.raises(AttributeError, match="emulated"):
        lw.build(copy_rows, target="cuda").set_thread_order("forwards")


@pytest.mark.parametrize(
    "variable, value, looked_for",
    [("CXX", "no-such-compiler", r"no-such-compiler \(CXX"), ("PATH", "", r"c\+\+, g\+\+")],
)
def test_emulation_without_a_compiler(variable: str, value: str, looked_for: str, monkeypatch: pytest.MonkeyPatch):
    module = lw.build(copy_rows, target="cuda -model=emulated")
    arrays = [np.zeros((4, 32), "float32") for _ in range(2)]
    with monkeypatch.context() as patched:
        patched.delenv("CXX", raising=False)
        patched.setenv(variable, value)
        with pytest.raises(NoCppCompiler, match=f"no C\\+\\+ compiler to emulate .*{looked_for}") as caught:
            module(*arrays)
        assert "install g++ or clang++, or set the environment variable CXX" in str(caught.value.hint)
    module(*arrays)  # once there is one
