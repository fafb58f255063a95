"""Rows in processes of their own: a kernel that fails takes its process's GPU with it, and a compiler may not end.

    for row in supervised(script, jobs, patience=60, deadline=…): …

The child gets its jobs as JSON lines on stdin and prints one JSON line for each when it is done. Where it dies, or says
nothing for `patience` seconds, the job it is at is given up and a new child goes on with those behind it.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Job = dict[str, Any]
Row = dict[str, Any]  # with "failed", where there is no result
LOST = 3  # the exit status of a child that has lost its GPU, with all rows up to there printed
_MARK = "\x1erow "  # before a row on stdout, where compilers also print
_START = 60.0  # seconds more for the first row: importing torch


def supervised(command: Sequence[str], jobs: Sequence[Job], patience: float, deadline: float) -> Iterator[Row]:
    """The row of every job, in order; those after the deadline (by `time.monotonic`) are left out."""
    rest = list(jobs)
    while rest and time.monotonic() < deadline:
        done = 0
        with tempfile.TemporaryFile("w+") as errors:
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
            assert child.stdin is not None
            lines = _lines_of(child)
            child.stdin.write("".join([json.dumps(job) + "\n" for job in rest]))
            child.stdin.close()
            why = ""
            while done < len(rest):
                seconds = min(patience + (0 if done else _START), max(0.0, deadline - time.monotonic()))
                try:
                    line = lines.get(timeout=seconds)
                except queue.Empty:
                    is_late = time.monotonic() >= deadline
                    why = "left out: the time is used up" if is_late else f"no result after {patience:.0f} seconds"
                    break
                if line is None:
                    if child.wait() == LOST and done:
                        break
                    errors.seek(0)
                    why = f"the process ended with {child.wait()}: {errors.read()[-600:].strip()}"
                    break
                yield {**rest[done], **json.loads(line)}
                done += 1
            child.kill()
            child.wait()
        if why:
            yield {**rest[done], "failed": why}
            done += 1
        rest = rest[done:]
    for job in rest:
        yield {**job, "failed": "left out: the time is used up"}


def _lines_of(child: subprocess.Popen[str]) -> queue.Queue[str | None]:
    """The rows that a child prints, as they come, and None at its end."""
    result: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith(_MARK):
                result.put(line[len(_MARK) :])
        result.put(None)

    threading.Thread(target=read, daemon=True).start()
    return result


def side_by_side(
    command: Sequence[str], jobs: Sequence[Job], processes: int, patience: float, deadline: float
) -> list[Row]:
    """The rows of all jobs, by several children at once."""
    shares = [jobs[k::processes] for k in range(processes) if jobs[k::processes]]
    with ThreadPoolExecutor(max(1, len(shares))) as pool:
        parts = list(pool.map(lambda share: list(supervised(command, share, patience, deadline)), shares))
    return [row for part in parts for row in part]


def serve(work: Callable[[Job], Row], is_usable: Callable[[], bool]) -> int:
    """A child's life: a row for each job; ends after a failure that took the GPU along."""
    for line in sys.stdin:
        try:
            row = work(json.loads(line))
        except Exception as error:
            row = {"failed": f"{type(error).__name__}: {error}"[:600]}
        print(f"\n{_MARK}{json.dumps(row)}", flush=True)
        if "failed" in row and not is_usable():
            return LOST
    return 0
