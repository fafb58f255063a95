"""Composite steps: a function that does several steps is one step, with a name in traces."""

from __future__ import annotations

import json
import re

import pytest

from loopwright import te, tir
from loopwright.schedule import InstructionKind, Schedule, Trace, composite, register_step, unregister
from loopwright.schedule.engine.composites import StepNameTaken
from loopwright.schedule.errors import BadStepArgument, NotProved, WouldChangeValues, WrongType
from loopwright.schedule.handles import block_key
from loopwright.schedule.step import Proof, Step
from tests.schedule.steps import check, check_replay, matmul, refused


@pytest.fixture
def tile_two():
    @composite
    def tile_two(sch, i, j, *, size=4):
        """Two loops in tiles."""
        i_0, i_1 = sch.split(i, [None, size])
        j_0, j_1 = sch.split(j, [None, size])
        sch.reorder(i_0, j_0, i_1, j_1)
        return i_0, j_0, i_1, j_1

    yield tile_two
    unregister("tile_two")


def test_one_entry_of_the_trace(tile_two):
    before = matmul(8, 8, 4)
    sch = tir.Schedule(before)
    i, j, _ = sch.get_loops("C")
    i_0, *_ = sch.tile_two(i, j, size=2)
    sch.parallel(i_0)
    assert sch.trace.as_python() == [
        'b0 = sch.get_block(name="C", func_name="main")',
        "l1, l2, l3 = sch.get_loops(block=b0)",
        "l4, l5, l6, l7 = sch.tile_two(i=l1, j=l2, size=2)",
        "sch.parallel(loop=l4)",
    ]
    assert sch.trace.as_json()[0][2] == ["TileTwo", ["l1", "l2"], [2], ["l4", "l5", "l6", "l7"]]
    assert [str(inst) for inst in sch.trace.insts[2:]] == ["tile_two(i, j, size=2)", "parallel(i_0)"]
    assert [inst.kind for inst in sch.trace.insts[2].inside.insts] == ["Split", "Split", "Reorder"]
    check(sch, before)
    assert len(sch.changes()) == 2
    sch.undo()
    sch.undo()
    assert sch.mod["main"].body is before.body  # all of it at once


def test_it_is_a_function_and_a_kind(tile_two):
    before = matmul(8, 8, 4)
    sch = tir.Schedule(before)
    i, j, _ = sch.get_loops("C")
    assert len(tile_two(sch, i, j)) == 4
    assert InstructionKind.get("TileTwo").name == "TileTwo" and not InstructionKind.get("TileTwo").is_pure
    assert tile_two.__doc__ == "Two loops in tiles."
    check_replay(sch, before)


def test_samples_inside_are_decisions_of_the_step():
    @composite(override=True)
    def sampled(sch, loop):
        return sch.split(loop, sch.sample_perfect_tile(loop, 2))

    before = matmul(48, 3, 2)
    for seed in range(1, 6):
        sch = tir.Schedule(before, seed=seed)
        outer, inner = sch.sampled(sch.get_loops("C")[0])
        drawn = [sch.get(outer).extent.value, sch.get(inner).extent.value]
        assert sch.trace.decisions == {2: [drawn]}
        check_replay(sch, before)
        fixed = sch.trace.with_decision(sch.trace.insts[2], [[6, 8]])
        again = tir.Schedule(before)
        fixed.apply_to_schedule(again)
        assert again.get(again.get_loops("C")[0]).extent == 6
    unregister("sampled")


def test_a_refusal_inside_leaves_everything_as_it_was(tile_two):
    @composite
    def wrong(sch, loop):
        sch.split(loop, [None, 2])
        sch.split(sch.get_loops("C")[2], [2, 1])

    sch = tir.Schedule(matmul(8, 8, 4))
    refused(sch, tir.ScheduleError, "make 2 iterations", "wrong", sch.get_loops("C")[0])
    unregister("wrong")


def test_unproved_steps_inside_show():
    @composite
    def narrow(sch, block):
        sch.cache_write(block, 0, "global")
        sch.unsafe_set_dtype(block, 0, "float16")

    sch = tir.Schedule(matmul())
    sch.narrow("C")
    assert not sch.is_proved and not sch.trace.is_proved
    assert sch.trace.as_json()[2] == {"proved": False}
    unregister("narrow")


def test_a_composite_of_composites(tile_two):
    @composite
    def outer(sch, block):
        i, j, k = sch.get_loops(block)
        loops = sch.tile_two(i, j, size=2)
        sch.unroll(k)
        return loops[0]

    before = matmul(8, 8, 4)
    sch = tir.Schedule(before)
    assert sch.outer(sch.get_block("C")).name == "i_0"
    check(sch, before)
    unregister("outer")


def test_a_registered_step_cannot_change_what_a_block_computes():
    def twice(view, block):
        store = block.block.body
        new = block.with_(block=block.block.with_(body=store.with_(value=store.value + store.value)))
        return Step(view.replaced(view.block_path(block_key(block.block)), new), Proof.GIVEN)

    register_step(twice, "block")
    try:
        sch = tir.Schedule(matmul())
        error = refused(sch, NotProved, "twice could not be proved", "twice", "C")
        assert "it changes what block 'C' computes" in error.why
    finally:
        unregister("twice")


def test_wrong_calls(tile_two):
    sch = tir.Schedule(matmul())
    i, j, _ = sch.get_loops("C")
    refused(sch, BadStepArgument, "missing a required argument: 'j'", "tile_two", i)
    refused(sch, BadStepArgument, "unexpected keyword argument 'bogus'", "tile_two", i, j, bogus=1)
    with pytest.raises(WrongType, match="sch must be a Schedule, got int"):
        tile_two(3, i, j)
    with pytest.raises(AttributeError, match="no step or attribute 'tile_three'"):
        _ = sch.tile_three
    with pytest.raises(StepNameTaken, match="there is a step 'tile_two' already"):
        composite(tile_two.function)
    with pytest.raises(StepNameTaken, match="there is a step 'split' already"):

        @composite
        def split(sch):
            return None

    with pytest.raises(BadStepArgument, match="takes the schedule first"):
        composite(lambda *everything: None)
    with pytest.raises(BadStepArgument, match="no step of yours is called 'split'"):
        unregister("split")

    @composite
    def gives_nonsense(sch):
        return 3

    refused(sch, WrongType, "what it gives must be handles", "gives_nonsense")
    unregister("gives_nonsense")


# --- primitives of a user's making --------------------------------------------------------------------------------


def test_a_registered_step_is_proved_whatever_it_claims():
    def swap_loops(view, loop, deep):
        inner = loop.body
        swapped = inner.with_(body=loop.with_(body=inner.body))
        return Step(view.replaced(view.loop_path(loop.loop_var), swapped), Proof.GIVEN, at=loop)

    register_step(swap_loops, "loop", "deep")
    try:
        before = matmul()
        sch = tir.Schedule(before)
        sch.swap_loops(sch.get_loops("C")[0], 1)
        check_replay(sch, before)
        assert [loop.name for loop in sch.get_loops("C")] == ["j", "i", "k"]
        again = Schedule(before)
        Trace.apply_json_to_schedule(json.dumps(sch.trace.as_json()), again)
        assert [loop.name for loop in again.get_loops("C")] == ["j", "i", "k"]
        from tests.schedule.test_unroll_and_jam import diagonal

        other = tir.Schedule(diagonal)
        loop = other.get_loops("A")[0]
        refused(other, WouldChangeValues, "swap_loops would change a value", "swap_loops", loop, deep=1)
    finally:
        unregister("swap_loops")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("build", "loopwright.build(sch)"),
        ("steps", "sch.history()"),
        ("print", "sch.show()"),
    ],
)
def test_a_guessed_name_is_told_what_to_write(name, told):
    source = te.placeholder((8,), name="A")
    sch = Schedule(te.create_prim_func([source, te.compute((8,), lambda i: source[i] + 1.0, name="B")]))
    with pytest.raises(AttributeError, match=f"no step or attribute '{name}'; write {re.escape(told)}"):
        getattr(sch, name)
