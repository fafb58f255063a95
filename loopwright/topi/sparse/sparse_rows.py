"""sparse_fill_empty_rows and sparse_reshape: matrices given as lists of indices and values, as TensorFlow has them."""

from __future__ import annotations

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, as_expr, cast, const
from loopwright.ir.intrinsics import minimum, select
from loopwright.ir.ir_builder import create
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.topi.parts.sizes import check_rank, check_same
from loopwright.topi.registry import operator
from loopwright.topi.testing import sparse as meaning
from loopwright.topi.types import Shape

_LONG = DataType("int64")


@operator(reference=meaning.sparse_fill_empty_rows, samples=meaning.sparse_fill_empty_rows_samples)
def sparse_fill_empty_rows(
    sparse_indices: te.Tensor,
    sparse_values: te.Tensor,
    dense_shape: te.Tensor,
    default_value: te.Tensor,
    new_sparse_indices_shape: Shape,
    new_sparse_values_shape: Shape,
    empty_row_indicator_shape: Shape,
) -> list[te.Tensor]:
    """[indices, values, is_empty]: the same matrix with `default_value` at column 0 of every row that has no value.

    `sparse_indices` (values, rank) are ordered by row. The shapes are those of the results, with room for all values
    and one more a row; rows behind the last one are -1, values 0. `is_empty` says which rows had none.
    """
    op = "sparse_fill_empty_rows"
    check_rank(op, "sparse_indices", sparse_indices, "(values, rank)", 2)
    check_rank(op, "sparse_values", sparse_values, "(values)", 1)
    count, rank = sparse_indices.shape
    kind = sparse_indices.dtype
    room = as_expr(new_sparse_indices_shape[0])
    for what, one, other in (
        ("values", count, sparse_values.shape[0]),
        ("indices of a value", rank, new_sparse_indices_shape[1]),
        ("room for values", room, new_sparse_values_shape[0]),
    ):
        check_same(op, what, ("one tensor", one), ("another", other))
    for axis in range(default_value.ndim):
        check_same(op, "a default value", ("it", default_value.shape[axis]), ("one number", as_expr(1)))

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        index, value, _, default, new_index, new_value, is_empty = [ib.buffer_ptr(buffer) for buffer in (*ins, *outs)]
        room, rows = outs[0].shape[0], outs[2].shape[0]
        used = ib.allocate(str(count.dtype), (2,), name="taken", scope="local")  # of the old list, of the new one
        used[0] = 0
        used[1] = 0
        with ib.for_range(0, rows, "row") as row:
            before = ib.let("before", used[0])
            with ib.while_loop(te.all(used[0] < count, index[minimum(used[0], count - 1), 0] <= cast(row, kind))):
                with ib.if_scope(used[1] < room):
                    with ib.for_range(0, rank, "k") as k:
                        new_index[used[1], k] = index[used[0], k]
                    new_value[used[1]] = value[used[0]]
                used[0] = used[0] + 1
                used[1] = used[1] + 1
            is_empty[row] = before.equal(used[0])
            with ib.if_scope(te.all(before.equal(used[0]), used[1] < room)):
                with ib.for_range(0, rank, "k") as k:
                    new_index[used[1], k] = select(k.equal(0), cast(row, kind), const(0, kind))
                new_value[used[1]] = default[(0,) * default_value.ndim]
                used[1] = used[1] + 1
        with ib.for_range(minimum(used[1], room), room, "i") as i:
            with ib.for_range(0, rank, "k") as k:
                new_index[i, k] = const(-1, kind)
            new_value[i] = const(0, sparse_values.dtype)
        return ib.get()

    shapes = [tuple(new_sparse_indices_shape), tuple(new_sparse_values_shape), tuple(empty_row_indicator_shape)]
    types = [str(kind), str(sparse_values.dtype), "bool"]
    inputs = [sparse_indices, sparse_values, dense_shape, default_value]
    result: list[te.Tensor] = te.extern(shapes, inputs, body, name=op, dtype=types, tag=default_tag(op))
    return result


@operator(reference=meaning.sparse_reshape, samples=meaning.sparse_reshape_samples)
def sparse_reshape(
    sparse_indices: te.Tensor,
    prev_shape: te.Tensor,
    new_shape: te.Tensor,
    new_sparse_indices_shape: Shape,
    new_shape_shape: Shape,
) -> list[te.Tensor]:
    """[indices, shape]: the places of the values when a tensor of `prev_shape` is taken for one of `new_shape`.

    One size of `new_shape` may be -1: what is left for it.
    """
    op = "sparse_reshape"
    check_rank(op, "sparse_indices", sparse_indices, "(values, rank)", 2)
    check_rank(op, "prev_shape", prev_shape, "(rank)", 1)
    check_rank(op, "new_shape", new_shape, "(rank)", 1)
    count, rank = sparse_indices.shape
    kind = sparse_indices.dtype
    for what, one, other in (
        ("values", count, new_sparse_indices_shape[0]),
        ("dimensions before", rank, prev_shape.shape[0]),
        ("dimensions", new_shape.shape[0], new_shape_shape[0]),
        ("dimensions", new_shape.shape[0], new_sparse_indices_shape[1]),
    ):
        check_same(op, what, ("one tensor", one), ("another", other))

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        index, old, wanted, new_index, shape = [ib.buffer_ptr(buffer) for buffer in (*ins, *outs)]
        new_rank: Expr = outs[1].shape[0]
        sizes = ib.allocate(
            "int64", (2,), name="sizes", scope="local"
        )  # of the old tensor, of what is known of the new
        sizes[0] = 1
        sizes[1] = 1
        with ib.for_range(0, rank, "k") as k:
            sizes[0] = sizes[0] * cast(old[k], _LONG)
        with ib.for_range(0, new_rank, "k") as k, ib.if_scope(cast(wanted[k], _LONG) >= const(0, _LONG)):
            sizes[1] = sizes[1] * cast(wanted[k], _LONG)
        with ib.for_range(0, new_rank, "k") as k:
            left = sizes[0] // select(sizes[1] > const(0, _LONG), sizes[1], const(1, _LONG))
            size = select(cast(wanted[k], _LONG) < const(0, _LONG), left, cast(wanted[k], _LONG))
            shape[k] = cast(size, new_shape.dtype)
        with ib.for_range(0, count, "i", kind="parallel") as i:
            location = ib.allocate("int64", (1,), name="place", scope="local")
            location[0] = 0
            with ib.for_range(0, rank, "k") as k:
                location[0] = location[0] * cast(old[k], _LONG) + cast(index[i, k], _LONG)
            with ib.for_range(0, new_rank, "k") as k:
                last = new_rank - 1 - k
                size = ib.let("size", cast(shape[last], _LONG))
                divisor = ib.let("divisor", select(size > const(0, _LONG), size, const(1, _LONG)))
                new_index[i, last] = cast(location[0] % divisor, kind)
                location[0] = location[0] // divisor
        return ib.get()

    shapes = [tuple(new_sparse_indices_shape), tuple(new_shape_shape)]
    inputs = [sparse_indices, prev_shape, new_shape]
    types = [str(kind), str(new_shape.dtype)]
    result: list[te.Tensor] = te.extern(shapes, inputs, body, name=op, dtype=types, tag=default_tag(op))
    return result
