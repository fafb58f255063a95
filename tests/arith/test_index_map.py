"""Index maps, layouts by letters, regions over loops, and divided spaces."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from loopwright import tir
from loopwright.arith import (
    Analyzer,
    estimate_region_lower_bound,
    estimate_region_strict_bound,
    estimate_region_upper_bound,
    neg_inf,
    normalize_iter_map_to_expr,
    pos_inf,
    subspace_divide,
)
from loopwright.arith.index_map import BadIndexMap, IndexMap, NotBijective
from loopwright.arith.layout import BadLayout, bijective_layout, layout
from loopwright.ir import Range, SizeVar, Var, structural_equal, substitute
from tests.arith.integers import as_python

i, j, k = Var("i"), Var("j"), Var("k")


def numbers(values):
    return [value.value for value in values]


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda a, b: (b, a), (3, 5)),
        (lambda a, b: (a // 4, b, a % 4), (8, 3)),
        (lambda a: (a // 6, a // 2 % 3, a % 2), (12,)),
        (lambda a, b: (a * 5 + b,), (4, 5)),
        (lambda a, b, c: (c, a // 2, b, a % 2), (4, 1, 3)),
    ],
)
def test_maps_forth_and_back(function, shape):
    forth = IndexMap.from_func(function)
    back = forth.inverse(shape)
    size = tuple(numbers(forth.map_shape(shape)))
    seen = set()
    for point in itertools.product(*map(range, shape)):
        image = numbers(forth.map_indices(point))
        assert numbers(back.map_indices(image)) == list(point)
        assert all(0 <= index < bound for index, bound in zip(image, size, strict=True))
        seen.add(tuple(image))
    assert len(seen) == np.prod(size)
    data = np.arange(np.prod(shape)).reshape(shape)
    moved = forth.map_ndarray(data)
    assert moved.shape == size and sorted(moved.ravel()) == sorted(data.ravel())
    assert all(moved[tuple(numbers(forth.map_indices(p)))] == data[p] for p in itertools.product(*map(range, shape)))


@pytest.mark.parametrize("size", [13, 14, 16, 1])
def test_padding_of_a_last_block(size):
    forth = IndexMap.from_func(lambda a: (a // 4, a % 4))
    back, padding = forth.non_surjective_inverse([size])
    outside = as_python(padding, list(back.initial_indices))
    for point in itertools.product(range(-(-size // 4)), range(4)):
        old = numbers(back.map_indices(point))[0]
        assert bool(outside(*point)) == (old >= size)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda a: (a + 3,), (5,)),  # cells 0 to 2 hold nothing
        (lambda a: (1, a), (5,)),  # nor does the first row
        (lambda a, b: (a // 4, b + 1, a % 4), (6, 2)),
    ],
)
def test_cells_before_the_first_element_are_padding(function, shape):
    forth = IndexMap.from_func(function)
    back, padding = forth.non_surjective_inverse(shape)
    outside = as_python(padding, list(back.initial_indices))
    held = {tuple(numbers(forth.map_indices(point))) for point in itertools.product(*map(range, shape))}
    for cell in itertools.product(*map(range, numbers(forth.map_shape(shape)))):
        assert bool(outside(*cell)) == (cell not in held)


def test_the_shape_of_open_sizes_is_a_formula():
    """An int32 size has a bound, that of its type, which is no shape."""
    swapped = IndexMap.from_func(lambda a, b: (b, a // 4, a % 4))
    n = SizeVar("n", "int32")
    sizes = swapped.map_shape([8, n])
    assert Analyzer().can_prove_equal(sizes[0], n.astype("int64")) and numbers(sizes[1:]) == [2, 4]
    assert numbers(swapped.map_shape([2**34, 8])) == [8, 2**32, 4]


def test_an_array_keeps_all_its_elements():
    with pytest.raises(NotBijective, match="two elements go to one cell"):
        IndexMap.from_func(lambda a: (a % 4,)).map_ndarray(np.arange(6))
    with pytest.raises(BadIndexMap, match="goes down to -1"):
        IndexMap.from_func(lambda a: (a - 1,)).map_ndarray(np.arange(6))


def test_equivalence_separators_and_dtype():
    blocked = IndexMap.from_func(lambda a, b: (a // 4, b, a % 4))
    assert blocked.is_equivalent_to(IndexMap.from_func(lambda p, q: ((p * 2) // 8, q, p - p // 4 * 4)))
    assert not blocked.is_equivalent_to(IndexMap.from_func(lambda p, q: (p // 4, p % 4, q)))
    made, separators = IndexMap.from_func_with_separators(lambda a, b: (a, IndexMap.AXIS_SEPARATOR, b, b + 1))
    assert separators == [1] and len(made.final_indices) == 3
    assert IndexMap.from_func(lambda a: a, index_dtype="int32").initial_indices[0].dtype == "int32"
    assert repr(IndexMap.from_func(lambda *a: a[::-1], ndim=2, index_dtype="int32")) == "lambda a_0, a_1: (a_1, a_0)"
    own = IndexMap.from_func(lambda a: (a // 4,), inverse_index_map=lambda a: (a * 4,))
    assert own.inverse([16]) is own.inverse_index_map


def test_a_map_is_a_layout_for_schedules():
    from loopwright.schedule.rewrite.index_map import LayoutMap

    taken = LayoutMap.of(IndexMap.from_func(lambda a, b: (b, a), index_dtype="int32"))
    assert taken.text == "lambda a, b: (b, a)"


@pytest.mark.parametrize(
    ("act", "error", "problem"),
    [
        (lambda: IndexMap.from_func(lambda a: a // 4).inverse([16]), NotBijective, "has no inverse on the shape"),
        (lambda: IndexMap.from_func(lambda a: (a, a)).inverse([16]), NotBijective, "has no inverse"),
        (lambda: IndexMap.from_func(lambda a: (a // 4, a % 4)).inverse([14]), NotBijective, "4 does not divide"),
        (lambda: IndexMap.from_func(lambda *a: a), BadIndexMap, "any number of indices"),
        (lambda: IndexMap.from_func(lambda a, b: a, ndim=3), BadIndexMap, "takes 2 indices, ndim is 3"),
        (lambda: IndexMap.from_func(lambda a: "x"), BadIndexMap, "which is no index"),
        (lambda: IndexMap.from_func(lambda a: (a, IndexMap.AXIS_SEPARATOR)), BadIndexMap, "axis separator"),
        (lambda: IndexMap.from_func(lambda a: a).map_indices([1, 2]), BadIndexMap, "takes 1 indices, got 2"),
        (lambda: IndexMap.from_func(lambda a: a - 1).map_shape([4]), BadIndexMap, "goes down to -1"),
    ],
)
def test_bad_maps_are_refused(act, error, problem):
    with pytest.raises(error, match=problem):
        act()


# --- layouts ------------------------------------------------------------------------------------------------------


def test_letters():
    blocked = layout("NCHW16c")
    assert (len(blocked), blocked.index_of("c"), blocked.index_of("D"), blocked[1]) == (5, 4, -1, "C")
    assert (blocked.factor_of("C"), blocked.factor_of("c"), blocked.factor_of("H")) == (16, 16, -1)
    assert "c" in blocked and "d" not in blocked and str(blocked) == "NCHW16c"
    assert structural_equal(layout("NCHW"), layout("NCHW")) and not structural_equal(layout("NCHW"), layout("NHWC"))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("target", ["NHWC", "NCHW4c", "NHWC2c4n", "CHWN8c", "NCHW2c4c"])
def test_layouts_forth_and_back(target):
    pair = bijective_layout("NCHW", target)
    shape = (4, 8, 2, 3)
    moved = numbers(pair.forward_shape(shape))
    assert numbers(pair.backward_shape(moved)) == list(shape) and np.prod(moved) == np.prod(shape)
    seen = set()
    for point in itertools.product(*map(range, shape)):
        image = numbers(pair.forward_index(point))
        assert all(0 <= index < size for index, size in zip(image, moved, strict=True))
        assert numbers(pair.backward_index(image)) == list(point)
        seen.add(tuple(image))
    assert len(seen) == np.prod(shape)


def test_layouts_with_symbols_and_padding():
    pair = bijective_layout("NCHW", "NCHW16c")
    n, c, h, w = (Var(name) for name in "nchw")
    assert repr(pair.forward_index([n, c, h, w])) == "[n, c // 16, h, w, c % 16]"
    assert repr(bijective_layout("NCHW4c", "NCHW16c").forward_index([n, c, h, w, k])[1]) == "c // 4"
    assert numbers(pair.forward_shape((1, 31, 7, 7))) == [1, 2, 7, 7, 16]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("NCHWN", "axis N appears twice"),
        ("NCHW16x", "the part x has no axis X"),
        ("NCHW16", "'16' is neither"),
        ("NC-HW", "'-HW' is neither"),
        ("NCHW0c", "the part c has size 0"),
        (5, "a layout is a text"),
    ],
)
def test_bad_layouts_are_refused(text, problem):
    with pytest.raises(BadLayout, match=problem):
        layout(text)


def test_layouts_of_other_axes_do_not_meet():
    with pytest.raises(BadLayout, match="only one of them has D"):
        bijective_layout("NCHW", "NCDHW")
    with pytest.raises(BadLayout, match="it has 4 axes, but 2 values were given"):
        bijective_layout("NCHW", "NHWC").forward_index((1, 2))
    with pytest.raises(BadLayout, match="part c has size 16, the shape says 8"):
        bijective_layout("NCHW16c", "NCHW").forward_shape((1, 2, 3, 3, 8))


# --- regions --------------------------------------------------------------------------------------------------------


def part(low, extent):
    return Range.from_min_extent(low, extent)


LOOPS = {i: Range(0, 4), j: Range(0, 3)}


@pytest.mark.parametrize(
    ("region", "predicate", "is_box"),
    [
        ([part(i * 4, 6)], True, True),
        ([part(i * 4, 2)], True, False),
        ([part(i, 1), part(i, 1)], True, False),
        ([part(i, 2), part(j * 2, 2)], True, True),
        ([part(i * 3 + j, 1)], True, True),
        ([part(i // 2, 1), part(i % 2, 1)], True, True),
        ([part(i + j, 1)], True, False),
        ([part(i * 3 + j, 1)], i * 3 + j < 10, True),
        ([part(i, 1), part(j, 1)], i * 3 + j < 10, False),
        ([part(i * i, 1)], True, False),
    ],
)
def test_regions_hold_what_is_touched(region, predicate, is_box):
    holds = as_python(predicate, [i, j]) if predicate is not True else lambda *_: True
    lows = [as_python(one.min, [i, j]) for one in region]
    touched = set()
    for point in itertools.product(range(4), range(3)):
        if holds(*point):
            spans = [range(low(*point), low(*point) + one.extent.value) for low, one in zip(lows, region, strict=True)]
            touched |= set(itertools.product(*spans))

    def box(found):
        return set(itertools.product(*[range(low.value, high.value + 1) for low, high in found]))

    upper = estimate_region_upper_bound(region, LOOPS, predicate)
    if all(low is not neg_inf() and high is not pos_inf() for low, high in upper):
        assert touched <= box(upper)
    for estimate in (estimate_region_strict_bound, estimate_region_lower_bound):
        found = estimate(region, LOOPS, predicate)
        assert (found is not None) == is_box
        if found is not None:
            assert box(found) == touched


# --- divided spaces -------------------------------------------------------------------------------------------------

SPACE = {i: Range(0, 8), j: Range(0, 8), k: Range(0, 4)}


@pytest.mark.parametrize(
    ("bindings", "inner", "wanted"),
    [
        ([i * 32 + j * 4 + k], [j, k], [("i", "j * 4 + k", 8, 32)]),
        ([i * 4 + k, j], [k], [("i", "k", 8, 4), ("j", "0", 8, 1)]),
        ([i, j * 4 + k], [j, k], [("i", "0", 8, 1), ("0", "j * 4 + k", 1, 32)]),
        ([i * 32 + j * 4 + k], [i, k], None),
        ([i + j, k], [k], None),
    ],
)
def test_spaces_divide_where_inner_loops_run_over_whole_tiles(bindings, inner, wanted):
    found = subspace_divide(bindings, SPACE, inner)
    if wanted is None:
        assert found == []
        return
    shown = [
        (*[repr(normalize_iter_map_to_expr(mark.source)) for mark in pair], *[mark.extent.value for mark in pair])
        for pair in found[:-1]
    ]
    assert shown == wanted


def test_predicates_divide_too():
    found = subspace_divide([i * 4 + k, j], SPACE, [k], predicate=tir.all(j < 6))
    assert [repr(mark.extent) for mark in found[-1]] == ["j < 6", "T.bool(True)"]
    assert subspace_divide([i * 4 + k, j], SPACE, [k], predicate=i * 4 + k < 30) == []


def test_blocks_that_begin_before_the_first_index():
    index_map = IndexMap.from_func(lambda i: ((i + 5) // 32, (i + 5) // 4 % 8, (i + 5) % 4), index_dtype="int32")
    back, padding = index_map.non_surjective_inverse([116])
    assert back.is_equivalent_to(IndexMap.from_func(lambda a, b, c: (a * 32 + b * 4 + c - 5,)))
    assert str(padding) == "axis0 == 0 and axis1 * 4 + axis2 < 5 or axis0 == 3 and axis1 * 4 + axis2 >= 25"
    for values in [(0, 1, 0), (0, 1, 1), (0, 1, 2), (3, 6, 0), (3, 6, 1), (3, 7, 3), (2, 7, 3)]:
        flat = values[0] * 32 + values[1] * 4 + values[2] - 5
        there = dict(zip(back.initial_indices, [tir.const(value, "int32") for value in values], strict=True))
        assert bool(Analyzer().simplify(substitute(padding, there))) == (not 0 <= flat < 116)
