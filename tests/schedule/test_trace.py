"""The trace: steps as Python, as JSON, replayed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from loopwright import te, tir
from loopwright.ir import assert_structural_equal
from loopwright.schedule import InstructionKind, Trace
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.trace.trace import TraceDoesNotFit
from tests.schedule.steps import chain, check_replay, matmul, same_program


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
        'b0 = sch.get_block(name="C", func_name="main")',
        "l1, l2, l3 = sch.get_loops(block=b0)",
        'l4, l5 = sch.split(loop=l1, factors=[None, 4], preserve_unit_iters=True)',
        f"v6, v7 = sch.sample_perfect_tile(loop=l2, n=2, max_innermost_factor=16, decision={sch.trace.decisions[3]})",
        'l8, l9 = sch.split(loop=l2, factors=[v6, v7], preserve_unit_iters=True)',
        "sch.reorder(l4, l8, l3, l5, l9)",
        'sch.annotate(block_or_loop=b0, ann_key="note", ann_val={"a": [1, "x"]})',
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
            ["GetBlock", [], ["C", "main"], ["b0"]],
            ["GetLoops", ["b0"], [], ["l1", "l2", "l3"]],
            ["Split", ["l1", "None", 2], [True], ["l4", "l5"]],
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


@pytest.mark.parametrize(
    ("position", "changes", "message"),
    [
        (2, {"outputs": []}, "entry 2 names 0 results, but split gave 2"),
        (1, {"outputs": []}, "entry 1 names 0 results, but get_loops gave 3"),
        (2, {"inputs": {}}, "entry 2 lacks the argument 'loop' of split"),
        (2, {"attrs": {"speed": 3}}, "entry 2 has an argument 'speed', which split lacks"),
        (2, {"kind": InstructionKind("Sprint")}, "entry 2 is of the kind 'Sprint', which there is not"),
    ],
)
def test_a_changed_trace_is_refused_by_name(position, changes, message):
    sch = tir.Schedule(matmul())
    sch.split(sch.get_loops("C")[0], [None, 2])
    insts = list(sch.trace.insts)
    insts[position] = replace(insts[position], **changes)
    with pytest.raises(TraceDoesNotFit, match=message):
        Trace(insts, {}).apply_to_schedule(tir.Schedule(matmul()))


def test_a_trace_of_another_nest_is_refused_by_name():
    sch = tir.Schedule(matmul())
    sch.reorder(*reversed(sch.get_loops("C")))
    A = te.placeholder((4,), name="A")
    other = tir.Schedule(te.create_prim_func([A, te.compute((4,), lambda i: A[i] + 1.0, name="C")]))
    with pytest.raises(TraceDoesNotFit, match="entry 1 names 3 results, but get_loops gave 1"):
        sch.trace.apply_to_schedule(other)


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


def marked():
    sch = tiled(matmul(8, 8, 8))
    sch.enter_postproc()
    sch.get_block("C")
    sch.unroll(sch.get_loops("C")[-1])
    return sch


def test_what_comes_after_the_mark_can_be_left_out():
    sch, func = marked(), matmul(8, 8, 8)
    before = tiled(func).trace
    assert sch.trace.as_python()[-5:] == [
        "sch.enter_postproc()",
        'b11 = sch.get_block(name="C", func_name="main")',
        'b12 = sch.get_block(name="C", func_name="main")',
        "l13, l14, l15, l16 = sch.get_loops(block=b12)",
        "sch.unroll(loop=l16)",
    ]
    assert sch.trace.as_python(remove_postproc=True) == before.as_python()
    assert sch.trace.as_json(remove_postproc=True) == before.as_json()
    check_replay(sch, func)
    again = tir.Schedule(func)
    sch.trace.apply_to_schedule(again, remove_postproc=True)
    assert again.trace.as_python() == before.as_python()
    sample = sch.trace.insts[3]
    assert sch.trace.with_decision(sample, [4, 2], remove_postproc=True).as_python() == (
        before.with_decision(before.insts[3], [4, 2]).as_python()
    )


def test_simplified_leaves_out_what_nobody_uses():
    sch, func = marked(), matmul(8, 8, 8)
    sch.sample_categorical([1, 2], [0.5, 0.5])
    sch.get_consumers("C")
    short = sch.trace.simplified(remove_postproc=False)
    kinds = [inst.kind for inst in short.insts]
    assert kinds.count("GetBlock") == 2  # the one for tiling, and the one for the loop to unroll
    assert "GetConsumers" not in kinds
    assert "SampleCategorical" not in kinds
    assert "EnterPostproc" in kinds
    assert list(short.decisions) == [3]
    again = tir.Schedule(func)
    short.apply_to_schedule(again)
    assert_structural_equal(again.mod["main"], sch.mod["main"])
    cut = sch.trace.simplified(remove_postproc=True)
    assert cut.as_python() == tiled(func).trace.simplified().as_python()
    assert Trace().simplified().insts == []


def test_sampled_numbers_in_factors_count_as_used():
    sch = tir.Schedule(matmul(8, 8, 8))
    i, *_ = sch.get_loops("C")
    sch.split(i, sch.sample_perfect_tile(i, 2))
    assert "SamplePerfectTile" in [inst.kind for inst in sch.trace.simplified().insts]


def test_kinds():
    assert InstructionKind.get("Split").name == "Split"
    assert not InstructionKind.get("Split").is_pure
    assert InstructionKind.get("GetBlock").is_pure
    assert InstructionKind.get("SampleCategorical").is_pure
    assert not InstructionKind.get("EnterPostproc").is_pure
    with pytest.raises(BadStepArgument, match="there is no kind 'Splat'"):
        InstructionKind.get("Splat")


def test_decisions():
    sch = tiled(matmul(8, 8, 8))
    sample = next(inst for inst in sch.trace.insts if inst.kind == "SamplePerfectTile")
    assert sch.trace.get_decision(sample) == sch.trace.decisions[3]
    assert sch.trace.get_decision(sch.trace.insts[0]) is None
    other = sch.trace.with_decision(sample, [2, 4])
    assert other.get_decision(sample) == [2, 4]
    assert sch.trace.get_decision(sample) == sch.trace.decisions[3]
    again = tir.Schedule(matmul(8, 8, 8))
    other.apply_to_schedule(again)
    assert again.trace.decisions[3] == [2, 4]
    with pytest.raises(BadStepArgument, match="is not one of its own"):
        Trace().get_decision(sample)


def test_an_unproved_trace_says_so():
    func = matmul()
    sch = tir.Schedule(func, enable_check=False)
    sch.unroll(sch.get_loops("C")[0])
    assert not sch.trace.is_proved
    assert str(sch.trace).startswith("# unproved: some of these steps were done without a proof")
    assert sch.trace.as_json()[2] == {"proved": False}
    assert not sch.trace.copy().is_proved
    assert not sch.trace.simplified().is_proved
    names = {"tir": tir}
    exec(str(sch.trace), names)
    again = tir.Schedule(func)
    names["apply_trace"](again)
    assert again.is_proved
    from_json = tir.Schedule(func)
    Trace.apply_json_to_schedule(json.dumps(sch.trace.as_json()), from_json)
    assert from_json.is_proved  # loading proves again
    assert from_json.trace.is_proved
    assert len(from_json.trace.as_json()) == 2


def test_steps_know_the_users_line():
    sch = tir.Schedule(matmul())
    sch.unroll(sch.get_loops("C")[0])
    assert all(inst.where.startswith("test_trace.py:") for inst in sch.trace.insts)


def test_pop_on_an_empty_trace():
    assert Trace().pop() is None


def test_json_that_others_wrote():
    """Factors one by one, plain attributes, a note among the inputs; and our own older layout."""
    start = [["GetBlock", [], ["C", "main"], ["b0"]], ["GetLoops", ["b0"], [], ["l1", "l2", "l3"]]]
    sample = ["SamplePerfectTile", ["l1"], [2, 16], ["v4", "v5"]]
    others = [
        *start,
        sample,
        ["Split", ["l1", "v4", "v5"], [1], ["l6", "l7"]],
        ["Annotate", ["b0", '"x"'], ["note"], []],
        ["Annotate", ["l7", "v5"], ["size"], []],
        ["Reorder", ["l6", "l2", "l7"], [], []],
        ["Bind", ["l6"], ["blockIdx.x"], []],
    ]
    ours = [
        ["GetBlock", [], ['"C"', '"main"'], ["b0"]],
        start[1],
        sample,
        ["Split", ["l1", ["v4", "v5"]], [True, '"guard"'], ["l6", "l7"]],
        ["Annotate", ["b0"], ['"note"', '"x"'], []],
        ["Annotate", ["l7"], ['"size"', {"rv": "v5"}], []],
        ["Reorder", [["l6", "l2", "l7"]], [], []],
        ["Bind", ["l6"], ['"blockIdx.x"'], []],
    ]
    made = []
    for steps in (others, ours):
        sch = tir.Schedule(matmul(8, 8, 8))
        Trace.apply_json_to_schedule(json.dumps([steps, [[2, [2, 4]]]]), sch)
        made.append(sch)
    assert made[0].trace.as_json() == made[1].trace.as_json() == [others, [[2, [2, 4]]]]
    same_program(made[0].mod["main"], made[1].mod["main"])
    assert made[0].get(made[0].get_block("C")).annotations == {"note": "x"}


def test_sampled_numbers_among_the_settings():
    sch = tir.Schedule(matmul(8, 8, 8))
    loop = sch.get_loops("C")[0]
    (factor,) = [sch.sample_categorical([2, 4], [0.5, 0.5])]
    sch.unroll_and_jam(loop, factor)
    assert sch.trace.as_json()[0][-1] == ["UnrollAndJam", ["l1"], [{"rv": "v4"}], ["l5", "l6"]]
    check_replay(sch, matmul(8, 8, 8))
    sch.annotate(sch.get_block("C"), "notes", {"a": [1, 2.5, "x", True], "b": {"c": factor}})
    check_replay(sch, matmul(8, 8, 8))
