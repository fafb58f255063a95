"""How messages are tested as a whole: the test's docstring is the message that its body raises.

@says(HandleGone)
def test_a_loop_that_was_split():
    \"\"\"loop i is no loop any more: it was split into i_0 and i_1 at line +4 [LW0202]
    call: sch.parallel(i) at line +5
    hint: use i_0 or i_1; sch.get_loops("B") gives i_0, i_1
    steps so far: split(i, [None, 8])
    \"\"\"
    …

Lines of the test are counted from its first (a decorator's); spaces in a row count as one, and a part of the program
that the message shows is left out. The intrinsics that te declares have a number, which counts as N.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

import pytest


def says(error: type[Exception]) -> Callable[[Callable[[], object]], Callable[[], None]]:
    """A test whose body raises `error` with the message that is its docstring."""

    def decorate(body: Callable[[], object]) -> Callable[[], None]:
        @functools.wraps(body)
        def test() -> None:
            with pytest.raises(error) as caught:
                body()
            assert type(caught.value) is error
            assert told(caught.value, body) == _plain(body.__doc__ or "")

        return test

    return decorate


def told(error: BaseException, body: Callable[[], object]) -> str:
    """The message, with lines of `body` counted from its first."""
    place = re.compile(r"\btest_\w+\.py:(\d+)")
    text = place.sub(lambda found: f"line +{int(found[1]) - body.__code__.co_firstlineno}", str(error))
    lines = re.sub(r"(te\.\w+\.\w+)\.\d+", r"\1.N", text).splitlines()  # intrinsics of te are numbered
    shown = re.compile(r"  (call|why|hint|names|what would work|steps so far): ")
    return _plain("\n".join([lines[0], *[line for line in lines[1:] if shown.match(line)]]))


def _plain(text: str) -> str:
    return "\n".join([" ".join(line.split()) for line in text.strip().splitlines()])
