"""Number types of one's own: registered by name, computed by the user's functions, stored as bits."""

from __future__ import annotations

import ctypes
import struct

import ml_dtypes
import numpy as np
import pytest

import loopwright
from loopwright import ir, te, tir
from loopwright.ir import intrinsics
from loopwright.runtime.dtype import DataType, UnknownDataType
from loopwright.runtime.externs import register_extern
from loopwright.script import from_source
from loopwright.target import datatype
from loopwright.transform.passes.lower_custom_datatypes import NoCustomLowering

NAME, WIDE = "custom[testfloat]16", "custom[testfloat]32"


def encode(x: float) -> int:
    return int(np.float32(x).astype(ml_dtypes.bfloat16).view("uint16"))


def decode(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", (bits & 0xFFFF) << 16))[0]


FUNCTIONS = {
    "FloatToTest": ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_float)(encode),
    "TestToFloat": ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_uint16)(decode),
    "TestAdd": ctypes.CFUNCTYPE(ctypes.c_uint16, *[ctypes.c_uint16] * 2)(lambda a, b: encode(decode(a) + decode(b))),
    "TestMul": ctypes.CFUNCTYPE(ctypes.c_uint16, *[ctypes.c_uint16] * 2)(lambda a, b: encode(decode(a) * decode(b))),
    "TestLess": ctypes.CFUNCTYPE(ctypes.c_bool, *[ctypes.c_uint16] * 2)(lambda a, b: decode(a) < decode(b)),
    "TestExp": ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_uint16)(lambda a: encode(float(np.exp(decode(a))))),
}


@pytest.fixture(scope="module", autouse=True)
def registered():
    for name, function in FUNCTIONS.items():
        register_extern(name, function)
    datatype.register("testfloat", 200)
    create = datatype.create_lower_func
    datatype.register_op(create({(32, 16): "FloatToTest"}), "Cast", "llvm", "float", "testfloat")
    datatype.register_op(create({(16, 32): "TestToFloat"}), "Cast", "llvm", "testfloat", "float")
    datatype.register_op(create({16: "TestAdd"}), "Add", "llvm", "testfloat")
    datatype.register_op(create("TestMul"), "Mul", "llvm", "testfloat")
    datatype.register_op(create({16: "TestLess"}), "LT", "llvm", "testfloat")
    datatype.register_op(create({16: "TestExp"}), "Call", "llvm", "testfloat", intrinsic_name="tir.exp")


def test_the_type_has_bits_lanes_and_a_code():
    dtype = DataType("custom[testfloat]16x4")
    assert (dtype.bits, dtype.lanes, dtype.type_code, dtype.custom, dtype.is_float) == (16, 4, 200, "testfloat", False)
    assert (datatype.get_type_code("testfloat"), datatype.get_type_name(200)) == (200, "testfloat")
    assert datatype.get_type_registered(200)
    assert not datatype.get_type_registered(201)
    with pytest.raises(UnknownDataType, match=r"custom\[nothing\]16"):
        DataType("custom[nothing]16")
    with pytest.raises(datatype.UnknownCustomType, match="'nothing'"):
        datatype.get_type_code("nothing")


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [("testfloat", 201, "the name has code 200"), ("other", 200, "that of testfloat"), ("a b", 202, "no identifier")],
)
def test_names_and_codes_are_ones_own(name, code, message):
    datatype.register("testfloat", 200)  # again, the same way: fine
    with pytest.raises(datatype.CustomTypeTaken, match=message):
        datatype.register(name, code)
    with pytest.raises(ValueError, match="outside 129 to 255"):
        datatype.register("low", 2)


def test_a_computation_runs_through_the_users_functions():
    x, y = te.placeholder((33,), name="X"), te.placeholder((33,), name="Y")
    z = te.compute((33,), lambda i: (x[i].astype(NAME) + y[i].astype(NAME)).astype("float32"), name="Z")
    random = np.random.default_rng(0)
    a, b, got = (random.normal(size=33).astype("float32") for _ in range(3))
    loopwright.build([x, y, z])(a, b, got)
    half = ml_dtypes.bfloat16
    np.testing.assert_array_equal(got, (a.astype(half) + b.astype(half)).astype("float32"))


def test_arrays_of_the_type_are_arrays_of_bits():
    x = te.placeholder((5,), NAME, name="X")
    z = te.compute((5,), lambda i: intrinsics.exp(x[i]) * 2 + 1.5, name="Z")
    bits = np.array([encode(v) for v in (0.0, 1.0, -1.0, 0.5, 2.0)], "uint16")
    got = np.zeros(5, "uint16")
    loopwright.build([x, z])(bits, got)
    want = [encode(decode(encode(decode(encode(float(np.exp(decode(int(v)))))) * 2)) + 1.5) for v in bits]
    np.testing.assert_array_equal(got, np.array(want, "uint16"))


def test_choices_and_sums():
    x = te.placeholder((4, 6), name="X")
    k = te.reduce_axis((0, 6), name="k")
    total = te.compute((4,), lambda i: te.sum(x[i, k].astype(NAME), axis=k), name="T")
    out = te.compute(
        (4,), lambda i: tir.Select(total[i] < tir.const(0, NAME), tir.const(7, NAME), total[i]).astype("float32"), "O"
    )
    given = np.array([[1, 2, 3, 4, 5, 6], [-9, 1, 1, 1, 1, 1], [0] * 6, [-0.5] * 6], "float32")
    got = np.zeros(4, "float32")
    loopwright.build([x, out])(given, got)
    np.testing.assert_array_equal(got, [21, 7, 0, 7])


def test_what_is_not_registered_says_what_to_register():
    x = te.placeholder((4,), name="X")
    difference = te.compute((4,), lambda i: (x[i].astype(NAME) - x[i].astype(NAME)).astype("float32"), name="D")
    with pytest.raises(NoCustomLowering, match=r"compute Sub on custom\[testfloat\]16 for target llvm") as caught:
        loopwright.build([x, difference])
    assert 'datatype.register_op(datatype.create_lower_func({16: …}), "Sub", "llvm", "testfloat")' in str(caught.value)
    wide = te.compute((4,), lambda i: x[i].astype(WIDE).astype("float32"), name="W")
    with pytest.raises(NoCustomLowering, match=r"a cast from float32 to custom\[testfloat\]32"):
        loopwright.build([x, wide])


def test_a_lowering_may_be_any_function():
    datatype.register("bits", 210)
    datatype.register_op(lambda call: call.args[1].astype("uint32") * 3, "Cast", "llvm", "int", "bits")
    datatype.register_op(lambda call: call.args[1].astype("int32") + 1, "Cast", "llvm", "bits", "int")
    x = te.placeholder((3,), "int32", name="X")
    y = te.compute((3,), lambda i: x[i].astype("custom[bits]32").astype("int32"), name="Y")
    got = np.zeros(3, "int32")
    loopwright.build([x, y])(np.array([1, 2, 5], "int32"), got)
    np.testing.assert_array_equal(got, [4, 7, 16])


def test_the_least_value_is_what_was_registered():
    with pytest.raises(datatype.NoLeastValue, match=r"least value of custom\[testfloat\]16"):
        tir.min_value(NAME)
    datatype.register_min_func(datatype.create_min_lower_func({32: "LeastOfTest"}, "testfloat"), "testfloat")
    assert str(tir.min_value(WIDE)) == 'T.call_pure_extern("custom[testfloat]32", "LeastOfTest")'


def test_programs_are_printed_and_read_back():
    x = te.placeholder((4,), NAME, name="X")
    function = te.create_prim_func([x, te.compute((4,), lambda i: x[i] * 2 + 0.5, name="Y")])
    assert 'T.FloatImm("custom[testfloat]16", 0.5)' in function.script()
    ir.assert_structural_equal(from_source(function.script()), function)


def test_two_custom_types_do_not_mix():
    datatype.register("bits", 210)
    with pytest.raises(TypeError, match="not defined for"):
        ir.Var("a", NAME) + ir.Var("b", "custom[bits]16")
