"""Random einsums: batches, any order of axes, several summed ones, strided and shifted operands, work around them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from loopwright import te
from tests.autosched.fuzz.approx import extreme, sum_of_products
from tests.autosched.fuzz.draft import LONGEST, MOST, SIZES, TYPES, Draft, Value, after, before


def contraction(draft: Draft) -> Value:
    """A sum of products of two tensors, or the sum of one, then perhaps another product."""
    left_type, right_type, dtype = draft.rng.choice(TYPES)
    out = _product(draft, None, left_type, right_type, dtype)
    if draft.chance(0.15) and out.dtype in ("float32", "int32", "float64"):
        draft.note("chained")
        out = _product(draft, out, out.dtype, out.dtype, out.dtype)
    return out


def _product(draft: Draft, first: Value | None, left_type: str, right_type: str, dtype: str) -> Value:
    rng = draft.rng
    batch = rng.sample("bd", rng.choice([0, 0, 0, 1, 1, 2]))
    rows, columns = rng.sample("ij", rng.choice([0, 1, 1, 1, 2])), rng.sample("mn", rng.choice([0, 1, 1, 1, 2]))
    summed = rng.sample("kl" if first is None else "k", rng.choice([1, 1, 2]) if first is None else 1)
    if first is not None:  # its last axis is summed, the others are rows
        rows, batch, summed = list("ijabdefg"[: len(first.shape) - 1]), [], ["k"]
        left = [*rows, "k"]
        extents = dict(zip(left, first.shape, strict=True))
    else:
        left, extents = rng.sample([*batch, *rows, *summed], len([*batch, *rows, *summed])), {}
    right = rng.sample([*batch, *columns, *summed], len([*batch, *columns, *summed]))
    result = rng.sample([*batch, *rows, *columns], len([*batch, *rows, *columns]))
    if not result:
        columns = ["n"]
        right, result = [*right, "n"], ["n"]
    for axis in [*batch, *summed, *rows, *columns]:
        room = MOST // max(prod(extents.values()), 1)
        if dtype == "float16" and axis in summed:  # so few that a bound can be given
            room = min(room, LONGEST // max(prod([extents.get(other, 1) for other in summed]), 1))
        extents.setdefault(axis, rng.choice([size for size in SIZES if size <= room] or [1]))
    is_plain = draft.chance(0.7)
    # Strides and offsets are of the operands: an operand is larger than what is read of it.
    scale = {axis: 1 if is_plain or first is not None else rng.choice([1, 1, 2]) for axis in left}
    shift = {axis: 0 if is_plain or first is not None else rng.choice([0, 0, 1]) for axis in left}
    a_shape = [(extents[axis] - 1) * scale[axis] + shift[axis] + 1 for axis in left]
    number = len(draft.tensors)
    a = first if first is not None else before(draft, draft.input(a_shape, left_type, f"A{number}"), "A")
    b = draft.input([extents[axis] for axis in right], right_type, f"B{number}", constant=draft.chance(0.3))
    b = before(draft, b, f"B{number}")
    draft.note(f"{left_type}·{right_type} {''.join(left)},{''.join(right)}->{''.join(result)} {extents}")
    reduce_axes = {axis: te.reduce_axis((0, extents[axis]), axis) for axis in summed}

    def cell(*at: Any) -> Any:
        values = {**dict(zip(result, at, strict=True)), **reduce_axes}
        x = a.tensor[[values[axis] * scale[axis] + shift[axis] for axis in left]]
        y = b.tensor[[values[axis] for axis in right]]
        if a.dtype != dtype or b.dtype != dtype:
            x, y = x.astype(dtype), y.astype(dtype)
        return te.sum(x * y, axis=[reduce_axes[axis] for axis in rng.sample(summed, len(summed))])

    read = tuple([slice(shift[axis], None, scale[axis]) for axis in left])
    taken = a.approx.moved(lambda v: v[read])
    approx = sum_of_products(f"{''.join(left)},{''.join(right)}->{''.join(result)}", [taken, b.approx], dtype)
    c = Value(te.compute([extents[axis] for axis in result], cell, name=f"C{number}"), approx)
    return after(draft, c, rng.randrange(len(result)))


def reduction(draft: Draft) -> Value:
    """A sum of squares, a sum, or an extreme over several axes of one tensor."""
    rng = draft.rng
    dtype = rng.choice(["float32", "float32", "float64", "int32", "float16"])
    rank = rng.randint(2, 4)
    shape: list[int] = []
    for _ in range(rank):
        room = (LONGEST if dtype == "float16" else MOST) // max(prod(shape), 1)
        shape.append(rng.choice([size for size in SIZES if size <= room] or [1]))
    summed = sorted(rng.sample(range(rank), rng.randint(1, rank - 1)))
    kind = rng.choice(["sum", "squares", "max", "min"])
    draft.note(f"{dtype} {kind} of {shape} over {summed}")
    x = before(draft, draft.input(shape, dtype, "X"), "X")
    axes = {axis: te.reduce_axis((0, shape[axis]), f"r{axis}") for axis in summed}
    kept = [axis for axis in range(rank) if axis not in summed]

    def cell(*at: Any) -> Any:
        values = {**dict(zip(kept, at, strict=True)), **axes}
        element = x.tensor[[values[axis] for axis in range(rank)]]
        if kind in ("max", "min"):
            return (te.max if kind == "max" else te.min)(element, axis=list(axes.values()))
        return te.sum(element * element if kind == "squares" else element, axis=list(axes.values()))

    letters = "abcd"[:rank]
    out = "".join(letters[axis] for axis in kept)
    if kind in ("max", "min"):
        approx = extreme(x.approx, tuple(summed), kind == "max")
    elif kind == "squares":
        approx = sum_of_products(f"{letters},{letters}->{out}", [x.approx, x.approx], dtype)
    else:
        approx = sum_of_products(f"{letters}->{out}", [x.approx], dtype)
    approx = approx.moved(np.asarray)
    value = Value(te.compute([shape[axis] for axis in kept], cell, name="R"), approx)
    return after(draft, value, rng.randrange(len(kept)))
