"""FoldConstant: what depends on constants alone is computed, but for what would only make the model larger."""

from __future__ import annotations

import numpy as np

from loopwright import relay
from loopwright.ir.function import IRModule
from loopwright.relay.transform import FoldConstant
from tests.relay.transform.graphs import apply, assert_becomes, assert_unchanged, function


def _x() -> relay.Var:
    return relay.var("x", shape=(3,))


def test_calls_of_constants():
    x = _x()
    before = x + relay.exp(relay.const(0.0)) * relay.const(2.0)
    assert_becomes(FoldConstant(), before, x + relay.const(2.0))


def test_tuples_and_fields():
    x = _x()
    parts = relay.split(relay.const(np.arange(6, dtype="float32")), 2)
    assert_becomes(FoldConstant(), x + parts[1], x + relay.const(np.arange(3, 6, dtype="float32")))


def test_shapes():
    x = relay.var("x", shape=(3, 4))
    found = apply(FoldConstant(), relay.Tuple([relay.shape_of(x), relay.ndarray_size(x)])).body
    np.testing.assert_array_equal(found.fields[0].data, np.array([3, 4], "int32"))
    assert found.fields[1].data == 12


def test_shapes_that_are_not_known_stay():
    assert_unchanged(FoldConstant(), relay.shape_of(relay.var("x", shape=(relay.AnyDim(), 4))))


def test_branches():
    x = _x()
    assert_becomes(FoldConstant(), relay.If(relay.const(True), relay.exp(x), x), relay.exp(x))


def test_large_results_of_small_constants_stay():
    x = relay.var("x", shape=(300, 300))
    assert_unchanged(FoldConstant(), x + relay.zeros((300, 300), "float32"))


def test_kernels_and_quantized_operators_stay():
    x, y = _x(), relay.var("y", shape=(3,))
    kernel = relay.Function([y], y + (relay.const(1.0) + relay.const(2.0)), attrs={"Primitive": 1})
    assert_unchanged(FoldConstant(), relay.Call(kernel, [x]))
    stored = relay.qnn.op.quantize(relay.const([1.0, 2.0, 3.0]), relay.const(0.5), relay.const(0))
    assert_unchanged(FoldConstant(), stored)
    found = apply(FoldConstant(fold_qnn=True), stored).body
    np.testing.assert_array_equal(found.data, np.array([2, 4, 6], "int8"))


def test_functions_that_call_others():
    y = relay.var("y", shape=(3,))
    x = _x()
    mod = IRModule({"f": function(relay.exp(y))})
    mod["main"] = relay.Function([x], relay.shape_of(relay.Call(mod.get_global_var("f"), [x])))
    found = FoldConstant()(mod)["main"].body
    np.testing.assert_array_equal(found.data, [3])
