"""Reindexing: a copy of what a block touches, indexed by the block's own axes. The work of reindex and its caches.

    … B[vi * 2 + vr] …                →     A_reindex[vi, vr] = A[vi * 2 + vr]     over all (vi, vr) the block runs over
                                            … A_reindex[vi, vr] …

A copy block stands for the cell it copies: the proof looks through it, and refuses a layout in which two values meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    Node,
    Range,
    Rewriter,
    Stmt,
    Var,
    cell_region,
    const,
    deep,
    is_one,
    is_zero,
    logical_and,
    structural_equal,
    substitute,
    uses_var,
)
from loopwright.schedule.errors import NotSupported, ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.origins import Origins
from loopwright.schedule.rewrite.bindings import TRUE
from loopwright.schedule.rewrite.blocks import is_leaf
from loopwright.schedule.rewrite.buffers import check_plain_use, check_scope, fresh_buffer, replaced_regions, touches
from loopwright.schedule.rewrite.copies import Around, around_copy, loop_range
from loopwright.schedule.rewrite.edits import Edits
from loopwright.schedule.rewrite.index_map import LayoutMap
from loopwright.schedule.rewrite.insertion_points import place_after, place_before, place_beside, visible_from
from loopwright.schedule.rewrite.iteration_domain import iteration_domain
from loopwright.schedule.rewrite.nests import nest_over
from loopwright.schedule.rewrite.regions import axis_end, axis_place, axis_room, axis_start, facts_inside, facts_under
from loopwright.schedule.rewrite.windows import accesses, loops_within, region_in
from loopwright.schedule.step import BlockResult, Proof, Step
from loopwright.schedule.view import View


class NotOnePoint(ScheduleError):
    """A buffer can be indexed by a block's axes only if one run of the block touches one cell of it.

    `reindex` and its caches give each point of the block's axes a cell of its own in a new buffer. A block that loads
    A[i] and A[i + 1] needs two cells at each point, and one that reads a whole row needs many.

    For example:

        from loopwright import te, tir
        A = te.placeholder((9,), name="A")
        B = te.compute((8,), lambda i: A[i] + A[i + 1], name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.reindex("B", ("read", 0))
    """

    code = "LW0215"

    def __init__(self, step: str, realize: BlockRealize, buffer: Buffer, problem: str) -> None:
        super().__init__(f"{step}: block {realize.block.name_hint!r} touches {buffer.name} {problem}", at=realize)


class AxesDiffer(ScheduleError):
    """The layout of a cache must use just those axes of the block that the access itself uses.

    An axis that only the access uses would put several values into one cell; one that only the layout uses would hold
    copies of one value. Say the layout in terms of the axes that appear in the access.

    For example:

        from loopwright import te, tir
        A = te.placeholder((8, 4), name="A")
        B = te.compute((8, 4), lambda i, j: A[i, j] + 1.0, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.reindex_cache_read("B", 0, "local", lambda i, j: (i,))
    """

    code = "LW0216"

    def __init__(self, step: str, realize: BlockRealize, only_access: Sequence[Var], only_map: Sequence[Var]) -> None:
        sides = [
            (f"the access of block {realize.block.name_hint!r} uses", only_access),
            ("the layout uses", only_map),
        ]
        message = [f"{what} {', '.join([var.name for var in axes])} alone" for what, axes in sides if axes]
        super().__init__(f"{step}: {', and '.join(message)}", at=realize)


@dataclass(frozen=True)
class Wanted:
    """What to make: the name and memory of the new buffer, and its layout over the block's axes (None: as they are)."""

    name: str
    scope: str
    layout: LayoutMap | None = None


def reindexed(view: View, step: str, block: BlockRealize, buffer: Buffer, writes: bool, wanted: Wanted) -> Step:
    """`block` with what it reads (or writes) of `buffer` in a buffer indexed by its axes, copied before (after) it."""
    # Check
    check_scope(step, wanted.scope, block)
    path = view.block_path(block_key(block.block))
    if len(path) == 1 or not is_leaf(block.block):
        raise NotSupported(step, f"block {block.block.name_hint!r} has blocks inside", block)
    check_plain_use(step, block, buffer)
    # As the indices simplify whatever the axes' extents are: an axis in a zero term gives the copy no dimension.
    indices = tuple([Analyzer().simplify(index) for index in _the_point(step, block, buffer, writes)])
    used = [axis for axis in block.block.iter_vars if _uses(indices, axis.var)]
    _check_domains(step, view, block)
    layout = wanted.layout
    if layout is not None:
        layout = layout.for_indices([axis.var for axis in block.block.iter_vars])
        layout.check_rank(step, len(block.block.iter_vars), f"block {block.block.name_hint!r}")
        _check_axes(step, block, used, layout)
    scope = view.scope_of(path)
    others = [item for item in view.blocks_below(scope.block.body) if item is not block]
    writers = [item for item in others if touches(item.block.writes, buffer)]
    if writes and writers:
        names = ", ".join([repr(item.block.name_hint) for item in writers])
        problem = f"{buffer.name} is written by block {block.block.name_hint!r} and also by {names}"
        raise NotSupported(step, problem, block)
    if writes:
        readers = [view.block_path(block_key(item.block)) for item in others if touches(item.block.reads, buffer)]
        offset, after = place_after(view, scope, path, readers, visible_from(path, buffer)), True
    else:
        paths = [view.block_path(block_key(item.block)) for item in writers]
        beside = wanted.layout is None and not writers  # reindex of an input: beside the one that reads the copy
        offset, after = place_beside(view, scope, path) if beside else place_before(view, scope, [path], paths), False

    # Build
    still = loops_within(offset[:-1], scope)
    around = around_copy(step, view, scope, still, buffer)
    new = fresh_buffer(wanted.name, _shape(step, block, used, layout), buffer, wanted.scope)
    cell = _cell(block.block, used, layout)
    nest, result = _copy(view, block, used, around, (buffer, indices), (new, cell), into_new=not writes)
    edits = Edits()
    edits.replaced[block] = _pointed(block, buffer, new, cell, writes)
    (edits.after if after else edits.before).setdefault(offset[-1], []).append(nest)
    edits.allocated[scope] = [new]
    return Step(
        edits.apply(view.function),
        Proof.VALUES,
        Origins(copies=frozenset([block_key(result)])),
        results=[BlockResult(block_key(result))],
        at=block,
        buffers=[buffer],
    )


def _the_point(step: str, realize: BlockRealize, buffer: Buffer, writes: bool) -> tuple[Expr, ...]:
    """The indices of the one cell that the block touches."""
    block = realize.block
    result = [access for part in (block.init, block.body) if part is not None for access in accesses(part, buffer)]
    if not writes:
        result = [access for access in result if not access.writes]
    if not result or (writes and not any([access.writes for access in result])):
        raise NotOnePoint(step, realize, buffer, f"nowhere that it {'writes' if writes else 'reads'}")
    first = result[0].indices
    for access in result:
        if len(access.indices) != len(first) or not all(map(structural_equal, access.indices, first)):
            cells = sorted({f"{buffer.name}[{', '.join(map(str, item.indices))}]" for item in result})
            raise NotOnePoint(step, realize, buffer, f"in several places: {' and '.join(cells)}")
        inner = {loop.loop_var for loop in access.loops}
        if any([uses_var(index, inner.__contains__) for index in access.indices]):
            raise NotOnePoint(step, realize, buffer, "in many cells at one point of its axes")
    return first


def _uses(indices: Sequence[Expr], var: Var) -> bool:
    return any([uses_var(index, {var}.__contains__) for index in indices])


def _check_domains(step: str, view: View, realize: BlockRealize) -> None:
    """The new buffer is as large as the axes say, so no loop says how far these run."""
    loops = {loop.loop_var for loop in view.all_loops_above(view.block_path(block_key(realize.block)))}
    for axis in realize.block.iter_vars:
        if axis.dom is not None and uses_var(axis.dom, loops.__contains__):
            problem = f"the domain of axis {axis.var.name} of block {realize.block.name_hint!r} depends on loops"
            hint = "give the axis a domain of numbers: T.axis.spatial(8, i), not T.axis.remap"
            raise NotSupported(step, f"{problem}: {axis.dom.extent}", realize, hint)


def _check_axes(step: str, realize: BlockRealize, used: Sequence[IterVar], layout: LayoutMap) -> None:
    pairs = list(zip(realize.block.iter_vars, layout.initial_indices, strict=True))
    in_map = [axis for axis, var in pairs if _uses(layout.final_indices, var)]
    only_access = [axis.var for axis in used if axis not in in_map]
    only_map = [axis.var for axis in in_map if axis not in used]
    if only_access or only_map:
        raise AxesDiffer(step, realize, only_access, only_map)


def _shape(step: str, realize: BlockRealize, used: Sequence[IterVar], layout: LayoutMap | None) -> Sequence[Expr]:
    if layout is None:
        return [axis_room(axis) for axis in used] or [const(1)]
    shape = layout.shape(step, [axis_end(axis) for axis in realize.block.iter_vars])
    if not all([is_zero(axis_start(axis)) for axis in realize.block.iter_vars]):
        facts, cell = facts_inside(realize.block), _cell(realize.block, used, layout)
        for index, extent in zip(cell, shape, strict=True):
            if not facts.can_prove(logical_and(index >= 0, index < extent)):
                problem = f"axes of block {realize.block.name_hint!r} may be negative, and {index} outside of the copy"
                raise NotSupported(step, problem, realize)
    return shape


def _cell(block: Block, used: Sequence[IterVar], layout: LayoutMap | None) -> tuple[Expr, ...]:
    """Where in the new buffer the block finds what it touches."""
    if layout is None:
        return tuple([axis_place(axis, axis.var) for axis in used]) or (const(0),)
    facts = facts_inside(block)
    return tuple([facts.simplify(index) for index in layout.at([axis.var for axis in block.iter_vars])])


def _copy(
    view: View,
    realize: BlockRealize,
    used: Sequence[IterVar],
    around: Around,
    old: tuple[Buffer, Sequence[Expr]],
    new: tuple[Buffer, Sequence[Expr]],
    into_new: bool,
) -> tuple[Stmt, Block]:
    """The nest over the axes that the access uses, with the values they really take, and its block."""
    step = around.step
    runs = iteration_domain(step, view.block_path(block_key(realize.block)), (), around.loops)
    axes = {axis.var: Var(axis.var.name, axis.var.dtype) for axis in used}
    rest = {axis.var for axis in realize.block.iter_vars} - set(axes)
    for condition in runs.conditions:
        if uses_var(condition, rest.__contains__) and uses_var(condition, axes.__contains__):
            problem = f"block {realize.block.name_hint!r} runs only where {condition}: what it touches depends on that"
            raise NotSupported(step, problem, realize)
    facts = facts_under(around.loops, [around.scope])
    outside = {loop.loop_var for loop in around.loops}
    loops: list[tuple[Var, Expr]] = []
    values: dict[Var, Expr] = {}
    for position, axis in enumerate(used):
        span = runs.domain[axis.var]
        counter = Var(f"ax{position}", axis.var.dtype)
        extent = facts.simplify(span.high - span.low + 1)
        if is_one(extent) and uses_var(span.low, outside.__contains__):
            values[axis.var] = facts.simplify(span.low)  # the loops around count it
            continue
        loops.append((counter, extent))
        facts.bind(counter, Range.from_min_extent(const(0, counter.dtype), extent))
        values[axis.var] = facts.simplify(span.low + counter)
    named = [loop for loop in around.named if not _uses(list(values.values()), loop.loop_var)]  # told by no axis
    source, target = (old, new) if into_new else (new, old)
    from_indices, to_indices = ([substitute(index, axes) for index in side[1]] for side in (source, target))
    iter_vars = [
        IterVar(loop_range(step, loop, around.loops, facts), Var(f"o{k}", loop.loop_var.dtype), IterType.Opaque)
        for k, loop in enumerate(named)
    ]
    iter_vars += [IterVar(axis.dom, axes[axis.var], IterType.DataPar) for axis in used]
    block = Block(
        tuple(iter_vars),
        (cell_region(source[0], from_indices),),
        (cell_region(target[0], to_indices),),
        new[0].name,
        BufferStore(target[0], BufferLoad(source[0], tuple(from_indices)), to_indices),
    )
    kept = [item for item in runs.conditions if not uses_var(item, rest.__contains__)]
    # A load may stand under a condition of its own: what is outside the buffer is not copied.
    at_loops = [facts.simplify(substitute(index, values)) for index in old[1]]
    for index, extent in zip(at_loops, old[0].shape, strict=True):
        kept += [item for item in (index >= const(0, index.dtype), index < extent) if not facts.can_prove(item)]
    # An axis may be bound to a number that its domain has only where the loops around the block run.
    for axis in used:
        assert axis.dom is not None
        value, low = values[axis.var], axis.dom.min
        kept += [item for item in (value >= low, value < low + axis.dom.extent) if not facts.can_prove(item)]
    predicate = logical_and(TRUE, *[facts.simplify(substitute(item, values)) for item in kept])
    bound = (*[loop.loop_var for loop in named], *[values[axis.var] for axis in used])
    counters, extents = [counter for counter, _ in loops], [extent for _, extent in loops]
    return nest_over(counters, extents, BlockRealize(bound, predicate, block)), block


@deep
def _pointed(realize: BlockRealize, old: Buffer, new: Buffer, cell: Sequence[Expr], writes: bool) -> BlockRealize:
    """The block with its accesses (its loads alone, unless `writes`) of `old` going to `new[cell]`."""
    rewriter = _Pointed(old, new, tuple(cell), writes)
    block = realize.block
    init = None if block.init is None else rewriter.visit(block.init)
    result = block.with_(body=rewriter.visit(block.body), init=init)
    reads = replaced_regions(result.reads, old, region_in(result, new, writes=False))
    kept = replaced_regions(result.writes, old, region_in(result, new, writes=True)) if writes else result.writes
    return realize.with_(block=result.with_(reads=reads, writes=kept))


class _Pointed(Rewriter):
    def __init__(self, old: Buffer, new: Buffer, cell: tuple[Expr, ...], writes: bool) -> None:
        self.old, self.new, self.cell, self.writes = old, new, cell, writes

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        if load.buffer is self.old:
            return BufferLoad._make(self.new, self.cell, span=load.span)
        return self.rebuild(load)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        store = self.rebuild(store)
        if store.buffer is self.old and self.writes:
            return BufferStore(self.new, store.value, self.cell, span=store.span)
        return store

    def visit_Buffer(self, node: Node) -> Node:
        return node
