"""The values of a program that is evaluated."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

# A number, a vector (a list of numbers), a pointer, a string: which one follows from the type of the expression, which
# Python's types cannot say. The interpreter is compiled to closures over such values, and checks them where they enter.
Value: TypeAlias = Any
Body = TypeVar("Body")  # what a compiler makes of a body: it runs for one thread, or for a group of them
