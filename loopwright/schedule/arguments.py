"""Arguments: what a user gives a step, checked, as a trace carries it, and as the primitive gets it.

    sch.split(i, [None, n // 4 + 1])        a trace holds the handle of i and [None, "n // 4 + 1"];
                                            `split` gets the loop as a `For`

What a user may give in several ways has one way in traces, so that a trace means the same on another program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from loopwright.ir import Buffer, Expr, IntImm
from loopwright.schedule.errors import WrongType
from loopwright.schedule.handles import MARKS, BlockRV, ExprRV, LoopRV
from loopwright.schedule.index_map import IndexMap
from loopwright.schedule.view import View

_LOOPS: Final = ("loop", "loops", "ordered_loops")
_BLOCKS: Final = ("block", "scope_block")
_EITHER: Final = ("block_or_loop",)


def check_handles(step: str, inputs: Mapping[str, Any]) -> None:
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


# --- as a trace carries them ----------------------------------------------------------------------------------------


def named(buffer: int | str | Buffer) -> int | str:
    """A buffer as a trace carries it: on another schedule the name means the buffer there."""
    return buffer.name if isinstance(buffer, Buffer) else buffer


def sided(buffer: tuple[str, int] | str | Buffer) -> list[Any] | int | str:
    """A buffer that may also be given as ("read", 0) or ("write", 0), as a trace carries it."""
    return list(buffer) if isinstance(buffer, (tuple, list)) else named(buffer)


def size_text(factor: Any) -> Any:
    """A factor as a trace carries it: a size of the function as its text."""
    if isinstance(factor, IntImm):
        return factor.value
    return repr(factor) if isinstance(factor, Expr) else factor


def map_text(step: str, given: Callable[..., Any] | str | None) -> str | None:
    """A map of indices as a trace carries it."""
    return None if given is None else IndexMap.of(given, step).text


# --- as a primitive gets them ---------------------------------------------------------------------------------------


def nodes_of(view: View, value: Any, takes_marks: bool = False) -> Any:
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


def plain(value: Any) -> Any:
    """A setting, with sampled numbers as plain ones."""
    if isinstance(value, ExprRV):
        return int(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value
