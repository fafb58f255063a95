"""distributions: numbers drawn from a range, from the normal distribution, from a table of probabilities.

Every function gives [state to go on with, numbers]; see `threefry.py` for states.
"""

from __future__ import annotations

from math import pi

from loopwright import te
from loopwright.ir import Expr, as_expr, cast, const
from loopwright.ir.intrinsics import cos, log, minimum, sqrt
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.math.scan import cumsum
from loopwright.topi.ordering.searchsorted import searchsorted
from loopwright.topi.parts.choices import UnsuitableType
from loopwright.topi.parts.sizes import at_least, check_same
from loopwright.topi.random.threefry import threefry_generate
from loopwright.topi.registry import operator
from loopwright.topi.testing import drawing as meaning
from loopwright.topi.types import Dim, Scalar, Shape


@operator(reference=meaning.uniform, samples=meaning.uniform_samples, name="random.uniform")
def uniform(gen: te.Tensor, low: Scalar, high: Scalar, out_shape: Shape, out_dtype: str) -> list[te.Tensor]:
    """Numbers from `low` to below `high` (rounding may make one `high`), evenly spread; float32 or float64."""
    kind = _real("uniform", out_dtype)
    state, bits = threefry_generate(gen, out_shape)
    first, last = _value(low, kind), _value(high, kind)
    numbers: te.Tensor = te.compute(
        bits.shape,
        lambda *at: first + _unit(bits(*at), kind) * (last - first),
        name="uniform",
        tag=default_tag(tag.ELEMWISE),
    )
    return [state, numbers]


@operator(reference=meaning.normal, samples=meaning.normal_samples, name="random.normal")
def normal(gen: te.Tensor, mean: Scalar, scale: Scalar, out_shape: Shape, out_dtype: str) -> list[te.Tensor]:
    """Numbers with the normal distribution of `mean` and standard deviation `scale`; float32 or float64.

    Each is made from two that are evenly spread, by Box and Muller's formula.
    """
    kind = _real("normal", out_dtype)
    state, bits = threefry_generate(gen, [2, *out_shape])
    middle, spread = _value(mean, kind), _value(scale, kind)

    def body(*at: Expr) -> Expr:
        radius = sqrt(log(1 - _unit(bits(0, *at), kind)) * -2.0)
        return radius * cos(_unit(bits(1, *at), kind) * const(2 * pi, kind)) * spread + middle

    numbers: te.Tensor = te.compute(bits.shape[1:], body, name="normal", tag=default_tag(tag.ELEMWISE))
    return [state, numbers]


@operator(reference=meaning.multinomial, samples=meaning.multinomial_samples, name="random.multinomial")
def multinomial(gen: te.Tensor, probs: te.Tensor, num_samples: Dim) -> list[te.Tensor]:
    """Indices (int32) into the last axis of `probs`, each as likely as the value there; their sum need not be 1."""
    op = "multinomial"
    kind = _real(op, str(probs.dtype))
    if not probs.ndim:
        raise InvalidShapeError(op, "probs has no dimension to draw from", "give a row of probabilities")
    if not at_least(probs.shape[-1], 1):
        raise InvalidShapeError(op, f"a row of {probs.name} is empty", "give at least one probability")
    state, bits = threefry_generate(gen, [*probs.shape[:-1], num_samples])
    sums = cumsum(probs, axis=-1)
    last = probs.shape[-1] - 1
    drawn = te.compute(
        bits.shape,
        lambda *at: _unit(bits(*at), kind) * sums(*at[:-1], last),
        name="multinomial_drawn",
        tag=default_tag(tag.INJECTIVE),
    )
    result = searchsorted(sums, drawn, right=True, out_dtype="int32")
    indices: te.Tensor = te.compute(
        result.shape,
        lambda *at: minimum(result(*at), cast(last, DataType("int32"))),
        name="multinomial",
        tag=default_tag(tag.ELEMWISE),
    )
    return [state, indices]


def _unit(bits: Expr, kind: DataType) -> Expr:
    """A number from 0 to below 1, exact: as many bits as the type has digits."""
    digits = 24 if kind.bits == 32 else 53
    return cast(bits >> const(64 - digits, bits.dtype), kind) * const(2.0**-digits, kind)


def _real(op: str, dtype: str) -> DataType:
    if str(dtype) not in ("float32", "float64"):
        raise UnsuitableType(op, f"no numbers of type {dtype} are drawn", "ask for float32 or float64")
    return DataType(dtype)


def _value(value: Scalar, kind: DataType) -> Expr:
    """A number, or a tensor of one element."""
    if not isinstance(value, te.Tensor):
        return cast(as_expr(value), kind)
    for size in value.shape:
        check_same("random", "a number", (value.name, size), ("one element", as_expr(1)))
    return cast(value(*[0] * value.ndim), kind)
