"""Plain loops: those that count from 0 and run one iteration after the other, as steps that rewrite loops want them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright.ir import BlockRealize, Expr, For, ForKind, IntImm, Stmt, is_zero, structural_equal
from loopwright.schedule.bindings import is_true
from loopwright.schedule.errors import NotSupported, ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.view import View

_KINDS: Final = {  # the steps that give loops their kinds
    ForKind.PARALLEL: "parallel",
    ForKind.VECTORIZED: "vectorize",
    ForKind.UNROLLED: "unroll",
    ForKind.THREAD_BINDING: "bind",
}


def check_plain(step: str, loop: For, from_zero: bool = True) -> None:
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


def value_at(loop: For, iteration: Expr) -> Expr:
    """What the variable of the loop is in its iteration of that number, the first being 0."""
    return iteration if is_zero(loop.min) else iteration + loop.min


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
        check_plain(step, loop)
        domain = axis.dom
        is_whole = domain is not None and is_zero(domain.min) and structural_equal(loop.extent, domain.extent)
        if value is not loop.loop_var or not is_whole:
            raise refusal(realize, f"binds axis {axis.var.name} to {value}, not to a loop as it is")
    return path[start]
