"""split: one loop becomes a nest of loops.

    for i in range(10):                 →    for i_0, i_1 in T.grid(3, 4):
        with T.block("B"):                       with T.block("B"):
            vi = T.axis.spatial(10, i)               vi = T.axis.spatial(10, i_0 * 4 + i_1)
            B[vi] = A[vi]                            T.where(i_0 * 4 + i_1 < 10)
                                                     B[vi] = A[vi]

Every iteration runs once, in the same order, so there is nothing to prove.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from loopwright.arith import Analyzer
from loopwright.ir import Expr, For, ForKind, IntImm, Var, as_expr, const
from loopwright.ir.intrinsics import ceildiv
from loopwright.schedule.bindings import guard_blocks, nest, rebind
from loopwright.schedule.errors import BadStepArgument, NotSupported, ScheduleError
from loopwright.schedule.step import LoopResult, Proof, Step
from loopwright.schedule.view import View


class FactorsTooSmall(ScheduleError):
    """The factors of a split make fewer iterations than the loop has, so some would be lost."""

    code = "LW0211"

    def __init__(self, loop: For, factors: Sequence[int]) -> None:
        super().__init__(
            f"split: factors {list(factors)} make {prod(factors)} iterations, but loop {loop.loop_var.name} has "
            f"{loop.extent}",
            at=loop,
            hint="raise a factor, or give one as None to have it inferred",
        )


def split(
    view: View, loop: For, factors: Sequence[int | None], preserve_unit_iters: bool = True, tail: str = "guard"
) -> Step:
    """Split `loop` into one loop per factor, outermost first."""
    # Check: nothing is built until every check has passed.
    check_plain("split", loop)
    if tail not in ("guard", "peel"):
        raise BadStepArgument("split", f"tail is {tail!r}", loop, 'use "guard" or "peel"')
    if sum(factor is None for factor in factors) > 1:
        raise BadStepArgument("split", f"factors {list(factors)} leave more than one to be inferred", loop)
    if not factors or any(factor is not None and factor < 1 for factor in factors):
        raise BadStepArgument("split", f"factors {list(factors)} are not all at least 1", loop)
    known = prod(factor for factor in factors if factor is not None)
    extents: list[Expr] = []
    for factor in factors:
        inferred = ceildiv(loop.extent, const(known, loop.extent.dtype))
        extents.append(inferred if factor is None else const(factor, loop.loop_var.dtype))
    if isinstance(loop.extent, IntImm) and None not in factors and known < loop.extent.value:
        raise FactorsTooSmall(loop, [factor for factor in factors if factor is not None])

    # Build
    dtype = loop.loop_var.dtype
    new_vars = [Var(f"{loop.loop_var.name}_{position}", dtype) for position in range(len(factors))]
    index: Expr = as_expr(new_vars[0])
    for var, extent in zip(new_vars[1:], extents[1:], strict=True):
        index = index * extent + var
    zero = const(0, dtype)
    loops = [For(var, zero, extent, ForKind.SERIAL, loop.body) for var, extent in zip(new_vars, extents, strict=True)]
    path = view.loop_path(loop.loop_var)
    around = [*view.all_loops_above(path[:-1]), *loops]
    body = rebind(loop.body, {loop.loop_var: index}, around)
    facts = Analyzer()
    whole = facts.simplify(_product(extents))
    if not facts.can_prove_equal(whole, loop.extent):
        body = guard_blocks(body, index < loop.extent)
    after = view.replaced(path, nest(loops, body))
    return Step(
        after,
        Proof.ORDER_KEPT,
        results=[LoopResult(var) for var in new_vars],
        several=True,
        at=loop,
    )


def check_plain(step: str, loop: For) -> None:
    """The loop counts from 0, and nobody else has claimed how its iterations run."""
    if not (isinstance(loop.min, IntImm) and loop.min.value == 0):
        raise NotSupported(step, f"loop {loop.loop_var.name} starts at {loop.min}, not at 0", loop)
    if loop.annotations:
        raise NotSupported(step, f"loop {loop.loop_var.name} carries annotations", loop, "unannotate it first")
    if loop.kind is not ForKind.SERIAL:
        kind = loop.kind.name.lower()
        raise NotSupported(step, f"loop {loop.loop_var.name} is {kind}", loop, f"{step} it before it is made {kind}")


def _product(extents: Sequence[Expr]) -> Expr:
    result = extents[0]
    for extent in extents[1:]:
        result = result * extent
    return result
