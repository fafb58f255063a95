"""blockize: a nest of loops around a block, or several blocks in a row, become one block that works on whole tiles.

    for i_0, k_0, i_1, k_1 in T.grid(4, 2, 16, 8):     →    for i_0, k_0 in T.grid(4, 2):
        with T.block("C"):                                      with T.block("C_o"):
            vi = T.axis.spatial(64, i_0 * 16 + i_1)                 vi_o, vk_o = T.axis.remap("SR", [i_0, k_0])
            vk = T.axis.reduce(16, k_0 * 8 + k_1)                   with T.init():
            with T.init():                                              for i_1_init in range(16):
                C[vi] = 0                                                   with T.block("C_init"): …
            C[vi] = C[vi] + A[vi, vk]                               for i_1, k_1 in T.grid(16, 8):
                                                                        with T.block("C"):
        blockize(i_1)                                                       vi, vk = T.axis.remap("SR", [i_1, k_1])
                                                                            C[vi_o * 16 + vi] = …

The block inside keeps its name and its handle; its axes count the tile, and one whose tile is a single value is the
outer block's alone. (Around several blocks, and for `tensorize`, the axes inside keep counting the whole domain.)
Each axis must divide into a part that the loops outside run over and a tile that those inside do. A reduction's start
value moves to the outer block, since the tiles of one reduction share it; proved: every update
still adds to the same start value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loopwright.analysis.dataflow import InitOf
from loopwright.analysis.reduction_init import reducing_variables
from loopwright.arith import Analyzer, interval_of, subspace_divide
from loopwright.arith.iter_nodes import IterMark, IterSumExpr, plain_expr
from loopwright.ir import (
    Block,
    BlockRealize,
    BufferRegion,
    Expr,
    For,
    IntImm,
    IterType,
    IterVar,
    Let,
    LetStmt,
    Range,
    SeqStmt,
    Stmt,
    Var,
    any_node,
    cast,
    conjuncts,
    const,
    is_one,
    logical_and,
    no_op,
    reads_memory,
    seq,
    structural_equal,
    substitute,
    uses_var,
    whole_region,
)
from loopwright.schedule.errors import BadStepArgument, NotSupported, ScheduleError
from loopwright.schedule.handles import BlockKey, block_key
from loopwright.schedule.origins import OldValues, Origins
from loopwright.schedule.rewrite.bindings import TRUE, is_true
from loopwright.schedule.rewrite.blocks import is_unit_axis
from loopwright.schedule.rewrite.buffers import is_same_region
from loopwright.schedule.rewrite.edits import Edits
from loopwright.schedule.rewrite.insertion_points import common_path
from loopwright.schedule.rewrite.regions import facts_inside
from loopwright.schedule.step import BlockResult, Proof, Step
from loopwright.schedule.view import View
from loopwright.transform.parts.purity import is_pure


class TileNotWhole(ScheduleError):
    """The loops inside do not run over a whole tile of each axis of the block.

    `blockize` (and `tensorize` of a loop) cuts every axis in two: `outer * tile + inner`, the outer part in terms of
    the loops outside and the inner part in terms of those inside. Order the loops so that those of a tile are
    innermost, and choose tiles that divide the extents.

    For example:

        from loopwright import te
        from loopwright.schedule import Schedule
        A = te.placeholder((10,), name="A")
        B = te.compute((10,), lambda i: A[i] + 1.0, name="B")
        sch = Schedule(te.create_prim_func([A, B]))
        i_0, i_1 = sch.split(sch.get_loops("B")[0], [None, 4])
        sch.blockize(i_1)
    """

    code = "LW0285"

    def __init__(self, step: str, realize: BlockRealize, problem: str, hint: str | None = None) -> None:
        super().__init__(
            f"{step}: {problem}",
            at=realize,
            hint=hint or "order the loops so that those of one tile are innermost, with sizes that divide the extents",
            fields={"block": realize.block.name_hint},
        )


class NotInARow(ScheduleError):
    """blockize was given blocks that do not stand one right after the other in one place.

    For example:

        from loopwright import te
        from loopwright.schedule import Schedule
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
        C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
        D = te.compute((8,), lambda i: C[i] + 1.0, name="D")
        sch = Schedule(te.create_prim_func([A, D]))
        sch.blockize([sch.get_block("B"), sch.get_block("D")])
    """

    code = "LW0286"

    def __init__(self, blocks: Sequence[BlockRealize], problem: str) -> None:
        names = [realize.block.name_hint for realize in blocks]
        super().__init__(
            f"blockize: blocks {', '.join(names)} {problem}",
            at=blocks[0],
            hint="name blocks that stand one right after the other",
            fields={"blocks": names},
        )


def blockize(view: View, target: For | Sequence[BlockRealize], preserve_unit_iters: bool = True) -> Step:
    """One block around what is below a loop, or around blocks in a row."""
    if isinstance(target, For):
        result = tile_of("blockize", view, target, preserve_unit_iters, counts_tile=True)
        return result.step(view)
    if not isinstance(target, Sequence) or not target or not all(isinstance(item, BlockRealize) for item in target):
        raise BadStepArgument("blockize", "expected a loop, or a list of blocks")
    return _around_blocks(view, list(target), preserve_unit_iters)


# --- one block under a loop ---------------------------------------------------------------------------------------


class Tile(NamedTuple):
    """A block made of the nest below a loop."""

    loop: For
    inner: BlockRealize  # the block that was there
    realize: BlockRealize  # the new block
    init: BlockKey | None  # the block that writes the start value, where there is one
    local: _Local | None = None  # the block inside, where its axes count the tile

    def step(self, view: View, gives_block: bool = True) -> Step:
        """The step that puts the new block in the loop's place."""
        after = view.replaced(view.loop_path(self.loop.loop_var), self.realize)
        renamed: dict[BlockKey | InitOf, tuple[BlockKey | InitOf, OldValues]] = {}
        old: BlockKey = block_key(self.inner.block)
        moved: dict[BlockKey, BlockKey] = {}
        if self.local is not None:
            new = block_key(self.local.realize.block)
            renamed[new] = old, self.local.old_values
            moved = {} if new is old else {old: new}
        if self.init is not None:
            same: OldValues = lambda axes: list(axes)  # noqa: E731
            renamed[self.init] = InitOf(old), same if self.local is None else self.local.old_data_values
        written = [region.buffer for region in self.inner.block.writes]
        proof = Proof.ORDER_KEPT if self.inner.block.init is None else Proof.VALUES
        results = [BlockResult(block_key(self.realize.block))] if gives_block else []
        return Step(after, proof, Origins(renamed=renamed), results, at=self.loop, buffers=written, moved=moved)


class _Local:
    """A block whose axes count the tile; those whose tile is one value are the outer block's alone.

    `bases` are what the outer block adds, in its axes; `bound` the values within the tile, over `tiles` values each.
    """

    def __init__(
        self,
        realize: BlockRealize,
        bases: Sequence[Expr],
        bound: Sequence[Expr],
        tiles: Sequence[Expr],
        loops: Sequence[For],
        facts: Analyzer,
    ) -> None:
        self.old = realize.block.iter_vars
        running = {loop.loop_var for loop in loops}
        counts = [
            _counts(value, tile, facts) and not any([uses_var(item, running.__contains__) for item in (base, tile)])
            for base, value, tile in zip(bases, bound, tiles, strict=True)
        ]
        self.kept = [not (counts[k] and is_one(tile)) for k, tile in enumerate(tiles)]
        # An axis that does not count its tile from 0 stays what it is.
        self.bases = [base if counts[k] else None for k, base in enumerate(bases)]
        axes: list[IterVar] = []
        values: list[Expr] = []
        for k, axis in enumerate(self.old):
            if not self.kept[k]:
                continue
            whole = bases[k] + bound[k]
            domain = Range.from_min_extent(const(0, axis.var.dtype), tiles[k]) if counts[k] else axis.dom
            axes.append(axis.with_(dom=domain))
            values.append(facts.simplify(bound[k] if counts[k] else whole))
        places = {axis.var: self._place(k, axis.var) for k, axis in enumerate(self.old)}
        block = substitute(realize.block.with_(iter_vars=()), places).with_(iter_vars=tuple(axes))
        self.realize = realize.with_(iter_values=tuple(values), block=block)

    @property
    def changes(self) -> bool:
        """Whether an axis means something else now."""
        return not all(self.kept) or any([base is not None and not _is_zero(base) for base in self.bases])

    def _place(self, position: int, var: Expr) -> Expr:
        """What an old axis is, in terms of the new one and of the outer block."""
        base = self.bases[position]
        if base is None:
            return var
        if not self.kept[position]:
            return base
        return var if _is_zero(base) else base + var

    def _values(self, positions: Sequence[int], axes: Sequence[Var]) -> list[Expr]:
        given = iter(axes)
        return [self._place(k, next(given) if self.kept[k] else const(0)) for k in positions]

    def old_values(self, axes: Sequence[Var]) -> list[Expr]:
        """The old axes, given variables for the new ones."""
        return self._values(range(len(self.old)), axes)

    def old_data_values(self, axes: Sequence[Var]) -> list[Expr]:
        """The same of the data axes alone, as the init has them."""
        data = [k for k, axis in enumerate(self.old) if axis.iter_type != IterType.CommReduce]
        return self._values(data, axes)


def _counts(value: Expr, tile: Expr, facts: Analyzer) -> bool:
    """Whether a part of an axis counts its tile from 0."""
    return facts.can_prove(value >= 0) and facts.can_prove(value < tile)


def tile_of(
    step: str, view: View, loop: For, keep_units: bool, hoist: bool = True, counts_tile: bool = False
) -> Tile:
    """The nest below `loop` as one block; with `hoist`, the start value of a reduction moves out to it.

    With `counts_tile` the axes of the block inside count the tile; without, they keep counting the whole domain.
    """
    inner_loops: list[For] = []
    statement: Stmt = loop
    while isinstance(statement, For):
        inner_loops.append(statement)
        statement = statement.body
    if not isinstance(statement, BlockRealize):
        names = ", ".join([realize.block.name_hint for realize in view.blocks_below(loop)]) or "none"
        problem = f"loop {loop.loop_var.name} must hold loops and one block; its blocks are: {names}"
        raise NotSupported(step, problem, loop, "part it with fission, or give the blocks as a list")
    realize = statement
    block = realize.block
    loops = view.loops_of(block_key(block))
    cut = _divide(step, realize, loops, inner_loops)
    axes, values, pairs = _outer_axes(realize, cut, keep_units)
    facts = _facts(view, realize, axes, inner_loops)
    bound = tuple([facts.simplify(base + own) for base, own in pairs])
    _check_bound(step, realize, bound, loops, inner_loops)

    body: Stmt
    inner = realize.with_(iter_values=bound, predicate=cut.inside)
    local: _Local | None = None
    if counts_tile and axes and not any_node(block, lambda node: isinstance(node, (Let, LetStmt))):
        tiles = [cast(part[2], axis.var.dtype) for part, axis in zip(cut.parts, block.iter_vars, strict=True)]
        local = _Local(inner, [base for base, _ in pairs], [own for _, own in pairs], tiles, loops, facts)
        # A block without axes would be known by its name alone; axes tell the updates of one start value apart.
        if not local.changes or not local.realize.block.iter_vars or (block.init is not None and not all(local.kept)):
            local = None
        else:
            inner = local.realize
    init: Stmt | None = None
    result: Block | None = None
    if block.init is not None and hoist:
        init, result = _init_nest(step, view, inner, inner_loops, reducing_variables(realize))
        mine = inner.block
        known = [region for region in mine.writes if not any(is_same_region(region, read) for read in mine.reads)]
        inner = inner.with_(block=mine.with_(init=None, reads=(*known, *mine.reads)))
    body = inner
    for item in reversed(inner_loops):
        body = item.with_(body=body)
    outer = Block(
        tuple(axes),
        tuple([_widened(region, realize, bound, inner_loops, facts) for region in block.reads]),
        tuple([_widened(region, realize, bound, inner_loops, facts) for region in block.writes]),
        view.fresh_block_name(f"{block.name_hint}_o"),
        body,
        init=init,
    )
    start = None if result is None else block_key(result)
    return Tile(loop, realize, BlockRealize(tuple(values), cut.outside, outer), start, local)


def _check_bound(
    step: str, realize: BlockRealize, bound: Sequence[Expr], loops: Sequence[For], inner: Sequence[For]
) -> None:
    """What the block inside is bound to names loops inside and axes of the new block, not loops outside."""
    outside = {loop.loop_var for loop in loops if not any(loop is other for other in inner)}
    for axis, value in zip(realize.block.iter_vars, bound, strict=True):
        if uses_var(value, outside.__contains__):
            problem = f"the part of axis {axis.var.name} inside the tile depends on loops outside it: {value!r}"
            raise TileNotWhole(step, realize, problem)
        if axis.dom is not None and uses_var(axis.dom, outside.__contains__):
            problem = f"the domain of axis {axis.var.name} depends on loops outside the tile: {axis.dom!r}"
            raise TileNotWhole(step, realize, problem, "give the axis a domain that holds all values of its loops")
    for loop in inner:
        if uses_var(loop.min, outside.__contains__) or uses_var(loop.extent, outside.__contains__):
            problem = f"how often loop {loop.loop_var.name} runs depends on loops outside the tile: {loop.extent!r}"
            raise TileNotWhole(step, realize, problem)


class _Cut(NamedTuple):
    """Each axis as (outer part, its values, tile, inner part); the guards outside and inside."""

    parts: Sequence[tuple[Expr, Range, Expr, Expr]]
    outside: Expr
    inside: Expr


def _divide(step: str, realize: BlockRealize, loops: Sequence[For], inner: Sequence[For]) -> _Cut:
    domains = {item.loop_var: Range.from_min_extent(item.min, item.extent) for item in loops}
    inside = [item.loop_var for item in inner]
    # Loops that run over axes of blocks further out stand still here.
    result = subspace_divide(realize.iter_values, domains, inside, realize.predicate, "onto", False)
    if not result:
        result = subspace_divide(realize.iter_values, domains, inside, realize.predicate, "onto")
    still: dict[Var, Expr] = {}
    if not result:
        result, still = _divide_the_others(realize, domains, inside)
    if not result or (still and not _runs_always(inner, result[-1][1].extent)):
        raise TileNotWhole(step, realize, *_why_not(realize, domains, inside))
    *pairs, (outside, within) = result
    facts = Analyzer()  # of loops nothing is told, so that those of one iteration stay in the bindings
    parts = []
    for axis, (outer, tile) in zip(realize.block.iter_vars, pairs, strict=True):
        values = _outer_values(step, realize, axis, outer)
        ends = () if is_one(values.extent) else (values.min, values.extent)  # one value is a number in the bindings
        if any([reads_memory(end) or uses_var(end, domains.__contains__) for end in ends]):
            if not is_one(tile.extent) or axis.dom is None:
                problem = f"how many tiles axis {axis.var.name} has depends on loops or data: {values.extent!r}"
                raise TileNotWhole(step, realize, problem)
            values = axis.dom  # a domain says what holds wherever the block runs
            if not _runs_always(inner, within.extent) and not _stays_within(outer, values, loops, outside.extent):
                problem = f"axis {axis.var.name} may leave its domain where no loop inside runs"
                raise TileNotWhole(step, realize, problem, "give the axis a domain that holds all values of its loops")
        start = substitute(plain_expr(outer.source), still)
        parts.append((facts.simplify(start), values, tile.extent, facts.simplify(plain_expr(tile.source))))
    return _Cut(parts, outside.extent, within.extent)


def _divide_the_others(
    realize: BlockRealize, domains: Mapping[Var, Range], inside: Sequence[Var]
) -> tuple[list[list[IterMark]], dict[Var, Expr]]:
    """The same where axes that no loop of the tile moves count in ways of their own: each is one value of its domain.

    What these values are is told as well, by the variables that stand for them.
    """
    still: dict[Var, Expr] = {}
    values: list[Expr] = []
    known = dict(domains)
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        if axis.dom is None or isinstance(value, Var) or uses_var(value, inside.__contains__):
            values.append(value)
            continue
        var = Var(axis.var.name, value.dtype)
        still[var], known[var] = value, axis.dom
        values.append(var)
    if not still:
        return [], {}
    return subspace_divide(values, known, inside, realize.predicate, "onto"), still


def _runs_always(loops: Sequence[For], guard: Expr) -> bool:
    """Whether a block in these loops is known to run whenever they are reached."""
    extents = [loop.extent for loop in loops]
    return is_true(guard) and all([isinstance(extent, IntImm) and extent.value > 0 for extent in extents])


def _stays_within(outer: IterMark, domain: Range, loops: Sequence[For], guard: Expr) -> bool:
    facts = Analyzer()
    for loop in loops:
        facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
    value = plain_expr(outer.source)
    with facts.constraint_scope(guard):
        return facts.can_prove(value >= domain.min) and facts.can_prove(value < domain.min + domain.extent)


def _outer_values(step: str, realize: BlockRealize, axis: IterVar, outer: IterMark) -> Range:
    """The domain of an outer part: it counts from what is added, since each split counts from 0."""
    total = outer.source
    if not isinstance(total, IterSumExpr) or any(not _is_positive(arg.scale) for arg in total.args):
        problem = f"axis {axis.var.name} of block {realize.block.name_hint!r} does not count upwards outside the tile"
        raise NotSupported(step, problem, realize, "choose loops that count upwards with the axis")
    return Range.from_min_extent(total.base, outer.extent)


def _why_not(realize: BlockRealize, domains: Mapping[Var, Range], inside: Sequence[Var]) -> tuple[str, str | None]:
    """What stands in the way of tiles, and what to do about it where that is plain."""
    names = ", ".join([var.name for var in inside])
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        if not subspace_divide([value], domains, inside, True, "onto"):
            return (
                f"axis {axis.var.name} = {value} of block {realize.block.name_hint!r} does not divide into tiles over "
                f"the loops {names}"
            ), None
    crossing = [
        str(condition)
        for condition in conjuncts(realize.predicate)
        if uses_var(condition, inside.__contains__)
        and uses_var(condition, lambda var: var in domains and var not in inside)
    ]
    if crossing:
        text = f"the guard {crossing[0]} of block {realize.block.name_hint!r} cuts tiles over the loops {names} short"
        return text, "split by a factor that divides the extent, or pad it, or keep the last tile apart (tail='peel')"
    return f"the axes of block {realize.block.name_hint!r} do not divide into tiles over the loops {names}", None


def _outer_axes(
    realize: BlockRealize, cut: _Cut, keep_units: bool
) -> tuple[list[IterVar], list[Expr], list[tuple[Expr, Expr]]]:
    """The axes of the outer block, what they are bound to, and of each old axis what they say and what is added."""
    axes: list[IterVar] = []
    values: list[Expr] = []
    bindings: list[tuple[Expr, Expr]] = []
    for axis, (outer, domain, tile, inner) in zip(realize.block.iter_vars, cut.parts, strict=True):
        dtype = axis.var.dtype
        outer, tile, inner = (cast(item, dtype) for item in (outer, tile, inner))
        first, count = cast(domain.min, dtype), cast(domain.extent, dtype)
        is_unit = isinstance(count, IntImm) and count.value == 1
        if is_unit and not _is_zero(first):
            bindings.append((outer, inner))  # what is added stays a number
            continue
        var = Var(f"{axis.var.name}_o", dtype)
        axes.append(IterVar(Range.from_min_extent(first, count), var, axis.iter_type))
        values.append(outer if keep_units or not is_unit else first)
        base = const(0, dtype) if is_unit else var if is_one(tile) else var * tile  # one tile begins with the axis
        bindings.append((base, inner))
    return axes, values, bindings


def _is_positive(expr: Expr) -> bool:
    return not isinstance(expr, IntImm) or expr.value > 0


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, IntImm) and expr.value == 0


def _facts(view: View, realize: BlockRealize, axes: Sequence[IterVar], inner: Sequence[For]) -> Analyzer:
    """What is known inside the new block; unit axes stay in the bindings, so nothing is told of them."""
    path = view.block_path(block_key(realize.block))
    facts = facts_inside(*[around.block for around in path[:-1] if isinstance(around, BlockRealize)])
    for axis in axes:
        if axis.dom is not None and not is_unit_axis(axis):
            facts.bind(axis.var, axis.dom)
    for loop in inner:
        if not (isinstance(loop.extent, IntImm) and loop.extent.value == 1):
            facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
    return facts


def _widened(
    region: BufferRegion, realize: BlockRealize, bound: Sequence[Expr], loops: Sequence[For], facts: Analyzer
) -> BufferRegion:
    """What the region becomes while the loops inside run."""
    values = {axis.var: value for axis, value in zip(realize.block.iter_vars, bound, strict=True)}
    domains = {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in loops}
    parts = []
    for part, size in zip(substitute(region, values).region, region.buffer.shape, strict=True):
        low = interval_of(facts.simplify(part.min), domains, facts)
        high = interval_of(facts.simplify(part.min + part.extent - 1), domains, facts)
        ends = None if low is None or high is None else (low.min_value, high.max_value)
        if ends is None or any([uses_var(end, domains.__contains__) or not is_pure(end) for end in ends]):
            parts.append(Range.from_min_extent(const(0, size.dtype), size))
        else:
            extent = facts.simplify(ends[1] - ends[0] + 1)
            parts.append(Range.from_min_extent(facts.simplify(ends[0]), extent))
    return BufferRegion(region.buffer, tuple(parts))


def _init_nest(
    step: str, view: View, realize: BlockRealize, loops: Sequence[For], reduced: set[Var]
) -> tuple[Stmt, Block]:
    """The start value of a tile, over the loops inside that data axes use, and those that may have no iterations."""
    block = realize.block
    assert block.init is not None
    pairs = [
        (axis, value)
        for axis, value in zip(block.iter_vars, realize.iter_values, strict=True)
        if axis.iter_type != IterType.CommReduce
    ]
    asked = [value for _, value in pairs]
    data: list[For] = []
    for loop in reversed(loops):  # those inside first: their bounds may ask for loops around them
        runs = loop.loop_var in reduced or (isinstance(loop.extent, IntImm) and loop.extent.value > 0)
        if not runs or any([uses_var(value, {loop.loop_var}.__contains__) for value in asked]):
            data.insert(0, loop)
            asked += [loop.min, loop.extent]
    running, others = {loop.loop_var for loop in data}, {loop.loop_var for loop in loops}
    others -= running
    guards = []
    for condition in conjuncts(realize.predicate):
        if uses_var(condition, others.__contains__):
            if uses_var(condition, running.__contains__):
                problem = f"the guard {condition} of block {block.name_hint!r} relates data to the reduction"
                raise TileNotWhole(step, realize, problem)
        else:
            guards.append(condition)
    fresh = {loop.loop_var: Var(f"{loop.loop_var.name}_init", loop.loop_var.dtype) for loop in data}
    axes = {axis.var: Var(axis.var.name, axis.var.dtype) for axis, _ in pairs}
    result = Block(
        tuple([axis.with_(var=axes[axis.var]) for axis, _ in pairs]),
        (),
        tuple([substitute(region, axes) for region in block.writes]),
        view.fresh_block_name(f"{block.name_hint}_init"),
        substitute(block.init, axes),
    )
    predicate = logical_and(TRUE, *[substitute(guard, fresh) for guard in guards])
    nest: Stmt = BlockRealize(tuple([substitute(value, fresh) for _, value in pairs]), predicate, result)
    for loop in reversed(data):
        nest = loop.with_(
            loop_var=fresh[loop.loop_var],
            min=substitute(loop.min, fresh),
            extent=substitute(loop.extent, fresh),
            body=nest,
        )
    return nest, result


# --- several blocks in a row --------------------------------------------------------------------------------------


def _around_blocks(view: View, blocks: list[BlockRealize], keep_units: bool) -> Step:
    paths = [view.block_path(block_key(realize.block)) for realize in blocks]
    if len({view.scope_of(path) for path in paths}) > 1:
        raise NotInARow(blocks, "stand in different blocks")
    children = _children(blocks, paths)
    scope = view.scope_of(paths[0])
    shared = common_path(paths)
    below = shared[next(k for k, statement in enumerate(shared) if statement is scope) :]
    outer_loops = [item for item in below if isinstance(item, For)]
    if len(blocks) == 1:
        outer_loops = view.loops_of(block_key(blocks[0].block))
    edits = Edits()
    axes: list[IterVar] = []
    values: list[Expr] = []
    guards: list[Expr] = []
    regions: list[tuple[BufferRegion, bool]] = []
    for realize in blocks:
        loops = view.loops_of(block_key(realize.block))
        inner = [loop for loop in loops if not any(loop is other for other in outer_loops)]
        cut = _divide("blockize", realize, loops, inner)
        own_axes, own_values, pairs = _outer_axes(realize, cut, keep_units)
        bindings = [base + own for base, own in pairs]
        for axis, value in zip(own_axes, own_values, strict=True):
            if axis.iter_type == IterType.CommReduce and not is_unit_axis(axis):
                problem = f"the reduction of block {realize.block.name_hint!r} goes on over loops outside"
                raise TileNotWhole("blockize", realize, problem, "blockize the loop of that block alone")
            same = next((k for k, other in enumerate(values) if _is_same_axis(axes[k], other, axis, value)), None)
            if same is not None:
                bindings = [substitute(binding, {axis.var: axes[same].var}) for binding in bindings]
            else:
                axes.append(axis)
                values.append(value)
        facts = _facts(view, realize, axes, inner)
        bound = tuple([facts.simplify(binding) for binding in bindings])
        _check_bound("blockize", realize, bound, loops, inner)
        edits.replaced[realize] = realize.with_(iter_values=bound, predicate=cut.inside)
        guards += [g for g in conjuncts(cut.outside) if not any(structural_equal(g, other) for other in guards)]
        for region in realize.block.reads:
            regions.append((_widened(region, realize, bound, inner, facts), False))
        for region in realize.block.writes:
            regions.append((_widened(region, realize, bound, inner, facts), True))
    for realize in blocks:
        used = next((loop for loop in outer_loops if uses_var(realize.block, {loop.loop_var}.__contains__)), None)
        if axes and used is not None:  # a block with axes knows of loops around it by them alone
            problem = f"block {realize.block.name_hint!r} uses loop {used.loop_var.name}, which no axis is bound to"
            raise TileNotWhole("blockize", realize, problem, "bind it: v = T.axis.spatial(n, i)")
    if guards and len(blocks) > 1:
        problem = f"the guard {guards[0]} is outside the tile of several blocks"
        raise TileNotWhole("blockize", blocks[0], problem)

    body = seq([edits.visit(child) for child in children])
    names = "_".join([realize.block.name_hint for realize in blocks])
    stem = f"outer_{names}_" if len(blocks) > 1 else f"{names}_o"
    new = Block(
        tuple(axes),
        _joined([region for region, writes in regions if not writes]),
        _joined([region for region, writes in regions if writes]),
        view.fresh_block_name(stem),
        body,
    )
    around = Edits()
    around.replaced[children[0]] = BlockRealize(tuple(values), logical_and(TRUE, *guards), new)
    for child in children[1:]:
        around.replaced[child] = no_op()
    has_init = any(realize.block.init is not None for realize in blocks)
    proof = Proof.VALUES if has_init else Proof.ORDER_KEPT
    return Step(around.apply(view.function), proof, results=[BlockResult(block_key(new))], at=blocks[0])


def _children(blocks: Sequence[BlockRealize], paths: Sequence[tuple[Stmt, ...]]) -> list[Stmt]:
    """The statements in a row that hold the blocks, one each."""
    if len(blocks) == 1:
        return [blocks[0]]
    shared = common_path(paths)
    parent = shared[-1]
    if not isinstance(parent, SeqStmt):
        raise NotInARow(blocks, "do not stand in one sequence")
    result = [path[len(shared)] for path in paths]
    locations = [next(k for k, item in enumerate(parent.seq) if item is child) for child in result]
    if len(set(locations)) < len(locations):
        raise NotInARow(blocks, "share a loop with one another, but not with all")
    if sorted(locations) != list(range(min(locations), min(locations) + len(locations))):
        raise NotInARow(blocks, "do not stand one right after the other")
    for child, realize in zip(result, blocks, strict=True):
        statement = child
        while isinstance(statement, For):
            statement = statement.body
        if statement is not realize:
            raise NotInARow(blocks, f"are not alone: the nest of {realize.block.name_hint!r} holds something else")
    return [parent.seq[location] for location in sorted(locations)]


def _is_same_axis(mine: IterVar, value: Expr, axis: IterVar, other: Expr) -> bool:
    assert mine.dom is not None and axis.dom is not None
    alike = mine.iter_type == axis.iter_type and structural_equal(mine.dom, axis.dom)
    return alike and mine.var.dtype is axis.var.dtype and structural_equal(value, other)


def _joined(regions: Sequence[BufferRegion]) -> tuple[BufferRegion, ...]:
    """Each region once; of one buffer in different places, the whole of it."""
    result: dict[object, BufferRegion] = {}
    for region in regions:
        known = result.get(region.buffer)
        if known is not None and not structural_equal(known.region, region.region):
            region = whole_region(region.buffer)
        result[region.buffer] = region
    return tuple(result.values())
