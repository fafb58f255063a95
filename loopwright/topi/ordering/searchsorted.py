"""searchsorted: where values belong in a row that is in order."""

from __future__ import annotations

from loopwright import te
from loopwright.ir import Buffer, Stmt, cast
from loopwright.ir.ir_builder import create
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.ordering.merge_sort import before
from loopwright.topi.parts.choices import UnsuitableType
from loopwright.topi.parts.row_major import product
from loopwright.topi.parts.rows import check_axis, unravelled
from loopwright.topi.parts.sizes import check_same
from loopwright.topi.registry import operator
from loopwright.topi.testing import sorting as meaning


@operator(reference=meaning.searchsorted, samples=meaning.searchsorted_samples)
def searchsorted(
    sorted_sequence: te.Tensor, values: te.Tensor, right: bool = False, out_dtype: str = "int64"
) -> te.Tensor:
    """For each of `values`, how many elements of the ascending row come before it (with `right`, or are equal to it).

    A sequence of one dimension serves all values; otherwise its last axis is searched, and the axes before it are those
    of the values. NaN counts as greater than every number.
    """
    op = "searchsorted"
    check_axis(op, sorted_sequence, -1)
    if not DataType(out_dtype).is_int:
        raise UnsuitableType(op, f"out_dtype {out_dtype} holds no places", "ask for int32 or int64")
    if sorted_sequence.dtype is not values.dtype:
        raise UnsuitableType(
            op, f"the sequence is made of {sorted_sequence.dtype}, the values of {values.dtype}", "cast one of them"
        )
    is_shared = sorted_sequence.ndim == 1
    if not is_shared:
        if sorted_sequence.ndim != values.ndim:
            raise InvalidShapeError(
                op,
                f"the sequence has {sorted_sequence.ndim} dimensions, the values {values.ndim}",
                "give one sequence for all values, or one for each row of them",
            )
        for axis in range(values.ndim - 1):
            one, other = ("the sequence", sorted_sequence.shape[axis]), ("the values", values.shape[axis])
            check_same(op, f"dimension {axis}", one, other)
    size = sorted_sequence.shape[-1]
    comes_before = before(values.dtype, True)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        sequence, wanted, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, product(values.shape), "flat", kind="parallel") as flat:
            at = unravelled(flat, values.shape)
            value = ib.let("value", wanted[tuple(at)] if at else wanted[()])
            bounds = ib.allocate(str(size.dtype), (2,), name="bounds", scope="local")
            bounds[0] = 0
            bounds[1] = size
            with ib.while_loop(bounds[0] < bounds[1]):
                middle = ib.let("middle", (bounds[0] + bounds[1]) // 2)
                around = () if is_shared else tuple(at[:-1])
                result = ib.let("found", sequence[(*around, middle)])
                # Invariant: all below bounds[0] come before the value, none from bounds[1] on does.
                with ib.if_scope(comes_before(value, result) if right else comes_before(result, value)):
                    bounds[int(right)] = middle if right else middle + 1
                with ib.else_scope():
                    bounds[1 - int(right)] = middle + 1 if right else middle
            out[tuple(at)] = cast(bounds[0], DataType(out_dtype))
        return ib.get()

    result: te.Tensor = te.extern(
        values.shape, [sorted_sequence, values], body, name=op, dtype=out_dtype, tag=default_tag(op)
    )
    return result
