"""The nests of a function: the parts right below its root, each a kernel of its own."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.analysis.thread_axes import uses
from loopwright.autosched.program import Entry
from loopwright.ir import BlockRealize, For, ForKind, IterType, PrimFunc, SeqStmt, Stmt, collect_statements


def nest_of(function: PrimFunc, entry: Entry) -> Stmt | None:
    """The nest around a block; None when the function is no root block with others inside."""
    body = function.body
    if not isinstance(body, BlockRealize) or body.block.iter_vars:
        return None
    inside = body.block.body
    for part in inside.seq if isinstance(inside, SeqStmt) else (inside,):
        if any(realize is entry.realize for realize in collect_statements(part, BlockRealize)):
            return part
    return None


def length_of_nest(nest: Stmt, pending: Sequence[Entry]) -> int:
    """How many of the first pending blocks stand in it."""
    inside = set(collect_statements(nest, BlockRealize))
    length = 0
    while length < len(pending) and pending[length].realize in inside:
        length += 1
    return length


def independent_loops(nest: Stmt) -> list[For]:
    """The outer loops that stand right inside each other, up to the first one of a reduction."""
    reduced = {
        value
        for realize in collect_statements(nest, BlockRealize)
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
        if axis.iter_type is IterType.CommReduce
    }
    result: list[For] = []
    while isinstance(nest, For) and nest.kind in (ForKind.SERIAL, ForKind.PARALLEL):
        if any([uses(value, {nest.loop_var}) for value in reduced]):
            break
        result.append(nest)
        nest = nest.body
    return result
