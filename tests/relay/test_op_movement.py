"""Graph operators of shape, movement and indexing: types, kernels against references, dynamic forms, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import relay, te
from loopwright.relay.errors import CannotCompile, TypeMismatch
from loopwright.relay.infer_type import infer
from loopwright.relay.interpreter import evaluate
from loopwright.relay.lower.lower_function import lower_function
from loopwright.relay.nested import flat
from loopwright.relay.types import type_text


def values(*shape, dtype="float32"):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def function(build, arrays):
    """A graph function of as many variables as there are arrays, its types inferred."""
    variables = [relay.var(f"x{k}", shape=a.shape, dtype=str(a.dtype)) for k, a in enumerate(arrays)]
    body = build(*variables)
    made = relay.Function(variables, body.astuple() if isinstance(body, relay.TupleWrapper) else body)
    infer(made)
    return made


AT = np.array([[1, 0, 2], [2, 2, 0]], "int64")
X = values(3, 4)

# What is called, on what, and the type of the result.
CALLS = {
    "reshape": (lambda x: relay.reshape(x, (0, -1, 2)), [values(2, 3, 4)], "Tensor[(2, 6, 2), float32]"),
    "reshape -2": (lambda x: relay.reshape(x, (-4, 1, -1, -2)), [values(2, 3, 4)], "Tensor[(1, 2, 3, 4), float32]"),
    "reshape -3": (lambda x: relay.reshape(x, (-3, 0)), [values(2, 3, 4)], "Tensor[(6, 4), float32]"),
    "reshape 0": (lambda x: relay.reshape(x, (3, 0), allowzero=True), [values(0, 5)], "Tensor[(3, 0), float32]"),
    "reshape constant": (lambda x: relay.reshape(x, relay.const([4, 3])), [X], "Tensor[(4, 3), float32]"),
    "reshape int": (lambda x: relay.reshape(x, -1), [X], "Tensor[(12), float32]"),
    "reverse_reshape": (lambda x: relay.reverse_reshape(x, (-1, 0)), [values(10, 5, 4)], "Tensor[(50, 4), float32]"),
    "reverse_reshape -4": (
        lambda x: relay.reverse_reshape(x, (0, -4, 2, -1)),
        [values(3, 4)],
        "Tensor[(3, 2, 2), float32]",
    ),
    "reshape_like": (
        lambda x, y: relay.reshape_like(x, y, lhs_begin=1, rhs_begin=0, rhs_end=2),
        [values(3, 4, 2), values(2, 4, 9)],
        "Tensor[(3, 2, 4), float32]",
    ),
    "expand_dims": (lambda x: relay.expand_dims(x, -1, 2), [X], "Tensor[(3, 4, 1, 1), float32]"),
    "squeeze": (lambda x: relay.squeeze(x), [values(1, 3, 1)], "Tensor[(3), float32]"),
    "squeeze axis": (lambda x: relay.squeeze(x, [-1]), [values(1, 3, 1)], "Tensor[(1, 3), float32]"),
    "transpose": (lambda x: relay.transpose(x, (1, -1, 0)), [values(2, 3, 4)], "Tensor[(3, 4, 2), float32]"),
    "layout_transform": (
        lambda x: relay.layout_transform(x, "NCHW", "NCHW4c"),
        [values(1, 5, 2, 2)],
        "Tensor[(1, 2, 2, 2, 4), float32]",
    ),
    "broadcast_to": (lambda x: relay.broadcast_to(x, (2, 3, 4)), [values(3, 1)], "Tensor[(2, 3, 4), float32]"),
    "broadcast_to_like": (
        lambda x, y: relay.broadcast_to_like(x, y),
        [values(3, 1), values(2, 3, 4, dtype="int8")],
        "Tensor[(2, 3, 4), float32]",
    ),
    "shape_of": (lambda x: relay.shape_of(x, "int64"), [X], "Tensor[(2), int64]"),
    "ndarray_size": (lambda x: relay.ndarray_size(x), [X], "int32"),
    "concatenate": (
        lambda x, y: relay.concatenate([x, y], -1),
        [X, values(3, 2)],
        "Tensor[(3, 6), float32]",
    ),
    "concatenate tuple": (lambda x: relay.concatenate(relay.split(x, 2, axis=1), 0), [X], "Tensor[(6, 2), float32]"),
    "stack": (lambda x, y: relay.stack([x, y], 1), [X, -X], "Tensor[(3, 2, 4), float32]"),
    "split": (
        lambda x: relay.split(x, (1, 3), axis=1),
        [X],
        "(Tensor[(3, 1), float32], Tensor[(3, 2), float32], Tensor[(3, 1), float32])",
    ),
    "tile": (lambda x: relay.tile(x, (2, 1, 2)), [X], "Tensor[(2, 3, 8), float32]"),
    "repeat": (lambda x: relay.repeat(x, repeats=2, axis=-1), [X], "Tensor[(3, 8), float32]"),
    "reverse": (lambda x: relay.reverse(x, axis=1), [X], "Tensor[(3, 4), float32]"),
    "reverse_sequence": (
        lambda x, y: relay.reverse_sequence(x, y),
        [X, np.array([1, 2, 4], "int32")],
        "Tensor[(3, 4), float32]",
    ),
    "meshgrid": (
        lambda x, y: relay.meshgrid([x, y], indexing="xy"),
        [values(3), values(2)],
        "(Tensor[(2, 3), float32], Tensor[(2, 3), float32])",
    ),
    "take": (lambda x, at: relay.take(x, at, axis=0), [X, AT], "Tensor[(2, 3, 4), float32]"),
    "take all": (lambda x, at: relay.take(x, at, mode="wrap"), [X, AT], "Tensor[(2, 3), float32]"),
    "gather": (lambda x, at: relay.gather(x, 0, at), [values(3, 3), AT], "Tensor[(2, 3), float32]"),
    "gather_nd": (lambda x, at: relay.gather_nd(x, at), [X, AT], "Tensor[(3), float32]"),
    "strided_slice": (
        lambda x: relay.strided_slice(x, [1, 0], [9, -1], [1, 2]),
        [X],
        "Tensor[(2, 2), float32]",
    ),
    "strided_slice axes": (
        lambda x: relay.strided_slice(x, relay.const([1]), relay.const([2]), axes=[1], slice_mode="size"),
        [X],
        "Tensor[(3, 2), float32]",
    ),
    "strided_set": (
        lambda x, v: relay.strided_set(x, v, relay.const([0]), relay.const([2]), relay.const([1])),
        [X, -values(2, 4)],
        "Tensor[(3, 4), float32]",
    ),
    "slice_like": (lambda x, y: relay.slice_like(x, y, axes=[1]), [X, values(9, 2)], "Tensor[(3, 2), float32]"),
    "slice_like all": (lambda x, y: relay.slice_like(x, y), [X, values(2, 2)], "Tensor[(2, 2), float32]"),
    "where": (lambda c, x, y: relay.where(c, x, y), [X[:, :1] > 3, X, values(4)], "Tensor[(3, 4), float32]"),
    "scatter_elements": (
        lambda x, at, u: relay.scatter_elements(x, at, u, axis=1, reduction="add"),
        [X, AT, values(2, 3)],
        "Tensor[(3, 4), float32]",
    ),
    "scatter_nd": (
        lambda x, at, u: relay.scatter_nd(x, at, u, mode="add"),
        [X, AT, values(3)],
        "Tensor[(3, 4), float32]",
    ),
    "adv_index": (
        lambda x, p, q: relay.adv_index([x, p, q]),
        [X, np.array([[1], [-1]]), np.array([0, 3, 2])],
        "Tensor[(2, 3), float32]",
    ),
    "sequence_mask": (
        lambda x, y: relay.sequence_mask(x, y, mask_value=-1.0),
        [X, np.array([1, 0, 3, 9], "int32")],
        "Tensor[(3, 4), float32]",
    ),
    "unravel_index": (
        lambda x, y: relay.unravel_index(x, y),
        [np.array([5, 7], "int32"), np.array([3, 4], "int32")],
        "Tensor[(2, 2), int32]",
    ),
    "invert_permutation": (lambda x: relay.invert_permutation(x), [np.array([2, 0, 1])], "Tensor[(3), int64]"),
    "matrix_set_diag": (
        lambda x, d: relay.matrix_set_diag(x, d, k=(-1, 0)),
        [X, -values(2, 3)],
        "Tensor[(3, 4), float32]",
    ),
    "trilu": (lambda x: relay.trilu(x, 1, upper=False), [X], "Tensor[(3, 4), float32]"),
    "one_hot": (
        lambda x: relay.one_hot(x, relay.const(2.0), relay.const(-1.0), 4, 0, "float32"),
        [np.array([3, 1])],
        "Tensor[(4, 2), float32]",
    ),
    "sparse_to_dense": (
        lambda at, v: relay.sparse_to_dense(at, (5,), v, relay.const(3.0)),
        [np.array([4, 0]), -values(2)],
        "Tensor[(5), float32]",
    ),
    "arange": (
        lambda x: relay.arange(relay.const(1), relay.const(8), relay.const(3), dtype="int32"),
        [values(1)],
        "Tensor[(3), int32]",
    ),
    "sliding_window": (
        lambda x: relay.sliding_window(x, axis=0, window_shape=(2, 2), strides=(1, 2)),
        [X],
        "Tensor[(2, 2, 2, 2), float32]",
    ),
    "depth_to_space": (lambda x: relay.nn.depth_to_space(x, 2), [values(1, 4, 2, 1)], "Tensor[(1, 1, 4, 2), float32]"),
    "space_to_depth": (lambda x: relay.nn.space_to_depth(x, 2), [values(1, 1, 2, 4)], "Tensor[(1, 4, 1, 2), float32]"),
    "space_to_batch_nd": (
        lambda x: relay.nn.space_to_batch_nd(x, [2], [[1, 0]]),
        [values(1, 3)],
        "Tensor[(2, 2), float32]",
    ),
    "batch_to_space_nd": (
        lambda x: relay.nn.batch_to_space_nd(x, [2], [[1, 0]]),
        [values(2, 2)],
        "Tensor[(1, 3), float32]",
    ),
    "fifo_buffer": (
        lambda x, b: relay.nn.fifo_buffer(x, b, axis=1),
        [values(3, 1), X],
        "Tensor[(3, 4), float32]",
    ),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", CALLS)
def test_type_kernel_and_reference_agree(case):
    build, arrays, wanted = CALLS[case]
    made = function(build, arrays)
    assert type_text(made.body.checked_type) == wanted
    expected = flat(evaluate(made, arrays))
    lowered = lower_function(made)
    results = [np.zeros(of.concrete_shape, str(of.dtype)) for of in lowered.outputs]
    lw.build(lowered.func, target="llvm")(*arrays, *results)
    for result, exact in zip(results, expected, strict=True):
        assert result.dtype == exact.dtype
        assert np.array_equal(result, exact)


n = te.size_var("n")
ANY = relay.AnyDim()


@pytest.mark.parametrize(
    ("build", "shape", "wanted"),
    [
        (lambda x: relay.reshape(x, (0, 2, -1, 2)), (n, 4, ANY), "Tensor[(n, 2, ?, 2), float32]"),
        (lambda x: relay.reshape(x, (0, -1)), (ANY, 3, 4), "Tensor[(?, 12), float32]"),
        (lambda x: relay.reshape(x, (-1, 4)), (n, 3, 8), "Tensor[(n * 6, 4), float32]"),
        (lambda x: relay.concatenate([x, x], 1), (n, ANY), "Tensor[(n, ?), float32]"),
        (lambda x: relay.split(x, 2, axis=1)[0], (n, 6), "Tensor[(n, 3), float32]"),
        (lambda x: relay.squeeze(x, [1]), (n, ANY), "Tensor[(n), float32]"),
        (lambda x: relay.strided_slice(x, [0, 1], [2**31 - 1, 3]), (n, 6), "Tensor[(n, 2), float32]"),
        (lambda x: relay.strided_slice(x, [0, 1], [2, 3]), (ANY, 6), "Tensor[(?, 2), float32]"),
        (
            lambda x: relay.take(x, relay.var("i", shape=(ANY,), dtype="int32"), axis=1),
            (n, 6),
            "Tensor[(n, ?), float32]",
        ),
        (lambda x: relay.tile(x, (1, 2)), (n, ANY), "Tensor[(n, ?), float32]"),
        (lambda x: relay.where(x < x, x, x), (n, ANY), "Tensor[(n, ?), float32]"),
    ],
)
def test_types_of_sizes_that_are_no_numbers(build, shape, wanted):
    assert type_text(infer(build(relay.var("x", shape=shape)))) == wanted


@pytest.mark.parametrize(
    ("build", "arrays", "wanted"),
    [
        (lambda x, s: relay.reshape(x, s), [X, np.array([-1, 2])], X.reshape(-1, 2)),
        (lambda x, s: relay.broadcast_to(x, s), [X, np.array([2, 3, 4])], np.stack([X, X])),
        (lambda x, s: relay.tile(x, s), [X, np.array([2, 1])], np.tile(X, (2, 1))),
        (lambda x, s: relay.expand_dims(x, s), [X, np.array(1)], X[:, None]),
        (lambda x, s: relay.squeeze(x, s), [X[None], np.array([0])], X),
        (
            lambda x, s: relay.one_hot(x, relay.const(1.0), relay.const(0.0), s, -1, "float32"),
            [np.array([2, 0]), np.array(3)],
            np.eye(3, dtype="float32")[[2, 0]],
        ),
        (
            lambda x, b, e, s: relay.strided_slice(x, b, e, s),
            [X, np.array([-1, 1]), np.array([0, 9]), np.array([-1, 2])],
            X[-1:0:-1, 1:9:2],
        ),
    ],
)
def test_shapes_that_are_expressions(build, arrays, wanted):
    made = function(build, arrays)
    assert made.body.op.name.startswith("dyn.")
    assert "?" in type_text(made.body.checked_type)
    assert np.array_equal(evaluate(made, arrays), wanted)


@pytest.mark.parametrize(
    ("bounds", "mode"),
    [(([-1, 1], [0, 9], [-1, 2]), "end"), (([0, 3], [2, 3], [1, 1]), "end"), (([1, -3], [-1, 2], [1, 1]), "size")],
)
def test_a_dynamic_slice_computes_its_sizes(bounds, mode):
    vectors = [np.array(bound) for bound in bounds]
    attrs = relay.op.get("dyn.strided_slice").attributes(slice_mode=mode)
    data = te.placeholder((3, 4), "float32", "data")
    inputs = [te.placeholder((2,), "int64", name) for name in ("begin", "end", "strides")]
    padded, sizes = attrs.compute(data, *inputs)
    part, found = np.zeros((3, 4), "float32"), np.zeros(2, "int64")
    lw.build([data, *inputs, padded, sizes], target="llvm")(X, *vectors, part, found)
    expected = attrs.reference(X, *vectors)
    assert tuple(found) == expected.shape
    assert np.array_equal(part[tuple(slice(size) for size in found)], expected)


@pytest.mark.parametrize("shape", [(9,), (9, 2), (1, 3), (0, 3), ("n",), ("n", 3)])
@pytest.mark.parametrize(
    ("bounds", "mode"),
    [((0, 4, 1), "end"), ((3, 99, 1), "end"), ((-3, -1, 1), "end"), ((7, 2, 1), "end"), ((8, 0, -3), "end"),
     ((1, 9, 2), "end"), ((2, 3, 1), "size"), ((1, -1, 1), "size"), ((-99, 2**62, 2**62), "end")],
)  # fmt: skip
def test_a_slice_along_the_first_axis_writes_no_other_rows(shape, bounds, mode):
    sizes = [te.size_var(size) if isinstance(size, str) else size for size in shape]
    x = np.arange(np.prod(real := [9 if size == "n" else size for size in shape]), dtype="float32").reshape(real)
    vectors = [np.array([bound]) for bound in bounds]
    attrs = relay.op.get("dyn.strided_slice").attributes(slice_mode=mode)
    data = te.placeholder(sizes, "float32", "data")
    inputs = [te.placeholder((1,), "int64", name) for name in ("begin", "end", "strides")]
    padded, found = attrs.compute(data, *inputs)
    part, count = np.full_like(x, -1), np.zeros(1, "int64")
    lw.build([data, *inputs, padded, found], target="llvm")(x, *vectors, part, count)
    expected = attrs.reference(x, *vectors)
    assert count[0] == len(expected)
    assert np.array_equal(part[: count[0]], expected)
    assert (part[count[0] :] == -1).all()


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda x: relay.reshape(x, (5, -1)), r"shape \(3, 4\) and new shape \(5, -1\)"),
        (lambda x: relay.reshape(x, (5, 5)), "they have 12 and 25 elements"),
        (lambda x: relay.reshape(x, (-1, -1)), r"\(-1, -1\) has 2 times -1"),
        (lambda x: relay.reshape(x, (0, 0, 0)), "0 in .* takes a size, and"),
        (lambda x: relay.reshape(x, (-7,)), "-7 in .* is no code"),
        (lambda x: relay.reshape(x, (-4, 2, 2, 4)), "-4 splits 3 into 2 and 2"),
        (lambda x: relay.squeeze(x, [0]), r"axis 0 of shape \(3, 4\) has size 3, not 1"),
        (lambda x: relay.transpose(x, (0, 0)), "do not name each axis"),
        (lambda x: relay.expand_dims(x, 3), "axis 3 is not one of a tensor of 2 dimensions"),
        (lambda x: relay.concatenate([x, relay.transpose(x)], 0), "they differ in axis 1"),
        (lambda x: relay.concatenate([x, relay.reshape(x, (-1,))], 0), "unable to show the following types match"),
        (lambda x: relay.split(x, 5)[0], "5 sections do not divide axis 0"),
        (lambda x: relay.broadcast_to(x, (3, 5)), "broadcast_to is unable to show the following types match"),
        (lambda x: relay.take(x, x, axis=0), "the indices input1 are float32"),
    ],
)
def test_types_that_do_not_fit(build, words):
    with pytest.raises(TypeMismatch, match=words):
        infer(build(relay.var("x", shape=(3, 4))))


def test_lists_of_nothing_are_refused_at_once():
    for join in (relay.concatenate, relay.stack):
        with pytest.raises(ValueError, match="there are no tensors to join"):
            join([], 0)
    with pytest.raises(ValueError, match="axis is str 'x'"):
        relay.expand_dims(relay.var("x", shape=(3,)), "x")


def test_a_layout_that_stays_is_no_call():
    x = relay.var("x", shape=(1, 2, 3, 4))
    assert relay.layout_transform(x, "NCHW", "NCHW") is x


@pytest.mark.parametrize("count", [4, None])
def test_segment_sum(count):
    ids = np.array([0, 2, 2], "int32")
    made = function(lambda x, y: relay.segment_sum(x, y, count), [X, ids])
    expected = np.zeros((count or 3, 4), "float32")
    np.add.at(expected, ids, X)
    assert np.array_equal(evaluate(made, [X, ids]), expected)


def test_unbounded_results_are_not_compiled():
    made = function(lambda x, s: relay.reshape(x, s), [X, np.array([-1, 2])])
    with pytest.raises(CannotCompile, match=r"dyn.reshape: the shape is known only when the program runs"):
        lower_function(made)


# The gradient of sum(f(x) * g) with respect to x, where f moves elements: g goes back where they came from.
@pytest.mark.parametrize(
    "case",
    [
        "reshape",
        "reshape_like",
        "expand_dims",
        "squeeze",
        "transpose",
        "concatenate",
        "stack",
        "reverse",
        "gather_nd",
        "take",
        "take all",
        "take wrap",
        "strided_slice",
        "strided_slice axes",
        "strided_slice back",
        "where",
        "broadcast_to",
        "broadcast_to_like",
    ],
)
def test_gradients_move_back(case):
    build, arrays, _ = {**CALLS, **MORE}[case]
    made = function(build, arrays)
    call = made.body
    result = evaluate(made, arrays)
    g = np.random.default_rng(0).integers(-9, 10, result.shape).astype("float32")
    grad = relay.var("grad", shape=g.shape)
    back = call.attrs.gradient(call, grad)
    assert len(back) == len(call.args)
    parts = [part for one in back for part in (one.fields if isinstance(one, relay.Tuple) else [one])]
    backward = relay.Function([*made.params, grad], relay.Tuple(parts))
    infer(backward)
    found = evaluate(backward, [*arrays, g])
    for place, x in enumerate(arrays):
        assert found[place].shape == x.shape
        if x.dtype != "float32" or (case.endswith("like") and place == 1):
            assert not found[place].any()
            continue
        # Movement is linear: each element of x contributes what f of that element alone does.
        for at in np.ndindex(*x.shape):
            alone = [np.zeros_like(y) if y.dtype == "float32" else y for y in arrays]
            alone[place][at] = 1
            assert found[place][at] == np.sum(evaluate(made, alone) * g)


MORE = {
    "take wrap": (
        lambda x, at: relay.take(x, at, axis=1, mode="wrap"),
        [X, np.array([[-1, 5], [0, 0]])],
        None,
    ),
    "strided_slice back": (lambda x: relay.strided_slice(x, [-1, 3], [-9, 0], [-1, -2]), [X], None),
}


def test_a_shape_of_too_many_entries_is_refused_before_it_is_written_down():
    x, shape = relay.var("x", shape=(3,)), relay.var("shape", shape=(2**31,), dtype="int64")
    with pytest.raises(TypeMismatch, match="has 2147483648 entries, and a tensor has 64 dimensions at most"):
        infer(relay.reshape(x, shape))
