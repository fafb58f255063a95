"""Operators of neural networks: stages and tags, sizes known at the call, schedules by rule, and what is refused.

Values are held against numpy in test_operators.py.
"""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.target import Target
from loopwright.topi.parts.axes import BadAxis
from loopwright.topi.parts.choices import UnknownChoice
from loopwright.topi.registry import OPERATORS
from loopwright.topi.rounding import Rounded, rounding_of
from loopwright.topi.samples import real_numbers, whole_numbers

nn = topi.nn


def tensor(*shape, dtype="float32", name="data"):
    return te.placeholder(shape, dtype, name=name)


def stages(*outputs):
    """The computed stages behind the outputs, inputs first."""
    found = {}

    def visit(op):
        if op.name not in found:
            for source in op.input_tensors:
                visit(source.op)
            found[op.name] = op

    for output in outputs:
        visit(output.op)
    return {name: op for name, op in found.items() if op.input_tensors}


def test_stages_of_softmax():
    for name in ("softmax", "fast_softmax", "log_softmax"):
        out = getattr(nn, name)(tensor(4, 5, 6), axis=-2)
        assert list(stages(out)) == ["T_softmax_maxelem", "T_softmax_exp", "T_softmax_expsum", "T_softmax_norm"]
        assert (out.op.tag, int(out.op.attrs["axis"])) == (f"{name}_output", 1)


@pytest.mark.parametrize(
    ("make", "name", "tag"),
    [
        (lambda: nn.dense(tensor(2, 3), tensor(4, 3)), "T_matmul_NT", "dense"),
        (lambda: nn.matmul(tensor(2, 3), tensor(3, 4)), "T_matmul_NN", "matmul"),
        (lambda: nn.matmul(tensor(3, 2), tensor(3, 4), transpose_a=True), "T_matmul_TN", "matmul"),
        (lambda: nn.matmul(tensor(3, 2), tensor(4, 3), None, None, True, True), "T_matmul_TT", "matmul"),
        (lambda: nn.dense(tensor(2, 3), tensor(4, 3), tensor(4)), "T_add", "broadcast"),
        (lambda: nn.relu(tensor(2)), "T_relu", "elemwise"),
        (lambda: nn.prelu(tensor(2, 3), tensor(3)), "T_prelu", "broadcast"),
        (lambda: nn.layer_norm(tensor(2, 3), tensor(3), tensor(3), [1]), "T_layer_norm", "broadcast"),
        (lambda: nn.batch_norm(tensor(2, 3), *[tensor(3)] * 4)[0], "T_batch_norm", "broadcast"),
        (lambda: nn.adaptive_pool(tensor(1, 2, 4, 4), 2, "max"), "adaptive_pool_max", "adaptive_pool_max"),
        (lambda: nn.adaptive_pool(tensor(1, 2, 4, 4), 2, "avg"), "adaptive_pool_avg", "elemwise"),
    ],
)
def test_names_and_tags(make, name, tag):
    out = make()
    assert (out.op.name, out.op.tag) == (name, tag)


def hold(name, made, outs, arrays, args, attributes, bound=None, **options):
    """Build what an operator made of placeholders, run it, and hold it against the operator's reference."""
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    built = lw.build([*made, *outs], target="llvm", **options)
    wide = [one.astype("float64") if isinstance(one, np.ndarray) and one.dtype.kind == "f" else one for one in args]
    exact = OPERATORS[name].reference(*wide, **attributes)
    exact = list(exact) if isinstance(exact, (list, tuple)) else [exact]
    results = [np.full(np.shape(true), 77, str(out.dtype)) for true, out in zip(exact, outs, strict=True)]
    built(*arrays, *results)
    for result, true in zip(results, exact, strict=True):
        allowed = 0.0 if bound is None else bound(wide, true) + np.spacing(np.abs(true).astype("float32"))
        assert np.all(np.abs(result - true) <= allowed)


# A size that is known when they run is written "n". Whole numbers: what is not exact has a bound.
SYMBOLIC = [
    ("nn.dense", [("n", 5), (4, 5)], (), True),
    ("nn.batch_matmul", [("n", 3, 5), ("n", 4, 5)], (), False),
    ("nn.relu", [("n", 5)], (), False),
    ("nn.softmax", [("n", 5)], (), True),
    ("nn.layer_norm", [("n", 5), (5,), (5,)], ([1],), True),
    ("nn.bias_add", [("n", 5), (5,)], (), False),
    ("nn.conv2d_nchw", [("n", 2, 5, 5), (3, 2, 3, 3)], (1, 1, 1), True),
    ("nn.pool2d", [("n", 2, 4, 4)], ((2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max"), False),
    ("nn.adaptive_pool", [(1, 2, "n", 5)], ((2, 3), "max", "NCHW"), False),
    ("nn.upsampling", [("n", 2, 3, 3)], (2, 2), False),
]
ROUNDED = ("nn.softmax", "nn.layer_norm")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "shapes", "rest", "autosched"), SYMBOLIC)
def test_sizes_known_at_the_call(name, shapes, rest, autosched):
    n = te.size_var("n")
    made = [tensor(*[n if size == "n" else size for size in shape], name=f"p{k}") for k, shape in enumerate(shapes)]
    out = OPERATORS[name].compute(*made, *rest)
    arrays = [whole_numbers([7 if size == "n" else size for size in shape]) for shape in shapes]
    bound = rounding_of(OPERATORS[name].reference, "float32") if name in ROUNDED else None
    hold(name, made, out, arrays, [*arrays, *rest], {}, bound, autosched=autosched)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "name", ["nn.batch_matmul", "nn.group_norm", "nn.batch_norm", "nn.lstm", "nn.adaptive_pool", "nn.pool_grad"]
)
def test_schedules_by_rule_take_them(name):
    sample = next(iter(OPERATORS[name].samples()))
    made = []
    given = []
    for value in sample.args:
        is_array = isinstance(value, np.ndarray)
        if is_array:
            made.append(tensor(*value.shape, dtype=str(value.dtype), name=f"p{len(made)}"))
        given.append(made[-1] if is_array else value)
    outs = OPERATORS[name].compute(*given, **sample.attributes)
    arrays = [value for value in sample.args if isinstance(value, np.ndarray)]
    hold(name, made, outs, arrays, sample.args, sample.attributes, sample.bound, autosched=True)


def test_layer_norm_keeps_its_digits_far_from_zero():
    x = real_numbers((1, 64), shift=3000.0)
    data, scale = tensor(1, 64), np.ones(64, "float32")
    gamma, beta = tensor(64, name="gamma"), tensor(64, name="beta")
    out = np.zeros((1, 64), "float32")
    lw.build([data, gamma, beta, nn.layer_norm(data, gamma, beta, [1])], target="llvm")(x, scale, 0 * scale, out)
    wide = x.astype("float64")
    exact = (wide - wide.mean()) / np.sqrt(wide.var() + 1e-5)
    assert np.abs(out - exact).max() < 1e-3  # E[x²] - E[x]² has no digit left of a variance of 1: 3000² · 2⁻²⁴ is 0.5


def test_rounded_values_bound_what_float32_loses():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, y = rng.standard_normal((2, 4, 9)).astype("float32")

        def formula(a, b):
            total = (a * b).sum(axis=1, keepdims=True)
            return np.tanh(a / np.sqrt(total * total + 0.1)) + np.exp(b - b.max(axis=1, keepdims=True)) * 0.3

        tracked = formula(Rounded(x, "float32"), Rounded(y, "float32"))
        assert np.array_equal(tracked.value, formula(x.astype("float64"), y.astype("float64")))
        off = np.abs(formula(x, y).astype("float64") - tracked.value)
        assert np.all(off <= tracked.error) and tracked.error.max() < 1e-4


def test_hooks_leave_operators_alone_until_a_target_says_otherwise():
    assert nn.conv2d_legalize({}, [], []) is None
    assert nn.dense_alter_layout({}, [], [], None) is None
    with pytest.raises(topi.nn.NoLayoutKnown, match="conv2d_infer_layout: nothing is registered"):
        nn.conv2d_infer_layout(("conv2d",), None)

    @nn.erf_legalize.register("key_of_this_test")
    def other(attrs, inputs, types):
        return "another"

    with Target("llvm -keys=key_of_this_test,cpu"):
        assert nn.erf_legalize({}, [], []) == "another"
    assert nn.erf_legalize({}, [], []) is None


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: nn.dense(tensor(2, 3), tensor(4, 5)), topi.InvalidShapeError, "sizes to sum over differ: 3 in .*, 5"),
        (lambda: nn.dense(tensor(3), tensor(4, 3)), topi.InvalidShapeError, "has shape .* of 1 dimensions"),
        (lambda: nn.dense(tensor(2, 3), tensor(4, 3), tensor(5)), topi.InvalidShapeError, "units differ: 5 in the"),
        (lambda: nn.matmul(tensor(2, 2, 3), tensor(3, 3, 4)), topi.InvalidShapeError, "the batches differ: 2 .* 3"),
        (lambda: nn.batch_matmul(tensor(2, 3, 5), tensor(2, 4, 5), (2, 4, 4)), topi.InvalidShapeError, "oshape"),
        (lambda: nn.dense_pack(tensor(2, 3), tensor(2, 4, 8)), topi.InvalidShapeError, "3 in the data, 4 in"),
        (lambda: nn.softmax(tensor(2, 3), axis=2), BadAxis, "softmax: axis 2 is not one of a tensor with 2 dimensions"),
        (lambda: nn.prelu(tensor(2, 3), tensor(4)), topi.InvalidShapeError, "channels differ: 3 in .*, 4 in the slope"),
        (lambda: nn.batch_norm(tensor(2, 3), *[tensor(4)] * 4), topi.InvalidShapeError, "3 in axis 1.*4 in gamma"),
        (lambda: nn.layer_norm(tensor(2, 3), tensor(2), None, [1]), topi.InvalidShapeError, "axis 1 differs: 3 .* 2"),
        (lambda: nn.layer_norm(tensor(2, 3, dtype="int32"), None, None, [1]), topi.InvalidShapeError, "is int32"),
        (lambda: nn.group_norm(tensor(2, 6), None, None, 4, 1, []), topi.InvalidShapeError, "6 channels .* 4 groups"),
        (lambda: nn.group_norm(tensor(2, 6), None, None, 2, 1, [1]), topi.InvalidShapeError, "is among the axes"),
        (lambda: nn.rms_norm(tensor(2, 3), tensor(3, dtype="float64"), [1]), topi.InvalidShapeError, "float64"),
        (lambda: nn.lrn(tensor(1, 4, 2, 2), 4), topi.BadWindow, "size is 4"),
        (lambda: nn.nll_loss(tensor(2, 3), tensor(2, dtype="int32"), tensor(3), "max", 0), UnknownChoice, "'max'"),
        (lambda: nn.adaptive_pool(tensor(1, 2, 4, 4), 0, "max"), topi.BadWindow, "output_size .* is less than 1"),
        (lambda: nn.pool_grad(tensor(1, 2, 3, 3), tensor(1, 2, 4, 4), 2, 2, (0,) * 4, "max"),
         topi.InvalidShapeError, "and the pooled data"),
        (lambda: nn.upsampling(tensor(1, 2, 3, 3), 2, 2, method="cubic"), UnknownChoice, "method is 'cubic'"),
        (lambda: nn.conv2d_winograd_nchw(tensor(1, 2, 6, 6), tensor(2, 2, 3, 3), 2, 1, 1),
         nn.NoWinograd, r"strides are \[2, 2\]"),
        (lambda: nn.conv2d_winograd_weight_transform(tensor(2, 2, 2, 2), 4), nn.NoWinograd, "a window of 2 taps"),
        (lambda: nn.deformable_conv2d_nchw(tensor(1, 2, 4, 4), tensor(1, 18, 4, 4), tensor(2, 2, 3, 3), 1, 1, 1, 1, 2),
         topi.BadWindow, "groups is 2"),
        (lambda: nn.deformable_conv2d_nchw(tensor(1, 2, 4, 4), tensor(1, 8, 4, 4), tensor(2, 2, 3, 3), 1, 1, 1, 1, 1),
         topi.InvalidShapeError, "offsets differ: 8 in the offset, 18"),
        (lambda: nn.correlation_nchw(tensor(1, 2, 4, 4), tensor(1, 2, 4, 4), 2, 1, 1, 1, 0, True),
         topi.BadWindow, "kernel_size is 2"),
        (lambda: nn.lstm(tensor(2, 1, 3), tensor(8, 3), tensor(8, 2), weight_layout="IFGG"),
         topi.InvalidShapeError, "weight_layout is 'IFGG'"),
        (lambda: nn.simulated_quantize(tensor(2, 3), tensor(dtype="int32"), tensor(2), tensor(dtype="int32")),
         topi.InvalidShapeError, "sizes differ: 3 in axis 1 of the data, 2 in the scale"),
        (lambda: nn.bitpack(tensor(2, 12, dtype="uint8"), 1, 1, 2, "uint8"), topi.InvalidShapeError, "12 numbers"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_batch_matmul_warns_of_two_types():
    with pytest.warns(UserWarning, match="the operands are int8 and uint8"):
        nn.batch_matmul(tensor(1, 2, 3, dtype="int8"), tensor(1, 2, 3, dtype="uint8"), out_dtype="int32")
