"""history: what was done and refused, in order, with how it was proved."""

from __future__ import annotations

import pytest

from loopwright.schedule import Schedule, ScheduleError, Trace
from loopwright.schedule.errors import WouldChangeValues
from loopwright.schedule.page.history import error_of
from loopwright.schedule.trace.record import REFUSALS
from tests.schedule.page.ladder import refused_merge, reversed_copy, watched
from tests.schedule.steps import chain, matmul


def test_each_step_has_a_line():
    history = watched().history()
    assert [(entry.number, entry.call, entry.proof) for entry in history] == [
        (None, "merge(i, i)", "refused: WouldChangeValues [LW0205]"),
        (1, "split(i, [None, 4])", "order kept"),
        (2, "parallel(i_0)", "order kept, no races"),
    ]
    assert all(entry.seconds > 0 for entry in history)
    assert [entry.where.split(":")[0] for entry in history] == ["ladder.py"] * 3
    lines = str(history).splitlines()
    assert lines[0].startswith(" ✗  merge(i, i)") and "ms  refused: WouldChangeValues [LW0205]" in lines[0]
    assert lines[2].startswith(" 2  parallel(i_0)") and "order kept, no races" in lines[2]
    assert repr(history) == str(history)


def test_a_history_is_a_sequence():
    history = watched().history()
    assert len(history) == 3 and history[-1].number == 2
    assert [entry.number for entry in history[1:]] == [1, 2]
    assert str(Schedule(matmul()).history()) == "no steps yet"


def test_the_kinds_of_proof():
    sch = Schedule(chain())
    m, l, k = sch.get_loops("D")
    sch.reorder(m, k, l)
    sch.reorder(m, k, l)  # as it is
    sch.compute_at("D", sch.get_loops("E")[0])
    sch.set_scope("E", 0, "local")
    assert [entry.proof for entry in sch.history()] == ["lemma", "order kept", "values proved", "given"]


def test_what_nobody_proved_says_so():
    sch = Schedule(matmul(), enable_check=False)
    sch.split(sch.get_loops("C")[0], [None, 2])
    assert [entry.proof for entry in sch.history()] == ["unproved"]

    sch = Schedule(matmul())
    sch.unsafe_hide_buffer_access("C", "read", [0])
    assert [entry.proof for entry in sch.history()] == ["unproved"]


def test_a_replayed_trace_is_proved_as_a_whole():
    sch = watched()
    again = Schedule(reversed_copy())
    Trace.apply_json_to_schedule(sch.trace.as_json(), again)
    assert {entry.proof for entry in again.history()} == {"proved with the whole trace"}


def test_refusals_of_versions_that_were_taken_back_go():
    sch = Schedule(reversed_copy())
    sch.split(sch.get_loops("B")[0], [None, 4])
    with pytest.raises(ScheduleError):
        sch.reorder(*[sch.get_loops("B")[0]] * 2)
    assert [entry.number for entry in sch.history()] == [1, None]
    sch.undo()
    assert len(sch.history()) == 0
    sch.unroll(sch.get_loops("B")[0])
    assert [entry.number for entry in sch.history()] == [1]


def test_only_the_last_refusals_are_kept_and_copies_go_their_own_way():
    sch = Schedule(reversed_copy())
    refused_merge(sch)
    other = sch.copy()
    for _ in range(REFUSALS + 5):
        refused_merge(other)
    assert len(sch.history()) == 1
    assert len(other.history()) == REFUSALS


def test_asking_for_suggestions_leaves_no_refusals(with_suggestions):
    sch = Schedule(reversed_copy())
    with pytest.raises(WouldChangeValues) as caught:
        sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
    assert caught.value.suggestions
    assert len(sch.history()) == 1


def test_a_refusal_holds_neither_error_nor_relations():
    """A search has many schedules alive, with refusals each."""
    sch = watched()
    (refused,) = sch._refused
    assert refused.error is WouldChangeValues
    assert not any([isinstance(part, BaseException) for part in refused])


def test_the_error_of_a_refusal_can_be_had_again():
    sch = watched()
    (refused,) = sch._refused
    error = error_of(sch, refused)
    assert isinstance(error, WouldChangeValues)
    assert error.why == "iteration (v_i=0) of C reads B[7] before iteration (v_i=7) of B writes it"
    assert str(error.user_line).startswith("ladder.py:")
    assert len(sch.history()) == 3  # asking again is not recorded


def test_refused_steps_that_name_no_block():
    sch = Schedule(reversed_copy())
    with pytest.raises(ScheduleError):
        sch.compute_inline("Q")
    (entry,) = sch.history()
    assert (entry.call, entry.proof) == ('compute_inline("Q")', "refused: NoSuchBlock [LW0201]")
    with pytest.raises(ScheduleError):
        sch.get_block("Q")  # a question, no step
    assert len(sch.history()) == 1
