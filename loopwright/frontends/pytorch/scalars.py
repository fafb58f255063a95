"""Numbers that are computed beside the tensors: sizes, and numbers read out of tensors.

x.shape[0] * 2          an expression of size variables
x.sum().item() + 1      a tensor of one number
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from loopwright import relay
from loopwright.frontends.pytorch.errors import BadTorchNode
from loopwright.frontends.pytorch.registry import names_of
from loopwright.frontends.pytorch.sizes import Importing
from loopwright.frontends.pytorch.values import Operand
from loopwright.ir import Expr as PrimExpr
from loopwright.ir import IntImm
from loopwright.ir import Var as SizeVariable
from loopwright.ir.expr import arithmetic
from loopwright.relay.expr import Expr
from loopwright.relay.types import is_any

if TYPE_CHECKING:
    import torch


def scalar(importer: Importing, fx: torch.fx.Node, args: Sequence[Any]) -> Operand:
    """A number: as it is, as an expression of size variables, or as a tensor that has it when the model runs."""
    value = fx.meta["val"]
    if isinstance(value, (bool, int, float)):
        return value
    if type(value).__name__ == "SymInt":
        result = importer.sizes.of(value)
        if not is_any(result):
            return result
    name = names_of(fx.target)[1]
    if name in ("aten::item", "aten::_local_scalar_dense"):
        whole = type(value).__name__ != "SymFloat"
        flat = relay.reshape(args[0], ())
        return relay.cast(flat, "int64" if whole else "float64")
    if name == "aten::sym_size":
        return relay.take(relay.shape_of(args[0], dtype="int64"), relay.const(args[1], "int64"), axis=0)
    if name == "aten::sym_numel":
        return relay.ndarray_size(args[0], dtype="int64")
    how = _OPERATORS.get(getattr(fx.target, "__name__", ""))
    if how is None:
        raise BadTorchNode(fx.name, name, "there is no way to compute this number when the model runs")
    real = type(value).__name__ == "SymFloat" or fx.target is operator.truediv
    kind = "float64" if real else "int64"
    return how(*[_tensor(importer, arg, kind) for arg in args])


def _tensor(importer: Importing, value: Operand, dtype: str) -> Expr:
    if isinstance(value, PrimExpr):
        value = importer.size_tensor(value)
    if not isinstance(value, Expr):
        return relay.const(value, dtype)
    return relay.cast(value, dtype)


def _rounded(function: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    return lambda x: relay.cast(function(x), "int64")


# By the names of the functions of Python and torch that compute with sizes.
_OPERATORS: Final[dict[str, Callable[..., Expr]]] = {
    operator.add.__name__: relay.add,
    operator.sub.__name__: relay.subtract,
    operator.mul.__name__: relay.multiply,
    operator.truediv.__name__: relay.divide,
    operator.floordiv.__name__: relay.floor_divide,
    operator.mod.__name__: relay.floor_mod,
    operator.neg.__name__: relay.negative,
    operator.pow.__name__: relay.power,
    "sym_max": relay.maximum,
    "sym_min": relay.minimum,
    "sym_float": lambda x: relay.cast(x, "float64"),
    "sym_int": lambda x: relay.cast(x, "int64"),
    math.floor.__name__: _rounded(relay.floor),
    math.ceil.__name__: _rounded(relay.ceil),
    math.trunc.__name__: _rounded(relay.trunc),
    "sqrt": relay.sqrt,
    "_sym_sqrt": relay.sqrt,
}

_ARITHMETIC: Final[dict[type, Callable[..., Expr]]] = {
    arithmetic.Add: relay.add,
    arithmetic.Sub: relay.subtract,
    arithmetic.Mul: relay.multiply,
    arithmetic.FloorDiv: relay.floor_divide,
    arithmetic.FloorMod: relay.floor_mod,
    arithmetic.Div: relay.trunc_divide,
    arithmetic.Max: relay.maximum,
    arithmetic.Min: relay.minimum,
}


def size_tensor(size: int | PrimExpr, locations: Mapping[str, tuple[Expr, int]]) -> Expr:
    """An expression of size variables as a tensor of one int64 number; `locations` says which input has which size."""
    if isinstance(size, (int, IntImm)):
        result: Expr = relay.const(int(size if isinstance(size, int) else size.value), "int64")
    elif isinstance(size, SizeVariable):
        var, axis = locations[size.name]
        result = relay.take(relay.shape_of(var, dtype="int64"), relay.const(axis, "int64"), axis=0)
    elif isinstance(size, arithmetic.Cast):
        result = size_tensor(size.value, locations)
    else:
        how = _ARITHMETIC[type(size)]
        assert isinstance(size, arithmetic.BinaryExpr)
        result = how(size_tensor(size.a, locations), size_tensor(size.b, locations))
    return result
