"""CombineParallelConv2D, CombineParallelDense, CombineParallelBatchMatmul: one product for several."""

from __future__ import annotations

import numpy as np

from loopwright import relay
from loopwright.relay.transform import CombineParallelBatchMatmul, CombineParallelConv2D, CombineParallelDense
from tests.relay.pass_check import check, check_unchanged, drawn


def test_convolutions():
    check(
        CombineParallelConv2D(),
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = nn.conv2d(%x, $w, padding=[1, 1]);
          %1 = nn.conv2d(%x, $w1, padding=[1, 1]);
          %2 = nn.conv2d(%x, $w2, padding=[1, 1]);
          (%0, %1, %2)
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = nn.conv2d(%x, $weights, padding=[1, 1]);
          %1 = strided_slice(%0, begin=[0], end=[1], strides=[1], axes=[1]);
          %2 = strided_slice(%0, begin=[1], end=[3], strides=[1], axes=[1]);
          %3 = strided_slice(%0, begin=[3], end=[6], strides=[1], axes=[1]);
          (%1, %2, %3)
        }
        """,
        {
            **drawn(w=(1, 4, 3, 3), w1=(2, 4, 3, 3), w2=(3, 4, 3, 3)),
            "weights": lambda w, w1, w2: np.concatenate([w, w1, w2]),
        },
    )


def test_convolutions_with_what_follows_alike():
    constants = {
        **drawn(w0=(2, 4, 1, 1), w1=(3, 4, 1, 1), w2=(4, 4, 1, 1)),
        **drawn(b0=(2,), b1=(3,), b2=(4,), f0=(2, 1, 1), f1=(3, 1, 1), f2=(4, 1, 1)),
        "weights": lambda w0, w1, w2: np.concatenate([w0, w1, w2]),
        "biases": lambda b0, b1, b2: np.concatenate([b0, b1, b2]),
        "factors": lambda f0, f1, f2: np.concatenate([f0, f1, f2]),
    }
    check(
        CombineParallelConv2D(),
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = nn.relu(multiply(nn.bias_add(nn.conv2d(%x, $w0), $b0), $f0));
          %1 = nn.relu(multiply(nn.bias_add(nn.conv2d(%x, $w1), $b1), $f1));
          %2 = nn.relu(multiply(nn.bias_add(nn.conv2d(%x, $w2), $b2), $f2));
          (%0, %1, %2)
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = nn.relu(multiply(nn.bias_add(nn.conv2d(%x, $weights), $biases), $factors));
          %1 = strided_slice(%0, begin=[0], end=[2], strides=[1], axes=[1]);
          %2 = strided_slice(%0, begin=[2], end=[5], strides=[1], axes=[1]);
          %3 = strided_slice(%0, begin=[5], end=[9], strides=[1], axes=[1]);
          (%1, %2, %3)
        }
        """,
        constants,
    )
    check(
        CombineParallelConv2D(),
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = nn.relu(multiply(nn.bias_add(nn.conv2d(%x, $w0), $b0), $f0));
          %1 = nn.relu(multiply(nn.bias_add(nn.conv2d(%x, $w1), $b1), $f1));
          %2 = exp(multiply(nn.bias_add(nn.conv2d(%x, $w2), $b2), $f2));
          (%0, %1, %2)
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = multiply(nn.bias_add(nn.conv2d(%x, $weights), $biases), $factors);
          %1 = nn.relu(strided_slice(%0, begin=[0], end=[2], strides=[1], axes=[1]));
          %2 = nn.relu(strided_slice(%0, begin=[2], end=[5], strides=[1], axes=[1]));
          %3 = exp(strided_slice(%0, begin=[5], end=[9], strides=[1], axes=[1]));
          (%1, %2, %3)
        }
        """,
        constants,
    )


def test_convolutions_that_differ():
    check_unchanged(
        CombineParallelConv2D(2),
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = nn.conv2d(%x, $w, padding=[1, 1]);
          %1 = nn.conv2d(%x, $w1);
          %2 = nn.conv2d(%x, $w2, strides=[2, 2], padding=[1, 1]);
          %3 = nn.conv2d(%x, $w3, padding=[1, 1], groups=2);
          (%0, %1, %2, %3)
        }
        """,
        drawn(w=(2, 4, 3, 3), w1=(2, 4, 1, 1), w2=(2, 4, 3, 3), w3=(4, 2, 3, 3)),
    )
    check_unchanged(
        CombineParallelConv2D(),
        "fn (%x: Tensor[(1, 4, 6, 6), float32]) { (nn.conv2d(%x, $w), nn.conv2d(%x, $w1)) }",
        drawn(w=(2, 4, 3, 3), w1=(2, 4, 3, 3)),
    )
    check(
        CombineParallelConv2D(2),
        "fn (%x: Tensor[(1, 4, 6, 6), float32]) { (nn.conv2d(%x, $w), nn.conv2d(%x, $w1)) }",
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32]) {
          %0 = nn.conv2d(%x, $weights);
          %1 = strided_slice(%0, begin=[0], end=[2], strides=[1], axes=[1]);
          %2 = strided_slice(%0, begin=[2], end=[4], strides=[1], axes=[1]);
          (%1, %2)
        }
        """,
        {**drawn(w=(2, 4, 3, 3), w1=(2, 4, 3, 3)), "weights": lambda w, w1: np.concatenate([w, w1])},
    )


def test_convolutions_whose_weights_are_inputs():
    check(
        CombineParallelConv2D(),
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32], %w0: Tensor[(2, 4, 1, 1), float32], %w1: Tensor[(2, 4, 1, 1), float32],
            %w2: Tensor[(2, 4, 1, 1), float32]) {
          (nn.conv2d(%x, %w0), nn.conv2d(%x, %w1), nn.conv2d(%x, %w2))
        }
        """,
        """
        fn (%x: Tensor[(1, 4, 6, 6), float32], %w0: Tensor[(2, 4, 1, 1), float32], %w1: Tensor[(2, 4, 1, 1), float32],
            %w2: Tensor[(2, 4, 1, 1), float32]) {
          %0 = nn.conv2d(%x, concatenate((%w0, %w1, %w2)));
          %1 = strided_slice(%0, begin=[0], end=[2], strides=[1], axes=[1]);
          %2 = strided_slice(%0, begin=[2], end=[4], strides=[1], axes=[1]);
          %3 = strided_slice(%0, begin=[4], end=[6], strides=[1], axes=[1]);
          (%1, %2, %3)
        }
        """,
    )


def test_dense_layers():
    check(
        CombineParallelDense(to_batch=False),
        """
        fn (%x: Tensor[(3, 5), float32]) {
          (add(nn.dense(%x, $w), $c), add(nn.dense(%x, $w1), $c1), add(nn.dense(%x, $w2), $c2))
        }
        """,
        """
        fn (%x: Tensor[(3, 5), float32]) {
          %0 = add(nn.dense(%x, $weights), $biases);
          %1 = strided_slice(%0, begin=[0], end=[4], strides=[1], axes=[1]);
          %2 = strided_slice(%0, begin=[4], end=[8], strides=[1], axes=[1]);
          %3 = strided_slice(%0, begin=[8], end=[12], strides=[1], axes=[1]);
          (%1, %2, %3)
        }
        """,
        {
            **drawn(w=(4, 5), c=(4,), w1=(4, 5), c1=(4,), w2=(4, 5), c2=(4,)),
            "weights": lambda w, w1, w2: np.concatenate([w, w1, w2]),
            "biases": lambda c, c1, c2: np.concatenate([c, c1, c2]),
        },
    )
    check(
        CombineParallelDense(to_batch=True),
        """
        fn (%x: Tensor[(3, 5), float32]) {
          (add(nn.dense(%x, $w), $c), add(nn.dense(%x, $w1), $c1), add(nn.dense(%x, $w2), $c2))
        }
        """,
        """
        fn (%x: Tensor[(3, 5), float32]) {
          %0 = nn.batch_matmul(stack((%x, %x, %x)), stack(($w, $w1, $w2)));
          %1 = add(squeeze(strided_slice(%0, begin=[0], end=[1], strides=[1], axes=[0]), axis=[0]), $c);
          %2 = squeeze(strided_slice(%0, begin=[1], end=[2], strides=[1], axes=[0]), axis=[0]);
          %3 = add(%2, $c1);
          %4 = squeeze(strided_slice(%0, begin=[2], end=[3], strides=[1], axes=[0]), axis=[0]);
          %5 = add(%4, $c2);
          (%1, %3, %5)
        }
        """,
        drawn(w=(4, 5), c=(4,), w1=(4, 5), c1=(4,), w2=(4, 5), c2=(4,)),
    )


def test_dense_layers_of_different_widths():
    check(
        CombineParallelDense(to_batch=False),
        "fn (%x: Tensor[(2, 3, 5), float32]) { (nn.dense(%x, $w), nn.dense(%x, $w1), nn.dense(%x, $w2)) }",
        """
        fn (%x: Tensor[(2, 3, 5), float32]) {
          %0 = nn.dense(%x, $weights);
          %1 = strided_slice(%0, begin=[0], end=[1], strides=[1], axes=[2]);
          %2 = strided_slice(%0, begin=[1], end=[3], strides=[1], axes=[2]);
          %3 = strided_slice(%0, begin=[3], end=[6], strides=[1], axes=[2]);
          (%1, %2, %3)
        }
        """,
        {**drawn(w=(1, 5), w1=(2, 5), w2=(3, 5)), "weights": lambda w, w1, w2: np.concatenate([w, w1, w2])},
    )
    check_unchanged(
        CombineParallelDense(),
        "fn (%x: Tensor[(2, 3, 5), float32]) { (nn.dense(%x, $w), nn.dense(%x, $w1), nn.dense(%x, $w2)) }",
        drawn(w=(1, 5), w1=(2, 5), w2=(3, 5)),
    )


def test_a_layer_that_depends_on_another():
    check_unchanged(
        CombineParallelDense(2, to_batch=False),
        "fn (%x: Tensor[(5, 5), float32]) { nn.dense(%x, nn.dense(%x, $w)) }",
        drawn(w=(5, 5)),
    )


def test_products_of_batches():
    check(
        CombineParallelBatchMatmul(),
        """
        fn (%x: Tensor[(2, 3, 5), float32], %y0: Tensor[(2, 1, 5), float32], %y1: Tensor[(2, 2, 5), float32],
            %y2: Tensor[(2, 3, 5), float32]) {
          (nn.batch_matmul(%x, %y0), nn.batch_matmul(%x, %y1), nn.batch_matmul(%x, %y2))
        }
        """,
        """
        fn (%x: Tensor[(2, 3, 5), float32], %y0: Tensor[(2, 1, 5), float32], %y1: Tensor[(2, 2, 5), float32],
            %y2: Tensor[(2, 3, 5), float32]) {
          %0 = nn.batch_matmul(%x, concatenate((%y0, %y1, %y2), axis=1));
          %1 = strided_slice(%0, begin=[0], end=[1], strides=[1], axes=[2]);
          %2 = strided_slice(%0, begin=[1], end=[3], strides=[1], axes=[2]);
          %3 = strided_slice(%0, begin=[3], end=[6], strides=[1], axes=[2]);
          (%1, %2, %3)
        }
        """,
    )


def test_one_call_used_as_two_branches():
    """Branches that meet in one call are not followed through it."""
    check(
        CombineParallelDense(2, to_batch=False),
        "fn (%x: Tensor[(3, 5), float32]) { add(nn.dense(%x, $w), nn.dense(%x, $w1)) }",
        """
        fn (%x: Tensor[(3, 5), float32]) {
          %0 = nn.dense(%x, $weights);
          %1 = strided_slice(%0, begin=[0], end=[5], strides=[1], axes=[1]);
          %2 = strided_slice(%0, begin=[5], end=[10], strides=[1], axes=[1]);
          add(%1, %2)
        }
        """,
        {**drawn(w=(5, 5), w1=(5, 5)), "weights": lambda w, w1: np.concatenate([w, w1])},
    )


def test_batching_is_all_three():
    x, w = relay.var("x", shape=(2, 3)), [relay.var(f"w{k}", shape=(4, 3)) for k in range(3)]
    graph = relay.Tuple([relay.nn.dense(x, one) for one in w])
    with relay.transform.PassContext(opt_level=4):
        mod = relay.transform.BatchingOps()(relay.IRModule.from_expr(graph))
    assert relay.analysis.list_op_freqs(mod)["nn.batch_matmul"] == 1
