"""scan: running sums and products along an axis.

    cumsum([1, 2, 3]) = [1, 3, 6]          exclusive: [0, 1, 3]

Every row along the axis is walked in order, from the first element to the last; the rows run in parallel. The loops are
those of `te/scan_loops.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, as_expr, cast
from loopwright.ir.ir_builder import create
from loopwright.ir.operators import add, mul
from loopwright.runtime.dtype import DataType
from loopwright.te.scan_loops import across_rows, along_rows, known, product, unravelled
from loopwright.te.tags import default_tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.lanes import vector_lanes
from loopwright.topi.parts.rows import check_axis
from loopwright.topi.registry import operator
from loopwright.topi.testing import scanning as meaning
from loopwright.topi.types import Scalar


@operator(reference=meaning.scanop, samples=meaning.scanop_samples)
def scanop(
    data: te.Tensor,
    binop: Callable[[Expr, Expr], Expr],
    identity_value: Scalar,
    op_name: str,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> te.Tensor:
    """Each element joined by `binop` with all before it along `axis`; of all elements in a line when `axis` is None.

    With `exclusive` an element is not part of its own result, and the first result is `identity_value`.
    """
    if not isinstance(data, te.Tensor):
        raise InvalidShapeError(op_name, f"the data is {type(data).__name__} {data!r}, not a tensor", None)
    kind = DataType(dtype or ("int32" if data.dtype.kind == "bool" else data.dtype))
    if axis is None:
        around, size, behind, shape = [], product(data.shape), [], [product(data.shape)]
    else:
        axis = check_axis(op_name, data, axis)
        around, size, behind, shape = (
            list(data.shape[:axis]), data.shape[axis], list(data.shape[axis + 1 :]), list(data.shape)
        )  # fmt: skip
    first = cast(as_expr(identity_value), kind)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        source, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])

        def element(index: Sequence[Expr]) -> Expr:
            indices = index if axis is not None else unravelled(index[0], data.shape)
            return cast(source[tuple(indices)], kind)

        def join(total: Expr, value: Expr) -> Expr:
            return cast(as_expr(binop(total, value)), kind)

        if known(product(shape)) == 0:
            return ib.get()
        if not behind or known(product(behind)) == 1:
            along_rows(ib, around, size, len(behind), element, out, join, first if exclusive else None)
        else:
            before, lanes = first if exclusive else None, vector_lanes(out.dtype)
            across_rows(ib, around, size, behind, element, out, join, before, lanes)
        return ib.get()

    result: te.Tensor = te.extern([shape], [data], body, name=op_name, dtype=str(kind), tag=default_tag(op_name))
    return result


@operator(reference=meaning.cumsum, samples=meaning.cumsum_samples)
def cumsum(
    data: te.Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None
) -> te.Tensor:
    """Running sums along `axis`, in `dtype` (that of the data; bool is counted in int32)."""
    return scanop(data, add, 0, "cumsum_generic", axis, dtype, exclusive)


@operator(reference=meaning.cumprod, samples=meaning.cumprod_samples)
def cumprod(
    data: te.Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None
) -> te.Tensor:
    """Running products along `axis`, in `dtype` (that of the data; bool is counted in int32)."""
    return scanop(data, mul, 1, "cumprod_generic", axis, dtype, exclusive)
