"""unique: the different values of a vector, where each is first found, and which of them every element is."""

from __future__ import annotations

from loopwright import te
from loopwright.ir import Buffer, Stmt, cast, const
from loopwright.ir.intrinsics import any as any_of
from loopwright.ir.intrinsics import if_then_else
from loopwright.ir.ir_builder import create
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.te.tensor import shape_text
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.ordering.merge_sort import before
from loopwright.topi.ordering.sort_row import sort_row
from loopwright.topi.parts.rows import check_axis
from loopwright.topi.registry import operator
from loopwright.topi.testing import sorting as meaning


@operator(reference=meaning.unique, samples=meaning.unique_samples)
def unique(data: te.Tensor, is_sorted: bool = True, return_counts: bool = False) -> list[te.Tensor]:
    """[values, first_indices, inverse, num_unique] and, with `return_counts`, how often each value stands there.

    All but `num_unique` (one int32) have the length of the data; values, first indices and counts are zero from
    `num_unique` on. The values ascend, or stand as they first appear unless `is_sorted`. NaNs count as one value.
    """
    check_axis("unique", data, 0)
    if data.ndim != 1:
        raise InvalidShapeError("unique", f"the data has shape {shape_text(data.shape)}", "give a vector")
    size = data.shape[0]
    index = DataType("int32")
    comes_before = before(data.dtype, True)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        source = ib.buffer_ptr(ins[0])
        values, first, inverse, number, *counted = [ib.buffer_ptr(out) for out in outs]
        in_order = sort_row(ib, size, size, lambda i: source[i], data.dtype, True)
        # Equal elements stand side by side, the earliest first. To keep the order in which values appear, each element
        # learns the place of the earliest one like it.
        like = ib.allocate(str(size.dtype), (1 if is_sorted else size,), name="like")
        group = ib.allocate(str(size.dtype), (1,), name="group", scope="local")
        total = ib.allocate("int32", (1,), name="total", scope="local")
        total[0] = 0
        with ib.for_range(0, size, "i") as i:
            values[i] = const(0, data.dtype)
            first[i] = 0
            for counts in counted:
                counts[i] = 0

        with ib.for_range(0, size, "i") as i:
            is_new = any_of(i < 1, comes_before(in_order.key(if_then_else(i > 0, i - 1, 0)), in_order.key(i)))
            with ib.if_scope(is_new):
                if not is_sorted:
                    group[0] = in_order.place(i)
                else:
                    values[total[0]] = in_order.key(i)
                    first[total[0]] = cast(in_order.place(i), index)
                    total[0] = total[0] + 1
            if not is_sorted:
                like[in_order.place(i)] = group[0]
            else:
                inverse[in_order.place(i)] = total[0] - 1
                for counts in counted:
                    counts[total[0] - 1] = counts[total[0] - 1] + 1
        if not is_sorted:
            with ib.for_range(0, size, "i") as i:
                with ib.if_scope(like[i].equal(i)):
                    values[total[0]] = source[i]
                    first[total[0]] = cast(i, index)
                    inverse[i] = total[0]
                    total[0] = total[0] + 1
                with ib.else_scope():
                    inverse[i] = inverse[like[i]]
                for counts in counted:
                    counts[inverse[i]] = counts[inverse[i]] + 1
        number[0] = total[0]
        return ib.get()

    shapes = [(size,), (size,), (size,), (1,), *([(size,)] if return_counts else [])]
    types = [str(data.dtype), *["int32"] * (len(shapes) - 1)]
    result: list[te.Tensor] = te.extern(shapes, [data], body, name="unique", dtype=types, tag=default_tag("unique"))
    return result
