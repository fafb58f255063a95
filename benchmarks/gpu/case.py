"""A row of a GPU benchmark: what Loopwright builds, what torch computes, and what both are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch

    from loopwright import te

_ITEM_BYTES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2}


class Case(NamedTuple):
    """`program` gives the tensors of the signature, inputs first and the one output last; nothing is scheduled.

    `reference` takes torch tensors in the same order: in the types of `inputs` it is torch eager, in float64 the truth.
    Floats are standard normal; those of rank 1 after the first input (weights, variances) are between 0.5 and 1.5.
    Integers index the rows of the first input that has floats.
    """

    family: str
    name: str
    program: Callable[[], Sequence[te.Tensor]]
    reference: Callable[..., torch.Tensor]
    inputs: tuple[tuple[tuple[int, ...], str], ...]  # shape and dtype of each
    out: tuple[int, ...]

    @property
    def title(self) -> str:
        return f"{self.family}: {self.name}"

    @property
    def input_bytes(self) -> int:
        return sum(prod(shape) * _ITEM_BYTES.get(dtype, 1) for shape, dtype in self.inputs)


def make_inputs(case: Case, device: str, seed: int = 0) -> list[torch.Tensor]:
    """Arrays for one run of a case."""
    import torch

    generator = torch.Generator(device).manual_seed(seed)
    rows = next(shape[0] for shape, dtype in case.inputs if "float" in dtype and shape)
    result = []
    for position, (shape, dtype) in enumerate(case.inputs):
        if "float" not in dtype:
            data = torch.randint(0, max(1, rows), shape, generator=generator, device=device)
        elif position and len(shape) == 1:
            data = torch.rand(shape, generator=generator, device=device) + 0.5
        else:
            data = torch.randn(shape, generator=generator, device=device)
        result.append(data.to(getattr(torch, dtype)))
    return result


def error_of(got: torch.Tensor, truth: torch.Tensor) -> float:
    """The largest error, relative to the value or to the root mean square of all, whichever is larger."""
    import torch

    if not truth.numel():
        return 0.0
    truth = truth.double()
    scale = truth.square().mean().sqrt().clamp(min=1e-30)
    return float(torch.max((got.double() - truth).abs() / torch.maximum(truth.abs(), scale)))


def bound_of(dtype: str) -> float:
    return {"float64": 1e-10, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}.get(dtype, 0.0)


def truth_of(case: Case, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
    """What torch computes in float64."""
    return case.reference(*[one.double() if one.is_floating_point() else one for one in inputs])
