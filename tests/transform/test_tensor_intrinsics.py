"""The tensor intrinsics of machines we know: LLVM knows their names, and they compute what they say."""

from __future__ import annotations

import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import loopwright
from loopwright import te, tir
from loopwright.codegen.llvm.emit_module import emit_module
from loopwright.codegen.llvm.engine import compile_text
from loopwright.evaluator import evaluate
from loopwright.ir import Call, IRModule, PrimFunc, StringImm, pre_order_visit
from loopwright.runtime import amx
from loopwright.runtime.errors import NotBuilt
from loopwright.schedule import Schedule
from loopwright.script import tir as T
from loopwright.target import Target, describe
from loopwright.tir.tensor_intrin.cuda import (
    get_mma_intrin_group,
    get_wmma_intrin_group,
    ldmatrix_32x8_to_shared_16x16_layout,
)
from loopwright.transform.pipeline import lower, stages
from loopwright.transform.tensor_intrinsics import TensorIntrin, built_in_names
from loopwright.transform.tensor_intrinsics.check import IntrinsicDisagrees, check_intrinsic
from loopwright.transform.tensor_intrinsics.registry import _BUILT_IN, UnknownIntrinsic
from loopwright.transform.tensor_intrinsics.x86_amx import amx_dot

FEATURES = describe("llvm").features
X86 = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=sapphirerapids"
ARM = "llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1"
has_vnni = pytest.mark.skipif("avx512vnni" not in FEATURES, reason="this machine has no AVX-512 VNNI")
has_amx = pytest.mark.skipif("amx-int8" not in FEATURES or bool(amx.ask()), reason="this machine has no AMX")


def dot_product(m: int, n: int, k: int, types: tuple[str, str, str], lanes: int, side: int) -> PrimFunc:
    """C = A · B, B packed as [columns / lanes, k / side, lanes, side]."""
    a, b, c = types
    A, B = te.placeholder((m, k), a, name="A"), te.placeholder((n // lanes, k // side, lanes, side), b, name="B")
    r = te.reduce_axis((0, k), "k")

    def product(i, j):
        return te.sum(A[i, r].astype(c) * B[j // lanes, r // side, j % lanes, r % side].astype(c), axis=r)

    return te.create_prim_func([A, B, te.compute((m, n), product, name="C")])


def scheduled(function: PrimFunc, name: str, tile: tuple[int, int, int]) -> Schedule:
    sch = Schedule(function)
    loops = sch.get_loops("C")
    (i_0, i_1), (j_0, j_1), (k_0, k_1) = (sch.split(x, [None, s]) for x, s in zip(loops, tile, strict=True))
    sch.reorder(i_0, j_0, k_0, i_1, j_1, k_1)
    sch.tensorize(j_1 if tile[0] == 1 else i_1, name)
    return sch


def numbers(function: PrimFunc, seed: int = 0) -> list[np.ndarray]:
    random, made = np.random.default_rng(seed), []
    for buffer in function.argument_buffers()[:-1]:
        shape = [int(n) for n in buffer.shape]
        if buffer.dtype.is_float:
            made.append(random.integers(-4, 5, shape).astype(buffer.dtype.numpy()))
        else:
            low, high = buffer.dtype.min_value(), buffer.dtype.max_value()
            made.append(random.integers(low, high, shape, endpoint=True).astype(buffer.dtype.numpy()))
    result = function.argument_buffers()[-1]
    return [*made, np.zeros([int(n) for n in result.shape], result.dtype.numpy())]


def product_of(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    wide = b.transpose(1, 3, 0, 2).reshape(b.shape[1] * b.shape[3], -1)
    return a.astype(np.float64) @ wide.astype(np.float64)


# --- names --------------------------------------------------------------------------------------------------------


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", list(_BUILT_IN))
def test_llvm_knows_the_instructions(name):
    """LLVM accepts each declaration as it stands (an old one it would upgrade), and makes code of the call."""
    intrin = TensorIntrin.get(name)
    target = ARM if _BUILT_IN[name] == "neon" else X86
    function = intrin.impl.with_attr("global_symbol", "main")
    lowered = lower(IRModule({"main": function}), target)
    used: set[str] = set()

    def look(node: object) -> None:
        if isinstance(node, Call) and "llvm" in node.op.name and isinstance(node.args[0], StringImm):
            used.add(node.args[0].value)

    pre_order_visit(lowered["main"].body, look)
    compiled = compile_text(emit_module(lowered, describe(target)), describe(target))
    declared = [line for line in compiled.ll.splitlines() if line.startswith("declare") and "@llvm." in line]
    for symbol in used:
        (mine,) = [line for line in declared if f"@{symbol}(" in line]
        assert _signature(mine) == _signature(_canonical(mine, symbol)), "LLVM takes other types now"
    assert compiled.asm()


def _canonical(declaration: str, symbol: str) -> str:
    """The declaration as LLVM prints it back."""
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(declaration)
    return next(line for line in str(module).splitlines() if line.startswith("declare") and symbol in line)


def _signature(line: str) -> str:
    head, _, rest = line.partition("(")
    types = [part.replace(" immarg", "").strip() for part in rest.split(")")[0].split(",")]
    return f"{head.split()[1:]} {types}"


def test_the_list_of_names_is_complete():
    for name in built_in_names():
        assert TensorIntrin.get(name).name == name


# --- on this machine ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, file in _BUILT_IN.items() if file == "interleave"])
def test_interleaving_on_any_machine(name):
    check_intrinsic(name)


@has_vnni
def test_vnni_computes_what_it_says():
    check_intrinsic("dot_16x4_vnni")


@has_vnni
@pytest.mark.parametrize(("m", "n", "k"), [(1, 16, 4), (5, 32, 12), (7, 16, 64)])
def test_vnni_product(m, n, k):
    before = dot_product(m, n, k, ("uint8", "int8", "int32"), 16, 4)
    module = loopwright.build(scheduled(before, "dot_16x4_vnni", (1, 16, 4)).mod)
    a, b, c = numbers(before)
    module(a, b, c)
    np.testing.assert_array_equal(c, product_of(a, b))
    assert "vpdpbusd" in module.get_source("asm")


@has_amx
@pytest.mark.parametrize(
    ("tile", "types", "names", "side"),
    [
        ((16, 16, 64), "u8s8s32", ("uint8", "int8", "int32"), 4),
        ((32, 16, 64), "s8s8s32", ("int8", "int8", "int32"), 4),
        ((16, 32, 128), "s8u8s32", ("int8", "uint8", "int32"), 4),
        ((32, 32, 64), "u8u8s32", ("uint8", "uint8", "int32"), 4),
        ((32, 32, 64), "bf16bf16f32", ("bfloat16", "bfloat16", "float32"), 2),
    ],
)
def test_amx_product(tile, types, names, side):
    before = dot_product(64, 64, 128, names, 16, side)
    module = loopwright.build(scheduled(before, amx_dot(*tile, types), tile).mod)
    a, b, c = numbers(before)
    for array in (a, b):
        if array.dtype != ml_dtypes.bfloat16:
            array.setflags(write=False)  # tiles are loaded from, not stored to
    module(a, b, c)
    np.testing.assert_array_equal(c, product_of(a, b))
    assert "tilerelease" in module.get_source("asm")


@has_amx
def test_amx_in_parallel_threads_and_from_a_library(tmp_path):
    before = dot_product(64, 64, 64, ("uint8", "int8", "int32"), 16, 4)
    sch = scheduled(before, "amx_dot_16x16x64_u8s8s32", (16, 16, 64))
    sch.parallel(sch.get_loops("C_o")[0])
    module = loopwright.build(sch.mod)
    a, b, c = numbers(before)
    module(a, b, c)
    np.testing.assert_array_equal(c, product_of(a, b))
    path = str(tmp_path / "product.so")
    module.export_library(path)
    again = np.zeros_like(c)
    loopwright.runtime.load_module(path)(a, b, again)
    np.testing.assert_array_equal(again, c)


def test_one_tile_is_declared_by_its_sizes_before_its_name_is_asked_for(monkeypatch):
    monkeypatch.setattr(TensorIntrin, "known", {})
    assert amx_dot(16, 16, 64) == "amx_dot_16x16x64_u8s8s32"
    assert TensorIntrin.get("amx_dot_16x16x64_s8s8s32") is not None


def test_amx_sizes():
    with pytest.raises(ValueError, match="m is at least 1, n a multiple of 16 and k a multiple of 64; got 8, 24, 64"):
        amx_dot(8, 24, 64)
    with pytest.raises(ValueError, match="types 'f32' are not one of"):
        amx_dot(16, 16, 64, "f32")


def test_a_machine_without_amx(monkeypatch):
    monkeypatch.setattr(amx, "ask", lambda: "no such processor")
    with pytest.raises(amx.AmxNotAllowed, match="this process may not use AMX tiles: no such processor"):
        amx.require()


def test_check_finds_a_lie():
    @T.prim_func
    def desc(A: T.Buffer(4, "int8"), B: T.Buffer(4, "int8")):
        with T.block("root"):
            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi]

    @T.prim_func
    def impl(A: T.Buffer(4, "int8"), B: T.Buffer(4, "int8")):
        with T.block("root"):
            for i in range(4):
                B[i] = T.min(A[i], T.int8(126))

    tir.TensorIntrin.register("test_lie", desc, impl)
    try:
        with pytest.raises(IntrinsicDisagrees, match=r"B\[\d\] is 127 by its description, 126 by its implementation"):
            check_intrinsic("test_lie")
    finally:
        del TensorIntrin.known["test_lie"]


# --- under an emulator --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def emulated():
    """Runs a lowered function as AArch64 code."""
    from tools.check_emulated import MACHINES, prepare, run

    machine = MACHINES["aarch64"]
    if machine.missing:
        pytest.skip(f"{', '.join(machine.missing)} is not installed")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(machine, folder)

        def call(function: PrimFunc, arguments: list[np.ndarray]) -> list[np.ndarray]:
            *_, (_, lowered) = stages(function, Target(machine.target))
            return run(machine, lowered, arguments, folder)

        yield call


@pytest.mark.parametrize(("name", "dtype"), [("dot_4x4_i8i8s32_sdot", "int8"), ("dot_4x4_u8u8s32_udot", "uint8")])
def test_neon_dot_product(emulated, name, dtype):
    before = dot_product(3, 8, 12, (dtype, dtype, "int32"), 4, 4)
    arguments = numbers(before)
    *_, got = emulated(scheduled(before, name, (1, 4, 4)).mod["main"], arguments)
    np.testing.assert_array_equal(got, product_of(*arguments[:2]))


def test_neon_float16(emulated):
    A, B = te.placeholder((3, 5), "float16", name="A"), te.placeholder((5, 16), "float16", name="B")
    r = te.reduce_axis((0, 5), "k")
    before = te.create_prim_func([A, B, te.compute((3, 16), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")])
    sch = Schedule(before)
    i, j, k = sch.get_loops("C")
    j_0, j_1 = sch.split(j, [None, 8])
    sch.reorder(i, j_0, k, j_1)
    sch.tensorize(j_1, "fma_8_f16_neon")
    arguments = numbers(before)
    *_, got = emulated(sch.mod["main"], arguments)
    np.testing.assert_array_equal(got, arguments[0].astype(np.float32) @ arguments[1].astype(np.float32))


WARP_INTRINSICS = [
    *get_wmma_intrin_group("shared", "global", "float16", "float32", True).values(),
    *get_wmma_intrin_group("shared.dyn", "shared.dyn", "int8", "int32", False).values(),
    *get_mma_intrin_group("shared", "global", "float16", "float32", True, True, False).values(),
    *get_mma_intrin_group("shared.dyn", "shared", "e4m3_float8", "float32", False, True).values(),
    "wmma_load_8x32x16_bf16_b_shared",
    "wmma_sync_32x8x16_u8u8s32",
]


@pytest.mark.parametrize("name", WARP_INTRINSICS)
def test_intrinsics_of_warps_are_declared_by_their_names(name):
    intrin = TensorIntrin.get(name)
    assert intrin.name == name and TensorIntrin.get(name) is intrin
    if not name.endswith("simple_"):
        with pytest.raises(NotBuilt, match=f"trying '{name}' by itself, which the lanes of a warp do together"):
            check_intrinsic(name)


NO_NAMES = ["wmma_sync_16x16x16_f16f16s32", "wmma_load_16x16x8_f16_a_shared", "mma_ldmatrix_i8_a_trans", "mma_u8u8i32"]


@pytest.mark.parametrize("name", NO_NAMES)
def test_names_that_mean_no_instruction(name):
    with pytest.raises(UnknownIntrinsic, match=f"there is no tensor intrinsic '{name}'"):
        TensorIntrin.get(name)


def test_groups_name_what_they_were_given_wrong():
    with pytest.raises(ValueError, match=r"load_scope is one of shared, shared\.dyn; got 'global'"):
        get_wmma_intrin_group("global", "global", "float16", "float32", False)
    with pytest.raises(ValueError, match=r"in_dtype is one of float16, bfloat16, int8, .*; got 'int4'"):
        get_mma_intrin_group("shared", "global", "int4", "int32", False, False)


def test_what_a_warp_multiplies_is_described_by_plain_loops():
    """In the layouts of the registers, which the description spells out; the evaluator runs it."""
    a, b = [np.random.default_rng(seed).integers(-3, 4, (16, 16)).astype("float16") for seed in (0, 1)]
    held = [np.zeros((32, 8), "float16"), np.zeros((32, 8), "float16"), np.zeros((32, 8), "float32")]
    evaluate(TensorIntrin.get("mma_ldmatrix_f16_a").desc, held[0], a)
    evaluate(TensorIntrin.get("mma_ldmatrix_f16_b").desc, held[1], b)
    evaluate(TensorIntrin.get("mma_f16f16f32").desc, *held)
    c = np.zeros((16, 16), "float32")
    evaluate(TensorIntrin.get("mma_store_16x16_f32_global_").desc, held[2], c)
    np.testing.assert_array_equal(c, a.astype("float32") @ b.astype("float32"))
    for lane in range(32):
        for k in range(8):
            assert held[2][lane, k] == c[ldmatrix_32x8_to_shared_16x16_layout(lane, k)]
