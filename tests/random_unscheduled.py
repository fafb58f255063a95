"""Random programs of te and topi that nobody has scheduled, each with arrays, and what float64 says of its results.

`random_unscheduled(seed)` makes one to five stages: element-wise work, broadcasts, casts, reductions over any axes,
matmuls, convolutions, softmax and norms, scans, gathers, transposes, reshapes, joins, slices, pads and pooling, of all
dtypes, with shapes from 0 to a few large primes, some of them symbolic, and one or several outputs. Rules schedule
them (`check_rules.py`).

Inputs are small integers. As long as a value stays an integer that its type can hold, a result has to be right to the
bit; after that a bound on the error goes along with it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes  # noqa: F401  # gives numpy the name bfloat16
import numpy as np

from loopwright import te, tir, topi
from loopwright.runtime.errors import LoopwrightError

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 32, 33, 64, 67, 100, 128, 129, 255, 257)
LONG = (1000, 1021, 1024, 2048, 4099, 16384, 70001)
DTYPES = ("float32",) * 8 + ("float16", "bfloat16", "float64", "int32", "int32", "int8", "uint8", "int16", "int64")
UNIT = {"float64": 2.0**-52, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
TINY = {"float64": 1e-300, "float32": 1e-37, "float16": 6e-8, "bfloat16": 1e-37}
EXACT = {"float64": 2.0**53, "float32": 2.0**24, "float16": 2.0**11, "bfloat16": 2.0**8}
CELLS, MANY_CELLS = 1 << 14, 1 << 18  # of a tensor, in most programs and in a few
WORK, MUCH_WORK = 1 << 19, 1 << 22  # iterations of a stage

Array = np.ndarray
Size = tuple[Any, int]  # a size as the program has it, a number or a variable, and the number that arrays have


class Unfit(Exception):
    """This operation cannot be added here."""


@dataclass
class Value:
    """A tensor, the sizes of its axes, and what float64 says that it holds, each cell with how far it may be off."""

    tensor: te.Tensor
    sizes: tuple[Size, ...]
    value: Array
    error: Array

    @property
    def dtype(self) -> str:
        return str(self.tensor.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple([extent for _, extent in self.sizes])

    @property
    def is_exact(self) -> bool:
        return not self.error.any()


@dataclass
class Unscheduled:
    """A program; `steps` says in words what it computes."""

    seed: int
    args: list[te.Tensor]
    inputs: list[Array]
    outputs: list[Value]
    steps: list[str]

    def __str__(self) -> str:
        return f"seed {self.seed}:\n  " + "\n  ".join(self.steps)


def random_unscheduled(seed: int) -> Unscheduled:
    """A program; the same one for the same seed."""
    return _Maker(random.Random(seed), seed).make()


class _Maker:
    def __init__(self, rng: random.Random, seed: int) -> None:
        self.rng, self.seed = rng, seed
        self.dtype = rng.choice(DTYPES)
        is_large = rng.random() < 0.2
        self.cells, self.work = (MANY_CELLS, MUCH_WORK) if is_large else (CELLS, WORK)
        self.extents = EXTENTS + LONG if is_large else EXTENTS
        self.known_sizes: list[Size] = []
        self.placeholders: list[te.Tensor] = []
        self.inputs: list[Array] = []
        self.values: list[Value] = []  # that stages may read
        self.stages: list[Value] = []
        self.steps: list[str] = []

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def make(self) -> Unscheduled:
        kinds = [name for name, weight in OPERATIONS.items() for _ in range(weight)]
        wanted = self.rng.choice((1, 1, 2, 2, 3, 3, 4, 5))
        for _ in range(60):
            if len(self.stages) >= wanted:
                break
            kind = self.rng.choice(kinds)
            before = len(self.placeholders), len(self.values), len(self.stages), len(self.steps)
            try:
                getattr(self, kind)()
            except (Unfit, LoopwrightError):  # topi refuses what it does not compute
                for items, count in zip((self.placeholders, self.values, self.stages, self.steps), before, strict=True):
                    del items[count:]
                del self.inputs[before[0] :]
        if not self.stages:
            self.unary()
        read = {tensor for value in self.stages for tensor in value.tensor.op.input_tensors}
        outputs = [value for value in self.stages if value.tensor not in read or self.chance(0.15)]
        outputs = list({id(value.tensor): value for value in outputs}.values())
        used = _inputs_of([value.tensor for value in outputs])
        given = [(t, a) for t, a in zip(self.placeholders, self.inputs, strict=True) if t in used]
        args = [tensor for tensor, _ in given] + [value.tensor for value in outputs]
        return Unscheduled(self.seed, args, [array for _, array in given], outputs, self.steps)

    # --- operands ---

    def size(self, most: int) -> Size:
        fitting = [size for size in self.known_sizes if size[1] <= most]
        if fitting and self.chance(0.3):
            return self.rng.choice(fitting)
        extent = 0 if self.chance(0.03) else self.rng.choice([one for one in self.extents if one <= max(most, 1)])
        made: Size = (te.var(f"n{len(self.known_sizes)}"), extent) if self.chance(0.12) else (extent, extent)
        self.known_sizes.append(made)
        return made

    def new_sizes(self, rank: int) -> tuple[Size, ...]:
        left, result = self.cells, []
        for _ in range(rank):
            size = self.size(left)
            left //= max(size[1], 1)
            result.append(size)
        self.rng.shuffle(result)
        return tuple(result)

    def placeholder(self, sizes: Sequence[Size], dtype: str | None = None, low: int = -2, high: int = 2) -> Value:
        dtype = dtype or self.dtype
        low = max(low, 0) if dtype.startswith("uint") else low
        tensor = te.placeholder([size for size, _ in sizes], dtype, name=f"A{len(self.placeholders)}")
        data = np.random.default_rng([self.seed, len(self.placeholders)]).integers(
            low, high + 1, [extent for _, extent in sizes]
        )
        array = np.asarray(data).astype(dtype)
        self.placeholders.append(tensor)
        self.inputs.append(array)
        value = np.asarray(array, "float64")
        self.steps.append(f"{tensor.name}: {dtype}{_words(sizes)}")
        return Value(tensor, tuple(sizes), value, np.zeros(value.shape))

    def operand(self, *ranks: int, sizes: Sequence[Size] | None = None, dtype: str | None = None) -> Value:
        """A tensor computed before or given, of one of these ranks, or of these sizes."""
        fitting = [
            value
            for value in self.values
            if (not ranks or len(value.sizes) in ranks)
            and (sizes is None or _same(value.sizes, sizes))
            and (dtype is None or value.dtype == dtype)
        ]
        if fitting and self.chance(0.8):
            return self.rng.choice(fitting[-3:])
        if sizes is None:
            sizes = self.new_sizes(self.rng.choice(ranks or (1, 1, 2, 2, 2, 3, 3, 4)))
        made = self.placeholder(sizes, dtype)
        self.values.append(made)
        return made

    def put(
        self, words: str, tensor: te.Tensor, sizes: Sequence[Size], value: Array, error: Array | None = None
    ) -> None:
        """A stage. Its value is rounded to the type: to nothing while it is an integer that the type holds."""
        dtype = str(tensor.dtype)
        value = np.asarray(value, "float64")
        assert value.shape == tuple([extent for _, extent in sizes]), (words, value.shape, sizes)
        error = np.zeros(value.shape) if error is None else np.broadcast_to(np.asarray(error, "float64"), value.shape)
        largest = np.abs(value).max(initial=0)
        if dtype not in UNIT:
            if error.any() or largest > (np.iinfo(dtype).max if dtype != "bool" else 1) or value.min(initial=0) < (
                np.iinfo(dtype).min if dtype != "bool" else 0
            ):
                raise Unfit
        elif error.any() or largest > EXACT[dtype] or not np.array_equal(value, np.round(value)):
            error = error + UNIT[dtype] * 1.01 * (np.abs(value) + error) + TINY[dtype]
        if not np.isfinite(value).all() or (dtype == "float16" and largest > 30000) or largest > 1e30:
            raise Unfit
        made = Value(tensor, tuple(sizes), value, error)
        self.values.append(made)
        self.stages.append(made)
        self.steps.append(f"{tensor.name} = {words}: {dtype}{_words(sizes)}")

    def name(self) -> str:
        return f"T{len(self.stages)}"

    def sum_error(self, value: Array, error: Array, axes: Any, dtype: str) -> Array:
        """The error of sums in any order; 0 while they are exact."""
        total = (np.abs(value) + error).sum(axis=axes)
        if dtype not in UNIT:
            return np.zeros(total.shape)
        if not error.any() and total.max(initial=0) <= EXACT[dtype] and np.array_equal(value, np.round(value)):
            return np.zeros(total.shape)
        count = value.size // max(total.size, 1)
        if (count + 4) * UNIT[dtype] > 0.1:
            raise Unfit
        return error.sum(axis=axes) + 1.2 * (count + 4) * UNIT[dtype] * total

    # --- element-wise ---

    def unary(self) -> None:
        x = self.operand()
        kinds = ["abs", "twice", "clip", "negate", "index"]
        if x.dtype in UNIT:
            kinds += ["exp", "tanh", "sigmoid", "root"]
        else:
            kinds += ["quotient", "shift"]
        kind = self.rng.choice(kinds)
        t, v, e = x.tensor, x.value, x.error
        unit = UNIT.get(x.dtype, 0.0)
        if kind == "negate" and x.dtype.startswith("uint"):
            kind = "twice"
        one = {
            "abs": (lambda *i: te.abs(t(*i)), np.abs(v), e),
            "twice": (lambda *i: t(*i) + t(*i), 2 * v, 2 * e),
            "clip": (lambda *i: te.max(te.min(t(*i), tir.const(1, x.dtype)), tir.const(0, x.dtype)), v.clip(0, 1), e),
            "negate": (lambda *i: -t(*i), -v, e),
            "quotient": (lambda *i: te.floordiv(t(*i), tir.const(3, x.dtype)), np.floor(v / 3), e),
            "shift": (lambda *i: t(*i) * tir.const(3, x.dtype) - tir.const(0, x.dtype), v * 3, e),
        }
        if kind in ("exp", "tanh", "sigmoid", "root"):
            if np.abs(v).max(initial=0) > 6:
                raise Unfit
            result = {"exp": np.exp(v), "tanh": np.tanh(v), "sigmoid": 1 / (1 + np.exp(-v))}
            result["root"] = np.sqrt(np.abs(v) + 1)
            steep = np.exp(v + e) if kind == "exp" else 1.0
            function = {"exp": te.exp, "tanh": te.tanh, "sigmoid": te.sigmoid}.get(kind)
            body = (
                (lambda *i: function(t(*i)))
                if function is not None
                else (lambda *i: te.sqrt(te.abs(t(*i)) + tir.const(1, x.dtype)))
            )
            one[kind] = (body, result[kind], e * steep + 12 * unit * (np.abs(result[kind]) + e))
        if kind == "index":  # a triangle
            if len(x.sizes) < 2:
                raise Unfit
            rows, columns = np.indices(x.shape)[-2:]
            one[kind] = (
                lambda *i: tir.if_then_else(i[-2] >= i[-1], t(*i), tir.const(0, x.dtype)),
                np.where(rows >= columns, v, 0),
                e,
            )
        body, value, error = one[kind]
        tensor = te.compute([s for s, _ in x.sizes], body, name=self.name())
        self.put(f"{kind}({t.name})", tensor, x.sizes, value, error)

    def cast(self) -> None:
        x = self.operand()
        dtype = self.rng.choice(DTYPES)
        if (dtype not in UNIT and not x.is_exact) or (dtype.startswith("uint") and x.value.min(initial=0) < 0):
            raise Unfit
        tensor = te.compute([s for s, _ in x.sizes], lambda *i: x.tensor(*i).astype(dtype), name=self.name())
        self.put(f"{dtype}({x.tensor.name})", tensor, x.sizes, x.value, x.error)

    def binary(self) -> None:
        """Two tensors, of which the second may lack axes, or have one cell along some."""
        x = self.operand()
        kept = [k for k in range(len(x.sizes)) if not self.chance(0.35)]
        first = kept[0] if kept else len(x.sizes)
        sizes = [x.sizes[k] if k in kept else (1, 1) for k in range(first, len(x.sizes))]
        y = self.operand(sizes=sizes, dtype=x.dtype)
        kind = self.rng.choice(["add", "subtract", "multiply", "maximum", "minimum", "select"])
        a, b = x.value, y.value
        if kind == "subtract" and x.dtype.startswith("uint"):
            kind = "maximum"
        error = {
            "multiply": np.abs(a) * y.error + np.abs(b) * x.error + x.error * y.error,
            "maximum": np.maximum(x.error, y.error),
            "minimum": np.maximum(x.error, y.error),
        }.get(kind, x.error + y.error)
        if kind == "select":
            if not (x.is_exact and y.is_exact) or x.dtype.startswith("uint"):
                raise Unfit
            rank = len(x.sizes) - len(sizes)

            def chosen(*i: Any) -> Any:
                other = y.tensor(*[0 if size == (1, 1) else i[rank + k] for k, size in enumerate(sizes)])
                return tir.Select(x.tensor(*i) > other, x.tensor(*i), other + other)

            tensor = te.compute([s for s, _ in x.sizes], chosen, name=self.name())
            value = np.where(a > b, a, 2 * b)
        else:
            tensor = getattr(topi, kind)(x.tensor, y.tensor)
            value = getattr(np, kind)(a, b)
        self.put(f"{kind}({x.tensor.name}, {y.tensor.name})", tensor, x.sizes, value, error)

    # --- reductions ---

    def reduction(self) -> None:
        x = self.operand(1, 2, 2, 3, 3, 4)
        axes = tuple([k for k in range(len(x.sizes)) if self.chance(0.5)]) or (self.rng.randrange(len(x.sizes)),)
        keeps, kind = self.chance(0.3), self.rng.choice(["sum", "sum", "sum", "max", "min", "argmax", "argmin"])
        is_empty = any([x.shape[k] == 0 for k in axes])
        if is_empty and kind != "sum":
            raise Unfit
        sizes = [(1, 1) if k in axes else size for k, size in enumerate(x.sizes) if keeps or k not in axes]
        shape = [extent for _, extent in sizes]
        if kind.startswith("arg"):
            if not x.is_exact:
                raise Unfit
            along = int(np.prod([x.shape[k] for k in axes]))
            last = np.moveaxis(x.value, axes, range(-len(axes), 0)).reshape(*_without(x.shape, axes), along)
            value = getattr(np, kind)(last, axis=-1).reshape(shape)
            error = np.zeros(shape)
        else:
            value = getattr(np, kind)(x.value, axis=axes).reshape(shape)
            error = x.error.max(axis=axes, initial=0)
            if kind == "sum":
                error = self.sum_error(x.value, x.error, axes, x.dtype)
            error = error.reshape(shape)
        tensor = getattr(topi, kind)(x.tensor, axis=list(axes), keepdims=keeps)
        self.put(f"{kind}({x.tensor.name}, {list(axes)}, keepdims={keeps})", tensor, sizes, value, error)

    def guarded_sum(self) -> None:
        """Only some of the terms, or some of the rows."""
        x = self.operand(2)
        if x.dtype not in UNIT and x.value.size > 4096:
            raise Unfit
        k = te.reduce_axis((0, x.sizes[1][0]), "k")
        every = self.rng.choice((2, 3))
        tensor = te.compute(
            (x.sizes[0][0],),
            lambda i: te.sum(x.tensor[i, k], axis=k, where=te.all((i + k) % every == 0)),
            name=self.name(),
        )
        rows, columns = np.indices(x.shape)
        kept = (rows + columns) % every == 0
        value = np.where(kept, x.value, 0)
        error = self.sum_error(value, np.where(kept, x.error, 0), 1, x.dtype)
        words = f"sum({x.tensor.name}[i, k] where (i + k) % {every} == 0)"
        self.put(words, tensor, x.sizes[:1], value.sum(axis=1), error)

    def contraction(self) -> None:
        m, n, k = [self.size(300) for _ in range(3)]
        batch = [self.size(9)] if self.chance(0.35) else []
        if np.prod([extent for _, extent in (m, n, k, *batch)], dtype=float) > self.work:
            raise Unfit
        turned = self.chance(0.5), self.chance(0.5)
        a = self.operand(sizes=[*batch, *((k, m) if turned[0] else (m, k))])
        b = self.operand(sizes=[*batch, *((n, k) if turned[1] else (k, n))], dtype=a.dtype)
        r = te.reduce_axis((0, k[0]), "r")

        def body(*i: Any) -> Any:
            *outer, row, column = i
            left = a.tensor(*outer, *((r, row) if turned[0] else (row, r)))
            return te.sum(left * b.tensor(*outer, *((column, r) if turned[1] else (r, column))), axis=r)

        tensor = te.compute([s for s, _ in (*batch, m, n)], body, name=self.name())
        left, right = [
            (np.swapaxes(one, -1, -2) if turn else one, np.swapaxes(off, -1, -2) if turn else off)
            for (one, off), turn in zip(((a.value, a.error), (b.value, b.error)), turned, strict=True)
        ]
        value = left[0] @ right[0]
        error = np.abs(left[0]) @ right[1] + left[1] @ (np.abs(right[0]) + right[1])
        total = np.abs(left[0]) @ np.abs(right[0]) + error
        if a.dtype in UNIT and (error.any() or total.max(initial=0) > EXACT[a.dtype]):
            if (k[1] + 4) * UNIT[a.dtype] > 0.1:
                raise Unfit
            error = error + 1.2 * (k[1] + 4) * UNIT[a.dtype] * total
        elif a.dtype not in UNIT and total.max(initial=0) > np.iinfo(a.dtype).max:
            raise Unfit
        names = f"{a.tensor.name}{'ᵀ' * turned[0]} @ {b.tensor.name}{'ᵀ' * turned[1]}"
        self.put(names, tensor, [*batch, m, n], value, error)

    def rows(self) -> None:
        """Softmax and norms."""
        x = self.operand(1, 2, 2, 3)
        if x.dtype not in ("float32", "float64") or 0 in x.shape or np.abs(x.value).max() > 40:
            raise Unfit
        unit, n = UNIT[x.dtype], x.shape[-1]
        kind = self.rng.choice(["softmax", "log_softmax", "layer_norm", "rms_norm"])
        largest = x.error.max(initial=0)
        if largest > 0.01 or (n + 30) * unit > 0.01:
            raise Unfit
        if kind.endswith("softmax"):
            axis = self.rng.randrange(len(x.sizes)) if kind == "softmax" else -1
            if axis not in (-1, len(x.sizes) - 1):
                n = x.shape[axis]
            shifted = x.value - x.value.max(axis=axis, keepdims=True)
            total = np.exp(shifted).sum(axis=axis, keepdims=True)
            share = np.expm1(2 * largest + 4 * (n + 30) * unit)
            if kind == "softmax":
                value = np.exp(shifted) / total
                error = value * share + 1e-35
                tensor = topi.nn.softmax(x.tensor, axis=axis)
            else:
                if len(x.sizes) != 2:
                    raise Unfit
                value = shifted - np.log(total)
                error = 2 * largest + 4 * (n + 30) * unit * (1 + np.abs(value) + np.abs(x.value))
                tensor = topi.nn.log_softmax(x.tensor)
            self.put(f"{kind}({x.tensor.name}, axis={axis})", tensor, x.sizes, value, error)
            return
        gain = self.operand(sizes=x.sizes[-1:], dtype=x.dtype)
        if gain.error.max(initial=0) > 0.01:
            raise Unfit
        axes, epsilon = [len(x.sizes) - 1], 1e-5
        if kind == "layer_norm":
            shift = self.operand(sizes=x.sizes[-1:], dtype=x.dtype)
            centred = x.value - x.value.mean(-1, keepdims=True)
            plain = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
            value, extra = plain * gain.value + shift.value, shift.error
            tensor = topi.nn.layer_norm(x.tensor, gain.tensor, shift.tensor, axes)
        else:
            plain = x.value / np.sqrt((x.value**2).mean(-1, keepdims=True) + epsilon)
            value, extra = plain * gain.value, 0.0
            tensor = topi.nn.rms_norm(x.tensor, gain.tensor, axes)
        # A row of equal cells has the variance 0: what rounding leaves is divided by the root of epsilon.
        size = 1 + np.abs(x.value).max()
        off = (largest + 2 * (n + 30) * unit * size) / np.sqrt(epsilon) * (1 + np.abs(plain))
        error = off * (np.abs(gain.value) + gain.error) + (np.abs(plain) + off) * gain.error + extra
        self.put(f"{kind}({x.tensor.name}, {gain.tensor.name})", tensor, x.sizes, value, error)

    def scan(self) -> None:
        x = self.operand(1, 2, 3)
        axis = self.rng.randrange(len(x.sizes)) if self.chance(0.5) else len(x.sizes) - 1
        if x.dtype not in ("float32", "float64", "int32", "int64") or 0 in x.shape:
            raise Unfit
        exclusive = self.chance(0.25)
        n = x.shape[axis]
        value, total = x.value.cumsum(axis=axis), (np.abs(x.value) + x.error).cumsum(axis=axis)
        error = x.error.cumsum(axis=axis)
        is_exact = not error.any() and np.array_equal(value, np.round(value))
        if x.dtype in UNIT and not (is_exact and total.max() <= EXACT[x.dtype]):
            error = error + 2 * (n + 4) * UNIT[x.dtype] * total
        if exclusive:
            value, error = [_shifted(one, axis) for one in (value, error)]
        tensor = topi.cumsum(x.tensor, axis=axis, exclusive=exclusive)
        self.put(f"cumsum({x.tensor.name}, {axis}, exclusive={exclusive})", tensor, x.sizes, value, error)

    # --- movement ---

    def transpose(self) -> None:
        x = self.operand(2, 2, 3, 4)
        order = list(range(len(x.sizes)))
        self.rng.shuffle(order)
        tensor = topi.transpose(x.tensor, order)
        self.moved(f"transpose({x.tensor.name}, {order})", tensor, x, lambda a: a.transpose(order))

    def flip(self) -> None:
        x = self.operand(1, 2, 3)
        axis = self.rng.randrange(len(x.sizes))
        self.moved(f"flip({x.tensor.name}, {axis})", topi.flip(x.tensor, axis), x, lambda a: np.flip(a, axis))

    def reshape(self) -> None:
        x = self.operand(1, 2, 3, 4)
        if any([not isinstance(size, int) for size, _ in x.sizes]):
            raise Unfit
        total = int(np.prod(x.shape))
        factor = self.rng.choice([one for one in (1, 2, 3, 4, 5, 7, 8, 16, 32, 64) if total % one == 0])
        shape = self.rng.choice([(total,), (factor, total // factor), (total // factor, factor)])
        tensor = topi.reshape(x.tensor, shape)
        self.moved(f"reshape({x.tensor.name}, {shape})", tensor, x, lambda a: a.reshape(shape))

    def joined(self) -> None:
        x = self.operand(1, 2, 2, 3)
        axis = self.rng.randrange(len(x.sizes))
        parts = [x]
        for _ in range(self.rng.choice((1, 1, 2))):
            size = self.size(64)
            sizes = [size if k == axis else one for k, one in enumerate(x.sizes)]
            if np.prod([extent for _, extent in sizes]) > self.cells:
                raise Unfit
            parts.append(self.operand(sizes=sizes, dtype=x.dtype))
        if any([not isinstance(part.sizes[axis][0], int) for part in parts]):
            raise Unfit
        total = sum([part.shape[axis] for part in parts])
        sizes = [(total, total) if k == axis else one for k, one in enumerate(x.sizes)]
        tensor = topi.concatenate([part.tensor for part in parts], axis)
        value, error = [np.concatenate([getattr(part, what) for part in parts], axis) for what in ("value", "error")]
        self.put(f"concatenate({[part.tensor.name for part in parts]}, {axis})", tensor, sizes, value, error)

    def slice(self) -> None:
        x = self.operand(1, 2, 3)
        if any([not isinstance(size, int) for size, _ in x.sizes]) or 0 in x.shape:
            raise Unfit
        begin = [self.rng.randrange(extent) for extent in x.shape]
        end = [self.rng.randint(low + 1, extent) for low, extent in zip(begin, x.shape, strict=True)]
        step = [self.rng.choice((1, 1, 2, 3)) for _ in x.shape]
        cut = tuple([slice(*each) for each in zip(begin, end, step, strict=True)])
        tensor = topi.strided_slice(x.tensor, begin, end, step)
        self.moved(f"{x.tensor.name}[{begin}:{end}:{step}]", tensor, x, lambda a: a[cut])

    def pad(self) -> None:
        x = self.operand(1, 2, 3, 4)
        if any([not isinstance(size, int) for size, _ in x.sizes]):
            raise Unfit
        before, after = [[self.rng.choice((0, 0, 1, 2)) for _ in x.sizes] for _ in range(2)]
        widths = list(zip(before, after, strict=True))
        tensor = topi.nn.pad(x.tensor, before, after)
        self.moved(f"pad({x.tensor.name}, {widths})", tensor, x, lambda a: np.pad(a, widths))

    def repeated(self) -> None:
        x = self.operand(1, 2, 3)
        if any([not isinstance(size, int) for size, _ in x.sizes]):
            raise Unfit
        axis, times = self.rng.randrange(len(x.sizes)), self.rng.choice((2, 3))
        if x.value.size * times > self.cells:
            raise Unfit
        if self.chance(0.5):
            tensor, move = topi.repeat(x.tensor, times, axis), lambda a: np.repeat(a, times, axis)
        else:
            reps = [times if k == axis else 1 for k in range(len(x.sizes))]
            tensor, move = topi.tile(x.tensor, reps), lambda a: np.tile(a, reps)
        self.moved(f"{tensor.name}({x.tensor.name}, {times}, {axis})", tensor, x, move)

    def moved(self, words: str, tensor: te.Tensor, x: Value, move: Callable[[Array], Array]) -> None:
        value = move(x.value)
        sizes = [
            (one, extent) if not isinstance(one, tir.IntImm) else (int(one), int(one))
            for one, extent in zip(tensor.shape, value.shape, strict=True)
        ]
        by_extent = {str(size): (size, extent) for size, extent in x.sizes}
        sizes = [by_extent.get(str(size), (size, extent)) for size, extent in sizes]
        self.put(words, tensor, sizes, value, move(x.error))

    def gather(self) -> None:
        x = self.operand(1, 2, 3)
        axis = self.rng.randrange(len(x.sizes))
        if x.shape[axis] == 0:
            raise Unfit
        picked = self.new_sizes(self.rng.choice((1, 1, 2)))
        shape = [*x.shape[:axis], *[extent for _, extent in picked], *x.shape[axis + 1 :]]
        if np.prod(shape) > self.cells or len(shape) > 4:
            raise Unfit
        index = self.placeholder(picked, self.rng.choice(("int32", "int64")), 0, x.shape[axis] - 1)
        at = index.value.astype("int64")
        tensor = topi.take(x.tensor, index.tensor, axis=axis, mode="fast" if self.chance(0.3) else "clip")
        value, error = np.take(x.value, at, axis), np.take(x.error, at, axis)
        sizes = [*x.sizes[:axis], *picked, *x.sizes[axis + 1 :]]
        self.put(f"take({x.tensor.name}, {index.tensor.name}, {axis})", tensor, sizes, value, error)

    # --- windows ---

    def pooling(self) -> None:
        n, c, h, w = [self.size(most) for most in (3, 17, 40, 40)]
        x = self.operand(sizes=(n, c, h, w))
        if min(x.shape) == 0 or any([not isinstance(size, int) for size, _ in x.sizes[2:]]):
            raise Unfit
        window, stride = [[self.rng.choice((1, 2, 3)) for _ in range(2)] for _ in range(2)]
        padding = [self.rng.randint(0, k - 1) for k in (*window, *window)]
        if h[1] + padding[0] + padding[2] < window[0] or w[1] + padding[1] + padding[3] < window[1]:
            raise Unfit
        tensor = topi.nn.pool2d(x.tensor, window, stride, [1, 1], padding, "max")
        lowest = -1e30 if x.dtype in UNIT else float(np.iinfo(x.dtype).min)
        widths = [(0, 0), (0, 0), (padding[0], padding[2]), (padding[1], padding[3])]
        views = [
            np.lib.stride_tricks.sliding_window_view(np.pad(one, widths, constant_values=filled), window, (2, 3))
            for one, filled in ((x.value, lowest), (x.error, 0.0))
        ]
        value, error = [view[:, :, :: stride[0], :: stride[1]].max(axis=(4, 5)) for view in views]
        sizes = [n, c, *[(extent, extent) for extent in value.shape[2:]]]
        self.put(f"max_pool({x.tensor.name}, {window}, {stride}, {padding})", tensor, sizes, value, error)

    def convolution(self) -> None:
        n, c, h, w = [self.size(most) for most in (3, 17, 20, 20)]
        x = self.operand(sizes=(n, c, h, w))
        if min(x.shape) == 0 or any([not isinstance(size, int) for size, _ in x.sizes[1:]]) or not x.is_exact:
            raise Unfit
        is_depthwise = self.chance(0.5)
        window, stride = [self.rng.choice((1, 2, 3)) for _ in range(2)], self.rng.choice((1, 1, 2))
        pad = [self.rng.randint(0, k - 1) for k in window]
        if h[1] + 2 * pad[0] < window[0] or w[1] + 2 * pad[1] < window[1]:
            raise Unfit
        outer = c if is_depthwise else self.size(17)
        if not isinstance(outer[0], int) or outer[1] == 0:
            raise Unfit
        taps: list[Size] = [(k, k) for k in window]
        weight = self.placeholder([c, (1, 1), *taps] if is_depthwise else [outer, c, *taps], x.dtype)
        padded = np.pad(x.value, [(0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2])
        view = np.lib.stride_tricks.sliding_window_view(padded, window, (2, 3))[:, :, ::stride, ::stride]
        subscripts = "nchwxy,cxy->nchw" if is_depthwise else "nchwxy,ocxy->nohw"
        taken = weight.value[:, 0] if is_depthwise else weight.value
        value = np.einsum(subscripts, view, taken)
        total = np.einsum(subscripts, np.abs(view), np.abs(taken)).max(initial=0)
        if total > (EXACT[x.dtype] if x.dtype in UNIT else np.iinfo(x.dtype).max):
            raise Unfit
        function = topi.nn.depthwise_conv2d_nchw if is_depthwise else topi.nn.conv2d_nchw
        tensor = function(x.tensor, weight.tensor, stride, pad, 1)
        sizes = [n, outer, *[(extent, extent) for extent in value.shape[2:]]]
        words = f"{'depthwise_' * is_depthwise}conv2d({x.tensor.name}, {weight.tensor.name}, {stride}, {pad})"
        self.put(words, tensor, sizes, value)


# Each operation, and how often it is tried.
OPERATIONS = {
    **{"unary": 5, "cast": 2, "binary": 6, "reduction": 7, "guarded_sum": 1, "contraction": 5, "rows": 4, "scan": 3},
    **{"transpose": 3, "flip": 1, "reshape": 2, "joined": 2, "slice": 2, "pad": 2, "repeated": 1, "gather": 2},
    **{"pooling": 2, "convolution": 2},
}


def _inputs_of(tensors: Sequence[te.Tensor]) -> set[te.Tensor]:
    found: set[te.Tensor] = set()
    pending = list(tensors)
    while pending:
        tensor = pending.pop()
        if tensor not in found:
            found.add(tensor)
            pending += tensor.op.input_tensors
    return found


def _same(some: Sequence[Size], others: Sequence[Size]) -> bool:
    return len(some) == len(others) and all(
        [a[0] is b[0] or (isinstance(a[0], int) and isinstance(b[0], int) and a == b) for a, b in zip(some, others)]
    )


def _words(sizes: Sequence[Size]) -> str:
    return str([extent if isinstance(size, int) else f"{size}={extent}" for size, extent in sizes])


def _without(shape: Sequence[int], axes: Sequence[int]) -> list[int]:
    return [extent for k, extent in enumerate(shape) if k not in axes]


def _shifted(array: Array, axis: int) -> Array:
    """One place on, from 0: a running total without its own term."""
    widths = [(1, 0) if k == axis else (0, 0) for k in range(array.ndim)]
    return np.pad(array, widths).take(range(array.shape[axis]), axis)
