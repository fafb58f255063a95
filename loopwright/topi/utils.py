"""topi.utils: questions about shapes and targets, for those who write schedules and operators of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import TypeVar

import numpy as np

from loopwright import te
from loopwright.ir import Expr, FloatImm, IntImm, const
from loopwright.ir.intrinsics import select
from loopwright.runtime.errors import LoopwrightError
from loopwright.target import Target
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.row_major import product, ravel, unravel
from loopwright.topi.parts.sizes import known
from loopwright.topi.parts.sizes import simplify as _simplified
from loopwright.topi.rule_schedules import traverse_inline
from loopwright.topi.types import Dim, Shape

T = TypeVar("T")


class NotAConstant(LoopwrightError, ValueError):
    """A number was asked for, and the expression has none before the program runs.

    For example:

        from loopwright import te, topi

        topi.utils.get_const_int(te.var("n") + 1)
    """

    code = "LW1111"

    def __init__(self, value: object, wanted: str) -> None:
        super().__init__(
            f"Expect value to be constant {wanted}: {value!r} is none",
            hint="known sizes only: a variable has its value when the program runs",
        )


def get_const_int(expr: object) -> int:
    """The integer that `expr` is."""
    if isinstance(expr, Integral):
        return int(expr)
    number = known(expr) if isinstance(expr, Expr) else None
    if number is None:
        raise NotAConstant(expr, "int")
    return number


def get_const_float(expr: object) -> float:
    """The number that `expr` is."""
    if isinstance(expr, (int, float)):
        return float(expr)
    simple = _simplified(expr) if isinstance(expr, Expr) else None
    if not isinstance(simple, (FloatImm, IntImm)):
        raise NotAConstant(expr, "float")
    return float(simple.value)


def get_const_tuple(in_tuple: Iterable[Dim]) -> tuple[Dim, ...]:
    """Sizes as numbers where they are known; the others as they are."""
    result: list[Dim] = []
    for size in in_tuple:
        number = int(size) if isinstance(size, Integral) else known(size)
        result.append(size if number is None else number)
    return tuple(result)


def equal_const_int(expr: Dim, value: int) -> bool:
    """Whether `expr` is known to be `value`."""
    return (int(expr) if isinstance(expr, Integral) else known(expr)) == value


def prod(x: Shape) -> Expr:
    """The product of sizes; 1 of none."""
    return _simplified(product(x)) if x else const(1, "int32")


def simplify(expr: T) -> T | Expr:
    """`expr` with its arithmetic done; numbers of Python come back as they are."""
    return _simplified(expr) if isinstance(expr, Expr) else expr


def ravel_index(indices: Shape, shape: Shape) -> Expr:
    """The place of the element at `indices` when a tensor of `shape` is read row after row."""
    return ravel(indices, shape)


def unravel_index(idx: Dim, shape: Shape) -> list[Expr]:
    """The indices of a place."""
    return unravel(idx, shape)


def const_matrix(matrix: np.ndarray, name: str = "const_matrix") -> te.Tensor:
    """A matrix of numbers as a tensor whose every element is computed from its place."""
    rows, columns = matrix.shape
    dtype = str(matrix.dtype)

    def cell(i: Expr, j: Expr) -> Expr:
        value = const(matrix[0, 0].item(), dtype)
        for row in range(rows):
            for column in range(columns):
                at = (i % rows).equal(row) & (j % columns).equal(column)
                value = select(at, const(matrix[row, column].item(), dtype), value)
        return value

    result: te.Tensor = te.compute(matrix.shape, cell, name=name, attrs={"schedule_rule": "None"})
    return result


def is_target(names: str | Sequence[str]) -> bool:
    """Whether the current target is one of these kinds, or has one of them among its keys."""
    current = Target.current(allow_none=True)
    if current is None:
        return False
    wanted = [names] if isinstance(names, str) else list(names)
    return any([name == str(current.kind) or name in current.keys for name in wanted])


def is_dynamic_shape(shape: Shape) -> bool:
    """Whether some size is known only when the program runs."""
    return any([known(size) is None for size in shape])


def is_empty_shape(shape: Shape) -> bool:
    """Whether some size is 0."""
    return any([known(size) == 0 for size in shape])


def get_max_power2_factor(n: int, max_value: int | None = None) -> int:
    """The greatest power of 2 that divides `n` and is no more than `max_value`."""
    factor = 1
    while n > 0 and n % 2 == 0 and (max_value is None or factor * 2 <= max_value):
        factor, n = factor * 2, n // 2
    return factor


def get_shape(src_shape: Shape, src_layout: str, dst_layout: str) -> tuple[Dim, ...]:
    """The shape that a tensor of `src_shape` has in a layout of the same letters in another order."""
    if src_layout == dst_layout:
        return get_const_tuple(src_shape)
    source, wanted = [re.findall(r"[0-9]*[a-zA-Z]", layout) for layout in (src_layout, dst_layout)]  # 16c is one axis
    if sorted(source) != sorted(wanted) or len(src_shape) != len(source):
        problem = f"layout {src_layout} of {len(src_shape)} sizes is no reordering of {dst_layout}"
        raise InvalidShapeError("get_shape", problem, "use layouts of the same letters")
    return get_const_tuple([src_shape[source.index(axis)] for axis in wanted])


def nchw_pack_layout(layout_info: str) -> bool:
    """Whether a layout is NCHW with blocks of batch and channels: NCHW2n4c."""
    return layout_info[:4] == "NCHW" and "c" in layout_info and "n" in layout_info


def nchw_xc_layout(layout_info: str) -> bool:
    """Whether a layout is NCHW with blocks of channels: NCHW4c."""
    return layout_info[:4] == "NCHW" and "c" in layout_info and layout_info[4:-1].isnumeric()


def tensor_as_list(outs: te.Tensor | Iterable[te.Tensor]) -> list[te.Tensor]:
    """One tensor or several, as a list."""
    return [outs] if isinstance(outs, te.Tensor) else list(outs)


def swap(arr: Sequence[T], axis: int) -> list[T]:
    """`arr` with the entry `axis` and the last one in each other's place."""
    swapped = list(arr)
    swapped[axis], swapped[-1] = swapped[-1], swapped[axis]
    return swapped


__all__ = [
    "NotAConstant",
    "const_matrix",
    "equal_const_int",
    "get_const_float",
    "get_const_int",
    "get_const_tuple",
    "get_max_power2_factor",
    "get_shape",
    "is_dynamic_shape",
    "is_empty_shape",
    "is_target",
    "nchw_pack_layout",
    "nchw_xc_layout",
    "prod",
    "ravel_index",
    "simplify",
    "swap",
    "tensor_as_list",
    "traverse_inline",
    "unravel_index",
]
