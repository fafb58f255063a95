"""Base: what the methods of a schedule rest on. They are thin: name the kind of step, its handles and its settings.

The engine behind `_do` and `run_instruction` is in `schedule.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import isfunction, unwrap
from typing import Any, ParamSpec, Self, TypeVar

from loopwright.ir import BlockRealize
from loopwright.schedule.errors import WrongCall, WrongType
from loopwright.schedule.handles import BlockRV
from loopwright.schedule.trace.calls import METHODS, Arguments

P = ParamSpec("P")
R = TypeVar("R")


def written(example: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Where a call does not fit the parameters of a method, the error says how it is written."""

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        @wraps(method)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return method(*args, **kwargs)
            except TypeError as error:
                if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                    raise  # it comes from inside the method
                raise WrongCall(str(error), example) from None

        return call

    return decorate


class Base(ABC):
    """Something that steps can be asked of."""

    def __init_subclass__(cls) -> None:
        """Python's messages about a call name its method as people know it: Schedule.split, whichever file holds it."""
        super().__init_subclass__()
        if Base in cls.__bases__:
            for name, method in vars(cls).items():
                if isfunction(method):
                    method.__qualname__ = unwrap(method).__qualname__ = f"Schedule.{name}"
                    METHODS[name] = method

    @abstractmethod
    def run_instruction(
        self, kind: str, inputs: Arguments, attrs: Arguments, decision: object = None
    ) -> list[Any]:
        """Do one step by its kind; the handles it gives."""

    @abstractmethod
    def _do(self, kind: str, inputs: Arguments, **attrs: object) -> Any:
        """A step as a method call: one handle, a list, or nothing."""

    @abstractmethod
    def copy(self) -> Self:
        """One that goes its own way from here."""

    @abstractmethod
    def _realize(self, block: BlockRV | str) -> BlockRealize:
        """The block as it is now; nothing is recorded."""

    @staticmethod
    def _list(step: str, name: str, given: object) -> list[Any]:
        """Several values, given as a list or a tuple."""
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise WrongType(step, name, "a list", given)
        return list(given)

    @staticmethod
    def _block(block: BlockRV | str) -> BlockRV | str:
        """A block given by handle or by name."""
        if not isinstance(block, (BlockRV, str)):
            raise WrongType("schedule", "block", "a block's handle or name", block)
        return block
