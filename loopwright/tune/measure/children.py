"""children: a function in a forked process that may crash, hang or eat memory, and what became of it.

    (outcome,) = run_children([work], limits)          work(report) runs in the child; what it returns comes back
    outcome                                            its result, or a Failure

A child is a fork of this process: it has everything that is loaded here, and what it is to do need not be sent; only
the result is (by pickle, over a pipe). `report(stage, seconds)` says what it does next, and how long that may take: the
parent kills a child that takes longer, and a failure names the stage it died in.

Groups of works that share a `Crew` go on while another of them is waited for: who builds candidates takes up the next
one while the last one is measured, and leaves the CPUs alone that it is measured on.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import struct
import tempfile
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import IO, Any, Final
from weakref import WeakValueDictionary

from loopwright.ir.rare_collections import NEW_OBJECTS
from loopwright.model.workers import nobody_compiles
from loopwright.tune.measure.failure import Failure, failure_of
from loopwright.tune.measure.limits import Limits, ParentTies, can_fork, signal_name, terminated_by_memory

Report = Callable[[str, float], None]
Work = Callable[[Report], Any]

_LENGTH: Final = struct.Struct("<q")
_CRASHES: Final = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT)
_SENDING: Final = 1.0  # seconds between two pieces of a result, which is larger than a pipe
_MOST_STDERR: Final = 2000  # characters of it that a failure keeps


@dataclass
class _Child:
    number: int
    process: int
    results: int
    stderr: IO[bytes]
    stage: str
    allowed: float  # seconds for that stage
    deadline: float
    received: bytearray = field(default_factory=bytearray)
    result: Any = None
    has_result: bool = False


class Crew:
    """Groups of children that are heard together, the oldest first; `at_once` counts those of one stage."""

    def __init__(self) -> None:
        self._groups: WeakValueDictionary[int, _Children] = WeakValueDictionary()
        self._count = 0
        self._taken: frozenset[int] = frozenset()  # CPUs

    @property
    def groups(self) -> list[_Children]:
        """Those that somebody still wants the results of."""
        return [group for _, group in sorted(self._groups.items())]

    def add(self, group: _Children) -> None:
        """One more, which comes after the others."""
        self._groups[self._count] = group
        self._count += 1

    def start(self) -> None:
        """Let those begin that wait for their turn."""
        for group in self.groups:
            while group.waiting and self._running(group.stage) < group.at_once:
                group.start_one()

    def hear(self) -> None:
        """Wait until one of the children says something or is overdue, and take it in."""
        children = {child.results: (group, child) for group in self.groups for child in group.running.values()}
        now = monotonic()
        patience = max(0.0, min([child.deadline for _, child in children.values()]) - now)
        ready = select.select(list(children), [], [], patience)[0]
        for descriptor in ready:
            group, child = children[descriptor]
            group.hear(child)
        if not ready:  # else their parent was busy: who has something to say is heard
            for group, child in children.values():
                if now + patience >= child.deadline:
                    group.end(child, _overdue(child))

    @contextmanager
    def leaves(self, cpus: Collection[int]) -> Iterator[None]:
        """Inside, children that are not pinned run on other CPUs than these, where there are others."""
        self._taken = frozenset(cpus)
        self._move()
        try:
            yield
        finally:
            self._taken = frozenset()
            self._move()

    def place(self, child: _Child, limits: Limits) -> None:
        """Let a child run where it may now."""
        allowed = os.sched_getaffinity(0)
        if limits.cpus is None:
            with suppress(ProcessLookupError):  # it has ended
                os.sched_setaffinity(child.process, allowed - self._taken or allowed)

    def _move(self) -> None:
        for group in self.groups:
            for child in group.running.values():
                self.place(child, group.limits)

    def _running(self, stage: str) -> int:
        return sum([len(group.running) for group in self.groups if group.stage == stage])


def run_children(
    works: Sequence[Work], limits: Limits, stage: str, at_once: int = 1, crew: Crew | None = None
) -> list[Any]:
    """The result of each, in order; a `Failure` for one that raised, crashed, or went beyond its limits.

    `stage` is what a child does first, in `limits.seconds`. Where processes cannot be forked it all happens here.
    """
    results: list[Any] = [None] * len(works)
    for number, result in each_child(works, limits, stage, at_once, crew):
        results[number] = result
    return results


def each_child(
    works: Sequence[Work], limits: Limits, stage: str, at_once: int = 1, crew: Crew | None = None
) -> Iterator[tuple[int, Any]]:
    """The number and the result of each, as they are finished; the first of them start before they are asked for.

    They are ended when nobody holds the iterator any more.
    """
    if not can_fork():
        return ((number, _here(work, stage)) for number, work in enumerate(works))
    return _Children(works, limits, stage, at_once, Crew() if crew is None else crew)


class _Children(Iterator[tuple[int, Any]]):
    def __init__(self, works: Sequence[Work], limits: Limits, stage: str, at_once: int, crew: Crew) -> None:
        self.running: dict[int, _Child] = {}
        self.ended: deque[tuple[int, Any]] = deque()
        self.ties, self.limits, self.stage, self.at_once, self.crew = ParentTies(), limits, stage, at_once, crew
        self.waiting = deque(enumerate(works))
        crew.add(self)
        crew.start()

    def start_one(self) -> None:
        """Begin what waits longest."""
        number, work = self.waiting.popleft()
        child = _start(number, work, self.limits, self.stage, self.ties)
        self.running[child.results] = child
        self.crew.place(child, self.limits)

    def hear(self, child: _Child) -> None:
        """Take in what a child has sent, or that it has ended."""
        data = os.read(child.results, 1 << 20)
        child.received.extend(data)
        _take(child)
        child.deadline = max(child.deadline, monotonic() + _SENDING)  # it is about to send the rest
        if not data:
            self.end(child, _outcome(child))

    def end(self, child: _Child, result: Any) -> None:
        """Keep the result of a child that has ended until somebody asks for it."""
        del self.running[child.results]
        self.ended.append((child.number, result))

    def __next__(self) -> tuple[int, Any]:
        self.crew.start()
        while not self.ended:
            if not self.running and not self.waiting:
                raise StopIteration
            self.crew.hear()
            self.crew.start()
        return self.ended.popleft()

    def close(self) -> None:
        """End those that run: an error, or nobody wants the rest. A fork of their parent lets them be."""
        self.waiting.clear()
        while self.running and os.getpid() == self.ties.parent:
            _, child = self.running.popitem()
            os.kill(child.process, signal.SIGKILL)
            _bury(child)

    def __del__(self) -> None:
        self.close()


def _here(work: Work, stage: str) -> Any:
    try:
        return work(lambda _stage, _seconds: None)
    except Exception as error:
        return failure_of(error, stage)


def _start(number: int, work: Work, limits: Limits, stage: str, ties: ParentTies) -> _Child:
    results, own_end = os.pipe()
    stderr = tempfile.TemporaryFile()  # noqa: SIM115
    with nobody_compiles():
        process = os.fork()
    if process == 0:
        status = 1
        try:
            os.close(results)
            os.dup2(stderr.fileno(), 2)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its children
            for number in _CRASHES:  # LLVM's handler writes a stack trace, for half a second
                signal.signal(number, signal.SIG_DFL)
            ties.apply(limits)
            gc.freeze()
            gc.set_threshold(NEW_OBJECTS)
            _work(work, stage, own_end)
            status = 0
        finally:
            os._exit(status)  # nothing of the parent's is flushed or ended twice
    os.close(own_end)
    return _Child(number, process, results, stderr, stage, limits.seconds, monotonic() + limits.seconds)


def _work(work: Work, stage: str, pipe: int) -> None:
    current = [stage]

    def report(stage: str, seconds: float) -> None:
        current[0] = stage
        _send(pipe, (stage, seconds))

    try:
        data = pickle.dumps(work(report), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        data = pickle.dumps(failure_of(error, current[0]), pickle.HIGHEST_PROTOCOL)
    _send(pipe, data)


def _send(pipe: int, message: object) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    unsent = memoryview(_LENGTH.pack(len(data)) + data)
    while unsent:
        unsent = unsent[os.write(pipe, unsent) :]


def _take(child: _Child) -> None:
    """Messages that have arrived whole: stages, as tuples, and the result, as bytes."""
    while len(child.received) >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(child.received)
        end = _LENGTH.size + length
        if len(child.received) < end:
            return
        message = pickle.loads(bytes(child.received[_LENGTH.size : end]))
        del child.received[:end]
        if isinstance(message, bytes):
            child.result, child.has_result = pickle.loads(message), True
        else:
            child.stage, child.allowed = message
            child.deadline = monotonic() + child.allowed


def _outcome(child: _Child) -> Any:
    status, stderr = _bury(child)
    if child.has_result:
        return child.result
    if terminated_by_memory(status, stderr):
        return Failure("memory", f"{child.stage}: the memory limit was reached", stderr)
    if os.WIFSIGNALED(status):
        name = signal_name(os.WTERMSIG(status))
        return Failure("signal", f"{child.stage}: the process was killed by {name}", stderr)
    return Failure("crash", f"{child.stage}: the process ended with status {os.waitstatus_to_exitcode(status)}", stderr)


def _overdue(child: _Child) -> Any:
    os.kill(child.process, signal.SIGKILL)
    _, stderr = _bury(child)
    if child.has_result:
        return child.result
    kind = "build timeout" if child.stage == "build" else "run timeout"
    return Failure(kind, f"{child.stage}: not finished within {child.allowed:.3g} s", stderr)


def _bury(child: _Child) -> tuple[int, str]:
    """The status of a child that has ended, or is about to, and the end of what it wrote to stderr."""
    os.close(child.results)
    _, status = os.waitpid(child.process, 0)
    with child.stderr as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - _MOST_STDERR))
        return status, file.read().decode(errors="replace")
