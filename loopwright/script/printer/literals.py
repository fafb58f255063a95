"""Literals as text: strings, numbers, types. The shortest text that reads back as the same value."""

from __future__ import annotations

import functools
import math

from loopwright.ir import Node, PointerType, PrimType, TupleType, Type
from loopwright.ir.expr import round_to
from loopwright.runtime.dtype import FLOAT64, HANDLE, DataType


def quote(text: str) -> str:
    """A Python string literal in double quotes."""
    literal = repr(str(text))
    if literal[0] == '"':
        return literal
    return '"' + literal[1:-1].replace("\\'", "'").replace('"', '\\"') + '"'


@functools.lru_cache(maxsize=4096)
def _shortest(value: float, sign: float, dtype: DataType) -> str:
    # `sign` is there for the cache: 0.0 and -0.0 are one key without it.
    if dtype is FLOAT64:
        return repr(value)
    for digits in range(1, 18):
        text = f"{value:.{digits}g}"
        if round_to(dtype, float(text)) == value:
            return repr(float(text))
    return repr(value)


def number_text(value: float, dtype: DataType) -> str | None:
    """The shortest decimal that rounds to `value` in `dtype`; None for infinities and NaN."""
    return _shortest(value, math.copysign(1.0, value), dtype) if math.isfinite(value) else None


def float_text(value: float, dtype: DataType, prefix: str, bare: bool) -> str:
    """A floating-point literal, e.g. `T.float32(0.5)`."""
    if dtype.custom:
        return f'{prefix}.FloatImm("{dtype}", {value!r})'
    text = number_text(value, dtype)
    if text is None:
        return f'{prefix}.{dtype}("{value!r}")'
    if bare:
        return text
    # The sign of zero would not survive as an integer.
    short = text.removesuffix(".0") if text != "-0.0" else text
    return f"{prefix}.{dtype}({short})"


def _has_own_text(annotation: Type) -> bool:
    """Whether it is a type of a layer above, or a tuple with one: scripts have no words for those."""
    if isinstance(annotation, TupleType):
        return any(_has_own_text(field) for field in annotation.fields)
    return type(annotation).__repr__ is not Node.__repr__


def type_text(annotation: Type, prefix: str, is_size_var: bool = False) -> str:
    """A type as it is written in an annotation, e.g. `T.int32` or `T.handle("float32", "shared")`."""
    size = "is_size_var=True" if is_size_var else ""
    if isinstance(annotation, PrimType):
        return f"{prefix}.{annotation.dtype}" + (f"({size})" if size else "")
    if isinstance(annotation, PointerType):
        element = annotation.element_type
        inner = quote(element.dtype) if isinstance(element, PrimType) else type_text(element, prefix)
        scope = annotation.storage_scope
        parts = [inner, *([quote(scope)] if scope != "global" else []), *([size] if size else [])]
        return f"{prefix}.{HANDLE}({', '.join(parts)})"
    if _has_own_text(annotation) and not isinstance(annotation, TupleType):
        return repr(annotation)
    if isinstance(annotation, TupleType):
        fields = [type_text(field, prefix) for field in annotation.fields]
        if _has_own_text(annotation):
            return f"({', '.join(fields)}{',' * (len(fields) == 1)})"
        return f"{prefix}.Tuple({', '.join(fields)})" if fields else "None"
    raise TypeError(f"no text for the type {type(annotation).__name__}")


def var_creation(annotation: Type, prefix: str, is_size_var: bool) -> str:
    """The call that makes a variable of this type, e.g. `T.int32()`."""
    text = type_text(annotation, prefix, is_size_var)
    return text if text.endswith(")") else f"{text}()"
