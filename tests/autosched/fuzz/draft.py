"""Draft: a random program in the making, as tensor expressions and as numbers at the same time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopwright import te, tir
from loopwright.ir import PrimFunc
from tests.autosched.fuzz.approx import UNIT, Approx

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65)
# What the operands are, and what is summed in; the first is what most programs are about.
TYPES = (
    [("float32", "float32", "float32")] * 8
    + [("uint8", "int8", "int32")] * 3
    + [("int8", "int8", "int32"), ("int32", "int32", "int32"), ("float64", "float64", "float64")]
    + [("bfloat16", "bfloat16", "float32"), ("float16", "float16", "float32"), ("float16", "float16", "float16")]
)
MOST = 120_000  # multiply-adds of a program, so that a thousand programs take minutes
LONGEST = 512  # terms of a sum in float16, so that its error has a bound


@dataclass(frozen=True)
class Value:
    """A tensor, and what it must hold."""

    tensor: te.Tensor
    approx: Approx

    @property
    def dtype(self) -> str:
        return self.approx.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.approx.value.shape


@dataclass(frozen=True)
class RandomProgram:
    """A function, its input arrays, and what its output must hold."""

    seed: int
    kind: str
    text: str
    func: PrimFunc
    inputs: list[np.ndarray]
    expected: Approx
    winograd: int  # the largest tile that the rule for it may choose


@dataclass
class Draft:
    """The inputs so far, and what has been said about the program."""

    seed: int
    rng: random.Random
    tensors: list[te.Tensor] = field(default_factory=list)
    arrays: list[np.ndarray] = field(default_factory=list)
    bound: dict[str, np.ndarray] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    winograd: int = 0

    def note(self, text: str) -> None:
        self.notes.append(text)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def input(self, shape: Sequence[int], dtype: str, name: str, constant: bool = False) -> Value:
        """A new argument with random values, or a constant of the program."""
        numbers = np.random.default_rng((self.seed, len(self.tensors)))
        if dtype in UNIT:
            array = (numbers.random(tuple(shape)) * 2 - 1).astype(dtype)
        elif dtype in ("int8", "uint8"):  # all of them: sums of pairs must not saturate on the way
            info = np.iinfo(dtype)
            array = numbers.integers(info.min, info.max + 1, tuple(shape)).astype(dtype)
        else:
            array = numbers.integers(-30, 31, tuple(shape)).astype(dtype)
        tensor = te.placeholder(tuple(shape), dtype, name=name)
        self.tensors.append(tensor)
        if constant:
            self.bound[name] = array
        else:
            self.arrays.append(array)
        return Value(tensor, Approx.exactly(array))

    def finish(self, kind: str, out: Value) -> RandomProgram:
        func = te.create_prim_func([*self.tensors, out.tensor])
        if self.bound:
            func = tir.bind_constants(func, self.bound)
        return RandomProgram(self.seed, kind, "; ".join(self.notes), func, self.arrays, out.approx, self.winograd)


def before(draft: Draft, x: Value, name: str) -> Value:
    """Perhaps some element-wise work before an operand is read."""
    if not draft.chance(0.2):
        return x
    kind = draft.rng.choice(["scale", "relu"])
    draft.note(f"{kind} before {name}")
    if kind == "relu":
        zero = te.const(0, x.dtype)
        tensor = te.compute(x.shape, lambda *at: te.max(x.tensor[at], zero), name=f"{name}_relu")
        return Value(tensor, x.approx.clipped(0, None))
    factor, term = te.const(2, x.dtype), te.const(1, x.dtype)
    tensor = te.compute(x.shape, lambda *at: x.tensor[at] * factor + term, name=f"{name}_scaled")
    return Value(tensor, x.approx.scaled(2, 1))


def after(draft: Draft, x: Value, channel: int) -> Value:
    """Perhaps some element-wise work after the sums: bias, residual, activations, a narrower type."""
    steps = draft.rng.choice([[], [], ["bias"], ["bias", "relu"], ["bias", "residual", "relu"], ["scale"], ["relu6"]])
    for step in [*steps, *draft.rng.choice([[], [], ["narrow"]])]:
        x = _AFTER[step](draft, x, channel)
    return x


def _bias(draft: Draft, x: Value, channel: int) -> Value:
    b = draft.input([x.shape[channel]], x.dtype, f"bias{len(draft.tensors)}", constant=bool(draft.bound))
    shape = [-1 if axis == channel else 1 for axis in range(len(x.shape))]
    spread = b.approx.moved(lambda v: np.broadcast_to(v.reshape(shape), x.shape))
    tensor = te.compute(x.shape, lambda *at: x.tensor[at] + b.tensor[at[channel]], name="biased")
    return Value(tensor, x.approx.plus(spread))


def _residual(draft: Draft, x: Value, channel: int) -> Value:
    r = draft.input(x.shape, x.dtype, f"residual{len(draft.tensors)}")
    tensor = te.compute(x.shape, lambda *at: x.tensor[at] + r.tensor[at], name="joined")
    return Value(tensor, x.approx.plus(r.approx))


def _relu(draft: Draft, x: Value, channel: int) -> Value:
    zero = te.const(0, x.dtype)
    tensor = te.compute(x.shape, lambda *at: te.max(x.tensor[at], zero), name="relu")
    return Value(tensor, x.approx.clipped(0, None))


def _relu6(draft: Draft, x: Value, channel: int) -> Value:
    low, high = te.const(0, x.dtype), te.const(6, x.dtype)
    tensor = te.compute(x.shape, lambda *at: te.min(te.max(x.tensor[at], low), high), name="relu6")
    return Value(tensor, x.approx.clipped(0, 6))


def _scale(draft: Draft, x: Value, channel: int) -> Value:
    factor, term = te.const(3, x.dtype), te.const(-1, x.dtype)
    tensor = te.compute(x.shape, lambda *at: x.tensor[at] * factor + term, name="scaled")
    return Value(tensor, x.approx.scaled(3, -1))


def _narrow(draft: Draft, x: Value, channel: int) -> Value:
    """int32 sums become uint8 by a scale, floats a narrower float; other types stay."""
    if x.dtype == "int32":
        draft.note("requantized")
        share, limits = 2.0**-9, (te.const(0.0, "float32"), te.const(255.0, "float32"))

        def quantized(*at: Any) -> Any:
            scaled = te.nearbyint(x.tensor[at].astype("float32") * te.const(share, "float32"))
            return te.min(te.max(scaled, limits[0]), limits[1]).astype("uint8")

        value = np.clip(x.approx.value * share, 0, 255)
        # Half for rounding; a sum above 2^24 is rounded as a float32 as well.
        error = np.full(value.shape, 0.5) + np.abs(x.approx.value) * share * 2.0**-23
        return Value(te.compute(x.shape, quantized, name="quantized"), Approx(value, error, "uint8"))
    if x.dtype == "float32" and "float16" in str([tensor.dtype for tensor in draft.tensors]):
        dtype = draft.tensors[0].dtype
        draft.note(f"narrowed to {dtype}")
        tensor = te.compute(x.shape, lambda *at: x.tensor[at].astype(dtype), name="narrow")
        return Value(tensor, x.approx.cast(str(dtype)))
    return x


_AFTER = {"bias": _bias, "residual": _residual, "relu": _relu, "relu6": _relu6, "scale": _scale, "narrow": _narrow}
