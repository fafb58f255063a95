"""Random graphs over the registered operators, with inputs on which every result is exact.

Values are small whole numbers (and halves of them) in float64, limited where they could grow: whatever order a pass
brings sums and products into, the result is the same number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loopwright import relay
from loopwright.ir.function import IRModule
from loopwright.relay.infer_type import infer, infer_module

_UNARY = ("abs", "negative", "sign", "floor", "copy", "nn.relu")
_BINARY = ("add", "subtract", "multiply", "maximum", "minimum")


class RandomGraph:
    """A function of a few tensors, grown operator by operator."""

    def __init__(self, seed: int, size: int = 14) -> None:
        self.random = np.random.default_rng(seed)
        self.params: list[relay.Var] = []
        self.values: list[Any] = []
        self._input((1, 4, 6, 6))
        self._input((3, 8))
        rules = [name for name in dir(self) if name.startswith("grow_")]
        while len(self.values) < size + len(self.params):
            made = getattr(self, str(self.random.choice(rules)))()
            if made is not None:
                self._keep(made)
        self.function = relay.Function(self.params, relay.Tuple(self._ends()))
        infer_module(IRModule({"main": self.function}))

    def arguments(self) -> list[np.ndarray]:
        return [self._numbers(param.type_annotation.concrete_shape) for param in self.params]

    def _numbers(self, shape: Any) -> np.ndarray:
        return self.random.integers(-3, 4, shape).astype("float64")

    def _input(self, shape: tuple[int, ...]) -> Any:
        var = relay.var(f"x{len(self.params)}", shape=shape, dtype="float64")
        self.params.append(var)
        self._keep(var)
        return var

    def _keep(self, value: Any) -> None:
        infer(value)
        self.values.append(value)

    def _ends(self) -> list[Any]:
        """What nobody uses, and one value somewhere in the middle."""
        return [*self.values[-2:], self.values[int(self.random.integers(len(self.params), len(self.values)))]]

    def _shape(self, value: Any) -> tuple[int, ...]:
        return value.checked_type.concrete_shape

    def _some(self, rank: int | None = None) -> Any:
        found = [value for value in self.values if rank is None or len(self._shape(value)) == rank]
        found = [value for value in found if 0 < np.prod(self._shape(value)) <= 4000]
        return found[int(self.random.integers(len(found)))] if found else None

    def _constant(self, *shape: int, half: bool = False) -> Any:
        return relay.const(self._numbers(shape) * (0.5 if half else 1.0), "float64")

    def _limited(self, value: Any) -> Any:
        return relay.clip(value, -16.0, 16.0)

    def grow_unary(self) -> Any:
        name = str(self.random.choice(_UNARY))
        function = relay.nn.relu if name == "nn.relu" else getattr(relay, name)
        return function(self._some())

    def grow_binary(self) -> Any:
        one = self._some()
        alike = [value for value in self.values if self._shape(value) == self._shape(one)]
        other = alike[int(self.random.integers(len(alike)))]
        return self._limited(getattr(relay, str(self.random.choice(_BINARY)))(one, other))

    def grow_binary_with_a_constant(self) -> Any:
        one = self._some()
        shape = self._shape(one)
        kept = int(self.random.integers(len(shape) + 1))
        sizes = [size if self.random.integers(2) else 1 for size in shape][kept:]
        return self._limited(getattr(relay, str(self.random.choice(_BINARY)))(one, self._constant(*sizes)))

    def grow_neutral(self) -> Any:
        one = self._some()
        return one + relay.const(0.0, "float64") if self.random.integers(2) else one * relay.const(1.0, "float64")

    def grow_transpose(self) -> Any:
        one = self._some()
        return relay.transpose(one, tuple(int(axis) for axis in self.random.permutation(len(self._shape(one)))))

    def grow_reshape(self) -> Any:
        one = self._some()
        first = self._shape(one)[0]
        return relay.reshape(one, (first, -1) if self.random.integers(2) else (-1, first))

    def grow_joined(self) -> Any:
        one = self._some()
        alike = [value for value in self.values if self._shape(value) == self._shape(one)]
        other = alike[int(self.random.integers(len(alike)))]
        return relay.concatenate([one, other], int(self.random.integers(len(self._shape(one)))))

    def grow_slice(self) -> Any:
        one = self._some()
        ends = [int(self.random.integers(1, size + 1)) for size in self._shape(one)]
        return relay.strided_slice(one, [0] * len(ends), ends)

    def grow_split(self) -> Any:
        one = self._some()
        axis = int(np.argmax(self._shape(one)))
        if self._shape(one)[axis] % 2:
            return None
        parts = relay.split(one, 2, axis)
        return self._limited(parts[0] + parts[1])

    def grow_reduction(self) -> Any:
        one = self._some()
        axis = int(self.random.integers(len(self._shape(one))))
        return self._limited(getattr(relay, str(self.random.choice(["sum", "max", "min"])))(one, axis, keepdims=True))

    def grow_dense(self) -> Any:
        one = self._some(rank=2)
        units = int(self.random.integers(1, 9))
        made = relay.nn.dense(one, self._constant(units, self._shape(one)[1]))
        return self._limited(relay.nn.bias_add(made, self._constant(units), axis=-1))

    def grow_convolution(self) -> Any:
        one = self._some(rank=4)
        _, channels, high, wide = self._shape(one)
        window = 3 if min(high, wide) >= 3 else 1
        if self.random.integers(2):
            one = relay.nn.pad(one, ((0, 0), (0, 0), (1, 1), (1, 1)), relay.const(0.0, "float64"))
        out = int(self.random.integers(1, 5))
        conv = relay.nn.conv2d(one, self._constant(out, channels, window, window))
        if self.random.integers(2):
            variance = relay.const(np.full(out, 3.0), "float64")  # and 1: a root of 2
            given = [self._constant(out) for _ in range(3)]
            conv = relay.nn.batch_norm(conv, *given, variance, epsilon=1.0)[0]
        return self._limited(relay.nn.relu(conv))

    def grow_pool(self) -> Any:
        one = self._some(rank=4)
        if min(self._shape(one)[2:]) < 2:
            return None
        pool = relay.nn.max_pool2d if self.random.integers(2) else relay.nn.avg_pool2d
        return relay.floor(pool(one, (2, 2), (2, 2)))
