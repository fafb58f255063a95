"""A sample of ONNX's own tests, through its interface for back ends; tools/onnx_backend_tests.py runs all of them."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest
from onnx import helper
from onnx.backend.test.case import node as node_cases
from onnx.backend.test.runner import Runner, _normalize_tensor

from loopwright.frontends.onnx.backend import LoopwrightBackend
from loopwright.frontends.onnx.compiled import interpreted
from tests.frontends.onnx.onnx_models import model

# The operators whose cases are tried here, and how many of each at most. (Those of pooling are slow to make.)
OPERATORS = (
    "Add And ArgMax BatchNormalization BitShift Cast Celu CenterCropPad Clip Col2Im Concat Conv ConvTranspose "
    "CumSum DepthToSpace Det Div Dropout Einsum Elu Equal Expand EyeLike Flatten Gather GatherElements GatherND Gemm "
    "GlobalAveragePool GroupNormalization Hardmax InstanceNormalization IsInf LRN LayerNormalization LogSoftmax "
    "MatMul Max MaxUnpool MeanVarianceNormalization Min Mish Mod NonZero OneHot PRelu Pad Pow RMSNormalization "
    "Range ReduceL2 ReduceLogSumExp ReduceMax ReduceSum Reshape ReverseSequence Round ScatterElements ScatterND Shape "
    "Shrink Slice Softmax SpaceToDepth Split Squeeze Sum Tile TopK Transpose Trilu Unique Unsqueeze Where"
).split()
MOST = 3
# Where the file is not named after the operator.
FILES = {
    "And": "and_",
    "BatchNormalization": "batch_normalization",
    "CenterCropPad": "center_crop_pad",
    "InstanceNormalization": "instance_normalization",
    "Range": "rangeop",
    "ReduceLogSumExp": "reduce_log_sum_exp",
}


def cases(operator: str) -> list[object]:
    """Some cases of one operator; the file of its cases alone is loaded, all of them take half a minute."""
    name = FILES.get(operator, operator.lower())
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        importlib.import_module(f"onnx.backend.test.case.node.{name}")
    found = [
        case
        for case in node_cases._NodeTestCases
        if [node.op_type for node in case.model.graph.node] == [operator] and "training" not in case.name
    ]
    return found[:: max(len(found) // MOST, 1)][:MOST]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("operator", OPERATORS)
def test_cases_of_the_onnx_package(operator, monkeypatch):
    monkeypatch.setattr(LoopwrightBackend, "make_runner", staticmethod(interpreted))
    tried = 0
    for case in cases(operator):
        prepared = LoopwrightBackend.prepare(case.model)
        for inputs, outputs in case.data_sets:
            found = prepared.run([_normalize_tensor(one) for one in inputs])
            wanted = [_normalize_tensor(one) for one in outputs]
            Runner.assert_similar_outputs(wanted, found, rtol=case.rtol, atol=case.atol)
            tried += 1
    assert tried


@pytest.mark.one_in(3)
@pytest.mark.parametrize("operator", ["Gemm", "Softmax", "Conv"])
def test_some_of_them_natively(operator):
    for case in cases(operator)[:2]:
        prepared = LoopwrightBackend.prepare(case.model)
        for inputs, outputs in case.data_sets:
            found = prepared.run(list(inputs))
            Runner.assert_similar_outputs(list(outputs), found, rtol=case.rtol, atol=case.atol)


def test_one_node_is_run(monkeypatch):
    monkeypatch.setattr(LoopwrightBackend, "make_runner", staticmethod(interpreted))
    (y,) = LoopwrightBackend.run_node(
        helper.make_node("Add", ["a", "b"], ["y"]), [np.float32([1, 2]), np.float32([3, 4])]
    )
    np.testing.assert_array_equal(y, [4, 6])


def test_devices_and_models_that_fit():
    assert LoopwrightBackend.supports_device("CPU")
    assert not LoopwrightBackend.supports_device("CUDA")
    assert LoopwrightBackend.is_compatible(model("(float[3] x) => (float[3] y) { y = Relu(x) }"))
    with pytest.warns(UserWarning):
        assert not LoopwrightBackend.is_compatible(model("(float[3] x) => (float[3] y) { y = Foo(x) }"))
