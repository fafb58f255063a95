"""argwhere: the indices of the elements that are not zero, in row-major order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, as_expr, cast, const
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.intrinsics import select
from loopwright.ir.ir_builder import BufferVar, IRBuilder, create
from loopwright.ir.operators import logical_not
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.any_lane import BLOCK, any_lane
from loopwright.topi.parts.row_major import product
from loopwright.topi.parts.rows import unravelled
from loopwright.topi.parts.sizes import check_same
from loopwright.topi.registry import operator
from loopwright.topi.testing import sorting as meaning
from loopwright.topi.types import Shape


@operator(reference=meaning.argwhere, samples=meaning.argwhere_samples)
def argwhere(output_shape: te.Tensor | Shape, condition: te.Tensor) -> te.Tensor:
    """One row of int32 indices for each element of `condition` that is not zero; the number of rows may be a variable.

    `output_shape` is (rows, rank): elements past the last row are left out, and rows past the last element are -1.
    """
    op = "argwhere"
    shape = list(output_shape.shape if isinstance(output_shape, te.Tensor) else output_shape)
    if len(shape) != 2 or not 1 <= condition.ndim <= 5:
        raise InvalidShapeError(
            op,
            f"the condition has {condition.ndim} dimensions, the output {len(shape)}",
            "the condition has 1 to 5 dimensions, the output is (rows, dimensions of the condition)",
        )
    check_same(op, "indices of an element", ("the output", shape[1]), ("the condition", as_expr(condition.ndim)))
    return _found(op, condition, as_expr(shape[0]), with_count=False)[0]


@operator(reference=meaning.argwhere_padded, samples=meaning.argwhere_padded_samples)
def argwhere_padded(condition: te.Tensor) -> list[te.Tensor]:
    """[rows, count]: `argwhere` with room for every element, and how many rows were filled (one int32)."""
    return _found("argwhere_padded", condition, product(condition.shape), with_count=True)


def argwhere_cut(condition: te.Tensor, dtype: str) -> list[te.Tensor]:
    """The same for one who cuts the rows to those that were filled: the others are not written."""
    return _found("argwhere_cut", condition, product(condition.shape), with_count=True, dtype=dtype, pads=False)


def _found(
    op: str, condition: te.Tensor, rows: Expr, with_count: bool, dtype: str = "int32", pads: bool = True
) -> list[te.Tensor]:
    index = DataType(dtype)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        source, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        filled = ib.allocate("int64", (1,), name="filled", scope="local")
        filled[0] = const(0, "int64")

        def is_set(flat: Expr) -> Expr:
            return _is_set(source[tuple(unravelled(flat, condition.shape))])

        if with_count and condition.ndim:  # there is room for every element
            _list(ib, product(condition.shape), is_set, out, filled)
            if condition.ndim > 1:
                _unravel(ib, out, filled, condition.shape)
        else:
            with (
                ib.for_range(0, product(condition.shape), "flat") as flat,
                ib.if_scope(all_of(is_set(flat), filled[0] < rows)),
            ):
                for axis, at in enumerate(unravelled(flat, condition.shape)):
                    out[filled[0], axis] = cast(at, index)
                filled[0] = filled[0] + 1
        if pads:
            with ib.for_range(filled[0], rows, "row") as row:
                for axis in range(condition.ndim):
                    out[row, axis] = -1
        if with_count:
            ib.buffer_ptr(outs[1])[0] = cast(filled[0], DataType("int32"))
        return ib.get()

    shapes: list[Shape] = [(rows, condition.ndim), (1,)] if with_count else [(rows, condition.ndim)]
    types = [str(index), "int32"] if with_count else [str(index)]
    result = te.extern(shapes, [condition], body, name=op, dtype=types, tag=default_tag(op))
    return list(result) if with_count else [result]


def _list(ib: IRBuilder, size: Expr, is_set: Callable[[Expr], Expr], out: BufferVar, filled: BufferVar) -> None:
    """The places of the elements that are set, one after the other in the last column of `out`.

    Blocks without any are passed over. In others each place is written, and the next one over it unless its element is
    set: no branch hangs on what the values are.
    """
    # The counter has 64 bits: from many narrow ones in a row LLVM derives the bounds of addresses for minutes.
    last, one, none = out.asobject().shape[1] - 1, const(1, "int64"), const(0, "int64")

    def visit(flat: Expr) -> None:
        free = ib.let("free", filled[0])  # at most `flat`
        out[free, last] = cast(flat, out.dtype)
        filled[0] = free + select(is_set(flat), one, none)

    whole = size // BLOCK
    with ib.for_range(0, whole, "block") as block:
        is_any = any_lane(ib, lambda lane: is_set(block * BLOCK + lane))
        with ib.if_scope(is_any), ib.for_range(0, BLOCK, "lane") as lane:
            visit(block * BLOCK + lane)
    with ib.for_range(whole * BLOCK, size, "flat") as flat:
        visit(flat)


def _unravel(ib: IRBuilder, out: BufferVar, filled: BufferVar, shape: Sequence[Expr]) -> None:
    """From the place of an element, in the last column, its indices."""
    with ib.for_range(0, filled[0], "row") as row:
        flat = ib.let("flat", cast(out[row, len(shape) - 1], product(shape).dtype))
        for axis, index in enumerate(unravelled(flat, shape)):
            out[row, axis] = cast(index, out.dtype)


def _is_set(value: Expr) -> Expr:
    return value if value.dtype.kind == "bool" else logical_not(value.equal(0))
