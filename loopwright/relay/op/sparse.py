"""Sparse matrices in graphs: nn.sparse_dense and its kin, and TensorFlow's lists of indices and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np

from loopwright import te, topi
from loopwright.ir.types import TupleType, Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Constant, Expr, TupleWrapper, const
from loopwright.relay.op.from_topi import FromTopi, only_interpreted
from loopwright.relay.op.registry import Kind, Operator, calls, make, register
from loopwright.relay.types import AnyDim, TensorType
from loopwright.topi.registry import OPERATORS


class HasParts(Protocol):
    """A matrix by rows: its values, their columns, and where each row begins among them; scipy's csr_matrix is one."""

    @property
    def data(self) -> object: ...
    @property
    def indices(self) -> object: ...
    @property
    def indptr(self) -> object: ...


Sparse: TypeAlias = HasParts | Sequence[object]  # or the three of them: expressions, arrays


def _parts(matrix: Sparse) -> list[Expr]:
    """data, indices and indptr: of an object that has them, or given as three."""
    parts = matrix if isinstance(matrix, Sequence) else (matrix.data, matrix.indices, matrix.indptr)
    return [part if isinstance(part, Expr) else const(np.asarray(part)) for part in parts]


@register("nn.sparse_dense", Kind.OUT_FUSABLE)
class SparseDense(FromTopi):
    """The dense matrix times the transposed sparse one; with `sparse_lhs` the other way round."""

    sparse_lhs: bool = False

    def infer(
        self, dense_data: TensorType, sparse_data: TensorType, sparse_indices: TensorType, sparse_indptr: TensorType
    ) -> Type:
        return self.type_of_compute(dense_data, sparse_data, sparse_indices, sparse_indptr)


@calls("nn.sparse_dense")
def sparse_dense(dense_mat: Expr, sparse_mat: Sparse, sparse_lhs: bool = False) -> Expr:
    """The product of `dense_mat` and the transposed `sparse_mat`: (data, indices, indptr), or what has those names."""
    result: Expr = make("nn.sparse_dense", dense_mat, *_parts(sparse_mat), sparse_lhs=sparse_lhs)
    return result


@register("nn.sparse_transpose", Kind.OPAQUE)
class SparseTranspose(FromTopi):
    """A square sparse matrix transposed: data, indices and indptr."""

    results = 3

    def infer(self, sparse_data: TensorType, sparse_indices: TensorType, sparse_indptr: TensorType) -> Type:
        return self.type_of_compute(sparse_data, sparse_indices, sparse_indptr)


@calls("nn.sparse_transpose")
def sparse_transpose(x: Sparse) -> TupleWrapper:
    """A square sparse matrix transposed: (data, indices, indptr)."""
    result: TupleWrapper = make("nn.sparse_transpose", *_parts(x))
    return result


@register("nn.sparse_add", Kind.OPAQUE)
class SparseAdd(FromTopi):
    """The sum of a matrix and a sparse one."""

    def infer(
        self, dense_data: TensorType, sparse_data: TensorType, sparse_indices: TensorType, sparse_indptr: TensorType
    ) -> Type:
        return self.type_of_compute(dense_data, sparse_data, sparse_indices, sparse_indptr)


@calls("nn.sparse_add")
def sparse_add(dense_mat: Expr, sparse_mat: Sparse) -> Expr:
    """The sum of a matrix and a sparse one."""
    result: Expr = make("nn.sparse_add", dense_mat, *_parts(sparse_mat))
    return result


@register("nn.sparse_conv2d", Kind.OUT_FUSABLE)
class SparseConv2d(FromTopi):
    """A convolution that keeps height and width, by a sparse weight."""

    layout: str = "NHWC"
    kernel_size: int = 1

    def infer(
        self, dense_data: TensorType, sparse_data: TensorType, sparse_indices: TensorType, sparse_indptr: TensorType
    ) -> Type:
        return self.type_of_compute(dense_data, sparse_data, sparse_indices, sparse_indptr)


@register("sparse_reshape", Kind.OPAQUE)
class SparseReshape(FromTopi):
    """The indices of values when the tensor they are in takes another shape, and that shape."""

    results = 2

    def infer(self, sparse_indices: TensorType, prev_shape: TensorType, new_shape: TensorType) -> Type:
        return self.type_of_compute(sparse_indices, prev_shape, new_shape)

    def arguments(self, *inputs: te.Tensor | np.ndarray) -> Sequence[object]:
        indices, _, shape = inputs
        return (*inputs, (indices.shape[0], shape.shape[0]), (shape.shape[0],))


@register("sparse_fill_empty_rows", Kind.OPAQUE)
class SparseFillEmptyRows(Operator):
    """The indices and values of a matrix, with a default value in every row that had none, and which those are."""

    rows: int | None = None  # of the matrix, where its shape is a constant
    data_dependent = True
    results = 3

    def infer(
        self, sparse_indices: TensorType, sparse_values: TensorType, dense_shape: TensorType, default_value: TensorType
    ) -> Type:
        if len(sparse_indices.shape) != 2:
            raise TypeMismatch(f"sparse_fill_empty_rows: the indices are {sparse_indices}, not a matrix")
        return TupleType(
            (
                TensorType([AnyDim(), sparse_indices.shape[1]], str(sparse_indices.dtype)),
                TensorType([AnyDim()], str(sparse_values.dtype)),
                TensorType([AnyDim() if self.rows is None else self.rows], "bool"),
            )
        )

    def compute(
        self, indices: te.Tensor, values: te.Tensor, shape: te.Tensor, default: te.Tensor
    ) -> list[te.Tensor]:
        if self.rows is None:
            raise only_interpreted("sparse_fill_empty_rows", "dense_shape")
        room = indices.shape[0] + self.rows
        shapes = (room, indices.shape[1]), (room,), (self.rows,)
        result = topi.sparse_fill_empty_rows(indices, values, shape, default, *shapes)
        k = te.reduce_axis((0, room), name="k")
        filled = te.compute(
            (2,), lambda _: te.sum(te.if_then_else(result[0][k, 0] >= 0, 1, 0).astype("int64"), axis=k), name="sizes"
        )
        return [*result, filled]

    def reference(
        self, indices: np.ndarray, values: np.ndarray, shape: np.ndarray, default: np.ndarray
    ) -> Sequence[np.ndarray]:
        rows = int(shape[0])
        room = len(indices) + rows - len(set(indices[:, 0].tolist()) & set(range(rows)))
        shapes = (room, indices.shape[1]), (room,), (rows,)
        return OPERATORS["sparse_fill_empty_rows"].reference(indices, values, shape, default, *shapes)


@calls("sparse_fill_empty_rows")
def sparse_fill_empty_rows(
    sparse_indices: Expr, sparse_values: Expr, dense_shape: Expr, default_value: Expr
) -> TupleWrapper:
    """The matrix with `default_value` in every empty row: indices, values, and which rows were empty."""
    rows = int(dense_shape.data[0]) if isinstance(dense_shape, Constant) else None
    inputs = sparse_indices, sparse_values, dense_shape, default_value
    result: TupleWrapper = make("sparse_fill_empty_rows", *inputs, rows=rows)
    return result
