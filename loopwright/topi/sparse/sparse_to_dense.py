"""sparse_to_dense: a tensor of one value, but for a list of elements.

sparse_to_dense([[0, 1], [2, 2]], (3, 3), [5, 6])    5 at [0, 1], 6 at [2, 2], else 0
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, as_expr, ir_builder
from loopwright.ir.intrinsics import all as all_of
from loopwright.te.tensor import shape_text
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.movement.indexing import place, places_of
from loopwright.topi.parts.sizes import one_size, simplify
from loopwright.topi.registry import Sample, operator
from loopwright.topi.samples import TYPES, numbers
from loopwright.topi.types import Dim, Scalar, Shape


def _reference(
    sparse_indices: np.ndarray,
    output_shape: Sequence[int],
    sparse_values: np.ndarray,
    default_value: np.ndarray | float = 0,
) -> np.ndarray:
    result = np.full(output_shape, default_value, np.asarray(sparse_values).dtype)
    rows = sparse_indices.reshape(-1, len(output_shape)) if sparse_indices.ndim != 1 else sparse_indices[:, None]
    for row, value in zip(rows, np.broadcast_to(sparse_values, (len(rows),)), strict=True):
        if all(0 <= k < size for k, size in zip(row, output_shape, strict=True)):
            result[tuple(row)] = value
    return result


def _samples() -> Iterator[Sample]:
    pairs = np.array([[0, 1], [2, 2], [1, 9]], "int32")
    yield Sample((pairs, (3, 4), numbers((3,), seed=1)))
    yield Sample((pairs, (3, 4), numbers((), seed=1)), {"default_value": 2.5})
    yield Sample((np.array([1, 4], "int64"), (5,), numbers((2,), seed=1), numbers((), seed=2)))
    yield Sample((np.array(3, "int32"), (5,), numbers((), seed=1)))
    yield Sample((np.zeros((0, 2), "int64"), (3, 2), numbers((0,))))
    for dtype in TYPES:
        yield Sample((np.array([1, 4], "int32"), (5,), numbers((2,), dtype, 1)))


@operator(reference=_reference, samples=_samples)
def sparse_to_dense(
    sparse_indices: te.Tensor, output_shape: Shape, sparse_values: te.Tensor, default_value: Scalar = 0
) -> te.Tensor:
    """The tensor of `output_shape` with `sparse_values` at `sparse_indices`, one row an element, else `default_value`.

    One index is a tensor of rank 0, indices of a vector one of rank 1; one value may stand at all places. Elements
    whose place lies outside are left out.
    """
    op = "sparse_to_dense"
    places_of(op, sparse_indices)
    shape = [simplify(size) for size in output_shape]
    rank = sparse_indices.ndim
    columns = sparse_indices.shape[1] if rank == 2 else as_expr(1)
    alone = sparse_values.ndim == 0
    unequal = rank > 0 and not alone and not one_size(sparse_indices.shape[0], sparse_values.shape[0])
    if rank > 2 or sparse_values.ndim > min(rank, 1) or not one_size(columns, len(shape)) or unequal:
        raise InvalidShapeError(
            op,
            f"indices {shape_text(sparse_indices.shape)} and values {shape_text(sparse_values.shape)} do not make "
            f"elements of a tensor of shape {shape_text(shape)}",
            "indices have one row for each value, with one column a dimension",
        )
    count = sparse_indices.shape[0] if rank else as_expr(1)
    given = [default_value] if isinstance(default_value, te.Tensor) else []

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = ir_builder.create()
        where, values, *defaults = (ib.buffer_ptr(buffer) for buffer in ins)
        out = ib.buffer_ptr(outs[0])
        default = defaults[0][()] if defaults else as_expr(default_value)
        with ExitStack() as loops:
            index = tuple(loops.enter_context(ib.for_range(0, size, f"i{k}")) for k, size in enumerate(shape))
            out[index] = default.astype(sparse_values.dtype)
        with ib.for_range(0, count, "row") as row:
            at: list[Expr] = []
            for k in range(len(shape)):
                entry: tuple[Dim, ...] = ((row, k), (row,), ())[2 - rank]
                at.append(ib.let(f"p{k}", place(where[entry])))
            inside = [check for value, size in zip(at, shape, strict=True) for check in (value >= 0, value < size)]
            with ib.if_scope(all_of(*inside)):
                out[tuple(at)] = values[() if alone else (row,)]
        return ib.get()

    result: te.Tensor = te.extern(
        tuple(shape), [sparse_indices, sparse_values, *given], body, name="T_sparse_to_dense", dtype=sparse_values.dtype
    )
    return result
