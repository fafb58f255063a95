"""The versions of a program that a schedule went through, as text."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright.ir import IRModule
from loopwright.schedule.errors import BadStepArgument, WrongType
from loopwright.schedule.trace.protocol import ScheduleProtocol
from loopwright.schedule.view import View
from loopwright.script.printer import script_text

Version = Mapping[str, View]


def versions(sch: ScheduleProtocol) -> list[Version]:
    """The functions before the first step, after it, after the second, …, now."""
    return [*[before for _, before in sch.changes()], sch.views()]


def same_version(one: Version, other: Version) -> bool:
    """Whether two versions are one: the very same functions."""
    return list(one) == list(other) and all([one[name].function is other[name].function for name in one])


def version_lines(version: Version) -> list[str]:
    """The program as text: the function, or a module of several."""
    functions = {name: view.function for name, view in version.items()}
    text = script_text(next(iter(functions.values())) if len(functions) == 1 else IRModule(functions))  # type: ignore[arg-type]
    lines = text.split("\n")
    while lines and (not lines[0] or lines[0].startswith("# from ")):  # how the names T and I come about
        del lines[0]
    return lines


def module_text(sch: ScheduleProtocol, version: Version, options: Mapping[str, object]) -> str:
    """The program as `show` writes it."""
    whole = sch.mod
    functions = {whole.get_global_var(name): view.function for name, view in version.items()}
    return script_text(IRModule(functions, attrs=whole.attrs), **options)  # type: ignore[arg-type]


def checked_number(step: str, number: object, low: int, count: int) -> int:
    """A number of a step or version from `low` to `count`; negative ones count from the end."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise WrongType(step, "a step", "a number", number)
    result = number + count + 1 if number < 0 else number
    if not low <= result <= count:
        there = f"there are {count} steps" if count != 1 else "there is 1 step"
        hint = f"give a number from {low} to {count}" if count else "do a step first"
        raise BadStepArgument(step, f"{number} is no step; {there}", hint=hint)
    return result
