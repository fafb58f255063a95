"""Element-wise operators, operators of two tensors, reductions and constants of graphs: types, meaning, kernels."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import relay, te
from loopwright.relay.interpreter import evaluate
from loopwright.relay.op.from_topi import type_of_compute
from loopwright.relay.op.registry import Op, get
from loopwright.relay.types import type_text
from tests.relay.rounding_check import assert_rounded

UNARY = (
    "log log2 log10 exp erf sqrt rsqrt sigmoid tanh tan cos cosh sin sinh acos acosh asin asinh atan atanh floor ceil "
    "trunc round abs sign negative copy isnan isfinite isinf zeros_like ones_like fast_exp fast_tanh fast_erf"
).split()
BINARY = (
    "add subtract multiply divide power maximum minimum floor_divide trunc_divide mod floor_mod trunc_mod equal "
    "not_equal less less_equal greater greater_equal"
).split()
BITS = "left_shift right_shift bitwise_and bitwise_or bitwise_xor".split()
LOGIC = "logical_and logical_or logical_xor".split()
REDUCTIONS = "sum max min mean prod argmax argmin".split()


def typed(expression, *params):
    module = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(list(params), expression)))
    return module["main"]


def run(expression, values):
    """The value of an expression by reference, with its types inferred."""
    function = typed(expression, *values)
    return evaluate(function, list(values.values()))


def native(expression, values):
    """The value of a call of one operator by its kernel."""
    function = typed(expression, *values)
    call = function.body
    held = dict(zip(function.params, values.values(), strict=True))
    arrays = [held[arg] if arg in held else arg.data for arg in call.args]
    inputs = [te.placeholder(array.shape, str(array.dtype), f"p{k}") for k, array in enumerate(arrays)]
    out = call.attrs.compute(*inputs)
    result = np.zeros([int(size) for size in out.shape], str(out.dtype))
    lw.build([*inputs, out], target="llvm")(*arrays, result)
    return result


def var(shape, dtype="float32", name="x"):
    return relay.var(name, shape=shape, dtype=dtype)


def same_types(name, types, **attributes):
    attrs = get(name).attributes(**attributes)
    assert type_text(attrs.infer(*types)) == type_text(type_of_compute(attrs, *types)), name


@pytest.mark.parametrize("name", UNARY)
def test_unary_types(name):
    same_types(name, [relay.TensorType((2, 3))])
    same_types(name, [relay.TensorType(())])
    same_types(name, [relay.TensorType((relay.AnyDim(), 3))])


@pytest.mark.parametrize("name", [*BINARY, *BITS, *LOGIC])
def test_binary_types(name):
    dtype = "int32" if name in BITS else "bool" if name in LOGIC else "float32"
    same_types(name, [relay.TensorType((2, 3), dtype), relay.TensorType((3,), dtype)])
    same_types(name, [relay.TensorType((4, 1), dtype), relay.TensorType((1, 5), dtype)])
    same_types(name, [relay.TensorType((), dtype), relay.TensorType((), dtype)])


@pytest.mark.parametrize("name", [*REDUCTIONS, "all", "any"])
def test_reduction_types(name):
    dtype = "bool" if name in ("all", "any") else "float32"
    for attributes in ({}, {"axis": 1}, {"axis": (0, -1), "keepdims": True}, {"axis": (), "exclude": False}):
        same_types(name, [relay.TensorType((2, 3, 4), dtype)], **attributes)
    same_types(name, [relay.TensorType((2, 3, 4), dtype)], axis=1, exclude=True)
    same_types(name, [relay.TensorType((), dtype)])


def test_other_types():
    x = relay.TensorType((2, 3))
    same_types("cast", [x], dtype="int8")
    same_types("cast", [x], dtype="float32")
    same_types("cast_like", [x, relay.TensorType((5,), "int32")])
    same_types("reinterpret", [x], dtype="int32")
    same_types("clip", [x], a_min=0.0, a_max=1.0)
    same_types("zeros", [], shape=(2, 3), dtype="int8")
    same_types("ones", [], shape=(), dtype="bool")
    same_types("full", [relay.TensorType(())], shape=(2,))
    same_types("full", [relay.TensorType(())], shape=(2,), dtype="int32")
    same_types("full_like", [x, relay.TensorType(())])
    same_types("collapse_sum_like", [x, relay.TensorType((1, 3))])
    same_types("collapse_sum_to", [x], shape=(3,))
    same_types("fixed_point_multiply", [relay.TensorType((2, 3), "int32")], multiplier=1 << 30, shift=1)
    channels = [relay.TensorType((3,), "int32")] * 3
    data = relay.TensorType((2, 3), "int32")
    same_types(
        "fixed_point_multiply_per_axis",
        [data, *channels],
        is_lshift_required=True,
        is_rshift_required=False,
        axes=(1,),
    )
    same_types("logical_not", [relay.TensorType((2,), "bool")])
    same_types("bitwise_not", [relay.TensorType((2,), "uint8")])


A = np.linspace(-2, 2, 24, dtype="float32").reshape(2, 3, 4)


def test_kernels_and_references_agree():
    x = var((2, 3, 4))
    for call in (
        relay.sum(x, axis=()),
        relay.argmax(x, axis=(1, 2)),
        relay.clip(x, -1.0, 0.5),
        relay.full_like(x, relay.const(7)),
    ):
        np.testing.assert_array_equal(native(call, {x: A}), run(call, {x: A}))
    for call, formula in (
        (relay.exp(x), np.exp),
        (relay.mean(x, axis=1), lambda a: a.mean(axis=1)),
        (relay.mean(x, axis=-1, exclude=True, keepdims=True), lambda a: a.mean(axis=(0, 1), keepdims=True)),
    ):
        assert_rounded(native(call, {x: A}), formula, A)
        assert_rounded(run(call, {x: A}), formula, A)


def test_integers_that_are_rounded_are_copied():
    x, a = var((3,), "int32"), np.array([-1, 0, 7], "int32")
    for call in (relay.floor(x), relay.round(x), relay.cast(x, "int32")):
        assert np.array_equal(native(call, {x: a}), a)


def test_mean_of_integers_is_cut():
    x, a = var((2, 3), "int32"), np.array([[-1, -2, -2], [1, 2, 2]], "int32")
    assert run(relay.mean(x, axis=1), {x: a}).tolist() == [-1, 1] == native(relay.mean(x, axis=1), {x: a}).tolist()


def test_composed_reductions():
    x = var((2, 3, 4))

    def squares(a, axis):
        return np.square(a - a.mean(axis=axis, keepdims=True)).sum(axis=axis)

    def log_sum_exp(a):
        largest = a.max(axis=-1, keepdims=True)
        return np.log(np.exp(a - largest).sum(axis=-1)) + largest[..., 0]

    assert_rounded(run(relay.variance(x, axis=1), {x: A}), lambda a: squares(a, 1) / 3, A)
    assert_rounded(run(relay.std(x, axis=1, unbiased=True), {x: A}), lambda a: np.sqrt(squares(a, 1) / 2), A)
    mean, variance = relay.mean_variance(x, axis=(0, 2))
    assert_rounded(run(mean, {x: A}), lambda a: a.mean(axis=(0, 2)), A)
    assert_rounded(run(variance, {x: A}), lambda a: squares(a, (0, 2)) / 8, A)
    assert_rounded(run(relay.logsumexp(x, axis=-1), {x: A + 1000}), log_sum_exp, A + 1000)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_logsumexp_of_infinite_elements(dtype):
    rows = np.array(
        [[np.inf, 1, 2], [-np.inf] * 3, [np.inf, -np.inf, 0], [-np.inf, 1, 1], [np.nan, np.inf, 0], [9, 9, 9]], dtype
    )
    expected = np.array([np.inf, -np.inf, np.inf, 1 + np.log(2), np.nan, 9 + np.log(3)])
    x = var(rows.shape, dtype)

    def near(found, exact, count):
        """A sum of `count` powers is off by as many eps and one for the powers, and so is its logarithm; then the
        logarithm and the largest element are added, each rounded."""
        is_finite = np.isfinite(exact)
        np.testing.assert_array_equal(found[~is_finite], exact[~is_finite])
        bound = float(np.finfo(dtype).eps) * (count + 2 + 2 * np.abs(exact[is_finite]))
        assert (np.abs(found[is_finite] - exact[is_finite]) <= bound).all()

    near(run(relay.logsumexp(x, axis=1), {x: rows}), expected, 3)
    near(run(relay.logsumexp(x, axis=[-1], keepdims=True), {x: rows})[:, 0], expected, 3)
    finite = np.arange(18, dtype=dtype).reshape(6, 3) / 18
    everything = np.log(np.exp(finite.astype("float64")).sum(keepdims=True)).reshape(1)
    near(run(relay.logsumexp(x), {x: finite}).reshape(1), everything, 18)
    near(run(relay.logsumexp(x, axis=(0, 1)), {x: finite}).reshape(1), everything, 18)


def test_shapes_that_are_expressions():
    shape, value = var((2,), "int64", "shape"), relay.const(2.5)
    sizes = np.array([2, 3])
    assert run(relay.zeros(shape, "int8"), {shape: sizes}).shape == (2, 3)
    assert run(relay.ones(shape, "float32"), {shape: sizes}).sum() == 6
    assert run(relay.full(value, shape), {shape: sizes}).tolist() == [[2.5] * 3] * 2
    assert run(relay.zeros(relay.const(sizes), "int8"), {}).shape == (2, 3)
    assert run(relay.ones(4, "int8"), {}).shape == (4,)
    assert relay.zeros(relay.const(sizes), "int8").op.name == "zeros"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x + var((2, 3), "int32", "y"), "data types float32 and int32 do not match in BroadcastRel"),
        (lambda x: x + var((2, 4), name="y"), r"shapes \(2, 3\) and \(2, 4\)"),
        (lambda x: relay.sum(x, axis=2), "axis 2 is not one of a tensor of 2 dimensions"),
        (lambda x: relay.all(x), "all takes truth values"),
        (lambda x: relay.logical_not(x), "logical_not takes truth values"),
        (lambda x: relay.logical_and(x, x), "logical_and takes truth values"),
        (lambda x: relay.full(x, (2,)), "the fill value is one number"),
        (lambda x: relay.fixed_point_multiply(x, 1, 1), "takes int32"),
        (lambda x: relay.reinterpret(x, "int8"), "another width"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    x = var((2, 3))
    expression = call(x)
    with pytest.raises(relay.DiagnosticError, match=message):
        typed(expression, *relay.analysis.free_vars(expression))


def test_patterns():
    kinds = {name: int(Op.get(name).get_attr("TOpPattern")) for name in ("exp", "add", "sum", "zeros", "argmax")}
    assert kinds == {"exp": 0, "add": 1, "sum": 3, "zeros": 0, "argmax": 3}
