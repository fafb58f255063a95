"""choices: options of operators that are one of several words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from loopwright.runtime.errors import LoopwrightError

T = TypeVar("T")


class UnknownChoice(LoopwrightError, ValueError, AssertionError):
    """An option of an operator names something that does not exist: a method, a mode, a kind of result.

    For example:

        from loopwright import te, topi

        data = te.placeholder((4, 8), name="data")
        topi.topk(data, 3, ret_type="all")
    """

    code = "LW1130"

    def __init__(self, op: str, option: str, given: object, choices: Iterable[object]) -> None:
        known = list(choices)
        super().__init__(
            f"{op}: {option} is {given!r}",
            hint=f"it is one of {', '.join([repr(choice) for choice in known])}",
            fields={"op": op, "option": option, "given": given, "choices": known},
        )


class UnsuitableType(LoopwrightError, TypeError, ValueError, AssertionError):
    """An operator was given a tensor whose type of elements it cannot work on.

    Indices and counts are integers, probabilities and angles are floating-point numbers, the state of a random number
    generator is made of uint64.

    For example:

        from loopwright import te, topi

        data = te.placeholder((4,), "float32", name="data")
        indices = te.placeholder((2,), "float32", name="indices")
        topi.searchsorted(data, indices, out_dtype="float32")
    """

    code = "LW1131"

    def __init__(self, op: str, problem: str, hint: str | None = None) -> None:
        super().__init__(f"{op}: {problem}", hint=hint, fields={"op": op})


def choose(op: str, option: str, given: T, choices: Iterable[object]) -> T:
    """`given`, refused when it is none of `choices`."""
    known = list(choices)
    if given not in known:
        raise UnknownChoice(op, option, given, known)
    return given
