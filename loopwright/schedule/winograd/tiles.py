"""The blocks of a convolution by winograd, from the transformed weights to the result.

    data_wide[n, h, w, c]                      the data with channels last, and zeros where the last tiles stick out
    weight_winograd[a, b, c, f] = G g Gᵀ       by columns (weight_winograd_1), then by rows
    data_winograd[a, b, n, th, tw, c] = Bᵀ d B
    out_winograd[a, b, n, th, tw, f] += data_winograd[a, b, n, th, tw, c] * weight_winograd[a, b, c, f]
    out_tiles[n, h, w, f] = Aᵀ m A
    out[n, f, h, w] = out_tiles[n, h, w, f]    the old block

a, b are positions in a tile of the transformed numbers, th and tw count tiles. For each pair (a, b) the sums are an
ordinary product of matrices. Each transform goes along one dimension at a time; its row is chosen by the position,
which is a number where the loop over it is unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from loopwright.arith import Analyzer
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    IterType,
    IterVar,
    Rewriter,
    Select,
    Stmt,
    Var,
    cast,
    const,
    logical_and,
    seq,
    substitute,
)
from loopwright.ir.intrinsics import if_then_else
from loopwright.schedule.handles import BlockKey, block_key
from loopwright.schedule.rewrite.bindings import TRUE
from loopwright.schedule.rewrite.buffers import fresh_buffer
from loopwright.schedule.rewrite.nests import axis_from_zero, nest_over
from loopwright.schedule.rewrite.windows import region_in
from loopwright.schedule.view import View
from loopwright.schedule.winograd.convolution import Convolution, load_of
from loopwright.schedule.winograd.linear_forms import rows_of
from loopwright.schedule.winograd.matrices import Matrix, Transforms


class _Axis(NamedTuple):
    """An axis of a new block."""

    name: str
    extent: Expr
    is_reduce: bool = False


Values = Sequence[Expr]


@dataclass
class Tiles:
    """The nests in order, their buffers, and their blocks; the last nest is the old block's."""

    statements: list[Stmt] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)  # the new ones
    last_key: BlockKey = ""  # of the old block, whose first axis may have been one of the reduction

    def as_one(self) -> Stmt:
        """All nests, one after the other."""
        return seq(self.statements)


def tiles_of(view: View, conv: Convolution, matrices: Sequence[Transforms]) -> Tiles:
    """Everything that takes the place of the convolution's nest; `matrices` has one row for each window."""
    return _Builder(view, conv, matrices).build()


class _Builder:
    def __init__(self, view: View, conv: Convolution, matrices: Sequence[Transforms]) -> None:
        self.view, self.conv, self.matrices = view, conv, matrices
        self.made = Tiles()
        self.out = conv.store.buffer
        loops = view.loops_of(block_key(conv.realize.block))
        axes = conv.realize.block.iter_vars
        self.names = {axis.var: loop.loop_var.name for axis, loop in zip(axes, loops, strict=True)}
        self.groups, self.batch, self.inputs, self.outputs = (
            [self._same(axis) for axis in axes] for axes in (conv.groups, conv.batch, conv.inputs, conv.outputs)
        )
        self.counts = [-(-window.places // item.tile) for window, item in zip(conv.windows, matrices, strict=True)]
        self.rank = len(matrices)

    def build(self) -> Tiles:
        weight = self._weight()
        data = self._data(self._wide())
        result = self._result(self._product(data, weight))
        self._copy(result)
        return self.made

    # --- axes -----------------------------------------------------------------------------------------------------

    def _same(self, axis: IterVar) -> _Axis:
        assert axis.dom is not None
        return _Axis(self.names[axis.var], axis.dom.extent)

    def _place(self, k: int) -> str:
        return self.names[self.conv.windows[k].place.var]

    def _positions(self, first: int = 0) -> list[_Axis]:
        return [_Axis(f"a{k}", const(self.matrices[k].size)) for k in range(first, self.rank)]

    def _tiles(self, first: int = 0) -> list[_Axis]:
        return [_Axis(f"{self._place(k)}_tile", const(self.counts[k])) for k in range(first, self.rank)]

    def _cells(self, last: int, halo: bool) -> list[_Axis]:
        """Places of the data or of the result, in all tiles of the first `last` dimensions."""
        result = []
        for k in range(last):
            item = self.matrices[k]
            size = self.counts[k] * item.tile + (item.window - 1 if halo else 0)
            result.append(_Axis(self._place(k), const(size)))
        return result

    # --- the blocks -----------------------------------------------------------------------------------------------

    def _wide(self) -> Buffer:
        conv = self.conv
        axes = [*self.groups, *self.batch, *self._cells(self.rank, halo=True), *self.inputs]
        name = f"{load_of(conv.data).buffer.name}_wide"
        first = len(self.groups) + len(self.batch)

        def value(at: Values) -> Expr:
            locations = at[first : first + self.rank]
            known = dict(zip(_vars(conv.groups, conv.batch), at, strict=False))
            known |= dict(zip(_vars(conv.inputs), at[first + self.rank :], strict=True))
            inside: list[Expr] = []
            for window, item, count, location in zip(conv.windows, self.matrices, self.counts, locations, strict=True):
                known |= {window.place.var: location, window.tap.var: _zero(window.tap.var)}
                if count * item.tile > window.places:  # what no result needs is not read
                    inside.append(location < const(window.places + window.taps - 1, location.dtype))
            known |= {var: _zero(var) for var in conv.single}
            element = _at(conv.data, known)
            return if_then_else(logical_and(*inside), element, const(0, element.dtype)) if inside else element

        return self._block(name, axes, value)

    def _weight(self) -> Buffer:
        conv = self.conv
        name = f"{load_of(conv.weight).buffer.name}_winograd"
        others = [*self.groups, *self.inputs, *self.outputs]
        variables = _vars(conv.groups, conv.inputs, conv.outputs)
        result: Buffer | None = None
        for k in reversed(range(self.rank)):
            taps = [_Axis(self.names[window.tap.var], const(window.taps)) for window in conv.windows[:k]]
            axes = [*taps, *self._positions(k), *others]
            before = result

            def value(at: Values, k: int = k, before: Buffer | None = before) -> Expr:
                def element(tap: int) -> Expr:
                    if before is not None:
                        return BufferLoad(before, (*at[:k], const(tap), *at[k + 1 :]))
                    locations = [*at[:k], const(tap)]
                    known = {w.tap.var: location for w, location in zip(conv.windows, locations, strict=True)}
                    known |= dict(zip(variables, at[k + 1 :], strict=True))
                    return _at(conv.weight, known | {var: _zero(var) for var in conv.single})

                return _chosen(at[k], self.matrices[k].weight, element)

            result = self._block(name if k == 0 else f"{name}_{k}", axes, value)
        assert result is not None
        return result

    def _data(self, wide: Buffer) -> Buffer:
        name = f"{load_of(self.conv.data).buffer.name}_winograd"
        around = len(self.groups) + len(self.batch)
        result = wide
        for k in reversed(range(self.rank)):
            outer = [*self.groups, *self.batch]
            # cells of the dimensions to come, tiles and positions of those that are done
            axes = [*outer, *self._cells(k, halo=True), *self._tiles(k), *self._positions(k), *self.inputs]
            if k == 0:
                axes = [*self._positions(), *outer, *self._tiles(), *self.inputs]
            before, tile = result, self.matrices[k].tile

            def value(at: Values, k: int = k, before: Buffer = before, tile: int = tile) -> Expr:
                done = self.rank - k
                if k == 0:  # positions come first there
                    at = [*at[done : 2 * done + around], *at[:done], *at[2 * done + around :]]
                outer, cells, rest = at[:around], at[around : around + k], at[around + k :]
                tiles, positions, inputs = rest[:done], rest[done : 2 * done], rest[2 * done :]

                def element(step: int) -> Expr:
                    cell = tiles[0] * tile + step if step else tiles[0] * tile
                    return BufferLoad(before, (*outer, *cells, cell, *tiles[1:], *positions[1:], *inputs))

                return _chosen(positions[0], self.matrices[k].data, element)

            result = self._block(name if k == 0 else f"{name}_{k}", axes, value)
        return result

    def _product(self, data: Buffer, weight: Buffer) -> Buffer:
        positions, outer = self._positions(), [*self.groups, *self.batch, *self._tiles()]
        reduced = [axis._replace(is_reduce=True) for axis in self.inputs]
        axes = [*positions, *outer, *self.outputs, *reduced]
        first, groups = self.rank + len(outer), len(self.groups)

        def value(at: Values) -> Expr:
            inputs = at[first + len(self.outputs) :]
            own, shared = at[: first + len(self.outputs)], at[: self.rank + groups]
            return BufferLoad(data, (*own[:first], *inputs)) * BufferLoad(weight, (*shared, *inputs, *own[first:]))

        return self._block(f"{self.out.name}_winograd", axes, value)

    def _result(self, product: Buffer) -> Buffer:
        result = product
        name = f"{self.out.name}_tiles"
        outer = [*self.groups, *self.batch]
        around = len(outer)
        for k in reversed(range(self.rank)):
            inside = [_Axis(f"{self._place(j)}_in", const(self.matrices[j].tile)) for j in range(k, self.rank)]
            axes = [*self._positions()[:k], *outer, *self._tiles(), *inside, *self.outputs]
            before = result

            def value(at: Values, k: int = k, before: Buffer = before) -> Expr:
                split = k + around + self.rank  # where the places inside tiles begin
                kept, rest = at[:k], at[k:split]
                inside, outputs = at[split : split + self.rank - k], at[split + self.rank - k :]

                def element(position: int) -> Expr:
                    return BufferLoad(before, (*kept, const(position), *rest, *inside[1:], *outputs))

                return _chosen(inside[0], self.matrices[k].result, element)

            if k > 0:
                result = self._block(f"{name}_{k}", axes, value)
                continue

            def cell(at: Values) -> Values:
                tiles, inside = at[around : around + self.rank], at[around + self.rank : around + 2 * self.rank]
                locations = [
                    tile * item.tile + offset for tile, offset, item in zip(tiles, inside, self.matrices, strict=True)
                ]
                return [*at[:around], *locations, *at[around + 2 * self.rank :]]

            shape = [axis.extent for axis in [*outer, *self._cells(self.rank, halo=False), *self.outputs]]
            result = self._block(name, axes, value, cell, shape)
        return result

    def _copy(self, result: Buffer) -> None:
        """The old block: it writes what it wrote before, from the tiles."""
        conv = self.conv
        old = conv.realize.block
        axes = [axis for axis in old.iter_vars if axis.iter_type != IterType.CommReduce]
        order = _vars(conv.groups, conv.batch, [window.place for window in conv.windows], conv.outputs)
        load = BufferLoad(result, tuple(order))
        block = Block(
            tuple(axes),
            (),
            (),
            old.name_hint,
            BufferStore(self.out, load, conv.store.indices),
            annotations=old.annotations,
        )
        loops = [
            loop
            for loop, axis in zip(self.view.loops_of(block_key(old)), old.iter_vars, strict=True)
            if axis.iter_type != IterType.CommReduce
        ]
        block = _with_regions(block, [result], self.out)
        nest: Stmt = BlockRealize(tuple([loop.loop_var for loop in loops]), TRUE, block)
        for loop in reversed(loops):
            nest = loop.with_(body=nest)
        self.made.statements.append(nest)
        self.made.last_key = block_key(block)

    # --- one block ------------------------------------------------------------------------------------------------

    def _block(
        self,
        name: str,
        axes: Sequence[_Axis],
        value: Callable[[Values], Expr],
        cell: Callable[[Values], Values] | None = None,
        shape: Sequence[Expr] | None = None,
    ) -> Buffer:
        """A nest that fills a new buffer; its cells are the data axes, unless `cell` and `shape` say otherwise."""
        name = self.view.fresh_block_name(name)
        at = [Var(f"v_{axis.name}", axis.extent.dtype) for axis in axes]
        own = [var for var, axis in zip(at, axes, strict=True) if not axis.is_reduce]
        shape = shape or [axis.extent for axis in axes if not axis.is_reduce]
        buffer = fresh_buffer(name, shape, self.out, "global")
        indices = tuple(cell(own) if cell is not None else own)
        result = value(at)
        is_sum = len(own) < len(at)
        init = BufferStore(buffer, const(0, buffer.dtype), indices) if is_sum else None
        if is_sum:
            result = BufferLoad(buffer, indices) + result
        iter_vars = [
            axis_from_zero(var, axis.extent, IterType.CommReduce if axis.is_reduce else IterType.DataPar)
            for var, axis in zip(at, axes, strict=True)
        ]
        block = Block(tuple(iter_vars), (), (), name, BufferStore(buffer, result, indices), init=init)
        sources = [*self.made.buffers, load_of(self.conv.data).buffer, load_of(self.conv.weight).buffer]
        block = _with_regions(block, sources, buffer)
        loops = [Var(axis.name, axis.extent.dtype) for axis in axes]
        realize = BlockRealize(tuple(loops), TRUE, block)
        self.made.statements.append(nest_over(loops, [axis.extent for axis in axes], realize))
        self.made.buffers.append(buffer)
        self.made.blocks.append(block)
        return buffer


def _with_regions(block: Block, sources: Sequence[Buffer], written: Buffer) -> Block:
    reads = [region_in(block, buffer, writes=False) for buffer in dict.fromkeys(sources)]
    writes = region_in(block, written, writes=True)
    assert writes is not None
    return block.with_(reads=tuple([region for region in reads if region is not None]), writes=(writes,))


def _vars(*axes: Sequence[IterVar]) -> list[Var]:
    return [axis.var for group in axes for axis in group]


def _zero(var: Var) -> Expr:
    return const(0, var.dtype)


def _at(operand: Expr, known: dict[Var, Expr]) -> Expr:
    """An operand of the convolution with its axes replaced."""
    placed = substitute(operand, {var: cast(value, var.dtype) for var, value in known.items()})
    load = load_of(placed)
    plain = load.with_(indices=tuple([Analyzer().simplify(index) for index in load.indices]))
    return _Exchange(load, plain).visit(placed)


class _Exchange(Rewriter):
    """One load becomes another."""

    def __init__(self, old: BufferLoad, new: BufferLoad) -> None:
        self.old, self.new = old, new

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        return self.new if load is self.old else load


def _chosen(position: Expr, matrix: Matrix, element: Callable[[int], Expr]) -> Expr:
    """Row `position` of the matrix, times the elements."""
    rows = rows_of(matrix, [element(k) for k in range(len(matrix[0]))])
    chosen = rows[-1]
    for row in reversed(range(len(rows) - 1)):
        chosen = Select(position.equal(const(row, position.dtype)), rows[row], chosen)
    return chosen
