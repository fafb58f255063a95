"""Kernels that are given a size only as part of another: 16 * n without n, a * b without a and b."""

from __future__ import annotations

import numpy as np

from loopwright import relay, te
from loopwright.analysis import check_program
from loopwright.ir.types import TupleType
from loopwright.relay.infer_type import infer
from loopwright.relay.lower.kernel_size_params import OwnSizes
from loopwright.relay.lower.lower_function import lower_function
from loopwright.relay.types import TensorType


def test_a_product_over_joined_axes_runs_at_any_size():
    a, b = te.size_var("a"), te.size_var("b")
    x, w = relay.var("x", shape=(a, b, 4)), relay.var("w", shape=(5, 4))
    y = relay.nn.dense(relay.reshape(x, (a * b, 4)), w)
    mod = relay.IRModule.from_expr(relay.Function([x, w], relay.reshape(y, (a, b, 5))))
    lib = relay.build(mod, "llvm")
    rng = np.random.default_rng(0)
    for rows, columns in ((1, 1), (3, 16), (5, 7)):
        data, weight = (rng.integers(-9, 10, shape).astype("float32") for shape in ((rows, columns, 4), (5, 4)))
        np.testing.assert_array_equal(lib.run([data, weight])[0], data @ weight.T)


def test_a_size_inside_is_passed_by_name():
    a, b = te.size_var("a"), te.size_var("b")
    x = relay.var("x", shape=(a * b, 4))
    turned = relay.transpose(relay.reshape(x, (a, b, 4)), axes=[1, 0, 2])
    function = relay.Function([x], relay.reshape(turned, (a * b, 4)))
    infer(function)
    lowered = lower_function(function)
    assert [str(size) for size in lowered.func.buffer_map[lowered.func.params[0]].shape] == ["a * b", "4"]
    assert len(lowered.func.params) == 2


def test_what_is_replaced():
    a, b, c = (te.size_var(name) for name in "abc")
    joined = TensorType((a * b, c))
    body = relay.nn.relu(relay.var("x", joined))
    infer(body)
    sizes = OwnSizes([joined], body)
    assert [str(size) for size in sizes.shape((b * a, c, 4))] == ["size0", "c", "4"]
    assert sizes.needed == []
    # What can be read off the shapes stays as it is.
    plain = OwnSizes([TensorType((a, b)), joined], body)
    assert [str(size) for size in plain.shape((a * b, c))] == ["a * b", "c"]


def test_numbers_alone_change_nothing():
    of = TensorType((3, 4))
    body = relay.Tuple([relay.nn.relu(relay.var("x", of))])
    assert isinstance(infer(body), TupleType)
    attrs = object()
    assert OwnSizes([of], body).attrs(attrs) is attrs


def test_a_size_that_no_tensor_has_is_a_parameter():
    n, m = te.size_var("n"), te.size_var("m")
    x = relay.var("x", shape=(1, n))
    function = relay.Function([x], relay.broadcast_to(relay.broadcast_to(x, (m, n)), (2, 3)))
    infer(function)
    lowered = lower_function(function)
    assert lowered.named == (m,)
    assert [param.name for param in lowered.func.params] == ["var_p0", "var_T_broadcast_to", "m"]


def test_a_size_and_a_number_says_what_the_size_is():
    m, n, k = (te.size_var(name) for name in "mnk")
    types = [TensorType((m + 1, n - 2)), TensorType((m * 2 + 2, n + k, k * 3))]
    body = relay.nn.relu(relay.var("x", types[0]))
    infer(body)
    sizes = OwnSizes(types, body)
    assert [str(size) for size in sizes.shape(types[0].shape)] == ["size0", "size1"]
    assert [str(size) for size in sizes.shape((*types[1].shape, m))] == [
        "size0 * 2",
        "size2",
        "size2 * 3 - size1 * 3 - 6",
        "size0 - 1",
    ]
    assert list(map(str, sizes.conditions)) == ["size0 >= 1", "size2 - size1 >= 2"]
    assert sizes.needed == []


def test_a_size_of_which_twice_as_many_rows_are_written():
    m, n = te.size_var("m"), te.size_var("n")
    x = relay.var("x", shape=(m + 1, 2, 4, n + 1))
    turned = relay.nn.relu(relay.transpose(x, axes=[0, 1, 3, 2]))
    function = relay.Function([x], relay.reshape(turned, (m * 2 + 2, n + 1, 4)))
    infer(function)
    func = lower_function(function).func
    assert [str(size) for size in func.buffer_map[func.params[1]].shape] == ["size0 * 2", "size1", "4"]
    check_program(func)  # at no size does it read outside


def test_equal_functions_of_other_sizes_share_no_kernel_that_is_passed_sizes_by_name():
    def rows_by_columns(name, a, b):
        x, w = relay.var(f"x{name}", shape=(a, b, 4)), relay.var(f"w{name}", shape=(5, 4))
        y = relay.reshape(relay.nn.dense(relay.reshape(x, (a * b, 4)), w), (a, b, 5))
        return [x, w], relay.reshape(relay.transpose(y, axes=[1, 0, 2]), (a * b, 5))

    sizes = [te.size_var(name) for name in "abcd"]
    given, one = rows_by_columns("0", *sizes[:2])
    more, other = rows_by_columns("1", *sizes[2:])
    lib = relay.build(relay.IRModule.from_expr(relay.Function([*given, *more], relay.Tuple([one, other]))), "llvm")
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 10, shape).astype("float32") for shape in ((3, 5, 4), (5, 4), (5, 3, 4), (5, 4))]
    for found, x, w in zip(lib.run(arrays), arrays[::2], arrays[1::2], strict=True):
        np.testing.assert_array_equal(found, (x @ w.T).transpose(1, 0, 2).reshape(-1, 5))
