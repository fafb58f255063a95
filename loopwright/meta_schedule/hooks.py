"""hooks: functions of the user's inside builders and runners, given as they are or by the name of a registered one.

They run in the child, after its initializer, which may be what registers them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from loopwright.meta_schedule.errors import BadHook
from loopwright.runtime import get_global_func
from loopwright.tune.measure import Failure
from loopwright.tune.measure.children import Report, run_children
from loopwright.tune.measure.limits import Limits

Hook = Callable[..., Any] | str | None


def hook(given: Hook, usual: Callable[..., Any]) -> Callable[..., Any]:
    """The function that is meant."""
    if given is None:
        return usual
    if isinstance(given, str):
        function: Callable[..., Any] = get_global_func(given)
        return function
    return given


def checked(initializer: Callable[[], None] | None, hooks: Sequence[Hook]) -> None:
    """Look names up as a child will; ValueError for one that is not registered there."""
    names = [one for one in hooks if isinstance(one, str)]

    def work(_report: Report) -> list[str]:
        if initializer is not None:
            initializer()
        return [name for name in names if get_global_func(name, allow_missing=True) is None]

    if names:
        (missing,) = run_children([work], Limits(30.0), "build")
        if isinstance(missing, Failure):
            raise BadHook(f"the initializer failed: {missing}")
        if missing:
            raise BadHook(f"no function is registered as {' or '.join(map(repr, missing))}")
