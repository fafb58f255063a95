"""block_questions: what rules and postprocs ask about a block.

needs_multi_level_tiling      a reduction that reads something again and again
access_pattern                how what is read follows from what is written
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from loopwright.ir import (
    Add,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Call,
    Expr,
    For,
    IntImm,
    IterType,
    Node,
    Select,
    Sub,
    Var,
    any_node,
    uses_var,
)
from loopwright.schedule import BlockRV, Schedule
from loopwright.schedule.analysis import is_output_block
from loopwright.schedule.view import View


def view_of(sch: Schedule, block: BlockRV) -> View:
    """The function that holds a block."""
    return next(view for view in sch.views().values() if view.current(block.key) in view.index.blocks)


def realize_of(sch: Schedule, block: BlockRV) -> BlockRealize:
    return view_of(sch, block).realize(block.key)


def extent_of(size: Expr) -> int | None:
    return size.value if isinstance(size, IntImm) else None


def loops_above(sch: Schedule, block: BlockRV) -> list[For]:
    return list(view_of(sch, block).loops_of(block.key))


def is_root(sch: Schedule, block: BlockRV) -> bool:
    return len(view_of(sch, block).block_path(block.key)) == 1


def is_below_root(sch: Schedule, block: BlockRV) -> bool:
    view = view_of(sch, block)
    path = view.block_path(block.key)
    return len(path) > 1 and view.scope_of(path) is view.function.body


def is_output(sch: Schedule, block: BlockRV) -> bool:
    return is_output_block(sch, block)


def is_spatial(block: Block) -> bool:
    return all(axis.iter_type == IterType.DataPar for axis in block.iter_vars)


def is_reduction(block: Block) -> bool:
    """Whether some axis is reduced over, and none is anything but data or reduced."""
    kinds = [axis.iter_type for axis in block.iter_vars]
    return (
        block.init is not None
        and IterType.CommReduce in kinds
        and all(kind in (IterType.DataPar, IterType.CommReduce) for kind in kinds)
    )


def is_spatial_function(sch: Schedule, block: BlockRV) -> bool:
    """Whether no block of the function reduces anything."""
    view = view_of(sch, block)
    return all(is_spatial(view.realize(key).block) for key in view.index.blocks)


def is_trivial_binding(sch: Schedule, block: BlockRV) -> bool:
    """Whether each axis is one loop, in their order."""
    values = realize_of(sch, block).iter_values
    loops = loops_above(sch, block)
    return len(values) == len(loops) and all(value is loop.loop_var for value, loop in zip(values, loops, strict=True))


def needs_multi_level_tiling(sch: Schedule, rv: BlockRV) -> bool:
    """Whether tiles pay: some operand does not move with some data axis."""
    block = realize_of(sch, rv).block
    if len(block.writes) != 1 or not block.reads or is_spatial(block) or not is_trivial_binding(sch, rv):
        return False
    data = [
        axis.var
        for axis in block.iter_vars
        if axis.iter_type == IterType.DataPar and axis.dom is not None and extent_of(axis.dom.extent) != 1
    ]
    written = block.writes[0].buffer
    seen: list[Buffer] = []
    unused = 0
    for region in block.reads:
        if region.buffer is written:
            continue
        if any(region.buffer is other for other in seen) or any(extent_of(one.extent) is None for one in region.region):
            return False
        seen.append(region.buffer)
        unused += sum(not any(uses_var(one.min, {var}.__contains__) for one in region.region) for var in data)
    return unused >= 1


def needs_partial_results(sch: Schedule, rv: BlockRV, most_parallel: int, basic: int) -> bool:
    """Whether a reduction has so few results that it should be split into partial ones."""
    block = realize_of(sch, rv).block
    if not is_reduction(block) or not is_below_root(sch, rv):
        return False
    kinds = loop_kinds(sch, rv)
    if None in kinds:
        return False
    loops = loops_above(sch, rv)
    sizes = [extent_of(loop.extent) for loop in loops]
    if None in sizes:
        return False
    space = prod([size or 1 for size, kind in zip(sizes, kinds, strict=True) if kind == IterType.DataPar])
    members = prod([size or 1 for size, kind in zip(sizes, kinds, strict=True) if kind == IterType.CommReduce])
    if needs_multi_level_tiling(sch, rv):
        return not (space >= members or space > most_parallel)
    return members > 1 and members > basic


def loop_kinds(sch: Schedule, rv: BlockRV) -> list[int | None]:
    """For each loop, the kind of the axes that run over it; None where they differ or there are none."""
    realize = realize_of(sch, rv)
    result: list[int | None] = []
    for loop in loops_above(sch, rv):
        own = {loop.loop_var}.__contains__
        pairs = zip(realize.block.iter_vars, realize.iter_values, strict=True)
        kinds = {int(axis.iter_type) for axis, value in pairs if uses_var(value, own)}
        result.append(kinds.pop() if len(kinds) == 1 else None if kinds else int(IterType.DataPar))
    return result


@dataclass(frozen=True)
class Pattern:
    """How the indices of a read follow from those of the write: each a written index and a shift, or a constant."""

    exists: bool = False
    surjective: bool = False
    injective: bool = False
    ordered: bool = False
    no_constant: bool = False
    no_shift: bool = False


def access_pattern(read: BufferRegion, write: BufferRegion) -> Pattern:
    """The pattern of a pair."""
    position: dict[Var, int] = {}
    for dimension, part in enumerate(write.region):
        if extent_of(part.extent) != 1:
            return Pattern()
        if isinstance(part.min, Var):
            position[part.min] = dimension
        elif not isinstance(part.min, IntImm):
            return Pattern()
    indices: list[int] = []
    no_constant = no_shift = True
    for part in read.region:
        if extent_of(part.extent) != 1:
            return Pattern()
        if isinstance(part.min, IntImm):
            no_constant = False
            continue
        var, is_shifted = _shifted(part.min)
        if var is None or var not in position:
            return Pattern()
        no_shift = no_shift and not is_shifted
        indices.append(position[var])
    return Pattern(
        True,
        set(indices) == set(position.values()),
        len(set(indices)) == len(indices),
        indices == sorted(indices),
        no_constant,
        no_shift,
    )


def _shifted(index: Expr) -> tuple[Var | None, bool]:
    if isinstance(index, Var):
        return index, False
    if isinstance(index, (Add, Sub)) and isinstance(index.a, Var) and isinstance(index.b, IntImm):
        return index.a, True
    if isinstance(index, Add) and isinstance(index.b, Var) and isinstance(index.a, IntImm):
        return index.b, True
    return None, False


def has_operator(realize: BlockRealize, names: Iterable[str]) -> bool:
    """Whether the block calls one of these operators."""
    short = {name.removeprefix("tir.") for name in names}
    return any_node(realize, lambda node: isinstance(node, Call) and node.op.name.removeprefix("tir.") in short)


def has_condition(realize: BlockRealize) -> bool:
    """Whether the block chooses by a condition: a guard, `if`, `Select` or `if_then_else`."""
    predicate = realize.predicate
    guarded = not (isinstance(predicate, IntImm) and predicate.value)
    return guarded or any_node(realize.block.body, _is_choice)


def _is_choice(node: Node) -> bool:
    named = isinstance(node, Call) and node.op.name.removeprefix("tir.") == "if_then_else"
    return isinstance(node, Select) or named or type(node).__name__ == "IfThenElse"


def is_copied_result(sch: Schedule, rv: BlockRV) -> bool:
    """Whether the block is element-wise, in the order of its results: it can take them from a tile."""
    block = realize_of(sch, rv).block
    if len(block.writes) != 1:
        return False
    patterns = [access_pattern(read, block.writes[0]) for read in block.reads]
    return all(one.injective and one.ordered for one in patterns)


def works(sch: Schedule, step: str, *arguments: object) -> bool:
    """Whether a step could be done; the schedule stays as it is."""
    trial = sch.copy()
    try:
        getattr(trial, step)(*arguments)
    except Exception:  # whatever it is, the step is not done
        return False
    return True
