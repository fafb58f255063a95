"""load_ahead: what compiles kernels is loaded by another process while this one reads the model.

    with loading_ahead(load, state):                    a fork of this process calls `load()`
        …                                               meanwhile the jobs are found
        for number, result in run_ahead(jobs): …

Modules that only kernels need (rules, schedules, lowering) take half a second to load, as long as a graph takes to be
read. The fork knows what was registered before it: where `state()` has changed since, it is not asked. Whatever it does
not answer (it died, or jobs cannot be sent to it) is left to the caller.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from loopwright.model.workers import become_worker, complete, fork, in_parallel, send, usual_processes

_LENGTH: Final = struct.Struct("<q")
Jobs = Sequence[Callable[[], Any]]


class _Loader:
    """The other process: it takes one request, and answers with the results of its jobs as they are finished."""

    def __init__(self, load: Callable[[], None], state: Callable[[], object]) -> None:
        self._state, self._began_in = state, state()
        request, self._request = os.pipe()
        self._results, results = os.pipe()
        self.process = fork()
        if self.process == 0:
            with become_worker([self._request, self._results]):
                os.setpgid(0, 0)  # so that its own workers end with it
                load()
                _serve(request, results)
        os.close(request)
        os.close(results)

    def run(self, jobs: Jobs, processes: int | None) -> Iterator[tuple[int, Any]]:
        """The results of the jobs that it does."""
        if self._state() != self._began_in:
            return
        try:
            data = pickle.dumps((processes, list(jobs)), pickle.HIGHEST_PROTOCOL)
        except Exception:
            return  # a job holds what cannot be sent
        try:
            send(self._request, data)
        except BrokenPipeError:
            return
        received = bytearray()
        while part := os.read(self._results, 1 << 20):
            received.extend(part)
            yield from complete(received)

    def end(self) -> None:
        """It is not needed any more."""
        for kill in (os.killpg, os.kill):  # before it has a group of its own, and after
            try:
                kill(self.process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        os.close(self._request)
        os.close(self._results)
        os.waitpid(self.process, 0)


_loader: ContextVar[_Loader | None] = ContextVar("loader", default=None)


@contextmanager
def loading_ahead(load: Callable[[], None], state: Callable[[], object]) -> Iterator[None]:
    """Have `load` called by another process, which does jobs as long as `state` gives the same."""
    if _loader.get() is not None or usual_processes() < 2 or not sys.platform.startswith("linux"):
        yield
        return
    loader = _Loader(load, state)
    token = _loader.set(loader)
    try:
        yield
    finally:
        _loader.reset(token)
        loader.end()


def run_ahead(jobs: Jobs, processes: int | None = None) -> Iterator[tuple[int, Any]]:
    """The number and the result of each job that the other process does: of none where there is no such process.

    It is asked once.
    """
    loader = _loader.get()
    if loader is not None and len(jobs) > 1 and (processes is None or processes > 1):
        _loader.set(None)
        yield from loader.run(jobs, processes)


def _serve(request: int, results: int) -> None:
    received = bytearray()
    while len(received) < _LENGTH.size or len(received) < _LENGTH.size + _LENGTH.unpack_from(received)[0]:
        part = os.read(request, 1 << 20)
        if not part:
            return  # nobody asks
        received.extend(part)
    processes, jobs = next(complete(received))
    for answer in in_parallel(jobs, processes):
        send(results, pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))
