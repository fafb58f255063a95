"""transform_layout: a buffer is stored in another layout, everywhere it is used."""

from __future__ import annotations

import re

import numpy as np
import pytest

from loopwright import tir
from loopwright.evaluator import evaluate
from loopwright.schedule.errors import BadStepArgument, NotSupported, ScheduleError
from loopwright.schedule.primitives.layout.transform_layout import BadPadValue, LayoutLeavesRoom
from loopwright.schedule.proof.one_to_one import ElementsMeet
from loopwright.script import from_source
from loopwright.script import tir as T
from tests.schedule.random_maps import random_map
from tests.schedule.steps import chain, check, check_replay, matmul, refused, same_program


@T.prim_func
def two_steps(A: T.Buffer((6, 8)), C: T.Buffer((6, 8))):
    B = T.alloc_buffer((6, 8))
    for i, j in T.grid(6, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(6, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]


def test_every_access_and_region_is_rewritten():
    sch = tir.Schedule(two_steps)
    sch.transform_layout("B", ("write", 0), lambda i, j: (j // 4, i, j % 4))

    @T.prim_func
    def expected(A: T.Buffer((6, 8)), C: T.Buffer((6, 8))):
        B = T.alloc_buffer((2, 6, 4))
        for i, j in T.grid(6, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(B[vj // 4, vi, vj % 4])
                B[vj // 4, vi, vj % 4] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(6, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(B[vj // 4, vi, vj % 4])
                T.writes(C[vi, vj])
                C[vi, vj] = B[vj // 4, vi, vj % 4]

    check(sch, two_steps, expected)


@pytest.mark.parametrize("index_map", ["lambda i, j: (j, i)", "lambda i, j: (i * 8 + j,)", "lambda i, j: (5 - i, j)"])
def test_maps_may_be_text(index_map):
    sch = tir.Schedule(two_steps)
    sch.transform_layout("C", ("read", 0), index_map)
    check(sch, two_steps)


def test_room_left_over_needs_a_value():
    sch = tir.Schedule(two_steps)
    refused(sch, LayoutLeavesRoom, r"\(2, 8, 4\) of B has more cells than its shape \(6, 8\)", "transform_layout", "B",
            "B", lambda i, j: (i // 4, j, i % 4))  # fmt: skip
    sch.transform_layout("B", "B", lambda i, j: (i // 4, j, i % 4), pad_value=0)
    fill = sch.get(sch.get_block("buffer_B_padding"))
    assert [int(extent) for extent in fill.writes[0].buffer.shape] == [2, 8, 4]
    check(sch, two_steps)


def test_a_buffer_allocated_in_a_loop():
    before = matmul(6, 5, 4)
    sch = tir.Schedule(before)
    copy = sch.stage("C", sch.get_loops("C")[0], "B")
    sch.transform_layout(copy, "B_stage", lambda k, j: (j, k))
    check(sch, before)


def test_reductions_and_guards():
    before = chain(5, 7, 3, 2)
    sch = tir.Schedule(before)
    sch.split(sch.get_loops("D")[0], [None, 4])
    sch.transform_layout("D", "D", lambda m, l: (l, m))
    check(sch, before)


NOT_ONE_TO_ONE = [
    ("lambda i, j: (i // 2, j)", r"[0, 0] and X[1, 0] into one cell, [0, 0]"),
    ("lambda i, j: (i % 4, j)", r"[0, 0] and X[4, 0] into one cell, [0, 0]"),
    ("lambda i, j: (i,)", r"[0, 0] and X[0, 1] into one cell, [0]"),
    ("lambda i, j: (0, j)", r"[0, 0] and X[1, 0] into one cell, [0, 0]"),
    ("lambda i, j: (i // 4, i % 4)", r"[0, 0] and X[0, 1] into one cell, [0, 0]"),
    ("lambda i, j: (min(i, 3), j)", r"[3, 0] and X[4, 0] into one cell, [3, 0]"),
    ("lambda i, j: (i * 7 + j,)", r"[0, 7] and X[1, 0] into one cell, [7]"),
]


@pytest.mark.parametrize(("layout", "elements"), NOT_ONE_TO_ONE)
@pytest.mark.parametrize(("block", "buffer"), [("B", "B"), ("B", "A"), ("C", "C")])
@pytest.mark.parametrize("pad", [None, 0])
def test_two_elements_in_one_cell_are_refused(block, buffer, layout, elements, pad):
    sch = tir.Schedule(two_steps)
    text = re.escape(f"puts {buffer}{elements.replace('X', buffer)}")
    error = refused(sch, ElementsMeet, text, "transform_layout", block, buffer, layout, pad_value=pad)
    assert error.fields["first"] != error.fields["second"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_map_every_element_keeps_its_value(seed):
    """Accepted only when one to one; then the same is computed, of arguments in the layout that is asked for."""
    case = random_map(seed)
    names = ", ".join([f"i{k}" for k in range(len(case.sizes))])
    function = from_source(f"""
@T.prim_func
def main(A: T.Buffer({case.sizes}, "int32"), C: T.Buffer({case.sizes}, "int32")):
    B = T.alloc_buffer({case.sizes}, "int32")
    for {names} in T.grid{(*case.sizes,)}:
        with T.block("B"):
            {names} = T.axis.remap("{"S" * len(case.sizes)}", [{names}])
            B[{names}] = A[{names}] * 3
    for {names} in T.grid{(*case.sizes,)}:
        with T.block("C"):
            {names} = T.axis.remap("{"S" * len(case.sizes)}", [{names}])
            C[{names}] = B[{names}] + 1
""")
    values = np.arange(1, 1 + int(np.prod(case.sizes)), dtype="int32").reshape(case.sizes)
    for block, buffer in [("B", "B"), ("B", "A"), ("C", "C")]:
        for pad in (None, -7):
            sch = tir.Schedule(function)
            try:
                sch.transform_layout(block, buffer, case.text, pad_value=pad)
            except ScheduleError:
                continue
            assert case.is_one_to_one
            after = sch.mod["main"]
            given = {}
            for argument in after.argument_buffers():
                fill = pad if argument.name == buffer == "A" and pad is not None else 0
                given[argument.name] = np.full([int(size) for size in argument.shape], fill, "int32")
            for point, value in np.ndenumerate(values):
                given["A"][case.cells[point] if buffer == "A" else point] = value
            evaluate(after, *given.values())
            for point, value in np.ndenumerate(values):
                assert given["C"][case.cells[point] if buffer == "C" else point] == value * 3 + 1
            if buffer == "C" and pad is not None:
                rest = set(np.ndindex(given["C"].shape)) - set(case.cells.values())
                assert all([given["C"][cell] == pad for cell in rest])


def test_a_reversed_or_joined_layout_of_an_argument():
    sch = tir.Schedule(two_steps)
    sch.transform_layout("B", "A", lambda i, j: (i, 7 - j))
    sch.transform_layout("C", "C", lambda i, j: (i * 8 + j,))
    A, C = np.arange(48, dtype="float32").reshape(6, 8), np.zeros(48, "float32")
    evaluate(sch.mod["main"], np.ascontiguousarray(A[:, ::-1]), C)
    np.testing.assert_array_equal(C, A.ravel() * 2)


def test_wrong_arguments_are_refused():
    sch = tir.Schedule(two_steps)
    refused(sch, NotSupported, r"gives each of the caller's elements a cell of its own is not proved",
            "transform_layout", "B", "A", lambda i, j: (i, (i * j + j) % 8))  # fmt: skip
    refused(sch, BadStepArgument, r"the map takes 1 index, B has 2", "transform_layout", "B", "B", lambda i: i)
    refused(sch, BadStepArgument, r"is no map of indices", "transform_layout", "B", "B", "i, j")
    refused(sch, BadStepArgument, r"is not made of i, j, numbers", "transform_layout", "B", "B", "lambda i, j: open(i)")
    refused(sch, BadStepArgument, r"buffer is \['read', 'x'\]", "transform_layout", "B", ("read", "x"), "lambda i: i")


def test_the_layout_of_an_argument_is_the_callers_business_from_then_on():
    sch = tir.Schedule(two_steps)
    sch.transform_layout("B", "A", lambda i, j: (j, i))
    sch.transform_layout("C", ("write", 0), lambda i, j: (i // 2, j, i % 2))

    @T.prim_func
    def expected(A: T.Buffer((8, 6)), C: T.Buffer((3, 8, 2))):
        B = T.alloc_buffer((6, 8))
        for i, j in T.grid(6, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vj, vi])
                T.writes(B[vi, vj])
                B[vi, vj] = A[vj, vi] * T.float32(2)
        for i, j in T.grid(6, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(B[vi, vj])
                T.writes(C[vi // 2, vj, vi % 2])
                C[vi // 2, vj, vi % 2] = B[vi, vj]

    same_program(sch.mod["main"], expected)
    check_replay(sch, two_steps)
    A = np.arange(48, dtype="float32").reshape(6, 8)
    plain, new = np.zeros((6, 8), "float32"), np.zeros((3, 8, 2), "float32")
    evaluate(two_steps, A, plain)
    evaluate(sch.mod["main"], np.ascontiguousarray(A.T), new)
    np.testing.assert_array_equal(new, plain.reshape(3, 2, 8).transpose(0, 2, 1))


def test_padding_of_an_argument_that_is_read_is_assumed():
    sch = tir.Schedule(two_steps)
    sch.transform_layout("B", "A", lambda i, j: (i // 4, j, i % 4), pad_value=0.5)
    block = sch.get(sch.get_block("buffer_A_assumptions"))
    assert "T.assume(not (v0 * 4 + v2 >= 6 or v1 >= 8) or A[v0, v1, v2] == T.float32(0.5))" in str(block)
    check_replay(sch, two_steps)
    A, C = np.full((2, 8, 4), 0.5, "float32"), np.zeros((6, 8), "float32")
    evaluate(sch.mod["main"], A, C)
    np.testing.assert_array_equal(C, np.ones((6, 8)))


def test_padding_of_an_argument_that_is_written_is_written():
    sch = tir.Schedule(two_steps)
    sch.transform_layout("C", "C", lambda i, j: (i // 4, j, i % 4), pad_value=7)
    A, C = np.zeros((6, 8), "float32"), np.zeros((2, 8, 4), "float32")
    evaluate(sch.mod["main"], A, C)
    assert np.all(C[1, :, 2:] == 7) and np.all(C[0] == 0)
    check_replay(sch, two_steps)


@pytest.mark.parametrize("value", [0, 1.5, lambda a, b, c: a * 100 + c, "lambda a, b, c: (b,)"])
def test_padding_by_a_number_or_a_map(value):
    sch = tir.Schedule(two_steps)
    sch.transform_layout("B", "B", lambda i, j: (i // 4, j, i % 4), pad_value=value, assume_injective_transform=True)
    check(sch, two_steps)


def test_wrong_paddings():
    sch = tir.Schedule(two_steps)
    layout = "lambda i, j: (i // 4, j, i % 4)"
    refused(sch, BadPadValue, "pad_value gives 2 numbers for a cell", "transform_layout", "B", "B", layout,
            pad_value=lambda a, b, c: (a, b))  # fmt: skip
    refused(sch, BadStepArgument, "the map takes 1 index", "transform_layout", "B", "B", layout, pad_value=lambda a: a)
    refused(sch, BadPadValue, "pad_value is {}", "transform_layout", "B", "B", layout, pad_value={})


@T.prim_func
def wide(A: T.Buffer((T.int64(4), T.int64(6))), C: T.Buffer((T.int64(4), T.int64(6)))):
    B = T.alloc_buffer((T.int64(4), T.int64(6)))
    for i, j in T.grid(T.int64(4), T.int64(6)):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(T.int64(4), T.int64(6)):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]


@pytest.mark.parametrize(
    "step",
    [
        lambda sch: sch.transform_layout("B", ("write", 0), lambda i, j: (j // 3, i, j % 3)),
        lambda sch: sch.transform_layout("B", ("read", 0), lambda i, j: (i * 6 + j,)),
        lambda sch: sch.transform_layout("B", ("write", 0), lambda i, j: (j // 4, i, j % 4), pad_value=1.0),
        lambda sch: sch.reindex_cache_read("C", 0, "global", lambda i, j: (j, i)),
        lambda sch: sch.reindex_cache_write("B", 0, "global", lambda i, j: (j // 3, i, j % 3)),
        lambda sch: sch.stage("C", sch.get_loops("C")[0], "B", layout=lambda i, j: (j // 3, i, j % 3)),
    ],
)
def test_layouts_of_int64_indices_are_computed_in_int64(step):
    sch = tir.Schedule(wide)
    step(sch)
    assert sch.is_proved and "Cast" not in sch.mod["main"].script()
    check_replay(sch, wide)
    random = np.random.default_rng(0)
    data, before = random.normal(size=(4, 6)).astype("float32"), np.zeros((4, 6), "float32")
    evaluate(wide, data, before)
    shape = [int(size) for size in sch.mod["main"].argument_buffers()[0].shape]
    after = np.zeros((4, 6), "float32")
    evaluate(sch.mod["main"], data.reshape(shape), after)  # the second map keeps row-major order
    np.testing.assert_array_equal(after, before)


def test_a_map_of_any_number_of_indices_and_one_in_64_bits():
    for given in (lambda *indices: indices[::-1], tir.IndexMap.from_func(lambda i, j: (j, i))):
        sch = tir.Schedule(matmul(4, 6, 5))
        sch.transform_layout("C", ("write", 0), given)
        assert [str(region) for region in sch.get(sch.get_block("C")).writes] == ["C[v_j, v_i]"]
        assert "T.int64" not in sch.mod.script()
