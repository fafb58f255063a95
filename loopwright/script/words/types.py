"""Words for types and literals: `T.int32`, `T.float32x4`, `T.handle`, `T.var`."""

from __future__ import annotations

import warnings
from typing import Any, Final

from loopwright.ir import Expr, PointerType, PrimType, SizeVar, TupleType, Type, Var, as_expr, cast, const
from loopwright.runtime.dtype import DataType

__all__ = ["DTYPE_NAMES", "DtypeFunction", "Ptr", "Tuple", "buffer_var", "dtype_function", "handle", "ptr", "var"]


class DtypeFunction:
    """`T.int32`: as an annotation a type; called with a value, a literal or a cast; without one, a new variable."""

    def __init__(self, dtype: str) -> None:
        self.dtype = DataType(dtype)
        self.__name__ = dtype

    def __call__(self, expr: object = None, is_size_var: bool = False) -> Expr:
        if expr is None:
            return SizeVar("", self.dtype) if is_size_var else Var("", self.dtype)
        if isinstance(expr, str):
            return const(float(expr), self.dtype)
        if isinstance(expr, (int, float)):
            return const(expr, self.dtype)
        return cast(as_expr(expr), self.dtype)

    def __repr__(self) -> str:
        return f"T.{self.__name__}"


_FUNCTIONS: Final[dict[str, DtypeFunction]] = {}
# A float of 8 bits without further words is the one with 4 bits of exponent.
_OTHER_NAMES: Final = {"boolean": "bool", "float8": "e4m3_float8"}
_KINDS: Final = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
    "float8 float16 float32 float64 bfloat16 e4m3_float8 e5m2_float8"
).split()
DTYPE_NAMES: Final = [f"{kind}{lanes}" for kind in _KINDS for lanes in ("", "x2", "x4", "x8", "x16", "x32", "x64")]


def dtype_function(name: str) -> DtypeFunction | None:
    """The word for a data type of any lane count: `float32x4`, `int8x3`; None when there is no such type."""
    result = _FUNCTIONS.get(name)
    if result is None:
        if not name[:1].isalpha() or not name[-1:].isalnum():
            return None
        kind, times, lanes = name.partition("x")
        try:
            result = _FUNCTIONS[name] = DtypeFunction(f"{_OTHER_NAMES.get(kind, kind)}{times}{lanes}")
        except ValueError:
            return None
    return result


def handle(dtype: str | Type | None = None, storage_scope: str = "global", *, is_size_var: bool = False) -> Var:
    """A handle; with an element type, a pointer to elements in memory of that scope."""
    kind = SizeVar if is_size_var else Var
    if dtype is None and storage_scope == "global":
        return kind("", "handle")
    element = dtype if isinstance(dtype, Type) else PrimType(DataType(dtype or "void"))
    return kind("", PointerType(element, storage_scope))


def ptr(dtype: Any, storage_scope: str = "global") -> Var:
    """An older spelling of `T.handle(dtype, scope)`."""
    return handle(dtype.dtype if isinstance(dtype, DtypeFunction) else dtype, storage_scope)


def Ptr(dtype: object, storage_scope: str = "global") -> Var:
    """An older spelling of `T.handle(dtype, scope)`, no longer recommended."""
    warnings.warn("T.Ptr is deprecated: write T.handle(dtype, scope)", DeprecationWarning, stacklevel=2)
    return ptr(dtype, storage_scope)


buffer_var = ptr


def Tuple(*fields: Any) -> Type:
    """The type of several values; of none, for a function that returns nothing."""
    return TupleType(tuple([PrimType(one.dtype) if hasattr(one, "dtype") else one for one in fields]))


def var(dtype: str, name: str = "") -> Var:
    """A new variable; without a name it takes that of the assignment."""
    return Var(name, dtype)
