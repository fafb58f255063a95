"""Padding: cells around a tensor, of one value or mirrored. `pad_amounts.py` has the ways to say how many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from loopwright import te
from loopwright.ir import Expr, as_expr, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import if_then_else, maximum
from loopwright.te.assumed_sizes import assume
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.errors import BadPadding
from loopwright.topi.parts.pad_amounts import check_amount
from loopwright.topi.parts.sizes import is_zero, known, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import numbers, of_each_type
from loopwright.topi.types import Dim, Scalar, Shape


def _pad(data: np.ndarray, before: Sequence[int], after: Sequence[int] | None = None, value: float = 0.0) -> np.ndarray:
    return np.pad(data, list(zip(before, after or before, strict=True)), constant_values=value)


def _pad_samples() -> Iterator[Sample]:
    yield from of_each_type((2, 3), (1, 0), (2, 3))
    yield Sample((numbers((2, 3, 4)), (1, 2, 0)))
    yield Sample((numbers((2, 3)), (0, 0), (0, 4), -1.5))
    yield Sample((numbers((3, 2), "uint8"), (0, 1), (1, 0), 255))
    yield Sample((numbers((0, 2)), (1, 0), (1, 1), 2.0))
    yield Sample((numbers((2, 2)), (0, 0)))


@operator(reference=_pad, samples=_pad_samples, name="nn.pad")
def pad(
    data: te.Tensor,
    pad_before: Shape,
    pad_after: Shape | None = None,
    pad_value: Scalar = 0.0,
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
        locations: list[Expr] = []
        for index, size, low, high in zip(indices, data.shape, before, after, strict=True):
            if is_zero(low):
                locations.append(index)
            else:
                locations.append(index - low)
                inside.append(index >= low)
            if not is_zero(high):
                inside.append(index < simplify(size + low))
        read: Expr = data(*locations)
        return if_then_else(all_of(*inside), read, value) if inside else read

    padded: te.Tensor = te.compute(shape, cell, name=name, tag=default_tag(f"{tag.INJECTIVE},pad"), attrs=attrs)
    return padded


def pad_unless_zero(
    data: te.Tensor, pad_before: Shape, pad_after: Shape, pad_value: Scalar = 0.0, name: str = "pad_temp"
) -> te.Tensor:
    """`pad`, or `data` itself where there is nothing to add: the padding of an operator's input."""
    if all(is_zero(amount) for amount in (*pad_before, *pad_after)):
        return data
    return pad(data, pad_before, pad_after, pad_value, name=name)


def _mirror_pad(
    data: np.ndarray, before: Sequence[int], after: Sequence[int] | None = None, mode: str = "SYMMETRIC"
) -> np.ndarray:
    return np.pad(data, list(zip(before, after or before, strict=True)), mode=mode.lower())  # type: ignore[call-overload]


def _mirror_pad_samples() -> Iterator[Sample]:
    yield from of_each_type((3, 2), (1, 0), (2, 2))
    yield Sample((numbers((3, 4, 5)), (2, 1, 0), (0, 3, 4), "REFLECT"))
    yield Sample((numbers((4, 5)), (4, 5)))
    yield Sample((numbers((2, 1)), (0, 1), (0, 0)))


@operator(reference=_mirror_pad, samples=_mirror_pad_samples, name="nn.mirror_pad")
def mirror_pad(
    data: te.Tensor,
    pad_before: Shape,
    pad_after: Shape | None = None,
    mode: str = "SYMMETRIC",
    name: str = "MirrorPadInput",
) -> te.Tensor:
    """`data` with its own cells mirrored around it; `SYMMETRIC` repeats the edge, `REFLECT` does not."""
    if mode not in ("SYMMETRIC", "REFLECT"):
        raise BadPadding(name, f"mode {mode!r} is not known", 'the modes are "SYMMETRIC" and "REFLECT"')
    before, after = _both(name, data, pad_before, pad_after)
    shape = [simplify(size + low + high) for size, low, high in zip(data.shape, before, after, strict=True)]
    skipped = 1 if mode == "REFLECT" else 0
    for size, low, high in zip(data.shape, before, after, strict=True):
        if not (is_zero(low) and is_zero(high)):
            require_cells(name, size, maximum(as_expr(low), high) + skipped)

    def cell(*indices: Expr) -> Expr:
        locations: list[Expr] = []
        for index, size, low, high in zip(indices, data.shape, before, after, strict=True):
            location = index if is_zero(low) else index - low
            if not is_zero(high):
                location = if_then_else(location >= size, size * 2 - 1 - skipped - location, location)
            if not is_zero(low):
                location = if_then_else(index < low, low - index - 1 + skipped, location)
            locations.append(location)
        read: Expr = data(*locations)
        return read

    padded: te.Tensor = te.compute(shape, cell, name=name, tag=default_tag(f"{tag.INJECTIVE},pad"))
    return padded


def require_cells(name: str, size: Dim, least: Dim) -> None:
    """Refuse a dimension with fewer than `least` cells to repeat; where its size is not known yet, that is assumed."""
    spare = known(as_expr(size) - least)
    if spare is None:
        assume(as_expr(size) >= least, [size], f"it at least {simplify(as_expr(least))}: the pads repeat its cells")
    elif spare < 0:
        problem = f"a dimension of {known(size)} cells is padded with cells of its own"
        raise BadPadding(name, problem, f"that takes {known(as_expr(least))} cells at least")


def _both(name: str, data: te.Tensor, pad_before: Shape, pad_after: Shape | None) -> tuple[list[Dim], list[Dim]]:
    before = list(pad_before)
    after = list(pad_after) if pad_after else before
    for which, amounts in (("pad_before", before), ("pad_after", after)):
        hint = f"give one number a dimension of {data.name}"
        if len(amounts) != data.ndim:
            problem = f"{which} has {len(amounts)} entries, and {data.name} {data.ndim} dimensions"
            raise BadPadding(name, problem, hint)
        for amount in amounts:
            check_amount(name, amount, hint)
    return before, after
