"""GEMMs, norms and softmax as tensor expressions; each gives its inputs and its result."""

from __future__ import annotations

from loopwright import te, topi
from loopwright.te import Tensor


def matmul(n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32") -> tuple[Tensor, ...]:
    """n × k by k × m."""
    a, b = te.placeholder((n, k), name="A", dtype=in_dtype), te.placeholder((k, m), name="B", dtype=in_dtype)
    axis = te.reduce_axis((0, k), name="k")

    def element(i: object, j: object) -> object:
        left, right = a[i, axis], b[axis, j]
        if in_dtype != out_dtype:
            left, right = left.astype(out_dtype), right.astype(out_dtype)
        return te.sum(left * right, axis=[axis])

    return a, b, te.compute((n, m), element, name="C")


def matmul_fp16(n: int, m: int, k: int) -> tuple[Tensor, ...]:
    """Halves, summed up as floats."""
    return matmul(n, m, k, "float16", "float32")


def matmul_relu(n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32") -> tuple[Tensor, ...]:
    """With ReLU."""
    a, b, c = matmul(n, m, k, in_dtype, out_dtype)
    return a, b, topi.nn.relu(c)


def batch_matmul_nkkm(
    b: int, n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> tuple[Tensor, ...]:
    """A batch of them."""
    x = te.placeholder((b, n, k), name="X", dtype=in_dtype)
    y = te.placeholder((b, k, m), name="Y", dtype=in_dtype)
    axis = te.reduce_axis((0, k), name="k")

    def element(b: object, i: object, j: object) -> object:
        left, right = x[b, i, axis], y[b, axis, j]
        if in_dtype != out_dtype:
            left, right = left.astype(out_dtype), right.astype(out_dtype)
        return te.sum(left * right, axis=[axis])

    return x, y, te.compute((b, n, m), element, name="Z")


def transpose_batch_matmul(
    batch: int, seq_len: int, n_head: int, n_dim: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> tuple[Tensor, ...]:
    """Queries by keys of attention, heads inside the sequence."""
    query = te.placeholder((batch, seq_len, n_head, n_dim), name="query", dtype=in_dtype)
    value = te.placeholder((batch, seq_len, n_head, n_dim), name="value", dtype=in_dtype)
    rows = te.compute((batch, n_head, seq_len, n_dim), lambda b, h, l, d: query[b, l, h, d], name="query_T")
    columns = te.compute((batch, n_head, n_dim, seq_len), lambda b, h, d, l: value[b, l, h, d], name="value_T")
    axis = te.reduce_axis((0, n_dim), name="k")

    def element(b: object, h: object, i: object, j: object) -> object:
        left, right = rows[b, h, i, axis], columns[b, h, axis, j]
        if in_dtype != out_dtype:
            left, right = left.astype(out_dtype), right.astype(out_dtype)
        return te.sum(left * right, axis=[axis])

    return query, value, te.compute((batch, n_head, seq_len, seq_len), element, name="C")


def norm_bmn(B: int, M: int, N: int) -> tuple[Tensor, ...]:
    """The Euclidean norm of each matrix of a batch."""
    a = te.placeholder((B, M, N), name="A")
    i, j = te.reduce_axis((0, M), name="i"), te.reduce_axis((0, N), name="j")
    squares = te.compute((B,), lambda b: te.sum(a[b, i, j] * a[b, i, j], axis=[i, j]), name="C")
    return a, te.compute((B,), lambda b: te.sqrt(squares[b]), name="D")


def softmax_mn(m: int, n: int) -> tuple[Tensor, ...]:
    """Of each row."""
    a = te.placeholder((m, n), name="A")
    return a, topi.nn.softmax(a, axis=1)
