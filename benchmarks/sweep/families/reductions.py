"""Reductions over any axes: sum, mean, variance, max, min, prod, argmax, argmin, any, all, logsumexp, the norm.

Distribution: 2^15 to 2^24 bytes (log-uniform), 2^22 elements at most, ranks 1 to 5, last axis by `sizes.extent`, any
subset of the axes (each equally likely; places along one axis), keepdims for half of them. Types: float32 60 %, float64
15, int32 10, int64 8, uint8 7 (sums of bytes are of int32 in them; means, products, norms and logsumexp are of floats).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bench.bounds import gamma
from benchmarks.bench.case import Bounded
from benchmarks.sweep.case import Case, Input, Output, Step
from benchmarks.sweep.errors import Rounded, exactly
from benchmarks.sweep.sizes import Rng, elements, pick, shape_of, some_axes, without

BYTES = (2**15, 2**24)
KINDS = {
    "sum": 24, "mean": 14, "max": 14, "min": 6, "prod": 5, "argmax": 10, "argmin": 5, "any": 5, "all": 5,
    "logsumexp": 6, "norm": 6, "var": 6,
}  # fmt: skip
TYPES = {"float32": 60, "float64": 15, "int32": 10, "int64": 8, "uint8": 7}
ONNX = {
    "sum": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax", "min": "ReduceMin", "prod": "ReduceProd",
    "logsumexp": "ReduceLogSumExp", "norm": "ReduceL2",
}  # fmt: skip


def draw(rng: Rng) -> Case:
    """A case."""
    kind = pick(rng, list(KINDS), list(KINDS.values()))
    dtype = pick(rng, list(TYPES), list(TYPES.values()))
    if kind in ("any", "all"):
        dtype = "bool"
    elif kind in ("mean", "prod", "logsumexp", "norm", "var"):
        dtype = pick(rng, ("float32", "float64"), (80, 20))
    elif kind == "sum" and dtype == "uint8":
        dtype = "int32"
    shape = shape_of(rng, elements(dtype, *BYTES))
    keep = bool(rng.random() < 0.5)
    is_place = kind in ("argmax", "argmin")
    axes = (int(rng.integers(len(shape))),) if is_place else some_axes(rng, len(shape))
    return reduction(kind, dtype, shape, axes, keep)


def reduction(kind: str, dtype: str, shape: tuple[int, ...], axes: tuple[int, ...], keep: bool) -> Case:
    """The case of a reduction."""
    is_place = kind in ("argmax", "argmin")
    count = int(np.prod([shape[axis] for axis in axes]))
    # A product of many numbers stays near 1 where each is near 1.
    spread = 2.0 / max(count, 4)
    low, high = (1 - spread, 1 + spread) if kind == "prod" else (-1, 1) if np.dtype(dtype).kind == "f" else (0, 100)
    given = Input(shape, dtype, low, high)
    if dtype == "bool" and kind != "sum":  # rarely decided by the first elements
        share = 1 / max(count, 2)
        given = Input(shape, dtype, make=lambda g: (g.random(shape, dtype="float32") < share) ^ (kind == "all"))
    out = without(shape, axes, keep)

    def exact(x: Any) -> list[Bounded]:
        value = x[0]
        if is_place:
            return [exactly(getattr(np, kind)(value, axis=axes[0], keepdims=keep).astype("int64"))]
        if dtype == "bool" or (kind in ("sum", "max", "min") and np.dtype(dtype).kind != "f"):
            return [exactly(np.asarray(getattr(np, kind)(value, axis=axes, keepdims=keep)).astype(dtype))]
        r = Rounded.of(value)
        if kind == "sum":
            return [r.sum(axes, keep).bounded()]
        if kind == "mean":
            return [r.mean(axes, keep).bounded()]
        if kind == "prod":
            right = np.prod(r.exact, axis=axes, keepdims=keep)
            return [Bounded(np.asarray(right), (gamma(count + 2, dtype) * 2) * np.abs(right))]
        if kind == "norm":
            return [(r * r).sum(axes, keep).sqrt().bounded()]
        if kind == "var":
            d = r - r.mean(axes)
            return [(d * d).mean(axes, keep).bounded(2)]
        if kind == "logsumexp":
            most = r.max(axes)
            # ours may leave out the greatest: e^1 at most here
            total = (r - most).exp().sum(axes, keep)
            made = total.monotone("log", np.log) + (r.max(axes, keep))
            return [made.bounded(4)]
        return [exactly(np.asarray(getattr(np, kind)(value, axis=axes, keepdims=keep)))]

    def in_te(x: Any) -> Any:
        from loopwright import topi

        if kind == "mean":
            return topi.divide(topi.sum(x, axes, keep), float(count))
        if kind == "var":
            d = topi.subtract(x, topi.divide(topi.sum(x, axes, True), float(count)))
            return topi.divide(topi.sum(topi.multiply(d, d), axes, keep), float(count))
        if kind == "norm":
            return topi.sqrt(topi.sum(topi.multiply(x, x), axes, keep))
        if kind == "logsumexp":
            return topi.log(topi.sum(topi.exp(x), axes, keep))
        if is_place:
            return getattr(topi, kind)(x, axes[0], keep)
        return getattr(topi, kind)(x, axes, keep)

    def with_numpy(x: Any, out: Any) -> Any:
        if is_place:
            return getattr(np, kind)(x[0], axis=axes[0], keepdims=keep)
        if kind == "norm":
            return np.linalg.norm(x[0], axis=axes[0], keepdims=keep) if len(axes) == 1 else np.sqrt(
                np.sum(np.square(x[0]), axis=axes, keepdims=keep)
            )  # fmt: skip
        if kind == "logsumexp":
            return np.log(np.sum(np.exp(x[0]), axis=axes, keepdims=keep))
        if kind == "sum" and np.dtype(dtype).kind != "f":
            return np.sum(x[0], axis=axes, keepdims=keep, dtype=dtype, out=out[0])
        return getattr(np, kind)(x[0], axis=axes, keepdims=keep, out=out[0])

    names = {"max": "amax", "min": "amin"}

    def with_torch(t: Any, x: Any, out: Any) -> Any:
        if is_place:
            return getattr(t, kind)(x[0], dim=axes[0], keepdim=keep)
        if kind == "norm":
            return t.linalg.vector_norm(x[0], dim=axes, keepdim=keep)
        if kind == "var":
            return t.var(x[0], dim=axes, correction=0, keepdim=keep)
        if kind == "sum":
            return t.sum(x[0], dim=axes, keepdim=keep, dtype=getattr(t, dtype))
        if kind == "prod":
            if len(axes) > 1:
                if len(axes) < len(shape) or keep:
                    raise NotImplementedError("several axes")
                return t.prod(x[0])
            return t.prod(x[0], dim=axes[0], keepdim=keep)
        return getattr(t, names.get(kind, kind))(x[0], dim=axes, keepdim=keep)

    model: list[Step] = []
    constants = {}
    if is_place:
        model = [Step(kind.replace("arg", "Arg").replace("max", "Max").replace("min", "Min"), ["x0"], "y0",
                      {"axis": axes[0], "keepdims": int(keep)})]  # fmt: skip
    elif kind in ONNX:
        model = [Step(ONNX[kind], ["x0", "axes"], "y0", {"keepdims": int(keep)})]
        constants = {"axes": np.asarray(axes, "int64")}
    elif kind == "var":
        model = [
            Step("ReduceMean", ["x0", "axes"], "m", {"keepdims": 1}),
            Step("Sub", ["x0", "m"], "d"),
            Step("Mul", ["d", "d"], "s"),
            Step("ReduceMean", ["s", "axes"], "y0", {"keepdims": int(keep)}),
        ]
        constants = {"axes": np.asarray(axes, "int64")}
    return Case(
        kind,
        [given],
        [Output(out, "int64" if is_place else dtype)],
        exact,
        f"over {','.join(map(str, axes))}{' keepdims' if keep else ''}",
        kernel=in_te,
        model=model,
        constants=constants,
        numpy=with_numpy,
        torch=with_torch,
        kernel_types=["int32"] if is_place else (),
    )
