"""Tensors made of nothing but a shape, or of a range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from loopwright import relay
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.registry import converter
from loopwright.frontends.pytorch.values import Operand, Size
from loopwright.relay.expr import Expr
from loopwright.relay.types import is_any
from loopwright.runtime.dtype import DataType

if TYPE_CHECKING:
    import torch

_MOST = 1 << 20  # elements of a range that is a constant


def _filled(node: Node, value: Operand, sizes: Sequence[Size] | None = None) -> Expr:
    shape = node.out_shape()
    kind = node.out_dtype()
    if any(is_any(size) for size in shape):
        if sizes is None:
            raise node.unsupported("a shape that is known only when the model runs")
        return relay.full(node.operand(value, kind), node.shape_of(sizes), kind)
    return relay.full(node.operand(value, kind), shape, kind)


@converter("full")
def full(node: Node, sizes: Sequence[Size], value: Operand, dtype: torch.dtype | None = None) -> Expr:
    return _filled(node, value, sizes)


@converter("zeros", "empty.memory_format", "empty_permuted", "empty_strided")
def zeros(node: Node, sizes: Sequence[Size], *others: object, dtype: torch.dtype | None = None) -> Expr:
    return _filled(node, 0, sizes)


@converter("ones")
def ones(node: Node, sizes: Sequence[Size], dtype: torch.dtype | None = None) -> Expr:
    return _filled(node, 1, sizes)


@converter("full_like")
def full_like(node: Node, x: Expr, value: Operand, dtype: torch.dtype | None = None) -> Expr:
    return _like(node, x, value)


@converter("zeros_like", "empty_like", "new_zeros", "new_empty", "new_empty_strided")
def zeros_like(node: Node, x: Expr, *sizes: Sequence[Size], dtype: torch.dtype | None = None) -> Expr:
    return _like(node, x, 0, *sizes)


@converter("ones_like", "new_ones")
def ones_like(node: Node, x: Expr, *sizes: Sequence[Size], dtype: torch.dtype | None = None) -> Expr:
    return _like(node, x, 1, *sizes)


@converter("new_full")
def new_full(node: Node, x: Expr, sizes: Sequence[Size], value: Operand, dtype: torch.dtype | None = None) -> Expr:
    return _like(node, x, value, sizes)


def _like(node: Node, x: Expr, value: Operand, *sizes: Sequence[Size]) -> Expr:
    if not sizes and any(is_any(size) for size in node.out_shape()):
        kind = node.out_dtype()
        return relay.full_like(node.cast(x, kind), node.operand(value, kind))
    return _filled(node, value, sizes[0] if sizes else None)


@converter("scalar_tensor")
def scalar_tensor(node: Node, value: Operand, dtype: torch.dtype | None = None) -> Expr:
    return node.operand(value, node.out_dtype())


@converter("arange.start_step", "arange.start", "arange.default", "arange.start_out")
def arange(node: Node, *bounds: Operand, dtype: torch.dtype | None = None) -> Expr:
    start: Operand
    end: Operand
    step: Operand
    start, end, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    kind = node.out_dtype()
    (count,) = node.out_shape()
    if isinstance(count, int) and count <= _MOST and isinstance(start, (int, float)) and isinstance(step, (int, float)):
        by = np.float64(step) if DataType(kind).is_float else step
        return node.const(np.arange(count) * by + start, kind)
    if is_any(count):
        if not DataType(kind).is_float:
            return relay.arange(*[node.operand(one, kind) for one in (start, end, step)], dtype=kind)
        raise node.unsupported("a range of real numbers whose size is known only when the model runs")
    # So many: the places are the sums of so many ones.
    wide = "int64" if not DataType(kind).is_float else node.wide(kind)
    locations = relay.cumsum(relay.full(node.const(1), (count,), "int64"), axis=0, dtype="int64", exclusive=True)
    locations = node.cast(locations, wide)
    if not (isinstance(step, int) and step == 1):
        locations = relay.multiply(locations, node.operand(step, wide))
    return locations if isinstance(start, int) and start == 0 else relay.add(locations, node.operand(start, wide))


@converter("tril_indices", "triu_indices")
def triangle_indices(node: Node, rows: int, columns: int, offset: int = 0, dtype: torch.dtype | None = None) -> Expr:
    find = np.tril_indices if "tril" in node.op else np.triu_indices
    return node.const(np.stack(find(rows, offset, columns)), node.out_dtype())
