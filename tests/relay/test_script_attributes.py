"""Sizes and attributes as scripts for TVM read them: integers with the fields of literals, in one form."""

import copy
import pickle

import numpy as np
import pytest

from loopwright import ir, relay, tir
from loopwright.relay.errors import BadAttribute
from loopwright.relay.op import list_op_names, op_attrs

X = relay.var("x", shape=(1, 4, 8, 8))
W = relay.var("w", shape=(4, 4, 3, 3))


def test_a_size_is_an_integer_that_reads_as_a_literal():
    size = X.type_annotation.shape[1]
    assert isinstance(size, int) and isinstance(size, tir.IntImm) and not isinstance(size, tir.PrimExpr)
    assert (size.value, size.dtype, size + 1, f"{size}", np.zeros((size,)).shape) == (4, "int32", 5, "4", (4,))
    assert type(size + 1) is int and relay.TensorType((2**40,)).shape[0].dtype == "int64"
    for other in (pickle.loads(pickle.dumps(size)), copy.deepcopy(size)):
        assert type(other) is type(size) and other == 4
    n = tir.Var("n", "int32")
    assert str(size * n) == "4 * n" and type((size * n).a) is tir.IntImm
    assert relay.transform.InferType()(ir.IRModule.from_expr(X))["main"].body.checked_type.shape[2].value == 8


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (relay.nn.conv2d(X, W, padding=1, strides=2), relay.nn.conv2d(X, W, (2, 2), (1, 1, 1, 1))),
        (relay.nn.conv2d(X, W, padding=(1, 2), dilation=1), relay.nn.conv2d(X, W, padding=(1, 2, 1, 2))),
        (relay.nn.max_pool2d(X, 2, padding=1), relay.nn.max_pool2d(X, (2, 2), padding=(1, 1, 1, 1))),
        (relay.nn.conv2d_transpose(X, W, padding=(1, 1)), relay.nn.conv2d_transpose(X, W, padding=[1, 1, 1, 1])),
        (relay.sum(X, axis=1), relay.sum(X, axis=(1,))),
        (relay.argmax(X, axis=-1), relay.argmax(X, axis=[-1])),
        (relay.nn.conv2d(X, W, channels=tir.IntImm("int32", 4)), relay.nn.conv2d(X, W, channels=np.int64(4))),
    ],
)
def test_the_forms_of_an_attribute_are_one(short, long):
    assert ir.structural_equal(short, long) and str(short) == str(long)
    assert short.attrs.same(long.attrs)


def test_attributes_have_one_number_a_dimension_and_two_sides():
    attrs = relay.nn.conv2d(X, W, padding=(1, 2), channels=4).attrs
    assert (attrs.padding, attrs.strides, attrs.dilation) == ((1, 2, 1, 2), (1, 1), (1, 1))
    assert attrs.padding[3].value == 2 and attrs.channels.value == 4 and attrs.kernel_size is None
    assert attrs.get_int_tuple("padding") == (1, 2, 1, 2) and attrs.get_int("groups") == 1
    assert attrs.get_str("data_layout") == "NCHW" and "groups" in attrs.keys()
    assert [field.name for field in attrs.list_field_info()] == list(attrs.keys())
    assert relay.nn.conv1d(relay.var("a", shape=(1, 2, 5)), W, padding=1).attrs.padding == (1, 1)
    assert "padding" not in str(relay.nn.conv2d(X, W))


def test_classes_of_attributes_by_the_names_of_scripts():
    known = set(list_op_names())
    assert not [op for operators in op_attrs.OPERATORS.values() for op in operators if op not in known]
    conv = relay.nn.conv2d(X, W, padding=1)
    assert isinstance(conv.attrs, op_attrs.Conv2DAttrs) and not isinstance(conv.attrs, op_attrs.DenseAttrs)
    assert isinstance(relay.mean(X).attrs, op_attrs.ReduceAttrs)
    made = ir.make_node("relay.attrs.Conv2DAttrs", padding=(1, 1), meta_schedule_original_shape=None)
    assert ir.structural_equal(relay.Call(conv.op, [X, W], made), conv)
    with pytest.raises(AttributeError, match="'Conv2dAttrs'; did you mean Conv2DAttrs"):
        op_attrs.Conv2dAttrs
    with pytest.raises(ValueError, match=r"no node is called 'relay\.attrs\.NoSuchAttrs'"):
        ir.make_node("relay.attrs.NoSuchAttrs")


def test_a_call_takes_the_attributes_of_another_operator_as_its_own():
    attrs = relay.sum(X, axis=1).attrs
    assert ir.structural_equal(relay.Call(relay.op.get("mean"), [X], attrs), relay.mean(X, axis=1))
    with pytest.raises(BadAttribute, match="exp: there is no parameter axis"):
        relay.Call(relay.op.get("exp"), [X], attrs)


def test_attributes_of_a_function_are_fields_too():
    function = relay.Function([X], X).with_attr("Composite", "mine")
    assert function.attrs.Composite == function.attrs["Composite"] == "mine"
    assert not hasattr(function.attrs, "Compiler")
    with pytest.raises(AttributeError, match="no attribute 'Compiler'; there are Composite"):
        function.attrs.Compiler


def test_inference_finds_what_a_function_returns():
    function = relay.Function([X], relay.sum(X, axis=0))
    assert function.ret_type is None
    relay.transform.InferType()(ir.IRModule.from_expr(function))
    assert function.ret_type == relay.TensorType((4, 8, 8)) and function.declared_ret_type is None
    assert " /* -> Tensor" in str(function)


@pytest.mark.parametrize(("given", "hint"), [(3, 'relay.var("x", shape=(3, 4)'), ((2, 5), 'shape=(2, 5)')])
def test_a_variable_without_a_name_says_what_to_write(given, hint):
    with pytest.raises(TypeError, match=r"relay\.var: the name is an? .*not a text") as caught:
        relay.var(given)
    assert hint in str(caught.value)


def test_kernels_with_few_arguments():
    x, y, z = (relay.var(name, shape=(4,)) for name in "xyz")
    module = ir.IRModule.from_expr(relay.Function([x, y, z], relay.exp(x + y) * z))
    for key in ("max_args", "max_function_args"):
        with ir.transform.PassContext(opt_level=3, config={f"relay.FuseOps.{key}": 3}):
            assert str(relay.transform.FuseOps()(module)).count("Primitive=1") == 2
