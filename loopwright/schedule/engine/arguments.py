"""Arguments: what a user gives a step, checked, as a trace carries it, and as the primitive gets it.

    sch.split(i, [None, n // 4 + 1])        a trace holds the handle of i and [None, "n // 4 + 1"];
                                            `split` gets the loop as a `For`

What a user may give in several ways has one way in traces, so that a trace means the same on another program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

import numpy as np

from loopwright.ir import BlockRealize, Buffer, Expr, FloatImm, For, IntImm
from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule.errors import BadStepArgument, WrongType
from loopwright.schedule.handles import MARKS, BlockRV, ExprRV, LoopRV, Mark
from loopwright.schedule.rewrite.index_map import LayoutMap
from loopwright.schedule.trace.calls import Arguments
from loopwright.schedule.view import View

_LOOPS: Final = ("loop", "loops", "ordered_loops")
_BLOCKS: Final = ("block", "scope_block")
_EITHER: Final = ("block_or_loop",)
_MOST_LEVELS: Final = 30


def check_handles(step: str, inputs: Arguments) -> None:
    """Where a step is about a loop it was given one, and where it is about a block, one or its name."""
    for name, given in inputs.items():
        for value in given if isinstance(given, (list, tuple)) else [given]:
            if name in _LOOPS and not isinstance(value, LoopRV):
                hint = "loops are handles that the schedule gives: i, j = sch.get_loops(block)"
                raise WrongType(step, name, "the handle of a loop", value, hint)
            if name in _BLOCKS and not isinstance(value, (BlockRV, str)):
                raise WrongType(step, name, "the handle or name of a block", value)
            if name in _EITHER and not isinstance(value, (BlockRV, LoopRV, str)):
                raise WrongType(step, name, "the handle of a block or loop", value)


def check_levels(step: str, values: Sequence[object]) -> None:
    """No argument is a list in a list in a list … without end: traces, texts and programs will hold it."""
    inside = list(values)
    for _ in range(_MOST_LEVELS):
        lists = [value for value in inside if isinstance(value, (list, tuple, Mapping))]
        if not lists:
            return
        inside = [item for value in lists for item in (value.values() if isinstance(value, Mapping) else value)]
    raise BadStepArgument(step, f"an argument has lists in each other, more than {_MOST_LEVELS} levels deep")


# --- by their types -------------------------------------------------------------------------------------------------

_WORDS: Final[Mapping[object, str]] = {
    int: "an integer",
    bool: "True or False",
    float: "a number",
    str: "a text",
    type(None): "None",
    For: "the handle of a loop",
    BlockRealize: "the handle of a block",
    Buffer: "a buffer",
}
_MANY: Final[Mapping[object, str]] = {
    int: "integers",
    float: "numbers",
    str: "texts",
    For: "handles of loops",
    BlockRealize: "handles of blocks",
}
_ACCEPTED: Final[Mapping[object, tuple[type, ...]]] = {
    int: (int, np.integer, IntImm),
    bool: (int, np.bool_, np.integer),
    float: (int, float, np.integer, np.floating, IntImm, FloatImm),
    For: (For, Mark),
}


@contextmanager
def checked_types(step: str, hints: Mapping[str, object], arguments: Arguments) -> Iterator[None]:
    """A primitive that trips over an argument of another type than it declares: `WrongType` says which.

    A trace may hold anything. What a primitive checks itself it says better, so the types are looked at afterwards.
    """
    try:
        yield
    except (TypeError, AttributeError, ValueError, LookupError, ArithmeticError) as error:
        if not isinstance(error, LoopwrightError):
            for name, value in arguments.items():
                hint = hints.get(name, object)
                if not _is_of(value, hint):
                    raise WrongType(step, name, _in_words(hint), value) from error
        raise


def _is_of(value: object, hint: object) -> bool:
    if hint is object or hint is Any:
        return True
    if isinstance(hint, type) and not get_args(hint):
        return isinstance(value, _ACCEPTED.get(hint, hint))
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any([_is_of(value, part) for part in parts])
    if origin in (Sequence, list, tuple):
        return isinstance(value, (list, tuple)) and all([_is_of(item, parts[0]) for item in value])
    return True


def _in_words(hint: object) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join([_in_words(part) for part in get_args(hint)])
    if get_origin(hint) in (Sequence, list, tuple):
        (part,) = get_args(hint)[:1]
        return f"a list of {_MANY[part]}" if part in _MANY else "a list"
    return _WORDS.get(hint, getattr(hint, "__name__", str(hint)))


# --- as a trace carries them ----------------------------------------------------------------------------------------


def named(buffer: int | str | Buffer) -> int | str:
    """A buffer as a trace carries it: on another schedule the name means the buffer there."""
    return buffer.name if isinstance(buffer, Buffer) else buffer


def sided(buffer: tuple[str, int] | str | Buffer) -> list[str | int] | int | str:
    """A buffer that may also be given as ("read", 0) or ("write", 0), as a trace carries it."""
    return list(buffer) if isinstance(buffer, (tuple, list)) else named(buffer)


def size_text(factor: object) -> object:
    """A factor as a trace carries it: a size of the function as its text."""
    if isinstance(factor, IntImm):
        return factor.value
    if isinstance(factor, Integral) and not isinstance(factor, int):
        return int(factor)  # of numpy, say
    return repr(factor) if isinstance(factor, Expr) else factor


def map_text(
    step: str, given: Callable[..., object] | str | None, rank: Callable[[], int] | None = None
) -> str | None:
    """A map of indices as a trace carries it; one of any number of indices takes as many as `rank` says."""
    return None if given is None else LayoutMap.of(given, step, rank).text


# --- as a primitive gets them ---------------------------------------------------------------------------------------


def nodes_of(view: View, value: object, takes_marks: bool = False) -> object:
    """Handles as the nodes they stand for; a loop may be the mark of a place where the step knows them."""
    if isinstance(value, LoopRV):
        return MARKS[value.var] if takes_marks and value.var in MARKS else view.loop(value.var)
    if isinstance(value, BlockRV):
        return view.realize(value.key)
    if isinstance(value, ExprRV):
        return int(value)
    if isinstance(value, (list, tuple)):
        return [nodes_of(view, item) for item in value]
    return value


def plain(value: object) -> object:
    """A setting, with sampled numbers as plain ones."""
    if isinstance(value, ExprRV):
        return int(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value
