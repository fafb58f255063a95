"""csr: a sparse matrix as three tensors.

    A = topi.sparse.placeholder((m, n), nonzeros=nnz, name="A")
    y = topi.sparse.csrmv(A, x)
    func = te.create_prim_func([A.data, A.indices, A.indptr, x, y])

Row i has the values data[indptr[i]] to data[indptr[i + 1]], in the columns of the same places of `indices`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from loopwright import te
from loopwright.ir import Expr, as_expr
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.types import Dim, Shape


@dataclass(frozen=True)
class CSRPlaceholder:
    """A sparse matrix that the caller gives."""

    shape: tuple[Expr, ...]
    dtype: str
    data: te.Tensor
    indices: te.Tensor
    indptr: te.Tensor

    @property
    def stype(self) -> str:
        return "csr"


@runtime_checkable
class HasParts(Protocol):
    """Anything with the three tensors of a matrix in CSR form, under these names."""

    @property
    def data(self) -> te.Tensor: ...
    @property
    def indices(self) -> te.Tensor: ...
    @property
    def indptr(self) -> te.Tensor: ...


Sparse: TypeAlias = HasParts | Sequence[te.Tensor]  # or the three of them


def placeholder(
    shape: Shape, nonzeros: Dim | None = None, dtype: str = "float32", name: str = "placeholder", stype: str = "csr"
) -> CSRPlaceholder:
    """A sparse matrix of `shape` with `nonzeros` values (a variable if None)."""
    if len(shape) != 2 or stype != "csr":
        raise InvalidShapeError("sparse.placeholder", f"shape {shape!r} as {stype!r}", "give two sizes, and csr")
    count = te.size_var("nonzeros") if nonzeros is None else nonzeros
    rows, columns = (as_expr(size) for size in shape)
    return CSRPlaceholder(
        (rows, columns),
        dtype,
        te.placeholder((count,), dtype, name=f"{name}_data"),
        te.placeholder((count,), "int32", name=f"{name}_indices"),
        te.placeholder((rows + 1,), "int32", name=f"{name}_indptr"),
    )


def parts(matrix: Sparse) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """data, indices and indptr of a sparse matrix: anything with those names, or the three of them."""
    if isinstance(matrix, (list, tuple)) and len(matrix) == 3:
        return matrix[0], matrix[1], matrix[2]
    if isinstance(matrix, HasParts):
        return matrix.data, matrix.indices, matrix.indptr
    raise InvalidShapeError(
        "sparse", f"{matrix!r} is no sparse matrix", "give a sparse.placeholder, or (data, indices, indptr)"
    )
