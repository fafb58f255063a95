"""products: of a matrix in CSR form with a vector (csrmv), a matrix (csrmm), and as a layer of a network (dense)."""

from __future__ import annotations

from loopwright import te
from loopwright.ir import Buffer, Stmt, cast, const
from loopwright.ir.ir_builder import create
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.nn.sparse import sparse_dense_sp_lhs, sparse_dense_sp_rhs
from loopwright.topi.parts.checked_indices import checked_place
from loopwright.topi.parts.sizes import at_least, check_rank, check_same, simplify
from loopwright.topi.registry import operator
from loopwright.topi.sparse.csr import Sparse, parts
from loopwright.topi.testing import sparse as meaning


@operator(reference=meaning.csrmm, samples=meaning.csrmm_samples, name="sparse.csrmm")
def csrmm(a: Sparse, b: te.Tensor, c: te.Tensor | None = None) -> te.Tensor:
    """a · b + c for the sparse `a` (m, k), `b` (k, n) and `c` (n), which may be left out."""
    return _product("csrmm", a, b, c)


@operator(reference=meaning.csrmm, samples=meaning.csrmv_samples, name="sparse.csrmv")
def csrmv(a: Sparse, x: te.Tensor, y: te.Tensor | None = None) -> te.Tensor:
    """a · x + y for the sparse `a` (m, k), `x` (k, 1) and `y` (1), which may be left out."""
    return _product("csrmv", a, x, y)


def _product(op: str, a: Sparse, b: te.Tensor, c: te.Tensor | None) -> te.Tensor:
    data, indices, indptr = parts(a)
    check_rank(op, "dense matrix", b, "(k, n)", 2)
    check_same(op, "values", ("the data", data.shape[0]), ("the indices", indices.shape[0]))
    if not at_least(indptr.shape[0], 1):
        raise InvalidShapeError(op, f"{indptr.name} is empty", "it has one number more than there are rows")
    rows, columns = simplify(indptr.shape[0] - 1), b.shape[1]
    inputs = [data, indices, indptr, b]
    if c is not None:
        check_rank(op, "bias", c, "(n)", 1)
        check_same(op, "columns", ("the dense matrix", columns), ("the bias", c.shape[0]))
        inputs.append(c)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        value, column, start, dense = [ib.buffer_ptr(buffer) for buffer in ins[:4]]
        out = ib.buffer_ptr(outs[0])
        with ib.for_range(0, rows, "row", kind="parallel") as row:
            with ib.for_range(0, columns, "j") as j:
                out[row, j] = const(0, b.dtype) if c is None else cast(ib.buffer_ptr(ins[4])[j], b.dtype)
            first, last = (
                checked_place(ib, op, what, start[line], data.shape[0], end=True)
                for what, line in (("the start of a row", row), ("the end of a row", row + 1))
            )
            # A whole row of the result at a time: memory is read as it lies.
            with ib.for_range(first, last, "place") as location:
                line = checked_place(ib, op, "the column of a value", column[location], b.shape[0])
                with ib.for_range(0, columns, "j") as j:
                    term = value[location] * dense[line, j]
                    out[row, j] = out[row, j] + cast(term, b.dtype)
        return ib.get()

    result: te.Tensor = te.extern([(rows, columns)], inputs, body, name=op, dtype=[str(b.dtype)], tag=default_tag(op))
    return result


@operator(reference=meaning.dense, samples=meaning.dense_samples, name="sparse.dense")
def dense(data: te.Tensor | Sparse, weight: te.Tensor | Sparse, bias: te.Tensor | None = None) -> te.Tensor:
    """data · weightᵀ + bias; one of `data` (m, k) and `weight` (n, k) is sparse."""
    if isinstance(weight, te.Tensor) and not isinstance(data, te.Tensor):
        built = sparse_dense_sp_lhs(*parts(data), weight)
    elif isinstance(data, te.Tensor) and not isinstance(weight, te.Tensor):
        built = sparse_dense_sp_rhs(data, *parts(weight))
    else:
        raise InvalidShapeError("sparse.dense", "one of data and weight is sparse, the other one is not", None)
    if bias is None:
        return built
    check_rank("sparse.dense", "bias", bias, "(n)", 1)
    check_same("sparse.dense", "columns", ("the product", built.shape[1]), ("the bias", bias.shape[0]))
    result: te.Tensor = te.compute(
        built.shape, lambda i, j: built(i, j) + bias(j), name="T_add", tag=default_tag(tag.BROADCAST)
    )
    return result
