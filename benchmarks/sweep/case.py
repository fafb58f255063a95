"""A drawn case: an operator at some shapes and types, as a kernel or a model of ours, and as others have it.

A case is described before anything is computed: drawing a thousand of them takes no time, and (seed, index) gives the
same one everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.bench.case import Array, Bounded, aligned
from benchmarks.bench.onnx_models import Step

__all__ = ["Array", "Bounded", "Case", "Draw", "Input", "Output", "Step"]

KERNEL, MODEL = "kernel", "model"


@dataclass(frozen=True)
class Input:
    """A tensor given to the operator: random values of a type in [low, high], or what `make` draws.

    A `constant` one is a weight: an initializer of the model. Kernels get it as an argument like the others.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -1.0
    high: float = 1.0
    make: Callable[[np.random.Generator], Array] | None = None
    constant: bool = False

    def array(self, rng: np.random.Generator) -> Array:
        """Its values, on a page boundary."""
        out = aligned(self.shape, self.dtype)
        if self.make is not None:
            out[...] = self.make(rng)
        elif self.dtype == "bool":
            out[...] = rng.integers(0, 2, self.shape)
        elif np.dtype(self.dtype).kind in "iu":
            out[...] = rng.integers(int(self.low), int(self.high) + 1, self.shape, dtype="int64")
        else:
            # 32 random bits are enough for every type, and twice as quick as 53.
            out[...] = rng.random(self.shape, dtype="float32") * (self.high - self.low) + self.low
        return out


@dataclass(frozen=True)
class Output:
    """A result: its shape and type."""

    shape: tuple[int, ...]
    dtype: str = "float32"


@dataclass(frozen=True)
class Case:
    """One case. A peer's function gets its inputs and where to put results (None in place of each, for models)."""

    operator: str
    inputs: Sequence[Input]
    outputs: Sequence[Output]
    exact: Callable[[Sequence[Array]], Sequence[Bounded]]  # of the inputs
    details: str = ""  # attributes that the shapes do not tell
    kernel: Callable[..., Any] | None = None  # te tensors → a te tensor, or a list of them
    model: Sequence[Step] = ()  # inputs are called x0, x1 …, outputs y0, y1 …
    constants: Mapping[str, Array] = field(default_factory=dict)  # of the model, besides constant inputs
    numpy: Callable[[Sequence[Array], Sequence[Any]], Any] | None = None
    torch: Callable[[Any, Sequence[Any], Sequence[Any]], Any] | None = None
    opset: int = 21
    kernel_types: Sequence[str] = ()  # of the kernel's results, where they are not those of `outputs`
    # Set when the case is drawn, by `families.case_of`.
    family: str = ""
    index: int = 0
    seed: int = 0
    ours: str = KERNEL  # which of the two is ours here

    @property
    def name(self) -> str:
        """The operator with its shapes and types, on one line."""
        given = " ".join([f"{short(x.dtype)}[{'×'.join(map(str, x.shape))}]" for x in self.inputs[:3]])
        more = f" … {len(self.inputs)} inputs" if len(self.inputs) > 3 else ""
        return f"{self.operator} {given}{more}{f' {self.details}' if self.details else ''}"

    @property
    def own_outputs(self) -> Sequence[Output]:
        """What ours returns."""
        if self.ours == MODEL or not self.kernel_types:
            return self.outputs
        return [Output(y.shape, dtype) for y, dtype in zip(self.outputs, self.kernel_types)]

    def arrays(self) -> list[Array]:
        """The values of the inputs, the same in every process."""
        rng = np.random.default_rng([self.seed, self.index, 1])
        return [given.array(rng) for given in self.inputs]


Draw = Callable[[np.random.Generator], Case]


def short(dtype: str) -> str:
    """f32 for float32, and so on."""
    return dtype.replace("float", "f").replace("uint", "u").replace("int", "i")
