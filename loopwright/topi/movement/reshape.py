"""Reshaping: the same elements in the same row-major order, under another shape.

    reshape(a, (6, 4))         of (2, 3, 4)    a[i // 3, i % 3, j]
    expand_dims(a, 1)          of (2, 3)       (2, 1, 3)
    squeeze(a)                 of (2, 1, 3)    (2, 3)

Dimensions that both shapes share are passed through: only the group of dimensions that really changes is counted
through, so that what is fused with a reshape sees plain indices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from loopwright import te
from loopwright.arith import Analyzer
from loopwright.ir import Expr, Range, as_expr
from loopwright.te.assumed_sizes import assume_equal
from loopwright.te.tensor import shape_text
from loopwright.topi import tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.movement.moving import moved
from loopwright.topi.parts.axes import BadAxis, axes_of, axis_of
from loopwright.topi.parts.row_major import product, ravel, unravel
from loopwright.topi.parts.sizes import check_same, is_zero, known, one_size, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import numbers, of_each_type
from loopwright.topi.types import Axes, Dim, Dims, Shape


def _reshape_samples() -> Iterator[Sample]:
    yield Sample((numbers((2, 3, 4)), (6, 4)))
    yield Sample((numbers((2, 3, 4)), (4, 3, 2)))
    yield Sample((numbers((6, 35)), (10, 3, 7)))
    yield Sample((numbers((1, 5, 1)), (5,)))
    yield Sample((numbers(()), (1, 1)))
    yield Sample((numbers((1,)), ()))
    yield Sample((numbers((0, 3)), (5, 0, 2)))
    yield from of_each_type((4, 3), (2, 6))


@operator(reference=np.reshape, samples=_reshape_samples)
def reshape(a: te.Tensor, newshape: Dims) -> te.Tensor:
    """The elements of `a` in their order, under `newshape`: sizes only, nothing to infer."""
    shape = [simplify(size) for size in _sizes(newshape)]
    if not one_size(product(a.shape), product(shape)):
        raise InvalidShapeError(
            "reshape",
            f"{a.name} of shape {shape_text(a.shape)} has {known(product(a.shape))} elements, "
            f"shape {shape_text(shape)} has {known(product(shape))}",
            "give a shape with as many elements",
        )
    groups = _groups(a.shape, shape)
    empty = any(is_zero(size) for size in shape)

    def cell(*indices: Expr) -> Expr:
        at = [as_expr(0)] * a.ndim
        if empty:
            return a(*at)  # never computed; and no index is divided by a size of 0
        facts = Analyzer()
        for index, size in zip(indices, shape, strict=True):
            facts.bind(index, Range.from_min_extent(as_expr(0), size))  # type: ignore[arg-type]
        for sources, targets in groups:
            location = ravel([indices[k] for k in targets], [shape[k] for k in targets])
            for axis, index in zip(sources, unravel(location, [a.shape[k] for k in sources]), strict=True):
                at[axis] = facts.simplify(index)
        return a(*at)

    return moved(shape, cell, "T_reshape")


def _sizes(shape: Dims) -> list[Dim]:
    return list(shape) if isinstance(shape, Sequence) else [shape]


def _groups(old: Sequence[Expr], new: Sequence[Expr]) -> list[tuple[list[int], list[int]]]:
    """The dimensions of both shapes in groups of as many elements; dimensions of 1 are in none."""
    sources = [k for k, size in enumerate(old) if known(size) != 1]
    targets = [k for k, size in enumerate(new) if known(size) != 1]
    facts = Analyzer()
    behind: list[tuple[list[int], list[int]]] = []
    while sources and targets and facts.can_prove_equal(old[sources[-1]], new[targets[-1]]):
        behind.append(([sources.pop()], [targets.pop()]))
    groups: list[tuple[list[int], list[int]]] = []
    while sources and targets:
        mine, its = [sources.pop(0)], [targets.pop(0)]
        counts = old[mine[0]], new[its[0]]
        while not facts.can_prove_equal(*counts):
            one, other = known(counts[0]), known(counts[1])
            if one is None or other is None:  # who is behind is not known: the rest is one group
                mine, its, sources, targets = mine + sources, its + targets, [], []
                break
            grows = sources if one < other else targets
            if not grows:  # shapes that differ in their unknown part
                break
            (mine if one < other else its).append(grows.pop(0))
            counts = product([old[k] for k in mine]), product([new[k] for k in its])
        groups.append((mine, its))
    # What is left over on one side alone can only be 1 when the program runs; it joins the last group.
    if sources or targets:
        mine, its = groups.pop() if groups else ([], [])
        groups.append((mine + sources, its + targets))
    return [*groups, *behind]


def _expand_dims_reference(a: np.ndarray, axis: int, num_newaxis: int = 1) -> np.ndarray:
    at = axis % (a.ndim + 1)
    return a.reshape(a.shape[:at] + (1,) * num_newaxis + a.shape[at:])


def _expand_dims_samples() -> Iterator[Sample]:
    yield Sample((numbers((2, 3)), 1))
    yield Sample((numbers((2, 3)), -1), {"num_newaxis": 2})
    yield Sample((numbers((2, 3)), -3))
    yield Sample((numbers(()), 0))
    yield Sample((numbers((0, 3)), 2))
    yield from of_each_type((3,), 0)


@operator(reference=_expand_dims_reference, samples=_expand_dims_samples)
def expand_dims(a: te.Tensor, axis: int, num_newaxis: int = 1) -> te.Tensor:
    """`a` with `num_newaxis` dimensions of size 1 before `axis` (from -ndim - 1 to ndim)."""
    at = axis_of("expand_dims", axis, a.ndim + 1)
    if num_newaxis < 0:
        raise BadAxis("expand_dims", f"num_newaxis is {num_newaxis}", "it is at least 0")
    shape: Shape = [*a.shape[:at], *[1] * num_newaxis, *a.shape[at:]]
    return moved(
        shape,
        lambda *indices: a(*indices[:at], *indices[at + num_newaxis :]),
        "T_expand_dims",
        tag.BROADCAST,
    )


def _squeeze_samples() -> Iterator[Sample]:
    yield Sample((numbers((1, 3, 1, 2)),))
    yield Sample((numbers((1, 3, 1, 2)), (0, -2)))
    yield Sample((numbers((1, 3, 1, 2)), 2))
    yield Sample((numbers((1, 1)),))
    yield Sample((numbers((3, 2)), ()))
    yield Sample((numbers((0, 1)), -1))
    yield from of_each_type((3, 1), 1)


@operator(reference=np.squeeze, samples=_squeeze_samples)
def squeeze(a: te.Tensor, axis: Axes = None) -> te.Tensor:
    """`a` without the named dimensions, which are 1; without an axis, without all that are known to be 1."""
    if axis is None:
        gone = [k for k, size in enumerate(a.shape) if known(size) == 1]
    else:
        gone = axes_of("squeeze", axis, a.ndim)
        for k in gone:
            if known(a.shape[k]) not in (1, None):
                raise InvalidShapeError(
                    "squeeze",
                    f"axis {k} of {a.name}, of shape {shape_text(a.shape)}, is {known(a.shape[k])}, not 1",
                    "name axes of size 1 only",
                )
            assume_equal(a.shape[k], 1)
    kept = [k for k in range(a.ndim) if k not in gone]

    def cell(*indices: Expr) -> Expr:
        at: list[Dim] = [0] * a.ndim
        for k, index in zip(kept, indices, strict=True):
            at[k] = index
        return a(*at)

    shape = tuple(a.shape[k] for k in kept)
    return moved(shape, cell, "T_squeeze")


def _expand_like_reference(a: np.ndarray, shape_like: np.ndarray, axis: Axes) -> np.ndarray:
    axes = [k % shape_like.ndim for k in np.atleast_1d(np.array(axis, int))]
    if a.ndim + len(axes) != shape_like.ndim:
        return np.broadcast_to(a.reshape(()), shape_like.shape)
    return np.broadcast_to(np.expand_dims(a, tuple(axes)), shape_like.shape)


def _expand_like_samples() -> Iterator[Sample]:
    yield Sample((numbers((3,)), numbers((2, 3)), [0]))
    yield Sample((numbers((2, 4)), numbers((2, 3, 4, 1)), [1, -1]))
    yield Sample((numbers((1,)), numbers((2, 3)), [0, 1]))
    yield Sample((numbers((2,)), numbers((2,)), []))
    yield Sample((numbers((0,)), numbers((5, 0)), [0]))


@operator(reference=_expand_like_reference, samples=_expand_like_samples)
def expand_like(a: te.Tensor, shape_like: te.Tensor, axis: Axes) -> te.Tensor:
    """`a` repeated along the axes of `shape_like` that it lacks; a tensor of one element may lack all of them."""
    axes = axes_of("expand_like", axis, shape_like.ndim)
    own = [k for k in range(shape_like.ndim) if k not in axes]
    one = len(own) == 0 and a.ndim == 1 and known(a.shape[0]) == 1
    if len(own) != a.ndim and not one:
        raise InvalidShapeError(
            "expand_like",
            f"{a.name} has {a.ndim} dimensions and {len(axes)} are added, which does not make the "
            f"{shape_like.ndim} of {shape_like.name}",
            f"name the axes of {shape_like.name} that {a.name} lacks",
        )
    for size, k in zip(a.shape, own, strict=False):
        check_same("expand_like", f"axis {k} differs", (a.name, size), (shape_like.name, shape_like.shape[k]))
    return moved(
        shape_like.shape,
        lambda *indices: a(0) if one else a(*[indices[k] for k in own]),
        "T_expand_like",
        tag.BROADCAST,
    )


def _flatten_reference(data: np.ndarray) -> np.ndarray:
    return data.reshape(data.shape[0], int(np.prod(data.shape[1:], dtype=int)))


def _flatten_samples() -> Iterator[Sample]:
    yield Sample((numbers((2, 3, 4)),))
    yield Sample((numbers((7,)),))
    yield Sample((numbers((3, 0, 2)),))
    yield from of_each_type((2, 2, 2))


@operator(reference=_flatten_reference, samples=_flatten_samples, name="nn.flatten")
def flatten(data: te.Tensor) -> te.Tensor:
    """`data` with all dimensions but the first joined into one."""
    if data.ndim == 0:
        raise InvalidShapeError("flatten", f"{data.name} has no dimensions", "give a tensor of at least one")
    return reshape(data, (data.shape[0], simplify(product(data.shape[1:]))))
