"""Traces written by hand: handles of no schedule, arguments in the order of trace files, decisions by their step."""

import pytest

from loopwright import te, tir
from loopwright.schedule import Schedule
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.handles import BlockRV, LoopRV
from loopwright.schedule.trace.trace import Instruction, InstructionKind, Trace


def two_steps():
    A = te.placeholder((8, 6), name="A")
    B = te.compute((8, 6), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((8, 6), lambda i, j: B[i, j] * 2.0, name="C")
    return te.create_prim_func([A, C])


def inst(kind, inputs, attrs, outputs):
    return Instruction(kind=InstructionKind.get(kind), inputs=inputs, attrs=attrs, outputs=outputs)


def tiled():
    block, i, j, outer, inner = BlockRV(), LoopRV(), LoopRV(), LoopRV(), LoopRV()
    return Trace(
        insts=[
            inst("GetBlock", [], ["C", "main"], [block]),
            inst("GetLoops", [block], [], [i, j]),
            inst("Split", [j, None, 3], [True], [outer, inner]),
        ],
        decisions={},
    )


def test_a_step_alone_prints_blanks_for_its_handles():
    block, i, j = BlockRV(), LoopRV(), LoopRV()
    loops = inst("GetLoops", [block], [], [i, j])
    assert str(loops) == "_, _ = sch.get_loops(block=_)"
    assert loops.inputs[0].same_as(block) and loops.outputs[1].same_as(j)
    assert loops.kind.same_as(InstructionKind.get("GetLoops"))
    assert str(inst("ComputeInline", [block], [], [])) == "sch.compute_inline(block=_)"
    split = inst("Split", [i, None, 3], [True], [LoopRV(), LoopRV()])
    assert split.inputs[2] == 3 and split.attrs[0] is True


def test_a_trace_prints_and_travels():
    trace = tiled()
    assert trace.as_python() == [
        'b0 = sch.get_block(name="C", func_name="main")',
        "l1, l2 = sch.get_loops(block=b0)",
        "l3, l4 = sch.split(loop=l2, factors=[None, 3], preserve_unit_iters=True)",
    ]
    assert trace.as_json()[0][:2] == [["GetBlock", [], ["C", "main"], ["b0"]], ["GetLoops", ["b0"], [], ["l1", "l2"]]]
    assert trace.as_json()[0][2] == ["Split", ["l2", "None", 3], [True], ["l3", "l4"]]


def test_a_trace_is_applied():
    sch, again = Schedule(two_steps()), Schedule(two_steps())
    trace = tiled()
    trace.append(inst("ComputeInline", [trace.insts[0].outputs[0]], [], []))
    last = trace.pop()
    assert last.kind == "ComputeInline"
    trace.apply_to_schedule(sch, remove_postproc=False, decision_provider=None)
    Trace.apply_json_to_schedule(trace.as_json(), again)
    assert [int(sch.get(loop).extent) for loop in sch.get_loops("C")] == [8, 2, 3]
    assert sch.mod.script() == again.mod.script()


def test_annotations_and_samples():
    block, number = BlockRV(), tir.Var("v", "int32")
    sampled = inst("SampleCategorical", [], [[tir.IntImm("int32", 3)], [tir.FloatImm("float32", 1.0)]], [number])
    trace = Trace(
        [
            inst("GetBlock", [], ["B", "main"], [block]),
            sampled,
            inst("Annotate", [block, {"axis": 1, "thing": "foo"}], ["note"], []),
            inst("Annotate", [block, number], ["number"], []),
            inst("EnterPostproc", [], [], []),
            inst("ComputeInline", [block], [], []),
        ],
        {sampled: 0},
    )
    assert trace.decisions[sampled] == trace.get_decision(sampled) == 0
    assert "v1 = sch.sample_categorical(candidates=[3], probs=[1.0], decision=0)" in trace.as_python()
    sch = Schedule(two_steps())
    trace.apply_to_schedule(sch, remove_postproc=True)
    assert dict(sch.get(sch.get_block("B")).annotations)["number"] == 3
    assert [step.kind.name for step in trace.simplified(remove_postproc=True).insts][-1] == "Annotate"


def test_what_does_not_fit_a_kind():
    with pytest.raises(BadStepArgument, match=r"GetLoops takes the inputs \['block'\]"):
        inst("GetLoops", [BlockRV(), 3], [], [])
