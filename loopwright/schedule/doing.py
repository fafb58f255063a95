"""Doing: what the methods of a schedule share. They are thin: name the kind of step, its handles and its settings.

`Schedule` is made of groups of methods, one file each (`cache_methods.py`, `shape_methods.py`); the engine behind `_do`
is in `schedule.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final

from loopwright.ir import Buffer, Expr, IntImm
from loopwright.schedule.errors import WrongType
from loopwright.schedule.handles import BlockRV, LoopRV
from loopwright.schedule.index_map import IndexMap


class Doing(ABC):
    """Something that steps can be asked of."""

    @abstractmethod
    def run_instruction(
        self, kind: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any], decision: Any = None
    ) -> list[Any]:
        """Do one step by its kind; the handles it gives."""

    @abstractmethod
    def _do(self, kind: str, inputs: Mapping[str, Any], **attrs: Any) -> Any:
        """A step as a method call: one handle, a list, or nothing."""

    @abstractmethod
    def copy(self) -> Any:
        """One that goes its own way from here."""

    @staticmethod
    def _block(block: BlockRV | str) -> BlockRV | str:
        """A block given by handle or by name."""
        if not isinstance(block, (BlockRV, str)):
            raise WrongType("schedule", "block", "a block's handle or name", block)
        return block


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
