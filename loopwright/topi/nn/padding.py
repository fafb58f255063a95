"""Padding: cells around a tensor, and the ways in which operators say how many.

    get_pad_tuple(1, (3, 3))                →  (1, 1, 1, 1)     top, left, bottom, right
    get_pad_tuple((1, 2, 3, 4), (3, 3))     →  (1, 2, 3, 4)
    get_pad_tuple("SAME", (4, 3))           →  (2, 1, 1, 1)     the larger half first; strides do not count
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loopwright import te
from loopwright.ir import Expr, as_expr, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import if_then_else
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.errors import BadPadding
from loopwright.topi.sizes import is_zero, known, simplify


def get_pad_tuple(padding: Any, kernel: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
    """The padding of two dimensions: top, left, bottom, right. `kernel` is its size with the dilation counted in."""
    top, left, bottom, right = _flat(padding, kernel, 2)
    return top, left, bottom, right


def get_pad_tuple1d(padding: Any, kernel: Sequence[Any]) -> tuple[Any, Any]:
    """The padding of one dimension: left, right."""
    left, right = _flat(padding, kernel, 1)
    return left, right


def get_pad_tuple3d(padding: Any, kernel: Sequence[Any]) -> tuple[Any, Any, Any, Any, Any, Any]:
    """The padding of three dimensions: front, top, left, back, bottom, right."""
    front, top, left, back, bottom, right = _flat(padding, kernel, 3)
    return front, top, left, back, bottom, right


def get_pad_tuple_generic(padding: Any, kernel: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The padding of as many dimensions as the kernel has: the beginnings, and the ends."""
    flat = _flat(padding, kernel, len(kernel))
    return flat[: len(kernel)], flat[len(kernel) :]


def _flat(padding: Any, kernel: Sequence[Any], count: int) -> list[Any]:
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
    given = list(padding) if isinstance(padding, Sequence) else [padding]
    for amount in given:
        _check_amount("padding", amount, forms)
    if len(given) == 1:
        return given * (2 * count)
    if len(given) == count:
        return given * 2
    if len(given) == 2 * count:
        return given
    raise BadPadding("padding", f"{padding!r} has {len(given)} entries for a window of {count} dimensions", forms)


def _plain(value: Expr) -> Any:
    number = known(value)
    return value if number is None else number


def _check_amount(op: str, amount: Any, hint: str) -> None:
    if isinstance(amount, (bool, float, str)) or amount is None:
        raise BadPadding(op, f"{type(amount).__name__} {amount!r} is not a number of cells", hint)
    number = known(amount)
    if number is not None and number < 0:
        raise BadPadding(op, f"{number} is less than 0", "padding adds cells; take a slice to remove some")


def pad(
    data: te.Tensor,
    pad_before: Sequence[Any],
    pad_after: Sequence[Any] | None = None,
    pad_value: Any = 0.0,
    name: str = "PadInput",
    attrs: Mapping[str, object] | None = None,
) -> te.Tensor:
    """`data` with cells of `pad_value` around it: so many before and after, for each dimension.

    Without `pad_after`, as many after as before. Dimensions that get none are read without a test.
    """
    before, after = _both(name, data, pad_before, pad_after)
    shape = [simplify(size + low + high) for size, low, high in zip(data.shape, before, after, strict=True)]
    value = as_expr(pad_value).astype(data.dtype) if isinstance(pad_value, Expr) else const(pad_value, data.dtype)

    def cell(*indices: Expr) -> Expr:
        inside: list[Expr] = []
        places: list[Expr] = []
        for index, size, low, high in zip(indices, data.shape, before, after, strict=True):
            if is_zero(low):
                places.append(index)
            else:
                places.append(index - low)
                inside.append(index >= low)
            if not is_zero(high):
                inside.append(index < simplify(size + low))
        read: Expr = data(*places)
        return if_then_else(all_of(*inside), read, value) if inside else read

    padded: te.Tensor = te.compute(shape, cell, name=name, tag=default_tag(f"{tag.INJECTIVE},pad"), attrs=attrs)
    return padded


def pad_unless_zero(
    data: te.Tensor, pad_before: Sequence[Any], pad_after: Sequence[Any], pad_value: Any = 0.0, name: str = "pad_temp"
) -> te.Tensor:
    """`pad`, or `data` itself where there is nothing to add: the padding of an operator's input."""
    if all(is_zero(amount) for amount in (*pad_before, *pad_after)):
        return data
    return pad(data, pad_before, pad_after, pad_value, name=name)


def mirror_pad(
    data: te.Tensor,
    pad_before: Sequence[Any],
    pad_after: Sequence[Any] | None = None,
    mode: str = "SYMMETRIC",
    name: str = "MirrorPadInput",
) -> te.Tensor:
    """`data` with its own cells mirrored around it; `SYMMETRIC` repeats the edge, `REFLECT` does not."""
    if mode not in ("SYMMETRIC", "REFLECT"):
        raise BadPadding(name, f"mode {mode!r} is not known", 'the modes are "SYMMETRIC" and "REFLECT"')
    before, after = _both(name, data, pad_before, pad_after)
    shape = [simplify(size + low + high) for size, low, high in zip(data.shape, before, after, strict=True)]
    skipped = 1 if mode == "REFLECT" else 0

    def cell(*indices: Expr) -> Expr:
        places: list[Expr] = []
        for index, size, low, high in zip(indices, data.shape, before, after, strict=True):
            place = index if is_zero(low) else index - low
            if not is_zero(high):
                place = if_then_else(place >= size, size * 2 - 1 - skipped - place, place)
            if not is_zero(low):
                place = if_then_else(index < low, low - index - 1 + skipped, place)
            places.append(place)
        read: Expr = data(*places)
        return read

    padded: te.Tensor = te.compute(shape, cell, name=name, tag=default_tag(f"{tag.INJECTIVE},pad"))
    return padded


def _both(
    name: str, data: te.Tensor, pad_before: Sequence[Any], pad_after: Sequence[Any] | None
) -> tuple[list[Any], list[Any]]:
    before = list(pad_before)
    after = list(pad_after) if pad_after else before
    for which, amounts in (("pad_before", before), ("pad_after", after)):
        hint = f"give one number a dimension of {data.name}"
        if len(amounts) != data.ndim:
            problem = f"{which} has {len(amounts)} entries, and {data.name} {data.ndim} dimensions"
            raise BadPadding(name, problem, hint)
        for amount in amounts:
            _check_amount(name, amount, hint)
    return before, after
