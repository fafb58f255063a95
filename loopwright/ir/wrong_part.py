"""WrongPart: a statement was to be made of something that cannot be a part of it; constructors of statements check it.

Copies with changes (`with_`, `rebuild`), which is what passes make most of, skip these tests.
"""

from __future__ import annotations

from typing import NoReturn

from loopwright.runtime.errors import LoopwrightError


def _one(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiouAEIOU" else f"a {noun}"


class WrongPart(LoopwrightError, TypeError):
    """A statement was made of something else than the statements, variables, buffers or texts that it consists of.

    For example:

        from loopwright import tir

        tir.For(tir.Var("i", "int32"), 0, 8, tir.ForKind.SERIAL, 3)
    """

    code = "LW0581"

    def __init__(self, of: str, field: str, value: object, wanted: str) -> None:
        text = repr(value)
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        super().__init__(
            f"{of}: {field} must be {_one(wanted)}, not {type(value).__name__} {shown}",
            hint="an expression becomes a statement with tir.Evaluate" if wanted == "Stmt" else None,
        )


class WrongCount(LoopwrightError, ValueError):
    """A block was given more or fewer values than it has axes.

    For example:

        from loopwright import tir

        block = tir.Block([], [], [], "B", tir.Evaluate(0))
        tir.BlockRealize([0], True, block)
    """

    code = "LW0582"

    def __init__(self, block: str, axes: int, values: int) -> None:
        super().__init__(f"BlockRealize: block {block!r} has {axes} axes, but {values} values were given")


def refuse_part(cls: type, field: str, value: object, wanted: type) -> NoReturn:
    """What generated constructors call where a test fails."""
    raise WrongPart(cls.__name__, field, value, wanted.__name__)


def check_parts(cls: type, field: str, values: tuple[object, ...], wanted: type) -> None:
    """Every one of several is what it has to be."""
    for value in values:
        if not isinstance(value, wanted):
            raise WrongPart(cls.__name__, f"each of {field}", value, wanted.__name__)
