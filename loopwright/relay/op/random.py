"""Random numbers in graphs: every call takes a key, and gives a new one beside its numbers.

key = relay.random.threefry_key(42)
key, noise = relay.random.normal(key, (2, 3))
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir.types import Type
from loopwright.relay.expr import Expr, const
from loopwright.relay.op.from_topi import FromTopi
from loopwright.relay.op.registry import Kind, calls, make, register
from loopwright.relay.types import TensorType


@calls("random.threefry_key")
def threefry_key(seed: int) -> Expr:
    """The key that begins the stream of numbers of `seed`."""
    from loopwright.topi.random import threefry_key as first_state

    return const(first_state(seed))


@register("random.threefry_generate", Kind.OPAQUE)
class ThreefryGenerate(FromTopi):
    """A new key, and uint64 numbers all of whose bits are random."""

    out_shape: tuple[int, ...]
    results = 2

    def infer(self, key: TensorType) -> Type:
        return self.type_of_compute(key)


@calls("random.threefry_generate")
def threefry_generate(key: Expr, shape: Sequence[int]) -> object:
    """A new key, and uint64 numbers of `shape` all of whose bits are random."""
    return make("random.threefry_generate", key, out_shape=tuple(shape))


@register("random.threefry_split", Kind.OPAQUE)
class ThreefrySplit(FromTopi):
    """Two keys whose numbers have nothing to do with each other."""

    results = 2

    def infer(self, key: TensorType) -> Type:
        return self.type_of_compute(key)


class _Drawn(FromTopi):
    out_shape: tuple[int, ...]
    out_dtype: str = "float32"
    results = 2

    def arguments(self, *inputs: object) -> Sequence[object]:
        return (*inputs, self.out_shape, self.out_dtype)


@register("random.uniform", Kind.OPAQUE)
class Uniform(_Drawn):
    """A new key, and numbers from `low` to below `high`."""

    def infer(self, key: TensorType, low: TensorType, high: TensorType) -> Type:
        return self.type_of_compute(key, low, high)


@calls("random.uniform")
def uniform(
    key: Expr, shape: Sequence[int], dtype: str = "float32", low: object = None, high: object = None
) -> object:
    """A new key, and numbers from `low` (0) to below `high` (1): numbers or expressions."""
    ends = [_number(low, 0.0, dtype), _number(high, 1.0, dtype)]
    return make("random.uniform", key, *ends, out_shape=tuple(shape), out_dtype=dtype)


@register("random.normal", Kind.OPAQUE)
class Normal(_Drawn):
    """A new key, and numbers with the normal distribution."""

    def infer(self, key: TensorType, mean: TensorType, scale: TensorType) -> Type:
        return self.type_of_compute(key, mean, scale)


@calls("random.normal")
def normal(
    key: Expr, shape: Sequence[int], dtype: str = "float32", mean: object = None, scale: object = None
) -> object:
    """A new key, and numbers normally distributed around `mean` (0) with deviation `scale` (1)."""
    parameters = [_number(mean, 0.0, dtype), _number(scale, 1.0, dtype)]
    return make("random.normal", key, *parameters, out_shape=tuple(shape), out_dtype=dtype)


@register("random.multinomial", Kind.OPAQUE)
class Multinomial(FromTopi):
    """A new key, and indices into the last axis of `probs`, each as likely as the value there."""

    num_samples: int = 1
    results = 2

    def infer(self, key: TensorType, probs: TensorType) -> Type:
        return self.type_of_compute(key, probs)


def _number(value: object, default: float, dtype: str) -> Expr:
    return value if isinstance(value, Expr) else const(default if value is None else value, dtype)
