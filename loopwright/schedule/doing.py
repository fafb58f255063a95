"""Doing: what the methods of a schedule share. They are thin: name the kind of step, its handles and its settings.

`Schedule` is made of groups of methods, one file each (`cache_methods.py`, `shape_methods.py`); the engine behind `_do`
is in `schedule.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from loopwright.ir import Buffer, Expr, IntImm
from loopwright.schedule.errors import WrongType
from loopwright.schedule.handles import BlockRV
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
