"""SimplifyExpr: each rule on a graph, and on numbers."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay, te
from loopwright.relay.transform import SimplifyExpr, SimplifyExprPostAlterOp
from tests.relay.transform.graphs import (
    apply,
    assert_becomes,
    assert_same_results,
    assert_unchanged,
    function,
    operators,
)

SIMPLIFY = SimplifyExpr()


def _x(*shape: object, dtype: str = "float32") -> relay.Var:
    return relay.var("x", shape=shape or (2, 3, 4), dtype=dtype)


# Movement


def test_reshapes_become_one():
    x = _x()
    before = relay.reshape(relay.squeeze(relay.expand_dims(relay.reshape(x, (6, 4)), 0), 0), (4, -1))
    assert_becomes(SIMPLIFY, before, relay.reshape(x, (4, 6)))


def test_a_reshape_to_its_own_shape_goes():
    x = _x()
    assert_becomes(SIMPLIFY, relay.exp(relay.reshape(x, (2, 3, 4))), relay.exp(x))
    assert_becomes(SIMPLIFY, relay.reshape(relay.reshape(x, (24,)), (2, 3, 4)), x)


def test_reshapes_with_a_size_variable():
    n = te.size_var("n", "int64")
    x = _x(n, 12)
    found = apply(SIMPLIFY, relay.reshape(relay.reshape(x, (0, 3, 4)), (0, 12)))
    assert found.body is found.params[0]


def test_reshapes_that_say_more_of_open_sizes_than_one_stay():
    n, m = te.size_var("n"), te.size_var("m")
    x = _x(n, m)
    assert_unchanged(SIMPLIFY, relay.reshape(relay.expand_dims(x, 1), (2, 0, 0)))  # n is 2, also where m is 0
    assert_unchanged(SIMPLIFY, relay.reshape(relay.reshape(x, (2, 0)), (n, m)))
    assert_unchanged(SIMPLIFY, relay.expand_dims(relay.squeeze(x, axis=[0]), 0))
    found = apply(SIMPLIFY, relay.expand_dims(relay.expand_dims(x, 1), 0))
    assert operators(found) == ["reshape"]


def test_an_empty_tensor_keeps_its_reshapes():
    x = _x(0, 3)
    assert_unchanged(SIMPLIFY, relay.reshape(relay.reshape(x, (3, 0), allowzero=True), (-1, 0), allowzero=True))


@pytest.mark.parametrize("first", [(0, 2, 3, 1), (3, 1, 0, 2), (1, 0, 3, 2)])
@pytest.mark.parametrize("second", [(0, 3, 1, 2), (2, 3, 0, 1), None])
def test_transposes_become_one(first: tuple[int, ...], second: tuple[int, ...] | None):
    x = _x(2, 3, 4, 5)
    last = (3, 2, 1, 0) if second is None else second
    joined = tuple(first[axis] for axis in last)
    after = x if joined == (0, 1, 2, 3) else relay.transpose(x, joined)
    assert_becomes(SIMPLIFY, relay.transpose(relay.transpose(x, first), second), after)


def test_transposes_and_layouts_become_one():
    x = _x(1, 3, 4, 5)
    there = relay.layout_transform(x, "NCHW", "NHWC")
    assert_becomes(SIMPLIFY, relay.exp(relay.transpose(there, (0, 3, 1, 2))), relay.exp(x))


def test_a_transpose_of_ones_is_a_reshape():
    x = _x(1, 3, 1, 4)
    assert_becomes(SIMPLIFY, relay.transpose(x, (1, 0, 3, 2)), relay.reshape(x, (3, 1, 4, 1)))


def test_layouts_there_and_back():
    x = _x(1, 8, 2, 2)
    blocked = relay.layout_transform(x, "NCHW", "NCHW4c")
    assert_becomes(SIMPLIFY, relay.layout_transform(blocked, "NCHW4c", "NCHW"), x)
    assert_becomes(
        SimplifyExprPostAlterOp(),
        relay.layout_transform(blocked, "NCHW4c", "NCHW8c"),
        relay.layout_transform(x, "NCHW", "NCHW8c"),
    )


def test_slices_and_joins_of_everything():
    x = _x(4, 5)
    assert_becomes(SIMPLIFY, relay.strided_slice(x, (0, 0), (4, 5)), x)
    assert_unchanged(SIMPLIFY, relay.strided_slice(x, (3, 0), (-5, 5), (-1, 1)))
    assert_becomes(SIMPLIFY, relay.concatenate([x], 0), x)
    assert_becomes(SIMPLIFY, relay.broadcast_to(x, (4, 5)), x)
    assert_unchanged(SIMPLIFY, relay.broadcast_to(x, (2, 4, 5)))


# Likeness


def test_likeness_is_said():
    x, y = _x(3, 1), relay.var("y", shape=(3, 4), dtype="int32")
    assert_becomes(SIMPLIFY, relay.Tuple([relay.zeros_like(y), y]), relay.Tuple([relay.zeros((3, 4), "int32"), y]))
    assert_becomes(SIMPLIFY, relay.Tuple([relay.ones_like(x), x]), relay.Tuple([relay.ones((3, 1), "float32"), x]))
    half = relay.const(0.5)
    found = relay.Tuple([relay.full(half, (3, 1), "float32"), x])
    assert_becomes(SIMPLIFY, relay.Tuple([relay.full_like(x, half), x]), found)
    assert_becomes(SIMPLIFY, relay.Tuple([relay.cast_like(x, y), y]), relay.Tuple([relay.cast(x, "int32"), y]))
    found = relay.Tuple([relay.broadcast_to(x, (3, 4)), y])
    assert_becomes(SIMPLIFY, relay.Tuple([relay.broadcast_to_like(x, y), y]), found)


def test_likeness_of_shapes_and_sums():
    x, y = _x(3, 4), relay.var("y", shape=(12,))
    assert_becomes(SIMPLIFY, relay.Tuple([relay.reshape_like(x, y), y]), relay.Tuple([relay.reshape(x, (12,)), y]))
    z = relay.var("z", shape=(4,))
    assert_becomes(
        SIMPLIFY, relay.Tuple([relay.collapse_sum_like(x, z), z]), relay.Tuple([relay.collapse_sum_to(x, (4,)), z])
    )
    w = relay.var("w", shape=(2, 3))
    cut = relay.strided_slice(x, (0, 0), (2, 3), (1, 1))
    assert_becomes(SIMPLIFY, relay.Tuple([relay.slice_like(x, w), w]), relay.Tuple([cut, w]))


def test_unknown_sizes_stay_alike():
    x = _x(relay.AnyDim(), 4)
    assert_unchanged(SIMPLIFY, relay.zeros_like(x))


# Arithmetic


@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
def test_numbers_that_change_nothing(dtype: str):
    x = _x(3, 4, dtype=dtype)
    zero, one = relay.const(0, dtype), relay.const(1, dtype)
    for before in (x + zero, zero + x, x - zero, x * one, one * x, x / one, x + relay.zeros((3, 4), dtype)):
        assert_becomes(SIMPLIFY, before, x)


def test_a_number_that_widens_stays():
    x = _x(1, 4)
    assert_unchanged(SIMPLIFY, x + relay.const(np.zeros((3, 4), "float32")))
    assert_unchanged(SIMPLIFY, relay.const(0.0) - x)


def test_a_tensor_of_one_number_is_that_number():
    x = _x(3, 4)
    assert_becomes(SIMPLIFY, x * relay.full(relay.const(3.0), (3, 4)), x * relay.const(3.0))
    assert_becomes(SIMPLIFY, relay.maximum(x, relay.zeros((4,), "float32")), relay.maximum(x, relay.const(0.0)))


def test_constants_meet():
    x = _x(3, 4)
    two, three = relay.const(2.0), relay.const(3.0)
    assert_becomes(SIMPLIFY, (x + two) + three, x + relay.const(5.0))
    assert_becomes(SIMPLIFY, three * (two * x), x * relay.const(6.0))
    assert_becomes(SIMPLIFY, (x + two) * three, x * three + relay.const(6.0))
    row = relay.const(np.arange(4, dtype="float32"))
    assert_becomes(SIMPLIFY, (x + row) + two, x + relay.const(np.arange(4, dtype="float32") + 2))


def test_constants_that_would_overflow_or_grow_stay_apart():
    x = _x(3, 4)
    huge = relay.const(3e38)
    assert_unchanged(SIMPLIFY, (x * huge) * huge)
    row, column = relay.const(np.ones((1, 4), "float32") * 2), relay.const(np.ones((3, 1), "float32") * 3)
    assert_unchanged(SIMPLIFY, (x + row) + column)


def test_twice_and_binomials():
    x, y = _x(3), relay.var("y", shape=(3,))
    assert_becomes(SIMPLIFY, x + x, x * relay.const(2.0))
    total = x + y
    two = relay.const(2.0)
    for before in (
        x * x + two * (x * y) + y * y,
        x * x + (y * y + x * y * two),
        (two * x) * y + (x * x + y * y),
    ):
        assert_becomes(SIMPLIFY, before, total * total)
    assert_unchanged(SIMPLIFY, x * x + relay.const(3.0) * (x * y) + y * y)


def test_one_over_a_root():
    x, y = _x(3, dtype="float64"), relay.var("y", shape=(3,), dtype="float64")
    root = relay.sqrt(relay.exp(x))
    before = function(relay.const(1.0, "float64") / root)
    found = apply(SIMPLIFY, before)
    assert operators(found) == ["exp", "rsqrt"]
    assert_same_results(before, found, exact=False)
    before = function(y / root)
    found = apply(SIMPLIFY, before)
    assert operators(found) == ["exp", "multiply", "rsqrt"]
    assert_same_results(before, found, exact=False)


# Conversions and limits


def test_casts():
    x = _x(3, 4, dtype="int8")
    assert_becomes(SIMPLIFY, relay.cast(x, "int8"), x)
    assert_becomes(SIMPLIFY, relay.cast(relay.cast(x, "int32"), "float32"), relay.cast(x, "float32"))
    assert_becomes(SIMPLIFY, relay.cast(relay.cast(x, "float16"), "int8"), x)
    assert_unchanged(SIMPLIFY, relay.cast(relay.cast(x, "uint8"), "int32"))
    y = relay.var("y", shape=(3,), dtype="int32")
    assert_unchanged(SIMPLIFY, relay.cast(relay.cast(y, "float32"), "int64"))
    assert_unchanged(SIMPLIFY, relay.cast(relay.cast(_x(3), "float16"), "float32"))


def test_clips():
    x = _x(3)
    assert_becomes(SIMPLIFY, relay.clip(relay.clip(x, 0.0, 6.0), 1.0, 9.0), relay.clip(x, 1.0, 6.0))
    assert_unchanged(SIMPLIFY, relay.clip(relay.clip(x, 0.0, 1.0), 2.0, 3.0))
    y = relay.var("y", shape=(3,), dtype="uint8")
    assert_becomes(SIMPLIFY, relay.clip(y, 0, 255), y)
    assert_unchanged(SIMPLIFY, relay.clip(y, 0, 254))


def test_the_order_of_stored_numbers():
    q = relay.var("q", shape=(3, 4), dtype="int8")
    real = relay.qnn.op.dequantize(q, relay.const(0.5), relay.const(3))
    assert_becomes(SIMPLIFY, relay.argmax(real, axis=1), relay.argmax(q, axis=1))
    several = relay.qnn.op.dequantize(q, relay.const(np.ones(4, "float32") * [1, 2, 3, 4]), relay.const(3))
    assert_unchanged(SIMPLIFY, relay.argmax(several, axis=1))


def test_rules_apply_to_what_rules_made():
    x = _x(2, 6)
    before = relay.reshape((relay.reshape(x, (3, 4)) + relay.const(0.0)) * relay.ones((3, 4), "float32"), (2, 6))
    assert_becomes(SIMPLIFY, before, x)


def test_long_chains():
    body = _x(2, 3)
    x = body
    for k in range(3000):
        body = relay.reshape(body, (3, 2) if k % 2 == 0 else (2, 3))
    assert apply(SIMPLIFY, relay.Function([x], body)).body is x
