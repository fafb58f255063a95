"""transform_layout: a buffer is stored in another layout, everywhere it is used.

    B = T.alloc_buffer((64, 64))           →     B = T.alloc_buffer((8, 64, 8))
    … B[vi, vj] …                                … B[vi // 8, vj, vi % 8] …

Here `transform_layout(block, "B", lambda i, j: (i // 8, j, i % 8))`. Loops keep their order. A layout with room left
over needs a `pad_value`: the cells that hold no element are filled with it, in a block of its own before the first use;
of an argument that is only read, the caller fills them, and the program notes that it may assume so (`T.assume`).

A map that is one to one on the buffer's shape gives every element a cell of its own and keeps the order of everything,
so every read sees what it saw. That is checked exactly (`one_to_one.py`); a map that puts two elements into one cell is
refused with the two. The layout of an argument is part of the function's signature: the caller then has to hand the
elements over in the new layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from loopwright.arith import Analyzer
from loopwright.arith.index_map import IndexMap
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    Evaluate,
    Expr,
    FloatImm,
    For,
    IntImm,
    PrimFunc,
    Range,
    SeqStmt,
    Stmt,
    Var,
    const,
    deep,
    logical_not,
    logical_or,
)
from loopwright.ir.intrinsics import assume
from loopwright.ir.operators import cast
from loopwright.schedule.errors import NotSupported, ScheduleError
from loopwright.schedule.primitives.layout.set_axis_separator import set_axis_separator
from loopwright.schedule.primitives.memory.reindex import side_of
from loopwright.schedule.proof.lemmas import fixed_by, memory_named, top_level
from loopwright.schedule.proof.one_to_one import Collision, ElementsMeet, find_collision, inverse_on, outside
from loopwright.schedule.rewrite.allocations import home_of
from loopwright.schedule.rewrite.bindings import TRUE
from loopwright.schedule.rewrite.buffers import BufferName, check_plain_use, fresh_buffer, replaced_regions, touches
from loopwright.schedule.rewrite.dynamic_shapes import OpenSizes, open_sizes
from loopwright.schedule.rewrite.fills import cell_nest, fill_nest, first_in_home
from loopwright.schedule.rewrite.index_map import LayoutMap
from loopwright.schedule.rewrite.inlining import loads_in_order
from loopwright.schedule.rewrite.nests import axes_over
from loopwright.schedule.rewrite.redirect_accesses import MovedAccesses
from loopwright.schedule.rewrite.windows import region_in
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


class LayoutLeavesRoom(ScheduleError):
    """The new layout has cells that hold no element of the buffer, and nothing was said about their value.

    For example:

        from loopwright import te, tir
        A = te.placeholder((10,), name="A")
        B = te.compute((10,), lambda i: A[i] + 1.0, name="B")
        C = te.compute((10,), lambda i: B[i] * 2.0, name="C")
        sch = tir.Schedule(te.create_prim_func([A, C]))
        sch.transform_layout("B", ("write", 0), lambda i: (i // 4, i % 4))
    """

    code = "LW0256"

    def __init__(self, buffer: Buffer, shape: Sequence[Expr], at: BlockRealize) -> None:
        old, new = (", ".join([repr(extent) for extent in extents]) for extents in (buffer.shape, shape))
        super().__init__(
            f"transform_layout: the new layout ({new}) of {buffer.name} has more cells than its shape ({old})",
            at=at,
        )


class BadPadValue(ScheduleError, ValueError):
    """What fills the room in a layout must be one number of the buffer's own kind, or a map from cells to one.

    For example:

        from loopwright import te, tir
        A = te.placeholder((10,), "int32", name="A")
        B = te.compute((10,), lambda i: A[i] + 1, name="B")
        C = te.compute((10,), lambda i: B[i] * 2, name="C")
        sch = tir.Schedule(te.create_prim_func([A, C]))
        sch.transform_layout("B", ("write", 0), lambda i: (i // 4, i % 4), pad_value=0.5)
    """

    code = "LW0225"
    is_tried = False

    def __init__(self, buffer: Buffer, problem: str, at: BlockRealize) -> None:
        super().__init__(f"transform_layout: {problem}, and {buffer.name} holds {buffer.dtype}", at=at)


def transform_layout(
    view: View, block: BlockRealize, buffer: BufferName | list[object], index_map: str, pad_value: object = None
) -> Step:
    """Store a buffer that `block` touches as `index_map` says: element `i` at cell `index_map(i)`."""
    # Check
    old, _ = side_of("transform_layout", block, buffer)
    mapping = LayoutMap.of(index_map, "transform_layout").for_indices(old.shape)
    mapping.check_rank("transform_layout", old.ndim, old.name)
    if mapping.separators and mapping.final_indices == mapping.initial_indices:  # nothing moves
        return set_axis_separator(view, block, buffer, mapping.separators)
    is_argument = any(old is argument for argument in view.function.argument_buffers())
    if not is_argument:
        home_of("transform_layout", view, old, block)
    check_plain_use("transform_layout", view.function.body, old)
    if old.strides:
        raise NotSupported("transform_layout", f"{old.name} has strides of its own", block)
    parts = open_sizes(mapping, old.shape)
    if parts is None:
        _check_collision(mapping, old, block)
        problem = f"{old.name} has sizes that are known only when the program runs, and {mapping.text} does more with "
        problem += "such a size than to pass it or to cut it into whole blocks"
        raise NotSupported("transform_layout", problem, block)
    shape = parts.shape("transform_layout")
    axes = axes_over(shape)
    leaves_room = _cells([shape[location] for location in parts.places]) > _cells(parts.other_sizes)
    is_proved = fixed_by(mapping.final_indices).issuperset(mapping.initial_indices)
    inverse = _inverse(parts, axes, shape) if leaves_room or not is_proved else None
    is_proved = is_proved or inverse is not None or _check_collision(mapping, old, block)
    if leaves_room and pad_value is None:
        raise LayoutLeavesRoom(old, shape, block)
    new = fresh_buffer(old.name, shape, old, old.scope())
    if mapping.separators:
        new = new.with_(axis_separators=mapping.separators)
    padding = _padding(old, axes, pad_value, block) if leaves_room else None
    if leaves_room and inverse is None:
        raise NotSupported("transform_layout", f"the map {mapping.text} has no inverse that tells padding apart", block)
    if is_argument and not is_proved:
        problem = f"whether the map {mapping.text} gives each of the caller's elements a cell of its own is not proved"
        raise NotSupported("transform_layout", problem, block)

    # Build
    after = relaid(view.function, old, new, mapping)
    if is_proved and padding is None and not is_argument:

        def again(function: PrimFunc) -> PrimFunc:
            if not any([old.data in memory_named(statement) for statement in top_level(function)]):
                return function
            check_plain_use("transform_layout", function.body, old)
            return relaid(function, old, new, mapping)

        return Step(after, Proof.GIVEN, at=block, buffers=[old], again=again)
    if padding is not None and inverse is not None:
        cells = outside(mapping, inverse, old.shape, axes, new.shape)
        after = _padded(View(after), new, axes, cells, padding, is_argument, block)
    return Step(after, Proof.GIVEN if is_proved else Proof.VALUES, at=block, buffers=[old])


def _check_collision(mapping: LayoutMap, buffer: Buffer, at: BlockRealize) -> bool:
    """Whether the map is one to one on the buffer's shape; refused where it is not. False leaves the question open."""
    result = find_collision(mapping, buffer.shape)
    if isinstance(result, Collision):
        raise ElementsMeet("transform_layout", mapping, buffer, result, at)
    return result is None


def _cells(shape: Sequence[Expr]) -> int:
    return prod([extent.value for extent in shape if isinstance(extent, IntImm)])


def relaid(function: PrimFunc, old: Buffer, new: Buffer, mapping: IndexMap) -> PrimFunc:
    """The function with `new` in place of `old` everywhere, element `i` at cell `mapping(i)`."""
    return _Relaid(old, new, mapping).apply(function)


class _Relaid(MovedAccesses):
    def __init__(self, old: Buffer, new: Buffer, mapping: IndexMap) -> None:
        super().__init__(old, new)
        self.mapping = mapping
        self.facts = Analyzer()

    @deep
    def apply(self, function: PrimFunc) -> PrimFunc:
        given = {param: self.new if item is self.old else item for param, item in function.buffer_map.items()}
        same = all(given[param] is item for param, item in function.buffer_map.items())
        result = function if same else function.with_(buffer_map=given)
        return result.with_(body=self.visit(function.body))

    def cell(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple([self._simplified(index) for index in self.mapping.at(indices)])

    def _simplified(self, index: Expr) -> Expr:
        # The proof compares the loads of a block one by one, so those in an index stay: `I[i] % 1` is no 0 here.
        simpler = self.facts.simplify(index)
        return simpler if _loaded(simpler) == _loaded(index) else index

    def visit_SeqStmt(self, sequence: SeqStmt) -> Stmt:
        data = self.old.data
        parts = [self.visit(part) if data in memory_named(part) else part for part in sequence.seq]
        return sequence.with_(seq=tuple(parts))

    def visit_For(self, loop: For) -> Stmt:
        with self.facts.bound(loop.loop_var, Range.from_min_extent(loop.min, loop.extent)):
            return loop.with_(body=self.visit(loop.body))

    def visit_Block(self, block: Block) -> Block:
        for axis in block.iter_vars:
            if axis.dom is not None:
                self.facts.bind(axis.var, axis.dom, allow_override=True)
        new = block.rebuild(self.visit)
        if not any(region.buffer is self.old for region in (*block.reads, *block.writes)):
            return new
        return new.with_(
            reads=replaced_regions(block.reads, self.old, region_in(new, self.new, writes=False)),
            writes=replaced_regions(block.writes, self.old, region_in(new, self.new, writes=True)),
        )


def _loaded(index: Expr) -> list[Buffer]:
    return [load.buffer for load in loads_in_order(index)]


# --- cells that hold no element -----------------------------------------------------------------------------------


def _padding(buffer: Buffer, axes: Sequence[Var], given: object, at: BlockRealize) -> Expr:
    """The value of the cell `axes` where it holds no element: a number, or a map's one result."""
    if isinstance(given, (IntImm, FloatImm)):
        given = given.value
    if isinstance(given, str):
        mapping = LayoutMap.of(given, "transform_layout").for_indices(axes)
        if len(mapping.final_indices) != 1:
            raise BadPadValue(buffer, f"pad_value gives {len(mapping.final_indices)} numbers for a cell", at)
        mapping.check_rank("transform_layout", len(axes), f"the new layout of {buffer.name}")
        return cast(mapping.at(list(axes))[0], buffer.dtype)
    if isinstance(given, (bool, int, float)):
        if isinstance(given, float) and not buffer.dtype.is_float:
            raise BadPadValue(buffer, f"pad_value is {given}", at)
        return const(given, buffer.dtype)
    raise BadPadValue(buffer, f"pad_value is {given!r}", at)


def _padded(
    view: View,
    buffer: Buffer,
    axes: Sequence[Var],
    outside: Sequence[Expr],
    value: Expr,
    is_argument: bool,
    at: BlockRealize,
) -> PrimFunc:
    """The function with the cells that hold no element filled where the buffer's memory begins."""
    if is_argument and not any(
        touches(realize.block.writes, buffer) for realize in view.blocks_below(view.root.block.body)
    ):
        held = BufferLoad(buffer, tuple(axes)).equal(value)
        claim = Evaluate(assume(logical_or(logical_not(logical_or(*outside)), held)))
        name = view.fresh_block_name(f"buffer_{buffer.name}_assumptions")
        nest = cell_nest(name, buffer, axes, [TRUE], claim, writes=False)
    else:
        name = view.fresh_block_name(f"buffer_{buffer.name}_padding")
        nest = fill_nest(name, buffer, axes, outside, value)
    return first_in_home("transform_layout", view, buffer, nest, at)


def _inverse(parts: OpenSizes, axes: Sequence[Var], shape: Sequence[Expr]) -> dict[Var, Expr] | None:
    """The old indices in terms of the new ones, over all cells of the new layout."""
    sizes = [size.value for size in parts.other_sizes if isinstance(size, IntImm)]
    result = inverse_on(
        parts.others, sizes, [axes[location] for location in parts.places], [shape[offset] for offset in parts.places]
    )
    return None if result is None else {**result, **parts.inverse(axes)}
