"""DynamicToStatic: shapes as operands become attributes, numbers and size variables alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopwright import relay, te
from loopwright.relay.interpreter import evaluate
from loopwright.relay.transform import DynamicToStatic, FoldConstant
from loopwright.relay.transform.shape_values import ShapeValues
from loopwright.relay.transform.typed_rewrite import KnownTypes
from tests.relay.transform.graphs import apply, assert_same_results, function, operators


def _x(*shape: Any, dtype: str = "float32") -> relay.Var:
    return relay.var("x", shape=shape, dtype=dtype)


def _static(before: Any) -> relay.Function:
    first = function(before)
    found = apply(DynamicToStatic(), first)
    assert not any(name.startswith("dyn.") for name in operators(found))
    assert all(isinstance(size, int) for size in _shape(found))
    assert_same_results(first, found)
    return found


def _shape(found: relay.Function) -> Any:
    of = found.body.checked_type
    return (of.fields[0] if hasattr(of, "fields") else of).shape


def _numbers(*values: Any, dtype: str = "int64") -> relay.Expr:
    """A vector that is no constant before it is folded."""
    return relay.const(np.array(values, dtype), dtype) + relay.const(np.zeros(len(values), dtype), dtype)


def _number(value: Any, dtype: str = "int64") -> relay.Expr:
    return relay.const(value, dtype) + relay.const(0, dtype)


def test_every_dynamic_operator_with_known_operands():
    x = _x(2, 3, 4, 4)
    indices = relay.var("i", shape=(3,), dtype="int32")
    _static(relay.reshape(x, _numbers(6, -1)))
    _static(relay.reshape(x, relay.shape_of(relay.var("y", shape=(8, 12)), "int64")))
    _static(relay.expand_dims(x, _number(1)))
    _static(relay.squeeze(_x(1, 3, 1), _numbers(0, 2)))
    _static(relay.broadcast_to(_x(3, 1), _numbers(2, 3, 4)))
    _static(relay.tile(_x(2, 3), _numbers(2, 1, 3)))
    _static(relay.full(relay.const(2.0), _numbers(2, 3)))
    _static(relay.zeros(_numbers(2, 0), "int32"))
    _static(relay.ones(_numbers(3), "float32"))
    _static(relay.one_hot(indices, 1.0, 0.0, _number(5, "int32"), -1, "float32"))
    _static(relay.strided_slice(x, _numbers(0, 1), _numbers(2, 3)))
    _static(relay.topk(_x(3, 5), _number(2), ret_type="values"))
    _static(relay.topk(_x(3, 5), _number(2)).astuple())
    _static(relay.nn.pad(x, relay.reshape(_numbers(0, 0, 0, 0, 1, 2, 0, 1), (4, 2))))
    _static(relay.nn.upsampling(x, _number(2.0, "float32"), _number(3.0, "float32")))
    _static(relay.image.resize2d(x, _numbers(8, 6), method="nearest_neighbor"))
    _static(relay.arange(_number(2), _number(9), _number(3), dtype="int64"))


def test_operands_that_are_inputs_stay():
    x, shape = _x(2, 6), relay.var("s", shape=(2,), dtype="int64")
    assert operators(apply(DynamicToStatic(), relay.reshape(x, shape))) == ["dyn.reshape"]


def test_shapes_of_numbers_become_constants():
    found = apply([DynamicToStatic(), FoldConstant()], relay.shape_of(_x(2, 5)))
    np.testing.assert_array_equal(found.body.data, np.array([2, 5], "int32"))


# Size variables


def _runs(before: Any, *arguments: np.ndarray) -> relay.Function:
    """The pass leaves no dynamic operator and no unknown size; both give the same for these arguments."""
    first = function(before)
    found = apply(DynamicToStatic(), first)
    assert not any(name.startswith("dyn.") for name in operators(found))
    assert "?" not in str(found.body.checked_type)
    np.testing.assert_array_equal(evaluate(first, arguments), evaluate_with_sizes(found, arguments))
    return found


def evaluate_with_sizes(found: relay.Function, arguments: Any) -> Any:
    """Attributes hold size variables: put the numbers of the arguments in, then run."""
    from loopwright.ir import substitute
    from loopwright.ir.expr import Expr as PrimExpr
    from loopwright.relay.visitor import ExprMutator

    sizes = {}
    for param, argument in zip(found.params, arguments, strict=True):
        for size, number in zip(param.checked_type.shape, argument.shape, strict=True):
            if isinstance(size, PrimExpr):
                sizes[size] = number

    def number(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(number(one) for one in value)
        if isinstance(value, PrimExpr):
            from loopwright.relay.types import as_dim

            return as_dim(substitute(value, {var: te.const(n, var.dtype) for var, n in sizes.items()}))
        return value

    class Numbers(ExprMutator):
        def visit_call(self, call: Any) -> Any:
            changed = super().visit_call(call)
            if changed.attrs is None:
                return changed
            attrs = changed.attrs.with_(**{name: number(value) for name, value in changed.attrs.items()})
            return relay.Call(changed.op, changed.args, attrs)

    body = Numbers().visit(found.body)
    types = [relay.TensorType(argument.shape, argument.dtype.name) for argument in arguments]
    params = [relay.Var(param.name_hint, of) for param, of in zip(found.params, types, strict=True)]
    bound = relay.bind(relay.Function(found.params, body).body, dict(zip(found.params, params, strict=True)))
    return evaluate(function(relay.Function(params, bound)), arguments)


def _array(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


def _first_size(x: relay.Expr, axis: int = 0) -> relay.Expr:
    return relay.take(relay.shape_of(x, "int64"), relay.const([axis], "int64"), axis=0)


def test_heads_of_attention():
    n = te.size_var("n", "int64")
    x = _x(1, n, 24)
    shape = relay.concatenate([relay.const([1], "int64"), _first_size(x, 1), relay.const([4, 6], "int64")], 0)
    heads = relay.transpose(relay.reshape(x, shape), (0, 2, 1, 3))
    back = relay.concatenate([relay.const([1], "int64"), _first_size(heads, 2), relay.const([24], "int64")], 0)
    found = _runs(relay.reshape(relay.transpose(heads, (0, 2, 1, 3)), back), _array(1, 5, 24))
    assert str(found.body.checked_type) == "Tensor[(1, n, 24), float32]"


def test_arithmetic_on_sizes():
    n = te.size_var("n", "int64")
    x = _x(n, 6)
    size = _first_size(x)
    two = relay.const([2], "int64")
    double = relay.concatenate([size * two, relay.const([3], "int64")], 0)
    found = _runs(relay.reshape(x, double), _array(5, 6))
    assert str(found.body.checked_type) == "Tensor[(n * T.int64(2), 3), float32]"
    count = relay.reshape(relay.ndarray_size(x, "int64"), (1,))
    found = _runs(relay.reshape(x, relay.floor_divide(count, relay.const([1], "int64"))), _array(5, 6))
    assert str(found.body.checked_type) == "Tensor[(n * T.int64(6)), float32]"


def test_slices_up_to_a_size():
    n = te.size_var("n", "int64")
    x = _x(n, 4)
    table = relay.var("t", shape=(16, 4))
    end = relay.concatenate([_first_size(x), relay.const([4], "int64")], 0)
    rows = relay.strided_slice(table, relay.const([0, 0], "int64"), end)
    found = apply(DynamicToStatic(), relay.Function([x, table], x + rows))
    assert operators(found) == ["add", "strided_slice"]
    assert len(found.body.checked_type.shape) == 2


def test_expand_as_exporters_write_it():
    """where(equal(shape, -1), ones, shape): a size is never -1."""
    n = te.size_var("n", "int64")
    x = _x(n, 1)
    wanted = relay.concatenate([_first_size(x), relay.const([4], "int64")], 0)
    ones = relay.const([1, 1], "int64")
    shape = relay.where(relay.equal(wanted, ones * relay.const(-1, "int64")), ones, wanted)
    found = _runs(relay.broadcast_to(x, shape), _array(5, 1))
    assert str(found.body.checked_type) == "Tensor[(n, 4), float32]"


def test_a_range_of_a_size():
    n = te.size_var("n", "int64")
    x = _x(n)
    stop = relay.squeeze(_first_size(x), 0)
    found = _runs(relay.arange(relay.const(0, "int64"), stop, relay.const(1, "int64"), dtype="int64"), _array(7))
    assert str(found.body.checked_type) == "Tensor[(n), int64]"


def test_a_size_nobody_knows_stays_dynamic():
    x = _x(relay.AnyDim(), 6)
    before = relay.reshape(x, relay.concatenate([_first_size(x), relay.const([2, 3], "int64")], 0))
    assert "dyn.reshape" in operators(apply(DynamicToStatic(), before))


@pytest.mark.parametrize("values", [[-7, 7, 0], [3, -3, 8]])
def test_numbers_are_computed_as_the_operators_do(values: list[int]):
    """Sizes and numbers in one vector: the numbers by the rules of the operators."""
    n = te.size_var("n", "int64")
    x = _x(n)
    mixed = relay.concatenate([_first_size(x), relay.const(values, "int64")], 0)
    other = relay.const([1, 2, 2, 3], "int64")
    for name in ("add", "subtract", "multiply", "divide", "floor_divide", "mod", "floor_mod", "maximum", "minimum"):
        call = getattr(relay, name)(mixed, other)
        first = function(relay.Function([x], call))
        found = ShapeValues(KnownTypes()).of(call)
        assert list(found[1:]) == list(evaluate(first, [_array(5)])[1:]), name
