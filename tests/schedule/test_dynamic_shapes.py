"""Steps on sizes known only when the program runs: layouts, padded axes, copies, inlining under a condition."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.evaluator import evaluate
from loopwright.ir import PrimFunc
from loopwright.ir.verifier import verify
from loopwright.schedule.errors import NotSupported
from loopwright.schedule.primitives.compute.pad_einsum import NotEinsum
from loopwright.schedule.proof.one_to_one import ElementsMeet
from loopwright.schedule.rewrite.dynamic_shapes import open_sizes
from loopwright.schedule.rewrite.index_map import LayoutMap
from loopwright.script import tir as T
from tests.schedule.steps import check_replay, refused, same_program

n, m, k = te.var("n"), te.var("m"), te.var("k")


def matmul(rows: object, columns: object, depth: object) -> PrimFunc:
    A, B = te.placeholder((rows, depth), name="A"), te.placeholder((depth, columns), name="B")
    r = te.reduce_axis((0, depth), "k")
    C = te.compute((rows, columns), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return te.create_prim_func([A, B, C])


def same_product(sch: tir.Schedule, before: PrimFunc, sizes: tuple[int, int, int]) -> None:
    """The program computes, bit for bit, what it did before."""
    rows, columns, depth = sizes
    random = np.random.default_rng(0)
    a, b = random.standard_normal((rows, depth)), random.standard_normal((depth, columns))
    a, b = a.astype("float32"), b.astype("float32")
    results = [np.full((rows, columns), 7, "float32") for _ in range(4)]
    evaluate(before, a, b, results[0])
    evaluate(sch.mod["main"], a, b, results[1])
    lw.build(before)(a, b, results[2])
    lw.build(sch.mod)(a, b, results[3])
    assert results[0].tobytes() == results[1].tobytes()
    assert results[2].tobytes() == results[3].tobytes()


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("unknown", "padding"),
    [((n, 5, 6), [1, 4, 1]), ((n, m, 6), [1, 4, 1]), ((n, m, k), [2, 4, 4]), ((7, 5, k), [1, 1, 4])],
)
def test_padded_axes(unknown: tuple[object, object, object], padding: list[int]) -> None:
    before = matmul(*unknown)
    sch = tir.Schedule(before)
    sch.pad_einsum("C", padding)
    verify(sch.mod["main"])
    check_replay(sch, before)
    same_product(sch, before, (7, 5, 6))
    if unknown == (n, m, k):
        for sizes in ((0, 3, 2), (1, 1, 1), (4, 8, 4), (2, 5, 0)):
            same_product(sch, before, sizes)


def test_a_padded_size_is_written_out() -> None:
    sch = tir.Schedule(matmul(n, m, 6))
    sch.pad_einsum("C", [1, 4, 1])
    assert "for i, j, k in T.grid(n, (m + 3) // 4 * 4, 6)" in sch.mod.script()
    loops = sch.get_loops("C")
    outer, inner = sch.split(loops[1], [None, 4])
    assert "T.where" not in sch.mod.script() and sch.get(inner).extent == 4  # a multiple needs no guard


def test_a_buffer_of_another_size_is_not_padded() -> None:
    A = te.placeholder((m,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    refused(sch, NotEinsum, "touches A, of size m where axis v_i has n", "pad_einsum", "B", [4])


@T.prim_func
def between(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 8))
    C = T.match_buffer(c, (n, 8))
    B = T.alloc_buffer((n, 8))
    for i, j in T.grid(n, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0
    for i, j in T.grid(n, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * 2.0


def test_a_layout_passes_a_size_that_is_not_known() -> None:
    sch = tir.Schedule(between)
    sch.transform_layout("B", ("write", 0), lambda i, j: (j // 4, i, j % 4))

    @T.prim_func
    def expected(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 8))
        C = T.match_buffer(c, (n, 8))
        B = T.alloc_buffer((2, n, 4))
        for i, j in T.grid(n, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj // 4, vi, vj % 4] = A[vi, vj] + 1.0
        for i, j in T.grid(n, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vj // 4, vi, vj % 4] * 2.0

    same_program(sch.mod["main"], expected)
    check_replay(sch, between)
    for rows in (0, 1, 5):
        a, c = np.arange(rows * 8, dtype="float32").reshape(rows, 8), np.zeros((rows, 8), "float32")
        evaluate(sch.mod["main"], a, c)
        assert np.array_equal(c, (a + 1) * 2)


def test_a_layout_with_room_beside_a_size_that_is_not_known() -> None:
    sch = tir.Schedule(between)
    sch.transform_layout("B", ("write", 0), lambda i, j: (j // 3, i, j % 3), pad_value=0.0)
    check_replay(sch, between)
    a, c = np.arange(40, dtype="float32").reshape(5, 8), np.zeros((5, 8), "float32")
    evaluate(sch.mod["main"], a, c)
    assert np.array_equal(c, (a + 1) * 2)


def test_layouts_of_unknown_sizes_that_are_not_told() -> None:
    sch = tir.Schedule(between)
    text = "sizes that are known only when the program runs, and .* does more with such a size than to pass it"
    for layout in (lambda i, j: (i // 4, i % 4, j), lambda i, j: (i + j, j), lambda i, j: (i * 8 + j,)):
        refused(sch, NotSupported, text, "transform_layout", "B", ("write", 0), layout)


@pytest.mark.parametrize(
    ("layout", "elements"),
    [
        (lambda i, j: (i,), r"B\[0, 0\] and B\[0, 1\] into one cell, \[0\] \(for n = 1\)"),
        (lambda i, j: (i % 4, j), r"B\[0, 0\] and B\[4, 0\] into one cell, \[0, 0\] \(for n = 5\)"),
        (lambda i, j: (0, j), r"B\[0, 0\] and B\[1, 0\] into one cell, \[0, 0\] \(for n = 2\)"),
        (lambda i, j: (i, j % 4), r"B\[0, 0\] and B\[0, 4\] into one cell, \[0, 0\] \(for n = 1\)"),
    ],
)
def test_two_elements_in_one_cell_for_some_size(layout: object, elements: str) -> None:
    sch = tir.Schedule(between)
    refused(sch, ElementsMeet, elements, "transform_layout", "B", ("write", 0), layout)
    elements = elements.replace("B", "A")
    refused(sch, ElementsMeet, elements, "transform_layout", "B", ("read", 0), layout)


def test_the_parts_of_a_map() -> None:
    whole = (m + 7) // 8 * 8
    found = open_sizes(
        LayoutMap.of(lambda i, j, l: (j // 8, i, l // 2, j % 8, l % 2)), [n, whole, te.const(6, "int32")]
    )
    assert found is not None
    assert [str(extent) for extent in found.shape("test")] == ["(m + 7) // 8", "n", "3", "8", "2"]
    assert found.places == (2, 4)
    assert open_sizes(LayoutMap.of(lambda i: (i // 8, i % 8)), [m]) is None  # there may be a rest
    assert open_sizes(LayoutMap.of(lambda i: (i // 8, i % 4)), [whole]) is None
    assert open_sizes(LayoutMap.of(lambda i: (i // 8, i // 8)), [whole]) is None
    assert open_sizes(LayoutMap.of(lambda i, j: (i + j, j)), [n, te.const(6, "int32")]) is None


def test_a_copy_is_as_large_as_its_buffer() -> None:
    """The bound of the type is no size."""
    for step in ("cache_read", "cache_write"):
        sch = tir.Schedule(matmul(n, 5, 6))
        copy = getattr(sch, step)("C", 0, "global")
        assert str(sch.get(sch.get_loops(copy)[0]).extent) == "n"


def test_what_is_inlined_may_depend_on_a_condition_that_holds_there() -> None:
    sch = tir.Schedule(between)
    first, second = sch.specialize(sch.get_loops("B")[0], sch.get_loops("C")[0], condition=lambda n: n <= 3)
    sch.compute_inline(first)
    sch.compute_inline("B")
    assert sch.is_proved and "alloc_buffer" not in sch.mod.script()
    check_replay(sch, between)
    assert sch.get(second).name_hint == "C_1"
    for rows in (0, 3, 4):
        a, c = np.arange(rows * 8, dtype="float32").reshape(rows, 8), np.zeros((rows, 8), "float32")
        evaluate(sch.mod["main"], a, c)
        assert np.array_equal(c, (a + 1) * 2)
