"""A row of a GPU benchmark: what Loopwright builds, what torch computes, and what both are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch

    from loopwright import te

ITEM_BYTES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int8": 1, "uint8": 1}


class Case(NamedTuple):
    """`program` gives the tensors of the signature, inputs first and the one output last; nothing is scheduled.

    `reference` takes torch tensors in the same order: run in the case's types it is torch eager, in float64 the truth.
    Floats are standard normal; integers index the rows of the first input.
    """

    family: str
    name: str
    program: Callable[[], Sequence[te.Tensor]]
    reference: Callable[..., torch.Tensor]
    inputs: tuple[tuple[tuple[int, ...], str], ...]  # shape and dtype of each
    out: tuple[int, ...]

    @property
    def input_bytes(self) -> int:
        return sum(prod(shape) * ITEM_BYTES[dtype] for shape, dtype in self.inputs)
