"""Numbers and attributes as text: `3f`, `42i64`, `[1, 1]`, `"NCHW"`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Final

import numpy as np

from loopwright.ir import Expr as PrimExpr
from loopwright.ir import FloatImm, IntImm, StringImm
from loopwright.relay.expr import Expr
from loopwright.relay.text.sizes import SizeNames
from loopwright.runtime.dtype import DataType

# Element type of a scalar → what is written behind the number.
SUFFIXES: Final = {
    "int32": "",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    "float32": "f",
    "float16": "f16",
    "float64": "f64",
    "bfloat16": "bf16",
}
DTYPES: Final = {"i32": "int32", "f32": "float32", **{suffix: dtype for dtype, suffix in SUFFIXES.items()}}

_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_KEY: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def scalar_text(data: np.ndarray) -> str | None:
    """A tensor of no dimensions as a number that reads back to the same bits; None where there is none."""
    if data.shape != ():
        return None
    dtype = str(DataType(data.dtype.name))
    if dtype == "bool":
        return str(bool(data))
    suffix = SUFFIXES.get(dtype)
    if suffix is None:
        return None
    if "float" not in dtype:
        return f"{int(data)}{suffix}"
    number = float(data)
    if math.isnan(number):
        usual = np.asarray(math.nan, data.dtype)
        return f"nan{suffix}" if usual.tobytes() == data.tobytes() else None
    text = repr(number) if dtype in ("bfloat16", "float64") else str(data[()])
    return text.removesuffix(".0") + suffix


def name_text(name: str) -> str:
    """A name after `%` or `@`; in quotes where it would not read as one."""
    return name if _NAME.fullmatch(name, 0) and name.isascii() else json.dumps(name)


def key_text(name: str) -> str:
    """The name of an attribute."""
    return name if _KEY.fullmatch(name) and name.isascii() else json.dumps(name)


class NoText(Exception):
    """A value that text cannot say; it stays inside this package."""


def value_text(value: object, sizes: SizeNames) -> str:
    """An attribute as the parser reads it back: to the same type and value."""
    if value is None or isinstance(value, (bool, np.bool_)):
        return str(value)
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return f"{float(value)!r}f"
    if isinstance(value, str):
        return json.dumps(str(value))
    if isinstance(value, (list, tuple)):
        items = [sizes.dim(item) if _is_size(item) else value_text(item, sizes) for item in value]
        return f"[{', '.join(items)}]"
    if isinstance(value, Mapping):
        inner = ", ".join([f"{json.dumps(str(key))}: {value_text(item, sizes)}" for key, item in value.items()])
        return f"{{{inner}}}"
    if isinstance(value, StringImm):
        return json.dumps(value.value)
    if isinstance(value, (IntImm, FloatImm)):
        return value_text(value.value, sizes)
    if isinstance(value, PrimExpr):
        return f"size[{sizes.dim(value)}]"
    raise NoText


def _is_size(value: Expr) -> bool:
    return isinstance(value, PrimExpr) and not isinstance(value, (StringImm, IntImm, FloatImm))
