"""The trace: steps as Python, as JSON, replayed."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.schedule import Trace
from loopwright.schedule.errors import BadStepArgument
from tests.schedule.steps import chain, check_replay, matmul


def tiled(func):
    sch = tir.Schedule(func, seed=1)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, 2))
    sch.reorder(i0, j0, k, i1, j1)
    sch.annotate(block, "note", {"a": [1, "x"]})
    sch.unroll(i1)
    sch.parallel(sch.fuse(i0, j0))
    return sch


def test_as_python():
    sch = tiled(matmul(8, 8, 8))
    assert sch.trace.as_python() == [
        "b0 = sch.get_block(name='C', func_name='main')",
        "l1, l2, l3 = sch.get_loops(block=b0)",
        "l4, l5 = sch.split(loop=l1, factors=[None, 4], preserve_unit_iters=True, tail='guard')",
        f"v6, v7 = sch.sample_perfect_tile(loop=l2, n=2, max_innermost_factor=16, decision={sch.trace.decisions[3]})",
        "l8, l9 = sch.split(loop=l2, factors=[v6, v7], preserve_unit_iters=True, tail='guard')",
        "sch.reorder(l4, l8, l3, l5, l9)",
        "sch.annotate(block_or_loop=b0, ann_key='note', ann_val={'a': [1, 'x']})",
        "sch.unroll(loop=l5)",
        "l10 = sch.fuse(l4, l8, preserve_unit_iters=True)",
        "sch.parallel(loop=l10)",
    ]


def test_replay():
    for func in (matmul(8, 8, 8), matmul(5, 7, 3)):
        check_replay(tiled(func), func)


def test_str():
    assert str(Trace()) == "# from loopwright import tir\ndef apply_trace(sch: tir.Schedule) -> None:\n  pass"
    sch = tiled(matmul(8, 8, 8))
    names = {"tir": tir}
    exec(str(sch.trace), names)
    again = tir.Schedule(matmul(8, 8, 8))
    names["apply_trace"](again)
    assert again.trace.as_python() == sch.trace.as_python()


def test_as_json():
    sch = tir.Schedule(matmul())
    (i, *_) = sch.get_loops("C")
    sch.split(i, [None, 2])
    assert sch.trace.as_json() == [
        [
            ["GetBlock", [], ['"C"', '"main"'], ["b0"]],
            ["GetLoops", ["b0"], [], ["l1", "l2", "l3"]],
            ["Split", ["l1", [None, 2]], [True, '"guard"'], ["l4", "l5"]],
        ],
        [],
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("not json", r"the text is not \[steps, decisions\]"),
        ("[1]", r"the text is not \[steps, decisions\]"),
        ('[[["NoSuchStep", [], [], []]], []]', "entry 0 is no step"),
        ('[[["GetBlock", []]], []]', "entry 0 is no step"),
        ('[[["Unroll", ["l7"], [], []]], []]', "entry 0 does not fit unroll"),
        ('[[["GetBlock", [], [3], ["b0"]]], []]', "entry 0 does not fit get_block"),
        ('[[["GetBlock", [], ["\\"C\\"", "\\"main\\""], []]], []]', "names 0 results, but get_block gave 1"),
    ],
)
def test_malformed_json(data, message):
    with pytest.raises(BadStepArgument, match=message):
        Trace.apply_json_to_schedule(data, tir.Schedule(matmul()))


def test_a_trace_is_proved_again_on_another_program():
    sch = tir.Schedule(chain())
    sch.merge(sch.get_loops("D")[0], sch.get_loops("E")[0])
    other = tir.Schedule(chain(7, 3, 2, 2))
    sch.trace.apply_to_schedule(other)
    assert [loop.name for loop in other.get_loops("E")] == ["m_m", "l"]


def test_a_decision_provider_sees_every_step():
    func = matmul(8, 8, 8)
    sch = tiled(func)
    seen = []

    def provider(inst, inputs, attrs, decision):
        seen.append(inst.kind)
        return [1, 8] if inst.kind == "SamplePerfectTile" else decision

    again = tir.Schedule(func)
    sch.trace.apply_to_schedule(again, decision_provider=provider)
    assert again.trace.decisions[3] == [1, 8]
    assert seen == [inst.kind for inst in sch.trace.insts]


def test_steps_know_the_users_line():
    sch = tir.Schedule(matmul())
    sch.unroll(sch.get_loops("C")[0])
    assert all(inst.where.startswith("test_trace.py:") for inst in sch.trace.insts)


def test_pop_on_an_empty_trace():
    assert Trace().pop() is None
