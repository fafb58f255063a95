"""Wide accesses in CUDA text: 16 bytes at once where they are aligned, and another kernel elsewhere."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.codegen.source.cuda import make_module
from loopwright.runtime.nvidia.nvrtc import NoNvrtc, find_library
from loopwright.script import from_source
from loopwright.script import tir as T

EMULATED = "cuda -model=emulated"
ORDERS = ("forwards", "backwards", "random")


def body(module: lw.runtime.Module) -> str:
    source = module.get_source()
    return source[source.index("    const int32_t") : source.index("}\n\nextern") + 2]


def shifted(array: np.ndarray, by: int) -> np.ndarray:
    """The same numbers, `by` bytes behind a multiple of 64."""
    memory = np.zeros(array.nbytes + 128, "uint8")
    first = -memory.ctypes.data % 64 + by
    result = memory[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


def test_the_text():
    @T.prim_func
    def scale(A: T.Buffer((64, 1024)), B: T.Buffer((64, 1024))):
        for b in T.thread_binding(64, thread="blockIdx.x"):
            for t in T.thread_binding(256, thread="threadIdx.x"):
                for v in T.vectorized(4):
                    B[b, t * 4 + v] = A[b, t * 4 + v] * T.float32(2)

    module = lw.build(scale, target=EMULATED)
    assert (
        body(module)
        == """\
    const int32_t blockIdx_x = (int32_t)blockIdx.x;
    const int32_t threadIdx_x = (int32_t)threadIdx.x;
    __align__(16) float A_lanes[4];
    *(float4 *)A_lanes = *(const float4 *)&A[blockIdx_x * 1024 + threadIdx_x * 4];
    __align__(16) float B_lanes[4];
    #pragma unroll
    for (int32_t lane = 0; lane < 4; ++lane) {
        B_lanes[lane] = A_lanes[lane] * 2.0f;
    }
    *(float4 *)&B[blockIdx_x * 1024 + threadIdx_x * 4] = *(const float4 *)B_lanes;
}
"""
    )
    (kernel,) = module.kernels.kernels.values()
    assert kernel.unaligned == "scale_kernel_unaligned"
    assert kernel.alignments == ((0, 16), (1, 16))


def element_wise(dtype: str, lanes: int, value: str) -> lw.runtime.Module:
    return lw.build(
        from_source(f"""
@T.prim_func
def func(A: T.Buffer((2, 320), "{dtype}"), B: T.Buffer((2, 320), "{dtype}")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding({320 // lanes}, thread="threadIdx.x"):
            for v in T.vectorized({lanes}):
                B[b, t * {lanes} + v] = {value.replace("_", f"A[b, t * {lanes} + v]")}
"""),
        target=EMULATED,
    )


@pytest.mark.parametrize(
    ("dtype", "lanes", "kind"),
    [
        ("float32", 2, "float2"),
        ("float32", 8, "float4"),
        ("float64", 2, "double2"),
        ("float16", 8, "uint16x8"),
        ("bfloat16", 4, "uint16x4"),
        ("int8", 16, "int8x16"),
        ("uint8", 2, "uint8x2"),
        ("int32", 4, "int4"),
        ("uint32", 4, "uint4"),
        ("int64", 4, "int64x2"),
        ("bool", 16, "uint8x16"),
    ],
)
def test_types_and_alignments(dtype, lanes, kind):
    """Whatever begins anywhere is computed; the other kernel is the one that is launched there."""
    module = element_wise(dtype, lanes, "not _" if dtype == "bool" else "_ + _")
    assert f"*({kind} *)&B[" in module.get_source()
    numpy = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    a = (np.random.default_rng(lanes).random((2, 320)) * 100 - (0 if numpy.kind == "u" else 50)).astype(numpy)
    wanted = ~a if dtype == "bool" else a + a
    for by in {by // numpy.itemsize * numpy.itemsize for by in (0, 16, 8, 4, 1, numpy.itemsize)}:
        b = shifted(np.zeros_like(a), by)
        module(shifted(a, by // 2 // numpy.itemsize * numpy.itemsize), b)
        np.testing.assert_array_equal(b.view("uint8"), wanted.view("uint8"))


def test_the_other_kernel_is_launched_where_memory_is_not_aligned():
    """The kernel with wide accesses is made to write something else here."""
    module = element_wise("float32", 4, "_ * T.float32(2)")
    kernels = module.kernels
    text = kernels.text.replace("* 2.0f", "* 3.0f", 1)
    original = make_module.emit_cuda
    try:
        make_module.emit_cuda = lambda *_: kernels._replace(text=text)
        module = element_wise("float32", 4, "_ * T.float32(2)")
    finally:
        make_module.emit_cuda = original
    a = np.ones((2, 320), "float32")
    for left, right, factor in ((0, 0, 3), (16, 48, 3), (4, 0, 2), (0, 8, 2), (12, 12, 2)):
        b = shifted(a, right)
        module(shifted(a, left), b)
        np.testing.assert_array_equal(b, factor * a)


def test_rows_whose_length_is_no_multiple():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    i, j = s[B].op.axis
    block, j = s[B].split(j, factor=128)
    thread, lane = s[B].split(j, factor=4)
    s[B].vectorize(lane)
    for axis, tag in ((i, "blockIdx.y"), (block, "blockIdx.x"), (thread, "threadIdx.x")):
        s[B].bind(axis, te.thread_axis(tag))
    module = lw.build(s, [A, B], target=EMULATED)
    (kernel,) = module.kernels.kernels.values()
    assert [(kernel.parameters[at].name, many) for at, many in kernel.alignments] == [("m", 4), ("A", 16), ("B", 16)]
    for n, m in ((0, 4), (3, 0), (1, 1), (2, 3), (3, 4), (5, 127), (3, 128), (2, 129), (2, 132), (4, 255)):
        a = shifted(np.random.default_rng(m).random((n, m), "float32"), 0)
        b = shifted(np.zeros((n, m), "float32"), 0)
        module(a, b)
        np.testing.assert_array_equal(b, a + 1)


def test_a_tail_is_computed_lane_by_lane():
    schedule, args = _sum_of(te.var("n"))
    module = lw.build(schedule, args, target=EMULATED)
    text = body(module)
    assert "if (blockIdx_x * 64 + threadIdx_x * 4 + 3 < n) {" in text and text.count("float4") == 6
    for n in (0, 1, 2, 3, 4, 5, 63, 64, 65, 127, 130):
        for by in (0, 4):
            a, b = [shifted(np.random.default_rng(n + k).random(n, "float32"), by) for k in range(2)]
            c = np.full(n + 3, -1, "float32")
            module(a, b, c[:n])
            np.testing.assert_array_equal(c, [*(a + b), -1, -1, -1])


def _sum_of(n):
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    C = te.compute((n,), lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    block, i = s[C].split(C.op.axis[0], factor=64)
    thread, lane = s[C].split(i, factor=4)
    s[C].bind(block, te.thread_axis("blockIdx.x"))
    s[C].bind(thread, te.thread_axis("threadIdx.x"))
    s[C].vectorize(lane)
    return s, [A, B, C]


@T.prim_func
def through_shared(A: T.Buffer((4, 256)), B: T.Buffer((4, 256))):
    S = T.alloc_buffer((256,), scope="shared")
    L = T.alloc_buffer((4,), scope="local")
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            for v in T.vectorized(4):
                S[t * 4 + v] = A[b, t * 4 + v]
        for t in T.thread_binding(64, thread="threadIdx.x"):
            for v in T.vectorized(4):
                L[v] = S[(63 - t) * 4 + v]
            for v in T.serial(4):
                B[b, t * 4 + v] = L[3 - v]


@pytest.mark.parametrize("scope", ["shared", "shared.dyn"])
def test_shared_and_local_memory_is_aligned_by_declaration(scope):
    source = through_shared.script().replace('"shared"', f'"{scope}"')
    module = lw.build(from_source(source), target=EMULATED)
    text = body(module)
    assert "*(float4 *)L = *(const float4 *)&S[" in text
    assert "= *(const float4 *)&A[" in text
    assert "__align__(16) float L[4];" in text
    assert ("__shared__ __align__(16) float S[256];" in text) == (scope == "shared")
    assert "*(float4 *)L = " in module.get_source()[len(text) :], "its own memory is aligned in any case"
    a = np.random.default_rng(1).random((4, 256), "float32")
    for order in ORDERS:
        module.set_thread_order(order, seed=2)
        for by in (0, 4):
            b = shifted(np.zeros_like(a), by)
            module(shifted(a, by), b)
            np.testing.assert_array_equal(b, a[:, ::-1])


def test_kernels_that_are_given_no_memory_wide_have_no_other_form():
    source = through_shared.script().replace("T.vectorized(4)", "T.serial(4)", 1)
    module = lw.build(from_source(source), target=EMULATED)
    (kernel,) = module.kernels.kernels.values()
    assert not kernel.unaligned and "float4" in module.get_source()


def test_nvrtc_keeps_the_lanes_in_registers():
    try:
        find_library()
    except NoNvrtc:
        pytest.skip("NVRTC is not installed")
    ptx = lw.build(through_shared, target="cuda -arch=sm_90").get_source("ptx")
    assert ".local" not in ptx
    assert re.search(r"ld\.global\.nc\.v4", ptx) and re.search(r"st\.shared\.v4", ptx)
    assert re.search(r"ld\.shared\.v4", ptx)
