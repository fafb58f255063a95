"""CombineParallelConv2D, CombineParallelDense, CombineParallelBatchMatmul: one product for several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopwright import relay
from loopwright.relay.transform import CombineParallelBatchMatmul, CombineParallelConv2D, CombineParallelDense
from tests.relay.transform.graphs import apply, assert_same_results, assert_unchanged, function, operators


def _const(*shape: int, seed: int = 0) -> relay.Constant:
    return relay.const(np.random.default_rng(seed).integers(-3, 4, shape).astype("float32"))


def _combines(pass_: Any, branches: list[Any], name: str, count: int = 1) -> relay.Function:
    before = function(relay.Tuple(branches))
    found = apply(pass_, before)
    assert operators(found).count(name) == count
    assert_same_results(before, found)
    return found


def test_convolutions():
    x = relay.var("x", shape=(1, 4, 6, 6))
    branches = [relay.nn.conv2d(x, _const(k + 1, 4, 3, 3, seed=k), padding=(1, 1)) for k in range(3)]
    found = _combines(CombineParallelConv2D(), branches, "nn.conv2d")
    assert operators(found) == ["nn.conv2d", *["strided_slice"] * 3]


def test_convolutions_with_what_follows_alike():
    x = relay.var("x", shape=(1, 4, 6, 6))

    def branch(k: int, follow: Any = relay.nn.relu) -> Any:
        conv = relay.nn.conv2d(x, _const(k + 2, 4, 1, 1, seed=k))
        return follow(relay.nn.bias_add(conv, _const(k + 2, seed=k)) * _const(k + 2, 1, 1, seed=k + 9))

    found = _combines(CombineParallelConv2D(), [branch(k) for k in range(3)], "nn.conv2d")
    assert operators(found) == ["multiply", "nn.bias_add", "nn.conv2d", "nn.relu", *["strided_slice"] * 3]
    mixed = [branch(0), branch(1), branch(2, relay.exp)]
    found = _combines(CombineParallelConv2D(), mixed, "nn.conv2d")
    assert operators(found).count("multiply") == 1 and operators(found).count("nn.relu") == 2


def test_convolutions_that_differ():
    x = relay.var("x", shape=(1, 4, 6, 6))
    convs = [
        relay.nn.conv2d(x, _const(2, 4, 3, 3), padding=(1, 1)),
        relay.nn.conv2d(x, _const(2, 4, 1, 1)),
        relay.nn.conv2d(x, _const(2, 4, 3, 3), padding=(1, 1), strides=(2, 2)),
        relay.nn.conv2d(x, _const(4, 2, 3, 3), padding=(1, 1), groups=2),
    ]
    assert_unchanged(CombineParallelConv2D(2), relay.Tuple(convs))
    two = [relay.nn.conv2d(x, _const(2, 4, 3, 3, seed=k)) for k in range(2)]
    assert_unchanged(CombineParallelConv2D(), relay.Tuple(two))
    _combines(CombineParallelConv2D(2), two, "nn.conv2d")


def test_convolutions_whose_weights_are_inputs():
    x = relay.var("x", shape=(1, 4, 6, 6))
    branches = [relay.nn.conv2d(x, relay.var(f"w{k}", shape=(2, 4, 1, 1))) for k in range(3)]
    found = _combines(CombineParallelConv2D(), branches, "nn.conv2d")
    assert "concatenate" in operators(found)


@pytest.mark.parametrize("to_batch", [False, True])
def test_dense_layers(to_batch: bool):
    x = relay.var("x", shape=(3, 5))
    branches = [relay.nn.dense(x, _const(4, 5, seed=k)) + _const(4, seed=k) for k in range(3)]
    name = "nn.batch_matmul" if to_batch else "nn.dense"
    _combines(CombineParallelDense(to_batch=to_batch), branches, name)


def test_dense_layers_of_different_widths():
    x = relay.var("x", shape=(2, 3, 5))
    branches = [relay.nn.dense(x, _const(k + 1, 5, seed=k)) for k in range(3)]
    _combines(CombineParallelDense(to_batch=False), branches, "nn.dense")
    assert_unchanged(CombineParallelDense(), relay.Tuple(branches))


def test_a_layer_that_depends_on_another():
    x = relay.var("x", shape=(5, 5))
    first = relay.nn.dense(x, _const(5, 5))
    assert_unchanged(CombineParallelDense(2, to_batch=False), relay.nn.dense(x, first))


def test_products_of_batches():
    x = relay.var("x", shape=(2, 3, 5))
    branches = [relay.nn.batch_matmul(x, relay.var(f"y{k}", shape=(2, k + 1, 5))) for k in range(3)]
    _combines(CombineParallelBatchMatmul(), branches, "nn.batch_matmul")


def test_one_call_used_as_two_branches():
    """Branches that meet in one call are not followed through it."""
    x = relay.var("x", shape=(3, 5))
    one, two = (relay.nn.dense(x, _const(5, 5, seed=k)) for k in range(2))
    before = function(one + two)
    found = apply(CombineParallelDense(2, to_batch=False), before)
    assert operators(found) == ["add", "nn.dense", "strided_slice", "strided_slice"]
    assert_same_results(before, found)
