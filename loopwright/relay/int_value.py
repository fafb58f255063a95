"""The integers of types and attributes: Python's, which scripts may also read as literals of tir.

    shape = relay.TensorType((2, 3)).shape
    shape[0] + 1, shape[0].value, isinstance(shape[0], tir.IntImm)      # 3, 2, True

Scripts for TVM meet IntImm there, and ask for `.value`; graphs compute with sizes all the time, for which Python's
integers are faster and shorter to write. So these are integers in every way (arithmetic gives plain ones), with the
fields of a literal. They are no expressions: `isinstance(size, tir.PrimExpr)` still tells a size that is not known.
"""

from __future__ import annotations

from typing import Any

from loopwright.ir import IntImm
from loopwright.runtime.dtype import DataType

_INT32, _INT64 = DataType("int32"), DataType("int64")


class _LiteralAlone(type):
    """Classes that derive from IntImm, and from none of the classes that IntImm itself derives from."""

    def mro(cls) -> list[type]:
        return [cls, IntImm, object]


class _LooksLikeLiteral(IntImm, metaclass=_LiteralAlone):
    """What `isinstance` takes an IntValue for; there are no objects of it."""


class IntValue(int):
    """An integer with the fields of an IntImm."""

    __slots__ = ()

    # `isinstance` looks at the class itself first (an int), and then at what the object says of it.
    __class__ = _LooksLikeLiteral  # type: ignore[assignment]

    @property
    def value(self) -> int:
        return int(self)

    @property
    def dtype(self) -> DataType:
        """What `tir.const` would choose: int32 where the number fits."""
        return _INT32 if _INT32.lowest <= self <= _INT32.highest else _INT64

    @property
    def span(self) -> None:
        return None

    def same_as(self, other: object) -> bool:
        return self is other

    def __reduce__(self) -> tuple[Any, ...]:
        return IntValue, (int(self),)
