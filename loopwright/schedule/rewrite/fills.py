"""Fills: cells of a buffer that hold no element are given a value, where the buffer's memory begins.

    for ax0 in range(12):
        with T.block("buffer_B_padding"):
            v0 = T.axis.spatial(12, ax0)
            T.where(10 <= ax0)
            B[v0] = 0

Here B has 10 elements and, padded, 12 cells.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.arith import Analyzer
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferStore,
    Expr,
    Node,
    PrimFunc,
    Range,
    Stmt,
    Var,
    cell_region,
    const,
    logical_or,
    seq,
    substitute,
)
from loopwright.schedule.rewrite.allocations import home_of
from loopwright.schedule.rewrite.nests import axis_from_zero, counters_over, nest_over
from loopwright.schedule.view import View


def cell_nest(
    name: str, buffer: Buffer, axes: Sequence[Var], outside: Sequence[Expr], body: Stmt, writes: bool = True
) -> Stmt:
    """A nest that does `body` for every cell, `axes`, where one of the conditions `outside` holds."""
    facts = Analyzer()
    for var, extent in zip(axes, buffer.shape, strict=True):
        facts.bind(var, Range.from_min_extent(const(0, var.dtype), extent))
    loops = counters_over(buffer.shape)
    conditions = logical_or(*[facts.simplify(condition) for condition in outside])
    region = cell_region(buffer, axes)
    iter_vars = [axis_from_zero(axis, extent) for axis, extent in zip(axes, buffer.shape, strict=True)]
    block = Block(tuple(iter_vars), () if writes else (region,), (region,) if writes else (), name, body)
    predicate = substitute(conditions, dict(zip(axes, loops, strict=True)))
    return nest_over(loops, buffer.shape, BlockRealize(tuple(loops), predicate, block))


def fill_nest(name: str, buffer: Buffer, axes: Sequence[Var], outside: Sequence[Expr], value: Expr) -> Stmt:
    """A nest that stores `value` in every cell where one of the conditions holds."""
    return cell_nest(name, buffer, axes, outside, BufferStore(buffer, value, list(axes)))


def first_in_home(step: str, view: View, buffer: Buffer, nest: Stmt, at: Node) -> PrimFunc:
    """The function with `nest` in front of everything that its buffer's memory is there for."""
    if any(buffer.data is argument.data for argument in view.function.argument_buffers()):
        root = view.root
        return view.replaced((root,), root.with_(block=root.block.with_(body=seq([nest, root.block.body]))))
    path = home_of(step, view, buffer, at).path
    last = path[-1]
    if isinstance(last, BlockRealize):
        return view.replaced(path, last.with_(block=last.block.with_(body=seq([nest, last.block.body]))))
    inner = last.body.body  # type: ignore[attr-defined]
    return view.replaced(path, last.with_(body=last.body.with_(body=seq([nest, inner]))))  # type: ignore[attr-defined]
