"""What the arguments of a call are: tensors, numbers, sizes, and lists of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, Union

from loopwright.ir import Expr as PrimExpr
from loopwright.relay.expr import Expr, TupleWrapper

if TYPE_CHECKING:
    import torch

# A size: a number, an expression of size variables, or a tensor of one number.
Size: TypeAlias = int | PrimExpr | Expr
# A tensor, a size, or a number.
Operand: TypeAlias = Expr | PrimExpr | float
# Axes that an operator works along: one, several, or all (None, or none named).
Axes: TypeAlias = int | Sequence[int] | None
# A number for each axis that a window moves along: one for all, or a list; the default where there is none.
PerAxis: TypeAlias = int | Sequence[int] | None
# What a node of the graph, or an argument of one, stands for; some are known to torch alone.
Argument: TypeAlias = Union[
    Operand, str, Sequence["Argument"], dict[str, "Argument"], TupleWrapper, "torch.dtype", "torch.fx.GraphModule", None
]
# What a converter returns: one result, or several; None is one that is not made.
Results: TypeAlias = Expr | TupleWrapper | Sequence[Expr | None]
