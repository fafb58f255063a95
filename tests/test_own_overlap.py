"""Arrays that overlap themselves: they can be read, and a call that would write one is refused."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import loopwright as lw
from loopwright import tir
from loopwright.analysis import check_program
from loopwright.analysis.strides import StridesMeet
from loopwright.evaluator import evaluate
from loopwright.evaluator.arguments import elements_apart
from loopwright.runtime.call_errors import OverlappingArguments
from loopwright.script import from_source
from loopwright.script import tir as T


@T.prim_func
def strided_copy(a: T.handle, b: T.handle):
    n, m, s0, s1, t0, t1 = T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), strides=[s0, s1])
    B = T.match_buffer(b, (n, m), strides=[t0, t1])
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]


CALLS = [
    pytest.param(lambda: lw.build(strided_copy), id="native"),
    pytest.param(lambda: lambda a, b: evaluate(strided_copy, a, b), id="evaluator"),
    pytest.param(lambda: lw.build(strided_copy, target="c"), id="c"),
]


def view(shape: tuple[int, int], strides: tuple[int, int]) -> np.ndarray:
    """A view of so many elements, strides counted in elements."""
    return as_strided(np.full(200, -1, "float32"), shape, [4 * stride for stride in strides])


@pytest.mark.parametrize("made", CALLS)
@pytest.mark.parametrize("strides", [(0, 1), (1, 0), (0, 0), (1, 1), (3, 1), (1, 2), (2, 1)])
def test_a_written_view_that_overlaps_itself_is_refused(made, strides):
    a, b = np.arange(16, dtype="float32").reshape(4, 4), view((4, 4), strides)
    text = rf"argument B has shape \(4, 4\) and strides \({strides[0]}, {strides[1]}\): two of its elements may share"
    with pytest.raises(OverlappingArguments, match=text) as caught:
        made()(a, b)
    assert "B is written" in str(caught.value)
    assert np.all(b == -1)  # nothing was touched


@pytest.mark.parametrize("made", CALLS)
@pytest.mark.parametrize(
    ("shape", "strides"),
    [((4, 4), (4, 1)), ((4, 4), (1, 4)), ((4, 4), (20, 3)), ((1, 4), (0, 1)), ((4, 1), (1, 0)), ((0, 4), (0, 0))],
)
def test_other_views_are_written(made, shape, strides):
    a, b = np.arange(shape[0] * shape[1], dtype="float32").reshape(shape), view(shape, strides)
    made()(a, b)
    np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("made", CALLS)
def test_a_view_that_overlaps_itself_is_read(made):
    for a in (np.broadcast_to(np.arange(3, dtype="float32"), (4, 3)), sliding_window_view(np.arange(6.0), 3)):
        a, b = as_strided(a.astype("float32").copy(), a.shape, [4, 4]), np.zeros((4, 3), "float32")
        made()(a, b)
        np.testing.assert_array_equal(b, a)


def test_backward_strides_are_written_by_compiled_code():
    a, memory = np.arange(12, dtype="float32").reshape(3, 4), np.zeros((3, 4), "float32")
    lw.build(strided_copy)(a, memory[::-1, ::-1])
    np.testing.assert_array_equal(memory[::-1, ::-1], a)


def test_more_dimensions():
    @T.prim_func
    def fill(b: T.handle):
        s0, s1, s2 = T.int32(), T.int32(), T.int32()
        B = T.match_buffer(b, (2, 3, 2), strides=[s0, s1, s2])
        for i, j, k in T.grid(2, 3, 2):
            B[i, j, k] = 1.0

    module = lw.build(fill)
    for strides in product((0, 1, 2, 3, 4, 6, 7), repeat=3):
        places = {i * strides[0] + j * strides[1] + k * strides[2] for i, j, k in product(range(2), range(3), range(2))}
        b = as_strided(np.zeros(64, "float32"), (2, 3, 2), [4 * stride for stride in strides])
        apart = elements_apart((2, 3, 2), strides)
        assert not apart or len(places) == 12
        if apart:
            module(b)
            assert np.all(b == 1)
        else:
            with pytest.raises(OverlappingArguments, match="two of its elements may share memory"):
                module(b)


def test_the_evaluator_refuses_arguments_that_overlap_each_other():
    memory = np.arange(20, dtype="float32")
    with pytest.raises(OverlappingArguments, match="arguments A and B overlap in memory"):
        evaluate(strided_copy, memory[:12].reshape(3, 4), memory[8:].reshape(3, 4))
    evaluate(strided_copy, memory[:8].reshape(2, 4), memory[8:16].reshape(2, 4))
    unaware = strided_copy.with_attr("tir.noalias", False)
    evaluate(unaware, memory[:8].reshape(2, 4), memory[:8].reshape(2, 4))


def test_a_window_in_a_block_counts_as_its_buffer():
    function = from_source("""
@T.prim_func
def main(b: T.handle):
    s0, s1 = T.int32(), T.int32()
    B = T.match_buffer(b, (4, 4), strides=[s0, s1])
    for i in range(4):
        with T.block("row"):
            vi = T.axis.spatial(4, i)
            row = T.match_buffer(B[vi, 0:4], (4,), strides=[s1])
            for j in range(4):
                row[j] = 1.0
""")
    b = view((4, 4), (0, 1))
    for call in (lw.build(function), lambda b: evaluate(function, b)):
        with pytest.raises(OverlappingArguments, match="argument B has shape"):
            call(b)


def allocated(shape: str, strides: str, sizes: str = "") -> object:
    return from_source(f"""
@T.prim_func
def main(C: T.Buffer((4, 4)){sizes}):
    B = T.alloc_buffer({shape}, strides={strides})
    for i, j in T.grid(4, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.float32(1)
    for i, j in T.grid(4, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]
""")


@pytest.mark.parametrize("strides", ["[1, 1]", "[0, 1]", "[3, 1]", "[2, 3]"])
def test_an_allocated_buffer_that_overlaps_itself_is_refused(strides):
    function = allocated("(4, 4)", strides)
    for entrance in (tir.Schedule, check_program, lw.build):
        with pytest.raises(StridesMeet, match=rf"two elements of B may share memory.* strides are \({strides[1:-1]}\)"):
            entrance(function)


def test_strides_that_are_not_known_must_keep_elements_apart():
    with pytest.raises(StridesMeet, match="two elements of B may share memory"):
        tir.Schedule(allocated("(4, 4)", "[s, 1]", ", s: T.int32"))
    for strides in ("[8, 1]", "[1, 4]", "[-4, 1]"):
        tir.Schedule(allocated("(4, 4)", strides))
