"""Fragments (wmma): all sizes, types and layouts against numpy, emulated; where their lanes meet; what is refused."""

from __future__ import annotations

import functools
import itertools
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright import ir
from loopwright.codegen.source.cuda.errors import NeedsNewerGpu, NoSuchInstruction
from loopwright.runtime.errors import NotBuilt
from loopwright.runtime.tensor import as_argument
from loopwright.script import from_source
from loopwright.transform.on_request.launch_threads import NotALaunch
from tests.codegen.source.cuda.disassembly import HAS_NVRTC, sass

EMULATED = "cuda -model=emulated -arch=sm_80"
RUNS = [("forwards", 0), ("backwards", 0), ("random", 1), ("random", 2)]
SIZES = [(16, 16, 16), (32, 8, 16), (8, 32, 16)]
TYPES = [
    ("float16", "float16", "float32"),
    ("float16", "float16", "float16"),
    ("bfloat16", "bfloat16", "float32"),
    ("int8", "int8", "int32"),
    ("uint8", "int8", "int32"),
]
LAYOUTS = ["row_major", "col_major"]

# D = A @ B + C for two steps of 16 along k, with A and B staged in shared memory of padded rows, or loaded from where
# they are. No loop over x is around the calls.
PRODUCT = """
@T.prim_func
def main(A: T.Buffer((ROWS_A, COLUMNS_A), "TA"), B: T.Buffer((ROWS_B, COLUMNS_B), "TB"),
         C: T.Buffer((ROWS_C, COLUMNS_C), "TC"), D: T.Buffer((ROWS_D, COLUMNS_D), "TC")):
    SA = T.alloc_buffer((ROWS_A, COLUMNS_A + 16), "TA", scope="shared")
    SB = T.alloc_buffer((ROWS_B, COLUMNS_B + 16), "TB", scope="shared")
    FA = T.alloc_buffer((2, M * 16), "TA", scope="wmma.matrix_a")
    FB = T.alloc_buffer((2, N * 16), "TB", scope="wmma.matrix_b")
    FC = T.alloc_buffer((M * N,), "TC", scope="wmma.accumulator")
    FD = T.alloc_buffer((2, M * N), "TC", scope="wmma.accumulator")
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            for i in range((ROWS_A * COLUMNS_A + 31) // 32):
                if i * 32 + tx < ROWS_A * COLUMNS_A:
                    SA[(i * 32 + tx) // COLUMNS_A, (i * 32 + tx) % COLUMNS_A] = \\
                        A[(i * 32 + tx) // COLUMNS_A, (i * 32 + tx) % COLUMNS_A]
            for i in range((ROWS_B * COLUMNS_B + 31) // 32):
                if i * 32 + tx < ROWS_B * COLUMNS_B:
                    SB[(i * 32 + tx) // COLUMNS_B, (i * 32 + tx) % COLUMNS_B] = \\
                        B[(i * 32 + tx) // COLUMNS_B, (i * 32 + tx) % COLUMNS_B]
        T.evaluate(T.tvm_load_matrix_sync(FC.data, M, N, 16, 0, C.access_ptr("r"), COLUMNS_C, "LC"))
        for k in range(2):
            T.evaluate(T.tvm_load_matrix_sync(FA.data, M, N, 16, k, FROM_A, STRIDE_A, "LA"))
            T.evaluate(T.tvm_load_matrix_sync(FB.data, M, N, 16, k, FROM_B, STRIDE_B, "LB"))
        T.evaluate(T.tvm_fill_fragment(FD.data, M, N, 16, 1, T.float32(3)))
        T.evaluate(T.tvm_mma_sync(FD.data, 1, FA.data, 0, FB.data, 0, FC.data, 0))
        T.evaluate(T.tvm_mma_sync(FD.data, 1, FA.data, 1, FB.data, 1, FD.data, 1))
        T.evaluate(T.tvm_store_matrix_sync(FD.data, M, N, 16, 1, D.access_ptr("w"), COLUMNS_D, "LD"))
"""


def product(
    sizes: tuple[int, int, int],
    types: tuple[str, str, str],
    layouts: tuple[str, str, str],
    is_staged: bool = True,
) -> str:
    m, n, _ = sizes
    shapes = {"A": (m, 32), "B": (32, n), "C": (m, n), "D": (m, n)}
    by = dict(zip("ABCD", (*layouts, layouts[2]), strict=True))
    values = {"TA": types[0], "TB": types[1], "TC": types[2], "M": str(m), "N": str(n)}
    for name, (rows, columns) in shapes.items():
        if by[name] == "col_major":
            rows, columns = columns, rows
        values |= {f"ROWS_{name}": str(rows), f"COLUMNS_{name}": str(columns), f"L{name}": by[name]}
        if name in "AB":
            stride = columns + 16 if is_staged else columns
            along_rows = (name == "A") == (by[name] == "row_major")
            step = "k * 16" if along_rows else f"k * {16 * stride}"
            values[f"STRIDE_{name}"] = str(stride)
            values[f"FROM_{name}"] = f'{"S" * is_staged}{name}.access_ptr("r", offset={step})'
    text = PRODUCT
    for old in sorted(values, key=len, reverse=True):
        text = re.sub(rf"\b{old}\b", values[old], text)
    return text


@functools.cache
def module(types: tuple[str, str, str]) -> Any:
    programs = {}
    for sizes, is_staged in itertools.product(SIZES, (True, False)):
        for layouts in itertools.product(LAYOUTS, LAYOUTS, LAYOUTS):
            name = name_of(sizes, layouts, is_staged)
            programs[name] = from_source(product(sizes, types, layouts, is_staged).replace("def main", f"def {name}"))
    return lw.build(ir.IRModule(programs), target=EMULATED)


def name_of(sizes: tuple[int, int, int], layouts: tuple[str, ...], is_staged: bool) -> str:
    return f"f{sizes[0]}x{sizes[1]}_{'_'.join(layouts)}{'_staged' * is_staged}"


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    low = 0 if dtype == "uint8" else -6
    return rng.integers(low, 7, shape).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


@pytest.mark.parametrize("is_staged", [True, False], ids=["shared", "global"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("types", TYPES, ids="_".join)
def test_fragments_of_all_sizes_types_and_layouts(
    types: tuple[str, str, str], sizes: tuple[int, int, int], is_staged: bool
):
    m, n, _ = sizes
    a, b, c = numbers((m, 32), types[0], 0), numbers((32, n), types[1], 1), numbers((m, n), types[2], 2)
    expected = (a.astype("float64") @ b.astype("float64") + c.astype("float64")).astype(c.dtype)
    for number, layouts in enumerate(itertools.product(LAYOUTS, LAYOUTS, LAYOUTS)):
        module(types).set_thread_order(*RUNS[number % len(RUNS)])
        given = [x.T.copy() if by == "col_major" else x for x, by in zip((a, b, c), layouts, strict=True)]
        d = np.zeros_like(given[2])
        module(types)[name_of(sizes, layouts, is_staged)](*map(as_argument, (*given, d)))
        np.testing.assert_array_equal(d.T if layouts[2] == "col_major" else d, expected)


PLAIN = product((16, 16, 16), ("float16", "float16", "float32"), ("row_major", "row_major", "row_major"))


def text_of(program: str, arch: str = "sm_80") -> str:
    source: str = lw.build(from_source(program), target=f"cuda -arch={arch}").get_source("cuda")
    return source[source.index("__global__") :]


def test_a_fragment_is_held_in_parts_and_all_lanes_come_after_a_barrier():
    text = text_of(PLAIN)
    assert "uint16_t FA[16];" in text and "float FD[16];" in text
    assert "__shared__ __align__(16) uint16_t SA[" in text
    assert text.count("__syncthreads();") == 1  # tiles are stored before it, and loaded after it
    assert text.index("__syncthreads();") < text.index("lw_ldmatrix_x4(&FA")
    assert "lw_ldmatrix_x4_trans(&FB[k * 8], lw_matrix_row_4_lines(&SB[k * 512], 32, 0, 0));" in text
    assert "threadIdx_x ==" not in text


def test_more_threads_along_x_leave_the_work_to_the_first_warp():
    text = text_of(PLAIN.replace("T.thread_binding(32,", "T.thread_binding(64,").replace("* 32 + tx", "* 64 + tx"))
    assert "if (threadIdx_x < 32)" in text


WRONG = [
    ('thread="threadIdx.x"', 'thread="threadIdx.y"', NotALaunch, "and no loop is bound to threadIdx.x"),
    ("T.thread_binding(32,", "T.thread_binding(16,", NotALaunch, "and a loop of 16 iterations is bound to"),
    ("FD.data, 16, 16, 16, 1, T", "FD.data, 16, 8, 16, 1, T", NoSuchInstruction, "of 16 x 8 x 16: fragments are"),
    ("FD.data, 16, 16, 16, 1, T", "FD.data, 32, 8, 16, 1, T", NoSuchInstruction, "in FD are of 32 x 8 x 16, and of"),
    ("FA.data, 0, FB.data, 0,", "FB.data, 0, FA.data, 0,", NoSuchInstruction, "takes fragments of the scopes wmma"),
    ("sync(FD.data, 16", "sync(FA.data, 16", NoSuchInstruction, "stores sums, of scope wmma.accumulator; FA is"),
    ('16, "row_major"', '16, "rows"', NoSuchInstruction, 'tiles that are "row_major" or "col_major"; got'),
    ('scope="wmma.matrix_a"', 'scope="local"', NoSuchInstruction, "FA lies in local memory"),
    ("T.evaluate(T.tvm_mma", "FD[1, 0] = 0.0\n        T.evaluate(T.tvm_mma", NotBuilt, "an element of FD, which warps"),
]


@pytest.mark.parametrize(("old", "new", "error", "message"), WRONG)
def test_what_is_refused(old: str, new: str, error: type[Exception], message: str):
    assert old in PLAIN
    with pytest.raises(error, match=message):
        text_of(PLAIN.replace(old, new))


def test_types_without_an_instruction_are_refused():
    text = product((16, 16, 16), ("float32", "float32", "float32"), ("row_major", "row_major", "row_major"), False)
    with pytest.raises(NoSuchInstruction, match="tvm_mma_sync: m16n8k16 takes"):
        text_of(text)


def test_older_gpus_are_refused():
    with pytest.raises(NeedsNewerGpu, match="tvm_mma_sync needs sm_80, and the target is sm_75"):
        text_of(PLAIN, "sm_75")


@pytest.mark.skipif(not HAS_NVRTC, reason="NVRTC is not installed")
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("types", TYPES, ids="_".join)
def test_machine_code_keeps_fragments_in_registers(types: tuple[str, str, str], sizes: tuple[int, int, int]):
    code = sass(from_source(product(sizes, types, ("row_major", "col_major", "row_major"))), "sm_90")
    assert "MMA." in code and "LDSM" in code and "LDL" not in code and "STL" not in code


def test_tiles_that_come_to_share_memory_are_kept_apart_by_barriers():
    """The second tile is staged where the first one was: nobody stores it before all have loaded that one."""
    text = """
@T.prim_func
def main(A: T.Buffer((4, 16, 16), "float16"), B: T.Buffer((4, 16, 16), "float16"), C: T.Buffer((16, 16))):
    FA = T.alloc_buffer((256,), "float16", scope="wmma.matrix_a")
    FB = T.alloc_buffer((256,), "float16", scope="wmma.matrix_b")
    FC = T.alloc_buffer((256,), scope="wmma.accumulator")
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        T.evaluate(T.tvm_fill_fragment(FC.data, 16, 16, 16, 0, T.float32(0)))
        for k in range(4):
            S = T.decl_buffer((16, 16), "float16", scope="shared")
            R = T.decl_buffer((8, 32), "float16", scope="shared")
            for tx in T.thread_binding(32, thread="threadIdx.x"):
                for i in range(8):
                    S[i * 2 + tx // 16, tx % 16] = A[k, i * 2 + tx // 16, tx % 16]
            T.evaluate(T.tvm_load_matrix_sync(FA.data, 16, 16, 16, 0, S.access_ptr("r"), 16, "row_major"))
            for tx in T.thread_binding(32, thread="threadIdx.x"):
                for i in range(8):
                    R[i, tx] = B[k, i * 2 + tx // 16, tx % 16]
            T.evaluate(T.tvm_load_matrix_sync(FB.data, 16, 16, 16, 0, R.access_ptr("r"), 16, "row_major"))
            T.evaluate(T.tvm_mma_sync(FC.data, 0, FA.data, 0, FB.data, 0, FC.data, 0))
        T.evaluate(T.tvm_store_matrix_sync(FC.data, 16, 16, 16, 0, C.access_ptr("w"), 16, "row_major"))
"""
    kernel = text_of(text)
    assert kernel.count("__shared__") == 1 and kernel.count("__syncthreads();") == 4
    a, b = numbers((4, 16, 16), "float16", 0), numbers((4, 16, 16), "float16", 1)
    module = lw.build(from_source(text), target=EMULATED)
    for order, seed in RUNS:
        module.set_thread_order(order, seed)
        c = np.zeros((16, 16), "float32")
        module(a, b, c)
        np.testing.assert_array_equal(c, np.einsum("kij,kjl->il", a.astype("float32"), b.astype("float32")))
