"""sparse: matrices that are mostly zeros, given by what is not.

    nn.sparse_dense(x, data, indices, indptr)        x · Wᵀ

Row n of W has the values data[indptr[n]] to data[indptr[n + 1]], in the columns of the same places of `indices` (CSR).
With data of 3 dimensions rows, columns and values are those of blocks (BSR). Rows of the result run in parallel.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, cast, const
from loopwright.ir.ir_builder import BufferVar, IRBuilder, create
from loopwright.te.tags import default_tag
from loopwright.topi.errors import InvalidShapeError, UnsupportedLayout
from loopwright.topi.parts.checked_indices import checked_place
from loopwright.topi.parts.sizes import at_least, check_rank, check_same, simplify
from loopwright.topi.registry import operator
from loopwright.topi.testing import sparse as meaning
from loopwright.topi.types import Dim, DType


@operator(reference=meaning.sparse_dense, samples=meaning.sparse_dense_samples, name="nn.sparse_dense")
def sparse_dense(
    dense_data: te.Tensor,
    sparse_data: te.Tensor,
    sparse_indices: te.Tensor,
    sparse_indptr: te.Tensor,
    sparse_lhs: bool = False,
) -> te.Tensor:
    """`dense_data` · Wᵀ for the sparse W; with `sparse_lhs`, W · `dense_data`ᵀ."""
    if sparse_lhs:
        return sparse_dense_sp_lhs(sparse_data, sparse_indices, sparse_indptr, dense_data)
    return sparse_dense_sp_rhs(dense_data, sparse_data, sparse_indices, sparse_indptr)


@operator(
    reference=meaning.sparse_dense_sp_rhs, samples=meaning.sparse_dense_sp_rhs_samples, name="nn.sparse_dense_sp_rhs"
)
def sparse_dense_sp_rhs(
    data: te.Tensor, weight_data: te.Tensor, weight_indices: te.Tensor, weight_indptr: te.Tensor
) -> te.Tensor:
    """`data` (m, k) · Wᵀ: (m, n) for W (n, k)."""
    return _product("sparse_dense_sp_rhs", data, weight_data, weight_indices, weight_indptr, is_left=False)


@operator(
    reference=meaning.sparse_dense_sp_lhs, samples=meaning.sparse_dense_sp_lhs_samples, name="nn.sparse_dense_sp_lhs"
)
def sparse_dense_sp_lhs(
    data_data: te.Tensor, data_indices: te.Tensor, data_indptr: te.Tensor, weight: te.Tensor
) -> te.Tensor:
    """W · `weight`ᵀ: (m, n) for the sparse W (m, k) and `weight` (n, k)."""
    return _product("sparse_dense_sp_lhs", weight, data_data, data_indices, data_indptr, is_left=True)


def _product(
    op: str, dense: te.Tensor, data: te.Tensor, indices: te.Tensor, indptr: te.Tensor, is_left: bool
) -> te.Tensor:
    check_rank(op, "dense data", dense, "(rows, columns)", 2)
    high, _ = _block(op, data, indices, indptr)
    rows = simplify((indptr.shape[0] - 1) * high)
    shape = (rows, dense.shape[0]) if is_left else (dense.shape[0], rows)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        x, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, shape[0], "i", kind="parallel") as i, ib.for_range(0, shape[1], "j") as j:
            row, line = (i, j) if is_left else (j, i)
            total = _row_sum(ib, ins, data, row, high, lambda at: x[line, at], dense.shape[1], outs[0].dtype)
            out[i, j] = total[0]
        return ib.get()

    inputs = [dense, data, indices, indptr]
    result: te.Tensor = te.extern([shape], inputs, body, name=op, dtype=[str(dense.dtype)], tag=default_tag(op))
    return result


def _block(op: str, data: te.Tensor, indices: te.Tensor, indptr: te.Tensor) -> tuple[Dim, Dim]:
    """How high and wide a block is: 1 by 1 for CSR."""
    if not isinstance(data, te.Tensor) or data.ndim not in (1, 3):
        raise InvalidShapeError(op, f"sparse data {data!r} has neither 1 nor 3 dimensions", "give CSR or BSR data")
    check_rank(op, "indices", indices, "(values)", 1)
    check_rank(op, "indptr", indptr, "(rows + 1)", 1)
    check_same(op, "values", ("the data", data.shape[0]), ("the indices", indices.shape[0]))
    if not at_least(indptr.shape[0], 1):
        raise InvalidShapeError(op, f"{indptr.name} is empty", "it has one number more than there are rows")
    if data.ndim == 3 and not all([at_least(size, 1) for size in data.shape[1:]]):
        raise InvalidShapeError(op, f"blocks of {data.name} have no elements", "a block is at least 1 by 1")
    return (1, 1) if data.ndim == 1 else (data.shape[1], data.shape[2])


def _row_sum(
    ib: IRBuilder,
    ins: list[Buffer],
    data: te.Tensor,
    row: Expr,
    high: Dim,
    element: Callable[[Expr], Expr],
    width: Expr,
    dtype: DType,
) -> BufferVar:
    """A cell with the sum of row `row` of the sparse matrix (inputs 1 to 3) times `element` of its `width` columns."""
    values, columns, starts = [ib.buffer_ptr(buffer) for buffer in ins[1:4]]
    total = ib.allocate(str(dtype), (1,), name="total", scope="local")
    total[0] = const(0, dtype)
    line = row // high if data.ndim == 3 else row
    index = row.dtype
    with _places(ib, starts, line, data.shape[0]) as location:
        if data.ndim == 1:
            column = _column(ib, columns[location], width)
            total[0] = total[0] + cast(values[location] * element(column), total.dtype)
        else:
            block = _column(ib, columns[location], simplify(width // data.shape[2]))
            with ib.for_range(0, data.shape[2], "c") as c:
                column = cast(block, index) * data.shape[2] + c
                total[0] = total[0] + cast(values[location, row % high, c] * element(column), total.dtype)
    return total


def _places(ib: IRBuilder, starts: BufferVar, line: Expr, count: Expr) -> AbstractContextManager[Expr]:
    """A loop over the values of one line of a sparse matrix that has `count` of them."""
    first = checked_place(ib, "a sparse matrix", "the start of a row", starts[line], count, end=True)
    last = checked_place(ib, "a sparse matrix", "the end of a row", starts[line + 1], count, end=True)
    return ib.for_range(first, last, "place")


def _column(ib: IRBuilder, given: Expr, width: Expr) -> Expr:
    return checked_place(ib, "a sparse matrix", "the column of a value", given, width)


@operator(reference=meaning.sparse_transpose, samples=meaning.sparse_transpose_samples, name="nn.sparse_transpose")
def sparse_transpose(sparse_data: te.Tensor, sparse_indices: te.Tensor, sparse_indptr: te.Tensor) -> list[te.Tensor]:
    """[data, indices, indptr] of the transposed matrix, which is square and in CSR."""
    op = "sparse_transpose"
    check_rank(op, "data", sparse_data, "(values)", 1)
    _block(op, sparse_data, sparse_indices, sparse_indptr)
    count, rows = sparse_data.shape[0], simplify(sparse_indptr.shape[0] - 1)
    kind, index = sparse_indices.dtype, count.dtype

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        value, column, start, new_value, new_column, new_start = [ib.buffer_ptr(buffer) for buffer in (*ins, *outs)]
        with ib.for_range(0, rows + 1, "i") as i:
            new_start[i] = const(0, sparse_indptr.dtype)
        # Counted, added up, and then used as the place where the next value of a row goes.
        one = const(1, sparse_indptr.dtype)
        with ib.for_range(0, count, "i") as i:
            to = _column(ib, column[i], rows) + 1
            new_start[to] = new_start[to] + one
        with ib.for_range(0, rows, "i") as i:
            new_start[i + 1] = new_start[i + 1] + new_start[i]
        used = ib.allocate(str(index), (rows,), name="taken")
        with ib.for_range(0, rows, "i") as i:
            used[i] = cast(new_start[i], index)
        with ib.for_range(0, rows, "row") as row, _places(ib, start, row, count) as location:
            at = _column(ib, column[location], rows)
            # Rows that share values would ask for more room than there is.
            target = checked_place(ib, "a sparse matrix", "the place of a value", used[at], count)
            new_value[target] = value[location]
            new_column[target] = cast(row, kind)
            used[at] = cast(target, index) + 1
        return ib.get()

    inputs = [sparse_data, sparse_indices, sparse_indptr]
    types = [str(tensor.dtype) for tensor in inputs]
    shapes = [tensor.shape for tensor in inputs]
    result: list[te.Tensor] = te.extern(shapes, inputs, body, name=op, dtype=types, tag=default_tag(op))
    return result


@operator(reference=meaning.sparse_add, samples=meaning.sparse_add_samples, name="nn.sparse_add")
def sparse_add(
    dense_data: te.Tensor, sparse_data: te.Tensor, sparse_indices: te.Tensor, sparse_indptr: te.Tensor
) -> te.Tensor:
    """The sum of a matrix and a sparse one in CSR."""
    op = "sparse_add"
    check_rank(op, "dense data", dense_data, "(rows, columns)", 2)
    check_rank(op, "sparse data", sparse_data, "(values)", 1)
    _block(op, sparse_data, sparse_indices, sparse_indptr)
    rows, columns = dense_data.shape
    check_same(op, "rows", ("the dense matrix", rows), ("the sparse one", simplify(sparse_indptr.shape[0] - 1)))

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        dense, value, column, start, out = [ib.buffer_ptr(buffer) for buffer in (*ins, *outs)]
        with ib.for_range(0, rows, "row", kind="parallel") as row:
            with ib.for_range(0, columns, "k") as k:
                out[row, k] = dense[row, k]
            with _places(ib, start, row, sparse_data.shape[0]) as location:
                at = (row, _column(ib, column[location], columns))
                out[at] = out[at] + cast(value[location], dense_data.dtype)
        return ib.get()

    inputs = [dense_data, sparse_data, sparse_indices, sparse_indptr]
    kind = str(dense_data.dtype)
    result: te.Tensor = te.extern([dense_data.shape], inputs, body, name=op, dtype=[kind], tag=default_tag(op))
    return result


@operator(reference=meaning.sparse_conv2d, samples=meaning.sparse_conv2d_samples, name="nn.sparse_conv2d")
def sparse_conv2d(
    dense_data: te.Tensor,
    sparse_data: te.Tensor,
    sparse_indices: te.Tensor,
    sparse_indptr: te.Tensor,
    layout: str = "NHWC",
    kernel_size: int = 1,
) -> te.Tensor:
    """A convolution of stride 1 that keeps height and width; the weight (filters, kh · kw · channels) is sparse.

    `layout` is NHWC or NCHW, `kernel_size` 1 or 3; the columns of the weight are ordered by row, column and channel.
    """
    op = "sparse_conv2d"
    if layout not in ("NHWC", "NCHW"):
        raise UnsupportedLayout(op, layout, "use NHWC or NCHW")
    check_rank(op, "dense data", dense_data, layout, 4)
    if kernel_size not in (1, 3):
        raise InvalidShapeError(op, f"kernel_size is {kernel_size!r}", "it is 1 or 3")
    high, _ = _block(op, sparse_data, sparse_indices, sparse_indptr)
    filters = simplify((sparse_indptr.shape[0] - 1) * high)
    where = {letter: layout.index(letter) for letter in layout}
    shape = list(dense_data.shape)
    shape[where["C"]] = filters
    batch, height, width, channels = (dense_data.shape[where[letter]] for letter in "NHWC")
    around = kernel_size // 2

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        x, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])

        def at(n: Expr, y: Expr, column: Expr, c: Expr) -> tuple[Expr, ...]:
            locations = {"N": n, "H": y, "W": column, "C": c}
            return tuple(locations[letter] for letter in layout)

        with ib.for_range(0, batch * height, "line", kind="parallel") as line:
            n, y = line // height, line % height
            with ib.for_range(0, width, "x") as column, ib.for_range(0, filters, "f") as f:

                def element(index: Expr) -> Expr:
                    if kernel_size == 1:
                        return x[at(n, y, column, index)]
                    tap, c = index // channels, index % channels
                    row, other = y + tap // 3 - around, column + tap % 3 - around
                    inside = te.all(row >= 0, row < height, other >= 0, other < width)
                    return te.if_then_else(inside, x[at(n, row, other, c)], const(0, dense_data.dtype))

                wide = simplify(channels * (kernel_size * kernel_size))
                total = _row_sum(ib, ins, sparse_data, f, high, element, wide, dense_data.dtype)
                out[at(n, y, column, f)] = total[0]
        return ib.get()

    inputs = [dense_data, sparse_data, sparse_indices, sparse_indptr]
    kind = str(dense_data.dtype)
    result: te.Tensor = te.extern([shape], inputs, body, name=op, dtype=[kind], tag=default_tag(op))
    return result
