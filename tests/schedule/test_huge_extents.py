"""Loops and sizes beyond 2^31: products of extents do not wrap. Programs are looked at and lowered, not run."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.arith import Analyzer
from loopwright.evaluator import evaluate
from loopwright.ir import For, IntImm, TooManyElements, pre_order_visit, product
from loopwright.script import tir as T
from loopwright.transform import lower
from tests.schedule.harness.huge import check_huge


def doubled(*shape, dtype="int8"):
    A = te.placeholder(shape, dtype, name="A")
    return te.create_prim_func([A, te.compute(A.shape, lambda *i: A[i] + A[i], name="B")])


def iterations(func) -> int:
    """How many iterations all loops make together."""
    total = 1

    def look(node):
        nonlocal total
        if isinstance(node, For):
            assert isinstance(node.extent, IntImm), node.extent
            assert node.extent.value <= node.loop_var.dtype.highest + 1
            total *= node.extent.value

    pre_order_visit(func.body, look)
    return total


@pytest.mark.parametrize("shape", [(65536, 65536), (65536, 32768), (3, 65536, 65536), (1 << 20, 1 << 20, 1 << 20)])
def test_fuse_counts_in_64_bits_where_32_do_not_hold_it(shape):
    sch = tir.Schedule(doubled(*shape))
    fused = sch.get(sch.fuse(*sch.get_loops("B")))
    assert fused.extent.value == np.prod([float(size) for size in shape])
    assert str(fused.loop_var.dtype) == "int64"
    assert iterations(sch.mod["main"]) == fused.extent.value


def test_fuse():
    sch = tir.Schedule(doubled(65536, 65536))
    fused = sch.fuse(*sch.get_loops("B"))
    outer, inner = sch.split(fused, [None, 64])
    sch.parallel(outer)
    sch.vectorize(inner)
    lowered = lower(sch.mod, "llvm")["main"]
    at = "i0_i1_fused_0 * T.int64(64):i0_i1_fused_0 * T.int64(64) + T.int64(64)"
    assert f"B_1[{at}] = A_1[{at}] + A_1[{at}]" in str(lowered)


def test_fuse_refuses_what_64_bits_do_not_hold():
    sch = tir.Schedule(doubled(1 << 40, 1 << 40))
    with pytest.raises(TooManyElements, match=r"1099511627776\) × T.int64\(1099511627776\) is more than 64 bits"):
        sch.fuse(*sch.get_loops("B"))


def test_fuse_of_sizes_that_a_call_gives():
    n = te.var("n")
    sch = tir.Schedule(doubled(n, 65536, 65536))
    fused = sch.get(sch.fuse(*sch.get_loops("B")))
    assert str(fused.loop_var.dtype) == "int64"
    assert str(fused.extent) == 'T.Cast("int64", n) * T.int64(4294967296)'


@pytest.mark.parametrize(
    ("extent", "factors"),
    [(2**31 - 1, [None, 32]), (2**31 - 1, [None, 65536, 65536]), (1 << 33, [None, 3]), (1000, [None, 1 << 33])],
)
def test_split_covers_every_iteration(extent, factors):
    sch = tir.Schedule(doubled(extent))
    sch.split(sch.get_loops("B")[0], factors)
    made = iterations(sch.mod["main"])
    assert made >= extent
    known = [factor for factor in factors if factor is not None]
    assert made < extent + np.prod([float(factor) for factor in known])
    assert f"< {extent}" in str(sch.mod["main"]) or f"< T.int64({extent})" in str(sch.mod["main"])
    lower(sch.mod, "llvm")


def test_split_of_a_size_that_a_call_gives():
    n = te.var("n")
    sch = tir.Schedule(doubled(n))
    outer, _, _ = sch.split(sch.get_loops("B")[0], [None, 65536, 65536])
    facts = Analyzer()
    facts.bind(n, 70000)
    extent = tir.stmt_functor.substitute(sch.get(outer).extent, {})
    assert isinstance(extent, tir.PrimExpr)
    given = np.arange(100, dtype="int8"), np.zeros(100, "int8")
    lw.build(sch.mod)(*given)
    np.testing.assert_array_equal(given[1], given[0] + given[0])


def test_a_guarded_tile_past_the_last_int32_runs_only_what_it_should():
    """`i_0 * 32 + i_1 < n` beside 2^31: the guard is exact, so the iterations past the end stay away."""

    @T.prim_func
    def func(n: T.int32, first: T.int32, B: T.Buffer((64,), "int32")):
        for i_0, i_1 in T.grid(2, 32):
            if (i_0 + first) * 32 + i_1 < n:
                B[i_0 * 32 + i_1] = 1

    wanted = np.zeros(64, "int32")
    wanted[:63] = 1
    for run in (lambda *given: evaluate(func, *given), lw.build(func), lw.build(func, target="c")):
        got = np.zeros(64, "int32")
        run(2**31 - 1, 2**26 - 2, got)
        np.testing.assert_array_equal(got, wanted)


def test_te_loops():
    A = te.placeholder((65536, 65536), "int8", name="A")
    B = te.compute(A.shape, lambda i, j: A[i, j] + A[i, j], name="B")
    sch = te.create_schedule(B.op)
    fused = sch[B].fuse(*B.op.axis)
    outer, inner = sch[B].split(fused, 64)
    sch[B].vectorize(inner)
    sch[B].parallel(outer)
    lowered = lower(lw.lower(sch, [A, B])["main"], "llvm")["main"]
    assert "T.parallel(T.int64(67108864))" in str(lowered)


def test_sizes_multiply_exactly():
    n = tir.Var("n", "int32")
    assert str(product([4, n, 2])) == "4 * n * 2"
    assert str(product([65536, n, 65536])) == 'T.int64(65536) * T.Cast("int64", n) * T.int64(65536)'
    assert product([65536, 65536]).value == 1 << 32
    assert product([65536, 65536, 0]).value == 0
    assert str(product([])) == "1"
    with pytest.raises(TooManyElements, match="is more than 64 bits can count"):
        product([1 << 40, 1 << 40])


def test_buffers():
    huge = tir.decl_buffer((65536, 65536, 2), "int8", name="A")
    assert huge.get_flattened_buffer().shape[0].value == 1 << 33
    assert [int(stride) for stride in huge.effective_strides()] == [131072, 2, 1]
    tall = tir.decl_buffer((2, 65536, 65536), "int8", name="A")
    assert [int(stride) for stride in tall.effective_strides()] == [1 << 32, 65536, 1]
    assert "4294967296" in str(tir.decl_buffer((65536, 65536), "int8", name="A").access_ptr("r"))


def test_padded_strides_of_a_huge_buffer():
    @T.prim_func
    def func(A: T.Buffer((65536, 65535), "int8"), B: T.Buffer((65536, 65535), "int8")):
        C = T.alloc_buffer((65536, 65535), "int8")
        for i, j in T.grid(65536, 65535):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj]
        for i, j in T.grid(65536, 65535):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = C[vi, 65534 - vj]

    sch = tir.Schedule(func)
    sch.storage_align("C", 0, 0, 65536, 0)
    lowered = lower(sch.mod, "llvm")["main"]
    assert "T.allocate([T.int64(4294967295)]" in str(lowered)


@pytest.mark.parametrize("primitive", ["blockize", "cache_read", "cache_write", "rfactor", "transform_layout", "tile"])
def test_other_steps_lower_for_huge_sizes(primitive):
    k = te.reduce_axis((0, 65536), name="k")
    A = te.placeholder((65536, 65536), "float32", name="A")
    B = te.compute((65536,), lambda i: te.sum(A[i, k], axis=k), name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    i, r = sch.get_loops("B")
    if primitive == "blockize":
        sch.blockize(sch.split(i, [None, 16])[1])
    elif primitive == "cache_read":
        sch.cache_read("B", 0, "global")
    elif primitive == "cache_write":
        sch.cache_write("B", 0, "global")
    elif primitive == "rfactor":
        sch.rfactor(sch.split(r, [None, 64])[0], 0)
    elif primitive == "transform_layout":
        sch.transform_layout("B", ("read", 0), lambda i, k: i * 65536 + k)
    else:
        sch.tile("B", [256, 256]) if hasattr(sch, "tile") else sch.split(i, [None, 256])
    text = str(lower(sch.mod, "llvm")["main"])
    for wrapped in ("range(0)", "range(T.int64(0))", "[0]", "T.Mul("):
        assert wrapped not in text.replace("B_1[0]", "")


@pytest.mark.one_in(4)
@pytest.mark.parametrize("first", range(0, 120, 30))
def test_random_loop_steps_write_every_cell_once(first):
    for seed in range(first, first + 30):
        check_huge(seed)
