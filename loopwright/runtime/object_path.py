"""ObjectPath: the way from an object to a part of it, one field, element or entry at a time.

    ObjectPath.root().attr("body").attr("seq").array_index(1)        written <root>.body.seq[1]

Structural comparison says with two of them where programs differ; the printer marks what one leads to.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any


class PathStep(Enum):
    """What one step does."""

    ATTR = "the field of that name"
    ARRAY_INDEX = "the element at that position"
    MAP_VALUE = "the entry of that key"
    MISSING_ARRAY_ELEMENT = "the element that the other object has at that position"
    MISSING_MAP_ENTRY = "an entry that the other object has"
    UNKNOWN_ATTR = "a field without a name"


class ObjectPath:
    """A path; equal to another one with the same steps."""

    __slots__ = ("_key", "_kind", "parent")

    def __init__(self, parent: ObjectPath | None = None, kind: PathStep | None = None, key: object = None) -> None:
        self.parent = parent
        self._kind = kind
        self._key = key

    @staticmethod
    def root(name: str | None = None) -> ObjectPath:
        """The object itself."""
        return ObjectPath(None, None, name)

    def attr(self, attr_key: str | None) -> ObjectPath:
        kind = PathStep.UNKNOWN_ATTR if attr_key is None else PathStep.ATTR
        return ObjectPath(self, kind, attr_key)

    def array_index(self, index: int) -> ObjectPath:
        return ObjectPath(self, PathStep.ARRAY_INDEX, int(index))

    def missing_array_element(self, index: int) -> ObjectPath:
        return ObjectPath(self, PathStep.MISSING_ARRAY_ELEMENT, int(index))

    def map_value(self, key: object) -> ObjectPath:
        return ObjectPath(self, PathStep.MAP_VALUE, key)

    def missing_map_entry(self) -> ObjectPath:
        return ObjectPath(self, PathStep.MISSING_MAP_ENTRY)

    def steps(self) -> Iterator[tuple[PathStep, Any]]:
        """Kind and key of every step, outermost first."""
        if self.parent is not None and self._kind is not None:
            yield from self.parent.steps()
            yield self._kind, self._key

    def __len__(self) -> int:
        return 1 if self.parent is None else 1 + len(self.parent)

    @property
    def length(self) -> int:
        """How many objects lie on the way, both ends included."""
        return len(self)

    def get_prefix(self, length: int) -> ObjectPath:
        """The first part of the path, `length` objects long."""
        if not 1 <= length <= len(self):
            raise IndexError(f"a path of {len(self)} objects has no prefix of {length}")
        result: ObjectPath = self
        while len(result) > length:
            assert result.parent is not None
            result = result.parent
        return result

    def is_prefix_of(self, other: ObjectPath) -> bool:
        """Whether `other` begins with this path."""
        return len(self) <= len(other) and self == other.get_prefix(len(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectPath) or self._kind is not other._kind:
            return False
        same_key = self._key is other._key or (
            isinstance(self._key, (str, int)) and type(self._key) is type(other._key) and self._key == other._key
        )
        return same_key and self.parent == other.parent

    def __hash__(self) -> int:
        return hash((self.parent, self._kind, self._key))

    def __str__(self) -> str:
        text = "<root>" if self.parent is None else str(self.parent)
        if self._kind is PathStep.ATTR:
            return f"{text}.{self._key}"
        if self._kind is PathStep.UNKNOWN_ATTR:
            return f"{text}.<unknown attribute>"
        if self._kind is PathStep.ARRAY_INDEX:
            return f"{text}[{self._key}]"
        if self._kind is PathStep.MAP_VALUE:
            return f'{text}["{self._key}"]' if isinstance(self._key, str) else f"{text}[{self._key}]"
        if self._kind is PathStep.MISSING_ARRAY_ELEMENT:
            return f"{text}[<missing element #{self._key}>]"
        return text if self._kind is None else f"{text}[<missing entry>]"

    __repr__ = __str__
