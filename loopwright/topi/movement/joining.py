"""Joining and parting: tensors one after another along an axis, and a tensor cut along one.

concatenate([a, b], 0)    out[i] = a[i] where i < len(a), else b[i - len(a)]
split(a, [2, 5])          a[:2], a[2:5], a[5:]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from loopwright import te
from loopwright.ir import Expr, as_expr
from loopwright.ir.intrinsics import if_then_else
from loopwright.runtime.errors import LoopwrightError
from loopwright.te.assumed_sizes import assume
from loopwright.te.tensor import shape_text
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.movement.moving import moved
from loopwright.topi.parts.axes import axis_of
from loopwright.topi.parts.sizes import known, one_size, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import TYPES, numbers, of_each_type
from loopwright.topi.types import Dims, Shape


class CannotSplit(LoopwrightError, ValueError):
    """A tensor cannot be cut the way it was asked: sections that do not divide, or cut points out of order.

    For example:

        from loopwright import te, topi

        topi.split(te.placeholder((7,), name="data"), 3)
    """

    code = "LW1122"

    def __init__(self, problem: str, hint: str, **fields: object) -> None:
        super().__init__(f"split: {problem}", hint=hint, fields=fields)


def _concatenate_samples() -> Iterator[Sample]:
    yield Sample(([numbers((2, 3)), numbers((4, 3), seed=1)],))
    yield Sample(([numbers((2, 3)), numbers((2, 5), seed=1), numbers((2, 1), seed=2)],), {"axis": -1})
    yield Sample(([numbers((2, 3, 4)), numbers((2, 7, 4), seed=1)], 1))
    yield Sample(([numbers((0, 3)), numbers((2, 3)), numbers((0, 3))],))
    yield Sample(([numbers((5,))],))
    for dtype in TYPES:
        yield Sample(([numbers((3,), dtype), numbers((2,), dtype, 1)],))


@operator(reference=np.concatenate, samples=_concatenate_samples)
def concatenate(a_tuple: Sequence[te.Tensor], axis: int = 0) -> te.Tensor:
    """The tensors one after another along `axis`; in the other dimensions they agree."""
    tensors = _same_kind("concatenate", a_tuple)
    first = tensors[0]
    along = axis_of("concatenate", axis, first.ndim)
    for other in tensors[1:]:
        for k in range(first.ndim):
            if k != along and not one_size(first.shape[k], other.shape[k]):
                raise InvalidShapeError(
                    "concatenate",
                    f"{first.name} has shape {shape_text(first.shape)} and {other.name} {shape_text(other.shape)}: "
                    f"they differ in dimension {k}",
                    f"only dimension {along}, the axis, may differ",
                )
    ends: list[Expr] = []
    for tensor in tensors:
        ends.append(simplify(tensor.shape[along] + (ends[-1] if ends else as_expr(0))))

    def cell(*indices: Expr) -> Expr:
        def read(k: int) -> Expr:
            location = indices[along] - ends[k - 1] if k else indices[along]
            return tensors[k](*indices[:along], location, *indices[along + 1 :])

        value = read(len(tensors) - 1)
        for k in range(len(tensors) - 2, -1, -1):
            value = if_then_else(indices[along] < ends[k], read(k), value)
        return value

    shape = (*first.shape[:along], ends[-1], *first.shape[along + 1 :])
    return moved(shape, cell, "T_concat")


def _stack_samples() -> Iterator[Sample]:
    yield Sample(([numbers((2, 3)), numbers((2, 3), seed=1)], 0))
    yield Sample(([numbers((2, 3)), numbers((2, 3), seed=1), numbers((2, 3), seed=2)], -1))
    yield Sample(([numbers((2, 3)), numbers((2, 3), seed=1)], 1))
    yield Sample(([numbers(()), numbers((), seed=1)], 0))
    yield Sample(([numbers((0, 3)), numbers((0, 3))], 2))
    for dtype in TYPES:
        yield Sample(([numbers((3,), dtype), numbers((3,), dtype, 1)], 1))


@operator(reference=np.stack, samples=_stack_samples)
def stack(a_tuple: Sequence[te.Tensor], axis: int = 0) -> te.Tensor:
    """Tensors of one shape, side by side along a new axis."""
    tensors = _same_kind("stack", a_tuple)
    first = tensors[0]
    along = axis_of("stack", axis, first.ndim + 1)
    for other in tensors[1:]:
        if not all([one_size(one, size) for one, size in zip(first.shape, other.shape, strict=True)]):
            raise InvalidShapeError(
                "stack",
                f"{first.name} has shape {shape_text(first.shape)} and {other.name} {shape_text(other.shape)}",
                "give tensors of one shape",
            )

    def cell(*indices: Expr) -> Expr:
        inner = (*indices[:along], *indices[along + 1 :])
        value: Expr = tensors[-1](*inner)
        for k in range(len(tensors) - 2, -1, -1):
            value = if_then_else(indices[along] == k, tensors[k](*inner), value)
        return value

    shape: Shape = [*first.shape[:along], len(tensors), *first.shape[along:]]
    return moved(shape, cell, "T_stack")


def _same_kind(op: str, given: Sequence[te.Tensor]) -> list[te.Tensor]:
    if not isinstance(given, (te.Tensor, Iterable)):
        raise InvalidShapeError(op, f"{type(given).__name__} {given!r} is no list of tensors", "give them as [a, b]")
    tensors: list[te.Tensor] = [given] if isinstance(given, te.Tensor) else list(given)
    for place, one in enumerate(tensors):
        if not isinstance(one, te.Tensor):
            problem = f"number {place} of the list is {type(one).__name__} {one!r:.80}, not a tensor"
            raise InvalidShapeError(op, problem, "topi.full((1,), dtype, value) makes a tensor of a number")
    if not tensors:
        raise InvalidShapeError(op, "there are no tensors", "give at least one")
    first = tensors[0]
    for other in tensors[1:]:
        if other.ndim != first.ndim or other.dtype != first.dtype:
            kinds = [f"{one.dtype} {one.name} of shape {shape_text(one.shape)}" for one in (first, other)]
            raise InvalidShapeError(op, f"{kinds[0]} does not go with {kinds[1]}", "give tensors of one type and rank")
    return tensors


def _split_samples() -> Iterator[Sample]:
    yield Sample((numbers((6, 5)), 3))
    yield Sample((numbers((2, 7)), [2, 5]), {"axis": -1})
    yield Sample((numbers((2, 7, 3)), (1, 1, 7)), {"axis": 1})
    yield Sample((numbers((4,)), 1))
    yield Sample((numbers((0, 2)), 2))
    yield from of_each_type((4,), 2)


@operator(reference=np.split, samples=_split_samples)
def split(ary: te.Tensor, indices_or_sections: Dims, axis: int = 0) -> list[te.Tensor]:
    """The parts of `ary` along `axis`: so many equal ones, or those between sorted cut points."""
    along = axis_of("split", axis, ary.ndim)
    total = ary.shape[along]
    begins, ends = _cuts(ary, total, indices_or_sections, along)

    def part(begin: Expr, end: Expr) -> te.Tensor:
        def cell(*indices: Expr) -> Expr:
            return ary(*indices[:along], indices[along] + begin, *indices[along + 1 :])

        shape = (*ary.shape[:along], simplify(as_expr(end) - begin), *ary.shape[along + 1 :])
        return moved(shape, cell, "T_split")

    return [part(begin, end) for begin, end in zip(begins, ends, strict=True)]


def _cuts(ary: te.Tensor, total: Expr, given: Dims, along: int) -> tuple[list[Expr], list[Expr]]:
    """Where the parts begin and end."""
    cuts = tuple(given) if isinstance(given, Sequence) else ()
    if not isinstance(given, Sequence):
        sections = known(given)
        if sections is None or sections < 1:
            raise CannotSplit(f"{given!r} is no number of sections", "give an integer of at least 1, or cut points")
        size = known(total)
        if size is not None and size % sections:
            raise CannotSplit(
                f"axis {along} of {ary.name} has size {size}, which {sections} sections do not divide",
                "give a number that divides it, or a list of cut points",
                size=size,
                sections=sections,
            )
        if size is None:
            assume((total % sections).equal(0), [total], f"it a multiple of {sections}")
        each = simplify(total // sections)
        edges = [simplify(each * k) for k in range(sections + 1)]
    else:
        edges = [as_expr(0), *[simplify(cut) for cut in cuts], total]
    for low, high in pairwise(edges):
        gap = known(high - low)
        if gap is not None and gap < 0:
            raise CannotSplit(
                f"cut points {cuts} of axis {along}, of size {known(total)}, do not go up",
                "sort them, and keep them between 0 and the size",
            )
        if gap is None:
            assume(low <= high, [total], f"it at least {low}, where a part begins")
    return edges[:-1], edges[1:]
