"""Steps of training against ONNX's reference."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from loopwright import relay
from loopwright.frontends.onnx.errors import BadNode

_DOMAIN = "ai.onnx.preview.training"


def step(op: str, count: int, tensors: list[np.ndarray], outputs: int, **attributes: object):
    """What a node makes of its inputs, and what ONNX's reference does."""
    given = {"r": np.float32(0.1), "t": np.int64(count), **{f"x{k}": one for k, one in enumerate(tensors)}}
    names = [f"y{k}" for k in range(outputs)]
    node = helper.make_node(op, list(given), names, domain=_DOMAIN, **attributes)
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in given.items()
    ]
    results = [helper.make_tensor_value_info(name, 1, [2]) for name in names]
    sets = [helper.make_opsetid("", 17), helper.make_opsetid(_DOMAIN, 1)]
    graph = helper.make_model(helper.make_graph([node], "g", infos, results), opset_imports=sets, ir_version=8)
    module, _ = relay.frontend.from_onnx(graph)
    found = relay.create_executor("debug", module).evaluate()(*given.values())
    return [one.numpy() for one in found], ReferenceEvaluator(graph).run(None, given)


def tensors(count: int) -> list[np.ndarray]:
    return list(np.random.default_rng(0).random((count, 2)).astype("float32"))


@pytest.mark.parametrize(
    ("op", "count", "groups", "attributes"),
    [
        ("Adagrad", 3, 3, {"decay_factor": 0.1, "norm_coefficient": 0.01}),
        ("Adam", 0, 4, {"alpha": 0.9, "beta": 0.8, "norm_coefficient_post": 0.02}),
        ("Adam", 2, 4, {"alpha": 0.9, "beta": 0.8, "norm_coefficient": 0.01}),
        ("Momentum", 0, 3, {"alpha": 0.9, "beta": 0.7, "mode": "standard", "norm_coefficient": 0.01}),
        ("Momentum", 1, 3, {"alpha": 0.9, "beta": 0.7, "mode": "nesterov", "norm_coefficient": 0.01}),
    ],
)
def test_a_step_of_two_tensors(op, count, groups, attributes):
    found, wanted = step(op, count, tensors(2 * groups), 2 * (groups - 1), **attributes)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_tensors_that_make_no_groups():
    with pytest.raises(BadNode, match="4 tensors do not make 3 groups"):
        step("Adagrad", 0, tensors(4), 2)
