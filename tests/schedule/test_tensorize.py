"""tensorize: blocks that an instruction computes: matched, marked, lowered to it, and refused with reasons."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright import te, tir
from loopwright.ir import PrimFunc, structural_equal
from loopwright.schedule import Schedule, ScheduleError
from loopwright.schedule.proof.tensorized import IntrinsicMismatch
from loopwright.script import from_source
from loopwright.script import tir as T
from loopwright.transform.passes.use_tensor_intrinsics import NotWhatItNames, use_tensor_intrinsics
from loopwright.transform.tensor_intrinsics import BadIntrinsic, IntrinsicExists, TensorIntrin, UnknownIntrinsic
from tests.schedule.steps import assert_same_numbers, check, refused


@T.prim_func
def mma_desc(A: T.Buffer((4, 4)), B: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
    with T.block("root"):
        for i, j, k in T.grid(4, 4, 4):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]


@T.prim_func
def mma_impl(a: T.handle, b: T.handle, c: T.handle):
    sa, sb, sc = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (4, 4), strides=[sa, 1], offset_factor=1)
    B = T.match_buffer(b, (4, 4), strides=[sb, 1], offset_factor=1)
    C = T.match_buffer(c, (4, 4), strides=[sc, 1], offset_factor=1)
    with T.block("root"):
        # Another order of the same sums: each row of C at once.
        for i, k in T.grid(4, 4):
            for j in T.vectorized(4):
                C[i, j] = C[i, j] + A[i, k] * B[j, k]


@T.prim_func
def dot_desc(A: T.Buffer(4), B: T.Buffer(4), C: T.Buffer(1)):
    with T.block("root"):
        for k in range(4):
            with T.block("update"):
                vk = T.axis.reduce(4, k)
                with T.init():
                    C[0] = 0.0
                C[0] = C[0] + A[vk] * B[vk]


@T.prim_func
def dot_impl(A: T.Buffer(4), B: T.Buffer(4), C: T.Buffer(1)):
    with T.block("root"):
        C[0] = ((A[0] * B[0] + A[1] * B[1]) + A[2] * B[2]) + A[3] * B[3]


@pytest.fixture(autouse=True)
def intrinsics():
    """Intrinsics of these tests, gone afterwards."""
    before = dict(TensorIntrin.known)
    TensorIntrin.register("test_mma", mma_desc, mma_impl)
    TensorIntrin.register("test_dot", dot_desc, dot_impl)
    yield
    TensorIntrin.known.clear()
    TensorIntrin.known.update(before)


def matmul_nt(m: int = 8, n: int = 8, k: int = 8, dtype: str = "float32") -> PrimFunc:
    """C = A · Bᵀ."""
    A, B = te.placeholder((m, k), dtype, name="A"), te.placeholder((n, k), dtype, name="B")
    r = te.reduce_axis((0, k), "k")
    return te.create_prim_func([A, B, te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[j, r], axis=r), name="C")])


def tiles(sch: Schedule, sizes: tuple[int, int, int] = (4, 4, 4)) -> list:
    i, j, k = sch.get_loops("C")
    (i_0, i_1), (j_0, j_1), (k_0, k_1) = (sch.split(x, [None, s]) for x, s in zip((i, j, k), sizes, strict=True))
    sch.reorder(i_0, j_0, k_0, i_1, j_1, k_1)
    return [i_0, j_0, k_0, i_1, j_1, k_1]


def natively(sch: Schedule, before: PrimFunc) -> None:
    """The built program gives what the evaluator gives for the one before, on small whole numbers."""
    assert_same_numbers(sch.mod["main"], before)
    random = np.random.default_rng(0)
    arrays = [random.integers(0, 5, [int(n) for n in b.shape]).astype(b.dtype) for b in before.argument_buffers()]
    wanted, got = [a.copy() for a in arrays], [a.copy() for a in arrays]
    loopwright.build(before)(*wanted)
    loopwright.build(sch.mod)(*got)
    for a, b in zip(wanted, got, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_tile_is_marked_and_lowered():
    before = matmul_nt()
    sch = Schedule(before)
    loops = tiles(sch)
    sch.tensorize(loops[3], "test_mma")
    outer = sch.get(sch.get_block("C_o"))
    assert outer.annotations["tensor_intrin"] == "test_mma"
    check(sch, before)
    natively(sch, before)
    used = use_tensor_intrinsics(sch.mod["main"])

    @T.prim_func
    def expected(A: T.Buffer((8, 8)), B: T.Buffer((8, 8)), C: T.Buffer((8, 8))):
        T.func_attr({"tir.noalias": True})
        for i_0, j_0, k_0 in T.grid(2, 2, 2):
            with T.block("C_o"):
                vi, vj, vk = T.axis.remap("SSR", [i_0, j_0, k_0])
                T.reads(A[vi * 4 : vi * 4 + 4, vk * 4 : vk * 4 + 4], B[vj * 4 : vj * 4 + 4, vk * 4 : vk * 4 + 4])
                T.writes(C[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4])
                sa, sb, sc = T.int32(), T.int32(), T.int32()
                oa, ob, oc = T.int32(), T.int32(), T.int32()
                a = T.match_buffer(
                    A[vi * 4 : vi * 4 + 4, vk * 4 : vk * 4 + 4],
                    (4, 4),
                    strides=[sa, 1],
                    elem_offset=oa,
                    offset_factor=1,
                )
                b = T.match_buffer(
                    B[vj * 4 : vj * 4 + 4, vk * 4 : vk * 4 + 4],
                    (4, 4),
                    strides=[sb, 1],
                    elem_offset=ob,
                    offset_factor=1,
                )
                c = T.match_buffer(
                    C[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4],
                    (4, 4),
                    strides=[sc, 1],
                    elem_offset=oc,
                    offset_factor=1,
                )
                with T.init():
                    for i_1, j_1 in T.grid(4, 4):
                        with T.block("C_init"):
                            wi = T.axis.spatial(8, vi * 4 + i_1)
                            wj = T.axis.spatial(8, vj * 4 + j_1)
                            T.reads()
                            T.writes(C[wi, wj])
                            C[wi, wj] = T.float32(0)
                for i, k in T.grid(4, 4):
                    for j in T.vectorized(4):
                        c[i, j] = c[i, j] + a[i, k] * b[j, k]

    assert structural_equal(used.without_attr("global_symbol"), expected.without_attr("global_symbol"))


def test_loops_in_any_order_and_split_further():
    before = matmul_nt()
    for order in ([5, 4, 3], [4, 5, 3]):
        sch = Schedule(before)
        loops = tiles(sch)
        sch.reorder(*[loops[k] for k in order])
        a, b = sch.split(loops[order[1]], [2, 2])
        sch.reorder(b, a)
        sch.tensorize(loops[order[0]], "test_mma")
        natively(sch, before)


def test_loops_fused():
    before = matmul_nt()
    sch = Schedule(before)
    loops = tiles(sch)
    fused = sch.fuse(loops[3], loops[4])
    sch.tensorize(fused, "test_mma")
    natively(sch, before)


def test_operands_in_the_other_order():
    A, B = te.placeholder((4, 4), name="A"), te.placeholder((4, 4), name="B")
    r = te.reduce_axis((0, 4), "k")
    C = te.compute((4, 4), lambda i, j: te.sum(B[j, r] * A[i, r], axis=r), name="C")
    before = te.create_prim_func([A, B, C])
    sch = Schedule(before)
    sch.tensorize(sch.get_loops("C")[0], "test_mma")
    natively(sch, before)


def test_leading_dimensions_stand_still():
    A, B = te.placeholder((3, 8, 4), name="A"), te.placeholder((8, 4), name="B")
    r = te.reduce_axis((0, 4), "k")
    C = te.compute((3, 2, 8, 8), lambda n, m, i, j: te.sum(A[n, i, r] * B[j, r], axis=r), name="C")
    before = te.create_prim_func([A, B, C])
    sch = Schedule(before)
    n, m, i, j, k = sch.get_loops("C")
    i_0, i_1 = sch.split(i, [None, 4])
    j_0, j_1 = sch.split(j, [None, 4])
    sch.reorder(i_0, j_0, i_1, j_1, k)
    sch.tensorize(i_1, "test_mma")
    natively(sch, before)


def test_a_packed_operand_and_a_block_form():
    before = matmul_nt()
    sch = Schedule(before)
    loops = tiles(sch)
    sch.stage("C", loops[2], "B", layout=lambda j, k: (j // 4, k // 4, j % 4, k % 4))
    outer = sch.blockize(loops[3])
    sch.tensorize(outer, "test_mma")
    sch.parallel(loops[0])
    natively(sch, before)


def test_later_steps_around_the_tile():
    before = matmul_nt()
    sch = Schedule(before)
    i_0, j_0, k_0, i_1, *_ = tiles(sch)
    sch.tensorize(i_1, "test_mma")
    sch.reorder(k_0, i_0)
    sch.parallel(j_0)
    sch.decompose_reduction("C_o", k_0)
    check(sch, before)
    natively(sch, before)


def test_an_intrinsic_that_writes_the_start_value():
    before = matmul_nt(3, 5, 4)
    sch = Schedule(before)
    sch.tensorize(sch.get_loops("C")[2], "test_dot")
    assert sch.get(sch.get_block("C_o")).init is None
    natively(sch, before)
    sch = Schedule(matmul_nt(3, 5, 8))
    _, k_1 = sch.split(sch.get_loops("C")[2], [None, 4])
    message = r"tensorize would change a value|could not be proved"
    refused(sch, ScheduleError, message, "tensorize", k_1, "test_dot")


def test_one_function_with_several_uses():
    A = te.placeholder((4, 4), name="A")
    r, s = te.reduce_axis((0, 4), "r"), te.reduce_axis((0, 4), "s")
    B = te.compute((4, 4), lambda i, j: te.sum(A[i, r] * A[j, r], axis=r), name="B")
    C = te.compute((4, 4), lambda i, j: te.sum(B[i, s] * A[j, s], axis=s), name="C")
    before = te.create_prim_func([A, C])
    sch = Schedule(before)
    for name in ("B", "C"):
        sch.tensorize(sch.get_loops(name)[0], "test_mma")
    natively(sch, before)


def test_the_trace_says_what_it_relies_on():
    sch = Schedule(matmul_nt())
    sch.tensorize(tiles(sch)[3], "test_mma")
    assert sch.trace.relies_on == ["test_mma"]
    assert str(sch.trace).startswith("# relies on tensor intrinsics doing what they describe: test_mma")
    assert sch.is_proved and sch.trace.is_proved


# --- mismatches ---------------------------------------------------------------------------------------------------


def test_wrong_extents():
    sch = Schedule(matmul_nt())
    loops = tiles(sch, (4, 8, 4))
    error = refused(
        sch,
        IntrinsicMismatch,
        r"block 'C_o' is not what 'test_mma' describes: loop j of the description has extent 4, here j_1 has 8",
        "tensorize",
        loops[3],
        "test_mma",
    )
    assert error.fields["differs"] == "extent"
    assert "split j_1 into [None, 4], and have the tile hold its inner part only" in str(error)


def test_a_loop_too_many():
    before = matmul_nt()
    sch = Schedule(before)
    loops = tiles(sch, (4, 4, 2))
    message = "loop k of the description has extent 4, here k_1 has 2"
    error = refused(sch, IntrinsicMismatch, message, "tensorize", loops[3], "test_mma")
    assert error.fields["intrinsic"] == "test_mma"


def test_wrong_types():
    sch = Schedule(matmul_nt(dtype="float64"))
    error = refused(sch, IntrinsicMismatch, "C is float32, but C is float64", "tensorize", tiles(sch)[3], "test_mma")
    assert error.fields["differs"] == "dtype"


def variant(value):
    A, B = te.placeholder((4, 4), name="A"), te.placeholder((4, 4), name="B")
    r = te.reduce_axis((0, 4), "k")
    C = te.compute((4, 4), lambda i, j: te.sum(value(A, B, i, j, r), axis=r), name="C")
    sch = Schedule(te.create_prim_func([A, B, C]))
    return sch, sch.get_loops("C")[0]


@pytest.mark.parametrize(
    ("value", "what", "message"),
    [
        (
            lambda A, B, i, j, r: A[i, r] + B[j, r],
            "expression",
            r"it computes A\[.*\] \+ B\[.*\] where the description has A\[i, k\] \* B",
        ),
        (lambda A, B, i, j, r: A[i, r] * 2.0, "expression", r"it computes .* where the description has"),
        (
            lambda A, B, i, j, r: A[i, r] * B[r, j],
            "access",
            r"index 0 of B\[.*\] moves by k in the tile, index 0 of B\[j, k\] in the description by j",
        ),
        (lambda A, B, i, j, r: A[i, r] * B[j, 3 - r], "access", r"index 1 of B\[.*\] moves by k \* -1|moves by"),
        (
            lambda A, B, i, j, r: te.exp(A[i, r]) * B[j, r],
            "expression",
            r"T.exp\(A\[.*\]\) where the description has A\[i, k\]",
        ),
        (lambda A, B, i, j, r: A[i, r] * A[j, r] * B[j, r], "expression", r"where the description has"),
    ],
)
def test_other_computations(value, what, message):
    sch, loop = variant(value)
    error = refused(sch, IntrinsicMismatch, message, "tensorize", loop, "test_mma")
    assert error.fields["differs"] == what


def test_a_tile_that_is_not_contiguous():
    @T.prim_func
    def desc(A: T.Buffer((4, 4)), B: T.Buffer((4, 4))):
        with T.block("root"):
            for i, j in T.grid(4, 4):
                with T.block("copy"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]

    @T.prim_func
    def impl(A: T.Buffer((4, 4)), B: T.Buffer((4, 4))):
        with T.block("root"):
            B[0, T.ramp(0, 1, 16)] = A[0, T.ramp(0, 1, 16)]

    @T.prim_func
    def copy(A: T.Buffer((4, 8)), B: T.Buffer((8, 4))):
        for o, i, j in T.grid(2, 4, 4):
            with T.block("B"):
                vo, vi, vj = T.axis.remap("SSS", [o, i, j])
                B[vo * 4 + vi, vj] = A[vi, vo * 4 + vj]

    TensorIntrin.register("test_copy", desc, impl)
    sch = Schedule(copy)
    error = refused(
        sch,
        IntrinsicMismatch,
        "the tile of A is not contiguous: in dimension 0 of A the elements are 8 apart, the intrinsic needs 4",
        "tensorize",
        sch.get_loops("B")[1],
        "test_copy",
    )
    assert error.fields["differs"] == "access"
    sch.stage("B", sch.get_loops("B")[0], "A")
    sch.tensorize(sch.get_loops("B")[1], "test_copy")
    natively(sch, copy)


def test_memory_that_is_read_and_written():
    @T.prim_func
    def update(A: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
        for i, j, k in T.grid(4, 4, 4):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + C[vi, vk] * A[vj, vk]

    sch = Schedule(update)
    loop = sch.get_loops("C")[0]
    refused(sch, IntrinsicMismatch, "C and A of the description would both be C", "tensorize", loop, "test_mma")


def test_a_step_may_not_change_what_an_intrinsic_computes():
    A, B = te.placeholder((4, 4), name="A"), te.placeholder((4, 4), name="B")
    r = te.reduce_axis((0, 4), "k")
    D = te.compute((4, 4), lambda i, j: A[i, j] + 1.0, name="D")
    C = te.compute((4, 4), lambda i, j: te.sum(D[i, r] * B[j, r], axis=r), name="C")
    before = te.create_prim_func([A, B, C])
    sch = Schedule(before)
    sch.tensorize(sch.get_loops("C")[0], "test_mma")
    error = refused(
        sch, IntrinsicMismatch, "compute_inline: block 'C_o' is not what 'test_mma' describes", "compute_inline", "D"
    )
    assert "where the description has A[i, k]" in str(error)
    natively(sch, before)


def test_a_guarded_tile():
    sch = Schedule(matmul_nt(6, 8, 8))
    loops = tiles(sch)
    with pytest.raises(ScheduleError, match="cuts tiles over the loops"):
        sch.tensorize(loops[3], "test_mma")


# --- the registry -------------------------------------------------------------------------------------------------


def test_names():
    sch = Schedule(matmul_nt())
    loops = tiles(sch)
    with pytest.raises(UnknownIntrinsic, match="there is no tensor intrinsic 'test_nothing'"):
        sch.tensorize(loops[3], "test_nothing")
    assert tir.TensorIntrin.get("test_nothing", allow_missing=True) is None
    with pytest.raises(IntrinsicExists, match="'test_mma' exists already"):
        tir.TensorIntrin.register("test_mma", mma_desc, mma_impl)
    with pytest.raises(IntrinsicExists, match="'dot_16x4_vnni' exists already"):
        tir.TensorIntrin.register("dot_16x4_vnni", mma_desc, mma_impl)
    made = tir.TensorIntrin.register("test_mma", mma_desc, mma_desc, override=True)
    assert tir.TensorIntrin.get("test_mma") is made
    assert made.desc is mma_desc and made.impl is mma_desc


@T.prim_func
def wider(A: T.Buffer((4, 8)), B: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
    with T.block("root"):
        C[0, 0] = A[0, 0] + B[0, 0]


@T.prim_func
def other_type(A: T.Buffer((4, 4), "float64"), B: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
    with T.block("root"):
        C[0, 0] = B[0, 0]


@T.prim_func
def fewer(A: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
    with T.block("root"):
        C[0, 0] = A[0, 0]


@T.prim_func
def scalar(A: T.Buffer((4, 4)), B: T.Buffer((4, 4)), n: T.int32):
    with T.block("root"):
        B[0, 0] = A[0, n]


@T.prim_func
def corner(A: T.Buffer((4, 4)), B: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
    with T.block("root"):
        for i, j in T.grid(2, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + B[vi, vj]


@T.prim_func
def overwriting(A: T.Buffer((4, 4)), B: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
    with T.block("root"):
        for i, j, k in T.grid(4, 4, 4):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                C[vi, vj] = A[vi, vk] + B[vj, vk]


@T.prim_func
def shifting(A: T.Buffer((4, 4)), B: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
    with T.block("root"):
        for i, j in T.grid(4, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = C[vj, vi] + A[vi, vj] + B[vi, vj]


@pytest.mark.parametrize(
    ("desc", "impl", "message"),
    [
        (mma_desc, wider, r"A has shape \(4, 4\) in desc, A has shape \(4, 8\) in impl"),
        (mma_desc, other_type, r"A is float32 in desc, A is float64 in impl"),
        (mma_desc, fewer, r"desc has 3 parameters, impl has 2"),
        (mma_desc, scalar, r"parameter n of impl is no buffer"),
        (corner, mma_impl, r"the description uses A from 0 to 1 in dimension 0, whose extent is 4"),
        (overwriting, mma_impl, r"stores one cell of C in several iterations of k"),
        (shifting, mma_impl, r"loads C at another cell than it stores"),
        ("text", mma_impl, r"desc must be a PrimFunc, got str"),
    ],
)
def test_intrinsics_that_make_no_sense(desc, impl, message):
    with pytest.raises(BadIntrinsic, match=message):
        tir.TensorIntrin.register("test_bad", desc, impl)


def test_a_mark_that_is_not_true():
    @T.prim_func
    def marked(A: T.Buffer(4), B: T.Buffer(4)):
        with T.block("B"):
            T.block_attr({"tensor_intrin": "test_mma"})
            for i in range(4):
                B[i] = A[i]

    with pytest.raises(NotWhatItNames, match="block 'B' names the tensor intrinsic 'test_mma', but is not what"):
        loopwright.lower(marked)


def test_text_with_a_mark_builds_again():
    before = matmul_nt()
    sch = Schedule(before)
    sch.tensorize(tiles(sch)[3], "test_mma")
    from loopwright.script import from_source

    again = from_source(sch.mod.script())
    assert structural_equal(again, sch.mod)
    a, b = np.random.default_rng(0).integers(0, 5, (2, 8, 8)).astype("float32")
    c = np.zeros((8, 8), "float32")
    loopwright.build(again)(a, b, c)
    np.testing.assert_array_equal(c, a @ b.T)


# --- what the parameters of an intrinsic promise ---------------------------------------------------------------------


def promising(name: str, promise: str) -> None:
    """An intrinsic that adds 1 to 8 elements, whose input comes with a promise."""
    body = "for i in range(8):\n            with T.block('B'):\n                vi = T.axis.spatial(8, i)\n"
    body += "                B[vi] = A[vi] + T.float32(1)"
    head = "@T.prim_func\ndef main(a: T.handle, b: T.handle):\n"
    head += f"    A = T.match_buffer(a, (8,), {promise})\n    B = T.match_buffer(b, (8,), offset_factor=1)\n"
    text = f"{head}    with T.block('root'):\n        {body}\n"
    TensorIntrin.register(name, from_source(text), from_source(text))


def adding(buffer: str = "A: T.Buffer(64)", start: str = "vi") -> PrimFunc:
    """B = A + 1, from some element on."""
    found = from_source(f"""
@T.prim_func
def main({buffer}, B: T.Buffer(32)):
    for i in range(32):
        with T.block("B"):
            vi = T.axis.spatial(32, i)
            B[vi] = A[{start}] + T.float32(1)
""")
    assert isinstance(found, PrimFunc)
    return found


@pytest.mark.parametrize(
    ("promise", "buffer", "start", "problem"),
    [
        ("offset_factor=8", "A: T.Buffer(64)", "vi", None),
        ("offset_factor=4", "A: T.Buffer(64)", "vi + 4", None),
        ("offset_factor=16", "A: T.Buffer(64)", "vi", r"with offset_factor 16, but the tile of A has an offset"),
        ("offset_factor=8", "A: T.Buffer(64)", "vi + 4", r"8, but the tile of A has an offset of .* \+ 4"),
        ("offset_factor=8", "A: T.Buffer((4, 9))", "vi // 8, vi % 8", r"an offset of .* \* 9 elements"),
        ("align=32", "A: T.Buffer(64)", "vi", r"with align 32, but the tile of A has memory aligned to 4 bytes"),
        ("align=32", "A: T.Buffer(64, align=32)", "vi", None),
        ("align=32", "A: T.Buffer(64, align=128)", "vi", None),
        ("align=32", "A: T.Buffer(64, align=16)", "vi", r"has memory aligned to 16 bytes"),
        ("align=32", "A: T.Buffer(64, align=32)", "vi + 4", r"has an offset of .* \+ 4 elements of 4 bytes"),
        ("align=4", "A: T.Buffer(64)", "vi + 1", None),
        ('scope="shared"', "A: T.Buffer(64)", "vi", r'scope "shared", but the tile of A has scope "global"'),
    ],
)  # fmt: skip
def test_the_tile_keeps_what_a_parameter_promises(promise, buffer, start, problem):
    promising("test_promise", promise)
    before = adding(buffer, start)
    sch = Schedule(before)
    loop = sch.split(sch.get_loops("B")[0], [None, 8])[1]
    if problem is not None:
        error = refused(sch, IntrinsicMismatch, problem, "tensorize", loop, "test_promise")
        assert error.fields["differs"] == promise.partition("=")[0]
        return
    sch.tensorize(loop, "test_promise")
    check(sch, before)
    loopwright.build(sch.mod)


@pytest.mark.parametrize(("promise", "scope"), [("align=32", "global"), ('scope="shared"', "shared")])
def test_staged_memory_keeps_promises(promise, scope):
    promising("test_promise", promise)
    before = adding()
    sch = Schedule(before)
    sch.cache_read("B", 0, scope)
    loop = sch.split(sch.get_loops("B")[0], [None, 8])[1]
    sch.tensorize(loop, "test_promise")
    check(sch, before)


def test_a_later_step_keeps_promises():
    promising("test_promise", "offset_factor=8")
    sch = Schedule(adding("A: T.Buffer((4, 8))", "vi // 8, vi % 8"))
    copy = sch.cache_read("B", 0, "global")
    sch.tensorize(sch.split(sch.get_loops("B")[0], [None, 8])[1], "test_promise")
    error = refused(sch, IntrinsicMismatch, "offset_factor 8", "storage_align", copy, 0, 0, 8, 1)
    assert error.fields["intrinsic"] == "test_promise"


def test_a_pointer_without_an_offset_is_one_to_the_start():
    """What `access_ptr` of a parameter without an offset points to is the start of the memory, wherever the tile is."""
    desc = mma_desc
    impl = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 4)), B: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
    with T.block("root"):
        T.evaluate(T.call_extern("int32", "mma", A.access_ptr("r"), B.access_ptr("r"), C.access_ptr("rw")))
""")
    TensorIntrin.register("test_pointers", desc, impl)
    whole = Schedule(matmul_nt(4, 4, 4))
    whole.decompose_reduction("C", whole.get_loops("C")[0])
    whole.tensorize(whole.get_loops("C_update")[0], "test_pointers")
    sch = Schedule(matmul_nt(8, 4, 4))
    sch.decompose_reduction("C", sch.get_loops("C")[0])
    inner = sch.split(sch.get_loops("C_update")[0], [None, 4])[1]
    problem = "A of the intrinsic is declared with elem_offset 0, but the tile of A has an offset of"
    error = refused(sch, IntrinsicMismatch, problem, "tensorize", inner, "test_pointers")
    assert "offset_factor=1" in error.hint


def test_a_mark_written_by_hand_is_held_to_promises():
    promising("test_promise", "offset_factor=16")

    @T.prim_func
    def by_hand(A: T.Buffer(64), B: T.Buffer(32)):
        for i in range(4):
            with T.block("B_o"):
                vo = T.axis.spatial(4, i)
                T.block_attr({"tensor_intrin": "test_promise"})
                for j in range(8):
                    with T.block("B"):
                        vi = T.axis.spatial(32, vo * 8 + j)
                        B[vi] = A[vi] + T.float32(1)

    with pytest.raises(NotWhatItNames, match="offset_factor 16, but the tile of A has an offset of"):
        use_tensor_intrinsics(by_hand)


# --- windows --------------------------------------------------------------------------------------------------------


def pool_text(access: str, length: int, rows: int = 4, name: str = "P", taps: int = 3) -> str:
    """The text of a pool of `taps` over a row of `length`."""
    return f"""
@T.prim_func
def main(A: T.Buffer({length}), P: T.Buffer({rows})):
    with T.block("root"):
        for y, k in T.grid({rows}, {taps}):
            with T.block("{name}"):
                vy, vk = T.axis.remap("SR", [y, k])
                with T.init():
                    P[vy] = T.float32("-inf")
                P[vy] = T.max(P[vy], A[{access}])
"""


@T.prim_func
def pool_impl(A: T.Buffer(9, offset_factor=1), P: T.Buffer(4, offset_factor=1)):
    with T.block("root"):
        for y in T.vectorized(4):
            P[y] = T.max(T.max(A[y * 2], A[y * 2 + 1]), A[y * 2 + 2])


def pooled(access: str, length: int, rows: int = 12, taps: int = 3):
    """A longer row, in tiles of four."""
    before = from_source(pool_text(access, length, rows, taps=taps))
    sch = Schedule(before)
    y, _ = sch.get_loops("P")
    _, y_1 = sch.split(y, [None, 4])
    return before, sch, y_1


def test_a_window_tells_the_loop_of_its_taps():
    TensorIntrin.register("test_pool", from_source(pool_text("vy * 2 + vk", 9)), pool_impl)
    before, sch, tile = pooled("vy * 2 + vk", 25)
    sch.tensorize(tile, "test_pool")
    check(sch, before)
    natively(sch, before)


def test_taps_that_were_split():
    TensorIntrin.register("test_pool", from_source(pool_text("vy * 2 + vk", 10, taps=4)), pool_impl_of_4)
    before, sch, tile = pooled("vy * 2 + vk", 26, taps=4)
    *_, k = sch.get_loops("P")
    sch.split(k, [2, 2])
    sch.tensorize(tile, "test_pool")
    natively(sch, before)


@T.prim_func
def pool_impl_of_4(A: T.Buffer(10, offset_factor=1), P: T.Buffer(4, offset_factor=1)):
    with T.block("root"):
        for y in range(4):
            P[y] = T.max(T.max(A[y * 2], A[y * 2 + 1]), T.max(A[y * 2 + 2], A[y * 2 + 3]))


@pytest.mark.parametrize(
    ("access", "length", "message"),
    [
        ("vy + vk", 25, "loop k of the description has extent 3, here k - y_1 has 6"),
        ("vy * 2 + vk * 2", 30, r"loop k of the description has extent 3, here k \* 2 has 5"),
        ("vy * 2 + 2 - vk", 25, r"y_1, k \* -1 do not count each iteration once"),
        ("vy * 3 + vk", 40, r"loop k of the description has extent 3, here y_1 \+ k has 6"),
    ],
)
def test_other_windows_differ(access, length, message):
    TensorIntrin.register("test_pool", from_source(pool_text("vy * 2 + vk", 9)), pool_impl)
    _, sch, tile = pooled(access, length)
    refused(sch, IntrinsicMismatch, message, "tensorize", tile, "test_pool")


def test_taps_that_nothing_tells():
    """Two loops of the description in one index, and neither anywhere else: they are taken for those in their order."""
    text = """
@T.prim_func
def main(A: T.Buffer(6), P: T.Buffer(1)):
    with T.block("root"):
        for j, k in T.grid(3, 4):
            with T.block("P"):
                vj, vk = T.axis.remap("RR", [j, k])
                with T.init():
                    P[0] = T.float32(0)
                P[0] = P[0] + A[vj + vk]
"""

    @T.prim_func
    def impl(A: T.Buffer(6), P: T.Buffer(1)):
        with T.block("root"):
            P[0] = A[0]

    TensorIntrin.register("test_sum", from_source(text), impl)
    sch = Schedule(from_source(text))
    sch.tensorize(sch.get_loops("P")[0], "test_sum")
    sch = Schedule(from_source(text.replace("T.grid(3, 4)", "T.grid(4, 3)")))
    message = "loop j of the description is an index of no access by itself"
    refused(sch, IntrinsicMismatch, message, "tensorize", sch.get_loops("P")[0], "test_sum")
