"""skew: iterations of a loop are moved along by a number that depends on an outer loop.

    for i, j in T.grid(4, 6):       →    for i, j_s in T.grid(4, 9):
        with T.block("B"):                   with T.block("B"):
            vi, vj = i, j                        vi, vj = i, j_s - i
            …                                    T.where(0 <= j_s - i and j_s - i < 6)

Here `skew(j, i, 1)`: cells on a diagonal, which depend on others, come to stand in a column, which does not (a
wavefront). With a modulus, `skew(j, i, 6, 4)` moves iteration j to j + i * 6 % 4: where rows of 6 cells lie one behind
the other in memory, iterations whose number is a multiple of 4 are then those whose address is one.
"""

from __future__ import annotations

from loopwright.arith import Analyzer
from loopwright.ir import Expr, For, ForKind, IntImm, Var, const, logical_and
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.schedule.rewrite.bindings import guard_blocks, rebind
from loopwright.schedule.rewrite.plain_loops import check_bounds_stay, check_plain
from loopwright.schedule.step import LoopResult, Proof, Step
from loopwright.schedule.view import View


def skew(view: View, loop: For, outer: For, factor: int, modulus: int | None = None) -> Step:
    """Move iteration j of `loop` to `j + outer * factor`, or to `j + outer * factor % modulus`."""
    # Check
    check_plain("skew", view, loop)
    path = view.loop_path(loop.loop_var)
    if not any([other is outer for other in view.loops_to(loop.loop_var)[:-1]]):
        problem = f"loop {outer.loop_var.name} is not around loop {loop.loop_var.name} in its block"
        raise BadStepArgument("skew", problem, loop, "name a loop that is")
    check_bounds_stay("skew", [loop], path[:-1])
    for name, number in (("factor", factor), ("modulus", modulus)):
        is_missing = number is None and name == "modulus"
        if not is_missing and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise BadStepArgument("skew", f"{name} is {number!r}", loop, "give a number of at least 1")
    most = _most(loop, outer, factor, modulus)

    # Build
    dtype = loop.loop_var.dtype
    moved: Expr = outer.loop_var.astype(dtype)
    if modulus is None:
        moved = moved * const(factor, dtype)
    else:  # no product may overflow
        moved = moved % const(modulus, dtype) * const(factor % modulus, dtype) % const(modulus, dtype)
    extent = Analyzer().simplify(loop.extent + const(most, dtype))
    new = For(Var(f"{loop.loop_var.name}_s", dtype), const(0, dtype), extent, ForKind.SERIAL, loop.body)
    index = new.loop_var - moved
    body = rebind(loop.body, {loop.loop_var: index}, [*view.all_loops_above(path[:-1]), new])
    body = guard_blocks(body, logical_and(index >= const(0, dtype), index < loop.extent))
    # The guard ties the loop to one around it: where a reduction starts may not be where it did.
    started = [realize.block for realize in view.blocks_below(loop.body) if realize.block.init is not None]
    buffers = [region.buffer for block in started for region in block.writes]
    return Step(
        view.replaced(path, new.with_(body=body)),
        Proof.VALUES if buffers else Proof.ORDER_KEPT,
        results=[LoopResult(new.loop_var)],
        at=loop,
        buffers=buffers,
    )


def _most(loop: For, outer: For, factor: int, modulus: int | None) -> int:
    """How far an iteration is moved at most."""
    name, first = outer.loop_var.name, outer.min
    if not isinstance(first, IntImm) or first.value < 0:
        problem = f"loop {name} starts at {first}: iterations might be moved below 0"
        raise NotSupported("skew", problem, loop, f"sch.split({name}, [None, 1])[0] counts from 0")
    known = isinstance(outer.extent, IntImm)
    last = first.value + (outer.extent.value if isinstance(outer.extent, IntImm) else 0) - 1
    if modulus is None and not known:
        problem = f"how often loop {name} runs is not known, nor how far iterations are moved"
        raise NotSupported("skew", problem, loop, "give a modulus")
    if modulus is None:
        most = last * factor
    elif known:
        some = range(first.value, min(last + 1, first.value + modulus))  # numbers repeat after the modulus
        most = max([at * factor % modulus for at in some], default=0)
    else:
        most = modulus - 1
    largest = max(most, 0 if modulus is None else (modulus - 1) ** 2)
    largest += loop.extent.value if isinstance(loop.extent, IntImm) else 0
    if largest >= 1 << (loop.loop_var.dtype.bits - 1):
        problem = f"loop {loop.loop_var.name} of type {loop.loop_var.dtype} cannot count that far"
        raise BadStepArgument("skew", problem, loop, "choose smaller numbers")
    return max(0, most)
