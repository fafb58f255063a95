"""gradient: what operators say of their gradients, held against differences in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopwright import relay
from loopwright.relay.interpreter import evaluate
from loopwright.relay.transform import FirstOrderGradient, gradient
from loopwright.relay.transform.functions.first_order_gradient import NoGradient
from tests.relay.pass_check import check, results_not_compared
from tests.relay.transform.graphs import function

STEP = 1e-5
# The error of a difference to both sides: a third derivative times STEP² / 6, and roundings of 2^-53 / STEP.
ROOM = {"rtol": 2e-6, "atol": 2e-6}


def _var(name: str, *shape: int, dtype: str = "float64") -> relay.Var:
    return relay.var(name, shape=shape, dtype=dtype)


def _check(body: Any, low: float = -1.5, high: float = 1.5, seed: int = 0) -> None:
    before = function(body)
    random = np.random.default_rng(seed)
    arguments = []
    for param in before.params:
        of = param.checked_type
        if of.dtype.is_float:
            arguments.append(random.uniform(low, high, of.concrete_shape))
        else:
            arguments.append(random.integers(0, 3, of.concrete_shape).astype(of.dtype.numpy()))
    value, grads = evaluate(gradient(before), arguments)
    np.testing.assert_array_equal(np.asarray(value), evaluate(before, arguments))
    for place, param in enumerate(before.params):
        if not param.checked_type.dtype.is_float:
            continue
        expected = np.zeros_like(arguments[place])
        for index in np.ndindex(expected.shape):
            totals = []
            for way in (STEP, -STEP):
                moved = [one.copy() for one in arguments]
                moved[place][index] += way
                totals.append(float(np.sum(evaluate(before, moved))))
            expected[index] = (totals[0] - totals[1]) / (2 * STEP)
        np.testing.assert_allclose(grads[place], expected, **ROOM)


UNARY = "exp sin cos tan sinh cosh tanh sigmoid erf atan asinh abs negative copy floor ceil round trunc sign".split()


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_element(name: str):
    _check(getattr(relay, name)(_var("x", 2, 3)) * _var("y", 2, 3))


@pytest.mark.parametrize("name", ["log", "log2", "log10", "sqrt", "rsqrt"])
def test_functions_of_a_positive_element(name: str):
    _check(getattr(relay, name)(_var("x", 2, 3)), 0.5, 2.0)


@pytest.mark.parametrize(
    ("name", "low", "high"), [("acos", -0.8, 0.8), ("asin", -0.8, 0.8), ("atanh", -0.8, 0.8), ("acosh", 1.2, 2.0)]
)
def test_inverse_functions(name: str, low: float, high: float):
    _check(getattr(relay, name)(_var("x", 2, 3)), low, high)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "power", "maximum", "minimum"])
def test_functions_of_two_elements_repeated(name: str):
    _check(getattr(relay, name)(_var("x", 2, 3), _var("y", 3)), 0.5, 2.0)
    _check(getattr(relay, name)(_var("x", 2, 1), _var("y", 2, 3)), 0.5, 2.0)


def test_choices_and_limits():
    x, y = _var("x", 2, 3), _var("y", 2, 3)
    _check(relay.where(relay.less(x, y), x * y, x + y))
    _check(relay.clip(x * y, -0.7, 0.9))
    _check(relay.nn.relu(x * y))
    _check(relay.nn.leaky_relu(x * y, 0.25))
    _check(relay.cast(relay.exp(x), "float64"))


@pytest.mark.parametrize("options", [{}, {"axis": 1}, {"axis": (0, 2), "keepdims": True}, {"axis": 0, "exclude": True}])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "variance"])
def test_reductions(name: str, options: dict[str, Any]):
    x = _var("x", 2, 3, 2)
    reduced = getattr(relay, name)(x, **options)
    _check(reduced * reduced)


def test_moves():
    x, y = _var("x", 2, 6), _var("y", 2, 6)
    z = x * y
    _check(relay.reshape(z, (3, 4)) * relay.reshape(x, (3, 4)))
    _check(relay.transpose(z) * relay.transpose(x))
    _check(relay.squeeze(relay.expand_dims(z, 1), [1]) * x)
    _check(relay.concatenate([z, x], 1) * relay.concatenate([x, y], 1))
    _check(relay.stack([z, x], 0) * relay.stack([x, y], 0))
    _check(relay.strided_slice(z, (0, 1), (2, 6), (1, 2)) * relay.strided_slice(x, (0, 0), (2, 3)))
    _check(relay.take(z, relay.const([0, 2, 2], "int32"), axis=1))
    _check(relay.gather_nd(z, relay.const([[0, 1, 1], [2, 2, 5]], "int32")))
    parts = relay.split(z, 3, 1)
    _check(parts[0] * parts[2])
    _check(relay.broadcast_to(relay.sum(z, axis=0, keepdims=True), (2, 6)) * x)
    _check(relay.nn.batch_flatten(relay.reshape(z, (2, 3, 2))) * x)


def test_products():
    x, w, b = _var("x", 2, 3), _var("w", 4, 3), _var("b", 4)
    _check(relay.nn.bias_add(relay.nn.dense(x, w), b, -1))
    _check(relay.nn.matmul(x, _var("v", 3, 4)))
    _check(relay.nn.batch_matmul(_var("p", 2, 3, 4), _var("q", 2, 5, 4)))
    _check(relay.nn.batch_matmul(_var("p", 2, 4, 3), _var("q", 2, 4, 5), transpose_a=True, transpose_b=False))


@pytest.mark.parametrize("options", [{}, {"strides": (2, 2)}, {"padding": (1, 1)}, {"dilation": (2, 2)}, {"groups": 2}])
def test_convolutions(options: dict[str, Any]):
    x, w = _var("x", 1, 2, 6, 5), _var("w", 2, 2 // options.get("groups", 1), 3, 2)
    _check(relay.nn.conv2d(x, w, **options))


def test_pools():
    x = _var("x", 1, 2, 4, 4)
    weight = _var("w", 1, 2, 2, 2)
    _check(relay.nn.max_pool2d(x, (2, 2), (2, 2)) * weight)
    _check(relay.nn.avg_pool2d(x, (2, 2), (2, 2)) * weight)
    _check(relay.nn.avg_pool2d(x, (3, 3), (2, 2), padding=(1, 1), count_include_pad=True) * weight)
    _check(relay.nn.global_avg_pool2d(x))


def test_probabilities():
    x, y = _var("x", 2, 3), _var("y", 2, 3)
    _check(relay.nn.softmax(x) * y)
    _check(relay.nn.log_softmax(x) * y)
    _check(relay.nn.cross_entropy(relay.exp(x), y), 0.2, 1.0)
    _check(relay.nn.cross_entropy_with_logits(x, y))


def test_values_that_are_used_often():
    x = _var("x", 3)
    y = relay.exp(x)
    _check(y * y + relay.sin(y))


def test_tuples_are_returned_as_they_are():
    x = _var("x", 3)
    value, grads = evaluate(gradient(function(relay.Tuple([x * x, x]))), [np.array([1.0, 2.0, 3.0])])
    np.testing.assert_array_equal(grads[0], [3.0, 5.0, 7.0])
    assert len(value) == 2


def test_parameters_without_influence():
    x, y, i = _var("x", 3), _var("y", 2), _var("i", 2, dtype="int32")
    made = gradient(relay.Function([x, y, i], relay.exp(x)))
    _, grads = evaluate(made, [np.zeros(3), np.ones(2), np.ones(2, "int32")])
    np.testing.assert_array_equal(grads[1], [0, 0])
    assert grads[2].dtype == np.int32


def test_names_and_calls_are_written_out():
    x, y, v = _var("x", 3), _var("y", 3), relay.var("v")
    square = relay.Function([y], y * y)
    _check(relay.Let(v, relay.exp(x), relay.Call(square, [v])))


def test_the_pass_returns_the_value_and_its_gradients():
    found = check(
        FirstOrderGradient(),
        "fn (%x: Tensor[(3), float64]) { multiply(%x, %x) }",
        """
        fn (%x: Tensor[(3), float64]) {
          %0 = multiply(%x, %x);
          %1 = ones_like(%0);
          (%0, (add(collapse_sum_like(multiply(%1, %x), %x), collapse_sum_like(multiply(%1, %x), %x)),))
        }
        """,
        compare=results_not_compared,  # there are more of them
    )
    np.testing.assert_array_equal(evaluate(found["main"], [np.arange(3.0)])[1][0], [0, 2, 4])
    check(
        FirstOrderGradient(),
        """
        fn (%x: Tensor[(3), float64]) {
          let %v = exp(%x);
          %0 = fn (%y: Tensor[(3), float64]) {
            multiply(%y, %y)
          };
          %0(%v)
        }
        """,
        """
        fn (%x: Tensor[(3), float64]) {
          %0 = exp(%x);
          %1 = multiply(%0, %0);
          %2 = ones_like(%1);
          %3 = add(collapse_sum_like(multiply(%2, %0), %0), collapse_sum_like(multiply(%2, %0), %0));
          (%1, (multiply(%3, %0),))
        }
        """,
        compare=results_not_compared,
    )


def test_what_has_no_gradient():
    x, c = _var("x", 3), relay.var("c", "bool")
    with pytest.raises(NoGradient, match="sort has no gradient"):
        gradient(function(relay.sort(x)))
    with pytest.raises(NoGradient, match="an expression of kind If has no gradient"):
        gradient(function(relay.If(c, x, relay.exp(x))), mode="first_order")
    with pytest.raises(ValueError, match="mode is 'higher_order' or 'first_order', and not 'second'"):
        gradient(function(x), mode="second")
