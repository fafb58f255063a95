"""Tensor maps that the host makes: what the driver is asked, and what kernels get, on a driver that only pretends."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import loopwright as lw
from loopwright.codegen.source.cuda import images
from loopwright.codegen.source.cuda.kept import cuda_in, kept_cuda
from loopwright.runtime import load_module
from loopwright.runtime.artifact_file import Artifact
from loopwright.runtime.nvidia import driver
from loopwright.script import from_source

sys.path.insert(0, str(Path(__file__).parents[3] / "runtime"))
from fake_gpu import FakeGpu, Launch, compiled_by_name, gpu, needs_compiler  # noqa: F401

pytestmark = needs_compiler

PROGRAM = """
@T.prim_func
def f(a: T.handle, B: T.Buffer(64, "TYPE"), rounds: T.int32):
    h, m, k, s, ld = T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
    A = T.match_buffer(a, (h, m, k), "TYPE", strides=[s, ld, 1])
    for r in range(rounds):
        A_map = T.tensor_map(A.data, "TYPE", SWIZZLE, 3, h, m, k - r, s, ld, 1, 1, 8, BOX)
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            S = T.decl_buffer((8, BOX), "TYPE", scope="shared")
            full = T.decl_buffer(1, "uint64", scope="shared")
            if tx == 0:
                T.mbarrier_init(T.address_of(full[0]), 32)
            T.tvm_storage_sync("shared")
            T.tensor_copy_async(T.address_of(S[0, 0]), A_map, T.address_of(full[0]), 1, r * 8, 0)
            T.mbarrier_arrive(T.address_of(full[0]))
            T.mbarrier_wait(T.address_of(full[0]), 0)
            if tx < BOX:
                B[tx] = S[0, tx]
"""


def program(dtype: str = "float16", swizzle: int = 128, box: int = 64) -> Any:
    return from_source(PROGRAM.replace("SWIZZLE", str(swizzle)).replace("BOX", str(box)).replace("TYPE", dtype))


class TensorMap(ctypes.Structure):
    """`lw_tensor_map` of native/tensor_map.h."""

    _fields_ = [
        ("words", ctypes.c_uint64 * 16),
        ("data", ctypes.c_uint64),
        ("shape", ctypes.c_int64 * 5),
        ("strides", ctypes.c_int64 * 5),
        ("box", ctypes.c_int32 * 5),
        *[(name, ctypes.c_int32) for name in ("rank", "element_bytes", "box_bytes", "swizzle", "is_encoded")],
    ]


class Seen(NamedTuple):
    """A map that a kernel got; `words` are those of the fake driver."""

    words: list[int]
    data: int
    shape: list[int]
    strides: list[int]
    box: list[int]
    numbers: tuple[int, int, int, int]
    is_encoded: int


def seen(launch: Launch) -> Seen:
    address = launch.arguments[0]
    assert address % 64 == 0
    got = TensorMap.from_address(address)
    numbers = got.rank, got.element_bytes, got.box_bytes, got.swizzle
    shape, strides, box = list(got.shape)[:3], list(got.strides)[:3], list(got.box)[:3]
    return Seen(list(got.words), got.data, shape, strides, box, numbers, got.is_encoded)


@pytest.fixture
def maps(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Seen]]:  # noqa: F811
    """The maps of the launches of `f_kernel`."""
    monkeypatch.setattr(images, "compile_cuda", compiled_by_name)
    result: list[Seen] = []
    gpu.kernel("f_kernel", lambda launch: result.append(seen(launch)))
    yield result


def tensors(shape: tuple[int, ...], dtype: str = "float16") -> tuple[Any, Any]:
    device = lw.cuda(0)
    return lw.nd.array(np.zeros(shape, dtype), device), lw.nd.array(np.zeros(64, dtype), device)


def test_the_structure_has_the_size_that_kernels_know():
    assert ctypes.sizeof(TensorMap) == 256


@pytest.mark.parametrize(
    ("dtype", "box", "swizzle", "kind", "numbers", "promotion"),
    [
        ("float16", 64, 128, (1, 3), (3, 2, 1024, 7), 2),
        ("uint8", 64, 64, (0, 2), (3, 1, 512, 3), 2),
        ("float32", 8, 32, (2, 1), (3, 4, 256, 1), 2),
        ("float64", 32, 0, (4, 0), (3, 8, 2048, 0), 3),
    ],
)
def test_a_map_is_what_the_program_says(
    maps: list[Seen],
    dtype: str,
    box: int,
    swizzle: int,
    kind: tuple[int, int],
    numbers: tuple[int, int, int, int],
    promotion: int,
):
    a, b = tensors((3, 100, 80), dtype)
    module = lw.build(program(dtype, swizzle, box), target="cuda -arch=sm_90")
    module(a, b, 1)
    size = np.dtype(dtype).itemsize
    (one,) = maps
    strides = [80 * 100 * size, 80 * size, size]
    assert one[1:] == (a.data_ptr(), [3, 100, 80], strides, [1, 8, box], numbers, 1)
    packed = box | 8 << 9 | 1 << 18
    driver = [kind[0], 3, a.data_ptr(), 80, 100, 3, 0, 0, *strides[1::-1], 0, 0, packed, kind[1], promotion, 0]
    assert one.words == driver


def test_a_map_for_each_launch(maps: list[Seen]):
    a, b = tensors((2, 64, 64))
    lw.build(program(), target="cuda -arch=sm_90")(a, b, 3)
    assert [one.shape for one in maps] == [[2, 64, 64], [2, 64, 63], [2, 64, 62]]


@pytest.mark.parametrize("shape", [(2, 64, 60), (0, 64, 64), (2, 64, 0)])
def test_what_the_hardware_does_not_take_is_not_asked(
    maps: list[Seen],
    gpu: FakeGpu,  # noqa: F811
    shape: tuple[int, ...],
):
    a, b = tensors(shape)
    module = lw.build(program(), target="cuda -arch=sm_90")
    module(a, b, 1)
    assert "cuTensorMapEncodeTiled" not in gpu.calls()
    assert [one.is_encoded for one in maps] == [0]
    assert maps[0].shape == list(shape) and not any(maps[0].words)


@pytest.mark.parametrize(
    ("position", "value", "is_encoded"),
    [
        (0, 1 << 12, 1),
        (0, (1 << 12) + 8, 0),
        (0, 0, 0),
        (1, 2**32 + 1, 0),
        (2, 0, 0),
        (2, -1, 0),
        (3, 18, 0),
        (3, -16, 0),
        (3, 0, 0),
        (3, 2**38 - 4, 1),
        (3, 2**38, 0),
        (6, 3, 0),
    ],
)
def test_limits_of_the_hardware(gpu: FakeGpu, position: int, value: int, is_encoded: int):  # noqa: F811
    native: Any = driver.native_library()
    result = TensorMap()
    data, *sizes = [value if k == position else one for k, one in enumerate([1 << 12, 2**32, 3, 16, 1, 4, 4])]
    array = (ctypes.c_int64 * 6)(*sizes)
    made = native.lw_cuda_tensor_map(0, ctypes.byref(result), ctypes.c_void_p(data), array, 2, 4, 0)
    assert (made, result.is_encoded, list(result.shape)[:2]) == (0, is_encoded, sizes[:2])


def test_where_the_driver_refuses_kernels_copy_by_themselves(maps: list[Seen], gpu: FakeGpu):  # noqa: F811
    a, b = tensors((2, 64, 64))
    module = lw.build(program(), target="cuda -arch=sm_90")
    gpu.fail("cuTensorMapEncodeTiled", 1)
    module(a, b, 2)
    assert [one.is_encoded for one in maps] == [0, 1]


def test_an_exported_library_makes_maps(maps: list[Seen], tmp_path: Path):
    a, b = tensors((2, 64, 64))
    library = load_module(lw.build(program(), target="cuda -arch=sm_90").export_library(tmp_path / "f.so"))
    library(a, b, 1)
    assert [(one.data, one.is_encoded) for one in maps] == [(a.data_ptr(), 1)]


def test_a_module_in_the_cache_knows_its_maps():
    built: Any = lw.build(program(), target="cuda -arch=sm_90")
    functions = built.compiled
    kept = kept_cuda(functions._compiled_host(), functions, built.description)
    again = cuda_in(Artifact(kept.header(), kept.parts()))
    assert again == kept
    (kernel,) = again.kernels.kernels.values()
    assert [(p.name, p.is_tensor_map, p.is_pointer) for p in kernel.parameters][:2] == [
        ("A_map", True, False),
        ("B", False, True),
    ]
