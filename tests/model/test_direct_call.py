"""Calls that convert nothing, and what they leave to the long way."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import relay
from loopwright.model.direct_call import direct_call, in_order
from loopwright.model.errors import BadModelInput


def built(shape, dtype="float32", outputs=1):
    x, y = relay.var("x", shape=shape, dtype=dtype), relay.var("y", shape=shape, dtype=dtype)
    body = relay.add(x, y) if outputs == 1 else relay.Tuple([relay.add(x, y), relay.subtract(x, y)])
    return relay.build(lw.IRModule.from_expr(relay.Function([x, y], body)), "llvm")


@pytest.fixture(scope="module")
def added():
    return built((2, 3))


def arrays(shape=(2, 3), dtype="float32"):
    values = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    return values, values[::-1].copy()


def test_what_the_model_takes_is_handed_on_as_it_is(added):
    x, y = arrays()
    result = added.direct_call(x, y)
    np.testing.assert_array_equal(result, x + y)
    assert added.direct_call(x, y) is not result  # fresh each time


def test_inputs_by_name_are_handed_on_too(added):
    x, y = arrays()
    for args, named in (((), {"y": y, "x": x}), ((x,), {"y": y})):
        first, second = in_order(["x", "y"], args, named)
        assert first is x and second is y
        np.testing.assert_array_equal(added(*args, **named), x + y)
    for args, named in (((x,), {"x": x}), ((), {"x": x}), ((x, y), {"y": y}), ((x,), {"z": y})):
        assert in_order(["x", "y"], args, named) is None
        with pytest.raises(BadModelInput):
            added(*args, **named)


@pytest.mark.parametrize(
    "given",
    [
        lambda x, y: (x,),
        lambda x, y: (x, y, y),
        lambda x, y: (x, None),
        lambda x, y: (x, y.tolist()),
        lambda x, y: (x, y.astype("float64")),
        lambda x, y: (x, y[:1]),
        lambda x, y: (x, y[0]),
        lambda x, y: (x, "y"),
    ],
    ids=["too few", "too many", "none", "a list", "another type", "another size", "another rank", "a text"],
)
def test_anything_else_is_left_to_the_long_way(added, given):
    assert added.direct_call(*given(*arrays())) is None


def test_the_long_way_converts_or_says_what_is_wrong(added):
    x, y = arrays()
    np.testing.assert_array_equal(added(x, y.tolist()), x + y)
    np.testing.assert_array_equal(added(np.asfortranarray(x), y), x + y)
    np.testing.assert_array_equal(added(x, np.flip(y)), x + np.flip(y))
    with pytest.raises(BadModelInput, match="input 'y' has dtype float64, expected float32"):
        added(x, y.astype("float64"))
    with pytest.raises(BadModelInput, match="3 inputs are given, and the model has 2"):
        added(x, y, y)


def test_several_outputs():
    x, y = arrays()
    total, difference = built((2, 3), outputs=2)(x, y)
    np.testing.assert_array_equal(total, x + y)
    np.testing.assert_array_equal(difference, x - y)


def test_open_sizes_are_worked_out_once_for_each_shape(monkeypatch):
    library = built((relay.Any(), 3))
    asked = []
    real = lw.model.direct_call.output_shapes
    monkeypatch.setattr(lw.model.direct_call, "output_shapes", lambda *of: asked.append(1) or real(*of))
    call = direct_call(library.program, library.compiled.function)
    for rows in (2, 5, 2, 0, 5):
        x, y = arrays((rows, 3))
        np.testing.assert_array_equal(call(x, y), x + y)
    assert len(asked) == 3


def test_tensors_of_others_pass_through_dlpack(added):
    x, y = arrays()
    np.testing.assert_array_equal(added.direct_call(lw.nd.array(x), y), x + y)


def test_a_size_of_an_output_that_is_computed_is_worked_out_in_python():
    x = relay.var("x", shape=(relay.Any(), 3), dtype="float32")
    library = relay.build(lw.IRModule.from_expr(relay.Function([x], relay.concatenate([x, x], axis=0))), "llvm")
    for rows in (1, 4, 0):
        values, _ = arrays((rows, 3))
        np.testing.assert_array_equal(library.direct_call(values), np.concatenate([values, values]))


def test_without_the_native_runtime_the_call_is_the_same(monkeypatch):
    monkeypatch.setattr(lw.runtime.array_call, "_library", lambda: None)
    library = built((2, 3))
    x, y = arrays()
    np.testing.assert_array_equal(library.direct_call(x, y), x + y)
    assert library.direct_call(x, y[0]) is None


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "bfloat16", "float64"])
def test_element_types(dtype):
    from loopwright.runtime.dtype import DataType

    x = relay.var("x", shape=(5,), dtype=dtype)
    library = relay.build(lw.IRModule.from_expr(relay.Function([x], relay.reverse(x, 0))), "llvm")
    values = np.arange(5).astype(DataType(dtype).numpy())
    np.testing.assert_array_equal(library(values), values[::-1])
