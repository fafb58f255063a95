"""Order: one order in which the events of a block can happen, and what every other order has in common with it.

Each class of threads goes on until it has to wait. A clock says what a class knows: how far all other classes have got,
and how many phases of each mbarrier have completed. Every wait is for one phase whatever the order of threads is, and
every arrival counts for one (`barriers.py` makes sure of both). So who waits for whom is the same in all orders, and an
access that the clock of another one does not know of may come before or after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from loopwright.analysis.async_order.accesses import Accesses, Clock, Record
from loopwright.analysis.async_order.atoms import Atoms
from loopwright.analysis.async_order.barriers import Announced, Meeting, PhaseBarrier, join
from loopwright.analysis.async_order.calls import WARP, WARPGROUP
from loopwright.analysis.async_order.classes import ThreadClass, classes_of
from loopwright.analysis.async_order.errors import (
    AccumulatorsInUse,
    NotOrdered,
    PhaseMismatch,
    WaitsForever,
)
from loopwright.analysis.async_order.events import Barrier, Event, Trace, done_by, where_text
from loopwright.analysis.async_order.kernels import Memory

# What all threads of a warp, or of a warpgroup, do together.
_TOGETHER: Final = {"copy": WARP, "meet_warp": WARP, "wgmma": WARPGROUP}


@dataclass(eq=False)
class _Groups:
    """What a class has begun and not waited for: copies of groups, stores, or matmuls."""

    open: list[Record] = field(default_factory=list)
    groups: list[list[Record]] = field(default_factory=list)

    def commit(self) -> None:
        self.groups.append(self.open)
        self.open = []

    def wait(self, pending: int, by: ThreadClass, epoch: int) -> list[Record]:
        """All groups but the last ones are done: those that were not before."""
        count = max(0, len(self.groups) - pending)
        result = [record for group in self.groups[:count] for record in group]
        for record in result:
            assert record.done is not None
            record.done.setdefault(by.number, epoch)
        del self.groups[:count]
        return result

    @property
    def left(self) -> list[Record]:
        """What nobody has waited for."""
        return [*[record for group in self.groups for record in group], *self.open]


class _Runner:
    """A class of threads, on its way through its events."""

    def __init__(self, threads: ThreadClass, clock: Clock) -> None:
        self.threads, self.clock = threads, clock
        self.at = 0
        self.epoch = 1
        self.has_fence = False  # one of wgmma
        self.is_there = False  # at a barrier that others have not come to
        self.groups = {kind: _Groups() for kind in ("wgmma", "store", "group_copy")}

    @property
    def event(self) -> Event | None:
        events = self.threads.events
        return events[self.at] if self.at < len(events) else None

    def tell(self) -> Clock:
        """What others know when all threads of the class have told them how far they are."""
        result = list(self.clock)
        result[self.threads.number] = self.epoch
        self.epoch += 1
        return result


class Order:
    """Runs the events of a block, and raises an error for what is not ordered."""

    def __init__(self, trace: Trace, memory: Memory) -> None:
        self.trace, self.memory = trace, memory
        self.classes = classes_of(trace)
        self.accesses = Accesses(Atoms(memory.shared), memory.buffers, memory.unit_bytes)
        self.indices: dict[object, int] = {}  # of barriers, in clocks
        for event in trace.events:
            if event.barrier is not None:
                self.indices.setdefault(event.barrier, 0)
            elif event.kind in ("meet", "meet_warp"):
                for key in self.meeting_keys(event):
                    self.indices.setdefault(key, 0)
        for number, key in enumerate(self.indices):
            self.indices[key] = len(self.classes) + number
        size = len(self.classes) + len(self.indices)
        self.runners = [_Runner(threads, [0] * size) for threads in self.classes]
        for threads in self.classes:
            for event in threads.events:
                for touch in event.touches:
                    self.accesses.atoms.region(touch.footprint, threads)
        self.accesses.begin()
        self.barriers: dict[Barrier, PhaseBarrier] = {}
        self.meetings: dict[object, Meeting] = {}
        self.waiting: dict[tuple[int, int], list[_Runner]] = {}  # for other threads of the warp or warpgroup

    def meeting_keys(self, event: Event) -> list[object]:
        if event.kind == "meet":
            return [event.number]
        return [("warp", warp) for warp in range(-(-self.trace.threads // WARP))]

    def run(self) -> None:
        """Run all that can, and look at what is left."""
        while any([self.advance(runner) for runner in self.runners]):
            pass
        if not any([threads.is_cut for threads in self.classes]):
            self.check_end()

    def advance(self, runner: _Runner) -> bool:
        """The events of a class until it has to wait; whether there were any."""
        begin = runner.at
        while (event := runner.event) is not None and not runner.is_there:
            if not self.step(runner, event):
                break
            runner.at += 1
        return runner.at > begin

    def step(self, runner: _Runner, event: Event) -> bool:
        """One event; False where the class has to wait."""
        kind, threads, clock, epoch = event.kind, runner.threads, runner.clock, runner.epoch
        if kind == "touch":
            for touch in event.touches:
                self.accesses.access(threads, event, touch, clock, epoch)
                if touch.footprint.data in self.memory.registers:
                    runner.has_fence = False
        elif kind == "wait":
            barrier = self.barrier(runner, event)
            if not barrier.passes(threads, event, clock):
                return False
            runner.clock = barrier.passed(threads, event, clock, epoch)
        elif kind == "arrive":
            barrier = self.barrier(runner, event)
            runner.tell()
            barrier.arrive(threads, event, clock, epoch)
        elif kind == "init":
            self.init(runner, event)
        elif kind == "meet":
            return self.meet(runner, event, event.number)
        elif kind in _TOGETHER:
            return self.together(runner, event)
        elif kind == "fence_proxy_async":
            self.accesses.fence_proxy(threads, epoch)
        elif kind == "wgmma_fence":
            runner.has_fence = True
        elif kind in ("store", "group_copy"):
            for touch in event.touches:
                record = self.accesses.begin_asynchronous(threads, event, touch, clock, epoch)
                self.accesses.finish(record)
                runner.groups[kind].open.append(record)
        elif kind in _COMMITS:
            runner.groups[_COMMITS[kind]].commit()
        else:
            done = runner.groups[_WAITS[kind]].wait(event.number, threads, epoch)
            if kind == "ptx_wait_group":  # these are stores of the threads, too
                self.accesses.unfenced.setdefault(threads.number, []).extend(done)
        return True

    # --- barriers ---------------------------------------------------------------------------------------------------

    def name(self, barrier: Barrier) -> str:
        return f"mbarrier {barrier[0].name}[{barrier[1]}]"

    def init(self, runner: _Runner, event: Event) -> None:
        assert event.barrier is not None
        name, by = self.name(event.barrier), runner.threads
        if by.count > 1 or event.barrier in self.barriers:
            again = event.do("initialise it") if by.count > 1 else f"it is initialised again{where_text(event.where)}"
            raise PhaseMismatch(event.statement, name, again, "let one thread say mbarrier_init, once")
        if event.number < 1:
            raise PhaseMismatch(event.statement, name, f"it counts {event.number} arrivals", "a phase has one at least")
        made = Announced(by, runner.epoch, event)
        self.barriers[event.barrier] = PhaseBarrier(name, self.indices[event.barrier], event.number, made)

    def barrier(self, runner: _Runner, event: Event) -> PhaseBarrier:
        """The mbarrier, which the class knows to be initialised."""
        assert event.barrier is not None
        result = self.barriers.get(event.barrier)
        by = runner.threads
        if result is not None:
            made = result.made_by
            if made.by is by or runner.clock[made.by.number] >= made.epoch:
                return result
        problem = f"{event.do('use it')}, and nothing orders that after an mbarrier_init"
        hint = "let one thread say mbarrier_init, and put a barrier of the block behind it"
        raise PhaseMismatch(event.statement, self.name(event.barrier), problem, hint)

    def meet(self, runner: _Runner, event: Event, key: object) -> bool:
        meeting = self.meetings.get(key)
        if meeting is None:
            name = "the barrier of the block" if key == 0 else f"role_barrier {event.number}"
            meeting = self.meetings[key] = Meeting(name, self.indices[key], event.threads)
        runner.is_there = True
        if not meeting.come(runner.threads, event, runner.clock):
            return False
        self.meet_all([self.runners[threads.number] for threads in meeting.there], meeting, runner)
        return True

    def meet_all(self, runners: list[_Runner], meeting: Meeting, last: _Runner) -> None:
        """All are there: everybody knows what everybody knows."""
        meeting.passed += 1
        clock = runners[0].tell()
        for runner in runners[1:]:
            clock = join(clock, runner.tell())
        clock[meeting.index] = meeting.passed
        meeting.there = []
        for runner in runners:
            runner.clock = list(clock)
        self.go_on(runners, last)

    def go_on(self, runners: list[_Runner], last: _Runner) -> None:
        for runner in runners:
            runner.is_there = False
            if runner is not last:
                runner.at += 1

    # --- what threads do together -------------------------------------------------------------------------------------

    def together(self, runner: _Runner, event: Event) -> bool:
        size = _TOGETHER[event.kind]
        unit = runner.threads.threads[0] // size
        key = id(event), unit
        there = self.waiting.setdefault(key, [])
        there.append(runner)
        runner.is_there = True
        members = [
            other for other in self.runners
            if other.threads.threads[0] // size == unit and event.mask.bits[other.threads.threads[0]]
        ]  # fmt: skip
        if len(there) < len(members):
            return False
        del self.waiting[key]
        if event.kind == "meet_warp":
            which = "warp", unit
            meeting = self.meetings.setdefault(which, Meeting(f"the barrier of warp {unit}", self.indices[which], WARP))
            self.meet_all(members, meeting, runner)
            return True
        if event.kind == "copy":
            self.copy(members, event)
        else:
            self.wgmma(members, event)
        self.go_on(members, runner)
        return True

    def copy(self, members: list[_Runner], event: Event) -> None:
        """The copy engine begins to copy for a warp, the first lane of which says how many bytes."""
        barrier = self.barrier(members[0], event)
        first = min(members, key=lambda member: member.threads.threads[0])
        records: list[Record] = []
        for member in members:
            (touch,) = event.touches
            records.append(self.accesses.begin_asynchronous(member.threads, event, touch, member.clock, member.epoch))
        clock = members[0].tell()  # the lanes wait for each other before the copy begins
        for member in members[1:]:
            clock = join(clock, member.tell())
        for member in members:
            member.clock = list(clock)
        barrier.check_known(first.threads, event, first.clock, "copy")
        barrier.copies.append(Announced(first.threads, first.epoch, event))
        record = records[members.index(first)]
        record.done = {barrier.index: barrier.phase + 1}
        self.accesses.finish(record)

    def wgmma(self, members: list[_Runner], event: Event) -> None:
        if not all([member.has_fence for member in members]):
            name = self.memory.buffers[event.touches[0].footprint.data].name
            problem = f"{event.do('begin a wgmma')}, and no wgmma_fence stands before it"
            hint = "put T.wgmma_fence() before the first wgmma, and where registers of it were touched"
            raise AccumulatorsInUse(event.statement, name, problem, hint)
        for touch in event.touches:
            records = [
                self.accesses.begin_asynchronous(member.threads, event, touch, member.clock, member.epoch)
                for member in members
            ]
            if touch.footprint.data in self.memory.shared:
                done: dict[int, int] = {}  # one of the warps that have waited is enough
                for record in records:
                    record.done = done
            for record, member in zip(records, members, strict=True):
                self.accesses.finish(record)
                member.groups["wgmma"].open.append(record)

    # --- the end ------------------------------------------------------------------------------------------------------

    def check_end(self) -> None:
        stuck = [runner for runner in self.runners if runner.event is not None]
        if stuck:
            raise self.waits_for_ever(stuck)
        for barrier in self.barriers.values():
            if barrier.arrived:
                assert barrier.last is not None
                problem = f"the block ends with {barrier.arrived} of {barrier.count} arrivals of phase {barrier.phase}"
                raise PhaseMismatch(barrier.last.statement, barrier.name, problem, "count the threads that arrive")
            for copy in barrier.copies:
                problem = f"the block ends before the phase of a copy{where_text(copy.event.where)} completes"
                raise PhaseMismatch(
                    copy.event.statement, barrier.name, problem, "arrive after the copy, and wait for it"
                )
            unseen = [runner for runner in self.runners if runner.clock[barrier.index] >= barrier.phase]
            copies = [event for event in self.trace.events if event.kind == "copy"] if not unseen else []
            for event in copies:
                if event.barrier is not None and self.barriers[event.barrier] is barrier:
                    problem = (
                        f"nobody waits for its last phase, {barrier.phase - 1}, and the block may end before a copy"
                    )
                    raise PhaseMismatch(event.statement, barrier.name, problem, "wait for it before the block ends")
        for runner in self.runners:
            self.check_waited(runner)

    def check_waited(self, runner: _Runner) -> None:
        for kind, groups in runner.groups.items():
            for record in groups.left:
                element = self.accesses.element(record.region.space, record.region.atoms[0])
                if kind == "wgmma":
                    problem = f"the kernel ends before a wgmma_wait for what {record.text('it')}"
                    hint = "commit it to a group, and put T.wgmma_wait(0) behind"
                    raise AccumulatorsInUse(record.event.statement, element, problem, hint)
                hint = "commit it to a group, and wait for all groups before the threads end"
                raise NotOrdered(record.event.statement, element, record.text("it"), "the threads end", hint)

    def waits_for_ever(self, stuck: list[_Runner]) -> WaitsForever:
        alike: dict[tuple[int, str], list[_Runner]] = {}
        for runner in stuck:
            alike.setdefault((id(runner.event), runner.threads.role), []).append(runner)
        waits: dict[str, Event] = {}
        missing: dict[str, None] = {}
        for (_, role), runners in alike.items():
            event = runners[0].event
            assert event is not None
            threads = sorted([thread for runner in runners for thread in runner.threads.threads])
            who = f"{done_by(threads, role, 'wait')}{where_text(event.where)}"
            if event.barrier is not None:
                barrier = self.barriers[event.barrier]
                waits[f"{who} for the phase of parity {event.number} of {barrier.name}"] = event
                missing[
                    f"phase {barrier.phase} of {barrier.name} has {barrier.arrived} of {barrier.count} arrivals"
                ] = None
            elif event.kind == "meet":
                meeting = self.meetings[event.number]
                there = sum([other.count for other in meeting.there])
                waits[f"{who} at {meeting.name}, where {there} of {meeting.threads} threads are"] = event
            else:
                waits[f"{who} for other threads of their warps to {_WORDS[event.kind]}"] = event
        order = sorted(waits, key=lambda text: waits[text].kind != "wait")
        return WaitsForever(waits[order[0]].statement, order, list(missing))


_WORDS: Final = {"copy": "copy", "meet_warp": "meet", "wgmma": "multiply"}
_COMMITS: Final = {"wgmma_commit": "wgmma", "bulk_commit_group": "store", "ptx_commit_group": "group_copy"}
_WAITS: Final = {
    "wgmma_wait": "wgmma",
    "bulk_wait_group": "store",
    "bulk_wait_group_read": "store",
    "ptx_wait_group": "group_copy",
}
