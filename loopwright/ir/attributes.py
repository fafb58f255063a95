"""Attributes and annotations: what functions, blocks, loops and allocations carry beside the program.

A number in them is a literal of the program (`IntImm`), in lists and dictionaries too: one way to read it, whether a
script, a schedule step or a pass wrote it. It compares equal to the Python number, and `int()` and `bool()` take it.
Floats stay Python's, which have more digits than a float32 literal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from loopwright.ir.expr.literals import FloatImm, IntImm, StringImm, const
from loopwright.ir.node import convert_with
from loopwright.runtime.dtype import INT64

_LOWEST, _HIGHEST = INT64.lowest, INT64.highest  # wider numbers have no literal
_MOST_LEVELS: Final = 200  # of lists in lists; nothing saves deeper ones
Attributes: TypeAlias = Mapping[str, object]  # the type of fields that keep them


class FieldInfo(NamedTuple):
    """What is known of one attribute."""

    name: str
    type_info: str
    description: str


class DictAttrs(dict[str, Any]):
    """Attributes by name, as nodes keep them. Equal to any mapping with the same content."""

    __slots__ = ()

    def __getattr__(self, key: str) -> Any:
        """`attrs.global_symbol`: what attributes of operators look like."""
        try:
            return self[key]
        except KeyError:
            raise AttributeError(f"there is no attribute {key!r}; there are {', '.join(self) or 'none'}") from None

    def list_field_info(self) -> list[FieldInfo]:
        return [FieldInfo(key, type(value).__name__, "") for key, value in self.items()]

    def get_str(self, key: str) -> str:
        return str(self[key])

    def get_int(self, key: str) -> int:
        return int(self[key])

    def get_int_tuple(self, key: str) -> tuple[int, ...]:
        return tuple([int(item) for item in self[key]])


def as_attributes(given: Attributes) -> DictAttrs:
    """`given` with its numbers as literals."""
    return DictAttrs({key: attribute_value(value) for key, value in given.items()})


def attribute_value(value: object, levels: int = 0) -> object:
    """One value as attributes keep it."""
    cls = type(value)
    if cls is str:
        return value
    if isinstance(value, (int, np.integer, np.bool_)):
        is_plain = cls in (int, bool) or isinstance(value, np.generic)
        return const(value) if is_plain and _LOWEST <= value <= _HIGHEST else value
    if levels > _MOST_LEVELS:
        return value
    if isinstance(value, (list, tuple)) and cls in (list, tuple):
        return cls([attribute_value(item, levels + 1) for item in value])
    if isinstance(value, dict) and cls is dict:
        return {key: attribute_value(item, levels + 1) for key, item in value.items()}
    return value


def python_value(value: object) -> Any:
    """The value of an attribute with Python's numbers in place of literals."""
    if isinstance(value, IntImm):
        return bool(value.value) if value.dtype.is_bool else value.value
    if isinstance(value, (FloatImm, StringImm)):
        return value.value
    if isinstance(value, (list, tuple)):
        return type(value)([python_value(item) for item in value])
    return value


# Constructors of nodes take any mapping for a field that is declared as `Attributes`.
convert_with("Attributes", "{x} and type({x}) is not DictAttrs", as_attributes, DictAttrs)
