"""Speculative runs: a step that makes a block run where it did not run before must not make it fail there.

What such runs compute is nobody's business (the proof shows that nobody who did exist sees it), but they must stay in
bounds, divide by no zero, and call nothing that has an effect.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from typing import Final

from loopwright.analysis.accesses import accesses_of
from loopwright.analysis.bounds import OutOfBounds, check_bounds_in
from loopwright.analysis.effects import is_pure_call
from loopwright.analysis.uninitialised import UninitialisedRead, check_initialised
from loopwright.arith import Analyzer
from loopwright.ir import (
    AssertStmt,
    Block,
    BlockRealize,
    Buffer,
    Call,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    For,
    IntImm,
    IterVar,
    Mod,
    Node,
    PrimFunc,
    Range,
    Rewriter,
    Stmt,
    Var,
    const,
    pre_order_visit,
    uses_var,
)
from loopwright.schedule.errors import NotSupported, ScheduleError
from loopwright.schedule.handles import BlockKey, block_key
from loopwright.schedule.rewrite.blocks import blocks_in, is_leaf
from loopwright.schedule.rewrite.buffers import exchange, fresh_buffer
from loopwright.schedule.rewrite.fills import fill_nest, first_in_home
from loopwright.schedule.rewrite.nests import axes_over
from loopwright.schedule.rewrite.plain_loops import facts_around
from loopwright.schedule.rewrite.regions import facts_under
from loopwright.schedule.rewrite.windows import accesses
from loopwright.schedule.view import Path, View

_UNKNOWN: Final = 2**30  # a bound as far out as this says only what type an index has


class FailsInExtraRuns(ScheduleError):
    """The step would make a block touch a cell that its buffer does not have, or that nobody has written.

    Iterations that were guarded away would run. They may compute anything, as nobody reads it, but only within their
    buffers, and of cells that hold something. Copy an argument into a buffer of the function first (`cache_read`,
    `cache_write`): that one can grow.

    For example:

        from loopwright import te, tir
        A = te.placeholder((10,), name="A")
        B = te.compute((10,), lambda i: A[i] + 1.0, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.split(sch.get_loops("B")[0], [None, 4], tail="pad")
    """

    code = "LW0221"

    def __init__(self, step: str, error: OutOfBounds | UninitialisedRead, at: object) -> None:
        super().__init__(f"{step}: {error.problem}", at=at, why=error.why)


def check_speculative_runs(step: str, after: PrimFunc, keys: Collection[BlockKey], at: Stmt) -> None:
    """The blocks of these keys may run more often than before."""
    repeated: set[BlockKey] = set()
    for block in blocks_in(after.body):
        if block_key(block) in keys:
            check_body(step, block, at)
            repeated |= {block_key(block), *[block_key(inner) for inner in blocks_in(block.body)]}
    _check_axes(step, View(after), keys, at)
    program = accesses_of(after)
    for access in program.accesses:
        inside = access.instance.block
        if inside is not None and block_key(inside) in repeated and not access.is_must:
            problem = f"where block {inside.name_hint!r} touches {access.buffer.name} depends on data"
            raise NotSupported(step, f"{problem}: it may not run more often", at)
    try:
        unproved = check_bounds_in(program)
        check_initialised(after)
    except (OutOfBounds, UninitialisedRead) as error:
        raise FailsInExtraRuns(step, error, at) from None
    for access, axes in unproved:
        # A build checks such accesses when the program runs, which would then fail where it did not fail before.
        inside = access.instance.block
        if inside is not None and block_key(inside) in repeated:
            name, indices = access.buffer.name, [str(access.node.indices[axis]) for axis in axes]
            problem = f"block {inside.name_hint!r} would run more often, and that {', '.join(indices)} stays inside"
            problem = f"{problem} {name} is not known for all values of the parameters"
            raise NotSupported(step, problem, at, "keep the guard, or limit by numbers how far the loops run")


def _check_axes(step: str, view: View, keys: Collection[BlockKey], at: Stmt) -> None:
    """The axes of these blocks stay within their domains: accesses are checked by what those say."""
    for key in keys:
        path = view.index.blocks.get(key)
        if path is None or any([isinstance(node, For) and _never_runs(node) for node in path]):
            continue
        realize = path[-1]
        assert isinstance(realize, BlockRealize)
        facts = facts_around(view, path[:-1])
        with facts.constraint_scope(realize.predicate):
            for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
                if axis.dom is not None and not _is_within(facts, value, axis.dom):
                    name = realize.block.name_hint
                    problem = f"axis {axis.var.name} of block {name!r} may leave its domain, being {value}"
                    hint = "give the axis a domain that holds the value, or move the block where its loops run"
                    raise NotSupported(step, f"{problem}, where the block did not run before", at, hint)


def _is_within(facts: Analyzer, value: Expr, dom: Range) -> bool:
    return facts.can_prove(value >= dom.min) and facts.can_prove(value < dom.min + dom.extent)


def check_body(step: str, block: Block, at: Stmt) -> None:
    """A block may run where it did not run before: it divides by no data, and calls nothing that has an effect."""
    name = block.name_hint

    def look(node: Node) -> None:
        if isinstance(node, (Div, Mod, FloorDiv, FloorMod)) and node.dtype.is_int:
            if not (isinstance(node.b, IntImm) and node.b.value):
                raise NotSupported(step, f"block {name!r} divides by {node.b}, which may be 0 where it did not run", at)
        if isinstance(node, AssertStmt):
            hint = "assert it before the nest, or keep the guard"
            raise NotSupported(step, f"block {name!r} asserts something: it may not run more often", at, hint)
        if isinstance(node, Call) and not is_pure_call(node):
            raise NotSupported(step, f"block {name!r} calls {node.op.name}: it may not run more often", at)

    pre_order_visit(block, look)


def with_wide_axes(step: str, body: Stmt, path: Path, inside: Sequence[For] = ()) -> Stmt:
    """`body` with the domains of its blocks' axes grown to hold every value that they are bound to.

    It stands at the end of `path`, in new loops `inside` of that.
    """
    loops = [*[statement for statement in path if isinstance(statement, For)], *inside]
    if any([_never_runs(loop) for loop in loops]):
        return body
    blocks = [statement for statement in path if isinstance(statement, BlockRealize)]
    result: Stmt = _WideAxes(step, facts_under(loops, blocks), {loop.loop_var for loop in inside}).visit(body)
    return result


def _never_runs(loop: For) -> bool:
    """Whether a loop has no iterations: its variable has no values, and so no bounds."""
    return isinstance(loop.extent, IntImm) and loop.extent.value <= 0


def with_room(step: str, view: View, keys: Collection[BlockKey]) -> PrimFunc:
    """The function with its own buffers grown, where the blocks of these keys touch cells past their ends.

    New cells that would be read before they are written are filled with zeros.
    """
    owned = {buffer for path in view.index.blocks.values() for buffer in _allocated(path[-1])}
    needed: dict[Buffer, list[int]] = {}
    for key in keys:
        block = view.realize(key).block
        inner = [found for part in (block.init, block.body) if part is not None for found in blocks_in(part)]
        facts = facts_around(view, view.index.blocks[key])
        for each in inner:
            for axis in each.iter_vars:
                if axis.dom is not None:
                    facts.bind(axis.var, axis.dom)
        touched = {region.buffer for region in (*block.reads, *block.writes)} & owned
        for buffer in sorted(touched, key=lambda item: item.name):
            sizes = [extent.value if isinstance(extent, IntImm) else 0 for extent in buffer.shape]
            result = needed.setdefault(buffer, sizes)
            for part in [part for part in (block.init, block.body) if part is not None]:
                for access in accesses(part, buffer):
                    for loop in access.loops:
                        facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), allow_override=True)
                    for position, index in enumerate(access.indices):
                        top = facts.const_int_bound(index).max_value + 1
                        if isinstance(buffer.shape[position], IntImm) and top < _UNKNOWN:
                            result[position] = max(result[position], top)
    function = view.function
    grown: list[tuple[Buffer, Buffer]] = []
    for buffer, sizes in needed.items():
        shape = [
            const(size, extent.dtype) if isinstance(extent, IntImm) else extent
            for size, extent in zip(sizes, buffer.shape, strict=True)
        ]
        if any([isinstance(old, IntImm) and old.value < size for old, size in zip(buffer.shape, sizes, strict=True)]):
            grown.append((buffer, fresh_buffer(buffer.name, shape, buffer, buffer.scope())))
            function = exchange(function, *grown[-1])
    return _initialised(step, function, grown)


def _initialised(step: str, function: PrimFunc, grown: Sequence[tuple[Buffer, Buffer]]) -> PrimFunc:
    """The function with zeros in new cells of those buffers that would otherwise be read too early."""
    for _ in grown:
        try:
            check_initialised(function)
            return function
        except UninitialisedRead as error:
            result = [pair for pair in grown if pair[1].name == error.fields.get("buffer")]
        if not result:
            return function
        old, new = result[0]
        axes = axes_over(new.shape)
        outside = [
            axis >= extent
            for axis, extent, whole in zip(axes, old.shape, new.shape, strict=True)
            if isinstance(extent, IntImm) and isinstance(whole, IntImm) and extent.value < whole.value
        ]
        view = View(function)
        name = view.fresh_block_name(f"buffer_{new.name}_padding")
        fill = fill_nest(name, new, axes, outside, const(0, new.dtype))
        function = first_in_home(step, view, new, fill, view.root)
    return function


def _allocated(realize: Stmt) -> tuple[Buffer, ...]:
    return realize.block.alloc_buffers if isinstance(realize, BlockRealize) else ()


class _WideAxes(Rewriter):
    def __init__(self, step: str, facts: Analyzer, new: set[Var]) -> None:
        self.step, self.facts = step, facts
        self.new = new  # variables of the new loops

    def visit_For(self, loop: For) -> Stmt:
        if _never_runs(loop):
            return loop
        with self.facts.bound(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), inline=False):
            return loop.with_(body=self.visit(loop.body))

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        axes = []
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
            dom = axis.dom
            bound = self.facts.const_int_bound(value)
            if dom is not None and not (isinstance(dom.extent, IntImm) and isinstance(dom.min, IntImm)):
                dom = self._constant_domain(realize, axis, value)
                axis = axis.with_(dom=dom)
            elif dom is not None and isinstance(dom.extent, IntImm) and isinstance(dom.min, IntImm):
                low = min(dom.min.value, bound.min_value) if bound.min_value > -(2**31) else dom.min.value
                high = max(dom.min.value + dom.extent.value, bound.max_value + 1)
                is_open = bound.min_value <= -(2**31) or max(high, high - low) >= 2**31
                is_new = not self.new or uses_var(value, self.new.__contains__)
                if is_open and is_new and not _is_within(self.facts, value, dom):
                    problem = f"how far axis {axis.var.name} of block {realize.block.name_hint!r} runs is not known"
                    raise NotSupported(self.step, problem, realize)
                fits = max(high, high - low) < 2**31
                if fits and (low, high) != (dom.min.value, dom.min.value + dom.extent.value):
                    grown = Range.from_min_extent(const(low, dom.min.dtype), const(high - low, dom.extent.dtype))
                    axis = axis.with_(dom=grown)
            axes.append(axis)
        block = realize.block.with_(iter_vars=tuple(axes))
        if block.init is not None or not is_leaf(block):  # axes of blocks inside are bound to those of this one
            with ExitStack() as known:
                for axis in axes:
                    if axis.dom is not None:
                        known.enter_context(self.facts.bound(axis.var, axis.dom, inline=False))
                init = None if block.init is None else self.visit(block.init)
                block = block.with_(init=init, body=self.visit(block.body))
        return realize.with_(block=block)

    def _constant_domain(self, realize: BlockRealize, axis: IterVar, value: Expr) -> Range:
        """The domain of an axis that depends on loops: as it is where it holds the value, else one of two numbers."""
        dom = axis.dom
        assert dom is not None
        if _is_within(self.facts, value, dom):
            return dom
        bound, room = self.facts.const_int_bound(value), self.facts.const_int_bound(dom.min + dom.extent - 1)
        low = min(bound.min_value, self.facts.const_int_bound(dom.min).min_value)
        high = max(bound.max_value, room.max_value) + 1
        if low <= -_UNKNOWN or high >= _UNKNOWN:
            problem = f"how far axis {axis.var.name} of block {realize.block.name_hint!r} runs is not known"
            raise NotSupported(self.step, problem, realize)
        return Range.from_min_extent(const(low, dom.min.dtype), const(high - low, dom.extent.dtype))
