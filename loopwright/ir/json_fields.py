"""json_fields: whether the fields of a node are of the types that its class declares.

Nodes that come from JSON may hold anything, and whatever walks over them first would trip over a text where an
expression belongs. The declared types (`min: Expr`, `indices: tuple[Expr, ...]`) become one check a field, once for
each class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

# What may stand where a type is declared, where that is not the type alone; later layers add theirs.
ACCEPTED: Final[dict[type, tuple[type, ...]]] = {float: (int, float)}
Check = Callable[[Any], bool]


class FieldCheck(NamedTuple):
    """A field, whether a value may stand in it, and what may in words."""

    name: str
    accepts: Check
    wanted: str


def wrong_field(cls: type, values: Mapping[str, object], declared: object = None) -> str | None:
    """What is wrong with one of the values, in words; None where each may stand in its field.

    The types are declared by the class, or by another object that has annotations: its constructor.
    """
    for field in _checks(declared or cls):
        if field.name in values and not field.accepts(values[field.name]):
            result = type(values[field.name]).__name__
            return f"{field.name} of {cls.__name__} is {result}, and should be {field.wanted}"
    return None


@cache
def _checks(declared: object) -> tuple[FieldCheck, ...]:
    hints = get_type_hints(declared)
    return tuple([FieldCheck(name, check, _words(hint)) for name, hint in hints.items() if (check := _check(hint))])


def _check(hint: object) -> Check | None:
    """A function that says whether a value is of the type; None where anything is."""
    parts = get_args(hint)
    if isinstance(hint, type) and not parts:
        accepted = ACCEPTED.get(hint, (hint,))
        return None if hint in (object, Any) else lambda value: isinstance(value, accepted)
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        options = [_check(part) for part in parts]
        if None in options:
            return None
        return lambda value: any([option(value) for option in options if option is not None])
    if origin in (tuple, list, Sequence):
        each = _check(parts[0])
        return lambda value: isinstance(value, (tuple, list)) and (each is None or all([each(one) for one in value]))
    if origin is Mapping:
        key, item = _check(parts[0]), _check(parts[1])
        return lambda value: (
            isinstance(value, Mapping)
            and all([(key is None or key(one)) and (item is None or item(other)) for one, other in value.items()])
        )
    return None


def _words(hint: object) -> str:
    return str(getattr(hint, "__name__", hint)) if not get_args(hint) else str(hint).replace("loopwright.", "")
