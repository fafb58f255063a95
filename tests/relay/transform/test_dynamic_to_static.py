"""DynamicToStatic: shapes as operands become attributes, numbers and size variables alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopwright import relay, te
from loopwright.arith import Analyzer
from loopwright.ir import const, substitute
from loopwright.ir.function import IRModule
from loopwright.relay.interpreter import evaluate
from loopwright.relay.transform import DynamicToStatic, FoldConstant
from loopwright.relay.transform.typed_rewrite import KnownTypes
from loopwright.relay.transform.types.shape_values import ShapeValues
from tests.relay.pass_check import check, check_unchanged, program
from tests.relay.transform.graphs import function


def _x(*shape: Any, dtype: str = "float32") -> relay.Var:
    return relay.var("x", shape=shape, dtype=dtype)


def test_every_dynamic_operator_with_known_operands():
    # Sums, so that the operands are no constants before they are folded.
    check(
        DynamicToStatic(),
        "fn (%x: Tensor[(2, 3, 4, 4), float32]) { dyn.reshape(%x, add($given, $none)) }",
        "fn (%x: Tensor[(2, 3, 4, 4), float32]) { reshape(%x, newshape=[6, -1]) }",
        {"given": np.array([6, -1], "int64"), "none": np.array([0, 0], "int64")},
    )
    check(
        DynamicToStatic(),
        """
        fn (%x: Tensor[(2, 3, 4, 4), float32], %y: Tensor[(8, 12), float32]) {
          dyn.reshape(%x, shape_of(%y, dtype="int64"))
        }
        """,
        "fn (%x: Tensor[(2, 3, 4, 4), float32], %y: Tensor[(8, 12), float32]) { reshape(%x, newshape=[8, 12]) }",
    )
    check(
        DynamicToStatic(),
        "fn (%x: Tensor[(2, 3, 4, 4), float32]) { dyn.expand_dims(%x, add(1i64, 0i64)) }",
        "fn (%x: Tensor[(2, 3, 4, 4), float32]) { expand_dims(%x, axis=1) }",
    )
    check(
        DynamicToStatic(),
        "fn (%x: Tensor[(1, 3, 1), float32]) { dyn.squeeze(%x, add($given, $none)) }",
        "fn (%x: Tensor[(1, 3, 1), float32]) { squeeze(%x, axis=[0, 2]) }",
        {"given": np.array([0, 2], "int64"), "none": np.array([0, 0], "int64")},
    )
    check(
        DynamicToStatic(),
        "fn (%x: Tensor[(3, 1), float32]) { dyn.broadcast_to(%x, add($given, $none)) }",
        "fn (%x: Tensor[(3, 1), float32]) { broadcast_to(%x, shape=[2, 3, 4]) }",
        {"given": np.array([2, 3, 4], "int64"), "none": np.array([0, 0, 0], "int64")},
    )
    check(
        DynamicToStatic(),
        "fn (%x: Tensor[(2, 3), float32]) { dyn.tile(%x, add($given, $none)) }",
        "fn (%x: Tensor[(2, 3), float32]) { tile(%x, reps=[2, 1, 3]) }",
        {"given": np.array([2, 1, 3], "int64"), "none": np.array([0, 0, 0], "int64")},
    )
    check(
        DynamicToStatic(),
        "fn () { dyn.full(2f, add($given, $none)) }",
        "fn () { full(2f, shape=[2, 3]) }",
        {"given": np.array([2, 3], "int64"), "none": np.array([0, 0], "int64")},
    )
    check(
        DynamicToStatic(),
        'fn () { dyn.zeros(add($given, $none), dtype="int32") }',
        'fn () { zeros(shape=[2, 0], dtype="int32") }',
        {"given": np.array([2, 0], "int64"), "none": np.array([0, 0], "int64")},
    )
    check(
        DynamicToStatic(),
        'fn () { dyn.ones(add($given, $none), dtype="float32") }',
        'fn () { ones(shape=[3], dtype="float32") }',
        {"given": np.array([3], "int64"), "none": np.array([0], "int64")},
    )
    check(
        DynamicToStatic(),
        'fn (%i: Tensor[(3), int32]) { dyn.one_hot(%i, 1f, 0f, add(5, 0), axis=-1, dtype="float32") }',
        'fn (%i: Tensor[(3), int32]) { one_hot(%i, 1f, 0f, depth=5, axis=-1, dtype="float32") }',
    )
    check(
        DynamicToStatic(),
        """
        fn (%x: Tensor[(2, 3, 4, 4), float32]) {
          %0 = add($begin, $none);
          dyn.strided_slice(%x, %0, add($end, $none), ones_like(%0))
        }
        """,
        "fn (%x: Tensor[(2, 3, 4, 4), float32]) { strided_slice(%x, begin=[0, 1], end=[2, 3], strides=[1, 1]) }",
        {
            "begin": np.array([0, 1], "int64"),
            "end": np.array([2, 3], "int64"),
            "none": np.array([0, 0], "int64"),
        },
    )
    check(
        DynamicToStatic(),
        'fn (%x: Tensor[(3, 5), float32]) { dyn.topk(%x, add(2i64, 0i64), ret_type="values") }',
        'fn (%x: Tensor[(3, 5), float32]) { topk(%x, k=2, ret_type="values") }',
    )
    check(
        DynamicToStatic(),
        "fn (%x: Tensor[(3, 5), float32]) { dyn.topk(%x, add(2i64, 0i64)) }",
        "fn (%x: Tensor[(3, 5), float32]) { topk(%x, k=2) }",
    )
    check(
        DynamicToStatic(),
        "fn (%x: Tensor[(2, 3, 4, 4), float32]) { dyn.nn.pad(%x, reshape(add($given, $none), newshape=[4, 2]), 0) }",
        "fn (%x: Tensor[(2, 3, 4, 4), float32]) { nn.pad(%x, 0, pad_width=[[0, 0], [0, 0], [1, 2], [0, 1]]) }",
        {"given": np.array([0, 0, 0, 0, 1, 2, 0, 1], "int64"), "none": np.array([0, 0, 0, 0, 0, 0, 0, 0], "int64")},
    )
    check(
        DynamicToStatic(),
        "fn (%x: Tensor[(2, 3, 4, 4), float32]) { dyn.nn.upsampling(%x, add(2f, 0f), add(3f, 0f)) }",
        "fn (%x: Tensor[(2, 3, 4, 4), float32]) { nn.upsampling(%x, scale_h=2.0f, scale_w=3.0f) }",
    )
    check(
        DynamicToStatic(),
        """
        fn (%x: Tensor[(2, 3, 4, 4), float32]) {
          dyn.image.resize2d(%x, add($given, $none), method="nearest_neighbor")
        }
        """,
        'fn (%x: Tensor[(2, 3, 4, 4), float32]) { image.resize2d(%x, size=[8, 6], method="nearest_neighbor") }',
        {"given": np.array([8, 6], "int64"), "none": np.array([0, 0], "int64")},
    )
    check(
        DynamicToStatic(),
        'fn () { arange(add(2i64, 0i64), add(9i64, 0i64), add(3i64, 0i64), dtype="int64") }',
        'fn () { arange(add(2i64, 0i64), add(9i64, 0i64), add(3i64, 0i64), dtype="int64", size=3) }',
    )


def test_operands_that_are_inputs_stay():
    check_unchanged(
        DynamicToStatic(),
        "fn (%x: Tensor[(2, 6), float32], %s: Tensor[(2), int64]) { dyn.reshape(%x, %s) }",
    )


def test_shapes_of_numbers_become_constants():
    check(
        [DynamicToStatic(), FoldConstant()],
        "fn (%x: Tensor[(2, 5), float32]) { shape_of(%x) }",
        "fn (%x: Tensor[(2, 5), float32]) { $shape }",
        {"shape": np.array([2, 5], "int32")},
    )


# Size variables


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


def _check(before: str, after: str, result: str | None, *arguments: np.ndarray, **numbers: list[int]) -> None:
    """Both give the same for these arguments, whose sizes the size variables are; the result has the type `result`."""

    def compare(first: IRModule, then: IRModule) -> None:
        one, other = evaluate(first["main"], arguments), evaluate_with_sizes(then["main"], arguments)
        np.testing.assert_array_equal(one, other)

    constants = {name: np.array(values, "int64") for name, values in numbers.items()}
    found = check(DynamicToStatic(), before, after, constants, compare)["main"]
    assert result is None or str(found.body.checked_type) == result


def test_heads_of_attention():
    _check(
        """
        fn (%x: Tensor[(1, n: int64, 24), float32]) {
          %0 = dyn.reshape(%x, concatenate(($one, take(shape_of(%x, dtype="int64"), $one, axis=0), $heads)));
          %1 = transpose(%0, axes=[0, 2, 1, 3]);
          %2 = transpose(%1, axes=[0, 2, 1, 3]);
          %3 = concatenate(($one, take(shape_of(%1, dtype="int64"), $two, axis=0), $width));
          dyn.reshape(%2, %3)
        }
        """,
        """
        fn (%x: Tensor[(1, n: int64, 24), float32]) {
          %0 = transpose(reshape(%x, newshape=[1, n, 4, 6]), axes=[0, 2, 1, 3]);
          reshape(transpose(%0, axes=[0, 2, 1, 3]), newshape=[1, n, 24])
        }
        """,
        "Tensor[(1, n, 24), float32]",
        _array(1, 5, 24),
        one=[1],
        heads=[4, 6],
        two=[2],
        width=[24],
    )


def test_arithmetic_on_sizes():
    _check(
        """
        fn (%x: Tensor[(n: int64, 6), float32]) {
          %0 = concatenate((multiply(take(shape_of(%x, dtype="int64"), $zero, axis=0), $two), $three));
          dyn.reshape(%x, %0)
        }
        """,
        "fn (%x: Tensor[(n: int64, 6), float32]) { reshape(%x, newshape=[n * T.int64(2), 3]) }",
        "Tensor[(n * T.int64(2), 3), float32]",
        _array(5, 6),
        zero=[0],
        two=[2],
        three=[3],
    )
    _check(
        """
        fn (%x: Tensor[(n: int64, 6), float32]) {
          dyn.reshape(%x, floor_divide(reshape(ndarray_size(%x, dtype="int64"), newshape=[1]), $one))
        }
        """,
        "fn (%x: Tensor[(n: int64, 6), float32]) { reshape(%x, newshape=[n * T.int64(6)]) }",
        "Tensor[(n * T.int64(6)), float32]",
        _array(5, 6),
        one=[1],
    )


def test_slices_up_to_a_size():
    _check(
        """
        fn (%x: Tensor[(n: int64, 4), float32], %t: Tensor[(16, 4), float32]) {
          %0 = concatenate((take(shape_of(%x, dtype="int64"), $zero, axis=0), $four));
          %1 = ones_like($begin);
          add(%x, dyn.strided_slice(%t, $begin, %0, %1))
        }
        """,
        """
        fn (%x: Tensor[(n: int64, 4), float32], %t: Tensor[(16, 4), float32]) {
          add(%x, strided_slice(%t, begin=[0, 0], end=[n, 4], strides=[1, 1]))
        }
        """,
        None,
        _array(5, 4),
        _array(16, 4),
        zero=[0],
        four=[4],
        begin=[0, 0],
    )


def test_expand_as_exporters_write_it():
    """where(equal(shape, -1), ones, shape): a size is never -1. No text says that a variable is a size."""
    n = te.size_var("n", "int64")
    x = _x(n, 1)
    wanted = relay.concatenate([_first_size(x), relay.const([4], "int64")], 0)
    ones = relay.const([1, 1], "int64")
    shape = relay.where(relay.equal(wanted, ones * relay.const(-1, "int64")), ones, wanted)
    first = function(relay.broadcast_to(x, shape))
    found = DynamicToStatic()(IRModule({"main": first}))
    assert str(found) == str(program("fn (%x: Tensor[(n: int64, 1), float32]) { broadcast_to(%x, shape=[n, 4]) }"))
    given = [_array(5, 1)]
    np.testing.assert_array_equal(evaluate(first, given), evaluate_with_sizes(found["main"], given))


def test_a_range_of_a_size():
    _check(
        """
        fn (%x: Tensor[(n: int64), float32]) {
          %0 = squeeze(take(shape_of(%x, dtype="int64"), $zero, axis=0), axis=[0]);
          arange(0i64, %0, 1i64, dtype="int64")
        }
        """,
        """
        fn (%x: Tensor[(n: int64), float32]) {
          %0 = squeeze(take(shape_of(%x, dtype="int64"), $zero, axis=0), axis=[0]);
          arange(0i64, %0, 1i64, dtype="int64", size=size[n])
        }
        """,
        "Tensor[(n), int64]",
        _array(7),
        zero=[0],
    )


def test_a_size_nobody_knows_stays_dynamic():
    check_unchanged(
        DynamicToStatic(),
        """
        fn (%x: Tensor[(?, 6), float32]) {
          dyn.reshape(%x, concatenate((take(shape_of(%x, dtype="int64"), $zero, axis=0), $rest)))
        }
        """,
        {"zero": np.array([0], "int64"), "rest": np.array([2, 3], "int64")},
    )


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


@pytest.mark.parametrize("name", ["divide", "floor_divide", "mod", "floor_mod"])
def test_a_difference_of_sizes_may_be_negative(name: str):
    n = te.size_var("n", "int64")
    x = _x(n)
    less = relay.subtract(_first_size(x), relay.const([5], "int64"))
    call = getattr(relay, name)(less, relay.const([2], "int64"))
    (found,) = ShapeValues(KnownTypes()).of(call)
    graph = function(relay.Function([x], call))
    for size in (2, 4, 5, 8):
        element = Analyzer().simplify(substitute(found, {n: const(size, "int64")}))
        assert int(element) == evaluate(graph, [_array(size)])[0]
