"""Reductions of ONNX where its own reference implementation gives no number, but the operator's definition does."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.frontends.onnx.compiled import CompiledModel, interpreted
from tests.frontends.onnx.one_node import one_node


@pytest.mark.parametrize("keepdims", [0, 1])
def test_log_sum_exp_of_infinite_elements(keepdims):
    x = np.array([[np.inf, 1, 2, 3], [-np.inf] * 4, [-np.inf, 0, 0, -np.inf]], "float32")
    graph, given = one_node("ReduceLogSumExp", [x, np.array([1])], opset=18, constant=(1,), keepdims=keepdims)
    (found,) = CompiledModel(graph, make_runner=interpreted).run(given)
    np.testing.assert_allclose(found.reshape(-1), [np.inf, -np.inf, np.log(2)], rtol=1e-6)
    assert found.shape == ((3, 1) if keepdims else (3,))
