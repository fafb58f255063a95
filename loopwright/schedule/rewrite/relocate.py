"""relocate: a block leaves its loops and gets new ones inside another loop: the work of compute_at and its mirror.

The caller says which values its axes shall take there (spans in terms of the loops around the new place); this file
writes the nest, guards it where the spans may exceed what the block ran over before, and puts it in its slot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.analysis.effects import Effects, effects
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    Expr,
    FloorDiv,
    FloorMod,
    For,
    IntImm,
    IterType,
    Max,
    Min,
    PrimFunc,
    Range,
    Stmt,
    Var,
    any_node,
    collect,
    const,
    logical_and,
    seq,
    stmt_list,
    substitute,
    uses_var,
)
from loopwright.ir.operators import cast
from loopwright.schedule.errors import BadStepArgument, NotSupported, ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.rewrite.bindings import bound_first
from loopwright.schedule.rewrite.iteration_domain import IterationDomain, iteration_domain
from loopwright.schedule.rewrite.nests import nest_over
from loopwright.schedule.rewrite.regions import Facts, Span, facts_under
from loopwright.schedule.view import Path, View


class NotInOneScope(ScheduleError):
    """A block can move only to loops of the block it stands in.

    For example:

        from loopwright import tir
        from loopwright.script import tir as T

        @T.prim_func
        def func(A: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
            B = T.alloc_buffer((4, 4))
            for i, j in T.grid(4, 4):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]
            for i in range(4):
                with T.block("outer"):
                    vi = T.axis.spatial(4, i)
                    for j in range(4):
                        with T.block("C"):
                            wi, wj = T.axis.spatial(4, vi), T.axis.spatial(4, j)
                            C[wi, wj] = B[wi, wj]

        sch = tir.Schedule(func)
        sch.compute_at("B", sch.get_loops("C")[0])
    """

    code = "LW0230"

    def __init__(self, step: str, realize: BlockRealize, loop: For) -> None:
        super().__init__(
            f"{step}: block {realize.block.name_hint!r} and loop {loop.loop_var.name} are not in the same block scope",
            at=loop,
            hint="choose a loop of the block that both stand in",
        )


class NothingUnderLoop(ScheduleError):
    """A block was to move to a loop that has nothing to do with it.

    compute_at needs a consumer of the block under the loop, reverse_compute_at a producer: they say which part of the
    block's work belongs into one iteration.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        C = te.compute((8,), lambda i: B[i] * 2, name="C")
        sch = tir.Schedule(te.create_prim_func([A, C]))
        sch.compute_at("C", sch.get_loops("B")[0])  # B does not read C
    """

    code = "LW0231"

    def __init__(self, step: str, realize: BlockRealize, loop: For, what: str, is_output: bool = False) -> None:
        block = realize.block.name_hint
        kind = "output block" if is_output else "block"
        super().__init__(
            f"{step}: nothing under loop {loop.loop_var.name} {what} {kind} {block!r}",
            at=loop,
            hint="two nests that share no values run together after sch.merge, where their loops are equally long",
            fields={"block": block, "loop": loop.loop_var.name},
        )


class HasEffects(ScheduleError):
    """A block whose body does more than compute values cannot be repeated, dropped or moved.

    For example:

        from loopwright import tir
        from loopwright.script import tir as T

        @T.prim_func
        def func(A: T.Buffer(4), C: T.Buffer(4)):
            B = T.alloc_buffer(4)
            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = T.call_extern("float32", "tick", A[vi])
            for i in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(4, i)
                    C[vi] = B[vi]

        sch = tir.Schedule(func)
        sch.compute_at("B", sch.get_loops("C")[0])
    """

    code = "LW0233"

    def __init__(self, step: str, realize: BlockRealize, call: object) -> None:
        super().__init__(
            f"{step}: block {realize.block.name_hint!r} calls {call}, which does more than give a value",
            at=realize,
            why="such calls are never repeated, dropped or moved past others",
        )


class Relocation:
    """A block taken out of its place, and the loop it shall go to."""

    def __init__(self, step: str, view: View, realize: BlockRealize, loop: For) -> None:
        self.step, self.realize, self.loop = step, realize, loop
        self.block: Block = realize.block
        path = view.block_path(block_key(realize.block))
        self.touched: Effects = effects(realize, path[:-1])
        self.touched_by_name: Effects = effects(realize)  # by the names that the statements beside it use
        if len(path) == 1:
            raise NotSupported(step, "the root block cannot move", realize)
        if view.scope_of(path) is not view.scope_of(view.loop_path(loop.loop_var)):
            raise NotInOneScope(step, realize, loop)
        if view.is_in_init(path) is not view.is_in_init(view.loop_path(loop.loop_var)):
            name, around = self.block.name_hint, view.scope_of(path).block.name_hint
            problem = f"of block {name!r} and loop {loop.loop_var.name} only one is in the init of block {around!r}"
            raise NotSupported(step, problem, loop, "an init runs once a cell: what is in it stays, and nothing joins")
        if self.touched.calls:
            raise HasEffects(step, realize, self.touched.calls[0])
        without = View(view.replaced(path, None))
        if loop.loop_var not in without.index.loops:
            name = self.block.name_hint
            problem = f"loop {loop.loop_var.name} is an ancestor of block {name!r}, and holds nothing else"
            raise NotSupported(step, problem, loop)
        self.view = without  # the program without the block
        self.path: Path = without.loop_path(loop.loop_var)
        self.place = self.path[-1]
        assert isinstance(self.place, For)
        self.around = without.all_loops_above(self.path)
        self.blocks = [statement for statement in self.path if isinstance(statement, BlockRealize)]
        stays = {loop.loop_var for loop in self.around}
        self.left = {one.loop_var for one in path if isinstance(one, For) and one.loop_var not in stays}
        self.runs: IterationDomain = iteration_domain(step, path, view.loop_path(loop.loop_var), exact=True)

    @property
    def body(self) -> Stmt:
        """What the loop holds beside the block."""
        assert isinstance(self.place, For)
        return self.place.body

    def facts(self) -> Facts:
        """What is known at the new place."""
        return facts_under(self.around, self.blocks)

    def finish(self, spans: Mapping[Var, Span], index: int, preserve_unit_loops: bool) -> PrimFunc:
        """The program with the block's new nest, its axes running over `spans` (or over everything)."""
        nest = self._nest(spans, preserve_unit_loops)
        statements = stmt_list(self.body)
        slot = self._slot(statements, index)
        new = self.place.with_(body=seq([*statements[:slot], nest, *statements[slot:]]))
        return self.view.replaced(self.path, new)

    # --- the nest -------------------------------------------------------------------------------------------------

    def _nest(self, spans: Mapping[Var, Span], preserve_unit_loops: bool) -> Stmt:
        facts = self.facts()
        loops: list[tuple[Var, Expr]] = []
        values: dict[Var, Expr] = {}
        guards: list[Expr] = []
        for axis, bound_to in zip(self.block.iter_vars, self.realize.iter_values, strict=True):
            var = axis.var
            if axis.iter_type is IterType.Opaque and not uses_var(bound_to, self.left.__contains__):
                values[var] = bound_to  # it tells apart iterations of loops that are around the block as before
                continue
            low, extent, exceeds = self._bounds(spans.get(var), self.runs.domain[var], facts)
            low, extent = facts.simplify(cast(low, var.dtype)), cast(extent, var.dtype)
            value: Expr = low
            if preserve_unit_loops or not (isinstance(extent, IntImm) and extent.value == 1):
                counter = Var(f"ax{len(loops)}", var.dtype)
                loops.append((counter, extent))
                zero = isinstance(low, IntImm) and low.value == 0
                value = counter if zero else low + counter
            values[var] = value
            domain = self.runs.domain[var]
            if exceeds[0]:
                guards.append(cast(domain.low, var.dtype) <= value)
            if exceeds[1]:
                guards.append(value < facts.simplify(cast(domain.high, var.dtype) + 1))
        guards += [substitute(condition, values) for condition in self.runs.conditions]
        for counter, extent in loops:
            facts.bind(counter, Range.from_min_extent(const(0, counter.dtype), extent))
        kept: list[Expr] = []
        for guard in guards:
            simple = facts.simplify(guard)
            if not facts.can_prove(simple):
                kept.append(bound_first(simple))
        bound = tuple([values[axis.var] for axis in self.block.iter_vars])
        realize = self.realize.with_(iter_values=bound, predicate=logical_and(const(True), *kept))
        return nest_over([counter for counter, _ in loops], [extent for _, extent in loops], realize)

    def _bounds(self, span: Span | None, domain: Span, facts: Facts) -> tuple[Expr, Expr, tuple[bool, bool]]:
        """Where an axis starts, how many values it takes, and whether they may exceed its domain below and above."""
        size = facts.simplify(domain.high - domain.low + 1)
        whole = domain.low, size, (False, False)
        if span is None:
            return whole
        low, high = cast(span.low, domain.low.dtype), cast(span.high, domain.high.dtype)
        if facts.can_prove(low <= domain.low):
            low = domain.low
        if facts.can_prove(high >= domain.high):
            high = domain.high
        extent = _loop_extent(facts.simplify(high - low + 1), facts, {loop.loop_var for loop in self.around})
        if extent is None or (isinstance(extent, IntImm) and facts.can_prove(size <= extent)):
            return whole
        last = facts.simplify(low + extent - 1)
        exceeds = not facts.can_prove(low >= domain.low), not facts.can_prove(last <= domain.high)
        return low, extent, exceeds

    # --- the slot -------------------------------------------------------------------------------------------------

    def _slot(self, statements: Sequence[Stmt], index: int) -> int:
        """-1: as late as readers of its results allow; -2: as early as makers of its inputs allow; or a number."""
        if index >= 0:
            if index > len(statements):
                problem = f"index {index}, but loop {self.loop.loop_var.name} holds {len(statements)} statements"
                raise BadStepArgument(self.step, problem, self.loop)
            return index
        if index not in (-1, -2):
            raise BadStepArgument(self.step, f"index {index}", self.loop, "use -1 (last), -2 (first) or a position")
        marks = [effects(statement, self.path) for statement in statements]
        first, last = 0, len(statements)
        for position, mark in enumerate(marks):
            if any(data in self.touched.reads for data in mark.writes):
                first = position + 1
        for position, mark in reversed(list(enumerate(marks))):
            if any(data in self.touched.writes for data in mark.reads):
                last = position
        return last if index == -1 else min(first, last)

    def buffers(self) -> list[Buffer]:
        """Those through which values can flow differently now."""
        return list({**self.touched.reads, **self.touched.writes}.values())


def _loop_extent(extent: Expr, facts: Facts, running: set[Var]) -> Expr | None:
    """An extent for a loop: constant where a constant is not much larger; None for the whole axis."""
    if isinstance(extent, IntImm) or not _has_parts(extent, (FloorDiv, FloorMod, Min, Max)):
        return extent
    if not uses_var(extent, running.__contains__) and not _has_parts(extent, (Min, Max)):
        return extent  # `(n + 3) // 4` is the same in every iteration, and no constant is near it
    limit = _constant_limit(extent, facts)
    return extent if limit is None else const(limit, extent.dtype)


def _has_parts(extent: Expr, kinds: tuple[type[Expr], ...]) -> bool:
    return any_node(extent, lambda node: isinstance(node, kinds))


def _constant_limit(extent: Expr, facts: Facts) -> int | None:
    """A literal that `extent` never exceeds, as small as it is easily found."""
    divisions = [node for node in collect(extent, FloorDiv) if isinstance(node.b, IntImm) and node.b.value > 0]
    divisors = {1, *[node.b.value for node in divisions if isinstance(node.b, IntImm)]}
    high = facts.interval(extent)[1]
    best = high if high < (1 << 30) else None
    for divisor in divisors:
        # c * (x // c) ≤ x: differences of quotients become small once they are multiplied out.
        for guess in range(1, 65):
            if best is not None and guess >= best:
                break
            if facts.can_prove(extent * divisor <= guess * divisor + divisor - 1):
                best = guess
                break
    return best
