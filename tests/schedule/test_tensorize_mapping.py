"""Which loops of a block could be those of an intrinsic, and tiling by it: get_tensorize_loop_mapping and its kin."""

from __future__ import annotations

import pytest

from loopwright import te, tir
from loopwright.ir import PrimFunc
from loopwright.schedule import Schedule
from loopwright.schedule.errors import NotSupported
from loopwright.script import tir as T
from loopwright.tir.schedule.analysis import get_auto_tensorize_mapping_info, get_tensorize_loop_mapping
from loopwright.tir.schedule.transform import tile_with_tensor_intrin
from loopwright.transform.tensor_intrinsics import BadIntrinsic, TensorIntrin, UnknownIntrinsic
from tests.schedule.steps import assert_same_numbers, chain, check_replay, matmul


@T.prim_func
def mma(A: T.Buffer((4, 4)), B: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
    with T.block("root"):
        for i, j, k in T.grid(4, 4, 4):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def mma_of_rows(a: T.handle, b: T.handle, c: T.handle):
    sa, sb, sc = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (4, 4), strides=[sa, 1], offset_factor=1)
    B = T.match_buffer(b, (4, 4), strides=[sb, 1], offset_factor=1)
    C = T.match_buffer(c, (4, 4), strides=[sc, 1], offset_factor=1)
    with T.block("root"):
        for i, k in T.grid(4, 4):
            for j in T.vectorized(4):
                C[i, j] = C[i, j] + A[i, k] * B[k, j]


@pytest.fixture(autouse=True)
def registered():
    TensorIntrin.register("map_mma", mma, mma_of_rows)
    yield
    TensorIntrin.known.pop("map_mma")


def packed(m: int, n: int, k: int, lanes: int = 16) -> PrimFunc:
    """C = A · B, B packed for dot-product instructions."""
    A = te.placeholder((m, k), "uint8", name="A")
    B = te.placeholder((n // lanes, k // 4, lanes, 4), "int8", name="B")
    r = te.reduce_axis((0, k), "k")

    def product(i, j):
        return te.sum(A[i, r].astype("int32") * B[j // lanes, r // 4, j % lanes, r % 4].astype("int32"), axis=r)

    return te.create_prim_func([A, B, te.compute((m, n), product, name="C")])


def conv2d(dtype: str = "float32") -> PrimFunc:
    A, W = te.placeholder((2, 8, 8, 4), dtype, name="A"), te.placeholder((3, 3, 4, 8), dtype, name="W")
    y, x, c = te.reduce_axis((0, 3), "y"), te.reduce_axis((0, 3), "x"), te.reduce_axis((0, 4), "c")

    def sum_of(b, h, w, o):
        return te.sum(A[b, h + y, w + x, c] * W[y, x, c, o], axis=[y, x, c])

    return te.create_prim_func([A, W, te.compute((2, 6, 6, 8), sum_of, name="C")])


def names(sch: Schedule, block: str, desc: PrimFunc, **options) -> dict[str, str] | None:
    found = get_tensorize_loop_mapping(sch, block, desc, **options)
    if found is None:
        return None
    return {mine.stmt.loop_var.name: other.loop_var.name for mine, other in found.loop_map.items()}


def test_loops_of_a_product():
    sch = Schedule(matmul(8, 12, 16))
    assert names(sch, "C", mma) == {"i": "i", "j": "j", "k": "k"}
    found = get_tensorize_loop_mapping(sch, sch.get_block("C"), mma)
    assert [found.desc_loop_indexer[loop] for loop in found.loop_map.values()] == [0, 1, 2]
    assert found.block_iter_paddings is None


def test_loops_in_another_order_and_split():
    sch = Schedule(matmul(8, 12, 16))
    i, j, k = sch.get_loops("C")
    sch.reorder(k, i, j)
    _, j_1 = sch.split(j, [None, 4])
    assert names(sch, "C", mma) == {"i": "i", "j_1": "j", "k": "k"}
    sch.tensorize(tile_with_tensor_intrin(sch, "C", "map_mma"), "map_mma")
    assert_same_numbers(sch.mod["main"], matmul(8, 12, 16))


def test_loops_of_a_packed_product():
    sch = Schedule(packed(5, 32, 64))
    assert names(sch, "C", TensorIntrin.get("dot_16x4_vnni").desc) == {"j": "i", "k": "k"}
    wide = Schedule(packed(32, 32, 64))
    assert names(wide, "C", TensorIntrin.get("amx_dot_16x16x64_u8s8s32").desc) == {"i": "i", "j": "j", "k": "k"}


def test_extents_that_are_no_multiples():
    sch = Schedule(matmul(8, 10, 16))
    assert names(sch, "C", mma) is None
    found = get_tensorize_loop_mapping(sch, "C", mma, allow_padding=True)
    assert found.block_iter_paddings == [4, 4, 4]


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_other_types(dtype):
    A, B = te.placeholder((8, 8), dtype, name="A"), te.placeholder((8, 8), dtype, name="B")
    r = te.reduce_axis((0, 8), "k")
    C = te.compute((8, 8), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    assert names(Schedule(te.create_prim_func([A, B, C])), "C", mma) is None


def test_other_computations():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] + 1, name="B")
    sch = Schedule(te.create_prim_func([A, B]))
    assert names(sch, "B", mma) is None
    assert get_auto_tensorize_mapping_info(sch, "B", mma) is None
    assert tile_with_tensor_intrin(sch, "B", "map_mma") is None


def test_a_block_beside_another():
    """Loops that hold other blocks too."""
    sch = Schedule(matmul(8, 8, 8))
    sch.decompose_reduction("C", sch.get_loops("C")[1])
    assert names(sch, "C_update", mma) == {"i": "i", "j": "j", "k": "k"}


def test_a_description_that_is_none():
    with pytest.raises(BadIntrinsic, match="the description has a block 'root' with buffers of its own"):
        get_tensorize_loop_mapping(Schedule(matmul()), "C", chain())


# --- tiling ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n", "k"), [(4, 4, 4), (8, 12, 16), (4, 20, 4)])
def test_tile_and_tensorize(m, n, k):
    before = matmul(m, n, k)
    sch = Schedule(before)
    loop = tile_with_tensor_intrin(sch, "C", "map_mma")
    assert [other.name for other in sch.get_loops("C")] == ["i_0", "j_0", "k_0", "i_1", "j_1", "k_1"]
    assert loop.name == "i_1"
    sch.tensorize(loop, "map_mma")
    assert sch.is_proved and sch.trace.relies_on == ["map_mma"]
    assert_same_numbers(sch.mod["main"], before)
    check_replay(sch, before)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["dot_16x4_vnni", "amx_dot_16x16x64_u8s8s32", "amx_dot_16x16x64_s8s8s32"])
def test_tile_for_the_machines(name):
    signed = name.endswith("s8s8s32") and "u8" not in name
    before = packed(16, 32, 64)
    sch = Schedule(before)
    loop = tile_with_tensor_intrin(sch, "C", name)
    if signed:
        assert loop is None
        return
    sch.tensorize(loop, name)
    assert_same_numbers(sch.mod["main"], before)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (5, 4, 4), (7, 11, 13)])
def test_tile_with_padding(m, n, k):
    before = matmul(m, n, k)
    sch = Schedule(before)
    assert tile_with_tensor_intrin(sch, "C", "map_mma") is None
    assert not sch.changes()
    sch.tensorize(tile_with_tensor_intrin(sch, "C", "map_mma", allow_padding=True), "map_mma")
    assert_same_numbers(sch.mod["main"], before)


def test_padding_that_cannot_be():
    sch = Schedule(matmul(6, 8, 8))
    sch.vectorize(sch.get_loops("C")[0])
    with pytest.raises(NotSupported, match="a loop gets its kind last"):
        tile_with_tensor_intrin(sch, "C", "map_mma", allow_padding=True)


def test_an_intrinsic_that_is_not_there():
    with pytest.raises(UnknownIntrinsic, match="there is no tensor intrinsic 'map_nothing'"):
        tile_with_tensor_intrin(Schedule(matmul()), "C", "map_nothing")


# --- axes -----------------------------------------------------------------------------------------------------------


def test_axes_of_a_convolution():
    sch = Schedule(conv2d())
    found = get_auto_tensorize_mapping_info(sch, "C", mma)
    (made,) = found.mappings
    assert str(made) == (
        "lambda v_b, v_h, v_w, v_o, v_y, v_x, v_c: (v_b * 36 + v_h * 6 + v_w, v_o, v_y * 12 + v_x * 4 + v_c)"
    )
    assert {mine.name: other.name for mine, other in found.lhs_buffer_map.items()} == {"C": "C", "A": "A", "W": "B"}
    assert [axis.var.name for axis in found.lhs_iters] == ["v_b", "v_h", "v_w", "v_o", "v_y", "v_x", "v_c"]
    assert [axis.var.name for axis in found.rhs_iters] == ["vi", "vj", "vk"]


def test_a_convolution_by_the_product():
    """The axes say how to lay the operands out; then the tile is the intrinsic."""
    before = conv2d()
    sch = Schedule(before)
    (made,) = get_auto_tensorize_mapping_info(sch, "C", mma).mappings
    sch.reindex("C", ("read", 0))
    sch.reindex("C", ("read", 1))
    sch.reindex("C", ("write", 0))
    sch.transform_layout("C", ("read", 0), lambda b, h, w, y, x, c: (b * 36 + h * 6 + w, y * 12 + x * 4 + c))
    sch.transform_layout("C", ("read", 1), lambda o, y, x, c: (y * 12 + x * 4 + c, o))
    sch.transform_layout("C", ("write", 0), lambda b, h, w, o: (b * 36 + h * 6 + w, o))
    sch.transform_block_layout("C", made)
    sch.tensorize(tile_with_tensor_intrin(sch, "C", "map_mma"), "map_mma")
    assert_same_numbers(sch.mod["main"], before)


def test_axes_in_every_operand():
    A, B = te.placeholder((3, 4, 4), name="A"), te.placeholder((3, 4, 4), name="B")
    r = te.reduce_axis((0, 4), "k")
    C = te.compute((3, 4, 4), lambda n, i, j: te.sum(A[n, i, r] * B[n, r, j], axis=r), name="C")
    found = get_auto_tensorize_mapping_info(Schedule(te.create_prim_func([A, B, C])), "C", mma)
    assert str(found.mappings[0]) == "lambda v_n, v_i, v_j, v_k: (v_n, v_i, v_j, v_k)"


def test_the_names_users_know():
    from loopwright.tir.schedule import analysis, transform

    assert analysis.get_tensorize_loop_mapping is get_tensorize_loop_mapping
    assert transform.tile_with_tensor_intrin is tile_with_tensor_intrin
    assert tir.ScheduleState is tir.schedule.ScheduleState and tir.StmtSRef is tir.schedule.StmtSRef
