"""Sizes: the numbers of a window (kernel, stride, dilation) as they may be given, and how many places it has."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.arith import simplified_size
from loopwright.ir import Expr, IntImm, IterVar, as_expr
from loopwright.te import Tensor
from loopwright.te.assumed_sizes import assume, assume_equal
from loopwright.te.tensor import dim_text, shape_text
from loopwright.topi.errors import BadWindow, InvalidShapeError
from loopwright.topi.types import Dim


def simplify(value: Dim) -> Expr:
    """`value` with its arithmetic done; a number that int32 does not hold is int64."""
    return simplified_size(value)


def known(value: Dim) -> int | None:
    """The number that `value` is, or None when it is known only when the program runs."""
    simple = simplify(value)
    return int(simple.value) if isinstance(simple, IntImm) else None


def is_zero(value: Dim) -> bool:
    """Whether `value` is known to be 0."""
    return known(value) == 0


def differ(one: Dim, other: Dim) -> bool:
    """Whether two sizes are known, and not the same."""
    difference = known(as_expr(one) - as_expr(other))
    return difference is not None and difference != 0


def one_size(one: Dim, other: Dim) -> bool:
    """Whether two sizes can be one: False where they are known to differ; what is not known yet is assumed."""
    if differ(one, other):
        return False
    assume_equal(one, other)
    return True


def multiple_of(size: Dim, by: int) -> bool:
    """Whether a size can be a multiple of `by`: False where it is known not to be; what is not known yet is assumed."""
    number = known(size)
    if number is not None:
        return number % by == 0
    assume((as_expr(size) % by).equal(0), [size], f"it a multiple of {by}")
    return True


def at_least(size: Dim, least: int) -> bool:
    """Whether a size can be `least` or more: False where it is known to be less; else assumed."""
    number = known(size)
    if number is not None:
        return number >= least
    assume(as_expr(size) >= least, [size], f"it at least {least}")
    return True


def no_larger(size: Dim, limit: Dim) -> bool:
    """Whether a size can be no larger than another: False where it is known to be larger; else assumed."""
    room = known(as_expr(limit) - as_expr(size))
    if room is not None:
        return room >= 0
    assume(as_expr(size) <= limit, [size, limit], "the first to be no larger than the second")
    return True


def each(op: str, what: str, given: object, count: int, least: int = 1) -> list[int]:
    """One number a dimension: `given` is one for all of them, or a sequence of `count`."""
    values = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given] * count
    numbers = [_number(value) for value in values]
    if len(values) != count:
        raise BadWindow(op, f"{what} {given!r} has {len(values)} entries", f"give one number, or {count} of them")
    if any(number is None for number in numbers):
        raise BadWindow(op, f"{what} {given!r} is not made of integers", f"give one integer, or {count} of them")
    result = [number for number in numbers if number is not None]
    if any(number < least for number in result):
        raise BadWindow(op, f"{what} {_told(result)} is less than {least}", f"{what} is at least {least}")
    return result


def _number(value: object) -> int | None:
    if isinstance(value, IntImm):
        return int(value.value)
    return None if isinstance(value, bool) or not hasattr(value, "__index__") else int(value)


def _told(values: Sequence[int]) -> str:
    return str(values[0]) if len(values) == 1 else str(tuple(values))


def places(op: str, size: Expr, kernel: Dim, stride: int, dilation: int, pads: Dim) -> Expr:
    """How many places a window has along a dimension of `size` with `pads` more cells around it."""
    free = simplify(size + pads - (kernel - 1) * dilation - 1)
    number = known(free)
    if number is None:
        assume(free >= 0, [size], f"it at least {simplify((kernel - 1) * dilation + 1 - pads)}, for its window to fit")
    if number is not None and number < 0:
        window = known((kernel - 1) * dilation + 1)
        raise BadWindow(
            op,
            f"a window of {window} does not fit into {known(size + pads)}, padding included",
            "pad more, or take a smaller kernel or dilation",
        )
    return simplify(free // stride + 1)


def check_rank(op: str, what: str, tensor: Tensor, layout: str, rank: int) -> None:
    """Refuse a tensor that has not one dimension a letter of its layout."""
    if not isinstance(tensor, Tensor):
        raise InvalidShapeError(op, f"the {what} is {type(tensor).__name__} {tensor!r}, not a tensor", None)
    if tensor.ndim != rank:
        raise InvalidShapeError(
            op,
            f"{what} {tensor.name} has shape {shape_text(tensor.shape)}, of {tensor.ndim} dimensions, "
            f"and layout {layout} has {rank}",
            f"give a tensor of {rank} dimensions",
            tensor=tensor.name,
        )


def check_same(op: str, what: str, one: tuple[str, Dim], other: tuple[str, Dim], hint: str | None = None) -> None:
    """Refuse two sizes that must be one and are known to differ; what is not known yet is assumed."""
    if not one_size(one[1], other[1]):
        sizes = [dim_text(simplify(size)) for _, size in (one, other)]
        raise InvalidShapeError(op, f"{what}: {sizes[0]} in {one[0]}, {sizes[1]} in {other[0]}", hint)


def tap_index(index: Expr, stride: int, tap: IterVar, dilation: int) -> Expr:
    """Where along its dimension the data is read by a tap of the window at `index`."""
    start = index if stride == 1 else index * stride
    return start + (tap.var if dilation == 1 else tap.var * dilation)


def tap_indices(
    at: Sequence[Expr], strides: Sequence[int], taps: Sequence[IterVar], dilations: Sequence[int]
) -> list[Expr]:
    """`tap_index` for each of several dimensions."""
    return [tap_index(*numbers) for numbers in zip(at, strides, taps, dilations, strict=True)]
