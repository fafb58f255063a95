"""affine: what stored integers stand for: (q - zero point) · scale, which is one number or one a place on an axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from loopwright.relay.expr import Constant, Expr, const
from loopwright.relay.op.registry import FUNCTIONS


@dataclass(frozen=True, eq=False)
class Affine:
    """The scale and zero point of a tensor of integers; `axis` counts from the front."""

    scale: Expr
    zero_point: Expr
    dtype: str
    axis: int = -1

    @property
    def is_per_channel(self) -> bool:
        return not isinstance(self.scale, Constant) or self.scale.data.size > 1

    @property
    def is_constant(self) -> bool:
        return isinstance(self.scale, Constant) and isinstance(self.zero_point, Constant)

    @property
    def has_no_zero_point(self) -> bool:
        return isinstance(self.zero_point, Constant) and not self.zero_point.data.any()

    def same(self, other: Affine) -> bool:
        """Whether integers of the one are integers of the other."""
        if self.dtype != other.dtype or (self.is_per_channel and self.axis != other.axis):
            return False
        return _equal(self.scale, other.scale) and _equal(self.zero_point, other.zero_point)


@dataclass(frozen=True, eq=False)
class Quantized:
    """Integers in the graph, and what they stand for."""

    expr: Expr
    affine: Affine


# What an expression of an island is: integers, a list for a tuple, or itself where it is no quantized tensor.
Operand: TypeAlias = Quantized | Expr | list["Operand"]


def _equal(one: Expr, other: Expr) -> bool:
    if one is other:
        return True
    if not isinstance(one, Constant) or not isinstance(other, Constant):
        return False
    return one.data.shape == other.data.shape and np.array_equal(one.data, other.data)


def requantized(value: Quantized, wanted: Affine) -> Expr:
    """The integers of another scale that stand for the same numbers, as nearly as can be."""
    if value.affine.same(wanted):
        return value.expr
    axis = value.affine.axis if value.affine.is_per_channel else wanted.axis
    return FUNCTIONS["qnn.requantize"](
        value.expr,
        value.affine.scale,
        value.affine.zero_point,
        wanted.scale,
        wanted.zero_point,
        axis=axis,
        out_dtype=wanted.dtype,
    )


def products_scale(one: Affine, other: Affine) -> Expr:
    """The scale of products of numbers of two scales."""
    if isinstance(one.scale, Constant) and isinstance(other.scale, Constant):
        return const(np.asarray(one.scale.data, "float32") * np.asarray(other.scale.data, "float32"), "float32")
    return one.scale * other.scale


def no_zero_point() -> Expr:
    return const(0, "int32")
