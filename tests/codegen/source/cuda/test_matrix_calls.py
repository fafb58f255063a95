"""mma.sync and ldmatrix: every shape against numpy, emulated in several orders of threads; their machine code."""

from __future__ import annotations

import functools
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright import ir
from loopwright.codegen.source.cuda.errors import NeedsNewerGpu, NoSuchInstruction
from loopwright.codegen.source.cuda.mma_shapes import shape_of
from loopwright.runtime.dtype import DataType
from loopwright.runtime.tensor import as_argument
from loopwright.script import from_source
from tests.codegen.source.cuda.disassembly import HAS_NVRTC, sass

RUNS = [("forwards", 0), ("backwards", 0), ("random", 1), ("random", 2)]
MEMORY = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "tf32": "float32",
    "fp32": "float32",
    "fp64": "float64",
    "e4m3": "e4m3_float8",
    "e5m2": "e5m2_float8",
}
# Shapes whose operands lie in words of four bytes, one after the other; the types of A, B and C.
SHAPES = [
    ("m8n8k4", "fp64", "fp64", "fp64"),
    ("m8n8k16", "int8", "int8", "int32"),
    ("m8n8k16", "uint8", "int8", "int32"),
    ("m16n8k4", "tf32", "tf32", "fp32"),
    ("m16n8k8", "tf32", "tf32", "fp32"),
    ("m16n8k8", "fp16", "fp16", "fp32"),
    ("m16n8k8", "fp16", "fp16", "fp16"),
    ("m16n8k8", "bf16", "bf16", "fp32"),
    ("m16n8k16", "fp16", "fp16", "fp32"),
    ("m16n8k16", "fp16", "fp16", "fp16"),
    ("m16n8k16", "bf16", "bf16", "fp32"),
    ("m16n8k16", "int8", "uint8", "int32"),
    ("m16n8k32", "int8", "int8", "int32"),
    ("m16n8k32", "uint8", "uint8", "int32"),
    ("m16n8k32", "e4m3", "e4m3", "fp32"),
    ("m16n8k32", "e4m3", "e5m2", "fp32"),
]

PRODUCT = """
@T.prim_func
def main(A: T.Buffer((M, K), "TA"), B: T.Buffer((8, K), "TB"), C: T.Buffer((M, 8), "TC")):
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 32)
    a = T.decl_buffer(M * K // 32, "TA", scope="local")
    b = T.decl_buffer(K // 4, "TB", scope="local")
    c = T.decl_buffer(M // 4, "TC", scope="local")
    for i in range(M * K // 32):
        a[i] = A[tx // 4 + i // W % (M // 8) * 8, i // W // (M // 8) * (4 * W) + tx % 4 * W + i % W]
    for i in range(K // 4):
        b[i] = B[tx // 4, i // W * (4 * W) + tx % 4 * W + i % W]
    for i in range(M // 4):
        c[i] = C[tx // 4 + i // 2 * 8, tx % 4 * 2 + i % 2]
    T.ptx_mma("TC", "SHAPE", "row", "col", "NA", "NB", "NC", a.data, 0, b.data, 0, c.data, 0, SAT)
    for i in range(M // 4):
        C[tx // 4 + i // 2 * 8, tx % 4 * 2 + i % 2] = c[i]
"""


def product(name: str, a: str, b: str, c: str, saturates: bool = False) -> str:
    shape = shape_of(name, a, b, c)
    ta, tb, tc = [MEMORY.get(kind, kind) for kind in (a, b, c)]
    word = max(1, 32 // DataType(ta).bits)
    text = PRODUCT
    for old, new in {
        "SHAPE": name,
        "SAT": str(saturates),
        "TA": ta,
        "TB": tb,
        "TC": tc,
        "NA": a,
        "NB": b,
        "NC": c,
        "M": str(shape.m),
        "K": str(shape.k),
        "W": str(word),
    }.items():
        text = re.sub(rf"\b{old}\b", new, text)
    return text


def built(texts: dict[str, str], arch: str = "sm_90") -> Any:
    programs = {name: from_source(text.replace("def main", f"def {name}")) for name, text in texts.items()}
    return lw.build(ir.IRModule(programs), target=f"cuda -model=emulated -arch={arch}")


@functools.cache
def products() -> Any:
    texts = {"_".join(shape): product(*shape) for shape in SHAPES}
    texts["saturating"] = product("m16n8k32", "int8", "int8", "int32", saturates=True)
    return built(texts)


def call(module: Any, name: str, *arrays: np.ndarray) -> None:
    module[name](*map(as_argument, arrays))


def numbers(shape: tuple[int, ...], kind: str, seed: int) -> np.ndarray:
    """Integers on which sums of products are exact."""
    rng = np.random.default_rng(seed)
    dtype = {"bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}.get(kind)
    if kind in ("int8", "uint8", "int32"):
        low, high = max(np.iinfo(kind).min, -(2**20)), min(np.iinfo(kind).max, 2**20)
        return rng.integers(low, high, shape, dtype="int64", endpoint=True).astype(kind)
    return rng.integers(-6, 7, shape).astype(dtype or MEMORY[kind])


@pytest.mark.parametrize("shape", SHAPES, ids="_".join)
def test_a_product_adds_to_what_is_there(shape: tuple[str, str, str, str]):
    name, a_type, b_type, c_type = shape
    m, k = shape_of(*shape).m, shape_of(*shape).k
    a, b, c = numbers((m, k), a_type, 0), numbers((8, k), b_type, 1), numbers((m, 8), c_type, 2)
    wide = np.int64 if c_type == "int32" else np.float64
    expected = (c.astype(wide) + a.astype(wide) @ b.astype(wide).T).astype(c.dtype)
    for order, seed in RUNS:
        products().set_thread_order(order, seed)
        result = c.copy()
        call(products(), "_".join(shape), a, b, result)
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", ["saturating", "m16n8k32_int8_int8_int32"])
def test_sums_of_integers_wrap_around_or_saturate(name: str):
    a, b = np.full((16, 32), 127, "int8"), np.full((8, 32), 127, "int8")
    c = np.full((16, 8), 2**31 - 5, "int32")
    call(products(), name, a, b, c)
    wrapped = (2**31 - 5 + 32 * 127 * 127 + 2**31) % 2**32 - 2**31
    assert (c == (2**31 - 1 if name == "saturating" else wrapped)).all()


def test_float16_sums_are_rounded_once():
    a, b, c = np.zeros((16, 16), "float16"), np.zeros((8, 16), "float16"), np.zeros((16, 8), "float16")
    a[0, :3], b[0, :3] = [2048, 1, 1], [1, 1, 1]  # 2049 would be rounded to 2048
    a[1, 0], b[1, 0] = 60000, 2
    a[2, 0], b[2, 0] = 2.0**-14, 2.0**-9
    a[3, 0], b[3, 0] = np.nan, 1
    call(products(), "m16n8k16_fp16_fp16_fp16", a, b, c)
    assert c[0, 0] == 2050 and np.isinf(c[1, 1]) and c[2, 2] == 2.0**-23 and np.isnan(c[3, 3])


def test_small_floats_have_their_special_values():
    a = np.zeros((16, 32), ml_dtypes.float8_e4m3fn)
    b = np.zeros((8, 32), ml_dtypes.float8_e5m2)
    c = np.zeros((16, 8), "float32")
    a[0, 0], b[0, 0] = 448, 57344
    a[1, 0], b[1, 0] = 2.0**-9, 2.0**-16
    a[2, 0], b[2, 0] = np.nan, 1
    a[3, 0], b[3, 0] = 1, np.inf
    call(products(), "m16n8k32_e4m3_e5m2_fp32", a, b, c)
    assert c[0, 0] == 448 * 57344 and c[1, 1] == 2.0**-25 and np.isnan(c[2, 2]) and np.isinf(c[3, 3])


def test_tf32_drops_the_lower_bits():
    a, b, c = np.zeros((16, 8), "float32"), np.zeros((8, 8), "float32"), np.zeros((16, 8), "float32")
    a[0, 0], b[0, 0] = 1 + 2.0**-10 + 2.0**-11, 1
    call(products(), "m16n8k8_tf32_tf32_fp32", a, b, c)
    assert c[0, 0] == 1 + 2.0**-10


# --- m8n8k4 of float16 --------------------------------------------------------------------------------------------

# Four products: the lanes of quad q have rows and columns 4 q … 4 q + 3 in the first half, and those 16 after them.
QUADS = """
@T.prim_func
def main(A: T.Buffer((4, 8, 4), "float16"), B: T.Buffer((4, 4, 8), "float16"), C: T.Buffer((4, 8, 8), "TC")):
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 32)
    a = T.decl_buffer(4, "float16", scope="local")
    b = T.decl_buffer(4, "float16", scope="local")
    c = T.decl_buffer(8, "TC", scope="local")
    for i in range(4):
        a[i] = A[tx % 16 // 4, FROM_A]
        b[i] = B[tx % 16 // 4, FROM_B]
    for i in range(8):
        c[i] = C[tx % 16 // 4, AT_C]
    T.ptx_mma("TC", "m8n8k4", "LA", "LB", "fp16", "fp16", "NC", a.data, 0, b.data, 0, c.data, 0, False)
    for i in range(8):
        C[tx % 16 // 4, AT_C] = c[i]
"""
FROM_A = {"row": "tx % 4 + tx // 16 * 4, i", "col": "i + tx // 16 * 4, tx % 4"}
FROM_B = {"row": "tx % 4, i + tx // 16 * 4", "col": "i, tx % 4 + tx // 16 * 4"}
AT_C = {
    "fp16": "tx % 4 + tx // 16 * 4, i",
    "fp32": "tx % 2 + i // 2 % 2 * 2 + tx // 16 * 4, i // 4 * 4 + tx // 2 % 2 * 2 + i % 2",
}


@functools.cache
def quads() -> Any:
    texts = {}
    for c in ("fp16", "fp32"):
        for left in ("row", "col"):
            for right in ("row", "col"):
                text = QUADS.replace("FROM_A", FROM_A[left].replace("A_", "")).replace("FROM_B", FROM_B[right])
                text = text.replace("AT_C", AT_C[c]).replace("TC", MEMORY[c]).replace("NC", c)
                texts[f"{c}_{left}_{right}"] = text.replace('"LA"', f'"{left}"').replace('"LB"', f'"{right}"')
    return built(texts, "sm_70")


@pytest.mark.parametrize("c_type", ["fp16", "fp32"])
@pytest.mark.parametrize("left", ["row", "col"])
@pytest.mark.parametrize("right", ["row", "col"])
def test_four_products_of_eight_lanes(c_type: str, left: str, right: str):
    a, b, c = numbers((4, 8, 4), "fp16", 0), numbers((4, 4, 8), "fp16", 1), numbers((4, 8, 8), c_type, 2)
    expected = c + (a.astype("float32") @ b.astype("float32")).astype(c.dtype)
    for order, seed in RUNS[:3]:
        quads().set_thread_order(order, seed)
        result = c.copy()
        call(quads(), f"{c_type}_{left}_{right}", a, b, result)
        np.testing.assert_array_equal(result, expected)


# --- ldmatrix -----------------------------------------------------------------------------------------------------

LOAD = """
@T.prim_func
def main(A: T.Buffer((32, 8), "float16"), B: T.Buffer((32, 8), "float16")):
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.decl_buffer(256, "float16", scope="shared")
    L = T.decl_buffer(8, "float16", scope="local")
    for j in range(8):
        S[tx * 8 + j] = A[tx, j]
        L[j] = T.float16(-1)
    T.tvm_storage_sync("shared")
    T.ptx_ldmatrix("float16", TRANS, COUNT, ".b16", L.data, 0, S.data, tx * 8)
    for j in range(8):
        B[j // 2 * 8 + tx // 4, tx % 4 * 2 + j % 2] = L[j]
"""


def load(count: int, transposes: bool) -> str:
    return LOAD.replace("TRANS", str(transposes)).replace("COUNT", str(count))


@functools.cache
def loads() -> Any:
    texts = {f"x{count}_{transposes}": load(count, transposes) for count in (1, 2, 4) for transposes in (False, True)}
    texts["pointer"] = load(4, False).replace("S.data, tx * 8", 'S.access_ptr("r", offset=tx * 4), tx * 4')
    texts["element"] = load(4, False).replace("S.data, tx * 8", "T.address_of(S[tx * 8]), 0")
    texts["odd"] = load(4, False).replace("S.data, tx * 8", "S.data, tx * 7")
    texts["outside"] = load(4, False).replace("S.data, tx * 8", "S.data, tx * 8 + 131072")
    texts["lanes"] = load(4, False).replace("    T.ptx_ldm", "    if tx < 16:\n        T.ptx_ldm")
    texts["few"] = load(4, False).replace('"threadIdx.x", 32', '"threadIdx.x", 16')
    return built(texts)


@pytest.mark.parametrize("transposes", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_matrices_are_loaded_by_rows_that_lanes_point_to(count: int, transposes: bool):
    a = np.arange(256, dtype="float16").reshape(32, 8)
    matrices = a.reshape(4, 8, 8).transpose(0, 2, 1) if transposes else a.reshape(4, 8, 8)
    expected = np.where(np.arange(4)[:, None, None] < count, matrices, -1).reshape(32, 8)
    for order, seed in RUNS:
        loads().set_thread_order(order, seed)
        b = np.zeros((32, 8), "float16")
        call(loads(), f"x{count}_{transposes}", a, b)
        np.testing.assert_array_equal(b, expected)


@pytest.mark.parametrize("name", ["pointer", "element"])
def test_pointers_of_all_kinds(name: str):
    a, b = np.arange(256, dtype="float16").reshape(32, 8), np.zeros((32, 8), "float16")
    call(loads(), name, a, b)
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("odd", "has a part of a matrix at an address that is no multiple of its words"),
        ("outside", "loads a row of a matrix that is not all in shared memory"),
        ("lanes", "comes to an instruction of all 32 lanes of a warp, and some are not there"),
        ("few", "comes to an instruction of all 32 lanes of a warp, and some are not there"),
    ],
)
def test_the_emulation_stops(name: str, message: str):
    loads().set_thread_order("forwards", 0)
    with pytest.raises(RuntimeError, match=message):
        call(loads(), name, np.zeros((32, 8), "float16"), np.zeros((32, 8), "float16"))


# --- refusals -----------------------------------------------------------------------------------------------------

WRONG = [
    ('"m16n8k16", "row"', '"m16n8k17", "row"', "there is no shape m16n8k17; there are m8n8k4"),
    ('"fp16", "fp16", "fp32"', '"fp16", "fp16", "fp64"', r"m16n8k16 takes f16 with f16/f32, .* got f16, f16 with f64"),
    ('"fp16", "fp16", "fp32"', '"fp16", "int4", "fp32"', "int4 is no type of elements"),
    ('"row", "col"', '"col", "col"', "m16n8k16 has A by row and B by col; got col and col"),
    ("c.data, 0, False", "c.data, 0, True", "of f32 sums does not saturate"),
    ("c.data, 0, False", "c.data, False", "got 12 arguments"),
    ("c.data, 0, False", 'c.data, 0, False, "xor"', "of bits, with an operator, is not supported"),
    ("c.data, 0, False", "C.data, 0, False", "has its operands in local memory; C is global"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_products_that_no_gpu_has(old: str, new: str, message: str):
    text = product("m16n8k16", "fp16", "fp16", "fp32")
    assert old in text
    with pytest.raises(NoSuchInstruction, match=message):
        lw.build(from_source(text.replace(old, new)), target="cuda -arch=sm_90")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("False, 4, ", "False, 3, ", "loads 1, 2 or 4 matrices, a constant; got 3"),
        ('".b16"', '".b32"', r'loads matrices of "\.b16"'),
        ("S.data, tx * 8)", "A.data, tx * 8)", "loads from shared memory; A lies in global memory"),
        ('"float16", False, 4', '"int8", True, 2', "transposes elements of 16 bits; those of int8 have 8"),
        ("S.data, tx * 8)", "S.data)", "got 6 arguments"),
    ],
)
def test_loads_that_no_gpu_has(old: str, new: str, message: str):
    text = load(4, False)
    assert old in text
    with pytest.raises(NoSuchInstruction, match=message):
        lw.build(from_source(text.replace(old, new)), target="cuda -arch=sm_90")


@pytest.mark.parametrize(
    ("shape", "arch", "needed"),
    [
        (("m16n8k16", "fp16", "fp16", "fp32"), "sm_75", "sm_80"),
        (("m16n8k8", "fp16", "fp16", "fp32"), "sm_70", "sm_75"),
        (("m16n8k32", "e4m3", "e4m3", "fp32"), "sm_80", "sm_89"),
    ],
)
def test_older_gpus_are_refused(shape: tuple[str, str, str, str], arch: str, needed: str):
    with pytest.raises(NeedsNewerGpu, match=f"ptx_mma needs {needed}, and the target is {arch}"):
        lw.build(from_source(product(*shape)), target=f"cuda -arch={arch}")


@pytest.mark.skipif(not HAS_NVRTC, reason="NVRTC is not installed")
@pytest.mark.parametrize("shape", SHAPES, ids="_".join)
def test_machine_code_has_the_instruction_and_keeps_operands_in_registers(shape: tuple[str, str, str, str]):
    code = sass(from_source(product(*shape)), "sm_90")
    wanted = {"int32": "IMMA", "fp64": "DMMA"}.get(shape[3], "MMA")
    assert wanted in code and "LDL" not in code and "STL" not in code


@pytest.mark.skipif(not HAS_NVRTC, reason="NVRTC is not installed")
def test_machine_code_of_loads():
    assert "LDSM.16.M88.4" in sass(from_source(load(4, False)), "sm_90")
    assert "LDSM.16.MT88.2" in sass(from_source(load(2, True)), "sm_90")
