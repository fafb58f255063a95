"""Marks on tests, and the one place that imports pytest: a script may import our testing tools without having it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from loopwright.runtime.errors import LoopwrightError

Test = TypeVar("Test")

# Every mark that the plugin registers, and what it says.
MARKS = {
    "gpu": "the test needs a GPU",
    "slow": "the test takes long; it runs unless SKIP_SLOW_TESTS is set",
    "loopwright_targets": "the targets a test runs on",
    "loopwright_excluded_targets": "targets a test does not run on",
    "loopwright_failing_targets": "targets a test is known to fail on",
    "loopwright_failing_parameters": "parameters a test is known to fail with",
}


class NoPytest(LoopwrightError, ModuleNotFoundError):
    """Fixtures, parameters and marks of tests are pytest's, and pytest is not installed.

    For example:

        # needs a process of its own
        import sys
        from loopwright import testing

        sys.modules["pytest"] = None  # as if it were not installed
        testing.parameter(1, 2)
    """

    code = "LW0042"

    def __init__(self) -> None:
        super().__init__("this part of loopwright.testing needs pytest", hint="pip install pytest")


def load_pytest() -> Any:
    """The module pytest."""
    try:
        import pytest
    except ModuleNotFoundError:
        raise NoPytest from None
    return pytest


def add_mark(test: Test, name: str, args: Sequence[object] = (), **kwargs: object) -> Test:
    """`test` with the mark `name`."""
    marked: Test = getattr(load_pytest().mark, name).with_args(*args, **kwargs)(test)
    return marked
