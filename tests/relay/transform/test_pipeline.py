"""pipeline: what `relay.build` runs, in which order, at which level."""

from __future__ import annotations

import numpy as np

from loopwright import relay
from loopwright.ir.pass_context import PassContext
from loopwright.relay.interpreter import evaluate
from loopwright.relay.testing.layers import conv_bn_relu, dense
from loopwright.relay.transform.pipeline import build_passes, graph_passes
from tests.relay.pass_check import Constants, check, drawn


def _network() -> tuple[relay.IRModule, dict[str, np.ndarray]]:
    data = relay.var("data", shape=(1, 3, 8, 8))
    body = conv_bn_relu(conv_bn_relu(data, "first", 4, 3, 1, 1), "second", 6, 1)
    pooled = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(body))
    return relay.testing.create_workload(relay.nn.softmax(dense(pooled, "last", 5)))


NORMALIZED = """
fn (%x: Tensor[(1, 3, 8, 8), float32]) {
  nn.relu(nn.batch_norm(nn.conv2d(%x, $w), $gamma, $beta, $mean, $var, epsilon=0.0f).0)
}
"""
# Variances are squares of powers of 2: every factor is exact.
STATISTICS: Constants = {
    **drawn(w=(4, 3, 3, 3), gamma=(4,), beta=(4,), mean=(4,)),
    "var": np.array([1.0, 4.0, 16.0, 0.25], "float32"),
    "factor": lambda gamma, var: gamma / np.sqrt(var),
    "scaled": lambda w, factor: w * factor.reshape(4, 1, 1, 1),
    "shift": lambda mean, factor, beta: (beta - mean * factor).reshape(4, 1, 1),
    "factors": lambda factor: factor.reshape(4, 1, 1),
}
FOLDED = """
fn (%x: Tensor[(1, 3, 8, 8), float32]) {
  %0 = fn (%a: Tensor[(1, 3, 8, 8), float32], %b: Tensor[(4, 3, 3, 3), float32], %c: Tensor[(4, 1, 1), float32],
      Primitive=1) {
    nn.relu(add(nn.conv2d(%a, %b), %c))
  };
  %0(%x, $scaled, $shift)
}
"""
APART = """
fn (%x: Tensor[(1, 3, 8, 8), float32]) {
  %0 = fn (%a: Tensor[(1, 3, 8, 8), float32], %b: Tensor[(4, 3, 3, 3), float32], %c: Tensor[(4, 1, 1), float32],
      %d: Tensor[(4, 1, 1), float32], Primitive=1) {
    nn.relu(add(multiply(nn.conv2d(%a, %b), %c), %d))
  };
  %0(%x, $w, $factors, $shift)
}
"""


def _optimized(mod: relay.IRModule) -> relay.IRModule:
    return relay.optimize(mod, "llvm")[0]


def test_normalizations_vanish_into_convolutions():
    check(_optimized, NORMALIZED, FOLDED, STATISTICS)
    mod, params = _network()
    assert relay.optimize(mod, "llvm", params)[1] == {}


def test_results_stay_within_rounding():
    mod, params = _network()
    fused, _ = relay.optimize(mod, "llvm", params)
    data = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype("float32")
    arguments = [params.get(param.name_hint, data) for param in mod["main"].params]
    # Probabilities: each a sum of products whose order, and factors, were changed; 100 roundings of 2^-24 at most.
    np.testing.assert_allclose(evaluate(mod["main"], arguments), evaluate(fused["main"], [data]), rtol=100 * 2**-24)


def test_the_level_decides():
    with PassContext(opt_level=2):
        check(_optimized, NORMALIZED, APART, STATISTICS)
    with PassContext(opt_level=2, required_pass=["FoldScaleAxis"]):
        check(_optimized, NORMALIZED, FOLDED, STATISTICS)


def test_every_pass_has_a_name_of_its_own_and_a_level():
    passes = build_passes()
    assert [each.info.name for each in passes][: len(graph_passes())] == [each.info.name for each in graph_passes()]
    assert all(0 <= each.info.opt_level <= 4 for each in passes)
    assert passes[-2].info.name == "FuseOps"
