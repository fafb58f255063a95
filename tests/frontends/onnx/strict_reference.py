"""What ONNX's reference leaves unsaid: operators that check their operands before they compute.

The reference evaluator of the onnx package is written for models that are right. On others some of its operators give
numbers all the same: parts of a Split that do not make up the axis, indices taken modulo the size, windows larger than
the image. Those are written here anew, as the specification says, with a refusal for everything else; all others are
the package's own.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

import numpy as np
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


@dataclass
class Outcome:
    """What the reference makes of a call: results, or why it has none; where ONNX does not say, either way is right."""

    results: list[np.ndarray] = field(default_factory=list)
    refusal: str | None = None
    unspecified: bool = False


class Unspecified(Exception):
    """ONNX does not say what the operator gives here."""


def reference_of(proto: ModelProto, arrays: dict[str, np.ndarray]) -> Outcome:
    """What the reference says to a call."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            _stored.set(frozenset(tensor.name for tensor in proto.graph.initializer))
            evaluator = ReferenceEvaluator(proto, new_ops=list(_STRICT))
            found = evaluator.run(None, {name: array.copy() for name, array in arrays.items()})
        except Unspecified as error:
            return Outcome(refusal=str(error), unspecified=True)
        except Exception as error:  # numpy's words for what does not fit: any of them is a refusal
            return Outcome(refusal=f"{type(error).__name__}: {error}")
    return Outcome([np.asarray(one) for one in found])


def require(condition: bool, why: str) -> None:
    if not condition:
        raise ValueError(why)


def _from_front(indices: np.ndarray, size: int) -> np.ndarray:
    require(bool(((indices >= -size) & (indices < size)).all()), f"an index is outside the size {size}")
    return np.where(indices < 0, indices + size, indices)


class Gather(OpRun):
    def _run(self, x: Any, indices: Any, axis: int = 0) -> Any:
        return (np.take(x, _from_front(indices, x.shape[axis]), axis=axis),)


class GatherElements(OpRun):
    def _run(self, x: Any, indices: Any, axis: int = 0) -> Any:
        require(x.ndim == indices.ndim, "ranks differ")
        axis = axis % x.ndim
        require(
            all(a <= b or k == axis for k, (a, b) in enumerate(zip(indices.shape, x.shape))), "indices are too large"
        )
        places = _from_front(indices, x.shape[axis])
        part = x[tuple(slice(None) if k == axis else slice(size) for k, size in enumerate(indices.shape))]
        return (np.take_along_axis(part, places, axis),)


def _tuples(x: np.ndarray, indices: np.ndarray, batch: int) -> tuple[np.ndarray, ...]:
    """Index arrays of the first axes of `x` for the tuples in the last axis of `indices`."""
    depth = indices.shape[-1]
    require(batch + depth <= x.ndim, "a tuple is too long")
    require(indices.shape[:batch] == x.shape[:batch], "batches differ")
    around = np.indices(indices.shape[:-1], sparse=True)[:batch] if batch else ()
    return (*around, *(_from_front(indices[..., k], x.shape[batch + k]) for k in range(depth)))


class GatherND(OpRun):
    def _run(self, x: Any, indices: Any, batch_dims: int = 0) -> Any:
        return (x[_tuples(x, indices, batch_dims)],)


_UFUNCS: Final = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


class ScatterElements(OpRun):
    def _run(self, x: Any, indices: Any, updates: Any, axis: int = 0, reduction: str = "none") -> Any:
        require(indices.shape == updates.shape and indices.ndim == x.ndim, "shapes differ")
        axis = axis % x.ndim
        require(
            all(a <= b or k == axis for k, (a, b) in enumerate(zip(indices.shape, x.shape))), "indices are too large"
        )
        places = list(np.indices(indices.shape))
        places[axis] = _from_front(indices, x.shape[axis])
        out = x.copy()
        if reduction == "none":
            out[tuple(places)] = updates
        else:
            _UFUNCS[reduction].at(out, tuple(places), updates)
        return (out,)


class ScatterND(OpRun):
    def _run(self, x: Any, indices: Any, updates: Any, reduction: str = "none") -> Any:
        depth = indices.shape[-1]
        places = _tuples(x, indices, 0)
        require(updates.shape == (*indices.shape[:-1], *x.shape[depth:]), "the updates have another shape")
        out = x.copy()
        if reduction == "none":
            out[places] = updates
        else:
            _UFUNCS[reduction].at(out, places, updates)
        return (out,)


class Split(OpRun):
    def __init__(self, node: Any, params: Any) -> None:
        super().__init__(node, params)
        self.count = len(node.output)

    def _run(self, x: Any, split: Any = None, axis: int = 0, num_outputs: int | None = None) -> Any:
        size = x.shape[axis]
        if split is None:
            part = -(-size // self.count)
            split = [*[part] * (self.count - 1), size - part * (self.count - 1)]
            if split[-1] < 0:
                raise Unspecified("nothing is left for the last part")
        require(min(split) >= 0 and sum(split) == size, "the parts do not make up the axis")
        return tuple(np.split(x, np.cumsum(split)[:-1], axis))


class TopK(OpRun):
    def _run(self, x: Any, k: Any, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:
        count = int(k[0])
        require(0 <= count <= x.shape[axis], "k is larger than the axis")
        order = np.argsort(-x if largest else x, axis=axis, kind="stable")
        places = np.take(order, np.arange(count), axis=axis)
        return np.take_along_axis(x, places, axis), places.astype(np.int64)


class Pad(OpRun):
    def _run(self, x: Any, pads: Any, value: Any = None, axes: Any = None, mode: str = "constant") -> Any:
        over = range(x.ndim) if axes is None else [int(axis) % x.ndim for axis in axes]
        require(len(pads) == 2 * len(over), "there are not two pads for each axis")
        for place, axis in enumerate(over):
            before, after = int(pads[place]), int(pads[len(over) + place])
            size = x.shape[axis]
            if size + min(before, 0) + min(after, 0) < 0:
                raise Unspecified("more is cut off than there is")
            x = np.take(x, np.arange(max(-before, 0), size - max(-after, 0)), axis)
            widths = [(0, 0)] * x.ndim
            widths[axis] = (max(before, 0), max(after, 0))
            if mode == "constant":
                x = np.pad(x, widths, constant_values=0 if value is None else np.asarray(value).reshape(()))
            elif any(widths[axis]):
                require(x.shape[axis] > 0, "nothing to pad with")
                if mode == "reflect" and max(widths[axis]) >= x.shape[axis]:
                    # A reflection that skips the edge has one cell less than the axis. ONNX's text does not say how to
                    # go on behind it, and its example that did (2 pads, 2 cells) was taken back as not valid.
                    raise Unspecified("more is reflected than there is")
                x = np.pad(x, widths, mode=mode)
        return (x,)


class LayerNormalization(OpRun):
    def _run(self, x: Any, scale: Any, bias: Any = None, axis: int = -1, epsilon: float = 1e-5, **_: Any) -> Any:
        axes = tuple(range(axis % x.ndim, x.ndim))
        wide = x.astype("d")
        centred = wide - wide.mean(axes, keepdims=True)
        y = centred / np.sqrt((centred**2).mean(axes, keepdims=True) + epsilon)
        for one in (scale, bias):
            require(one is None or np.broadcast_shapes(one.shape, x.shape) == x.shape, "scale or bias is too large")
        y = y * scale + (0 if bias is None else bias)
        return (y.astype(x.dtype),)


class Gemm(OpRun):
    def _run(
        self, a: Any, b: Any, c: Any = None, alpha: float = 1, beta: float = 1, transA: int = 0, transB: int = 0
    ) -> Any:
        y = (a.T if transA else a) @ (b.T if transB else b) * alpha
        if c is not None:
            require(np.broadcast_shapes(c.shape, y.shape) == y.shape, "the bias is too large")
            y = y + c * beta
        return (y.astype(a.dtype),)


class PRelu(OpRun):
    def _run(self, x: Any, slope: Any) -> Any:
        require(np.broadcast_shapes(slope.shape, x.shape) == x.shape, "the slope is too large")
        return (np.where(x < 0, x * slope, x),)


class Softmax(OpRun):
    def _run(self, x: Any, axis: int = -1) -> Any:
        if x.size == 0:
            return (x,)
        grown = np.exp((x - x.max(axis, keepdims=True)).astype("d"))
        return ((grown / grown.sum(axis, keepdims=True)).astype(x.dtype),)


class LogSoftmax(OpRun):
    """The package's takes the logarithm of a softmax, which is -inf where that is too small a number."""

    def _run(self, x: Any, axis: int = -1) -> Any:
        if x.size == 0:
            return (x,)
        shifted = (x - x.max(axis, keepdims=True)).astype("d")
        return ((shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))).astype(x.dtype),)


class Mean(OpRun):
    """The package's adds in place, which does not broadcast the first operand."""

    def _run(self, *operands: Any) -> Any:
        total = operands[0]
        for operand in operands[1:]:
            total = total + operand
        return ((total / len(operands)).astype(operands[0].dtype),)


class Einsum(OpRun):
    """ONNX's text has one size for a letter; numpy repeats one of 1."""

    def _run(self, *operands: Any, equation: str = "") -> Any:
        terms = equation.replace(" ", "").split("->")[0].split(",")
        sizes: dict[str, set[int]] = {}
        for term, operand in zip(terms, operands, strict=True):
            if "." not in term:
                for letter, size in zip(term, operand.shape, strict=True):
                    sizes.setdefault(letter, set()).add(size)
        found = (np.einsum(equation, *operands),)
        if any(len(each) > 1 for each in sizes.values()):
            raise Unspecified("a letter stands for 1 and for another size")
        return found


class Flatten(OpRun):
    def _run(self, x: Any, axis: int = 1) -> Any:
        axis = axis + x.ndim if axis < 0 else axis
        return (x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:])),)


class Tile(OpRun):
    def _run(self, x: Any, repeats: Any) -> Any:
        require(len(repeats) == x.ndim, "one count for each dimension")
        return (np.tile(x, repeats),)


class GlobalMaxPool(OpRun):
    def _run(self, x: Any) -> Any:
        if 0 in x.shape[2:]:
            raise Unspecified("the greatest of no elements")
        return (x.max(tuple(range(2, x.ndim)), keepdims=True),)


class GlobalAveragePool(OpRun):
    def _run(self, x: Any) -> Any:
        return (x.astype("d").mean(tuple(range(2, x.ndim)), keepdims=True).astype(x.dtype),)


_stored: ContextVar[frozenset[str]] = ContextVar("stored")  # names of the initialisers of the model


class Reshape(OpRun):
    def __init__(self, node: Any, params: Any) -> None:
        super().__init__(node, params)
        self.is_stored = node.input[1] in _stored.get()

    def _run(self, x: Any, shape: Any, allowzero: int = 0) -> Any:
        if not self.is_stored and not allowzero and any(size == 0 for size in shape):
            # A 0 in a shape keeps a size. Where the model computes it, from sizes of a call, it means no elements.
            raise Unspecified("a size that is computed is 0")
        sizes = [x.shape[k] if size == 0 and not allowzero else int(size) for k, size in enumerate(shape)]
        if -1 in sizes and 0 in sizes:
            raise Unspecified("what is left of nothing")
        return (x.reshape(sizes),)


# Windows.


class _Windows:
    """Where the windows of a convolution or pool are along each spatial axis."""

    def __init__(self, sizes: Sequence[int], kernel: Sequence[int], attrs: dict[str, Any], pool: bool) -> None:
        count = len(kernel)
        self.kernel = list(kernel)
        self.strides = list(attrs.get("strides") or [1] * count)
        self.dilations = list(attrs.get("dilations") or [1] * count)
        pads = list(attrs.get("pads") or [0] * (2 * count))
        self.before, self.after = pads[:count], pads[count:]
        self.sizes = list(sizes)
        how = attrs.get("auto_pad") or "NOTSET"
        if how == "VALID":
            self.before, self.after = [0] * count, [0] * count
        self.spans = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations)]
        self.out: list[int] = []
        for k in range(count):
            if self.sizes[k] == 0:
                raise Unspecified("windows over nothing")
            if how.startswith("SAME"):
                out = -(-self.sizes[k] // self.strides[k])
                needed = max(0, (out - 1) * self.strides[k] + self.spans[k] - self.sizes[k])
                self.before[k] = needed // 2 if how == "SAME_UPPER" else needed - needed // 2
                self.after[k] = needed - self.before[k]
            else:
                room = self.sizes[k] + self.before[k] + self.after[k] - self.spans[k]
                require(room >= 0, "the window is larger than the image")
                out = room // self.strides[k] + 1
                if pool and attrs.get("ceil_mode"):
                    out = -(-room // self.strides[k]) + 1
                    if (out - 1) * self.strides[k] >= self.sizes[k] + self.before[k]:
                        out -= 1  # a window that starts in the padding behind the end is none
            self.out.append(out)

    def places(self, axis: int, at: int) -> np.ndarray:
        """The elements of the window number `at`, counted from the first of the image."""
        return at * self.strides[axis] - self.before[axis] + np.arange(self.kernel[axis]) * self.dilations[axis]


def _given(op: OpRun, **attrs: Any) -> dict[str, Any]:
    return {name: value for name, value in attrs.items() if value is not None}


class Conv(OpRun):
    def _run(self, x: Any, w: Any, b: Any = None, group: int = 1, kernel_shape: Any = None, **attrs: Any) -> Any:
        require(x.shape[1] == w.shape[1] * group and w.shape[0] % group == 0, "channels do not fit")
        windows = _Windows(x.shape[2:], w.shape[2:], attrs, pool=False)
        far = [
            max(0, (o - 1) * s + n - size - low)
            for o, s, n, size, low in zip(windows.out, windows.strides, windows.spans, windows.sizes, windows.before)
        ]
        padded = np.pad(x.astype("d"), [(0, 0), (0, 0), *zip(windows.before, far)])
        y = np.zeros((x.shape[0], w.shape[0], *windows.out))
        each, made = w.shape[1], w.shape[0] // group
        for at in product(*map(range, windows.out)):
            cut = tuple(
                slice(p * s, p * s + n, d) for p, s, n, d in zip(at, windows.strides, windows.spans, windows.dilations)
            )
            for g in range(group):
                part = padded[(slice(None), slice(g * each, (g + 1) * each), *cut)]
                axes = list(range(1, part.ndim))
                y[(slice(None), slice(g * made, (g + 1) * made), *at)] = np.tensordot(
                    part, w[g * made : (g + 1) * made].astype("d"), (axes, axes)
                )
        if b is not None:
            y += b.reshape(-1, *[1] * (x.ndim - 2))
        return (y.astype(x.dtype),)


class ConvTranspose(OpRun):
    def _run(self, x: Any, w: Any, b: Any = None, **attrs: Any) -> Any:
        """Each element adds a kernel's worth to the result."""
        require(x.shape[1] == w.shape[0] and (attrs.get("group") or 1) == 1, "channels do not fit")
        windows = _Windows([1 << 20] * (x.ndim - 2), w.shape[2:], {**attrs, "pads": None, "auto_pad": None}, pool=False)
        sizes = [(n - 1) * s + k for n, s, k in zip(x.shape[2:], windows.strides, windows.spans)]
        if 0 in x.shape[2:]:
            raise Unspecified("no element to begin with")
        y = np.zeros((x.shape[0], w.shape[1], *sizes))
        for at in product(*map(range, x.shape[2:])):
            cut = tuple(
                slice(p * s, p * s + n, d) for p, s, n, d in zip(at, windows.strides, windows.spans, windows.dilations)
            )
            y[(slice(None), slice(None), *cut)] += np.tensordot(x[(..., *at)].astype("d"), w.astype("d"), ([1], [0]))
        pads = list(attrs.get("pads") or [0] * (2 * len(sizes)))
        ends = [size - pad for size, pad in zip(sizes, pads[len(sizes) :])]
        if not all(low < high for low, high in zip(pads, ends)):
            raise Unspecified("all is cut off")
        return (y[(slice(None), slice(None), *map(slice, pads, ends))].astype(x.dtype),)


class _Pool(OpRun):
    def _pooled(self, x: Any, kernel: Sequence[int], attrs: dict[str, Any], average: bool) -> Any:
        windows = _Windows(x.shape[2:], kernel, attrs, pool=True)
        y = np.zeros((*x.shape[:2], *windows.out))
        for at in product(*map(range, windows.out)):
            inside, counted = [], 1
            for axis, p in enumerate(at):
                places = windows.places(axis, p)
                size = windows.sizes[axis]
                inside.append(places[(places >= 0) & (places < size)])
                counted *= int((places < size + windows.after[axis]).sum())
            part = x[(slice(None), slice(None), *np.ix_(*inside))]
            part = part.reshape(*x.shape[:2], math.prod(part.shape[2:]))
            if not average:
                require(part.shape[-1] > 0, "a window of nothing")
                y[(..., *at)] = part.max(-1) if part.size else 0
            else:
                count = counted if attrs.get("count_include_pad") else part.shape[-1]
                require(count > 0, "a window of nothing")
                y[(..., *at)] = part.astype("d").sum(-1) / count
        return (y.astype(x.dtype),)


class MaxPool(_Pool):
    def _run(self, x: Any, kernel_shape: Any = None, storage_order: Any = None, **attrs: Any) -> Any:
        return self._pooled(x, kernel_shape, attrs, average=False)


class AveragePool(_Pool):
    def _run(self, x: Any, kernel_shape: Any = None, **attrs: Any) -> Any:
        return self._pooled(x, kernel_shape, attrs, average=True)


_STRICT: Final = (
    Gather, GatherElements, GatherND, ScatterElements, ScatterND, Split, TopK, Pad, LayerNormalization, Gemm, PRelu,
    Softmax, LogSoftmax, Mean, Einsum, Reshape, Flatten, Tile, GlobalMaxPool, GlobalAveragePool, Conv, ConvTranspose,
    MaxPool, AveragePool,
)  # fmt: skip
for _each in _STRICT:
    _each.op_domain = ""
