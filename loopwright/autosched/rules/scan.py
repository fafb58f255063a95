"""scan: loops that carry values from one iteration to the next stay in order; what is independent of them is not.

    for t in T.serial(1, m):                        →    for i_0 in T.parallel(2):          columns for each thread
        for i in range(n):                                   for t in T.serial(1, m):
            S[t, i] = S[t - 1, i] + X[t, i]                      for i_1, i_2 in …: lanes of i

    for i in range(n):                              →    for i_0 in T.parallel(…):
        for t in T.serial(1, m):                             for t in T.serial(1, m):
            S[i, t] = S[i, t - 1] + X[i, t]                      for i_1, t_1 in …: a few steps of 4 rows

Also taken are the blocks of a time step that has several (the gates and states of a recurrent network): each gets
vectors along an axis of its own, inside the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from loopwright.arith.affine_reader import Affine
from loopwright.autosched.decision import ChoiceKind, Decision
from loopwright.autosched.facts import const, costly_calls, loads_of, without_lets
from loopwright.autosched.lanes import VECTORS_AT_ONCE
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.plain import RUNS_ONCE, Plain, why_not_plain
from loopwright.autosched.small_steps import extent_of, fused
from loopwright.ir import Add, BufferStore, Expr, ForKind, IterType, SeqStmt, Var, structural_equal
from loopwright.schedule import LoopRV, Schedule
from loopwright.schedule.handles import block_key
from loopwright.schedule.view import View

_CHAINS: Final = 4  # rows at once: their independent chains for its sum, the others go on
_STEPS: Final = 8  # of a row at a time: the carried value stays in a register, and few cache lines are in use
_COSTLY_CHAINS: Final = 8  # rows at once where a step takes long
_IN_ORDER: Final = "each axis carries a dependence"


class _Shape(NamedTuple):
    """A block's own loops, outermost first, by what they are to the values that it carries."""

    loops: tuple[int, ...]  # positions among all loops of the block
    free: tuple[int, ...]  # of these, the loops whose iterations do not need each other
    lanes: int | None  # the free loop that is contiguous in the result
    is_alone: bool  # nothing else is in the loops around it
    carries: bool  # some loop around it needs its order


class Scan:
    """Takes a block in loops that carry values, or one of several in a loop."""

    name = "scan"

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        first = pending[0]
        return int(first.facts is None or first.facts.reads_itself)

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        entry = entries[0]
        shape = _shape(sch.view(), entry)
        if shape is None or not shape.free:
            decision.rule = Plain.name
            decision.chose("no steps", _why_no_steps(sch.view(), entry, shape))
            return
        loops = sch.get_loops(sch.get_block(entry.name))
        dtype = str(entry.writes[0].dtype)
        if shape.lanes is not None:
            _lanes(sch, entry, shape, loops, machine, machine.lanes(dtype), decision)
        elif shape.is_alone and shape.carries:
            _chains(sch, entry, shape, loops, machine, decision)
        else:
            decision.chose("no steps", "no axis without a loop-carried dependence is contiguous in the result")


def _why_no_steps(view: View, entry: Entry, shape: _Shape | None) -> str:
    if shape is None:
        return why_not_plain(entry)
    runs_once = all(const(loop.extent) == 1 for loop in view.loops_of(block_key(entry.realize.block)))
    return RUNS_ONCE if runs_once else _IN_ORDER


def _shape(view: View, entry: Entry) -> _Shape | None:
    """The loops of a block that stores once; None for any other."""
    realize = entry.realize
    block, store = realize.block, without_lets(realize.block.body)
    if not isinstance(store, BufferStore) or const(realize.predicate) != 1:
        return None
    if block.match_buffers or block.alloc_buffers:
        return None
    loops = view.loops_of(block_key(block))
    shared = [position for position, loop in enumerate(loops) if isinstance(without_lets(loop.body), SeqStmt)]
    own = range(shared[-1] + 1 if shared else 0, len(loops))
    axes: dict[int, Var] = {}
    reduced: set[int] = set()
    for position in own:
        loop = loops[position]
        if loop.kind is not ForKind.SERIAL or loop.annotations:
            return None
        for iter_var, value in zip(block.iter_vars, realize.iter_values, strict=True):
            if value is loop.loop_var or _is_shifted(value, loop.loop_var):
                axes[position] = iter_var.var
                if iter_var.iter_type is not IterType.DataPar:
                    reduced.add(position)
        if position not in axes:
            return None
    free = tuple(position for position in own if position not in reduced and _is_free(store, axes[position]))
    lanes = next((position for position in reversed(free) if _is_last(store, axes[position])), None)
    return _Shape(tuple(own), free, lanes, not shared, len(free) < len(own))


def _is_shifted(value: Expr, var: Var) -> bool:
    """Whether an axis is a loop that starts elsewhere."""
    return isinstance(value, Add) and value.a is var and const(value.b) is not None


def _is_free(store: BufferStore, axis: Var) -> bool:
    """Whether iterations along `axis` read nothing of the buffer but what has the same place along it."""
    affine = Affine()
    affine.own(axis)
    forms = [affine.form(index) for index in store.indices]
    dims = [dim for dim, form in enumerate(forms) if form is None or axis in form.variables()]
    if len(dims) != 1 or store.indices[dims[0]] is not axis:
        return False
    own = [load for load in loads_of(store.value) if load.buffer is store.buffer]
    return all(structural_equal(load.indices[dims[0]], axis) for load in own)


def _is_last(store: BufferStore, axis: Var) -> bool:
    strides = store.buffer.strides
    return store.indices[-1] is axis and (not strides or const(strides[-1]) == 1)


def _lanes(
    sch: Schedule,
    entry: Entry,
    shape: _Shape,
    loops: Sequence[LoopRV],
    machine: Machine,
    lanes: int,
    decision: Decision,
) -> None:
    """Vectors along the free axis over neighbouring cells; threads take columns of it where nothing else is there."""
    assert shape.lanes is not None
    row = loops[shape.lanes]
    extent = extent_of(sch, row)
    if extent == 1:
        decision.chose("no vectors", "the rows have one element", ChoiceKind.NO_VECTORS)
        return
    width = lanes
    while extent is not None and width > extent:
        width //= 2
    pieces = _pieces(sch, entry, shape, machine, width)
    outer = None
    if pieces > 1 and extent is not None:
        columns = -(-extent // (pieces * width)) * width
        outer, row = sch.split(row, [None, columns])
    several = VECTORS_AT_ONCE if extent is None or extent >= VECTORS_AT_ONCE * width else 1
    around, some, lane = sch.split(row, [None, several, width])
    others = [loops[position] for position in shape.loops if position != shape.lanes]
    sch.reorder(*([outer] if outer is not None else []), *others, around, some, lane)
    sch.unroll(some)
    sch.vectorize(lane)
    decision.chose(f"vectors of {width}", "the contiguous axis carries no dependence")
    if outer is not None:
        sch.parallel(outer)
        decision.chose(f"{pieces} parallel tasks", "columns are independent, and long rows use memory bandwidth best")


def _chains(
    sch: Schedule, entry: Entry, shape: _Shape, loops: Sequence[LoopRV], machine: Machine, decision: Decision
) -> None:
    """A few steps of several rows at once, each row in its order."""
    row = loops[shape.free[-1]]
    others = [loops[position] for position in shape.free[:-1]]
    carried = [loops[position] for position in shape.loops if position not in shape.free]
    is_costly = costly_calls(entry.realize.block) > 0
    rows, some = _split(sch, row, _COSTLY_CHAINS if is_costly else _CHAINS)
    is_short = is_costly or some is None
    step, few = _split(sch, carried[-1], 1 if is_short else _STEPS)
    sch.reorder(*others, rows, *carried[:-1], step, *[loop for loop in (some, few) if loop is not None])
    if some is not None:
        sch.unroll(some)
        decision.chose(f"{extent_of(sch, some)} rows at once", "their independent chains hide the latency of one")
    if few is not None:
        sch.unroll(few)
        decision.chose(f"{extent_of(sch, few)} steps of each at a time", "the loop-carried value stays in a register")
    if _pieces(sch, entry, shape, machine, 1) > 1:
        sch.parallel(fused(sch, [*others, rows]))
        decision.chose("rows in parallel", "rows are independent")


def _split(sch: Schedule, loop: LoopRV, factor: int) -> tuple[LoopRV, LoopRV | None]:
    """A loop in pieces of `factor` iterations, or fewer where it has fewer; None where that would be one."""
    extent = extent_of(sch, loop)
    while extent is not None and factor > extent:
        factor //= 2
    if factor <= 1:
        return loop, None
    outer, inner = sch.split(loop, [None, factor])
    return outer, inner


def _pieces(sch: Schedule, entry: Entry, shape: _Shape, machine: Machine, width: int) -> int:
    """How many pieces are worth it: 1 where sizes are not known, or other statements are in the loops."""
    if not shape.is_alone or machine.cores == 1:
        return 1
    elements = 1
    for loop in sch.view().loops_of(block_key(entry.realize.block)):
        extent = const(loop.extent)
        if extent is None:
            return 1
        elements *= extent
    touched = elements * 2 * bytes_of(str(entry.writes[0].dtype))
    return machine.threads_for(max(touched / machine.bytes_per_cycle(touched), elements / width))
