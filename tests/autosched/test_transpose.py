"""rules/transpose.py: transpositions in register tiles move every element to its place, whatever is left over."""

from __future__ import annotations

import re
from itertools import permutations

import pytest

from loopwright import te
from loopwright.autosched.machine import Machine
from loopwright.transform.tensor_intrinsics.check import check_intrinsic
from loopwright.transform.tensor_intrinsics.registry import TRANSPOSES
from tests.autosched.same_results import check_same_bits, function, numbers, planned

AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=4"
NEON = "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1 -num-cores=4"


def turned(rows, columns, dtype="float32"):
    A = te.placeholder((rows, columns), dtype, name="A")
    return function(A, te.compute((columns, rows), lambda i, j: A[j, i], name="C"))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "rows, columns", [(0, 20), (16, 16), (15, 17), (64, 48), (3, 50), (50, 3), (1, 20), (33, 1), (129, 66), (31, 100)]
)
def test_shapes(rows, columns):
    plan = check_same_bits(turned(rows, columns), [numbers(rows, columns), numbers(columns, rows)])
    assert (min(rows, columns) >= 4) == ("in registers" in plan.explain())


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "uint16", "int32", "int64", "bool"])
def test_types(dtype):
    check_same_bits(turned(40, 35, dtype), [numbers(40, 35, dtype=dtype), numbers(35, 40, dtype=dtype)])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("order", list(permutations(range(3)))[1:])
def test_permutations_of_three_axes(order):
    shape = (9, 18, 20)
    new = tuple(shape[axis] for axis in order)
    A = te.placeholder(shape, name="A")

    def value(*indices):
        places = dict(zip(order, indices, strict=True))
        return A(*[places[axis] for axis in range(3)]) * 2.0 + 1.0

    plan = check_same_bits(function(A, te.compute(new, value, name="C")), [numbers(*shape), numbers(*new)])
    assert ("in registers" in plan.explain()) == (order[-1] != 2)  # else rows stay rows


@pytest.mark.parametrize("ones", [(), (0,), (1,), (2,), (1, 2), (0, 1, 2)])
def test_dimensions_of_one_element_are_nowhere_in_the_way(ones):
    shape = [33, 18]
    for place in reversed(ones):
        shape.insert(place, 1)
    A = te.placeholder(shape, "uint8", name="A")

    def value(i, _, j):
        places = iter([j, i])
        return A(*[0 if size == 1 else next(places) for size in shape])

    func = function(A, te.compute((18, 1, 33), value, name="C"))
    plan = check_same_bits(func, [numbers(*shape, dtype="uint8"), numbers(18, 1, 33, dtype="uint8")])
    assert "in registers" in plan.explain()


def test_a_last_dimension_of_one_element_beside_open_ones():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, 5, m, 1), name="A")
    func = function(A, te.compute((m, 1, n, 5), lambda i, _, j, k: A[j, k, i, 0], name="C"))
    check_same_bits(func, [numbers(4, 5, 8, 1), numbers(8, 1, 4, 5)])


def test_images_change_their_layout():
    A = te.placeholder((2, 24, 14, 30), name="A")
    func = function(A, te.compute((2, 14, 30, 24), lambda n, h, w, c: A[n, c, h, w], name="C"))
    assert "in registers" in check_same_bits(func, [numbers(2, 24, 14, 30), numbers(2, 14, 30, 24)]).explain()


def test_work_on_the_way():
    A, B, b = te.placeholder((33, 64), name="A"), te.placeholder((64, 33), name="B"), te.placeholder((33,), name="b")
    value = te.compute((64, 33), lambda i, j: te.exp(A[j, i]) * B[i, j] + b[j], name="C")
    check_same_bits(function(A, B, b, value), [numbers(33, 64), numbers(64, 33), numbers(33), numbers(64, 33)])
    widened = te.compute((64, 33), lambda i, j: A[j, i].astype("float64"), name="C")
    plan = check_same_bits(function(A, widened), [numbers(33, 64), numbers(64, 33, dtype="float64")])
    assert "in registers" in plan.explain()
    window = te.compute((50, 20), lambda i, j: A[j + 3, i + 5], name="C")
    assert "in registers" in check_same_bits(function(A, window), [numbers(33, 64), numbers(50, 20)]).explain()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("rows, columns", [(1, 1), (40, 35), (128, 16)])
def test_symbolic_sizes(rows, columns):
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    func = function(A, te.compute((m, n), lambda i, j: A[j, i], name="C"))
    check_same_bits(func, [numbers(rows, columns), numbers(columns, rows)], may_refuse=True)


def test_an_operand_read_both_ways_is_left_to_another_rule():
    A = te.placeholder((40, 40), name="A")
    func = function(A, te.compute((40, 40), lambda i, j: A[i, j] + A[j, i], name="C"))
    check_same_bits(func, [numbers(40, 40), numbers(40, 40)], may_refuse=True)


@pytest.fixture
def large_l1(monkeypatch):
    """Blocks are as large as an L1 of 48 KiB lets them be, whatever machine the tests run on."""
    monkeypatch.setattr(Machine, "l1", 48 << 10)


@pytest.mark.usefixtures("large_l1")
def test_reasons():
    told = planned(turned(1024, 1024), AVX512).explain()
    assert "tiles of 16 × 16 in registers: v_j is contiguous in the result, v_i in A" in told
    assert "blocks of 4 × 4 tiles: adjacent tiles share cache lines" in told and "parallel tasks" in told
    assert "tiles of 4 × 4 in registers" in planned(turned(1024, 1024), NEON).explain()
    # Rows that start anywhere in a cache line: half a line meets two lines half as often.
    assert "tiles of 8 × 8 in registers" in planned(turned(1009, 1013), AVX512).explain()


def test_what_is_far_away_is_asked_for_ahead():
    large, small = planned(turned(1024, 1024), AVX512), planned(turned(64, 64), AVX512)
    assert "rows of the result prefetched a cache line ahead" in large.explain()
    assert "T.prefetch" not in small.mod["main"].script() and "prefetched" not in small.explain()
    # One tile on, where a tile is as wide as a line, for writing (1); two where it is half as wide.
    assert "distance=1, levels=1" in str(large.trace)
    assert "distance=2, levels=1" in str(planned(turned(1000, 3000), AVX512).trace)


@pytest.mark.parametrize(
    "rows, columns, block",
    [
        (1024, 1024, "4 × 4"),
        (1000, 3000, "8 × 16"),  # rows start anywhere in a line: wide blocks share fewer lines, the last is not whole
        (3000, 1000, "8 × 15"),  # 375 tiles are 25 times 15
        (24, 1000, "8 × 3"),  # no more than there are
    ],
)
@pytest.mark.usefixtures("large_l1")
def test_blocks(rows, columns, block):
    assert f"blocks of {block} tiles" in planned(turned(rows, columns), AVX512).explain()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("rows, columns", [(1000, 300), (301, 1009), (523, 541)])
def test_blocks_that_are_not_whole(rows, columns):
    check_same_bits(turned(rows, columns), [numbers(rows, columns), numbers(columns, rows)])


def test_batches_with_left_overs_are_shared_out():
    A = te.placeholder((3, 173, 301), name="A")
    func = function(A, te.compute((3, 301, 173), lambda n, i, j: A[n, j, i], name="C"))
    plan = check_same_bits(func, [numbers(3, 173, 301), numbers(3, 301, 173)], "llvm -num-cores=2")
    assert "in registers" in plan.explain() and "parallel tasks" in plan.explain()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("rows, columns", [(512, 512), (1024, 1024), (4096, 4096), (1000, 3000), (1023, 1025)])
def test_sixteen_cores_get_several_pieces_each(rows, columns):
    told = planned(turned(rows, columns), "llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -num-cores=16").explain()
    pieces = re.search(r"(\d+) parallel tasks", told)
    assert pieces is not None and int(pieces[1]) >= 48


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [name for name in TRANSPOSES if name.endswith(("_float32", "_int8", "_float64"))])
def test_intrinsics_do_what_they_say(name):
    check_intrinsic(name)


JOINED = [  # a shape, the order of its axes, and how many axes are left
    ((6, 2, 1, 5, 59), (3, 4, 0, 1, 2), 2),
    ((19, 3, 7, 1, 36), (4, 1, 2, 0, 3), 3),
    ((5, 7, 7, 25), (0, 3, 1, 2), 3),
    ((3, 2, 5, 6, 9), (3, 4, 2, 0, 1), 3),
]


@pytest.mark.parametrize("shape, order, left", JOINED)
def test_axes_that_move_as_one_are_joined(shape, order, left):
    new = tuple(shape[axis] for axis in order)
    A, B = te.placeholder(shape, name="A"), te.placeholder(new, name="B")

    def value(*indices):
        places = dict(zip(order, indices, strict=True))
        return A(*[places[axis] for axis in range(len(shape))]) + B(*indices)

    plan = check_same_bits(
        function(A, B, te.compute(new, value, name="C")), [numbers(*size) for size in (shape, new, new)]
    )
    assert f"{left} axes" in plan.explain() and "in registers" in plan.explain()
    assert plan.schedule.is_proved


def test_axes_that_are_computed_with_are_not_joined():
    A = te.placeholder((2, 8, 2, 8), name="A")
    func = function(A, te.compute((2, 8, 2, 8), lambda i, j, k, l: A[k, l, i, j] * l.astype("float32"), name="C"))
    plan = check_same_bits(func, [numbers(2, 8, 2, 8), numbers(2, 8, 2, 8)])
    assert " axes:" not in plan.explain()


def test_axes_that_whole_tiles_fit_into_stay_as_they_are():
    A = te.placeholder((34, 2, 15, 8), name="A")
    func = function(A, te.compute((2, 15, 8, 34), lambda i, j, k, l: A[l, i, j, k], name="C"))
    plan = check_same_bits(func, [numbers(34, 2, 15, 8), numbers(2, 15, 8, 34)])
    assert " axes:" not in planned(func, AVX512).explain() and "in registers" in plan.explain()
