"""What operators on sparse matrices mean, in numpy, and the samples they are tried on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from loopwright.topi.registry import Bound, Sample


def to_dense(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, columns: int) -> np.ndarray:
    """The matrix of CSR (1 dimension) or BSR (3 dimensions) data."""
    high, wide = data.shape[1:] if data.ndim == 3 else (1, 1)
    blocks = data.reshape(-1, high, wide)
    result = np.zeros(((len(indptr) - 1) * high, columns), data.dtype)
    for row in range(len(indptr) - 1):
        for index in range(int(indptr[row]), int(indptr[row + 1])):
            left = int(indices[index]) * wide
            result[row * high : (row + 1) * high, left : left + wide] += blocks[index]
    return result


def sparse_dense(
    dense_data: np.ndarray, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, sparse_lhs: bool = False
) -> np.ndarray:
    weight = to_dense(data, indices, indptr, dense_data.shape[1])
    return np.asarray(weight @ dense_data.T if sparse_lhs else dense_data @ weight.T)


def sparse_dense_sp_rhs(dense: np.ndarray, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    return sparse_dense(dense, data, indices, indptr)


def sparse_dense_sp_lhs(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, dense: np.ndarray) -> np.ndarray:
    return sparse_dense(dense, data, indices, indptr, True)


def sparse_transpose(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> list[np.ndarray]:
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.argsort(indices, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(indices, minlength=len(indptr) - 1))])
    return [data[order], rows[order], starts]


def sparse_add(dense: np.ndarray, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    return np.asarray(dense + to_dense(data, indices, indptr, dense.shape[1]))


def sparse_conv2d(
    dense: np.ndarray,
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    layout: str = "NHWC",
    kernel_size: int = 1,
) -> np.ndarray:
    x = dense if layout == "NHWC" else dense.transpose(0, 2, 3, 1)
    around = kernel_size // 2
    weight = to_dense(data, indices, indptr, x.shape[3] * kernel_size**2)
    padded = np.pad(x, ((0, 0), (around, around), (around, around), (0, 0)))
    taps = [padded[:, i : i + x.shape[1], j : j + x.shape[2]] for i in range(kernel_size) for j in range(kernel_size)]
    result = np.concatenate(taps, -1) @ weight.T
    return np.asarray(result if layout == "NHWC" else result.transpose(0, 3, 1, 2))


def csr(rows: int, columns: int, block: Sequence[int] = (), seed: int = 0) -> list[np.ndarray]:
    """A random sparse matrix: data, indices, indptr. One of its rows is empty."""
    random = np.random.default_rng(seed)
    indices: list[int] = []
    indptr = [0]
    for row in range(rows):
        if row != 1:
            indices += sorted(random.choice(columns, random.integers(1, columns + 1), replace=False))
        indptr.append(len(indices))
    data = random.uniform(-1, 1, (len(indices), *block)).astype("float32")
    return [data, np.array(indices, "int32"), np.array(indptr, "int32")]


def _values(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype("float32")


def _summed(terms: int) -> Bound:
    """At most `terms` products below 1 are added up."""
    return lambda args, exact: terms * (terms + 1) * float(np.finfo("float32").eps)


def sparse_dense_samples() -> Iterable[Sample]:
    yield Sample((_values(3, 7), *csr(5, 7)), bound=_summed(7))
    yield Sample((_values(3, 7), *csr(5, 7), True), bound=_summed(7))
    yield Sample((_values(2, 12), *csr(3, 4, (2, 3))), bound=_summed(12))
    yield Sample((_values(2, 12), *csr(3, 4, (2, 3)), True), bound=_summed(12))


def sparse_dense_sp_rhs_samples() -> Iterable[Sample]:
    yield Sample((_values(1, 5), *csr(2, 5, seed=3)), bound=_summed(5))


def sparse_dense_sp_lhs_samples() -> Iterable[Sample]:
    yield Sample((*csr(2, 5, seed=3), _values(4, 5)), bound=_summed(5))


def sparse_transpose_samples() -> Iterable[Sample]:
    yield Sample((*csr(6, 6),))
    yield Sample((*csr(1, 1),))


def sparse_add_samples() -> Iterable[Sample]:
    yield Sample((_values(4, 6), *csr(4, 6)), bound=_summed(2))


def sparse_conv2d_samples() -> Iterable[Sample]:
    yield Sample((_values(1, 3, 4, 6), *csr(4, 6)), bound=_summed(6))
    yield Sample((_values(2, 4, 3, 2), *csr(2, 2, (2, 2)), "NCHW"), bound=_summed(4))
    yield Sample((_values(1, 3, 4, 2), *csr(3, 18), "NHWC", 3), bound=_summed(18))


def sparse_fill_empty_rows(
    indices: np.ndarray, values: np.ndarray, dense_shape: np.ndarray, default: np.ndarray, *shapes: Sequence[int]
) -> list[np.ndarray]:
    rows = shapes[2][0]
    is_empty = np.array([row not in indices[:, 0] for row in range(rows)], bool)
    result = [(list(index), value) for index, value in zip(indices, values, strict=True)]
    result += [([row, *[0] * (indices.shape[1] - 1)], default.reshape(-1)[0]) for row in np.nonzero(is_empty)[0]]
    result.sort(key=lambda pair: pair[0][0])
    new_indices, new_values = np.full(shapes[0], -1), np.zeros(shapes[1], values.dtype)
    for position, (index, value) in enumerate(result):
        new_indices[position], new_values[position] = index, value
    return [new_indices, new_values, is_empty]


def sparse_fill_empty_rows_samples() -> Iterable[Sample]:
    indices = np.array([[0, 1], [0, 3], [2, 0], [3, 1]], "int64")
    values, default = np.array([1, 2, 3, 4], "int64"), np.array([10], "int64")
    yield Sample((indices, values, np.array([6, 4], "int64"), default, (10, 2), (10,), (6,)))
    nothing = np.zeros((0, 2), "int64")
    yield Sample((nothing, values[:0].astype("float32"), indices[0], default.astype("float32"), (3, 2), (3,), (3,)))


def sparse_reshape(
    indices: np.ndarray, prev_shape: np.ndarray, new_shape: np.ndarray, *shapes: object
) -> list[np.ndarray]:
    total = int(np.prod(prev_shape))
    known = int(np.prod([size for size in new_shape if size >= 0]))
    shape = [total // known if size < 0 else int(size) for size in new_shape]
    locations = np.ravel_multi_index(tuple(indices.T), tuple(int(size) for size in prev_shape))
    return [np.stack(np.unravel_index(locations, shape), 1), np.array(shape)]


def sparse_reshape_samples() -> Iterable[Sample]:
    indices = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 2, 3]], "int64")
    old = np.array([2, 3, 6], "int64")
    yield Sample((indices, old, np.array([9, -1], "int64"), (5, 2), (2,)))
    yield Sample((indices, old, np.array([36], "int64"), (5, 1), (1,)))


def csrmm(a: Sequence[np.ndarray], b: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
    product = to_dense(a[0], a[1], a[2], b.shape[0]) @ b
    return np.asarray(product if c is None else product + c)


def csrmm_samples() -> Iterable[Sample]:
    yield Sample((tuple(csr(4, 6)), _values(6, 3), _values(3)), bound=_summed(7))
    yield Sample((tuple(csr(3, 2)), _values(2, 5)), bound=_summed(2))


def csrmv_samples() -> Iterable[Sample]:
    yield Sample((tuple(csr(4, 6)), _values(6, 1), _values(1)), bound=_summed(7))
    yield Sample((tuple(csr(3, 2)), _values(2, 1)), bound=_summed(2))


def dense(data: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    if isinstance(data, np.ndarray):
        product = data @ to_dense(weight[0], weight[1], weight[2], data.shape[1]).T
    else:
        product = to_dense(data[0], data[1], data[2], weight.shape[1]) @ weight.T
    return np.asarray(product if bias is None else product + bias)


def dense_samples() -> Iterable[Sample]:
    yield Sample((_values(2, 6), tuple(csr(4, 6)), _values(4)), bound=_summed(7))
    yield Sample((tuple(csr(4, 6)), _values(3, 6)), bound=_summed(6))
