"""inlining: what goes into its readers, what kept in a buffer, and that the plan says why."""

from __future__ import annotations

import pytest

from loopwright import te
from loopwright.autosched import apply
from tests.autosched.same_results import check_same_bits, function, numbers

TARGET = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=2"


def blur(size: int, reach: int):
    """A padded image, and the weighted sum of its windows."""
    image = te.placeholder((size, size), name="U")
    inside = lambda i, j: te.all(i >= reach, i < size + reach, j >= reach, j < size + reach)
    padded = te.compute(
        (size + 2 * reach,) * 2,
        lambda i, j: te.if_then_else(inside(i, j), image[i - reach, j - reach], 0.0),
        name="P",
    )
    taps = [(a, b) for a in range(2 * reach + 1) for b in range(2 * reach + 1)]
    result = te.compute(
        (size, size), lambda i, j: sum((padded[i + a, j + b] * float(a * b + 1) for a, b in taps), 0.0), name="R"
    )
    return function(image, result)


def rules(func):
    return {decision.blocks[0]: decision.rule for decision in apply(func, TARGET).decisions}


def test_padding_goes_into_a_small_stencil():
    plan = apply(blur(512, 1), TARGET)
    assert [decision.rule for decision in plan.decisions] == ["inlined", "element-wise"]
    assert "into R: computed 9 times: cheaper than a buffer" in plan.explain()


@pytest.mark.parametrize("reach", [2, 3])
def test_padding_of_a_large_stencil_stays_a_buffer(reach):
    plan = apply(blur(64, reach), TARGET)
    assert [decision.rule for decision in plan.decisions] == ["not inlined", "element-wise", "element-wise"]
    places = (2 * reach + 1) ** 2
    assert f"P: not inlined\n  kept in a buffer: R reads it at {places} indices, and would evaluate" in plan.explain()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("reach", [1, 2, 3, 5])
def test_blurs_keep_their_bits(reach):
    check_same_bits(blur(40, reach), [numbers(40, 40), numbers(40, 40, seed=1)])


def two_readers(points: int, size: int = 512):
    source = te.placeholder((size, size + points), name="U")
    stencil = te.compute(
        (size, size), lambda i, j: sum((source[i, j + k] * float(k + 1) for k in range(points)), 0.0), name="R"
    )
    moved = te.compute((size, size), lambda i, j: source[i, j] + stencil[i, j], name="V")
    j = te.reduce_axis((0, size), name="j")
    energy = te.compute((size,), lambda i: te.sum(stencil[i, j] * stencil[i, j], axis=j), name="E")
    return function(source, moved, energy)


def test_work_that_is_read_twice_is_priced():
    assert rules(two_readers(2))["R"] == "inlined"
    plan = apply(two_readers(49), TARGET)
    assert plan.decisions[0].rule == "not inlined"
    assert "kept in a buffer: V, E would compute it 2 times, which takes longer than" in plan.explain()


def test_what_is_read_in_two_places_is_not_said_to_be_computed_once():
    explained = apply(two_readers(2), TARGET).explain()
    assert "R: inlined\n  into V, E: computed 2 times: cheaper than a buffer" in explained


def test_what_is_read_once_is_computed_once():
    source = te.placeholder((8, 8), name="A")
    twice = te.compute((8, 8), lambda i, j: source[i, j] * 2.0, name="B")
    result = te.compute((8, 8), lambda i, j: twice[i, j] + 1.0, name="C")
    explained = apply(function(source, result), TARGET).explain()
    assert "B: inlined\n  into C: nothing is recomputed, and no buffer is needed" in explained


def test_a_row_that_is_read_for_each_row_is_computed_again():
    source, matrix = te.placeholder((8,), name="a"), te.placeholder((6, 8), name="A")
    scale = te.compute((8,), lambda j: source[j] * 2.0, name="s")
    result = te.compute((6, 8), lambda i, j: matrix[i, j] * scale[j], name="C")
    explained = apply(function(source, matrix, result), TARGET).explain()
    assert "into C: computed 6 times: cheaper than a buffer" in explained


@pytest.mark.parametrize("points", [2, 49])
def test_two_readers_keep_their_bits(points):
    size = 20
    arrays = [numbers(size, size + points), numbers(size, size, seed=1)]
    source = te.placeholder((size, size + points), name="U")
    stencil = te.compute(
        (size, size), lambda i, j: sum((source[i, j + k] * float(k + 1) for k in range(points)), 0.0), name="R"
    )
    moved = te.compute((size, size), lambda i, j: source[i, j] + stencil[i, j] * stencil[i, j + 0], name="V")
    check_same_bits(function(source, moved), arrays)


def test_a_number_of_a_graph_goes_into_its_readers():
    """A constant of relay is a block without loops; its reader has the number itself, which passes can see."""
    A = te.placeholder((64,), name="A")
    two = te.compute((), lambda: te.const(2.0, "float32"), name="two")
    func = function(A, te.compute((64,), lambda i: te.power(A[i], two()), name="B"))
    assert rules(func) == {"two": "inlined", "B": "element-wise"}
