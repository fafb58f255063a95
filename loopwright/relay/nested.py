"""Nested: what stands for a value of a graph, one for a tensor, and a list for a tuple."""

from __future__ import annotations

from typing import TypeAlias, TypeVar, overload

T = TypeVar("T")
Nested: TypeAlias = T | list["Nested[T]"]


@overload
def flat(value: list[Nested[T]]) -> list[T]: ...
@overload
def flat(value: Nested[T]) -> list[T]: ...
def flat(value: Nested[T]) -> list[T]:
    """What a value is of that may be a tuple, in order."""
    if isinstance(value, (list, tuple)):
        return [one for part in value for one in flat(part)]
    return [value]


def single(value: Nested[T]) -> T:
    """What stands for a tensor."""
    assert not isinstance(value, list)
    return value


def fields(value: Nested[T]) -> list[Nested[T]]:
    """What stands for the fields of a tuple."""
    assert isinstance(value, list)
    return value
