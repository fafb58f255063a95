"""Operators of neural networks in graphs: the type, the meaning in numpy and the kernel of each agree."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import relay, te
from loopwright.relay.interpreter import evaluate
from loopwright.relay.op.registry import get
from loopwright.topi.samples import positive_numbers, real_numbers, whole_numbers

nn = relay.nn
W = whole_numbers
R = real_numbers


def typed(expression, *params):
    module = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(list(params), expression)))
    return module["main"]


def kernel(name, arrays, attributes):
    """What the operator's own kernel gives."""
    attrs = get(name).attributes(**attributes)
    inputs = [te.placeholder(array.shape, str(array.dtype), f"p{k}") for k, array in enumerate(arrays)]
    outs = attrs.compute(*inputs)
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    results = [np.zeros([int(size) for size in out.shape], str(out.dtype)) for out in outs]
    lw.build([*inputs, *outs], target="llvm")(*arrays, *results)
    return results


def graph(name, arrays, attributes):
    """What the graph of one call means, and its type."""
    params = [relay.var(f"p{k}", shape=array.shape, dtype=str(array.dtype)) for k, array in enumerate(arrays)]
    function = typed(relay.op.make(name, *params, **attributes), *params)
    value = evaluate(function, arrays)
    of = function.body.checked_type
    return (value, list(of.fields)) if isinstance(value, list) else ([value], [of])


CONV = {"strides": (2, 1), "padding": (1, 0, 1, 2), "dilation": (1, 2)}
EXACT = [
    ("nn.dense", [W((2, 3, 5)), W((4, 5))], {"units": 4}),
    ("nn.dense", [W((3, 5), "int8"), W((4, 5), "int8")], {"out_dtype": "int32"}),
    ("nn.matmul", [W((5, 3)), W((5, 4))], {"transpose_a": True}),
    ("nn.batch_matmul", [W((2, 3, 5)), W((1, 4, 5))], {}),
    ("nn.batch_matmul", [W((2, 3, 5)), W((2, 5, 4))], {"transpose_b": False}),
    ("nn.contrib_dense_pack", [W((3, 5)), W((2, 5, 4))], {}),
    ("nn.bias_add", [W((2, 3, 4)), W((3,))], {}),
    ("nn.batch_flatten", [W((2, 3, 4))], {}),
    ("nn.conv1d", [W((2, 3, 7)), W((4, 3, 3))], {"padding": (1, 2)}),
    ("nn.conv2d", [W((2, 3, 7, 8)), W((4, 3, 3, 2))], CONV),
    ("nn.conv2d", [W((2, 6, 5, 5)), W((4, 3, 3, 3))], {"groups": 2, "out_layout": "NHWC"}),
    ("nn.conv2d", [W((1, 5, 5, 3)), W((3, 3, 3, 4))], {"data_layout": "NHWC", "kernel_layout": "HWIO"}),
    ("nn.conv2d", [W((1, 3, 5, 5)), W((3, 2, 3, 3))], {"groups": 3, "padding": (1, 1)}),
    ("nn.conv2d", [W((1, 5, 5, 3)), W((3, 3, 3, 1))], {"groups": 3, "data_layout": "NHWC", "kernel_layout": "HWOI"}),
    ("nn.conv3d", [W((1, 2, 3, 4, 4)), W((3, 2, 2, 3, 3))], {"padding": (0, 1, 1)}),
    ("nn.contrib_conv2d_nchwc", [W((1, 2, 4, 4, 4)), W((1, 2, 3, 3, 4, 8))], {"data_layout": "NCHW4c"}),
    ("nn.contrib_depthwise_conv2d_nchwc", [W((1, 2, 4, 4, 4)), W((2, 1, 3, 3, 1, 4))], {"padding": (1, 1)}),
    ("nn.conv1d_transpose", [W((2, 3, 5)), W((3, 4, 3))], {"strides": (2,), "output_padding": (1,)}),
    ("nn.conv2d_transpose", [W((1, 4, 3, 4)), W((4, 2, 3, 3))], {"strides": (2, 2), "groups": 2, "padding": (1, 1)}),
    ("nn.conv2d_transpose", [W((1, 3, 4, 2)), W((2, 3, 2, 2))], {"data_layout": "NHWC", "dilation": (2, 2)}),
    ("nn.conv3d_transpose", [W((1, 2, 2, 3, 3)), W((2, 3, 2, 2, 2))], {}),
    ("nn.conv2d_backward_weight", [W((1, 4, 5, 5)), W((1, 3, 5, 5))], {"kernel_size": (3, 3), "padding": (1, 1)}),
    ("nn.correlation", [W((1, 4, 6, 6)), W((1, 4, 6, 6), low=0)],
     {"kernel_size": 1, "max_displacement": 1, "stride1": 1, "stride2": 1, "padding": 1}),
    ("nn.max_pool1d", [W((2, 3, 7))], {"pool_size": 3, "strides": 2}),
    ("nn.max_pool2d", [W((2, 3, 7, 7))], {"pool_size": (3, 3), "strides": 2, "padding": (1, 1), "ceil_mode": True}),
    ("nn.max_pool2d", [W((1, 2, 4, 4, 4))], {"pool_size": (2, 2), "layout": "NCHW4c"}),
    ("nn.max_pool3d", [W((1, 2, 4, 4, 4))], {"pool_size": (2, 2, 2), "strides": (2, 2, 2)}),
    ("nn.avg_pool2d", [W((2, 3, 6, 6))], {"pool_size": (2, 2), "padding": (1, 1), "strides": (2, 2)}),
    ("nn.avg_pool2d", [W((2, 6, 6, 3))], {"pool_size": (2, 2), "layout": "NHWC", "out_layout": "NCHW"}),
    ("nn.global_max_pool2d", [W((2, 3, 4, 5))], {}),
    ("nn.global_avg_pool1d", [W((2, 3, 8))], {}),
    ("nn.adaptive_max_pool2d", [W((2, 3, 7, 5))], {"output_size": (3, 2)}),
    ("nn.adaptive_avg_pool2d", [W((2, 3, 4, 4))], {"output_size": 2}),
    ("nn.adaptive_avg_pool3d", [W((1, 2, 2, 4, 2))], {}),
    ("nn.max_pool2d_grad", [W((2, 3, 3, 3)), W((2, 3, 6, 6))], {"pool_size": (2, 2), "strides": (2, 2)}),
    ("nn.avg_pool2d_grad", [W((2, 3, 3, 3)), W((2, 3, 6, 6))], {"pool_size": (2, 2), "strides": (2, 2)}),
    ("nn.relu", [W((3, 4))], {}),
    ("nn.leaky_relu", [W((3, 4))], {"alpha": 0.25}),
    ("nn.prelu", [W((2, 3, 4)), W((3,))], {}),
    ("nn.dropout", [W((3, 4))], {}),
    ("nn.pad", [W((2, 3)), np.array(1.5, "float32")], {"pad_width": ((1, 2), (0, 3))}),
    ("nn.pad", [W((2, 3), "int8"), np.array(7, "int32")], {"pad_width": ((1, 0), (0, 1))}),
    ("nn.pad", [W((2, 3)), np.array(0, "float32")], {"pad_width": ((1, 2), (0, 3)), "pad_mode": "edge"}),
    ("nn.pad", [W((4, 5)), np.array(0, "float32")], {"pad_width": ((1, 2), (0, 3)), "pad_mode": "reflect"}),
    ("nn.mirror_pad", [W((2, 3))], {"pad_width": ((1, 2), (0, 3))}),
    ("nn.dilate", [W((2, 3))], {"strides": (2, 3)}),
    ("nn.upsampling", [W((1, 2, 3, 3))], {"scale_h": 2, "scale_w": 1.5}),
    ("nn.upsampling3d", [W((1, 2, 2, 3, 3))], {"scale_d": 2, "scale_h": 1, "scale_w": 2}),
    ("nn.cross_entropy_with_logits", [W((4, 3)), W((4, 3), low=0)], {}),
    ("nn.nll_loss", [W((4, 3)), W((4,), "int32", 0, 2), W((3,))], {"reduction": "sum"}),
    ("nn.bitpack", [W((2, 32), "uint32", 0, 3)], {"bits": 2}),
    ("nn.bitserial_dense", [W((2, 32), "uint32", 0, 3), W((3, 32), "uint32", 0, 1)], {"data_bits": 2}),
    ("nn.bitserial_conv2d", [W((1, 8, 4, 4), "uint32", 0, 3), W((2, 8, 3, 3), "uint32", 0, 1)],
     {"activation_bits": 2, "pack_dtype": "uint8"}),
    ("nn.contrib_conv2d_gemm_weight_transform", [W((3, 3, 2, 5))], {"tile_N": 4, "tile_K": 4}),
]  # fmt: skip
C3 = [R((3,)), R((3,), shift=1.0)]
ROUNDED = [
    ("nn.softmax", [R((3, 5))], {}),
    ("nn.softmax", [R((2, 3, 5))], {"axis": 1}),
    ("nn.fast_softmax", [R((3, 5))], {}),
    ("nn.attention", [R((1, 2, 3, 4)), R((1, 2, 5, 4)), R((1, 2, 5, 3)), R((1, 1, 1, 5))], {"scale": 0.3}),
    ("nn.log_softmax", [R((3, 5))], {"axis": 0}),
    ("nn.batch_norm", [R((2, 3, 4)), *C3, R((3,), shift=2.0), positive_numbers((3,))], {}),
    ("nn.layer_norm", [R((2, 3)), *C3], {}),
    ("nn.layer_norm", [R((2, 3)), *C3], {"center": False, "scale": False}),
    ("nn.instance_norm", [R((2, 3, 4, 2)), *C3], {}),
    ("nn.group_norm", [R((2, 6, 4)), R((6,)), R((6,), shift=1.0)], {"num_groups": 2}),
    ("nn.rms_norm", [R((2, 3)), R((3,))], {}),
    ("nn.lrn", [R((1, 7, 2, 2))], {"size": 3}),
    ("nn.l2_normalize", [R((2, 6))], {"eps": 1e-6, "axis": (1,)}),
    ("nn.cross_entropy", [positive_numbers((4, 3)), positive_numbers((4, 3))], {}),
    ("nn.nll_loss", [R((4, 3)), W((4,), "int64", 0, 2), positive_numbers((3,))], {}),
    ("nn.deformable_conv2d", [R((1, 2, 4, 4)), R((1, 18, 4, 4)), R((2, 2, 3, 3))], {"padding": (1, 1)}),
    ("nn.contrib_conv2d_winograd_weight_transform", [R((2, 3, 3, 3))], {"tile_size": 4}),
    ("nn.contrib_conv3d_winograd_weight_transform", [R((2, 1, 3, 3, 3))], {"tile_size": 2}),
]  # fmt: skip


def agree(name, arrays, attributes, roundings):
    values, types = graph(name, arrays, attributes)
    found = kernel(name, arrays, attributes)
    with np.errstate(all="ignore"):
        wide = [one.astype("float64") if one.dtype.kind == "f" else one for one in arrays]
        exact = get(name).attributes(**attributes).reference(*wide)
    exact = list(exact) if isinstance(exact, (list, tuple)) else [exact]
    assert len(values) == len(found) == len(types) == len(exact)
    for value, result, of, true in zip(values, found, types, exact, strict=True):
        assert tuple(of.shape) == result.shape == np.shape(value) == np.shape(true)
        assert str(of.dtype) == str(result.dtype) == str(np.asarray(value).dtype)
        if roundings == 0:
            assert np.array_equal(result, true) and np.array_equal(value, true)
        else:
            scale = float(np.finfo("float32").eps) * np.abs(true).max()
            assert np.abs(result - true).max() <= roundings * scale


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "arrays", "attributes"), EXACT)
def test_exact(name, arrays, attributes):
    agree(name, arrays, attributes, 0)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "arrays", "attributes"), ROUNDED)
def test_rounded(name, arrays, attributes):
    # The kernels are held to bounds of their own in tests/topi; here it is that they are called with what was meant.
    agree(name, arrays, attributes, 64)


def test_every_nn_operator_is_tried():
    declared = {name for name in relay.op.list_op_names() if name.startswith("nn.")}
    here = {
        name for name in declared if get(name).attributes.__module__.startswith("loopwright.relay.op.nn.")
    }
    tried = {name for name, *_ in EXACT} | {name for name, *_ in ROUNDED}
    others = {f"nn.{kind}_pool{n}d" for kind in ("avg", "global_max", "global_avg", "adaptive_max", "adaptive_avg")
              for n in (1, 2, 3)} | {"nn.contrib_conv2d_winograd_without_weight_transform"}  # fmt: skip
    assert sorted(here - tried - others) == []


def test_winograd_is_the_convolution():
    x, w = R((1, 3, 7, 6)), R((2, 3, 3, 3))
    data, weight = relay.var("x", shape=x.shape), relay.var("w", shape=w.shape)
    ready = nn.contrib_conv2d_winograd_weight_transform(weight, tile_size=4)
    fast = nn.contrib_conv2d_winograd_without_weight_transform(data, ready, tile_size=4, padding=(1, 1))
    plain = nn.conv2d(data, weight, padding=(1, 1))
    one, other = (evaluate(typed(each, data, weight), [x, w]) for each in (fast, plain))
    # F(4, 3) spreads a value over numbers up to 752 times as large (schedule/winograd/bound.py).
    assert np.abs(one - other).max() <= 752 * 3 * 60 * np.finfo("float32").eps * np.abs(x).max() * np.abs(w).max()


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda x, w: nn.conv2d(x, w, channels=8, kernel_size=(3, 3)), (8, 6, 3, 3)),
        (lambda x, w: nn.conv2d(x, w, channels=8, kernel_size=(3, 3), groups=2), (8, 3, 3, 3)),
        (lambda x, w: nn.conv2d(x, w, channels=12, kernel_size=(3, 3), groups=6), (6, 2, 3, 3)),
        (lambda x, w: nn.conv2d_transpose(x, w, channels=8, kernel_size=(2, 2)), (6, 8, 2, 2)),
        (lambda x, w: nn.dense(nn.batch_flatten(x), w, units=10), (10, 384)),
        (lambda x, w: nn.bias_add(x, w), (6,)),
        (lambda x, w: nn.prelu(x, w), (6,)),
        (lambda x, w: nn.instance_norm(x, w, w), (6,)),
    ],
)
def test_a_weight_gets_its_type(make, wanted):
    x, w = relay.var("x", shape=(1, 6, 8, 8)), relay.var("w")
    assert typed(make(x, w), x, w).params[1].checked_type.shape == wanted


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda x, w: nn.conv2d(x, w, padding=(1, 1)), ("?", "4", "8", "8")),
        (lambda x, w: nn.relu(x), ("?", "3", "8", "8")),
        (lambda x, w: nn.max_pool2d(x, (2, 2), (2, 2)), ("?", "3", "4", "4")),
        (lambda x, w: nn.batch_flatten(x), ("?", "192")),
        (lambda x, w: nn.adaptive_avg_pool2d(x, 1), ("?", "3", "1", "1")),
        (lambda x, w: nn.softmax(x), ("?", "3", "8", "8")),
        (lambda x, w: nn.upsampling(x, 2, 2), ("?", "3", "16", "16")),
    ],
)
def test_a_batch_of_any_size(make, shape):
    x, w = relay.var("x", shape=(relay.AnyDim(), 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    assert tuple(map(str, typed(make(x, w), x, w).body.checked_type.shape)) == shape


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x, w: nn.conv2d(x, w, kernel_size=(5, 5)), r"kernel_size is \(5, 5\), and the weight .* has 3 along H"),
        (lambda x, w: nn.dense(x, w, units=3), r"units is 3, and the weight .* has 4"),
        (lambda x, w: nn.conv2d(x, w, groups=3), "8 input channels are not divisible into 3 groups|channels"),
        (lambda x, w: nn.pad(x, ((1, 1),)), "pad_width has 1 pairs, and the data 4 dimensions"),
        (lambda x, w: nn.softmax(x, axis=4), "axis 4"),
        (lambda x, w: nn.cross_entropy(x, w), "unable to show the following types match"),
        (lambda x, w: nn.deformable_conv2d(x, x, w, data_layout="NWHC"), "layouts NWHC and OIHW are not known"),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    x, w = relay.var("x", shape=(1, 8, 8, 8)), relay.var("w", shape=(4, 8, 3, 3))
    with pytest.raises(relay.errors.TypeMismatch, match=message):
        typed(make(x, w), x, w)


def test_matmul_with_a_transposed_weight_is_dense():
    a, b, batch = relay.var("a", shape=(3, 5)), relay.var("b", shape=(4, 5)), relay.var("c", shape=(2, 4, 5))
    assert nn.matmul(a, b, transpose_b=True).op.name == "nn.dense"
    assert nn.matmul(a, b, transpose_b=True, transpose_a=True).op.name == "nn.matmul"
    assert nn.matmul(a, batch, transpose_b=True).op.name == "nn.matmul"


def test_batch_norm_and_dropout_are_simplified():
    x, g, b, m, v = (relay.var(name, shape=(2, 3, 4) if name == "x" else (3,)) for name in "xgbmv")
    out = nn.dropout(nn.batch_norm(x, g, b, m, v)[0])
    function = typed(out, x, g, b, m, v)
    module = relay.transform.SimplifyInference()(relay.IRModule.from_expr(function))
    text = str(module["main"])
    assert "batch_norm" not in text and "dropout" not in text
    values = [R((2, 3, 4)), *C3, R((3,), shift=2.0), positive_numbers((3,))]
    typed_again = relay.transform.InferType()(module)["main"]
    exact = evaluate(function, values)
    # The mean is folded into the shift: one more product of it.
    room = 8 * np.finfo("float32").eps * (np.abs(exact).max() + 3 * np.abs(values[1]).max() * 2)
    assert np.abs(evaluate(typed_again, values) - exact).max() <= room


def test_sizes_that_the_program_computes():
    x, widths = relay.var("x", shape=(2, 3)), relay.var("w", shape=(2, 2), dtype="int32")
    function = typed(nn.pad(x, widths, 1.0), x, widths)
    assert [str(size) for size in function.body.checked_type.shape] == ["?", "?"]
    assert evaluate(function, [np.zeros((2, 3), "float32"), np.array([[1, 0], [0, 2]], "int32")]).shape == (3, 5)
    assert nn.pad(x, relay.const(np.array([[1, 0], [0, 2]], "int32"))).op.name == "nn.pad"
    picture, scale = relay.var("p", shape=(1, 1, 2, 3)), relay.var("s", shape=())
    function = typed(nn.upsampling(picture, scale, 2), picture, scale)
    assert evaluate(function, [W((1, 1, 2, 3)), np.array(2.0, "float32")]).shape == (1, 1, 4, 6)


# Central differences in float64: the call by itself, the sum of whose elements is derived.
GRADIENTS = [
    ("nn.dense", [R((2, 3, 4), "float64"), R((5, 4), "float64")], {}),
    ("nn.matmul", [R((4, 3), "float64"), R((5, 4), "float64")], {"transpose_a": True, "transpose_b": True}),
    ("nn.batch_matmul", [R((2, 3, 4), "float64"), R((1, 5, 4), "float64")], {}),
    ("nn.bias_add", [R((2, 3, 2), "float64"), R((3,), "float64")], {}),
    ("nn.relu", [R((3, 4), "float64")], {}),
    ("nn.softmax", [R((3, 4), "float64")], {}),
    ("nn.log_softmax", [R((3, 4), "float64")], {"axis": 0}),
    ("nn.batch_flatten", [R((2, 3, 2), "float64")], {}),
    ("nn.conv2d", [R((1, 2, 6, 5), "float64"), R((3, 2, 3, 2), "float64")], {"strides": (2, 2), "padding": (1, 0)}),
    ("nn.conv2d", [R((1, 4, 5, 5), "float64"), R((2, 2, 2, 2), "float64")], {"groups": 2, "dilation": (2, 2)}),
    ("nn.max_pool2d", [R((1, 2, 5, 4), "float64")], {"pool_size": (2, 2), "strides": (2, 1)}),
    ("nn.avg_pool2d", [R((1, 2, 5, 4), "float64")], {"pool_size": (2, 2), "padding": (1, 1)}),
    ("nn.cross_entropy", [positive_numbers((3, 2), "float64"), R((3, 2), "float64")], {}),
    ("nn.cross_entropy_with_logits", [R((3, 2), "float64"), R((3, 2), "float64")], {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arrays", "attributes"), GRADIENTS)
def test_gradient(name, arrays, attributes):
    params = [relay.var(f"p{k}", shape=array.shape, dtype="float64") for k, array in enumerate(arrays)]
    call = relay.op.make(name, *params, **attributes)
    function = typed(call, *params)
    head = R(np.shape(evaluate(function, arrays)), "float64", shift=1.0)
    seed = relay.var("seed", shape=head.shape, dtype="float64")
    grads = call.attrs.gradient(call, seed)
    whole = typed(relay.Tuple(grads), *params, seed)
    found = evaluate(whole, [*arrays, head])
    step = 1e-6
    for array, grad in zip(arrays, found, strict=True):
        assert grad.shape == array.shape
        for at in np.ndindex(*array.shape):
            kept, values = array[at], []
            for sign in (1, -1):
                array[at] = kept + sign * step
                values.append(float(np.sum(evaluate(function, arrays) * head)))
            array[at] = kept
            # Differences lose about 1e-16 / step, and step² of the third derivative.
            assert abs(grad[at] - (values[0] - values[1]) / (2 * step)) < 1e-7
