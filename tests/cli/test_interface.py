from __future__ import annotations

import json

import numpy as np
import pytest

from loopwright.cli.interface import (
    BadModelArrays,
    Interface,
    NoModelInside,
    Port,
    of_description,
    of_json,
    size_in,
)
from loopwright.runtime.description import Argument, FunctionDescription, ModuleDescription

FOUND = Interface(
    "net",
    (Port("x", "float32", ("n", 3)), Port("y", "int64", ("n",))),
    (Port("a", "float32", ("n * 2", 3)), Port("b", "int64", (2, "found"), ("n * 6",))),
    ("found",),
)


def test_as_json_and_back():
    assert of_json(json.loads(json.dumps(FOUND.to_json()))) == FOUND
    with pytest.raises(KeyError):
        of_json({"name": "net"})


def test_sizes_of_a_call_and_what_the_run_finds():
    arrays = {"x": np.zeros((4, 3), "float32"), "y": np.zeros(4, "int64")}
    sizes = FOUND.check(arrays)
    assert sizes == {"n": 4} and FOUND.open_sizes == ["n"]
    buffers = FOUND.buffers(sizes)
    assert [one.shape for one in buffers] == [(8, 3), (24,), ()]
    buffers[1][:] = np.arange(24)
    buffers[2][...] = 5
    a, b = FOUND.results(buffers, sizes)
    assert a.shape == (8, 3) and b.tolist() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


@pytest.mark.parametrize(
    ("x", "y", "problem"),
    [
        (np.zeros((4, 3), "float64"), np.zeros(4, "int64"), "'x' has dtype float64, expected float32"),
        (
            np.zeros((4,), "float32"),
            np.zeros(4, "int64"),
            r"'x' has shape \(4,\), expected x: ",
        ),
        (np.zeros((4, 2), "float32"), np.zeros(4, "int64"), "dimension 1 is 2, not 3"),
        (np.zeros((4, 3), "float32"), np.zeros(5, "int64"), "dimension 0 is 5, not n = 4"),
    ],
)
def test_arrays_that_do_not_fit(x, y, problem):
    with pytest.raises(BadModelArrays, match=problem):
        FOUND.check({"x": x, "y": y})


def test_an_input_that_is_missing():
    with pytest.raises(BadModelArrays, match="the input 'y' is not given"):
        FOUND.check({"x": np.zeros((4, 3), "float32")})


@pytest.mark.parametrize(
    ("text", "value"),
    [("n", 7), ("n * 2 + 1", 15), ("(n + 3) // 4", 2), ("n % 4", 3), ("-n + 10", 3), ("max(n, 9)", 9)]
    + [("T.min(n, 3)", 3), ('T.Cast("int64", n) * T.int64(2)', 14)],
)
def test_sizes_as_texts(text, value):
    assert size_in(text, {"n": 7}) == value


@pytest.mark.parametrize("text", ["m", "n.real", "__import__('os')", "n // 0", "n +", "(lambda: n)()", "1.5"])
def test_texts_that_are_no_sizes(text):
    with pytest.raises(BadModelArrays, match="cannot be computed from the sizes of the inputs"):
        size_in(text, {"n": 7})


def test_the_interface_of_a_library():
    x, y = Argument("x", "float32", ("n", "3")), Argument("y", "float32", ("n",), is_written=True)
    of = of_description(ModuleDescription((FunctionDescription("net", "c_net", (x, y)),)), "net.so")
    assert of == Interface("net", (Port("x", "float32", ("n", 3)),), (Port("y", "float32", ("n",)),))
    with pytest.raises(NoModelInside, match=r"net\.so holds no model") as caught:
        of_description(ModuleDescription((FunctionDescription("net", "c_net", (y, x)),)), "net.so")
    assert "does not take its inputs first" in str(caught.value)
    with pytest.raises(NoModelInside, match="holds no model"):
        of_description(ModuleDescription((FunctionDescription("f", "f", (Argument("n", "int32"),)),)), "net.so")
    with pytest.raises(NoModelInside, match="holds no model"):
        of_description(None, "net.so")
