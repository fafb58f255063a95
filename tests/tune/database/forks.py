"""Processes that write into a database while something else happens."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable


def in_child(work: Callable[[], object]) -> int:
    """Start a process that does the work; its number."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)  # nothing of the tests' own clean-up


def status_of(child: int) -> int:
    """What the process ended with, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
