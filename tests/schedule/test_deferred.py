"""Replays are proved once, what they end with against what they began with; a doubt is looked into step by step."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.schedule import Schedule, ScheduleError
from loopwright.schedule.engine import deferred
from loopwright.schedule.engine import prove_step as engine
from loopwright.schedule.errors import WouldChangeValues
from loopwright.script import from_source
from tests.schedule.steps import chain, matmul, same_program
from tests.schedule.test_unroll_and_jam import diagonal


@pytest.fixture
def proofs(monkeypatch):
    """How often the engine proves one step, and how often a stretch of them."""
    counts = {"steps": 0, "stretches": 0}
    step_by_step, as_a_whole = engine.find_mismatch, deferred.find_mismatch

    def one(*args):
        counts["steps"] += 1
        return step_by_step(*args)

    def many(*args, **options):
        counts["stretches"] += 1
        return as_a_whole(*args, **options)

    monkeypatch.setattr(engine, "find_mismatch", one)
    monkeypatch.setattr(deferred, "find_mismatch", many)
    return counts


def scheduled(function) -> Schedule:
    sch = tir.Schedule(function)
    copy = sch.cache_read("D", 0, "global")
    sch.compute_at("D", sch.get_loops("E")[0])
    sch.split(sch.get_loops("E")[1], [None, 2], tail="peel")
    sch.reorder_block_iter_var("F", [1, 0, 2])
    sch.unroll_and_jam(sch.get_loops("F")[0], 2)
    sch.compute_at(copy, sch.get_loops("D")[0])
    sch.parallel(sch.get_loops("E")[0])
    return sch


def test_one_proof_for_a_chain_of_steps(proofs):
    before = chain()
    sch = scheduled(before)
    done = dict(proofs)
    assert done["steps"] >= 4 and done["stretches"] == 0
    again = Schedule(before)
    sch.trace.apply_to_schedule(again)
    assert proofs["steps"] == done["steps"] and proofs["stretches"] == 1
    same_program(again.mod["main"], sch.mod["main"])
    assert again.is_proved and again.trace.as_python() == sch.trace.as_python()


def test_steps_with_reasons_of_their_own_end_a_stretch(proofs):
    before = chain()
    sch = tir.Schedule(before)
    sch.compute_at("D", sch.get_loops("E")[0])
    sch.storage_align("E", 0, axis=0, factor=8, offset=1)
    sch.cache_write("F", 0, "local")
    sch.reverse_compute_at("F_local", sch.get_loops("F")[0])
    again = Schedule(before)
    sch.trace.apply_to_schedule(again)
    assert proofs["stretches"] == 2
    same_program(again.mod["main"], sch.mod["main"])


def test_another_scope_ends_no_stretch(proofs):
    before = chain()
    sch = tir.Schedule(before)
    sch.compute_at("D", sch.get_loops("E")[0])
    sch.set_scope("E", 0, "local")  # of a buffer that was there from the start
    sch.cache_write("F", 0, "global")
    sch.set_scope("F", 0, "local")  # and of one that was not
    sch.reverse_compute_at("F_global", sch.get_loops("F")[0])
    again = Schedule(before)
    sch.trace.apply_to_schedule(again)
    assert proofs["stretches"] == 1
    same_program(again.mod["main"], sch.mod["main"])


def test_another_scope_under_threads_is_that_of_one_version():
    """Memory of each thread at the start would hold no values for others: anything could be read there afterwards."""
    sch = Schedule(
        from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer(4), C: T.Buffer(4)):
    B = T.alloc_buffer((4,))
    for i in T.thread_binding(4, thread="threadIdx.x"):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi]
    for i in T.thread_binding(4, thread="threadIdx.x"):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[3 - vi]
""")
    )
    first, second = sch.get_loops("B")[0], sch.get_loops("C")[0]

    def steps() -> None:
        sch.unroll(first)
        sch.unroll(second)
        sch.set_scope("B", 0, "local")
        sch.merge(first, second)

    with pytest.raises(WouldChangeValues, match="merge"):
        sch.replay(steps)


def test_a_layout_with_a_cell_for_every_element_ends_no_stretch(proofs):
    before = chain()
    sch = tir.Schedule(before)
    sch.compute_at("D", sch.get_loops("E")[0])
    sch.transform_layout("E", "E", lambda i, j: (j, i))  # of a buffer that was there from the start
    copy = sch.cache_read("F", 0, "global")
    sch.transform_layout("F", ("read", 0), lambda i, j: (j, i))  # and of one that was not
    sch.compute_at(copy, sch.get_loops("F")[0])
    again = Schedule(before)
    sch.trace.apply_to_schedule(again)
    assert proofs["stretches"] == 1
    same_program(again.mod["main"], sch.mod["main"])


def test_a_wrong_step_before_a_new_layout_is_found():
    sch = Schedule(diagonal, enable_check=False)
    sch.reorder(*reversed(sch.get_loops("A")))
    copy = sch.cache_write("A", 0, "global")
    sch.transform_layout("A", ("write", 0), lambda i, j: (j, i))
    assert copy is not None
    with pytest.raises(WouldChangeValues, match="reorder"):
        sch.trace.apply_to_schedule(Schedule(diagonal))


def test_the_culprit_is_found_step_by_step():
    sch = Schedule(diagonal, enable_check=False)
    i, j = sch.get_loops("A")
    sch.annotate(i, "note", 1)
    sch.reorder(j, i)
    sch.unroll(j)
    other = Schedule(diagonal)
    with pytest.raises(WouldChangeValues, match="reorder would change a value") as caught:
        sch.trace.apply_to_schedule(other)
    assert "reads A" in caught.value.why
    assert [inst.kind for inst in other.trace.insts] == ["GetBlock", "GetLoops", "Annotate"]  # as far as it was right


def test_there_and_back_is_right_as_a_whole():
    sch = Schedule(diagonal, enable_check=False)
    i, j = sch.get_loops("A")
    sch.reorder(j, i)  # wrong
    sch.reorder(i, j)  # and right again
    other = Schedule(diagonal)
    sch.trace.apply_to_schedule(other)
    assert other.is_proved
    same_program(other.mod["main"], diagonal)


def test_races_are_looked_for_at_the_end():
    sch = Schedule(matmul(), enable_check=False)
    sch.parallel(sch.get_loops("C")[2])
    other = Schedule(matmul())
    with pytest.raises(ScheduleError, match="iterations that run at the same time would touch the same cell"):
        sch.trace.apply_to_schedule(other)
    assert len(other.trace.insts) == 2


def test_a_copy_that_became_a_computation_is_no_copy():
    """cache_write, then the block folded into its copy: names no longer tell what the copy holds."""
    before = chain()
    sch = tir.Schedule(before)
    sch.cache_read("E", 0, "global")
    sch.reverse_compute_inline("E")
    again = Schedule(before)
    sch.trace.apply_to_schedule(again)
    same_program(again.mod["main"], sch.mod["main"])
    assert again.is_proved


def test_random_numbers_are_drawn_alike_after_a_doubt():
    def tiles(sch):
        return sch.sample_perfect_tile(sch.get_loops("C")[0], 2)

    sch = Schedule(matmul(48, 4, 4), enable_check=False)
    tiles(sch)
    sch.parallel(sch.get_loops("C")[2])
    sch.trace.decisions.clear()
    with pytest.raises(ScheduleError):
        sch.trace.apply_to_schedule(one := Schedule(matmul(48, 4, 4), seed=5))
    assert tiles(Schedule(matmul(48, 4, 4), seed=5)) == list(one.trace.insts[2].outputs)


def test_a_replay_asks_where_reductions_start():
    """Each step keeps the order, and yet the split takes a loop out of the data axes (`i - i + m` is m)."""
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer(20, "int32"), C: T.Buffer(12, "int32"), n: T.int32, m: T.int32):
    for i, j in T.grid(n, n):
        with T.block("C"):
            v, vj = T.axis.spatial(12, i - i + m), T.axis.reduce(20, j + i)
            with T.init():
                C[v] = 5
            C[v] = C[v] + A[vj]
""")
    unchecked = Schedule(program, enable_check=False)
    unchecked.split(unchecked.get_loops("C")[0], [None, 3])
    with pytest.raises(ScheduleError, match="split"):
        unchecked.trace.apply_to_schedule(Schedule(program), remove_postproc=False)


def test_steps_of_a_branch_that_was_given_up_are_forgotten(proofs):
    """Nothing that was done to a copy, or undone, is claimed of what is kept; and that is still proved as a whole."""
    before = chain()
    sch = tir.Schedule(before)

    def steps() -> None:
        sch.compute_at("D", sch.get_loops("E")[0])
        other = sch.copy()
        other.cache_read("D", 0, "global")
        other.reorder_block_iter_var("F", [1, 0, 2])
        sch.reorder(*reversed(sch.get_loops("F")[:2]))
        sch.undo()
        sch.transform_layout("E", ("write", 0), lambda i, j: (j, i))  # what the stretch began with gets it, too
        sch.undo()
        sch.parallel(sch.get_loops("E")[0])

    sch.replay(steps)
    assert proofs == {"steps": 0, "stretches": 1} and sch.is_proved
    names = [inst.kind.name for inst in sch.trace.insts if inst.kind.name not in ("GetLoops", "GetBlock")]
    assert names == ["ComputeAt", "Parallel"]
    straight = tir.Schedule(before)
    straight.compute_at("D", straight.get_loops("E")[0])
    straight.parallel(straight.get_loops("E")[0])
    same_program(sch.mod["main"], straight.mod["main"])


def test_a_wrong_step_after_a_branch_that_was_given_up_is_found():
    sch = Schedule(diagonal)

    def steps() -> None:
        loops = sch.get_loops("A")
        sch.split(loops[1], [None, 2])
        sch.undo()
        sch.reorder(*reversed(loops))
        sch.annotate(loops[0], "note", 1)
        sch.undo()

    with pytest.raises(WouldChangeValues, match="reorder"):
        sch.replay(steps)


def test_a_refusal_before_any_step_is_raised_at_once():
    sch = tir.Schedule(chain())
    asked = []

    def steps() -> None:
        asked.append(1)
        sch.parallel(sch.get_loops("nobody")[0])

    with pytest.raises(ScheduleError, match="nobody"):
        sch.replay(steps)
    assert len(asked) == 1
