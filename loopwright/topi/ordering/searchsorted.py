"""searchsorted: where values belong in a row that is in order."""

from __future__ import annotations

from typing import Final

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, cast, const
from loopwright.ir.intrinsics import ceildiv, maximum, minimum, select
from loopwright.ir.ir_builder import create
from loopwright.ir.operators import logical_not
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.ordering.merge_sort import before
from loopwright.topi.parts.choices import UnsuitableType
from loopwright.topi.parts.lanes import vector_lanes
from loopwright.topi.parts.row_major import product
from loopwright.topi.parts.rows import check_axis, unravelled
from loopwright.topi.parts.sizes import check_same
from loopwright.topi.registry import operator
from loopwright.topi.testing import sorting as meaning

_VECTORS: Final = 2  # of values that are searched for at a time: what one waits for memory, the other uses


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
        total = product(values.shape)
        together = _VECTORS * vector_lanes(size.dtype)

        def at(flat: Expr) -> tuple[Expr, ...]:
            return tuple(unravelled(minimum(flat, total - 1), values.shape))

        def is_passed(value: Expr, flat: Expr, location: Expr) -> Expr:
            """Whether that element of the sequence comes before the value."""
            around = () if is_shared else at(flat)[:-1]
            element = sequence[(*around, minimum(maximum(location, 0), size - 1))]
            return logical_not(comes_before(value, element)) if right else comes_before(element, value)

        # Several values at a time, none of which waits for what another finds, and in lanes: of scalars LLVM makes
        # branches where a comparison selects, and here they could not be foreseen.
        with ib.for_range(0, ceildiv(total, together), "group", kind="parallel") as group:
            first = ib.let("first", group * together)
            passed = ib.allocate(size.dtype, (together,), name="passed", scope="local")
            rest = ib.allocate(size.dtype, (1,), name="rest", scope="local")  # of the sequence, for each of them
            rest[0] = size
            own = ib.allocate(values.dtype, (together,), name="own", scope="local")
            with ib.for_range(0, together, "lane", kind="unroll") as lane:
                own[lane] = wanted[at(first + lane)] if values.ndim else wanted[()]
                passed[lane] = const(0, size.dtype)
            with ib.while_loop(rest[0] > 0):
                half = ib.let("half", (rest[0] + 1) // 2)
                with ib.for_range(0, together, "lane", kind="vectorize") as lane:
                    found = is_passed(own[lane], first + lane, passed[lane] + half - 1)
                    passed[lane] = passed[lane] + select(found, half, const(0, size.dtype))
                rest[0] = rest[0] - half
            with ib.for_range(0, together, "lane") as lane, ib.if_scope(first + lane < total):
                out[at(first + lane)] = cast(passed[lane], DataType(out_dtype))
        return ib.get()

    result: te.Tensor = te.extern(
        values.shape, [sorted_sequence, values], body, name=op, dtype=out_dtype, tag=default_tag(op)
    )
    return result
