"""Classical models against numbers that were worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

from loopwright import relay
from loopwright.frontends.onnx.errors import BadNode

_DOMAIN = "ai.onnx.ml"


def run(op: str, *inputs: np.ndarray, **attributes: object) -> np.ndarray:
    names = [f"x{k}" for k in range(len(inputs))]
    node = helper.make_node(op, names, ["y"], domain=_DOMAIN, **attributes)
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in zip(names, inputs)
    ]
    graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", 1, ["r"])])
    sets = [helper.make_opsetid("", 21), helper.make_opsetid(_DOMAIN, 5)]
    module, _ = relay.frontend.from_onnx(helper.make_model(graph, opset_imports=sets, ir_version=10))
    return relay.create_executor("debug", module).evaluate()(*inputs).numpy()


def tensor(*values: float, dtype: str = "float32"):
    return numpy_helper.from_array(np.array(values, dtype))


# x0 <= 1 ? 10 : (x1 in {2, 5} ? 20 : 30), and x1 > 3 ? 1 : 2 for the other target
TREES = {
    "n_targets": 2,
    "tree_roots": [0, 2],
    "nodes_featureids": [0, 1, 1],
    "nodes_modes": tensor(0, 6, 3, dtype="uint8"),
    "nodes_splits": tensor(1, 0, 3),
    "membership_values": tensor(2, 5, np.nan),
    "nodes_trueleafs": [1, 1, 1],
    "nodes_truenodeids": [0, 1, 3],
    "nodes_falseleafs": [0, 1, 1],
    "nodes_falsenodeids": [1, 2, 4],
    "leaf_targetids": [0, 0, 0, 1, 1],
    "leaf_weights": tensor(10, 20, 30, 1, 2),
}
SAMPLES = np.array([[1, 5], [2, 5], [2, 3], [np.nan, 2]], "float32")


def test_two_trees():
    wanted = [[10, 1], [20, 1], [30, 2], [20, 2]]
    np.testing.assert_array_equal(run("TreeEnsemble", SAMPLES, **TREES), wanted)
    np.testing.assert_array_equal(run("TreeEnsemble", SAMPLES, **TREES, aggregate_function=0), np.array(wanted) / 2)
    tracked = run("TreeEnsemble", SAMPLES, **TREES, nodes_missing_value_tracks_true=[1, 0, 0])
    np.testing.assert_array_equal(tracked[3], [10, 2])


def test_trees_that_are_none():
    with pytest.raises(BadNode, match="lead back to themselves"):
        run("TreeEnsemble", SAMPLES, **{**TREES, "nodes_falseleafs": [0, 0, 1], "nodes_falsenodeids": [1, 0, 4]})
    with pytest.raises(BadNode, match="leads to one that is not there"):
        run("TreeEnsemble", SAMPLES, **{**TREES, "nodes_truenodeids": [0, 1, 5]})


def test_features():
    np.testing.assert_array_equal(run("Binarizer", np.array([0.5, 1, 2], "float32"), threshold=1.0), [0, 0, 1])
    found = run("ArrayFeatureExtractor", np.arange(6, dtype="float32").reshape(2, 3), np.array([2, 0]))
    np.testing.assert_array_equal(found, [[2, 0], [5, 3]])
