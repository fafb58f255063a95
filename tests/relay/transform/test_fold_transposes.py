"""FoldTransposes: products read transposed operands as they lie."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import IRModule, relay
from loopwright.relay.transform import FoldTransposes
from tests.relay.pass_check import check, check_unchanged


def test_a_dense_of_a_transposed_weight_is_a_matmul():
    check(
        FoldTransposes(),
        """
        fn (%x: Tensor[(3, 4), float32], %w: Tensor[(4, 5), float32]) { nn.dense(%x, transpose(%w, axes=[1, 0])) }
        """,
        "fn (%x: Tensor[(3, 4), float32], %w: Tensor[(4, 5), float32]) { nn.matmul(%x, %w) }",
    )


def test_both_operands():
    check(
        FoldTransposes(),
        """
        fn (%x: Tensor[(4, 3), float64], %w: Tensor[(4, 5), float64]) {
          nn.dense(transpose(%x), transpose(%w, axes=[-1, 0]))
        }
        """,
        "fn (%x: Tensor[(4, 3), float64], %w: Tensor[(4, 5), float64]) { nn.matmul(%x, %w, transpose_a=True) }",
    )


def test_a_transpose_of_a_transposed_operand_is_none():
    check(
        FoldTransposes(),
        """
        fn (%x: Tensor[(3, 4), float32], %w: Tensor[(5, 4), float32]) {
          nn.matmul(transpose(%x, axes=[1, 0]), transpose(%w, axes=[1, 0]), transpose_a=True)
        }
        """,
        "fn (%x: Tensor[(3, 4), float32], %w: Tensor[(5, 4), float32]) { nn.dense(%x, %w) }",
    )


def test_few_rows_are_copied_for_dot_products():
    check_unchanged(
        FoldTransposes(),
        """
        fn (%x: Tensor[(4, 3), float32], %w: Tensor[(5, 4), float32]) { nn.dense(transpose(%x, axes=[1, 0]), %w) }
        """,
    )
    check(
        FoldTransposes(),
        """
        fn (%x: Tensor[(4, 30), float32], %w: Tensor[(5, 4), float32]) { nn.dense(transpose(%x, axes=[1, 0]), %w) }
        """,
        """
        fn (%x: Tensor[(4, 30), float32], %w: Tensor[(5, 4), float32]) {
          nn.matmul(%x, %w, transpose_a=True, transpose_b=True)
        }
        """,
    )


def test_batches():
    check(
        FoldTransposes(),
        """
        fn (%x: Tensor[(2, 4, 3), float32], %y: Tensor[(2, 4, 5), float32]) {
          nn.batch_matmul(transpose(%x, axes=[0, 2, 1]), transpose(%y, axes=[0, 2, 1]))
        }
        """,
        """
        fn (%x: Tensor[(2, 4, 3), float32], %y: Tensor[(2, 4, 5), float32]) {
          nn.batch_matmul(%x, %y, transpose_a=True, transpose_b=False)
        }
        """,
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float16"])
def test_bytes_and_halves_are_read_in_place_but_for_rows_that_lie_as_columns(dtype):
    """Kernels pack columns that lie either way, and copy rows that do not run along the reduction."""
    source = """
        fn (%x: Tensor[(4, 30), TYPE], %w: Tensor[(4, 5), TYPE]) {
          nn.dense(transpose(%x, axes=[1, 0]), transpose(%w, axes=[1, 0]), out_dtype="int32")
        }
        """
    folded = """
        fn (%x: Tensor[(4, 30), TYPE], %w: Tensor[(4, 5), TYPE]) {
          nn.matmul(transpose(%x, axes=[1, 0]), %w, out_dtype="int32")
        }
        """
    check(FoldTransposes(), source.replace("TYPE", dtype), folded.replace("TYPE", dtype))


def test_integers_of_four_bytes_are_read_in_place():
    check(
        FoldTransposes(),
        "fn (%x: Tensor[(4, 3), int32], %w: Tensor[(4, 5), int32]) { nn.dense(transpose(%x), transpose(%w)) }",
        "fn (%x: Tensor[(4, 3), int32], %w: Tensor[(4, 5), int32]) { nn.matmul(%x, %w, transpose_a=True) }",
    )


def test_other_orders_and_constants_stay():
    check_unchanged(
        FoldTransposes(),
        """
        fn (%x: Tensor[(3, 2, 4), float32], %y: Tensor[(2, 5, 4), float32]) {
          nn.batch_matmul(transpose(%x, axes=[1, 0, 2]), %y)
        }
        """,
    )
    check_unchanged(
        FoldTransposes(),
        "fn (%x: Tensor[(3, 4), float32]) { nn.dense(%x, transpose($w, axes=[1, 0])) }",
        {"w": np.ones((4, 5), "float32")},
    )


@pytest.mark.parametrize(("m", "k", "n"), [(1, 7, 33), (5, 1, 17), (17, 16, 1)])
def test_models_compute_the_same(m, k, n):
    a, b = relay.var("a", shape=(k, m)), relay.var("b", shape=(k, n))
    product = relay.nn.dense(relay.transpose(a, axes=[1, 0]), relay.transpose(b, axes=[1, 0]))
    built = relay.build(IRModule.from_expr(relay.Function([a, b], relay.nn.relu(product))))
    rng = np.random.default_rng(m)
    x, y = rng.standard_normal((k, m), "float32"), rng.standard_normal((k, n), "float32")
    (found,) = built.run([x, y])
    assert np.allclose(found, np.maximum(x.T.astype("float64") @ y, 0), atol=1e-4)
    assert len(built.kernels) == 1


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 7, 33), (9, 30, 100), (17, 16, 1)])
def test_integers_are_multiplied_exactly(m, k, n, dtype):
    a, b = relay.var("a", shape=(k, m), dtype=dtype), relay.var("b", shape=(k, n), dtype=dtype)
    turned = [relay.transpose(one, axes=[1, 0]) for one in (a, b)]
    built = relay.build(IRModule.from_expr(relay.Function([a, b], relay.nn.dense(*turned, out_dtype="int32"))))
    rng = np.random.default_rng(m)
    info = np.iinfo("int8" if dtype == "int32" else dtype)
    x, y = (rng.integers(info.min, info.max + 1, (k, size)).astype(dtype) for size in (m, n))
    (found,) = built.run([x, y])
    assert np.array_equal(found, x.T.astype("int32") @ y.astype("int32"))
