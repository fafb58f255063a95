"""workers: many independent pieces of work on all processors, in processes: LLVM runs under one lock in each.

    for number, result in in_parallel(jobs, processes=4):        jobs are functions without arguments
        …
    with beside(job) as result:                                  one job, while this process does something else
        …
        result()

A worker is a fork of this process: it has everything that is loaded here, and its jobs need not be sent to it; only
results are (by pickle, over a pipe). Workers take jobs as they come, by reading numbers from a pipe that they share. A
job that fails in a worker is done again here, where its error is raised as it is; so are the jobs of a worker that
died, and all jobs where processes cannot be forked (on other systems than Linux).

A worker lives for some seconds: its garbage collector leaves what it was born with alone, and looks for cycles rarely.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import struct
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar

from loopwright.ir.rare_collections import NEW_OBJECTS
from loopwright.runtime import thread_pool

_MOST_WORKERS: Final = 64
_NUMBER: Final = struct.Struct("<i")
_MOST_JOBS: Final = 65536 // _NUMBER.size  # whose numbers a pipe holds
_LENGTH: Final = struct.Struct("<q")
Jobs = Sequence[Callable[[], Any]]
R = TypeVar("R")


class _Worker(NamedTuple):
    process: int
    results: int  # the end of its pipe that is read here
    received: bytearray


def usual_processes() -> int:
    """How many processes work where nobody says: as many as a parallel loop has threads."""
    return thread_pool.num_threads()


def in_parallel(jobs: Jobs, processes: int | None = None) -> Iterator[tuple[int, Any]]:
    """The number and the result of each job, as they are finished."""
    count = min(usual_processes() if processes is None else processes, len(jobs), _MOST_WORKERS)
    missing = dict.fromkeys(range(len(jobs)))
    if count > 1 and sys.platform.startswith("linux"):
        for number, result in _forked(jobs, count):
            del missing[number]
            yield number, result
    for number in missing:
        yield number, jobs[number]()


def _forked(jobs: Jobs, count: int) -> Iterator[tuple[int, Any]]:
    """The results of the jobs that did not fail."""
    numbers, hand_out = os.pipe()
    workers: dict[int, _Worker] = {}
    try:
        for _ in range(count):
            worker = _start(jobs, numbers, [hand_out, *workers])
            workers[worker.results] = worker
        for number in range(min(len(jobs), _MOST_JOBS)):
            os.write(hand_out, _NUMBER.pack(number))
        os.close(hand_out)
        hand_out = -1
        while workers:
            for descriptor in select.select(list(workers), [], [])[0]:
                data = os.read(descriptor, 1 << 20)
                if not data:
                    _finish(workers.pop(descriptor))
                    continue
                workers[descriptor].received.extend(data)
                yield from complete(workers[descriptor].received)
    finally:
        for descriptor in (numbers, hand_out):
            if descriptor >= 0:
                os.close(descriptor)
        for worker in workers.values():  # an error, or nobody wants the rest
            os.kill(worker.process, signal.SIGKILL)
            _finish(worker)


@contextmanager
def beside(job: Callable[[], R]) -> Iterator[Callable[[], R]]:
    """Begin a job in a worker, and give a function that waits for its result; without a worker it is done then."""
    if not sys.platform.startswith("linux"):
        yield job
        return
    numbers, hand_out = os.pipe()
    worker = _start([job], numbers, [hand_out])
    os.write(hand_out, _NUMBER.pack(0))
    os.close(hand_out)
    os.close(numbers)
    found: list[R] = []

    def result() -> R:
        while not found:
            data = os.read(worker.results, 1 << 20)
            worker.received.extend(data)
            found.extend([value for _, value in complete(worker.received)])
            if not data and not found:
                found.append(job())  # it failed there: its error is raised here
        return found[0]

    try:
        yield result
    finally:
        if not found:  # nobody wants it, or it failed
            os.kill(worker.process, signal.SIGKILL)
        _finish(worker)


def _start(jobs: Jobs, numbers: int, unused: Sequence[int]) -> _Worker:
    results, own_end = os.pipe()
    process = fork()
    if process == 0:
        with become_worker([results, *unused]):
            _work(jobs, numbers, own_end)
    os.close(own_end)
    return _Worker(process, results, bytearray())


def fork() -> int:
    """Fork this process while no other thread of it is inside LLVM; 0 in the worker."""
    with nobody_compiles():
        return os.fork()


@contextmanager
def become_worker(unused: Sequence[int]) -> Iterator[None]:
    """In a worker: it ends with the block, without the descriptors that are its parent's."""
    status = 1
    try:
        for descriptor in unused:
            os.close(descriptor)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
        gc.freeze()
        gc.set_threshold(NEW_OBJECTS)
        yield
        status = 0
    finally:
        os._exit(status)  # nothing of the parent's is flushed or ended twice


@contextmanager
def nobody_compiles() -> Iterator[None]:
    """While no other thread is inside LLVM: its lock would stay locked in the worker."""
    if "llvmlite.binding" not in sys.modules:
        yield
        return
    from llvmlite.binding import ffi

    with ffi.lib._lock, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python's, of forking beside other threads
        yield


def _work(jobs: Jobs, numbers: int, results: int) -> None:
    while True:
        asked = os.read(numbers, _NUMBER.size)  # each number goes, whole, to one reader
        if len(asked) < _NUMBER.size:
            return
        (number,) = _NUMBER.unpack(asked)
        try:
            data = pickle.dumps((number, jobs[number]()), pickle.HIGHEST_PROTOCOL)
        except Exception:
            continue  # the parent meets it again
        send(results, data)


def send(descriptor: int, data: bytes) -> None:
    """Write data with its length, for `complete`."""
    unsent = memoryview(_LENGTH.pack(len(data)) + data)
    while unsent:
        unsent = unsent[os.write(descriptor, unsent) :]


def complete(received: bytearray) -> Iterator[tuple[int, Any]]:
    """The results that have arrived whole, taken out of what was received."""
    while len(received) >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(received)
        end = _LENGTH.size + length
        if len(received) < end:
            return
        data = bytes(received[_LENGTH.size : end])
        del received[:end]
        yield pickle.loads(data)


def _finish(worker: _Worker) -> None:
    os.close(worker.results)
    os.waitpid(worker.process, 0)
