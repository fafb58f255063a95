"""Element-wise work with broadcasts: arithmetic, comparisons, choices, casts, activations and blends.

Distribution: 2^15 to 2^24 bytes (log-uniform), 2^22 elements at most, ranks 1 to 5, last axis by `sizes.extent`; one
case in five is an image of bytes, H × W × 3. Types: float32 40 %, float64 15, uint8 12, int32 11, int64 8, float16 6,
int16 5, int8 3 (activations and blends: float32 75, float64 15, float16 10). Kinds: arithmetic 40 % (half of it
broadcast: each axis of one operand is 1 with a chance of one half, leading axes dropped), comparison 8, where 10, cast
17, activation 17, blend 5, integers' bits and clips 3. Integers stay in ranges where nothing overflows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.bench.bounds import SLACK, unit, wide
from benchmarks.bench.case import Array, Bounded
from benchmarks.sweep.activations import ACTIVATIONS
from benchmarks.sweep.case import Case, Input, Output, Step
from benchmarks.sweep.errors import Rounded, exactly
from benchmarks.sweep.sizes import Rng, broadcast_of, elements, extent, log_uniform, pick, shape_of

BYTES = (2**15, 2**24)
TYPES = {
    "float32": 40, "float64": 15, "uint8": 12, "int32": 11, "int64": 8, "float16": 6, "int16": 5, "int8": 3,
}  # fmt: skip
FLOATS = {"float32": 75, "float64": 15, "float16": 10}


class Binary(NamedTuple):
    """An operation of two operands, as each has it."""

    topi: str
    onnx: str
    numpy: Any
    torch: str
    low: float = -100.0  # of the operands where they are integers, and 0 for types without a sign
    high: float = 100.0


ARITHMETIC = [
    Binary("add", "Add", np.add, "add", -60, 60),
    Binary("subtract", "Sub", np.subtract, "sub", -60, 60),
    Binary("multiply", "Mul", np.multiply, "mul", -11, 11),
    Binary("maximum", "Max", np.maximum, "maximum"),
    Binary("minimum", "Min", np.minimum, "minimum"),
    Binary("divide", "Div", np.divide, "div"),
]
COMPARISONS = [
    Binary("greater", "Greater", np.greater, "gt"),
    Binary("less_equal", "LessOrEqual", np.less_equal, "le"),
    Binary("equal", "Equal", np.equal, "eq", -2, 2),
]


def draw(rng: Rng) -> Case:
    """A case."""
    kinds = (_arithmetic, _comparison, _where, _cast, _activation, _blend, _bits)
    return pick(rng, kinds, (40, 8, 10, 17, 17, 5, 3))(rng)


def typed(rng: Rng, types: dict[str, int] = TYPES) -> str:
    """A type by its weight."""
    return pick(rng, list(types), list(types.values()))


def shaped(rng: Rng, dtype: str) -> tuple[int, ...]:
    """A shape: images for most of the bytes."""
    if dtype == "uint8" and rng.random() < 0.7:
        total = log_uniform(rng, *elements(dtype, *BYTES))
        width = min(extent(rng, 2048, 16), total // 48)
        return (max(total // (3 * width), 1), width, 3)
    return shape_of(rng, elements(dtype, *BYTES))


def _numbers(shape: tuple[int, ...], dtype: str, low: float = -100, high: float = 100) -> Input:
    if np.dtype(dtype).kind == "f":
        return Input(shape, dtype, -3, 3)
    return Input(shape, dtype, max(low, 0) if dtype[0] == "u" else low, high)


def _arithmetic(rng: Rng) -> Case:
    dtype = typed(rng)
    is_float = np.dtype(dtype).kind == "f"
    made = pick(rng, ARITHMETIC if is_float else ARITHMETIC[:-1])
    shape = shaped(rng, dtype)
    other = broadcast_of(rng, shape) if rng.random() < 0.5 else shape
    low = 0 if made.topi == "subtract" and dtype[0] == "u" else made.low
    inputs = [_numbers(shape, dtype, low, made.high), _numbers(other, dtype, low, made.high)]
    if made.topi == "divide":
        inputs[1] = Input(other, dtype, 0.25, 3)
    if rng.random() < 0.3:
        inputs.reverse()

    def exact(x: Any) -> list[Bounded]:
        if not is_float or made.topi in ("maximum", "minimum"):
            return [exactly(made.numpy(x[0], x[1]))]
        right = made.numpy(wide(x[0]), wide(x[1]))
        tiny = float(np.finfo(dtype).smallest_subnormal)
        return [Bounded(right, unit(dtype) * np.abs(right) * SLACK + tiny)]

    return Case(
        made.topi,
        inputs,
        [Output(shape, dtype)],
        exact,
        kernel=lambda x, y: getattr(_topi(), made.topi)(x, y),
        model=[Step(made.onnx, ["x0", "x1"], "y0")],
        numpy=lambda x, out: made.numpy(x[0], x[1], out=out[0]),
        torch=lambda t, x, out: getattr(t, made.torch)(x[0], x[1], out=out[0]),
    )


def _comparison(rng: Rng) -> Case:
    dtype = typed(rng)
    made = pick(rng, COMPARISONS)
    shape = shaped(rng, dtype)
    other = broadcast_of(rng, shape) if rng.random() < 0.3 else shape
    return Case(
        made.topi,
        [_numbers(shape, dtype, made.low, made.high), _numbers(other, dtype, made.low, made.high)],
        [Output(shape, "bool")],
        lambda x: [exactly(made.numpy(x[0], x[1]))],
        kernel=lambda x, y: getattr(_topi(), made.topi)(x, y),
        model=[Step(made.onnx, ["x0", "x1"], "y0")],
        numpy=lambda x, out: made.numpy(x[0], x[1], out=out[0]),
        torch=lambda t, x, out: getattr(t, made.torch)(x[0], x[1], out=out[0]),
    )


def _where(rng: Rng) -> Case:
    dtype = typed(rng)
    shape = shaped(rng, dtype)
    shapes = [shape, shape, shape]
    if rng.random() < 0.5:
        at = int(rng.integers(3))
        shapes[at] = broadcast_of(rng, shape)
    return Case(
        "where",
        [Input(shapes[0], "bool"), _numbers(shapes[1], dtype), _numbers(shapes[2], dtype)],
        [Output(shape, dtype)],
        lambda x: [exactly(np.where(x[0], x[1], x[2]))],
        kernel=lambda c, x, y: _topi().where(c, x, y),
        model=[Step("Where", ["x0", "x1", "x2"], "y0")],
        numpy=lambda x, out: np.where(x[0], x[1], x[2]),
        torch=lambda t, x, out: t.where(x[0], x[1], x[2]) if out[0] is None else t.where(*x, out=out[0]),
    )


def _cast(rng: Rng) -> Case:
    source = typed(rng)
    target = typed(rng, {name: weight for name, weight in TYPES.items() if name != source})
    shape = shaped(rng, source)
    low = 0 if "u" in (source[0], target[0]) else -100

    def with_torch(t: Any, x: Any, out: Any) -> Any:
        return x[0].to(getattr(t, target)) if out[0] is None else out[0].copy_(x[0])

    def with_numpy(x: Any, out: Any) -> Array:
        if out[0] is None:
            return x[0].astype(target)
        np.copyto(out[0], x[0], casting="unsafe")
        return out[0]

    return Case(
        "cast",
        [Input(shape, source, low, 100)],
        [Output(shape, target)],
        lambda x: [exactly(x[0].astype(target))],
        f"to {target}",
        kernel=lambda x: _topi().cast(x, target),
        model=[Step("Cast", ["x0"], "y0", {"to": _onnx_type(target)})],
        numpy=with_numpy,
        torch=with_torch,
    )


def _activation(rng: Rng) -> Case:
    made = pick(rng, ACTIVATIONS)
    dtype = typed(rng, FLOATS)
    shape = shape_of(rng, elements(dtype, BYTES[0] / 2, BYTES[1] / 4))
    return Case(
        made.name,
        [Input(shape, dtype, -6, 6)],
        [Output(shape, dtype)],
        lambda x: [made.exact(Rounded.of(x[0])).bounded(2)],
        kernel=made.te,
        model=made.onnx("x0", "y0"),
        constants=made.constants(dtype),
        numpy=None if made.numpy is None else lambda x, out: made.numpy(x[0]),  # type: ignore[misc]
        torch=lambda t, x, out: made.torch(t, x[0]),
    )


def _blend(rng: Rng) -> Case:
    """a·x + (1 - a)·y with a number, a mask or a plane; or x·s + t with rows or columns of s and t."""
    dtype = typed(rng, FLOATS)
    shape = shape_of(rng, elements(dtype, *BYTES), (2, 3, 4))
    if rng.random() < 0.4:
        other = broadcast_of(rng, shape)
        return Case(
            "scale and shift",
            [Input(shape, dtype), Input(other, dtype), Input(other, dtype)],
            [Output(shape, dtype)],
            lambda x: [(Rounded.of(x[0]) * Rounded.of(x[1]) + Rounded.of(x[2])).bounded()],
            kernel=lambda x, s, t: _topi().add(_topi().multiply(x, s), t),
            model=[Step("Mul", ["x0", "x1"], "m"), Step("Add", ["m", "x2"], "y0")],
            numpy=lambda x, out: np.add(np.multiply(x[0], x[1], out=out[0]), x[2], out=out[0]),
            torch=lambda t, x, out: t.addcmul(x[2], x[0], x[1], out=out[0]),
        )
    mask = pick(rng, ((1,), shape, (*shape[:-1], 1), (1,) * (len(shape) - 1) + (shape[-1],)))

    def exact(x: Any) -> list[Bounded]:
        p, q, a = map(Rounded.of, x)
        return [(a * p + (Rounded.of(np.ones((), dtype)) - a) * q).bounded(3)]

    def in_te(p: Any, q: Any, a: Any) -> Any:
        topi = _topi()
        return topi.add(topi.multiply(a, p), topi.multiply(topi.subtract(1.0, a), q))

    return Case(
        "blend",
        [Input(shape, dtype), Input(shape, dtype), Input(mask, dtype, 0, 1)],
        [Output(shape, dtype)],
        exact,
        kernel=in_te,
        model=[
            Step("Mul", ["x2", "x0"], "p"),
            Step("Sub", ["one", "x2"], "b"),
            Step("Mul", ["b", "x1"], "q"),
            Step("Add", ["p", "q"], "y0"),
        ],
        constants={"one": np.ones((), dtype)},
        numpy=lambda x, out: np.add(x[2] * x[0], (1 - x[2]) * x[1], out=out[0]),
        torch=lambda t, x, out: t.lerp(x[1], x[0], x[2], out=out[0]),
    )


def _bits(rng: Rng) -> Case:
    """and, or, xor of two tensors; clip to a range; the mean of two tensors of bytes, through int16."""
    name = pick(rng, ("bitwise_and", "bitwise_or", "bitwise_xor", "clip", "mean of bytes"))
    dtype = "uint8" if name == "mean of bytes" else pick(rng, ("uint8", "int32", "int64", "int16"))
    shape = shaped(rng, dtype)
    one = Input(shape, dtype, 0, 100)
    if name == "clip":
        return Case(
            name,
            [one],
            [Output(shape, dtype)],
            lambda x: [exactly(np.clip(x[0], 10, 90))],
            kernel=lambda x: _topi().clip(x, 10, 90),
            model=[Step("Clip", ["x0", "low", "high"], "y0")],
            constants={"low": np.asarray(10, dtype), "high": np.asarray(90, dtype)},
            numpy=lambda x, out: np.clip(x[0], 10, 90, out=out[0]),
            torch=lambda t, x, out: t.clamp(x[0], 10, 90, out=out[0]),
        )

    def mean_te(x: Any, y: Any) -> Any:
        topi = _topi()
        total = topi.add(topi.cast(x, "int16"), topi.cast(y, "int16"))
        return topi.cast(topi.right_shift(total, 1), "uint8")

    def mean(x: Any, y: Any, wider: Any, narrow: Any) -> Any:
        return narrow((wider(x) + wider(y)) >> 1)

    if name == "mean of bytes":
        return Case(
            name,
            [one, one],
            [Output(shape, dtype)],
            lambda x: [exactly(((x[0].astype("int16") + x[1]) >> 1).astype("uint8"))],
            kernel=mean_te,
            numpy=lambda x, out: mean(x[0], x[1], lambda v: v.astype("int16"), lambda v: v.astype("uint8")),
            torch=lambda t, x, out: mean(x[0], x[1], lambda v: v.to(t.int16), lambda v: v.to(t.uint8)),
        )
    function = getattr(np, name)
    words = {"bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor"}
    return Case(
        name,
        [one, one],
        [Output(shape, dtype)],
        lambda x: [exactly(function(x[0], x[1]))],
        kernel=lambda x, y: getattr(_topi(), name)(x, y),
        model=[Step(words[name], ["x0", "x1"], "y0")],
        numpy=lambda x, out: function(x[0], x[1], out=out[0]),
        torch=lambda t, x, out: getattr(t, name)(x[0], x[1], out=out[0]),
    )


def _onnx_type(dtype: str) -> int:
    import onnx

    return int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def _topi() -> Any:
    from loopwright import topi

    return topi


