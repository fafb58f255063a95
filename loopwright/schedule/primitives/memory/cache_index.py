"""cache_index: index arithmetic is done once, before the block, and looked up in it.

    for i, j in T.grid(8, 8):              →     for ax0 in range(8):
        with T.block("B"):                           with T.block("index_0"): index_var_0[v0] = v0 * 3 // 4
            B[vi, vj] = A[vi * 3 // 4, vj]       for i, j in T.grid(8, 8):
                                                     with T.block("B"): B[vi, vj] = A[index_var_0[vi], vj]

Each index of a load that is more than an axis or a number is written down for all values of the axes it depends on.
Reason (no proof can follow an index that is data): the new buffers are written in front of the nest and by nobody else,
at the cell that the same axes read, with the very expression they replace; so every index has the value it had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopwright.arith import Analyzer
from loopwright.arith.index_arithmetic import in_64_bits
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    IterType,
    IterVar,
    Node,
    Rewriter,
    Stmt,
    Var,
    any_node,
    cell_region,
    decl_buffer,
    deep,
    pre_order_visit,
    structural_equal,
    substitute,
    uses_var,
)
from loopwright.runtime.dtype import INT64, DataType
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.schedule.handles import block_key
from loopwright.schedule.rewrite.bindings import TRUE
from loopwright.schedule.rewrite.blocks import is_leaf
from loopwright.schedule.rewrite.buffers import check_scope
from loopwright.schedule.rewrite.edits import Edits
from loopwright.schedule.rewrite.insertion_points import doing_in
from loopwright.schedule.rewrite.nests import nest_over
from loopwright.schedule.rewrite.regions import axis_place, axis_room
from loopwright.schedule.rewrite.windows import region_in
from loopwright.schedule.step import BlockResult, Proof, Step
from loopwright.schedule.view import View


@dataclass
class _Index:
    """An index expression, how often it comes up, and the buffer that shall hold its values."""

    value: Expr
    axes: list[IterVar]
    count: int = 1
    buffer: Buffer | None = None


def cache_index(view: View, block: BlockRealize, storage_scope: str, cse_thresh: int = 0) -> Step:
    """Compute the indices of the loads of `block` before it, those that come up more than `cse_thresh` times."""
    check_scope("cache_index", storage_scope, block)
    if isinstance(cse_thresh, bool) or not isinstance(cse_thresh, int) or cse_thresh < 0:
        raise BadStepArgument("cache_index", f"cse_thresh is {cse_thresh!r}", block, "give a count of at least 0")
    path = view.block_path(block_key(block.block))
    if len(path) == 1 or not is_leaf(block.block):
        raise NotSupported("cache_index", f"block {block.block.name_hint!r} has blocks inside", block)
    chosen = [index for index in _indices(block.block) if index.count > cse_thresh]
    if not chosen:
        return Step(view.function, Proof.ORDER_KEPT, several=True, at=block)

    scope = view.scope_of(path)
    edits = Edits()
    nests: list[Stmt] = []
    result: list[Block] = []
    used = set(view.block_names())
    for index in chosen:
        number = next(k for k in range(len(used) + 1) if f"index_{k}" not in used)
        used.add(f"index_{number}")
        shape = [axis_room(axis) for axis in index.axes]
        index.buffer = decl_buffer(shape, _stored_type(index), f"index_var_{number}", scope=storage_scope)
        nest, filled = _filled(f"index_{number}", index)
        nests.append(nest)
        result.append(filled)
    around = len(view.block_path(block_key(scope.block)))
    edits.before[path[doing_in(path, around, chosen[0].buffer or _nothing())]] = nests
    edits.replaced[block] = _looked_up(block, chosen)
    edits.allocated[scope] = [index.buffer for index in chosen if index.buffer is not None]
    return Step(
        edits.apply(view.function),
        Proof.GIVEN,
        results=[BlockResult(block_key(item)) for item in result],
        several=True,
        at=block,
    )


def _stored_type(index: _Index) -> DataType:
    """The type of its own, or int64 where that may not hold every value: an index is exact, and memory is not."""
    facts = Analyzer.over({axis.var: axis.dom for axis in index.axes if axis.dom is not None})
    low, high = facts.interval(index.value)
    dtype = index.value.dtype
    return dtype if dtype.lowest <= low and high <= dtype.highest else INT64


def _stored(value: Expr, buffer: Buffer) -> Expr:
    return value if value.dtype is buffer.dtype else in_64_bits(value)


def _nothing() -> Buffer:
    return decl_buffer((1,), "int32", "nothing")


def _indices(block: Block) -> list[_Index]:
    """The indices of loads that only depend on axes, each once; arithmetic that could fail elsewhere is left alone."""
    axes = {axis.var: axis for axis in block.iter_vars if axis.dom is not None}
    result: list[_Index] = []

    def look(node: Node) -> None:
        if not isinstance(node, BufferLoad):
            return
        for value in node.indices:
            if isinstance(value, (Var, IntImm)) or value.dtype.lanes != 1 or not _is_plain(value, axes):
                continue
            known = next((index for index in result if structural_equal(index.value, value)), None)
            if known is not None:
                known.count += 1
                continue
            used = [axis for var, axis in axes.items() if uses_var(value, {var}.__contains__)]
            if used:
                result.append(_Index(value, used))

    pre_order_visit(block.body, look)
    return result


def _is_plain(value: Expr, axes: dict[Var, IterVar]) -> bool:
    """Whether the value is arithmetic on axes that has a result everywhere."""

    def is_other(node: Node) -> bool:
        if isinstance(node, (FloorDiv, FloorMod)):
            return not isinstance(node.b, IntImm) or node.b.value == 0
        if isinstance(node, Var):
            return node not in axes
        return isinstance(node, Expr) and type(node).__name__ not in _ARITHMETIC

    return not any_node(value, is_other)


_ARITHMETIC = ("Add", "Sub", "Mul", "FloorDiv", "FloorMod", "Min", "Max", "Var", "SizeVar", "IntImm", "Cast")


def _filled(name: str, index: _Index) -> tuple[Stmt, Block]:
    """The nest that writes down an index for all values of its axes, and its block."""
    assert index.buffer is not None
    inside = {axis.var: Var(f"v{k}", axis.var.dtype) for k, axis in enumerate(index.axes)}
    cell = [axis_place(axis, inside[axis.var]) for axis in index.axes]
    block = Block(
        tuple([IterVar(axis.dom, inside[axis.var], IterType.DataPar) for axis in index.axes]),
        (),
        (cell_region(index.buffer, cell),),
        name,
        BufferStore(index.buffer, _stored(substitute(index.value, inside), index.buffer), cell),
    )
    loops = [Var(f"ax{k}", axis.var.dtype) for k, axis in enumerate(index.axes)]
    starts = [axis.dom.min for axis in index.axes if axis.dom is not None]
    facts = Analyzer()
    values = tuple([facts.simplify(low + var) for low, var in zip(starts, loops, strict=True)])
    extents = [axis.dom.extent for axis in index.axes if axis.dom is not None]
    return nest_over(loops, extents, BlockRealize(values, TRUE, block)), block


@deep
def _looked_up(realize: BlockRealize, chosen: Sequence[_Index]) -> BlockRealize:
    block = realize.block
    rewriter = _LookUp(chosen)
    new = block.with_(body=rewriter.visit(block.body))
    reads = [region_in(new, region.buffer, writes=False) or region for region in block.reads]
    known = {region.buffer for region in reads}
    added = [region_in(new, index.buffer) for index in chosen if index.buffer is not None and index.buffer not in known]
    return realize.with_(block=new.with_(reads=(*reads, *[region for region in added if region is not None])))


class _LookUp(Rewriter):
    def __init__(self, chosen: Sequence[_Index]) -> None:
        self.chosen = chosen

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        return load.with_(indices=tuple([self._index(index) for index in load.indices]))

    def _index(self, value: Expr) -> Expr:
        for index in self.chosen:
            if index.buffer is not None and structural_equal(index.value, value):
                return BufferLoad(index.buffer, tuple([axis_place(axis, axis.var) for axis in index.axes]))
        result: Expr = self.visit(value)
        return result
