"""pad_amounts: the ways in which operators say how many cells are added around a tensor.

get_pad_tuple(1, (3, 3))                →  (1, 1, 1, 1)     top, left, bottom, right
get_pad_tuple((1, 2, 3, 4), (3, 3))     →  (1, 2, 3, 4)
get_pad_tuple("SAME", (4, 3))           →  (2, 1, 1, 1)     the larger half first; strides do not count
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from loopwright.ir import Expr, as_expr
from loopwright.topi.errors import BadPadding
from loopwright.topi.parts.sizes import known, simplify
from loopwright.topi.types import Dim, Dims, IntPadding, Padding, Shape


@overload
def get_pad_tuple(padding: IntPadding, kernel: Sequence[int]) -> tuple[int, int, int, int]: ...
@overload
def get_pad_tuple(padding: Padding, kernel: Shape) -> tuple[Dim, Dim, Dim, Dim]: ...
def get_pad_tuple(padding: Padding, kernel: Shape) -> tuple[Dim, Dim, Dim, Dim]:
    """The padding of two dimensions: top, left, bottom, right. `kernel` is its size with the dilation counted in."""
    top, left, bottom, right = _flat(padding, kernel, 2)
    return top, left, bottom, right


def get_pad_tuple1d(padding: Padding, kernel: Shape) -> tuple[Dim, Dim]:
    """The padding of one dimension: left, right."""
    left, right = _flat(padding, kernel, 1)
    return left, right


def get_pad_tuple3d(padding: Padding, kernel: Shape) -> tuple[Dim, Dim, Dim, Dim, Dim, Dim]:
    """The padding of three dimensions: front, top, left, back, bottom, right."""
    front, top, left, back, bottom, right = _flat(padding, kernel, 3)
    return front, top, left, back, bottom, right


@overload
def get_pad_tuple_generic(padding: IntPadding, kernel: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]: ...
@overload
def get_pad_tuple_generic(padding: Padding, kernel: Shape) -> tuple[Sequence[Dim], Sequence[Dim]]: ...
def get_pad_tuple_generic(padding: Padding, kernel: Shape) -> tuple[Sequence[Dim], Sequence[Dim]]:
    """The padding of as many dimensions as the kernel has: the beginnings, and the ends."""
    flat = _flat(padding, kernel, len(kernel))
    return flat[: len(kernel)], flat[len(kernel) :]


def _flat(padding: Padding, kernel: Shape, count: int) -> list[Dim]:
    if isinstance(kernel, Expr) or not isinstance(kernel, Sequence):
        kernel = (kernel,)
    forms = f'give one number, {count} or {2 * count} of them, "VALID" or "SAME"'
    if isinstance(padding, str):
        if padding == "VALID":
            return [0] * (2 * count)
        if padding != "SAME":
            raise BadPadding("padding", f"{padding!r} is not known", forms)
        totals = [simplify(as_expr(size) - 1) for size in kernel]
        first = [_plain(simplify((total + 1) // 2)) for total in totals]
        return [*first, *[_plain(simplify(total - half)) for total, half in zip(totals, first, strict=True)]]
    amounts: Dims = padding
    given = list(amounts) if isinstance(amounts, Sequence) else [amounts]
    for amount in given:
        check_amount("padding", amount, forms)
    if len(given) == 1:
        return given * (2 * count)
    if len(given) == count:
        return given * 2
    if len(given) == 2 * count:
        return given
    raise BadPadding("padding", f"{padding!r} has {len(given)} entries for a window of {count} dimensions", forms)


def _plain(value: Expr) -> Dim:
    number = known(value)
    return value if number is None else number


def check_amount(op: str, amount: Dim, hint: str) -> None:
    """Refuse what is no number of cells."""
    if isinstance(amount, (bool, float, str)) or amount is None:
        raise BadPadding(op, f"{type(amount).__name__} {amount!r} is not a number of cells", hint)
    number = known(amount)
    if number is not None and number < 0:
        raise BadPadding(op, f"{number} is less than 0", "padding adds cells; take a slice to remove some")
