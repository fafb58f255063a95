"""fuse: a nest of loops becomes one loop.

    for i, j in T.grid(4, 5):               →    for i_j_fused in range(20):
        with T.block("B"):                           with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])          vi = T.axis.spatial(4, i_j_fused // 5)
            …                                            vj = T.axis.spatial(5, i_j_fused % 5)

Every iteration runs once, in the same order. A data loop and a reduce loop may be fused: the init of the reduction
then runs before the fused loop. Where something else in the loop touches the same memory, where cells are shared or
conditions say which cells there are, that is proved to keep every value.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from loopwright.arith import Analyzer
from loopwright.ir import (
    Expr,
    For,
    ForKind,
    IntImm,
    PrimFunc,
    Var,
    const,
    is_one,
    product,
    uses_var,
)
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.schedule.proof.moved_inits import inits_moved_out, loops_of_inits, met_by_inits
from loopwright.schedule.rewrite.bindings import rebind
from loopwright.schedule.rewrite.nests import nest
from loopwright.schedule.rewrite.plain_loops import (
    check_bounds_stay,
    check_hoistable_bounds,
    check_plain,
    facts_around,
    iterations,
    value_at,
)
from loopwright.schedule.step import LoopResult, Proof, Step
from loopwright.schedule.view import View


def fuse(view: View, loops: Sequence[For], preserve_unit_iters: bool = True) -> Step:
    """Fuse loops that stand directly in one another, outermost first."""
    if not loops:
        raise BadStepArgument("fuse", "no loops are given")
    for loop in loops:
        check_plain("fuse", view, loop, from_zero=False)
    for outer, inner in pairwise(loops):
        if outer.body is not inner:
            hint = "fuse loops that stand directly in one another, outermost first"
            raise NotSupported("fuse", _why_apart(view, outer, inner), outer, hint)
        for what, bound in (("extent", inner.extent), ("start", inner.min)):
            for var in [loop.loop_var for loop in loops if uses_var(bound, {loop.loop_var}.__contains__)]:
                problem = f"the {what} of loop {inner.loop_var.name} depends on {var.name}"
                raise NotSupported("fuse", problem, inner)
    empty = _check_empty(view, loops)
    path = view.loop_path(loops[0].loop_var)
    check_bounds_stay("fuse", loops, path[:-1])
    for position, loop in enumerate(loops):
        check_hoistable_bounds("fuse", view, loop, loops[:position], path[:-1])

    extents = [iterations(view, loop, path[:-1]) for loop in loops]
    if sum([extent is not loop.extent for extent, loop in zip(extents, loops, strict=True)]) == 1:
        extents = [loop.extent for loop in loops]  # a product with one negative extent is no iterations either
    total = Analyzer().simplify(product(extents))
    fused = Var("_".join(loop.loop_var.name for loop in loops) + "_fused", total.dtype)
    values = {loop.loop_var: value_at(loop, digit) for loop, digit in zip(loops, _digits(fused, extents), strict=True)}
    new = For(fused, const(0, fused.dtype), total, ForKind.SERIAL, loops[-1].body)
    body = rebind(loops[-1].body, values, [*view.all_loops_above(path[:-1]), new], preserve_unit_iters)
    after = view.replaced(path, nest([new], body))
    if empty:
        _check_starts(view, after, fused, empty)
    buffers = {buffer.data: buffer for buffer in (*met_by_inits(loops[0], path[:-1]), *inits_moved_out(view, loops))}
    proof = Proof.VALUES if buffers else Proof.ORDER_KEPT
    return Step(after, proof, results=[LoopResult(fused)], at=loops[0], buffers=list(buffers.values()))


def _why_apart(view: View, outer: For, inner: For) -> str:
    """Why `inner` does not stand directly in `outer`."""
    one, other = outer.loop_var.name, inner.loop_var.name
    around = [loop.loop_var for loop in view.all_loops_above(view.loop_path(outer.loop_var))]
    if inner.loop_var in around[:-1]:
        return f"loop {other} stands outside {one}, not inside it"
    path = view.loop_path(inner.loop_var)
    if outer not in path:
        return f"loop {other} is in another nest than {one}"
    between = path[path.index(outer) + 1 : -1]
    loops = [statement.loop_var.name for statement in between if isinstance(statement, For)]
    if len(loops) == len(between):
        return f"loop {', '.join(loops)} stands between {one} and {other}"
    return f"{other} is not the only statement in loop {one}"


def _check_empty(view: View, loops: Sequence[For]) -> list[For]:
    """The loops that may have no iterations; inside the outermost, none may be known to."""
    facts = facts_around(view, view.loop_path(loops[0].loop_var)[:-1], when_running=False)
    result = [loop for loop in loops if not facts.can_prove(loop.extent >= 1)]
    for outer, loop in pairwise(loops):
        if isinstance(loop.extent, IntImm) and loop.extent.value <= 0:
            name = loop.loop_var.name
            problem = f"loop {name} has no iterations, so a fused loop could not tell {outer.loop_var.name}"
            raise NotSupported("fuse", problem, loop)
    return result


def _check_starts(view: View, after: PrimFunc, fused: Var, empty: Sequence[For]) -> None:
    """A reduction over no iterations still starts, for all iterations of the data loops: these must stay to be seen.

    So the fused loop runs over starts only where all loops did that may have no iterations, or over none of them.
    """
    before, now = loops_of_inits(view.function), loops_of_inits(after)
    for key in now:
        for loop in empty:
            if (loop.loop_var in before[key]) != (fused in now[key]):
                name, block = loop.loop_var.name, view.realize(key).block.name_hint
                problem = f"loop {name} may have no iterations, and block {block} starts a reduction all the same"
                raise NotSupported("fuse", problem, loop)


def _digits(fused: Var, extents: Sequence[Expr]) -> list[Expr]:
    """What each loop is at an iteration of the fused one: `f // 48`, `f % 48 // 8`, `f % 8`.

    Over open sizes `f // m // n`, `f // m % n`, `f % m`, which `arith/digits.py` reads.
    """
    result: list[Expr] = []
    if not all([isinstance(extent, IntImm) for extent in extents[1:]]):
        rest: Expr = fused
        for extent in reversed(extents[1:]):
            result.append(rest % extent)
            rest = rest // extent
        return [rest, *reversed(result)]
    below: Expr = const(1, fused.dtype)  # iterations of the loops inside
    for depth, extent in reversed(list(enumerate(extents))):
        through = Analyzer().simplify(below * extent)
        digit = fused if depth == 0 else fused % through
        result.append(digit if is_one(below) else digit // below)
        below = through
    return list(reversed(result))
