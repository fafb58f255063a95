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

from math import gcd
from typing import Final

from loopwright.arith import Analyzer
from loopwright.ir import Expr, For, ForKind, IntImm, Var, const, logical_and
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.schedule.rewrite.bindings import guard_blocks, rebind
from loopwright.schedule.rewrite.plain_loops import check_bounds_stay, check_plain
from loopwright.schedule.step import LoopResult, Proof, Step
from loopwright.schedule.view import View

_FEW: Final = 4096  # numbers that are looked at one by one


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
    moved: Expr = outer.loop_var
    if modulus is None:
        moved = moved.astype(dtype) * const(factor, dtype)
    else:  # in the type of the outer loop, whose number may be too large for the other; no product may overflow
        modulo = const(modulus, moved.dtype)
        moved = (moved % modulo * const(factor % modulus, moved.dtype) % modulo).astype(dtype)
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
    known = outer.extent.value if isinstance(outer.extent, IntImm) else None
    if modulus is None and known is None:
        problem = f"how often loop {name} runs is not known, nor how far iterations are moved"
        raise NotSupported("skew", problem, loop, "give a modulus")
    bits = min(loop.loop_var.dtype.bits, outer.loop_var.dtype.bits)
    if modulus is None:
        most = (first.value + known - 1) * factor if known else 0
        largest = most
    else:
        most, largest = _most_remainder(first.value, known, factor, modulus), modulus**2
    largest += loop.extent.value if isinstance(loop.extent, IntImm) else 0
    if largest >= 1 << (bits - 1):
        problem = f"loop {loop.loop_var.name} of type {loop.loop_var.dtype} cannot count that far"
        raise BadStepArgument("skew", problem, loop, "choose smaller numbers")
    return most


def _most_remainder(first: int, count: int | None, factor: int, modulus: int) -> int:
    """The largest of `at * factor % modulus` over so many numbers, or a bound where they are many."""
    common = gcd(factor, modulus)
    if count is None or count >= min(modulus // common, _FEW):  # all multiples of the common divisor come by
        return modulus - common
    return max([at * factor % modulus for at in range(first, first + count)], default=0)
