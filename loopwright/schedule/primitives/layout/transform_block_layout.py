"""transform_block_layout: a block runs over other axes, which an index map makes of the old ones.

    for i, j in T.grid(4, 8):                        →    for ax0 in range(32):
        with T.block("B"):                                    with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])                   v0 = T.axis.spatial(32, ax0)
            B[vi, vj] = A[vi, vj] + 1                             B[v0 // 8, v0 % 8] = A[v0 // 8, v0 % 8] + 1

Here `transform_block_layout("B", lambda i, j: (i * 8 + j,))`. The map must be one to one, and a new axis must not mix
data and reduction. The iterations run in the order of the new axes. Proved: every read sees the value it saw before.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from loopwright.analysis.dataflow import InitOf
from loopwright.arith import Analyzer
from loopwright.ir import (
    Block,
    BlockRealize,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Expr,
    For,
    IntImm,
    IterType,
    IterVar,
    Range,
    Rewriter,
    Stmt,
    Var,
    const,
    logical_and,
    substitute,
    uses_var,
)
from loopwright.schedule.errors import NotSupported, ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.origins import Origins
from loopwright.schedule.proof.one_to_one import Collision, find_collision, inverse_on
from loopwright.schedule.proof.speculative_runs import check_speculative_runs
from loopwright.schedule.rewrite.bindings import TRUE
from loopwright.schedule.rewrite.index_map import LayoutMap
from loopwright.schedule.rewrite.iteration_domain import iteration_domain
from loopwright.schedule.rewrite.nests import axes_over, axis_from_zero, counters_over, nest_over
from loopwright.schedule.rewrite.plain_loops import check_plain
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import Path, View


class NotOneToOne(ScheduleError):
    """A map of axes must take each of their values to one new point, and leave no point over.

    For example:

        from loopwright import te, tir
        A = te.placeholder((4, 8), name="A")
        B = te.compute((4, 8), lambda i, j: A[i, j] + 1.0, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.transform_block_layout("B", lambda i, j: (i + j,))
    """

    code = "LW0220"

    def __init__(self, realize: BlockRealize, mapping: LayoutMap, problem: str, why: str | None = None) -> None:
        super().__init__(
            f"transform_block_layout: the map {mapping.text} {problem} for block {realize.block.name_hint!r}",
            why=why,
            at=realize,
        )


def transform_block_layout(view: View, block: BlockRealize, index_map: str) -> Step:
    """Run `block` over the axes `index_map(its axes)`."""
    # Check
    key = block_key(block.block)
    path = view.block_path(key)
    old = block.block.iter_vars
    mapping = LayoutMap.of(index_map, "transform_block_layout").for_indices([axis.var for axis in old])
    mapping.check_rank("transform_block_layout", len(old), f"block {block.block.name_hint!r}")
    top = _own_nest(view, block, path)
    runs = iteration_domain("transform_block_layout", path, path[:top], exact=True)
    sizes = [_size(block, axis) for axis in old]
    kinds = [_kind(block, mapping, result) for result in mapping.final_indices]

    # Build
    shape = mapping.shape("transform_block_layout", [const(size) for size in sizes])
    axes = axes_over(shape)
    inverse = _inverse(block, mapping, sizes, axes, shape)
    loops = counters_over(shape)
    facts = Analyzer()
    for var, extent in zip([*axes, *loops], [*shape, *shape], strict=True):
        facts.bind(var, Range.from_min_extent(const(0, var.dtype), extent))

    def old_values(new: Sequence[Expr]) -> list[Expr]:
        given = dict(zip(axes, new, strict=True))
        values = [substitute(inverse[var], given) for var in mapping.initial_indices]
        return [facts.simplify(value).astype(axis.var.dtype) for value, axis in zip(values, old, strict=True)]

    values = dict(zip([axis.var for axis in old], old_values(axes), strict=True))
    at_loops = dict(zip([axis.var for axis in old], old_values(loops), strict=True))
    iter_vars = [axis_from_zero(var, extent, kind) for var, extent, kind in zip(axes, shape, kinds, strict=True)]
    built = _PlainIndices(iter_vars).block(substitute(block.block, values)).with_(iter_vars=tuple(iter_vars))
    bounds = [
        condition
        for axis, size in zip(old, sizes, strict=True)
        for condition in _bounds(facts, runs.domain[axis.var].low, runs.domain[axis.var].high, at_loops[axis.var], size)
    ]
    guards = [facts.simplify(substitute(condition, at_loops)) for condition in runs.conditions]
    nest = nest_over(loops, shape, BlockRealize(tuple(loops), logical_and(TRUE, *bounds, *guards), built))

    data_axes = [var for var, kind in zip(axes, kinds, strict=True) if kind != IterType.CommReduce]
    data = [k for k, axis in enumerate(old) if axis.iter_type != IterType.CommReduce]

    def old_data_values(new: Sequence[Expr]) -> list[Expr]:
        given = dict(zip(data_axes, new, strict=True))
        return [substitute(values[old[k].var], given) for k in data]

    new_key = block_key(built)
    renamed = {new_key: (key, old_values), InitOf(new_key): (InitOf(key), old_data_values)}
    after = view.replaced(path[: top + 1], nest)
    if not runs.is_exact:
        check_speculative_runs("transform_block_layout", after, [new_key], block)
    return Step(
        after,
        Proof.VALUES,
        Origins(renamed=renamed),
        at=block,
        moved={key: new_key},
    )


class _PlainIndices(Rewriter):
    """Writes `B[v // 8 * 8 + v % 8]` as `B[v]`: two axes become one, and often so do two indices."""

    def __init__(self, axes: Sequence[IterVar]) -> None:
        self.facts = Analyzer()
        for axis in axes:
            if axis.dom is not None:
                self.facts.bind(axis.var, axis.dom)

    def block(self, block: Block) -> Block:
        init = None if block.init is None else self.visit(block.init)
        reads, writes = (tuple([self._region(region) for region in part]) for part in (block.reads, block.writes))
        return block.with_(body=self.visit(block.body), init=init, reads=reads, writes=writes)

    def _region(self, region: BufferRegion) -> BufferRegion:
        box = [Range.from_min_extent(self.facts.simplify(side.min), side.extent) for side in region.region]
        return region.with_(region=tuple(box))

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        return load.with_(indices=self._indices(load.indices))

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        return store.with_(value=self.visit(store.value), indices=self._indices(store.indices))

    def _indices(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple([self.facts.simplify(self.visit(index)) for index in indices])


def _own_nest(view: View, realize: BlockRealize, path: Path) -> int:
    """Where on the path the outermost loop is that holds nothing but the block."""
    loops = view.loops_of(block_key(realize.block))
    top = len(path) - 1
    while top > 0 and isinstance(path[top - 1], For) and any(path[top - 1] is loop for loop in loops):
        top -= 1
    if len(path) - 1 - top < len(loops):
        problem = f"a loop of block {realize.block.name_hint!r} holds something else as well"
        raise NotSupported("transform_block_layout", problem, realize, "the block needs a nest of its own: see fission")
    for loop in loops:
        check_plain("transform_block_layout", view, loop, from_zero=False)
    return top


def _size(realize: BlockRealize, axis: IterVar) -> int:
    dom = axis.dom
    if dom is None or not isinstance(dom.extent, IntImm) or not isinstance(dom.min, IntImm) or dom.min.value:
        problem = f"axis {axis.var.name} does not run from 0 to a constant"
        hint = None
        if dom is not None and isinstance(dom.min, IntImm) and dom.min.value and isinstance(dom.extent, IntImm):
            shift = f"- {-dom.min.value}" if dom.min.value < 0 else f"+ {dom.min.value}"
            name = axis.var.name.removeprefix("v_")
            hint = f"write the axis from 0, as (0, {dom.extent.value}), and {name} {shift} where {name} is used"
        raise NotSupported("transform_block_layout", problem, realize, hint)
    return dom.extent.value


def _inverse(
    realize: BlockRealize, mapping: LayoutMap, sizes: Sequence[int], axes: Sequence[Var], shape: Sequence[Expr]
) -> dict[Var, Expr]:
    """The old axes in terms of the new ones: each new point stands for one old point, and each old one has one."""
    inverse = inverse_on(mapping, sizes, axes, shape)
    if inverse is None:
        result = find_collision(mapping, [const(size) for size in sizes])
        if isinstance(result, Collision):
            why = f"{result.first} and {result.second} both go to {result.cell}"
            raise NotOneToOne(realize, mapping, "is not one to one", why)
        raise NotOneToOne(realize, mapping, "has no inverse that can be written down")
    points = prod([extent.value for extent in shape if isinstance(extent, IntImm)])
    if points > prod(sizes):
        raise NotOneToOne(realize, mapping, f"makes {points} points of {prod(sizes)}")
    return inverse


def _kind(realize: BlockRealize, mapping: LayoutMap, result: Expr) -> IterType:
    """What a new axis is: what the old ones are that it is made of."""
    pairs = zip(realize.block.iter_vars, mapping.initial_indices, strict=True)
    kinds = [axis.iter_type for axis, var in pairs if uses_var(result, {var}.__contains__)]
    if len(set(kinds)) > 1:
        raise NotOneToOne(realize, mapping, "mixes axes of data and of a reduction")
    return kinds[0] if kinds else IterType.DataPar


def _bounds(facts: Analyzer, low: Expr, high: Expr, value: Expr, size: int) -> list[Expr]:
    """What has to be asked of an axis that the block does not run over in full."""
    if facts.can_prove_equal(low, 0) and facts.can_prove_equal(high, size - 1):
        return []
    return [facts.simplify(condition) for condition in (value >= low, value <= high) if not facts.can_prove(condition)]
