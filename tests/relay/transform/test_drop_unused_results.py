"""DropUnusedResults: results that no one reads are not computed."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay
from loopwright.ir import IRModule
from loopwright.relay.transform import DropUnusedResults, InferType
from loopwright.relay.transform.typed_rewrite import is_call
from loopwright.relay.visitor import post_order


def _changed(result, *params):
    mod = InferType()(IRModule.from_expr(relay.Function(list(params), result)))
    function = DropUnusedResults()(mod)["main"]
    return function, [each for each in post_order(function) if is_call(each, "topk", "unique", "unique_values")]


@pytest.mark.parametrize(("index", "kept"), [(0, "values"), (1, "indices")])
def test_topk_has_the_result_that_is_read(index, kept):
    x = relay.var("x", shape=(4, 9), dtype="float32")
    function, (call,) = _changed(relay.topk(x, k=3, ret_type="both")[index], x)
    assert call.attrs.ret_type == kept and call.attrs.k == 3
    data = np.random.default_rng(0).standard_normal((4, 9)).astype("float32")
    result = relay.create_executor("graph", IRModule.from_expr(function)).evaluate()(data).numpy()
    order = np.argsort(-data, 1, kind="stable")[:, :3]
    assert np.array_equal(result, order if index else np.take_along_axis(data, order, 1))


def test_both_are_read_or_the_tuple_is():
    x = relay.var("x", shape=(4, 9), dtype="float32")
    both = relay.topk(x, k=3, ret_type="both")
    _, (call,) = _changed(relay.Tuple([both[0], both[1]]), x)
    assert call.attrs.ret_type == "both"
    whole = both.astuple()
    _, (call,) = _changed(whole, x)
    assert call.attrs.ret_type == "both"


@pytest.mark.parametrize(
    ("read", "name"), [((0, 3), "unique_values"), ((0, 3, 4), "unique_values"), ((0, 2), "unique")]
)
def test_unique_without_places(read, name):
    x = relay.var("x", shape=(9,), dtype="int32")
    all_of_them = relay.unique(x, is_sorted=True, return_counts=True)
    function, (call,) = _changed(relay.Tuple([all_of_them[index] for index in read]), x)
    assert call.op.name == name
    data = np.array([3, 1, 3, 2, 1, 3, 7, 7, 2], "int32")
    results = relay.create_executor("graph", IRModule.from_expr(function)).evaluate()(data)
    values, inverse, counts = np.unique(data, return_inverse=True, return_counts=True)
    right = {0: values, 2: inverse, 3: [len(values)], 4: counts}
    for index, result in zip(read, results, strict=True):
        assert np.array_equal(result.numpy()[: len(right[index])], right[index])
