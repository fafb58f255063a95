"""derived_object: marks a class of the user's that takes the place of a part of the search.

    @ms.derived_object
    class Mine(ms.cost_model.PyCostModel):
        def predict(self, context, candidates): ...

The parts here are ordinary Python classes, so that nothing needs to be wrapped: the class stays what it is, and gets
what scripts expect of it.
"""

from __future__ import annotations

from typing import Any, TypeVar

C = TypeVar("C", bound=type)


def derived_object(cls: C) -> C:
    """The class, of which `obj._outer()` is the object itself, and whose objects say their kind and address."""
    if not hasattr(cls, "_outer"):
        cls._outer = _outer  # type: ignore[attr-defined]
    return cls


class Part:
    """What all parts of a search share: they know their context, can be cloned, and have a short text."""

    _context: Any = None

    def initialize_with_tune_context(self, context: Any) -> None:
        """Get ready to work for a task."""
        self._initialize_with_tune_context(context)

    def _initialize_with_tune_context(self, context: Any) -> None:
        self._context = context

    def _outer(self) -> Any:
        return self

    def __str__(self) -> str:
        return _described(self)

    def __repr__(self) -> str:
        return str(self)


def _outer(self: Any) -> Any:
    return self


def _described(self: object) -> str:
    return f"meta_schedule.{type(self).__name__}(0x{id(self):x})"
