"""What converters ask about tensors of the graph, whichever framework the model comes from.

class Node(Tensors): ...

rows, *_ = node.shape(x)                 sizes: numbers, expressions of size variables, or AnyDim()
y = relay.multiply(x, node.const(2, x))  a constant of the element type of x
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from loopwright import relay
from loopwright.ir.pass_context import PassContext
from loopwright.ir.types import Type
from loopwright.relay.expr import Constant, Expr, TupleWrapper, Var, require_expr
from loopwright.relay.types import Dim, TensorType, is_any, same_dim
from loopwright.relay.visitor import parts
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError

# What operators of relay take as a tensor: an expression, or the results of an operator that has several.
Tensor: TypeAlias = Expr | TupleWrapper
# What names an element type: its name, or a tensor of it.
DTypeLike: TypeAlias = str | DataType | Expr

T = TypeVar("T")


class Tensors:
    """Types of tensors, and small expressions made of them; a front end's node says how types are found."""

    def type_of(self, x: Expr) -> Type:
        raise NotImplementedError

    def bad(self, problem: str, hint: str | None = None) -> LoopwrightError:
        """The error that names the node and says what is wrong with it."""
        raise NotImplementedError

    def unsupported(self, problem: str, hint: str | None = None) -> LoopwrightError:
        """The error that names the node and says what of it is not supported."""
        raise NotImplementedError

    def known(self, x: Expr) -> np.ndarray | None:
        """The elements of a tensor where they are known before the model runs."""
        raise NotImplementedError

    def same_element(self, x: Expr, like: Expr) -> Expr:
        """`x`, noted to be of the element type of the model that `like` has; the graph may carry it in another."""
        return x

    # Types.

    def type(self, x: Tensor) -> TensorType:
        """The type of a tensor."""
        result = self.type_of(require_expr(x, "a tensor"))
        if not isinstance(result, TensorType):
            raise self.bad(f"a tensor is needed, and not {result}")
        return result

    def shape(self, x: Tensor) -> tuple[Dim, ...]:
        return self.type(x).shape

    def rank(self, x: Tensor) -> int:
        return len(self.type(x).shape)

    def dtype(self, x: Tensor) -> DataType:
        return self.type(x).dtype

    def is_float(self, x: Tensor) -> bool:
        return self.dtype(x).is_float

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from the front."""
        if not -rank <= axis < max(rank, 1):
            raise self.bad(f"axis {axis} is not one of a tensor of {rank} dimensions")
        return axis + rank if axis < 0 else axis

    def sum_dtype(self, x: Tensor) -> str:
        """The type to add up many elements of `x` in: float32 for halves, which would lose what is small."""
        kind = self.dtype(x)
        return "float32" if kind.is_float and kind.bits <= 16 else str(kind)

    # Making expressions.

    def const(self, value: npt.ArrayLike, dtype: DTypeLike = "int64") -> Constant:
        """A constant of the element type given, or of that of an expression."""
        kind = self.dtype(dtype) if isinstance(dtype, Expr) else DataType(dtype)
        result: Constant = relay.const(value, str(kind))
        return result

    def beside(self, x: Expr, shape: Sequence[Dim]) -> Expr:
        """`x` as an operand beside a tensor of `shape`, which repeats it and is never repeated itself.

        Sizes that are known only in a call are checked there: each of `x` is 1, or that of the tensor.
        """
        own = self.shape(x)
        if len(own) > len(shape):
            raise self.bad(f"a tensor of shape {shape_text(own)} cannot be repeated to {shape_text(shape)}")
        last = shape[len(shape) - len(own) :]
        wanted = [one if same_dim(one, 1) or is_any(one) else other for one, other in zip(own, last)]
        if all(is_any(one) or is_any(other) or same_dim(one, other) for one, other in zip(own, wanted)):
            return x
        repeated: Expr = relay.broadcast_to(x, tuple(wanted))
        return repeated

    def cast(self, x: Expr, dtype: DTypeLike) -> Expr:
        """`x` in another element type; as it is where it has that already."""
        wanted = self.dtype(dtype) if isinstance(dtype, Expr) else DataType(dtype)
        return x if self.dtype(x) == wanted else relay.cast(x, str(wanted))


def as_list(results: T | TupleWrapper | Sequence[T | None]) -> list[T | Expr | None]:
    """What a converter returns, as a list of results."""
    if isinstance(results, TupleWrapper):
        return list(results)
    if isinstance(results, Sequence):
        return list(results)
    return [results]


def name_calls(root: Expr, name: str) -> None:
    """Have what was made for a node carry its name; what was there before has one."""
    context = PassContext.innermost()
    if context is not None and not context.setting("relay.frontend.fill_span"):
        return
    stack: list[Expr] = [root]
    while stack:
        one = stack.pop()
        if isinstance(one, (Var, Constant)) or getattr(one, "span", name) is not None:
            continue
        one.span = name
        stack.extend(parts(one))


def shape_text(shape: Sequence[Dim]) -> str:
    return f"({', '.join(map(str, shape))})"
