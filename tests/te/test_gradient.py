"""te.gradient, against differences of the function itself in double precision."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright import te, tir
from loopwright.te.autodiff import NotDifferentiable, WrongGradientArgument, WrongHead

STEP = 1e-6


def value_of(function, arrays, shape):
    out = np.empty(shape)
    function(*arrays, out)
    return out


def sizes(tensor):
    return tuple(int(dim) for dim in tensor.shape)


def check(output, inputs, others=(), low=0.2, high=1.8, given=()):
    """The gradients with a random head are the differences of `sum(head * output)` along each input's elements.

    A central difference of a smooth function with values of order 1 is off by about step² + 1e-16 / step.
    """
    random = np.random.default_rng(0)
    arrays = [random.uniform(low, high, sizes(tensor)) for tensor in inputs] + list(given)
    run = loopwright.build(te.create_prim_func([*inputs, *others, output]))
    head = te.placeholder(output.shape, "float64", name="head")
    head_value = random.uniform(0.5, 1.5, sizes(output))
    for position, tensor in enumerate(inputs):
        (made,) = te.gradient(output, [tensor], head)
        assert sizes(made) == sizes(tensor)
        got = np.empty(sizes(tensor))
        loopwright.build(te.create_prim_func([*inputs, *others, head, made]))(*arrays, head_value, got)
        wanted = np.empty(sizes(tensor))
        for index in np.ndindex(*sizes(tensor)):
            ends = []
            for sign in (1, -1):
                moved = [array.copy() for array in arrays]
                moved[position][index] += sign * STEP
                ends.append(np.sum(head_value * value_of(run, moved, sizes(output))))
            wanted[index] = (ends[0] - ends[1]) / (2 * STEP)
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-7, err_msg=tensor.name)


def placeholder(name, *shape):
    return te.placeholder(shape, "float64", name=name)


UNARY = """exp exp2 exp10 log log2 log10 log1p sqrt rsqrt sigmoid tanh erf sin cos tan sinh cosh atan asinh abs floor
ceil trunc round""".split()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", UNARY)
def test_functions(name):
    a = placeholder("A", 5)
    function = getattr(te, name, None) or getattr(tir, name)
    check(te.compute((5,), lambda i: function(a[i]) * 2.0, name="B"), [a])


@pytest.mark.parametrize("name", ["asin", "acos", "atanh"])
def test_functions_of_small_numbers(name):
    a = placeholder("A", 5)
    check(te.compute((5,), lambda i: getattr(te, name)(a[i]), name="B"), [a], low=-0.8, high=0.8)


def test_acosh():
    a = placeholder("A", 5)
    check(te.compute((5,), lambda i: te.acosh(a[i]), name="B"), [a], low=1.2, high=3)


@pytest.mark.parametrize("function", [te.power, tir.atan2, tir.hypot, lambda x, y: te.min(x, y) + te.max(x, y) * x])
def test_functions_of_two(function):
    a, b = placeholder("A", 4), placeholder("B", 4)
    check(te.compute((4,), lambda i: function(a[i], b[i]), name="C"), [a, b])


def test_quotients_and_choices():
    a, b = placeholder("A", 6), placeholder("B", 6)
    c = te.compute((6,), lambda i: tir.Select(a[i] > b[i], a[i] / b[i], -a[i] * b[i] * b[i]), name="C")
    check(c, [a, b])


def test_a_shared_part_counts_as_often_as_it_is_used():
    a = placeholder("A", 3)

    def body(i):
        x = a[i] + 0.5
        for _ in range(3):
            x = x * x * 0.4 + 0.3
        return x

    check(te.compute((3,), body, name="B"), [a], low=0.2, high=0.6)


def test_matmul_and_a_chain():
    a, b = placeholder("A", 3, 4), placeholder("B", 4, 2)
    k = te.reduce_axis((0, 4), "k")
    c = te.compute((3, 2), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((3, 2), lambda i, j: te.exp(c[i, j]) * c[j, 1], name="D")
    check(c, [a, b])
    check(d, [a, b], high=0.6)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("stride", "dilation", "padding"), [(1, 1, 0), (2, 1, 1), (3, 2, 2), (2, 3, 0)])
def test_convolution(stride, dilation, padding):
    size, kernel = 9, 3
    out = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    a, w = placeholder("A", 2, size), placeholder("W", 2, 2, kernel)
    padded = te.compute(
        (2, size + 2 * padding),
        lambda c, i: tir.if_then_else(
            tir.all(i >= padding, i < size + padding), a[c, i - padding] * a[c, i - padding], 0.0
        ),
        name="P",
    )
    c, k = te.reduce_axis((0, 2), "c"), te.reduce_axis((0, kernel), "k")
    made = te.compute(
        (2, out), lambda o, i: te.sum(padded[c, i * stride + k * dilation] * w[o, c, k], axis=[c, k]), name="C"
    )
    check(made, [a, w])


def test_the_sum_of_a_strided_convolution_runs_over_the_kernel():
    """Not over all outputs: the equation gives away the axis with the most iterations."""
    a, w = placeholder("A", 33), placeholder("W", 3)
    k = te.reduce_axis((0, 3), "k")
    c = te.compute((16,), lambda i: te.sum(a[i * 2 + k] * w[k], axis=k), name="C")
    (made,) = te.gradient(c, [a], placeholder("H", 16))
    assert [int(axis.dom.extent) for axis in made.op.reduce_axis] == [3]


def test_rearrangements():
    a = placeholder("A", 4, 6)
    check(te.compute((24,), lambda i: a[i // 6, i % 6] * 3.0, name="B"), [a])
    check(te.compute((6, 4), lambda i, j: a[j, i] * a[3 - j, 5 - i], name="B"), [a])
    check(te.compute((3, 2, 4), lambda i, j, k: a[k, i * 2 + j], name="B"), [a])
    check(te.compute((4, 6), lambda i, j: a[i, (j + 1) % 6], name="B"), [a])


def test_broadcast_and_concatenation():
    a, b = placeholder("A", 3), placeholder("B", 4)
    check(te.compute((5, 3), lambda i, j: a[j] * a[j], name="C"), [a])
    check(te.compute((7,), lambda i: tir.if_then_else(i < 3, a[i], b[i - 3] * 2.0), name="C"), [a, b])


def test_gather():
    a, index = placeholder("A", 5), te.placeholder((7,), "int32", name="I")
    c = te.compute((7,), lambda i: a[index[i]] * a[index[i]], name="C")
    check(c, [a], [index], given=[np.array([0, 3, 3, 1, 4, 3, 0], np.int32)])


def test_a_part_of_a_sum():
    a = placeholder("A", 3, 8)
    k = te.reduce_axis((1, 7), "k")
    check(te.compute((3,), lambda i: te.sum(a[i, k] * a[i, k - 1], axis=k, where=k % 2 == 1), name="B"), [a])


product_of = te.comm_reducer(lambda x, y: x * y, lambda dtype: tir.const(1, dtype), name="product")


def test_reductions_that_are_no_sums():
    a = placeholder("A", 3, 5)
    k = te.reduce_axis((0, 5), "k")
    check(te.compute((3,), lambda i: te.max(a[i, k] * a[i, k], axis=k), name="M"), [a])
    check(te.compute((3,), lambda i: te.min(a[i, 4 - k], axis=k), name="M"), [a])
    check(te.compute((3,), lambda i: product_of(a[i, k] + 0.5, axis=k), name="M"), [a])
    r = te.reduce_axis((0, 3), "r")
    check(te.compute((4,), lambda i: te.max(a[r, i + 1] + a[r, i], axis=r), name="M"), [a])


def test_max_pooling_with_overlap():
    a = placeholder("A", 9)
    k = te.reduce_axis((0, 3), "k")
    check(te.compute((4,), lambda i: te.max(a[i * 2 + k], axis=k), name="P"), [a])


def test_the_value_beside_an_argmax():
    a = placeholder("A", 3, 6)
    k = te.reduce_axis((0, 6), "k")
    argmax = te.comm_reducer(
        lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
        lambda index, value: (tir.const(-1, index), tir.min_value(value)),
        name="argmax",
    )
    _, values = te.compute((3,), lambda i: argmax((k, a[i, k] * a[i, k]), axis=k), name="V")
    check(te.compute((3,), lambda i: values[i] * 2.0, name="W"), [a])


def test_softmax():
    a = placeholder("A", 3, 4)
    k, r = te.reduce_axis((0, 4), "k"), te.reduce_axis((0, 4), "r")
    top = te.compute((3,), lambda i: te.max(a[i, k], axis=k), name="top")
    power = te.compute((3, 4), lambda i, j: te.exp(a[i, j] - top[i]), name="power")
    total = te.compute((3,), lambda i: te.sum(power[i, r], axis=r), name="total")
    check(te.compute((3, 4), lambda i, j: power[i, j] / total[i], name="softmax"), [a])


def test_several_outputs():
    a = placeholder("A", 4)
    b, c = te.compute((4,), lambda i: (a[i] * a[i], te.exp(a[i])), name="BC")
    check(te.compute((4,), lambda i: b[i] * c[3 - i], name="D"), [a])


def test_without_a_head_it_is_the_jacobian():
    a = placeholder("A", 3)
    b = te.compute((2,), lambda i: a[i] * a[i + 1], name="B")
    (made,) = te.gradient(b, [a])
    assert sizes(made) == (2, 3)
    values, got = np.array([2.0, 3.0, 5.0]), np.empty((2, 3))
    loopwright.build(te.create_prim_func([a, made]))(values, got)
    np.testing.assert_array_equal(got, [[3, 2, 0], [0, 5, 3]])


def test_the_jacobian_of_a_maximum():
    a = placeholder("A", 2, 3)
    k = te.reduce_axis((0, 3), "k")
    b = te.compute((2,), lambda i: te.max(a[i, k], axis=k), name="B")
    (made,) = te.gradient(b, [a])
    values, got = np.array([[1.0, 5.0, 2.0], [7.0, 0.0, 3.0]]), np.empty((2, 2, 3))
    loopwright.build(te.create_prim_func([a, made]))(values, got)
    np.testing.assert_array_equal(got, [[[0, 1, 0], [0, 0, 0]], [[0, 0, 0], [1, 0, 0]]])


def test_by_the_output_itself():
    a = placeholder("A", 2)
    b = te.compute((2,), lambda i: a[i] + 1.0, name="B")
    (made,) = te.gradient(b, [b])
    got = np.empty((2, 2))
    loopwright.build(te.create_prim_func([made]))(got)
    np.testing.assert_array_equal(got, np.eye(2))


def test_dimensions_of_the_heads_own_come_first():
    a, head = placeholder("A", 3), placeholder("H", 2, 4, 3)
    b = te.compute((3,), lambda i: a[i] * a[i], name="B")
    (made,) = te.gradient(b, [a], head)
    assert sizes(made) == (2, 4, 3)
    values, heads, got = np.arange(1.0, 4), np.random.default_rng(0).random((2, 4, 3)), np.empty((2, 4, 3))
    loopwright.build(te.create_prim_func([a, head, made]))(values, heads, got)
    np.testing.assert_allclose(got, heads * 2 * values, rtol=1e-15)


def test_an_input_that_does_not_matter_gets_zeros():
    a, b = placeholder("A", 3), placeholder("B", 2)
    made = te.gradient(te.compute((3,), lambda i: a[i] * 2.0, name="C"), b)[0]
    got = np.full((3, 2), 7.0)
    loopwright.build(te.create_prim_func([made]))(got)
    assert not got.any()


def test_rank_zero_and_empty():
    a, k = placeholder("A", 5), te.reduce_axis((0, 5), "k")
    check(te.compute((), lambda: te.sum(a[k] * a[k], axis=k), name="S"), [a])
    b = placeholder("B", 0)
    check(te.compute((0,), lambda i: b[i] * b[i], name="C"), [b])


def test_sizes_that_are_not_known():
    n = te.var("n")
    a = te.placeholder((n, n), "float64", name="A")
    k = te.reduce_axis((0, n), "k")
    b = te.compute((n,), lambda i: te.sum(a[i, k] * a[k, i], axis=k), name="B")
    head = te.placeholder((n,), "float64", name="H")
    (made,) = te.gradient(b, [a], head)
    run = loopwright.build(te.create_prim_func([a, head, made]))
    for size in (1, 2, 5):
        values, heads = np.random.default_rng(1).random((size, size)), np.random.default_rng(2).random(size)
        got = np.empty((size, size))
        run(values, heads, got)
        np.testing.assert_allclose(got, heads[:, None] * values.T + heads[None, :] * values.T, rtol=1e-14)


def test_float32_and_casts():
    a = te.placeholder((4,), "float32", name="A")
    b = te.compute((4,), lambda i: te.exp(a[i].astype("float64")) * 2.0, name="B")
    head = placeholder("H", 4)
    (made,) = te.gradient(b, [a], head)
    assert made.dtype == "float32"
    values, got = np.linspace(0, 1, 4, dtype=np.float32), np.empty(4, np.float32)
    loopwright.build(te.create_prim_func([a, head, made]))(values, np.ones(4), got)
    np.testing.assert_allclose(got, 2 * np.exp(values.astype(np.float64)), rtol=3e-7)


def test_what_has_no_derivative_is_named():
    a = placeholder("A", 4)
    b = te.compute((4,), lambda i: te.fmod(a[i], 2.0), name="B")
    with pytest.raises(NotDifferentiable, match=r"no derivative of .*fmod"):
        te.gradient(b, [a])
    k = te.reduce_axis((0, 4), "k")
    c = te.compute((1,), lambda i: te.sum(a[k], axis=k, init=1.0), name="C")
    with pytest.raises(NotDifferentiable, match="reduction C has a start value of its own"):
        te.gradient(c, [a])


def test_bad_arguments():
    a, b = placeholder("A", 4, 3), te.placeholder((4,), "int32", name="B")
    c = te.compute((4, 3), lambda i, j: a[i, j] * 2.0, name="C")
    with pytest.raises(
        WrongHead, match=r"head H has shape \(3, 4\) and type float64, the output C \(4, 3\)"
    ):
        te.gradient(c, [a], placeholder("H", 3, 4))
    with pytest.raises(WrongHead, match="type float32"):
        te.gradient(c, [a], te.placeholder((4, 3), "float32", name="H"))
    with pytest.raises(
        WrongGradientArgument, match=r"input 0 is Tensor.B.*int32.*not a tensor of floating-point"
    ):
        te.gradient(c, [b])
    with pytest.raises(WrongGradientArgument, match="the output is int 3"):
        te.gradient(3, [a])
