"""split: one loop becomes a nest of loops.

    for i in range(10):                 →    for i_0, i_1 in T.grid(3, 4):
        with T.block("B"):                       with T.block("B"):
            vi = T.axis.spatial(10, i)               vi = T.axis.spatial(10, i_0 * 4 + i_1)
            B[vi] = A[vi]                            T.where(i_0 * 4 + i_1 < 10)
                                                     B[vi] = A[vi]

With tail="peel" no block is guarded; what does not fill a tile becomes a loop of its own over new blocks:

    for i_0, i_1 in T.grid(2, 4):
        with T.block("B"): …                     vi = i_0 * 4 + i_1
    for i_tail in range(2):
        with T.block("B_tail"): …                vi = i_tail + 8

Every iteration runs once, in the same order. Only the init of a reduction may take another place: where something
else in the loop touches the same memory, or where a reduction is peeled, that is proved to keep every value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from loopwright.arith import Analyzer
from loopwright.ir import BlockRealize, Expr, For, ForKind, IntImm, IterType, Rewriter, Stmt, Var, const, seq, uses_var
from loopwright.ir.intrinsics import ceildiv
from loopwright.schedule.bindings import guard_blocks, nest, rebind
from loopwright.schedule.errors import BadStepArgument, NotSupported, ScheduleError
from loopwright.schedule.footprint import met_by_inits
from loopwright.schedule.handles import BlockKey
from loopwright.schedule.naming import OldValues
from loopwright.schedule.proof import InitOf, Origins
from loopwright.schedule.renew import renew
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
    extents = _extents(loop, factors)
    facts = Analyzer()
    fits = facts.can_prove_equal(_product(extents), loop.extent)

    # Build
    if tail == "peel" and not fits:
        return _peeled(view, loop, extents)
    loops, index = _nest_of(loop, extents)
    path = view.loop_path(loop.loop_var)
    body = rebind(loop.body, {loop.loop_var: index}, [*view.all_loops_above(path[:-1]), *loops])
    if not fits:
        body = guard_blocks(body, index < loop.extent)
    buffers = met_by_inits(loop)
    return Step(
        view.replaced(path, nest(loops, body)),
        Proof.VALUES if buffers else Proof.ORDER_KEPT,
        results=[LoopResult(new.loop_var) for new in loops],
        several=True,
        at=loop,
        buffers=buffers,
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


def _extents(loop: For, factors: Sequence[int | None]) -> list[Expr]:
    """How often each new loop runs."""
    shown = list(factors)
    if sum(factor is None for factor in factors) > 1:
        raise BadStepArgument("split", f"factors {shown} leave more than one to be inferred", loop)
    if not factors or any(
        not isinstance(factor, int | None) or (factor is not None and factor < 1) for factor in factors
    ):
        raise BadStepArgument("split", f"factors {shown} are not all whole numbers of at least 1", loop)
    known = prod(factor for factor in factors if factor is not None)
    if isinstance(loop.extent, IntImm) and None not in factors and known < loop.extent.value:
        raise FactorsTooSmall(loop, [factor for factor in factors if factor is not None])
    dtype = loop.loop_var.dtype
    inferred = Analyzer().simplify(ceildiv(loop.extent, const(known, dtype)))
    return [inferred if factor is None else const(factor, dtype) for factor in factors]


def _nest_of(loop: For, extents: Sequence[Expr]) -> tuple[list[For], Expr]:
    """The new loops, still around the old body, and the old variable in terms of theirs."""
    dtype = loop.loop_var.dtype
    names = [Var(f"{loop.loop_var.name}_{position}", dtype) for position in range(len(extents))]
    index: Expr = names[0]
    for var, extent in zip(names[1:], extents[1:], strict=True):
        index = index * extent + var
    zero = const(0, dtype)
    return [
        For(var, zero, extent, ForKind.SERIAL, loop.body) for var, extent in zip(names, extents, strict=True)
    ], index


def _product(extents: Sequence[Expr]) -> Expr:
    result = extents[0]
    for extent in extents[1:]:
        result = result * extent
    return result


# --- peeling ------------------------------------------------------------------------------------------------------


def _peeled(view: View, loop: For, extents: Sequence[Expr]) -> Step:
    """Whole tiles, and then the rest in a loop of its own."""
    path = view.loop_path(loop.loop_var)
    for realize in view.blocks_below(loop.body):
        if realize.block.match_buffers:
            problem = f"block {realize.block.name_hint} has a match_buffer, and cannot be written twice yet"
            raise NotSupported("split", problem, loop, 'use tail="guard"')
    around = view.all_loops_above(path[:-1])
    facts = Analyzer()
    tile = facts.simplify(_product(extents[1:])) if len(extents) > 1 else const(1, loop.loop_var.dtype)
    whole = facts.simplify(loop.extent // tile)
    reductions = _check_reductions(view, loop, whole)

    loops, index = _nest_of(loop, [whole, *extents[1:]])
    main = nest(loops, rebind(loop.body, {loop.loop_var: index}, [*around, *loops]))

    taken: set[str] = set()

    def tail_name(name: str) -> str:
        made = view.fresh_block_name(f"{name}_tail")
        while made in taken:
            made = view.fresh_block_name(f"{made}_1")
        taken.add(made)
        return made

    copy, renamed = renew(_StopInits(loop.loop_var).visit(loop.body), tail_name)
    var = Var(f"{loop.loop_var.name}_tail", loop.loop_var.dtype)
    done = facts.simplify(whole * tile)
    rest = loop.with_(loop_var=var, extent=facts.simplify(loop.extent % tile), body=copy)
    rest = rest.with_(body=rebind(copy, {loop.loop_var: var + done}, [*around, rest]))
    return Step(
        view.replaced(path, seq([main, rest])),
        Proof.VALUES if reductions else Proof.ORDER_KEPT,
        Origins(renamed=_same_instances(renamed)),
        results=[LoopResult(new.loop_var) for new in loops],
        several=True,
        at=loop,
    )


def _same_instances(
    renamed: Mapping[BlockKey, BlockKey],
) -> dict[BlockKey | InitOf, tuple[BlockKey | InitOf, OldValues]]:
    """An instance of a copied block stands for the one of the old block with the same axis values, and so do inits."""
    found: dict[BlockKey | InitOf, tuple[BlockKey | InitOf, OldValues]] = {}
    for new, old in renamed.items():
        found[new] = (old, list)
        found[InitOf(new)] = (InitOf(old), list)
    return found


def _check_reductions(view: View, loop: For, whole: Expr) -> bool:
    """Whether a block below has an init, which then has to be right for both parts."""
    reductions = [realize for realize in view.blocks_below(loop.body) if realize.block.init is not None]
    for realize in reductions:
        name = realize.block.name_hint
        data, reduce = _uses(realize, loop.loop_var)
        hint = f'use tail="guard", or decompose_reduction block {name} first'
        if data and reduce:
            problem = f"loop {loop.loop_var.name} runs over both data and the reduction of block {name}"
            raise NotSupported("split", f"{problem}: it cannot be peeled", loop, hint)
        if not data and isinstance(whole, IntImm) and whole.value == 0:
            problem = f"loop {loop.loop_var.name} has {loop.extent} iterations, fewer than one tile"
            raise NotSupported("split", f"{problem}: block {name} could not start its reduction there", loop, hint)
    return bool(reductions)


def _uses(realize: BlockRealize, var: Var) -> tuple[bool, bool]:
    """Whether the data iterations and the reduce iterations of a block depend on `var`."""
    data = reduce = False
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        if uses_var(value, lambda used: used is var):
            if axis.iter_type == IterType.CommReduce:
                reduce = True
            else:
                data = True
    return data, reduce


class _StopInits(Rewriter):
    """The blocks whose reduction goes on over the loop: the first part has started it, so the copy must not again."""

    def __init__(self, var: Var) -> None:
        self.var = var

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        block = realize.block
        if block.init is None or _uses(realize, self.var)[0]:
            return realize
        known = {region.buffer for region in block.reads}
        reads = (*[region for region in block.writes if region.buffer not in known], *block.reads)
        return realize.with_(block=block.with_(init=None, reads=reads))
