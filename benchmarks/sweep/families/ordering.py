"""Order and search: sort, argsort, topk, unique, searchsorted, cumulative sums and products, counts, places, NMS.

Distribution: 2^12 to 2^19 elements (log-uniform), 1 to 3 axes; the axis that is ordered or summed is the last for 75 %,
its size by `sizes.extent` for half and all elements in one row for a quarter. topk: k 1, 5, 10 or up to a quarter of
the row. Values are uniform, of integers in a range as wide as the row (ties). float32 60 %, int32 15, int64 10, float64
10, uint8 5. nonzero: 1, 10, 50 or 90 % of the elements; nms: 2^5 to 2^11 boxes; bincount: 2 to 4096 bins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.bench.bounds import gamma
from benchmarks.bench.case import Array, Bounded
from benchmarks.sweep.case import Case, Input, Output, Step
from benchmarks.sweep.errors import exactly
from benchmarks.sweep.sizes import Rng, extent, log_uniform, pick

ELEMENTS = (2**12, 2**19)
TYPES = {"float32": 60, "int32": 15, "int64": 10, "float64": 10, "uint8": 5}


def draw(rng: Rng) -> Case:
    """A case."""
    return pick(rng, list(KINDS), list(KINDS.values()))(rng)


def _type(rng: Rng) -> str:
    return pick(rng, list(TYPES), list(TYPES.values()))


def _shape(rng: Rng) -> tuple[tuple[int, ...], int]:
    """A shape, and the axis that matters."""
    total = log_uniform(rng, *ELEMENTS)
    if rng.random() < 0.25:
        return (total,), 0
    row = min(extent(rng, 4096, 2) if rng.random() < 0.5 else log_uniform(rng, 2, 8192), total)
    rest = max(total // row, 1)
    lead = (rest,) if rng.random() < 0.7 or rest < 4 else (2, rest // 2)
    if rng.random() < 0.75:
        return (*lead, row), len(lead)
    return (row, *lead), 0


def _values(shape: tuple[int, ...], axis: int, dtype: str) -> Input:
    """Values whose order is unique, or ties where they are integers."""
    if np.dtype(dtype).kind == "f":
        return Input(shape, dtype)
    return Input(shape, dtype, 0, 255 if dtype == "uint8" else max(shape[axis], 2))


def _topi() -> Any:
    from loopwright import topi

    return topi


def _sort(rng: Rng) -> Case:
    (shape, axis), dtype = _shape(rng), _type(rng)
    count = shape[axis]
    return Case(
        "sort",
        [_values(shape, axis, dtype)],
        [Output(shape, dtype)],
        lambda x: [exactly(np.sort(x[0], axis))],
        f"axis {axis}",
        lambda x: _topi().sort(x, axis, 1),
        # ONNX has no sort: the same by TopK of all, least first.
        [Step("TopK", ["x0", "k"], "y0 places", {"axis": axis, "largest": 0})],
        {"k": np.asarray([count], "int64")},
        lambda x, out: np.sort(x[0], axis),
        lambda t, x, out: t.sort(x[0], dim=axis).values,
    )


def _argsort(rng: Rng) -> Case:
    (shape, axis), dtype = _shape(rng), _type(rng)
    return Case(
        "argsort",
        [_values(shape, axis, dtype)],
        [Output(shape, "int64")],
        lambda x: [exactly(np.argsort(x[0], axis, kind="stable"))],
        f"axis {axis} stable",
        lambda x: _topi().argsort(x, None, axis, 1, "int64"),
        (),
        {},
        lambda x, out: np.argsort(x[0], axis, kind="stable"),
        lambda t, x, out: t.argsort(x[0], dim=axis, stable=True),
    )


def _topk(rng: Rng) -> Case:
    (shape, axis), dtype = _shape(rng), pick(rng, ("float32", "float64"), (85, 15))
    count = shape[axis]
    k = min(pick(rng, (1, 5, 10, log_uniform(rng, 1, max(count // 4, 1)))), count)
    out = tuple([k if at == axis else size for at, size in enumerate(shape)])

    def distinct(generator: np.random.Generator) -> Array:
        """No two values of a row are equal, so that everyone has to name the same places."""
        rank = np.argsort(generator.random(shape, dtype="float32"), axis=axis).astype(dtype)
        return rank / count - 0.5 if count < 2**22 else rank

    def exact(x: Any) -> list[Bounded]:
        places = np.take(np.argsort(-x[0], axis, kind="stable"), np.arange(k), axis)
        return [exactly(np.take_along_axis(x[0], places, axis)), exactly(places)]

    def with_numpy(x: Any, out_: Any) -> Any:
        part = np.take(np.argpartition(-x[0], k - 1, axis), np.arange(k), axis)
        found = np.take_along_axis(x[0], part, axis)
        order = np.argsort(-found, axis)
        return np.take_along_axis(found, order, axis), np.take_along_axis(part, order, axis)

    def with_torch(t: Any, x: Any, out_: Any) -> Any:
        found = t.topk(x[0], k, dim=axis)
        return found.values, found.indices

    return Case(
        "topk",
        [Input(shape, dtype, make=distinct)],
        [Output(out, dtype), Output(out, "int64")],
        exact,
        f"{k} along {axis}",
        lambda x: _topi().topk(x, k, axis, "both", False, "int64"),
        [Step("TopK", ["x0", "k"], "y0 y1", {"axis": axis})],
        {"k": np.asarray([k], "int64")},
        with_numpy,
        with_torch,
    )


def _unique(rng: Rng) -> Case:
    count, dtype = log_uniform(rng, *ELEMENTS), pick(rng, ("float32", "int64", "int32"))
    kinds = log_uniform(rng, 2, count)

    def values(generator: np.random.Generator) -> Array:
        """All kinds are there, so that the size of the result is known."""
        drawn = generator.integers(0, kinds, count)
        drawn[generator.permutation(count)[:kinds]] = np.arange(kinds)
        return drawn.astype(dtype)

    return Case(
        "unique",
        [Input((count,), dtype, make=values)],
        [Output((kinds,), dtype)],
        lambda x: [exactly(np.unique(x[0]))],
        f"{kinds} kinds",
        None,
        [Step("Unique", ["x0"], "y0", {"sorted": 1})],
        {},
        lambda x, out: np.unique(x[0]),
        lambda t, x, out: t.unique(x[0], sorted=True),
    )


def _searchsorted(rng: Rng) -> Case:
    size, count = log_uniform(rng, 2**4, 2**18), log_uniform(rng, *ELEMENTS)
    dtype = pick(rng, ("float32", "float64", "int32", "int64"), (60, 15, 15, 10))
    right = bool(rng.integers(2))
    high = 1 if dtype[0] == "f" else size

    def row(generator: np.random.Generator) -> Array:
        drawn = generator.random(size) if dtype[0] == "f" else generator.integers(0, size, size)
        return np.sort(drawn.astype(dtype))

    side = "right" if right else "left"
    return Case(
        "searchsorted",
        [Input((size,), dtype, make=row), Input((count,), dtype, 0, high)],
        [Output((count,), "int64")],
        lambda x: [exactly(np.searchsorted(x[0], x[1], side))],
        side,
        lambda x, v: _topi().searchsorted(x, v, right, "int64"),
        (),
        {},
        lambda x, out: np.searchsorted(x[0], x[1], side),
        lambda t, x, out: t.searchsorted(x[0], x[1], right=right),
    )


def _cumulative(rng: Rng) -> Case:
    (shape, axis), is_sum = _shape(rng), bool(rng.random() < 0.75)
    dtype = _type(rng) if is_sum else pick(rng, ("float32", "float64"))
    dtype = "int32" if dtype == "uint8" else dtype
    count = shape[axis]
    spread = 2.0 / max(count, 4)
    given = Input(shape, dtype, 0, 100) if np.dtype(dtype).kind != "f" else Input(shape, dtype)
    if not is_sum:
        given = Input(shape, dtype, 1 - spread, 1 + spread)

    def exact(x: Any) -> list[Bounded]:
        if np.dtype(dtype).kind != "f":
            return [exactly(np.cumsum(x[0], axis, dtype=dtype))]
        value = x[0].astype("float64")
        share = gamma(count + 1, dtype) * (2 if dtype == "float64" else 1)
        if is_sum:
            return [Bounded(np.cumsum(value, axis), share * np.cumsum(np.abs(value), axis))]
        found = np.cumprod(value, axis)
        return [Bounded(found, 2 * share * np.abs(found))]

    name = "cumsum" if is_sum else "cumprod"
    return Case(
        name,
        [given],
        [Output(shape, dtype)],
        exact,
        f"axis {axis}",
        lambda x: getattr(_topi(), name)(x, axis),
        [Step("CumSum", ["x0", "axis"], "y0")] if is_sum else (),
        {"axis": np.asarray(axis, "int64")},
        lambda x, out: getattr(np, name)(x[0], axis, dtype=dtype, out=out[0]),
        lambda t, x, out: getattr(t, name)(x[0], axis, dtype=getattr(t, dtype), out=out[0]),
    )


def _bincount(rng: Rng) -> Case:
    count, bins = log_uniform(rng, *ELEMENTS), log_uniform(rng, 2, 4096)

    def in_te(x: Any) -> Any:
        from loopwright import te, topi

        ones = te.compute((count,), lambda i: te.const(1, "int64"), name="ones")
        return topi.scatter_elements(topi.full((bins,), "int64", 0), x, ones, 0, "add")

    return Case(
        "bincount",
        [Input((count,), "int64", 0, bins - 1)],
        [Output((bins,), "int64")],
        lambda x: [exactly(np.bincount(x[0], minlength=bins))],
        f"{bins} bins",
        in_te,
        # As exporters write it: ones added to zeros.
        [Step("ScatterElements", ["zeros", "x0", "ones"], "y0", {"reduction": "add"})],
        {"zeros": np.zeros(bins, "int64"), "ones": np.ones(count, "int64")},
        lambda x, out: np.bincount(x[0], minlength=bins),
        lambda t, x, out: t.bincount(x[0], minlength=bins),
    )


def _nonzero(rng: Rng) -> Case:
    shape, _ = _shape(rng)
    share = pick(rng, (0.01, 0.1, 0.5, 0.9))
    total = int(np.prod(shape))
    found = max(round(total * share), 1)

    def values(generator: np.random.Generator) -> Array:
        flat = np.zeros(total, bool)
        flat[generator.permutation(total)[:found]] = True
        return flat.reshape(shape)

    return Case(
        "nonzero",
        [Input(shape, "bool", make=values)],
        [Output((len(shape), found), "int64")],
        lambda x: [exactly(np.stack(np.nonzero(x[0])).astype("int64"))],
        f"{found} of {total}",
        None,
        [Step("NonZero", ["x0"], "y0")],
        {},
        lambda x, out: np.stack(np.nonzero(x[0])),
        lambda t, x, out: t.nonzero(x[0]).T,
    )


def _nms(rng: Rng) -> Case:
    count, limit = log_uniform(rng, 2**5, 2**11), pick(rng, (0.3, 0.5, 0.7))
    kept = pick(rng, (10, 100))

    def boxes(generator: np.random.Generator) -> Array:
        corner, size = generator.random((1, count, 2)), generator.uniform(0.02, 0.3, (1, count, 2))
        return np.concatenate([corner, corner + size], -1)

    def scores(generator: np.random.Generator) -> Array:
        return (generator.permutation(count) / count).reshape(1, 1, count)

    # How many are kept is known when the values are: the case is drawn with its own.
    seed = int(rng.integers(2**31))
    given_boxes = boxes(np.random.default_rng(seed)).astype("float32")
    given_scores = scores(np.random.default_rng(seed + 1)).astype("float32")
    places = suppressed(given_boxes[0], given_scores[0, 0], limit, kept)
    right = np.stack([np.zeros_like(places), np.zeros_like(places), places], -1)
    return Case(
        "nms",
        [
            Input((1, count, 4), "float32", make=lambda _: given_boxes),
            Input((1, 1, count), "float32", make=lambda _: given_scores),
        ],
        [Output(right.shape, "int64")],
        lambda x: [exactly(right)],
        f"above {limit}, {kept} at most",
        None,
        [Step("NonMaxSuppression", ["x0", "x1", "kept", "limit"], "y0")],
        {"kept": np.asarray([kept], "int64"), "limit": np.asarray([limit], "float32")},
        lambda x, out: _nms_numpy(x[0][0], x[1][0, 0], limit, kept),
        lambda t, x, out: _nms_torch(t, x, limit, kept),
    )


def _nms_numpy(boxes: Array, scores: Array, limit: float, kept: int) -> Array:
    places = suppressed(boxes, scores, limit, kept)
    return np.stack([np.zeros_like(places), np.zeros_like(places), places], -1)


def _nms_torch(t: Any, x: Any, limit: float, kept: int) -> Any:
    import torchvision

    places = torchvision.ops.nms(x[0][0], x[1][0, 0], limit)[:kept]
    return t.stack([t.zeros_like(places), t.zeros_like(places), places], -1)


def suppressed(boxes: Array, scores: Array, limit: float, kept: int) -> Array:
    """The places of the boxes that no better one covers, best first."""
    order = np.argsort(-scores, kind="stable")
    found: list[int] = []
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    while order.size and len(found) < kept:
        best, order = int(order[0]), order[1:]
        found.append(best)
        corner = np.minimum(boxes[order, 2:], boxes[best, 2:]) - np.maximum(boxes[order, :2], boxes[best, :2])
        shared = np.prod(np.maximum(corner, 0), axis=1)
        order = order[shared <= np.float32(limit) * (areas[order] + areas[best] - shared)]
    return np.asarray(found, "int64")


KINDS: dict[Callable[[Rng], Case], int] = {
    _sort: 16, _argsort: 12, _topk: 20, _unique: 8, _searchsorted: 10, _cumulative: 20, _nonzero: 6,
    _bincount: 4, _nms: 4,
}  # fmt: skip
