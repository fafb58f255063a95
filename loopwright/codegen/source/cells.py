"""cells: the elements of a constant array as they stand in a source."""

from __future__ import annotations

import numpy as np

from loopwright.codegen.small_floats import is_small_float
from loopwright.codegen.source.types import literal
from loopwright.runtime.dtype import DataType


def cell(dtype: DataType, value: object) -> str:
    """One element."""
    number = float(value) if dtype.is_float else int(value)  # type: ignore[arg-type, call-overload]
    if is_small_float(dtype):
        return f"0x{int(np.asarray(value).view({8: 'u1', 16: 'u2'}[dtype.bits])):x}"
    return "1" if dtype.is_bool and number else "0" if dtype.is_bool else str(literal(dtype, number))


def rows(cells: list[str], width: int = 108) -> str:
    """The elements in lines of at most that width."""
    lines, line = [], "   "
    for text in cells:
        if len(line) + len(text) > width:
            lines.append(line)
            line = "   "
        line += f" {text},"
    return "\n".join([*lines, line])
