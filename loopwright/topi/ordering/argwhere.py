"""argwhere: the indices of the elements that are not zero, in row-major order."""

from __future__ import annotations

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, as_expr, cast
from loopwright.ir.intrinsics import all as all_of
from loopwright.ir.ir_builder import create
from loopwright.ir.operators import logical_not
from loopwright.runtime.dtype import DataType
from loopwright.te.tags import default_tag
from loopwright.topi.errors import InvalidShapeError
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


def _found(op: str, condition: te.Tensor, rows: Expr, with_count: bool) -> list[te.Tensor]:
    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        source, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        filled = ib.allocate(str(rows.dtype), (1,), name="filled", scope="local")
        filled[0] = 0
        with ib.for_range(0, product(condition.shape), "flat") as flat:
            at = unravelled(flat, condition.shape)
            with ib.if_scope(all_of(_is_set(source[tuple(at)]), filled[0] < rows)):
                for axis, index in enumerate(at):
                    out[filled[0], axis] = cast(index, DataType("int32"))
                filled[0] = filled[0] + 1
        with ib.for_range(filled[0], rows, "row") as row:
            for axis in range(condition.ndim):
                out[row, axis] = -1
        if with_count:
            ib.buffer_ptr(outs[1])[0] = cast(filled[0], DataType("int32"))
        return ib.get()

    shapes: list[Shape] = [(rows, condition.ndim), (1,)] if with_count else [(rows, condition.ndim)]
    result = te.extern(shapes, [condition], body, name=op, dtype=["int32"] * len(shapes), tag=default_tag(op))
    return list(result) if with_count else [result]


def _is_set(value: Expr) -> Expr:
    return value if value.dtype.kind == "bool" else logical_not(value.equal(0))
