"""scan: running sums and products along an axis.

    cumsum([1, 2, 3]) = [1, 3, 6]          exclusive: [0, 1, 3]

Every row along the axis is walked in order, from the first element to the last; the rows run in parallel. Where the
axis is not the last one, whole lines of neighbouring rows go together, as they lie in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, as_expr, cast
from loopwright.ir.ir_builder import create
from loopwright.ir.operators import add, mul
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.row_major import product
from loopwright.topi.parts.rows import check_axis, unravelled
from loopwright.topi.parts.sizes import known
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
    # Rows apart from each other run in parallel; where there is but one such line, the rows within it do.
    is_split_behind = bool(behind) and known(product(around)) == 1

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        source, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ExitStack() as loops:
            first = unravelled(
                loops.enter_context(
                    ib.for_range(0, product(behind if is_split_behind else around), "line", kind="parallel")
                ),
                behind if is_split_behind else around,
            )
            i = loops.enter_context(ib.for_range(0, size, "i"))
            if is_split_behind:
                front, back = [as_expr(0)] * len(around), first
            else:
                front = first
                back = [
                    loops.enter_context(ib.for_range(0, extent, f"j{k}", kind="serial"))
                    for k, extent in enumerate(behind)
                ]

            def at(index: Expr) -> tuple[Expr, ...]:
                return (*front, index, *back)

            def element(index: Expr) -> Expr:
                indices = at(index) if axis is not None else tuple(unravelled(index, data.shape))
                return cast(source[indices], kind)

            with ib.if_scope(i.equal(0)):
                out[at(i)] = cast(as_expr(identity_value), kind) if exclusive else element(i)
            with ib.else_scope():
                out[at(i)] = cast(as_expr(binop(out[at(i - 1)], element(i - 1 if exclusive else i))), kind)
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
