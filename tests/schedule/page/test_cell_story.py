"""cell_trace: what a run on small numbers does to every cell, and why there may be none."""

from __future__ import annotations

import json

import pytest

from loopwright import te
from loopwright.ir import IRModule
from loopwright.schedule import Schedule
from loopwright.schedule.page import cell_trace as stories
from loopwright.schedule.page.cell_trace import NotTraced, cell_trace, plain
from loopwright.script import tir as T
from tests.schedule.steps import matmul


def story_of(function, sizes=None, seed=0):
    return cell_trace(IRModule({"main": function}), "main", sizes or {}, seed)


def final(story, name):
    """What the cells of a buffer hold at the end."""
    number = next(k for k, buffer in enumerate(story.buffers) if buffer["name"] == name)
    cells = dict(enumerate(story.start.get(str(number), [])))
    for site, buffer, cell, value, *_ in story.events:
        if buffer == number and story.sites[site][0]:
            cells[cell] = value
    return cells


def test_a_matmul_tells_its_sums():
    story = story_of(matmul(2, 2, 3))
    a, b, c = final(story, "A"), final(story, "B"), final(story, "C")
    assert c[3] == pytest.approx(sum(a[3 + k] * b[2 * k + 1] for k in range(3)))
    writes = [event for event in story.events if story.sites[event[0]][0]]
    assert len(writes) == 4 + 12 and len(story.events) == 4 + 12 * 4
    assert story.sites[0] == [True, "C_init", ["i", "j", "v_i", "v_j"]]
    json.dumps(story.data(), allow_nan=False)


def test_every_version_gets_the_same_numbers_and_ends_the_same():
    sch = Schedule(matmul(4, 4, 4))
    before = story_of(sch.mod["main"])
    i, j, k = sch.get_loops("C")
    sch.reorder(k, j, i)
    sch.cache_write("C", 0, "local")
    after = story_of(sch.mod["main"])
    assert before.start["0"] == after.start["0"]
    assert final(before, "C") == final(after, "C")
    assert before.events != after.events
    assert story_of(sch.mod["main"], seed=1).start != after.start


def test_symbolic_sizes():
    n = te.var("n")
    A = te.placeholder((n, 2), name="A")
    B = te.compute((n, 2), lambda i, j: A[i, j] + 1.0, name="B")
    story = story_of(te.create_prim_func([A, B]))
    assert story.sizes == {"n": 5} and story.buffers[0]["shape"] == [5, 2]
    assert story_of(te.create_prim_func([A, B]), {"n": 0}).events == []
    assert story_of(te.create_prim_func([A, B]), {"n": 1}).buffers[1]["shape"] == [1, 2]


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int8", "uint8", "int64", "bool"])
def test_types(dtype):
    A = te.placeholder((3,), dtype, name="A")
    B = te.compute((3,), lambda i: A[i], name="B")
    story = story_of(te.create_prim_func([A, B]))
    assert final(story, "A") == final(story, "B")
    json.dumps(story.data(), allow_nan=False)


def test_a_gather_reads_valid_subscripts():
    A, I = te.placeholder((6,), name="A"), te.placeholder((9,), "int32", name="I")
    B = te.compute((9,), lambda i: A[I[i]], name="B")
    assert len(story_of(te.create_prim_func([A, I, B])).events) == 27


def test_infinities_have_names():
    A = te.placeholder((1,), name="A")
    B = te.compute((1,), lambda i: te.exp(A[i] * 0.0 + 1000.0) * (A[i] - A[i]), name="B")
    story = story_of(te.create_prim_func([A, B]))
    assert story.events[-1][3] == "nan"
    assert plain(float("-inf")) == "-inf" and plain(1 / 3) == 0.333333 and plain(True) is True


def test_what_is_too_large_is_not_run(monkeypatch):
    with pytest.raises(NotTraced, match=r"it has more than 20,000 iterations; use smaller sizes"):
        story_of(matmul(64, 64, 64))
    with pytest.raises(NotTraced, match=r"its argument A has 10,000 cells, more than 4,096"):
        story_of(matmul(100, 1, 100))
    monkeypatch.setattr(stories, "MOST_EVENTS", 10)
    with pytest.raises(NotTraced, match=r"it touches memory more than 10 times"):
        story_of(matmul(2, 2, 2))


def test_what_cannot_be_run():
    @T.prim_func
    def beyond(A: T.Buffer(4)):
        for i in range(4):
            with T.block("A"):
                vi = T.axis.spatial(4, i)
                A[vi + 1] = T.float32(0)

    with pytest.raises(NotTraced, match=r"it cannot be run on random numbers: .*A\[4\]"):
        story_of(beyond)

    @T.prim_func
    def pointer(p: T.handle, A: T.Buffer(4)):
        A[0] = T.float32(0)

    with pytest.raises(NotTraced, match="it takes a pointer, p"):
        story_of(pointer)


def test_memory_allocated_again_and_again_is_one_buffer():
    sch = Schedule(matmul(4, 4, 2))
    i, _, _ = sch.get_loops("C")
    copy = sch.cache_write("C", 0, "local")
    sch.reverse_compute_at(copy, i)
    sch.sink_alloc("C", "C_local")
    story = story_of(sch.mod["main"])
    assert [buffer["name"] for buffer in story.buffers].count("C_local") == 1
