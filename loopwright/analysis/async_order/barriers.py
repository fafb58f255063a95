"""The mbarriers and named barriers of a block, and which of their phases wait for what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from loopwright.analysis.async_order.accesses import Clock
from loopwright.analysis.async_order.classes import ThreadClass
from loopwright.analysis.async_order.errors import PhaseMismatch
from loopwright.analysis.async_order.events import Event, where_text


class Announced(NamedTuple):
    """Somebody has begun something in a phase, or waited for one."""

    by: ThreadClass
    epoch: int
    event: Event


@dataclass(eq=False)
class PhaseBarrier:
    """An mbarrier: `phase` is under way."""

    name: str
    index: int  # in clocks: how many phases are known to have completed
    count: int
    made_by: Announced
    phase: int = 0
    arrived: int = 0
    clock: Clock = field(default_factory=list)  # what those know that have arrived
    completed: Clock = field(default_factory=list)  # … of the last phase
    copies: list[Announced] = field(default_factory=list)
    waits: dict[int, list[Announced]] = field(default_factory=dict)  # that end before a phase completes
    last: Event | None = None

    def check_known(self, by: ThreadClass, event: Event, clock: Clock, what: str) -> None:
        """Raise PhaseMismatch where the class may come before the phase that it is counted for."""
        if clock[self.index] < self.phase:
            problem = (
                f"{event.do(what)} in phase {self.phase}, and may be as early as in phase {clock[self.index]}: "
                f"nothing says before that phase {self.phase - 1} has completed"
            )
            hint = "let it wait for the phases before, or for those who have"
            raise PhaseMismatch(event.statement, self.name, problem, hint)

    def arrive(self, by: ThreadClass, event: Event, clock: Clock, epoch: int) -> None:
        """All threads of a class arrive."""
        self.check_known(by, event, clock, "arrive")
        if self.arrived + by.count > self.count:
            problem = (
                f"{event.do('arrive')}, and with them phase {self.phase} has more arrivals than "
                f"the {self.count} that mbarrier_init says"
            )
            raise PhaseMismatch(event.statement, self.name, problem, "count the threads that arrive in a phase")
        self.arrived += by.count
        self.clock = join(self.clock or [0] * len(clock), clock)
        self.clock[by.number] = max(self.clock[by.number], epoch)
        self.last = event
        if self.arrived == self.count:
            is_alone = by.count == self.count == 1 and not self.copies
            self.complete(event)
            if is_alone:
                clock[self.index] = max(clock[self.index], self.phase)

    def complete(self, event: Event) -> None:
        for copy in self.copies:
            if self.clock[copy.by.number] < copy.epoch:
                problem = (
                    f"phase {self.phase} may complete{where_text(event.where)} before lane 0 of warp "
                    f"{copy.by.threads[0] // 32} has said{where_text(copy.event.where)} how many bytes a copy brings"
                )
                hint = "let lane 0 of the warp that copies arrive after the copy"
                raise PhaseMismatch(event.statement, self.name, problem, hint)
        for wait in self.waits.pop(self.phase, ()):
            if self.clock[wait.by.number] < wait.epoch:
                problem = (
                    f"phase {self.phase} may complete{where_text(event.where)} while {wait.event.do('wait')} "
                    f"for phase {self.phase - 1}: the parities do not tell these apart"
                )
                hint = "let who arrives wait for those that read, as for an mbarrier that says which slot is empty"
                raise PhaseMismatch(wait.event.statement, self.name, problem, hint)
        self.phase += 1
        self.arrived = 0
        self.clock[self.index] = self.phase
        self.completed, self.clock = self.clock, []
        self.copies = []

    def passes(self, by: ThreadClass, event: Event, clock: Clock) -> bool:
        """Whether the wait is over."""
        if event.number not in (0, 1):
            raise PhaseMismatch(
                event.statement, self.name, f"the parity{where_text(event.where)} is {event.number}", "it is 0 or 1"
            )
        if (self.phase - 1) % 2 != event.number:
            return False
        wanted = self.phase - 1
        if clock[self.index] < wanted:
            problem = (
                f"{event.do('wait')} for phase {wanted}, and nothing says before that phase "
                f"{wanted - 1} has completed: the wait may be over in phase {clock[self.index]} already"
            )
            hint = "who waits is at most one phase behind: check the parity, or wait in each phase"
            raise PhaseMismatch(event.statement, self.name, problem, hint)
        return True

    def passed(self, by: ThreadClass, event: Event, clock: Clock, epoch: int) -> Clock:
        """What the threads know after the wait."""
        self.waits.setdefault(self.phase, []).append(Announced(by, epoch, event))
        return join(clock, self.completed) if self.completed else clock


@dataclass(eq=False)
class Meeting:
    """A barrier of some threads: that of the block, a named one, or that of a warp."""

    name: str
    index: int  # in clocks: how often it has been passed
    threads: int
    passed: int = 0
    there: list[ThreadClass] = field(default_factory=list)

    def come(self, by: ThreadClass, event: Event, clock: Clock) -> bool:
        """A class comes; whether all are there."""
        if event.threads != self.threads:
            problem = f"{event.do('wait')} for {event.threads} threads, and others for {self.threads}"
            raise PhaseMismatch(event.statement, self.name, problem, "say one number of threads")
        if clock[self.index] < self.passed:
            problem = f"{event.do('may come')} while others still meet there"
            raise PhaseMismatch(event.statement, self.name, problem, "use a barrier of another number")
        self.there.append(by)
        count = sum([other.count for other in self.there])
        if count > self.threads:
            names = " and ".join([other.name for other in self.there])
            problem = f"{names} meet{where_text(event.where)}, {count} threads, and it is for {self.threads}"
            raise PhaseMismatch(event.statement, self.name, problem, "count the threads that meet")
        return count == self.threads


def join(one: Clock, other: Clock) -> Clock:
    """What is known to both together."""
    return [a if a > b else b for a, b in zip(one, other, strict=True)]
