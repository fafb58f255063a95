"""isl_flow: who sees which write, as a question in isl's own text, and its answer.

What is asked follows from the text alone, so answers are kept: most steps of a schedule leave most flows as they were.
Where no cell is written twice the answer is set algebra; else isl searches for the last write, which takes it long.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from loopwright.arith.isl import BudgetExceeded, context, gave_up, relations, within_budget

if TYPE_CHECKING:
    import islpy

ONLY_WRITES_BUDGET: Final = 200_000  # isl operations before the flow is asked for in the general way
ANSWERS: Final = 64  # flows kept


class NotProvable(Exception):
    """The exact flow is not known, for the reason given; `hint` says what would work. Never leaves the proofs."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.hint = hint


class Question(NamedTuple):
    """All that the flow through a buffer follows from, as isl text."""

    parameters: str
    asked: tuple[str, ...]  # the cells of readers and updates
    written: tuple[str, ...]  # those of plain writes
    start: str  # those of the virtual writer
    late_writes: tuple[str, ...]  # reader or update → plain write that does not come before it
    times: tuple[str, ...]
    rank: int  # the length of times
    updaters: tuple[str, ...]
    late_updates: tuple[str, ...]  # reader → update that does not come before it

    def union(self, items: Sequence[str]) -> Any:
        """Relations over the parameters."""
        return relations(self.parameters, items)


Answer = tuple["islpy.UnionMap", "islpy.UnionMap", "islpy.UnionMap"]  # base, updates, update_bases


class _Kept(threading.local):
    """The last answers: most steps leave most flows as they were. isl's objects belong to one thread."""

    def __init__(self) -> None:
        self.answers: OrderedDict[Question, Answer] = OrderedDict()


_kept: Final = _Kept()


def answer(question: Question, buffer: str, limit: int, divisions: int) -> Answer:
    """Who sees what. Raises NotProvable, and BudgetExceeded past `limit` isl operations."""
    result = _kept.answers.get(question)
    if result is None:
        result = _kept.answers[question] = within_budget(
            lambda _: _work_out(question, buffer, divisions), limit, divisions
        )
        if len(_kept.answers) > ANSWERS:
            _kept.answers.popitem(last=False)
    _kept.answers.move_to_end(question)
    return result


def _work_out(question: Question, buffer: str, divisions: int) -> Answer:
    import islpy as isl

    asked = question.union(question.asked)
    base_of_all = _by_only_writes(question, asked, divisions)
    if base_of_all is None:
        sources, times = question.union([*question.written, question.start]), question.union(question.times)
        # The virtual writer fills every cell, so everyone sees something. isl 0.27 loses some of it now and then.
        for last_writers in (_last_writers, _last_writers_step_by_step):
            base_of_all = _if_found(last_writers, asked, sources, times, question.rank)
            if base_of_all is not None and asked.domain().is_subset(base_of_all.domain()):
                break
        else:
            raise NotProvable(f"the flow through {buffer} cannot be followed")
    if not question.updaters:
        empty = isl.UnionMap.read_from_str(context(), "{ }")
        return base_of_all, empty, empty
    ours = question.union([f"{item} -> {item}" for item in question.updaters]).domain()
    update_bases = base_of_all.intersect_domain(ours)
    base = base_of_all.subtract_domain(ours)
    updates = base.apply_range(update_bases.reverse())
    if question.late_updates:
        updates = updates.subtract(question.union(question.late_updates))
    return base, updates, update_bases  # isl 0.27 crashes in coalesce of some of these


def _by_only_writes(question: Question, asked: Any, divisions: int) -> Any:
    """The last plain write of every cell before it is asked for, where no cell is written twice; None elsewhere.

    Then there is no last one to be searched for, which is what takes isl long: who comes after the only write of its
    cell sees that, and all others see what was there at the start.
    """
    start = question.union([question.start])
    if not question.written:
        return asked.apply_range(start.reverse())

    def find(_: Any) -> Any:
        written = question.union(question.written)
        if not written.is_injective():
            return None
        seen = asked.apply_range(written.reverse())
        if question.late_writes:
            seen = seen.subtract(question.union(question.late_writes))
        return seen.union(asked.subtract_domain(seen.domain()).apply_range(start.reverse()))

    try:
        return within_budget(find, ONLY_WRITES_BUDGET, divisions)
    except BudgetExceeded:
        return None


def _if_found(search: Callable[..., Any], *given: Any) -> Any:
    """What a search of isl's finds; None where it gives up."""
    import islpy as isl

    try:
        return search(*given)
    except isl.Error as error:
        if not gave_up(error):
            raise
        return None


def _last_writers(asked: Any, sources: Any, times: Any, rank: int) -> Any:
    """Reader → the last of those that write its cell before it."""
    import islpy as isl

    result = isl.UnionAccessInfo.from_sink(asked).set_must_source(sources).set_schedule_map(times).compute_flow()
    return result.get_must_dependence().reverse()


def _last_writers_step_by_step(asked: Any, sources: Any, times: Any, rank: int) -> Any:
    """The same, the long way: no step of it is isl's own search."""
    import islpy as isl

    same_cell = asked.apply_range(sources.reverse())
    space = isl.Space.set_alloc(asked.get_ctx(), 0, rank)
    earlier = isl.UnionMap.from_map(isl.Map.lex_gt(space))
    before = times.intersect_domain(asked.domain()).apply_range(earlier)
    written = times.intersect_domain(sources.domain())
    last = same_cell.apply_range(written).intersect(before).lexmax()
    return last.apply_range(written.reverse()).intersect(same_cell)
