from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from loopwright import ir, nd, relay, runtime, te, tir
from loopwright.runtime import ADT, Array, Map, PackedFunc, ShapeTuple, String, convert, enabled, tuple_object
from loopwright.runtime.registry import NotConvertible


def test_arrays():
    array = Array([1, 2.5, "text"])
    assert (array[-1], list(array[0:2]), len(array)) == ("text", [1, 2.5], 3)
    assert array == Array([1, 2.5, "text"]) and array != Array([1])
    with pytest.raises(IndexError):
        array[3]


def test_maps():
    table = Map({"a": 1, "b": Array([2])})
    assert (table["a"], list(table["b"]), sorted(table)) == (1, [2], ["a", "b"])
    with pytest.raises(KeyError):
        table["c"]


def test_texts_and_shapes():
    assert String("abc") == "abc"
    assert tuple(ShapeTuple((1, 2, 3))) == (1, 2, 3) and ShapeTuple((1, 2))[-1] == 2


def test_tuples_with_a_tag():
    pair = ADT(3, [1, "x"])
    assert (pair.tag, pair[0], pair[-1], len(pair), list(pair[0:1])) == (3, 1, "x", 2, [1])
    assert pair == ADT(3, [1, "x"]) and pair != ADT(4, [1, "x"]) and hash(pair) == hash(ADT(3, [1, "x"]))
    assert repr(tuple_object([1, 2])) == "ADT(0, [1, 2])"
    assert convert(lambda fields: len(fields))(pair) == 2  # passes as its fields


@pytest.mark.parametrize(
    ("value", "kind"), [([1], Array), ((1,), Array), ({"a": 1}, Map), ("a", String), (len, PackedFunc)]
)
def test_convert(value, kind):
    assert isinstance(convert(value), kind)


@pytest.mark.parametrize("value", [1 + 2j, {1}, object(), iter(())])
def test_what_has_no_counterpart(value):
    with pytest.raises(NotConvertible, match="cannot be converted"):
        convert(value)


def test_program_nodes_travel_as_themselves():
    var = ir.Var("x", "int32")
    assert convert([var, 1])[0] is var and convert(var) is var
    assert convert(lambda x: x)(var) is var


def test_nodes_that_can_be_called_are_no_functions():
    tensor, func = te.placeholder((4,), name="A"), relay.Function([], relay.const(1.0))
    for value in (tensor, func, ir.GlobalVar("f")):
        assert callable(value)
        assert convert(value) is value and convert([value])[0] is value
        assert convert({"a": (value, [value])})["a"][1][0] is value
        assert convert(lambda x: x)(value) is value


def test_everything_a_packed_function_takes():
    echo = convert(lambda x: x)
    tensor = nd.array(np.arange(3))
    for value in (1, -5, 2.5, True, "text", b"bytes", None):
        assert echo(value) == value
    assert echo(tensor).same_as(tensor)
    assert echo(runtime.cpu(0)) == runtime.cpu(0)
    assert echo(runtime.DataType("float32x4")) == "float32x4"


def test_const_is_a_literal_of_a_program():
    assert isinstance(runtime.const(3, "int32"), ir.IntImm)


def test_looking_around_does_not_load_the_compiler():
    program = "import sys; from loopwright.runtime import Array, load_module; assert 'loopwright.ir' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_enabled():
    assert enabled("llvm") and enabled("cpu") and enabled("llvm -mcpu=generic")
    assert not enabled("vulkan") and not enabled("nonsense") and not enabled("")


def test_an_array_is_a_shape_and_shows_what_it_holds():
    shape = convert([3, 4])
    assert str(shape) == "[3, 4]" and str(convert({"n": 1})) == "{'n': 1}"
    assert [int(n) for n in tir.decl_buffer(shape, "float32").shape] == [3, 4]
    assert [int(n) for n in te.placeholder(shape).shape] == [3, 4]
    assert [int(n) for n in tir.bijective_layout("AB", "BA").forward_shape(shape)] == [4, 3]
    x = relay.var("x", shape=(4, 3))
    assert relay.reshape(x, shape).attrs.newshape == (3, 4) and relay.zeros(shape, "float32").attrs.shape == (3, 4)
