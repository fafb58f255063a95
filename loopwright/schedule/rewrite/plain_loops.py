"""Plain loops: those that count from 0 and run one iteration after the other, as steps that rewrite loops want them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from loopwright.analysis.effects import effects
from loopwright.analysis.may_fail import is_safe, risks_in
from loopwright.arith import Analyzer
from loopwright.ir import (
    BlockRealize,
    Expr,
    For,
    ForKind,
    IntImm,
    Range,
    Stmt,
    Var,
    cast,
    const,
    is_zero,
    structural_equal,
)
from loopwright.ir.operators import maximum
from loopwright.schedule.errors import NotSupported, ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.rewrite.bindings import is_true
from loopwright.schedule.rewrite.sizes import size_facts
from loopwright.schedule.view import Path, View

_KINDS: Final = {  # the steps that give loops their kinds
    ForKind.PARALLEL: "parallel",
    ForKind.VECTORIZED: "vectorize",
    ForKind.UNROLLED: "unroll",
    ForKind.THREAD_BINDING: "bind",
}


def check_plain(step: str, view: View, loop: For, from_zero: bool = True) -> None:
    """The loop counts from 0, if so wanted, and nobody else has claimed how its iterations run."""
    if from_zero and not is_zero(loop.min):
        name, size = loop.loop_var.name, loop.extent
        hint = f"sch.split({name}, [{size}]) makes it count from 0" if isinstance(size, IntImm) else None
        raise NotSupported(step, f"loop {name} starts at {loop.min}, not at 0", loop, hint)
    if loop.annotations:
        raise NotSupported(step, f"loop {loop.loop_var.name} carries annotations", loop)
    if loop.kind is not ForKind.SERIAL:
        kind = loop.kind.name.lower()
        problem = f"loop {loop.loop_var.name} is {kind}: a loop gets its kind last"
        raise NotSupported(step, problem, loop, kind_last(step, loop.kind))
    check_bounds_stay(step, [loop], view.loop_path(loop.loop_var)[:-1])


def check_bounds_stay(step: str, loops: Sequence[For], path: Path) -> None:
    """Nothing in the loops, outermost first, writes what their bounds read; `path` are the statements around them.

    A loop evaluates its bounds once, when it is reached. A step that asks for them elsewhere too (in a guard, in the
    extent of an outer loop) reads that memory again.
    """
    for loop in loops:
        for what, bound in (("start", loop.min), ("extent", loop.extent)):
            if isinstance(bound, IntImm | Var):
                continue
            read = effects(bound, path)
            if not read.loaded and not read.calls and not read.pointers:
                continue
            changed = effects(loops[0].body, path).changed
            for memory in read.loaded:
                if memory in changed:
                    problem = f"the {what} {bound} of loop {loop.loop_var.name} is read once"
                    hint = f"copy {memory.name} to a buffer of its own before the loop"
                    raise NotSupported(step, f"{problem}, and the loop's body writes {memory.name}", loop, hint)
            if read.calls or read.pointers:
                problem = f"the {what} {bound} of loop {loop.loop_var.name} is a call with effects"
                raise NotSupported(step, problem, loop, "store its result before the loop")


def check_hoistable_bounds(step: str, view: View, loop: For, passed: Sequence[For], path: Path) -> None:
    """The bounds of a loop may be evaluated at the end of `path`, outside of the loops `passed` that are around it.

    Where one of those has no iterations, nobody asked for the bounds: what they read may lie outside its buffer.
    """
    asked = [node for bound in (loop.min, loop.extent) for node in risks_in(bound)]
    if not asked:
        return
    facts = facts_around(view, path)
    risky = [node for node in asked if not is_safe(node, facts)]
    empty = [other for other in passed if not facts.can_prove(other.extent >= 1)]
    if risky and empty:
        what = f"{risky[0]}, in a bound of loop {loop.loop_var.name},"
        problem = f"{what} would be evaluated also where loop {empty[0].loop_var.name} has no iterations"
        hint = f"store the bound in a buffer of its own, under the condition that {empty[0].loop_var.name} runs"
        raise NotSupported(step, problem, loop, hint)


def facts_around(view: View, path: Path, when_running: bool = True) -> Analyzer:
    """What is known at the end of `path`: of the function's sizes, the loops and the axes of blocks.

    Without `when_running`, only what is true as well where a loop has no iterations: a reduction starts there too.
    """
    facts = size_facts(view.function)
    for statement in path:
        if isinstance(statement, For):
            if not when_running and not facts.can_prove(statement.extent >= 1):
                continue
            facts.bind(statement.loop_var, Range.from_min_extent(statement.min, statement.extent))
        elif isinstance(statement, BlockRealize):
            for axis in statement.block.iter_vars:
                if axis.dom is not None:
                    facts.bind(axis.var, axis.dom)
    return facts


def iterations(view: View, loop: For, path: Path) -> Expr:
    """How often a loop runs: its extent, or 0 where that is negative. `path` are the statements that stay around it."""
    extent, facts = loop.extent, facts_around(view, path, when_running=False)
    return extent if facts.can_prove(extent >= 0) else maximum(extent, const(0, extent.dtype))


def value_at(loop: For, iteration: Expr) -> Expr:
    """What the variable of the loop is in its iteration of that number, the first being 0."""
    value = iteration if is_zero(loop.min) else iteration + loop.min
    return cast(value, loop.loop_var.dtype)


def kind_last(step: str, kind: ForKind) -> str:
    """The way out for a step on a loop that has its kind already."""
    return f"{step} before {_KINDS[kind]}; sch.undo() takes the last step back"


def own_nest(
    step: str, view: View, realize: BlockRealize, refusal: Callable[[BlockRealize, str], ScheduleError]
) -> Stmt:
    """The outermost loop of a block that stands alone in a nest of one plain loop an axis; else, raise the refusal."""
    path = view.block_path(block_key(realize.block))
    loops = view.loops_of(block_key(realize.block))
    start = len(path) - 1 - len(loops)
    own = path[start:-1]
    same = len(own) == len(loops) and all([a is b for a, b in zip(own, loops, strict=True)])
    if not same or len(realize.iter_values) != len(loops) or not is_true(realize.predicate):
        raise refusal(realize, "does not stand alone in a nest of one loop an axis")
    for value, axis, loop in zip(realize.iter_values, realize.block.iter_vars, loops, strict=True):
        check_plain(step, view, loop)
        domain = axis.dom
        is_whole = domain is not None and is_zero(domain.min) and structural_equal(loop.extent, domain.extent)
        if value is not loop.loop_var or not is_whole:
            raise refusal(realize, f"binds axis {axis.var.name} to {value}, not to a loop as it is")
    return path[start]
