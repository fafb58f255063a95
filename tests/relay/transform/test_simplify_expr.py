"""SimplifyExpr: each rule on a graph, and on numbers."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay
from loopwright.relay.transform import SimplifyExpr, SimplifyExprPostAlterOp
from tests.relay.pass_check import check, check_unchanged, within
from tests.relay.transform.graphs import apply

SIMPLIFY = SimplifyExpr()


# Movement


def test_reshapes_become_one():
    check(
        SIMPLIFY,
        """
        fn (%x: Tensor[(2, 3, 4), float32]) {
          %0 = squeeze(expand_dims(reshape(%x, newshape=[6, 4]), axis=0), axis=[0]);
          reshape(%0, newshape=[4, -1])
        }
        """,
        "fn (%x: Tensor[(2, 3, 4), float32]) { reshape(%x, newshape=[4, 6]) }",
    )


def test_a_reshape_to_its_own_shape_goes():
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(2, 3, 4), float32]) { exp(reshape(%x, newshape=[2, 3, 4])) }",
        "fn (%x: Tensor[(2, 3, 4), float32]) { exp(%x) }",
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(2, 3, 4), float32]) { reshape(reshape(%x, newshape=[24]), newshape=[2, 3, 4]) }",
        "fn (%x: Tensor[(2, 3, 4), float32]) { %x }",
    )


def test_reshapes_with_a_size_variable():
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(n: int64, 12), float32]) { reshape(reshape(%x, newshape=[0, 3, 4]), newshape=[0, 12]) }",
        "fn (%x: Tensor[(n: int64, 12), float32]) { %x }",
    )


def test_reshapes_that_say_more_of_open_sizes_than_one_stay():
    # n is 2, also where m is 0
    check_unchanged(
        SIMPLIFY,
        "fn (%x: Tensor[(n, m), float32]) { reshape(expand_dims(%x, axis=1), newshape=[2, 0, 0]) }",
    )
    check_unchanged(
        SIMPLIFY,
        "fn (%x: Tensor[(n, m), float32]) { reshape(reshape(%x, newshape=[2, 0]), newshape=[n, m]) }",
    )
    check_unchanged(SIMPLIFY, "fn (%x: Tensor[(n, m), float32]) { expand_dims(squeeze(%x, axis=[0]), axis=0) }")
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(n, m), float32]) { expand_dims(expand_dims(%x, axis=1), axis=0) }",
        "fn (%x: Tensor[(n, m), float32]) { reshape(%x, newshape=[1, n, 1, m]) }",
    )


def test_an_empty_tensor_keeps_its_reshapes():
    check_unchanged(
        SIMPLIFY,
        """
        fn (%x: Tensor[(0, 3), float32]) {
          reshape(reshape(%x, newshape=[3, 0], allowzero=True), newshape=[-1, 0], allowzero=True)
        }
        """,
    )


def test_transposes_become_one():
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(2, 3, 4, 5), float32]) { transpose(transpose(%x, axes=[0, 2, 3, 1]), axes=[0, 3, 1, 2]) }",
        "fn (%x: Tensor[(2, 3, 4, 5), float32]) { %x }",
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(2, 3, 4, 5), float32]) { transpose(transpose(%x, axes=[3, 1, 0, 2]), axes=[0, 3, 1, 2]) }",
        "fn (%x: Tensor[(2, 3, 4, 5), float32]) { transpose(%x, axes=[3, 2, 1, 0]) }",
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(2, 3, 4, 5), float32]) { transpose(transpose(%x, axes=[1, 0, 3, 2]), axes=[0, 3, 1, 2]) }",
        "fn (%x: Tensor[(2, 3, 4, 5), float32]) { transpose(%x, axes=[1, 2, 0, 3]) }",
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(2, 3, 4, 5), float32]) { transpose(transpose(%x, axes=[0, 2, 3, 1]), axes=[2, 3, 0, 1]) }",
        "fn (%x: Tensor[(2, 3, 4, 5), float32]) { transpose(%x, axes=[3, 1, 0, 2]) }",
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(2, 3, 4, 5), float32]) { transpose(transpose(%x, axes=[3, 1, 0, 2]), axes=[2, 3, 0, 1]) }",
        "fn (%x: Tensor[(2, 3, 4, 5), float32]) { transpose(%x, axes=[0, 2, 3, 1]) }",
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(2, 3, 4, 5), float32]) { transpose(transpose(%x, axes=[1, 0, 3, 2]), axes=[2, 3, 0, 1]) }",
        "fn (%x: Tensor[(2, 3, 4, 5), float32]) { transpose(%x, axes=[3, 2, 1, 0]) }",
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(2, 3, 4, 5), float32]) { transpose(transpose(%x, axes=[0, 2, 3, 1])) }",
        "fn (%x: Tensor[(2, 3, 4, 5), float32]) { transpose(%x, axes=[1, 3, 2, 0]) }",
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(2, 3, 4, 5), float32]) { transpose(transpose(%x, axes=[3, 1, 0, 2])) }",
        "fn (%x: Tensor[(2, 3, 4, 5), float32]) { transpose(%x, axes=[2, 0, 1, 3]) }",
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(2, 3, 4, 5), float32]) { transpose(transpose(%x, axes=[1, 0, 3, 2])) }",
        "fn (%x: Tensor[(2, 3, 4, 5), float32]) { transpose(%x, axes=[2, 3, 0, 1]) }",
    )


def test_transposes_and_layouts_become_one():
    check(
        SIMPLIFY,
        """
        fn (%x: Tensor[(1, 3, 4, 5), float32]) {
          exp(transpose(layout_transform(%x, src_layout="NCHW", dst_layout="NHWC"), axes=[0, 3, 1, 2]))
        }
        """,
        "fn (%x: Tensor[(1, 3, 4, 5), float32]) { exp(%x) }",
    )


def test_a_transpose_of_ones_is_a_reshape():
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(1, 3, 1, 4), float32]) { transpose(%x, axes=[1, 0, 3, 2]) }",
        "fn (%x: Tensor[(1, 3, 1, 4), float32]) { reshape(%x, newshape=[3, 1, 4, 1]) }",
    )


def test_layouts_there_and_back():
    check(
        SIMPLIFY,
        """
        fn (%x: Tensor[(1, 8, 2, 2), float32]) {
          %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NCHW4c");
          layout_transform(%0, src_layout="NCHW4c", dst_layout="NCHW")
        }
        """,
        "fn (%x: Tensor[(1, 8, 2, 2), float32]) { %x }",
    )
    check(
        SimplifyExprPostAlterOp(),
        """
        fn (%x: Tensor[(1, 8, 2, 2), float32]) {
          %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NCHW4c");
          layout_transform(%0, src_layout="NCHW4c", dst_layout="NCHW8c")
        }
        """,
        'fn (%x: Tensor[(1, 8, 2, 2), float32]) { layout_transform(%x, src_layout="NCHW", dst_layout="NCHW8c") }',
    )


def test_slices_and_joins_of_everything():
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(4, 5), float32]) { strided_slice(%x, begin=[0, 0], end=[4, 5]) }",
        "fn (%x: Tensor[(4, 5), float32]) { %x }",
    )
    check_unchanged(
        SIMPLIFY,
        "fn (%x: Tensor[(4, 5), float32]) { strided_slice(%x, begin=[3, 0], end=[-5, 5], strides=[-1, 1]) }",
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(4, 5), float32]) { concatenate((%x,)) }",
        "fn (%x: Tensor[(4, 5), float32]) { %x }",
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(4, 5), float32]) { broadcast_to(%x, shape=[4, 5]) }",
        "fn (%x: Tensor[(4, 5), float32]) { %x }",
    )
    check_unchanged(SIMPLIFY, "fn (%x: Tensor[(4, 5), float32]) { broadcast_to(%x, shape=[2, 4, 5]) }")


# Likeness


def test_likeness_is_said():
    check(
        SIMPLIFY,
        "fn (%y: Tensor[(3, 4), int32]) { (zeros_like(%y), %y) }",
        'fn (%y: Tensor[(3, 4), int32]) { (zeros(shape=[3, 4], dtype="int32"), %y) }',
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(3, 1), float32]) { (ones_like(%x), %x) }",
        'fn (%x: Tensor[(3, 1), float32]) { (ones(shape=[3, 1], dtype="float32"), %x) }',
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(3, 1), float32]) { (full_like(%x, 0.5f), %x) }",
        'fn (%x: Tensor[(3, 1), float32]) { (full(0.5f, shape=[3, 1], dtype="float32"), %x) }',
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(3, 1), float32], %y: Tensor[(3, 4), int32]) { (cast_like(%x, %y), %y) }",
        'fn (%x: Tensor[(3, 1), float32], %y: Tensor[(3, 4), int32]) { (cast(%x, dtype="int32"), %y) }',
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(3, 1), float32], %y: Tensor[(3, 4), int32]) { (broadcast_to_like(%x, %y), %y) }",
        "fn (%x: Tensor[(3, 1), float32], %y: Tensor[(3, 4), int32]) { (broadcast_to(%x, shape=[3, 4]), %y) }",
    )


def test_likeness_of_shapes_and_sums():
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(3, 4), float32], %y: Tensor[(12), float32]) { (reshape_like(%x, %y), %y) }",
        "fn (%x: Tensor[(3, 4), float32], %y: Tensor[(12), float32]) { (reshape(%x, newshape=[12]), %y) }",
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(3, 4), float32], %z: Tensor[(4), float32]) { (collapse_sum_like(%x, %z), %z) }",
        "fn (%x: Tensor[(3, 4), float32], %z: Tensor[(4), float32]) { (collapse_sum_to(%x, shape=[4]), %z) }",
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(3, 4), float32], %w: Tensor[(2, 3), float32]) { (slice_like(%x, %w), %w) }",
        """
        fn (%x: Tensor[(3, 4), float32], %w: Tensor[(2, 3), float32]) {
          (strided_slice(%x, begin=[0, 0], end=[2, 3], strides=[1, 1]), %w)
        }
        """,
    )


def test_unknown_sizes_stay_alike():
    check_unchanged(SIMPLIFY, "fn (%x: Tensor[(?, 4), float32]) { zeros_like(%x) }")


# Arithmetic


@pytest.mark.parametrize(("dtype", "suffix"), [("float32", "f"), ("int32", ""), ("float16", "f16")])
@pytest.mark.parametrize(
    "neutral",
    [
        "add(%x, 0{suffix})",
        "add(0{suffix}, %x)",
        "subtract(%x, 0{suffix})",
        "multiply(%x, 1{suffix})",
        "multiply(1{suffix}, %x)",
        "divide(%x, 1{suffix})",
        'add(%x, zeros(shape=[3, 4], dtype="{dtype}"))',
    ],
)
def test_numbers_that_change_nothing(neutral: str, dtype: str, suffix: str):
    params = f"%x: Tensor[(3, 4), {dtype}]"
    check(SIMPLIFY, f"fn ({params}) {{ {neutral.format(dtype=dtype, suffix=suffix)} }}", f"fn ({params}) {{ %x }}")


def test_a_number_that_widens_stays():
    check_unchanged(
        SIMPLIFY, "fn (%x: Tensor[(1, 4), float32]) { add(%x, $zeros) }", {"zeros": np.zeros((3, 4), "float32")}
    )
    check_unchanged(SIMPLIFY, "fn (%x: Tensor[(1, 4), float32]) { subtract(0f, %x) }")


def test_a_tensor_of_one_number_is_that_number():
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(3, 4), float32]) { multiply(%x, full(3f, shape=[3, 4])) }",
        "fn (%x: Tensor[(3, 4), float32]) { multiply(%x, 3f) }",
    )
    check(
        SIMPLIFY,
        'fn (%x: Tensor[(3, 4), float32]) { maximum(%x, zeros(shape=[4], dtype="float32")) }',
        "fn (%x: Tensor[(3, 4), float32]) { maximum(%x, 0f) }",
    )


def test_constants_meet():
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(3, 4), float32]) { add(add(%x, 2f), 3f) }",
        "fn (%x: Tensor[(3, 4), float32]) { add(%x, 5f) }",
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(3, 4), float32]) { multiply(3f, multiply(2f, %x)) }",
        "fn (%x: Tensor[(3, 4), float32]) { multiply(%x, 6f) }",
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(3, 4), float32]) { multiply(add(%x, 2f), 3f) }",
        "fn (%x: Tensor[(3, 4), float32]) { add(multiply(%x, 3f), 6f) }",
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(3, 4), float32]) { add(add(%x, $c), 2f) }",
        "fn (%x: Tensor[(3, 4), float32]) { add(%x, $sum) }",
        {"c": np.array([0.0, 1.0, 2.0, 3.0], "float32"), "sum": np.array([2.0, 3.0, 4.0, 5.0], "float32")},
    )


def test_constants_that_would_overflow_or_grow_stay_apart():
    check_unchanged(SIMPLIFY, "fn (%x: Tensor[(3, 4), float32]) { multiply(multiply(%x, 3e+38f), 3e+38f) }")
    check_unchanged(
        SIMPLIFY,
        "fn (%x: Tensor[(3, 4), float32]) { add(add(%x, $w), $c) }",
        {"w": np.array([[2.0, 2.0, 2.0, 2.0]], "float32"), "c": np.array([[3.0], [3.0], [3.0]], "float32")},
    )


def test_twice_and_binomials():
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(3), float32]) { add(%x, %x) }",
        "fn (%x: Tensor[(3), float32]) { multiply(%x, 2f) }",
    )
    check(
        SIMPLIFY,
        """
        fn (%x: Tensor[(3), float32], %y: Tensor[(3), float32]) {
          add(add(multiply(%x, %x), multiply(2f, multiply(%x, %y))), multiply(%y, %y))
        }
        """,
        """
        fn (%x: Tensor[(3), float32], %y: Tensor[(3), float32]) {
          %0 = add(%x, %y);
          multiply(%0, %0)
        }
        """,
    )
    check(
        SIMPLIFY,
        """
        fn (%x: Tensor[(3), float32], %y: Tensor[(3), float32]) {
          add(multiply(%x, %x), add(multiply(%y, %y), multiply(multiply(%x, %y), 2f)))
        }
        """,
        """
        fn (%x: Tensor[(3), float32], %y: Tensor[(3), float32]) {
          %0 = add(%x, %y);
          multiply(%0, %0)
        }
        """,
    )
    check(
        SIMPLIFY,
        """
        fn (%x: Tensor[(3), float32], %y: Tensor[(3), float32]) {
          add(multiply(multiply(2f, %x), %y), add(multiply(%x, %x), multiply(%y, %y)))
        }
        """,
        """
        fn (%x: Tensor[(3), float32], %y: Tensor[(3), float32]) {
          %0 = add(%x, %y);
          multiply(%0, %0)
        }
        """,
    )
    check_unchanged(
        SIMPLIFY,
        """
        fn (%x: Tensor[(3), float32], %y: Tensor[(3), float32]) {
          add(add(multiply(%x, %x), multiply(3f, multiply(%x, %y))), multiply(%y, %y))
        }
        """,
    )


def test_one_over_a_root():
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(3), float64]) { divide(1f64, sqrt(exp(%x))) }",
        "fn (%x: Tensor[(3), float64]) { rsqrt(exp(%x)) }",
        compare=within(roundings=8, of=np.exp(2)),  # exp(x / 2) for x from -4 to 4, and 4 roundings on each side
    )
    check(
        SIMPLIFY,
        "fn (%y: Tensor[(3), float64], %x: Tensor[(3), float64]) { divide(%y, sqrt(exp(%x))) }",
        "fn (%y: Tensor[(3), float64], %x: Tensor[(3), float64]) { multiply(%y, rsqrt(exp(%x))) }",
        compare=within(roundings=8, of=4 * np.exp(2)),
    )


# Single elements


@pytest.mark.parametrize("op", ["sum", "max", "min", "prod", "mean"])
def test_a_reduction_of_one_element_moves_nothing(op: str):
    check(
        SIMPLIFY,
        f"fn (%x: Tensor[(2, 1, 4, 1), float32]) {{ exp({op}(%x, axis=[1, -1])) }}",
        "fn (%x: Tensor[(2, 1, 4, 1), float32]) { exp(squeeze(%x, axis=[1, 3])) }",
    )
    check(
        SIMPLIFY,
        f"fn (%x: Tensor[(2, 1, 4), float32]) {{ {op}(%x, axis=[1], keepdims=1) }}",
        "fn (%x: Tensor[(2, 1, 4), float32]) { %x }",
    )
    check_unchanged(SIMPLIFY, f"fn (%x: Tensor[(2, 1, 4), float32]) {{ {op}(%x, axis=[0, 1], keepdims=1) }}")


def test_a_reduction_along_an_open_size_stays():
    check_unchanged(SIMPLIFY, "fn (%x: Tensor[(n, 4), float32]) { sum(%x, axis=[0], keepdims=1) }")


def test_the_norm_of_one_element_is_its_absolute_value():
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(2, 1, 4), float32]) { sqrt(sum(multiply(%x, %x), axis=[1], keepdims=1)) }",
        "fn (%x: Tensor[(2, 1, 4), float32]) { abs(%x) }",
    )
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(2, 1, 4), float32]) { sqrt(sum(multiply(%x, %x), axis=[1])) }",
        "fn (%x: Tensor[(2, 1, 4), float32]) { squeeze(abs(%x), axis=[1]) }",
    )
    check_unchanged(
        SIMPLIFY,
        "fn (%x: Tensor[(2, 4), float32], %y: Tensor[(2, 4), float32]) { sqrt(abs(multiply(%x, %y))) }",
    )


# Conversions and limits


def test_casts():
    check(SIMPLIFY, 'fn (%x: Tensor[(3, 4), int8]) { cast(%x, dtype="int8") }', "fn (%x: Tensor[(3, 4), int8]) { %x }")
    check(
        SIMPLIFY,
        'fn (%x: Tensor[(3, 4), int8]) { cast(cast(%x, dtype="int32"), dtype="float32") }',
        'fn (%x: Tensor[(3, 4), int8]) { cast(%x, dtype="float32") }',
    )
    check(
        SIMPLIFY,
        'fn (%x: Tensor[(3, 4), int8]) { cast(cast(%x, dtype="float16"), dtype="int8") }',
        "fn (%x: Tensor[(3, 4), int8]) { %x }",
    )
    check_unchanged(SIMPLIFY, 'fn (%x: Tensor[(3, 4), int8]) { cast(cast(%x, dtype="uint8"), dtype="int32") }')
    check_unchanged(SIMPLIFY, 'fn (%y: Tensor[(3), int32]) { cast(cast(%y, dtype="float32"), dtype="int64") }')
    check_unchanged(SIMPLIFY, 'fn (%x: Tensor[(3), float32]) { cast(cast(%x, dtype="float16"), dtype="float32") }')


def test_clips():
    check(
        SIMPLIFY,
        "fn (%x: Tensor[(3), float32]) { clip(clip(%x, a_min=0.0f, a_max=6.0f), a_min=1.0f, a_max=9.0f) }",
        "fn (%x: Tensor[(3), float32]) { clip(%x, a_min=1.0f, a_max=6.0f) }",
    )
    check_unchanged(
        SIMPLIFY,
        "fn (%x: Tensor[(3), float32]) { clip(clip(%x, a_min=0.0f, a_max=1.0f), a_min=2.0f, a_max=3.0f) }",
    )
    check(
        SIMPLIFY,
        "fn (%y: Tensor[(3), uint8]) { clip(%y, a_min=0, a_max=255) }",
        "fn (%y: Tensor[(3), uint8]) { %y }",
    )
    check_unchanged(SIMPLIFY, "fn (%y: Tensor[(3), uint8]) { clip(%y, a_min=0, a_max=254) }")


def test_the_order_of_stored_numbers():
    check(
        SIMPLIFY,
        "fn (%q: Tensor[(3, 4), int8]) { argmax(qnn.dequantize(%q, 0.5f, 3), axis=1) }",
        "fn (%q: Tensor[(3, 4), int8]) { argmax(%q, axis=1) }",
    )
    check_unchanged(
        SIMPLIFY,
        "fn (%q: Tensor[(3, 4), int8]) { argmax(qnn.dequantize(%q, $c, 3), axis=1) }",
        {"c": np.array([1.0, 2.0, 3.0, 4.0], "float32")},
    )


def test_rules_apply_to_what_rules_made():
    check(
        SIMPLIFY,
        """
        fn (%x: Tensor[(2, 6), float32]) {
          %0 = multiply(add(reshape(%x, newshape=[3, 4]), 0f), ones(shape=[3, 4], dtype="float32"));
          reshape(%0, newshape=[2, 6])
        }
        """,
        "fn (%x: Tensor[(2, 6), float32]) { %x }",
    )


def test_long_chains():
    body = x = relay.var("x", shape=(2, 3))
    for k in range(3000):
        body = relay.reshape(body, (3, 2) if k % 2 == 0 else (2, 3))
    assert apply(SIMPLIFY, relay.Function([x], body)).body is x
