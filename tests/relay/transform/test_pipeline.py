"""pipeline: what `relay.build` runs, in which order, at which level."""

from __future__ import annotations

import numpy as np

from loopwright import relay
from loopwright.ir.pass_context import PassContext
from loopwright.relay.interpreter import evaluate
from loopwright.relay.testing.layers import conv_bn_relu, dense
from loopwright.relay.transform.pipeline import build_passes, graph_passes
from tests.relay.transform.graphs import operators


def _network() -> tuple[relay.IRModule, dict[str, np.ndarray]]:
    data = relay.var("data", shape=(1, 3, 8, 8))
    body = conv_bn_relu(conv_bn_relu(data, "first", 4, 3, 1, 1), "second", 6, 1)
    pooled = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(body))
    return relay.testing.create_workload(relay.nn.softmax(dense(pooled, "last", 5)))


def test_normalizations_vanish_into_convolutions():
    mod, params = _network()
    fused, left = relay.optimize(mod, "llvm", params)
    assert left == {}
    names = operators(fused["main"])
    assert "multiply" not in names and "nn.batch_norm" not in names and "nn.bias_add" not in names
    assert names.count("nn.conv2d") == 2


def test_results_stay_within_rounding():
    mod, params = _network()
    fused, _ = relay.optimize(mod, "llvm", params)
    data = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype("float32")
    arguments = [params.get(param.name_hint, data) for param in mod["main"].params]
    # Probabilities: each a sum of products whose order, and factors, were changed; 100 roundings of 2^-24 at most.
    np.testing.assert_allclose(evaluate(mod["main"], arguments), evaluate(fused["main"], [data]), rtol=100 * 2**-24)


def test_the_level_decides():
    mod, params = _network()
    with PassContext(opt_level=0):
        plain, _ = relay.optimize(mod, "llvm", params)
    assert "multiply" in operators(plain["main"])
    with PassContext(opt_level=2, required_pass=["FoldScaleAxis"]):
        folded, _ = relay.optimize(mod, "llvm", params)
    assert "multiply" not in operators(folded["main"])


def test_every_pass_has_a_name_of_its_own_and_a_level():
    passes = build_passes()
    assert [each.info.name for each in passes][: len(graph_passes())] == [each.info.name for each in graph_passes()]
    assert all(0 <= each.info.opt_level <= 4 for each in passes)
    assert passes[-2].info.name == "FuseOps"
