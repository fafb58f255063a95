"""What a converter asks about its node: what torch says of the result, and tensors and numbers as expressions.

node.out_shape(), node.out_dtype()       the result that torch expects: sizes, and an element type of ours
node.operand(other, "float32")           a tensor, a number or a size as an expression of that type
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from loopwright import relay
from loopwright.frontends.common.tensors import DTypeLike, Tensor, Tensors, shape_text
from loopwright.frontends.pytorch.element_types import our_dtype
from loopwright.frontends.pytorch.errors import BadTorchNode
from loopwright.frontends.pytorch.sizes import Importing
from loopwright.frontends.pytorch.values import Operand, PerAxis, Size
from loopwright.ir import Expr as PrimExpr
from loopwright.ir.types import Type
from loopwright.relay.expr import Constant, Expr
from loopwright.relay.types import AnyDim, Dim, is_any, same_dim
from loopwright.runtime.dtype import DataType

if TYPE_CHECKING:
    import torch


class Node(Tensors):
    """One node of the exported graph while it is converted."""

    def __init__(self, importer: Importing, name: str, op: str, fx: torch.fx.Node) -> None:
        self.importer = importer
        self.name = name
        self.op = op
        self.fx = fx

    def type_of(self, x: Expr) -> Type:
        return self.importer.type_of(x)

    # What torch says of the result.

    @property
    def results(self) -> Any:
        """What torch knows of the result: a tensor without elements, a number, or several of them."""
        return self.fx.meta.get("val")

    def result(self, index: int = 0) -> Any:
        result = self.results
        return result[index] if isinstance(result, (list, tuple)) else result

    def out_shape(self, index: int = 0) -> tuple[Dim, ...]:
        return tuple(self.importer.sizes.of(size) for size in self.result(index).shape)

    def out_dtype(self, index: int = 0) -> str:
        return our_dtype(self.result(index).dtype, f"the result of node {self.name!r} ({self.op})")

    def wants(self, index: int) -> bool:
        """Whether somebody uses that one of several results."""
        import operator

        return any(user.target is not operator.getitem or user.args[1] == index for user in self.fx.users)

    # Arguments.

    def operand(self, x: Operand, dtype: DTypeLike) -> Expr:
        """A tensor, a number or a size as an expression of an element type, or of that of an expression."""
        kind = str(self.dtype(dtype) if isinstance(dtype, Expr) else DataType(dtype))
        if isinstance(x, Expr):
            return self.cast(x, kind)
        if isinstance(x, PrimExpr):
            return self.cast(self.importer.size_tensor(x), kind)
        return self.const(x, kind)

    def float_operand(self, x: Expr) -> Expr:
        """A tensor, as real numbers of the type that torch gives the result; halves as float32."""
        return self.cast(x, self.wide(self.out_dtype()))

    def wide(self, dtype: str) -> str:
        """The type to compute in: float32 for halves, as torch does."""
        kind = DataType(dtype)
        return "float32" if kind.is_float and kind.bits <= 16 else dtype

    def known(self, x: Expr) -> np.ndarray | None:
        return x.data if isinstance(x, Constant) else None

    def shape_of(self, sizes: Sequence[Size | AnyDim]) -> Expr | tuple[Size | AnyDim, ...]:
        """A shape that an argument says: sizes, or an expression where one of them is known when the model runs."""
        if not any(isinstance(size, Expr) for size in sizes):
            return tuple(sizes)
        numbers = [size for size in sizes if not is_any(size)]
        if len(numbers) != len(sizes):
            raise self.unsupported("a shape with a size that no argument says")
        parts = [relay.reshape(self.operand(size, "int64"), (1,)) for size in numbers]
        return relay.concatenate(parts, axis=0)

    def static_shape(self, x: Tensor) -> tuple[int, ...]:
        """The shape as numbers; a refusal where a size is not one."""
        shape = self.shape(x)
        if not all(isinstance(size, int) for size in shape):
            raise self.unsupported(
                f"the shape {shape_text(shape)} with sizes that are not numbers", hint="export it with fixed sizes"
            )
        return tuple(int(size) for size in shape if isinstance(size, int))

    # Making expressions.

    def reshaped(self, x: Expr, shape: Sequence[Dim]) -> Expr:
        """`x` in another shape; as it is where it has that already. One size may be known only at run time."""
        given = self.shape(x)
        if len(given) == len(shape) and all(map(same_dim, given, shape)):
            return x
        open_sizes = sum(is_any(size) for size in shape)
        if open_sizes > 1:
            raise self.unsupported(f"the shape {shape_text(shape)}, of which several sizes are known at run time")
        return relay.reshape(x, tuple(-1 if is_any(size) else size for size in shape), allowzero=True)

    def like(self, x: Expr, value: float) -> Constant:
        """A number of the element type of `x`."""
        return self.const(value, x)

    # What is wrong.

    def bad(self, problem: str, hint: str | None = None) -> BadTorchNode:
        return BadTorchNode(self.name, self.op, problem, hint=hint)

    def unsupported(self, problem: str, hint: str | None = None) -> BadTorchNode:
        return BadTorchNode(self.name, self.op, f"{problem} is not supported", hint=hint)


def ints(value: PerAxis, count: int, default: int = 0) -> list[int]:
    """One number for each of `count` axes: a list, one for all, or none for `default`."""
    given = list(value) if isinstance(value, Sequence) else [value]
    listed = [one for one in given if one is not None]
    if not listed:
        return [default] * count
    return listed * count if len(listed) == 1 else listed


def is_static(sizes: Sequence[Dim]) -> bool:
    return all(isinstance(size, int) for size in sizes)
