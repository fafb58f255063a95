"""record: what a run loads and stores, in order, and in whose memory."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import te
from loopwright.evaluator import evaluate
from loopwright.evaluator.recording import record
from loopwright.script import tir as T


def told(recording):
    return [recording.message(event) for event in recording.events]


@T.prim_func
def shifted(A: T.Buffer(4, "int32"), B: T.Buffer(2, "int32")):
    for i in T.vectorized(2):
        with T.block("B"):
            vi = T.axis.spatial(2, i)
            B[vi] = A[vi + 1]


def test_lanes_load_before_they_store():
    recording = record(shifted, np.arange(4, dtype="int32"), np.zeros(2, "int32"))
    assert told(recording) == [
        "A[1] is 1 at i=0, vi=0",
        "A[2] is 2 at i=1, vi=1",
        "B[0] = 1 at i=0, vi=0",
        "B[1] = 2 at i=1, vi=1",
    ]
    assert [site.block for site in recording.sites] == ["B", "B"]
    assert recording.is_complete


def test_the_init_of_a_reduction_is_a_write_of_its_own():
    A = te.placeholder((1, 2), name="A")
    k = te.reduce_axis((0, 2), "k")
    B = te.compute((1,), lambda i: te.sum(A[i, k], axis=k), name="B")
    recording = record(te.create_prim_func([A, B]), np.array([[3, 4]], "float32"), np.zeros(1, "float32"))
    written = [event.value for event in recording.events if recording.sites[event.site].writes]
    assert written == [0.0, 3.0, 7.0]
    assert recording.sites[recording.events[0].site].block == "B_init"


def test_it_computes_what_evaluate_computes():
    A = te.placeholder((3, 5), name="A")
    B = te.compute((3, 5), lambda i, j: te.exp(A[i, j]), name="B")
    C = te.compute((5, 3), lambda i, j: B[j, i] * 2.0, name="C")
    func = te.create_prim_func([A, C])
    a = np.random.default_rng(0).random((3, 5)).astype("float32")
    one, other = np.zeros((5, 3), "float32"), np.zeros((5, 3), "float32")
    evaluate(func, a, one)
    recording = record(func, a, other)
    np.testing.assert_array_equal(one, other)
    assert len(recording.events) == 15 * 4
    # Allocated memory has a piece of its own, whose elements have indices.
    (piece,) = [piece for piece in recording.pieces if not piece.is_argument]
    assert (piece.buffer.name, piece.shape) == ("B", (3, 5))
    last = recording.events[-2]
    assert recording.pieces[last.piece].indices(last.offset) == (2, 4)


@T.prim_func
def through_a_window(A: T.Buffer((4, 6), "int32")):
    for i in range(2):
        with T.block("W"):
            vi = T.axis.spatial(2, i)
            W = T.match_buffer(A[vi * 2 : vi * 2 + 2, 3:6], (2, 3), "int32", strides=[6, 1], offset_factor=1)
            W[1, 2] = vi + 7


def test_a_window_is_memory_of_the_buffer_it_shows():
    recording = record(through_a_window, np.zeros((4, 6), "int32"))
    assert told(recording) == ["A[1, 5] = 7 at i=0, vi=0", "A[3, 5] = 8 at i=1, vi=1"]


@T.prim_func
def aligned(A: T.Buffer(4, "int32"), B: T.Buffer(4, "int32")):
    with T.block("root"):
        S = T.alloc_buffer((2, 2), "int32", strides=(5, 1))
        for i, j in T.grid(2, 2):
            with T.block("S"):
                vi, vj = T.axis.remap("SS", [i, j])
                S[vi, vj] = A[vi * 2 + vj]
        for i, j in T.grid(2, 2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi * 2 + vj] = S[vi, vj]


def test_strides_do_not_change_the_indices():
    recording = record(aligned, np.arange(4, dtype="int32"), np.zeros(4, "int32"))
    stored = [text.split(" at ")[0] for text in told(recording) if text.startswith("S[") and "] = " in text]
    assert stored == ["S[0, 0] = 0", "S[0, 1] = 1", "S[1, 0] = 2", "S[1, 1] = 3"]


@pytest.mark.parametrize("most", [0, 1, 3])
def test_it_stops_when_there_is_more_than_asked_for(most):
    recording = record(shifted, np.arange(4, dtype="int32"), np.zeros(2, "int32"), most=most)
    assert len(recording.events) == most and not recording.is_complete


def test_as_many_as_asked_for_is_complete():
    assert record(shifted, np.arange(4, dtype="int32"), np.zeros(2, "int32"), most=4).is_complete
