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

With tail="shift" the last tile starts earlier, so that it is whole: `vi = min(i_0 * 4, 6) + i_1`. Iterations that two
tiles share run twice; proved that this is harmless. With tail="pad" the last tile runs past the end: the block's axes
and the function's own buffers grow to hold that, and what an argument does not have room for is refused.

A loop that starts elsewhere than at 0 becomes loops that start at 0: of `for i in range(-2, 3)`, `i_0 * 4 + i_1 - 2`.

Otherwise every iteration runs once, in order. Only the init of a reduction may take another place: where something
else in the loop touches the same memory, or where a reduction is peeled, that is proved to keep every value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from loopwright.analysis.dataflow import InitOf
from loopwright.analysis.may_fail import may_fail
from loopwright.arith import Analyzer
from loopwright.arith.index_arithmetic import in_64_bits
from loopwright.ir import (
    BlockRealize,
    Expr,
    For,
    ForKind,
    IntImm,
    IterType,
    Range,
    Rewriter,
    Stmt,
    Var,
    cast,
    const,
    product,
    seq,
    uses_var,
)
from loopwright.ir.intrinsics import ceildiv
from loopwright.ir.operators import maximum, minimum
from loopwright.runtime.dtype import INT64
from loopwright.schedule.errors import BadStepArgument, NotSupported, ScheduleError
from loopwright.schedule.handles import BlockKey, block_key
from loopwright.schedule.origins import OldValues, Origins
from loopwright.schedule.proof.moved_inits import inits_of_rows, met_by_inits
from loopwright.schedule.proof.speculative_runs import check_speculative_runs, with_room, with_wide_axes
from loopwright.schedule.rewrite.bindings import guard_blocks, rebind
from loopwright.schedule.rewrite.clone import clone_nest
from loopwright.schedule.rewrite.nests import nest
from loopwright.schedule.rewrite.plain_loops import check_plain, iterations, value_at
from loopwright.schedule.rewrite.sizes import check_countable, read_size, size_facts
from loopwright.schedule.step import LoopResult, Proof, Step
from loopwright.schedule.view import View

TAILS: Final = ("guard", "peel", "pad", "shift")  # what to do with iterations that fill no whole tile


class FactorsTooSmall(ScheduleError):
    """The factors of a split make fewer iterations than the loop has, so some would be lost.

    For example:

        from loopwright import te, tir

        A = te.placeholder((10,), name="A")
        B = te.compute((10,), lambda i: A[i] + 1, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.split(sch.get_loops("B")[0], [2, 4])
    """

    code = "LW0211"

    def __init__(self, loop: For, factors: Sequence[int]) -> None:
        super().__init__(
            f"split: factors {list(factors)} make {prod(factors)} iterations, but loop {loop.loop_var.name} has "
            f"{loop.extent}",
            at=loop,
            hint="raise a factor, or give one as None to have it inferred",
        )


class FactorsNotProved(ScheduleError):
    """The factors of a split are sizes of the function, and may be too small for some calls.

    A factor must be at least 1, or the loop inside would never run; all factors together must make as many iterations
    as the loop has. Say so in the factor itself ("max(n, 1)"), or leave one as None to have it inferred.

    For example:

        from loopwright import te, tir
        n = te.var("n")
        A = te.placeholder((n,), name="A")
        B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.split(sch.get_loops("B")[0], [None, n])
    """

    code = "LW0260"

    def __init__(self, loop: For, problem: str, factor: str | None = None) -> None:
        """`factor` is the one that may be less than 1."""
        super().__init__(f"split: {problem}", at=loop, fields={"loop": loop.loop_var.name, "factor": factor})


def split(
    view: View, loop: For, factors: Sequence[int | str | None], preserve_unit_iters: bool = True, tail: str = "guard"
) -> Step:
    """Split `loop` into one loop per factor, outermost first."""
    # Check: nothing is built until every check has passed.
    check_plain("split", view, loop, from_zero=False)
    if tail not in TAILS:
        raise BadStepArgument("split", f"tail is {tail!r}", loop, f"use one of {', '.join(map(repr, TAILS))}")
    extents = _extents(view, loop, factors)
    given = [extent for extent, factor in zip(extents, factors, strict=True) if factor is not None]
    check_countable("split", view.function, loop, given)
    facts = Analyzer()
    fits = facts.can_prove_equal(_product(extents), loop.extent)

    # Build
    if tail == "peel" and not fits:
        return _peeled(view, loop, extents, preserve_unit_iters)
    if tail == "pad" and not fits:
        return _padded(view, loop, extents, preserve_unit_iters)
    if tail == "shift" and not fits:
        return _shifted(view, loop, extents, preserve_unit_iters)
    loops, index = _nest_of(loop, extents)
    path = view.loop_path(loop.loop_var)
    around = [*view.all_loops_above(path[:-1]), *loops]
    body = rebind(loop.body, {loop.loop_var: value_at(loop, index)}, around, preserve_unit_iters)
    buffers = met_by_inits(loop, path[:-1])
    if not fits:
        body = guard_blocks(body, index < loop.extent)
        buffers += [buffer for buffer in inits_of_rows(view, loop) if buffer not in buffers]
    return Step(
        view.replaced(path, nest(loops, body)),
        Proof.VALUES if buffers else Proof.ORDER_KEPT,
        results=[LoopResult(new.loop_var) for new in loops],
        several=True,
        at=loop,
        buffers=buffers,
    )


def _extents(view: View, loop: For, factors: Sequence[int | str | None]) -> list[Expr]:
    """How often each new loop runs."""
    shown = list(factors)
    if sum(factor is None for factor in factors) > 1:
        hint = "give None for one factor at most: it becomes the extent, divided by the others"
        raise BadStepArgument("split", f"factors {shown} leave more than one to be inferred", loop, hint)
    wrong = [factor for factor in factors if _is_no_factor(factor)]
    if not factors or wrong:
        hint = "a factor says how often its loop runs: at least once; None has one of them inferred"
        if wrong and isinstance(wrong[0], float):
            hint = f"{wrong[0]} is a float: divide integers with //"
        raise BadStepArgument("split", f"factors {shown} are not all integers of at least 1", loop, hint)
    dtype = loop.loop_var.dtype
    if any([isinstance(factor, str) for factor in factors]):
        known = _symbolic(view, loop, factors)
    else:
        known = [None if factor is None else product([factor], dtype) for factor in factors]
        numbers = [factor for factor in factors if isinstance(factor, int)]
        if None not in factors:
            if not isinstance(loop.extent, IntImm):
                _check_enough(view, loop, factors, product(numbers, dtype), size_facts(view.function))
            elif prod(numbers) < loop.extent.value:
                raise FactorsTooSmall(loop, numbers)
    given = [extent for extent in known if extent is not None]
    inferred = Analyzer().simplify(ceildiv(loop.extent, _product(given) if given else const(1, dtype)))
    extents = [inferred if extent is None else extent for extent in known]
    wide = max([dtype, *[extent.dtype for extent in extents]], key=lambda each: each.bits)
    return [in_64_bits(extent) if wide is INT64 else cast(extent, wide) for extent in extents]


def _check_enough(view: View, loop: For, factors: Sequence[int | str | None], result: Expr, facts: Analyzer) -> None:
    """The factors, which make `result` iterations, make as many as the loop has."""
    for other in view.all_loops_above(view.loop_path(loop.loop_var)[:-1]):
        facts.bind(other.loop_var, Range.from_min_extent(other.min, other.extent), allow_override=True)
    if not facts.can_prove(result >= loop.extent):
        shown = f"[{', '.join([str(factor) for factor in factors])}]"
        has = f"loop {loop.loop_var.name} has {loop.extent}: that may not be enough"
        raise FactorsNotProved(loop, f"factors {shown} make {facts.simplify(result)} iterations, and {has}")


def _is_no_factor(factor: object) -> bool:
    if isinstance(factor, bool) or not isinstance(factor, int | str | None):
        return True
    return isinstance(factor, int) and factor < 1


def _symbolic(view: View, loop: For, factors: Sequence[int | str | None]) -> list[Expr | None]:
    """Factors in terms of the function's sizes; refused where they may be too small."""
    function, dtype = view.function, loop.loop_var.dtype
    facts = size_facts(function)
    known: list[Expr | None] = []
    for factor in factors:
        size = read_size("split", factor, function, dtype) if isinstance(factor, str) else factor
        risk = may_fail(size, facts) if isinstance(size, Expr) else None
        if risk is not None:
            raise FactorsNotProved(loop, f"factor {factor} has no value where {risk} has none", str(factor))
        extent = const(size, dtype) if isinstance(size, int) else size if size is None else facts.simplify(size)
        if extent is not None and not facts.can_prove(extent >= 1):
            raise FactorsNotProved(loop, f"factor {factor} may be less than 1", str(factor))
        known.append(extent)
    given = [extent for extent in known if extent is not None]
    if len(given) == len(known):
        _check_enough(view, loop, factors, _product(given), facts)
    return known


def _nest_of(loop: For, extents: Sequence[Expr]) -> tuple[list[For], Expr]:
    """The new loops, still around the old body, and which iteration of the old loop theirs is."""
    dtype = extents[0].dtype
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


# --- running past the end, or starting earlier ----------------------------------------------------------------------


def _padded(view: View, loop: For, extents: Sequence[Expr], keep_units: bool) -> Step:
    """Whole tiles only, the last of which runs past the end."""
    loops, index = _nest_of(loop, extents)
    path = view.loop_path(loop.loop_var)
    around = [*view.all_loops_above(path[:-1]), *loops]
    moved = rebind(loop.body, {loop.loop_var: value_at(loop, index)}, around, keep_units)
    body = with_wide_axes("split", moved, path[:-1], loops)
    below = [block_key(realize.block) for realize in view.blocks_below(loop.body)]
    after = with_room("split", View(view.replaced(path, nest(loops, body))), below)
    check_speculative_runs("split", after, below, loop)
    return Step(after, Proof.VALUES, results=[LoopResult(new.loop_var) for new in loops], several=True, at=loop)


def _shifted(view: View, loop: For, extents: Sequence[Expr], keep_units: bool) -> Step:
    """The last tile starts where it still ends with the loop."""
    facts = size_facts(view.function)
    tile = facts.simplify(_product(extents[1:])) if len(extents) > 1 else const(1, extents[0].dtype)
    if not facts.can_prove(tile <= loop.extent):
        problem = f"loop {loop.loop_var.name} has {loop.extent} iterations, which may be fewer than one tile of {tile}"
        raise NotSupported("split", f"{problem}: no tile can be shifted inward", loop)
    if len(extents) == 1 or not facts.can_prove(extents[0] * tile - loop.extent < tile):
        raise NotSupported(
            "split", "more than the last tile would run past the end", loop, "leave the first factor out"
        )
    loops, index = _nest_of(loop, extents)
    inner = facts.simplify(index - loops[0].loop_var * tile)
    start = minimum(loops[0].loop_var * tile, facts.simplify(loop.extent - tile))
    path = view.loop_path(loop.loop_var)
    around = [*view.all_loops_above(path[:-1]), *loops]
    body = rebind(loop.body, {loop.loop_var: value_at(loop, start + inner)}, around, keep_units)
    return Step(
        view.replaced(path, nest(loops, body)),
        Proof.VALUES,
        results=[LoopResult(new.loop_var) for new in loops],
        several=True,
        at=loop,
    )


# --- peeling ------------------------------------------------------------------------------------------------------


def _peeled(view: View, loop: For, extents: Sequence[Expr], keep_units: bool) -> Step:
    """Whole tiles, and then the rest in a loop of its own."""
    path = view.loop_path(loop.loop_var)
    for realize in view.blocks_below(loop.body):
        if realize.block.match_buffers:
            problem = f"block {realize.block.name_hint} has a match_buffer, and cannot be written twice yet"
            raise NotSupported("split", problem, loop)
    around = view.all_loops_above(path[:-1])
    facts = Analyzer()
    tile = facts.simplify(_product(extents[1:])) if len(extents) > 1 else const(1, extents[0].dtype)
    # An inferred factor is 0 where the loop has no iterations: nothing is divided by it.
    extent = iterations(view, loop, path[:-1])
    one = const(1, tile.dtype)
    divisor = tile if facts.can_prove(tile >= one) else maximum(tile, one)
    whole = facts.simplify(extent // divisor)
    reductions = _check_reductions(view, loop, whole)

    loops, index = _nest_of(loop, [whole, *extents[1:]])
    main = nest(loops, rebind(loop.body, {loop.loop_var: value_at(loop, index)}, [*around, *loops], keep_units))

    used: set[str] = set()

    def tail_name(name: str) -> str:
        result = view.fresh_block_name(f"{name}_tail")
        while result in used:
            result = view.fresh_block_name(f"{result}_1")
        used.add(result)
        return result

    copy, renamed = clone_nest(_StopInits(loop.loop_var).visit(loop.body), tail_name)
    var = Var(f"{loop.loop_var.name}_tail", loop.loop_var.dtype)
    done = facts.simplify(whole * tile)
    rest = loop.with_(loop_var=var, min=const(0, var.dtype), extent=facts.simplify(extent % divisor), body=copy)
    rest = rest.with_(body=rebind(copy, {loop.loop_var: value_at(loop, var + done)}, [*around, rest], keep_units))
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
    result: dict[BlockKey | InitOf, tuple[BlockKey | InitOf, OldValues]] = {}
    for new, old in renamed.items():
        result[new] = (old, list)
        result[InitOf(new)] = (InitOf(old), list)
    return result


def _check_reductions(view: View, loop: For, whole: Expr) -> bool:
    """Whether a block below has an init, which then has to be right for both parts."""
    reductions = [realize for realize in view.blocks_below(loop.body) if realize.block.init is not None]
    for realize in reductions:
        name = realize.block.name_hint
        data, reduce = _uses(realize, loop.loop_var)
        if data and reduce:
            problem = f"loop {loop.loop_var.name} runs over both data and the reduction of block {name}"
            raise NotSupported("split", f"{problem}: it cannot be peeled", loop)
        if not data and isinstance(whole, IntImm) and whole.value == 0:
            problem = f"loop {loop.loop_var.name} has {loop.extent} iterations, fewer than one tile"
            raise NotSupported("split", f"{problem}: block {name} could not start its reduction there", loop)
    return bool(reductions)


def _uses(realize: BlockRealize, var: Var) -> tuple[bool, bool]:
    """Whether the data iterations and the reduce iterations of a block depend on `var`."""
    data = reduce = False
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        if uses_var(value, {var}.__contains__):
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
