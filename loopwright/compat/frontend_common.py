"""relay.frontend.common: what importers of scripts ask while they build a graph: types, shapes, values known already.

    infer_shape(relay.nn.dense(x, w))          (1, 10)
    infer_value(shape_expression, params)      an NDArray: computed by the reference interpreter
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopwright.ir import IRModule
from loopwright.relay.analysis import free_vars
from loopwright.relay.expr import Constant, Expr, Function, TupleWrapper, Var, var
from loopwright.relay.infer_type import infer, infer_module
from loopwright.relay.interpreter import evaluate
from loopwright.relay.op import make
from loopwright.relay.op.registry import FUNCTIONS, load_all
from loopwright.relay.transform import FoldConstantExpr
from loopwright.relay.types import TensorType, is_any
from loopwright.runtime import NDArray, array
from loopwright.runtime.errors import LoopwrightError


def infer_type(node: Any, mod: IRModule | None = None) -> Any:
    """The expression, which knows its type then; functions that it calls by name are those of `mod`."""
    expression = node.astuple() if isinstance(node, TupleWrapper) else node
    if mod is None:
        infer(expression)
    else:
        whole = expression if isinstance(expression, Function) else Function(free_vars(expression), expression)
        infer_module(IRModule({**dict(mod.items()), "main": whole}))  # type: ignore[dict-item]
    return expression


def infer_shape(inputs: Any, mod: IRModule | None = None) -> tuple[Any, ...]:
    """The shape of a tensor: integers, and expressions or `Any()` where they are not known; () for anything else."""
    of = infer_type(inputs, mod).checked_type
    return tuple(of.shape) if isinstance(of, TensorType) else ()


def infer_channels(inputs: Any, transpose: bool = False) -> Any:
    """The number of channels that a weight makes: its first size, or the second of a transposed convolution's."""
    return infer_shape(inputs)[1 if transpose else 0]


def infer_value(input_val: Expr, params: Mapping[str, Any], mod: IRModule | None = None) -> NDArray:
    """The value of an expression all of whose variables are parameters; AssertionError where one is not."""
    infer_type(input_val, mod)
    values: dict[Var, Any] = {}
    for each in free_vars(input_val):
        if each.name_hint not in params:
            raise AssertionError(f"All inputs to infer must be available in params: {each.name_hint} is not")
        values[each] = _array(params[each.name_hint])
    return array(np.asarray(evaluate(input_val, values, mod)))


def _array(value: Any) -> np.ndarray:
    if isinstance(value, Constant):
        return value.data
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def infer_value_simulated(input_val: Expr, params: Mapping[str, Any]) -> NDArray:
    """The value of an expression whose variables are parameters, or tensors of ones where they are not."""
    infer_type(input_val)
    known = dict(params)
    for each in free_vars(input_val):
        of = each.checked_type
        assert isinstance(of, TensorType)
        known.setdefault(each.name_hint, np.ones(of.concrete_shape, str(of.dtype)))
    return infer_value(input_val, known)


def try_infer_value(
    val: Expr,
    on_success: Callable[[Any], Any] | None = None,
    on_failure: Callable[[], Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> tuple[Any, bool]:
    """An expression's value as an array, and whether it is known; else the expression, or what `on_failure` says."""
    try:
        result = infer_value(val, parameters or {}).numpy()
    except (AssertionError, LoopwrightError, NotImplementedError):
        return (on_failure() if on_failure is not None else val), False
    return (on_success(result) if on_success is not None else result), True


def fold_constant(node: Expr, mod: IRModule | None = None) -> Expr:
    """The expression with what is known computed."""
    result: Expr = FoldConstantExpr(node, mod if mod is not None else IRModule({}))
    return result


def shape_of(x: Any, dtype: str = "int64", start: int | None = None, end: int | None = None) -> Expr:
    """The shape of a tensor as a vector, or a part of it: a constant where it is known."""
    shape = infer_shape(x)[start:end]
    if not any(is_any(size) or not isinstance(size, int) for size in shape):
        return Constant(np.asarray(shape, dtype))
    whole = make("shape_of", x, dtype=dtype)
    rank = len(infer_shape(x))
    begin, stop, _ = slice(start, end).indices(rank)
    if (begin, stop) == (0, rank):
        result: Expr = whole
        return result
    part: Expr = make("strided_slice", whole, begin=(begin,), end=(stop,), strides=(1,))
    return part


def new_var(name_hint: str, type_annotation: Any = None, shape: Any = None, dtype: str = "float32") -> Var:
    return var(name_hint, type_annotation, shape, dtype)


def get_name(node: Any) -> str:
    """The name of a variable."""
    name = getattr(node, "name_hint", None)
    if name is None:
        raise RuntimeError(f"{node} is no variable, and has no name")
    return str(name)


def get_relay_op(op_name: str) -> Callable[..., Any]:
    """The function of an operator, by its name with or without its namespace (`dense`, `nn.dense`)."""
    load_all()
    for prefix in ("", "nn.", "image.", "vision."):
        if prefix + op_name in FUNCTIONS:
            return FUNCTIONS[prefix + op_name]
    raise NotImplementedError(f"Unable to map op_name {op_name} to relay")


def to_int_list(np_array: Any) -> list[int]:
    """Python's integers of an array's, which are no integers to many a function."""
    return [int(value) for value in np_array]


def ensure_scalar_shape(x: Any) -> Any:
    """A tensor of one element as a scalar."""
    return make("reshape", x, newshape=()) if infer_shape(x) else x


class ExprTable:
    """Expressions by name, parameters apart."""

    def __init__(self) -> None:
        self.exprs: dict[str, Any] = {}
        self.params: dict[str, Any] = {}
        self.const_ctr = 1

    def new_const(self, value: Any, shape: Sequence[int] | None = None, dtype: str = "float32") -> Var:
        """A parameter of that value, and the variable that stands for it."""
        name = f"_param_{self.const_ctr}"
        value = _array(value).astype(dtype)
        self.const_ctr += 1
        self.params[name] = array(value)
        self.exprs[name] = new_var(name, shape=value.shape if shape is None else shape, dtype=dtype)
        made: Var = self.exprs[name]
        return made

    def get_expr(self, name: str) -> Any:
        return self.exprs[name]

    def set_expr(self, name: str, expr: Any, force_override: bool = False) -> None:
        if force_override or name not in self.exprs:
            self.exprs[name] = expr

    def has_expr(self, name: str) -> bool:
        return name in self.exprs
