"""What callers give models and kernels as tensors: numbers are taken, everything else is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import relay
from loopwright.contrib import graph_executor
from loopwright.model.errors import BadModelInput
from loopwright.relay.text.errors import BadText
from loopwright.relay.vm import Executable, NotAnExecutable
from loopwright.runtime import load_module, load_param_dict, load_param_dict_from_file, save_param_dict
from loopwright.runtime.call_errors import ArgumentCountMismatch
from loopwright.runtime.library_file import LibraryNotFound
from loopwright.runtime.params import BadParameters, ParametersFile, save_param_dict_to_file
from loopwright.runtime.tensor import BadTensorData
from loopwright.script import tir as T

X = np.arange(8, dtype="float32").reshape(2, 4)


@pytest.fixture(scope="module")
def model():
    x, s = relay.var("x", shape=(2, 4)), relay.var("s", shape=())
    return relay.build(relay.IRModule.from_expr(relay.Function([x, s], x + s)))


class Thing:
    pass


NO_NUMBERS = [
    None,
    "3",
    b"3",
    {},
    Thing(),
    float,
    [[1.0], [1.0, 2.0]],
    np.array(None),
    np.array("3"),
    np.zeros((), "M8[s]"),
    np.zeros((), [("a", "f4")]),
    relay.var("y", shape=()),
    (number for number in range(3)),
]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: type(value).__name__)
def test_what_holds_no_numbers_is_refused(model, value):
    executor = graph_executor.GraphModule(model["default"](lw.cpu()))
    for call in (
        lambda: model(X, value),
        lambda: model(x=X, s=value),
        lambda: model.compiled.run(X, value),
        lambda: executor.run(x=X, s=value),
        lambda: relay.create_executor("debug", relay.IRModule.from_expr(model_function())).evaluate()(X, value),
    ):
        with pytest.raises((BadModelInput, lw.LoopwrightError)) as caught:
            call()
        assert caught.value.code


def model_function():
    x, s = relay.var("x", shape=(2, 4)), relay.var("s", shape=())
    return relay.Function([x, s], x + s)


def test_the_message_names_the_input(model):
    with pytest.raises(BadModelInput, match="input 's' is NoneType None, and holds no numbers"):
        model(X, None)
    with pytest.raises(BadModelInput, match="input 'x' is an array of object, and holds no numbers"):
        model(X.astype(object), 1.0)
    with pytest.raises(BadModelInput, match="input 'x' is list, and no array"):
        model([[1.0], [1.0, 2.0]], 1.0)
    with pytest.raises(BadModelInput, match="input 'x' has dtype >f4, expected float32"):
        model(X.astype(">f4"), 1.0)


def test_counts_and_names(model):
    for call, message in (
        (lambda: model(), "input 'x' is not given"),
        (lambda: model(X, 1.0, X), "3 inputs are given, and the model has 2: x, s"),
        (lambda: model(X, x=X), "input 'x' is given twice, by position and by name"),
        (lambda: model(X, t=1.0), "the model has no input 't'"),
        (lambda: model.compiled.run(X), "1 inputs are given, and the model has 2: x, s"),
    ):
        with pytest.raises(BadModelInput, match=message):
            call()


@pytest.mark.parametrize("x", [X[::-1], np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X.tolist()])
def test_layouts_and_lists_are_taken(model, x):
    np.testing.assert_array_equal(model(x, 1), np.asarray(x, "float32") + 1)


def test_arrays_that_may_not_be_written_are_read(model):
    x = X.copy()
    x.flags.writeable = False
    np.testing.assert_array_equal(model(x, np.float32(2)), X + 2)


def test_the_graph_executor_names_what_is_wrong(model):
    executor = graph_executor.GraphModule(model["default"](lw.cpu()))
    for call, message in (
        (lambda: executor.run(), "input 'x' is not set"),
        (lambda: executor.get_output(0), "there are no outputs yet"),
        (lambda: executor.set_input([1], X), r"could not find \[1\] in the inputs"),
        (lambda: executor.set_input("z", X), "could not find 'z' in the inputs of the model; it has x, s"),
        (lambda: graph_executor.create("{", None, lw.cpu()), "GraphModule takes"),
    ):
        with pytest.raises(BadModelInput, match=message):
            call()
    executor.run(x=X, s=np.float32(1))
    for index in (1, "0", None):
        with pytest.raises(BadModelInput, match="there is no output"):
            executor.get_output(index)


def test_kernels_take_arguments_by_position():
    @T.prim_func
    def f(A: T.Buffer((4,), "float32")):
        A[0] = T.float32(1)

    with pytest.raises(ArgumentCountMismatch, match="argument 'A' is given by name, and a compiled function takes"):
        lw.build(f)(A=np.zeros(4, "float32"))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lw.nd.empty(None), BadTensorData, "None is no shape"),
        (lambda: lw.nd.empty("ab"), BadTensorData, "'ab' is no shape"),
        (lambda: lw.nd.empty((1.5,)), BadTensorData, "is no shape"),
        (lambda: lw.nd.empty((2,)).copyfrom(np.array(["a", "b"])), BadTensorData, "cannot become float32"),
        (lambda: lw.nd.empty((2,), np), lw.LoopwrightError, "LW01"),
        (lambda: load_param_dict(None), BadParameters, "parameters are bytes, not NoneType"),
        (lambda: load_param_dict("€"), BadParameters, "a text is no saved parameters"),
        (lambda: save_param_dict([1]), BadParameters, "parameters are a dict by name, not list"),
        (lambda: load_param_dict_from_file("no/such"), ParametersFile, "cannot be read: 'no/such'"),
        (lambda: load_param_dict_from_file(None), ParametersFile, "cannot be read: None"),
        (lambda: save_param_dict_to_file({}, "no/such"), ParametersFile, "cannot be written: 'no/such'"),
        (lambda: load_module(None), LibraryNotFound, "a path is a text, not NoneType"),
        (lambda: relay.parse(None), BadText, "the text of a graph is a str, not NoneType"),
        (lambda: Executable.load_exec("abc"), NotAnExecutable, "a model is bytes, not str"),
        (lambda: relay.build(relay.IRModule.from_expr(model_function()), params=5), BadModelInput, "a dict of arrays"),
    ],
)
def test_what_else_is_given(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_onnx_models_name_what_is_missing():
    parser = pytest.importorskip("onnx.parser")
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    model = lw.compile(parser.parse_model(head + " g (float[2,4] x, float s) => (float[2,4] y) { y = Add(x, s) }"))
    with pytest.raises(lw.LoopwrightError, match="the input 'x' is not given"):
        model(None, np.float32(1))
    with pytest.raises(lw.LoopwrightError, match="the inputs 'x', 's' are not given"):
        model(None, None)
    with pytest.raises(lw.LoopwrightError, match="the inputs are a list, or a dict by name, not int"):
        model.run(3)
