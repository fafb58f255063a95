"""rfactor: one loop of a reduction becomes data: partial results, and a second reduction that combines them.

    for i, k_0, k_1 in T.grid(4, 8, 2):            →    for i, k_0, k_1 in T.grid(4, 8, 2):
        with T.block("C"):                                  with T.block("C_rf"):
            vi = T.axis.spatial(4, i)                           vk_1, vi, vk_0 = T.axis.remap("SSR", [k_1, i, k_0])
            vk = T.axis.reduce(16, k_0 * 2 + k_1)               with T.init():
            with T.init():                                          C_rf[vk_1, vi] = 0
                C[vi] = 0                                       C_rf[vk_1, vi] = C_rf[vk_1, vi] + A[vi, vk_0 * 2 + vk_1]
            C[vi] = C[vi] + A[vi, vk]                       for i, k_1 in T.grid(4, 2):
                                                                with T.block("C"):
        rfactor(k_1, factor_axis=0)                                 vk_1, vi = T.axis.remap("RS", [k_1, i])
                                                                    with T.init():
                                                                        C[vi] = 0
                                                                    C[vi] = C[vi] + C_rf[vk_1, vi]

The partial results are data of `k_1`, which may now run in parallel or as lanes. The old handle of the block stays with
what writes C; those of its loops stay with the partial results.

The reason why this is right is algebra, not order: the operation is associative and commutative (`combiners.py` says
which are), every member goes into exactly one partial result, partial results start at the unit of the operation, and
each is combined exactly once. One that is not commutative is factored along its outermost loop, which keeps the order
of its members. Checked for that: the loop is one of the reduction alone, no two iterations of data
loops reach one cell, and no guard ties data to the reduction. A guard on the loop itself becomes a choice between the
member and the unit, so that every partial result has a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loopwright.analysis.loop_carried import Loop, carries
from loopwright.arith import Analyzer
from loopwright.arith.data import holds_data
from loopwright.arith.index_arithmetic import EXACT_NODES
from loopwright.arith.stored_values import as_stored
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    CompareExpr,
    Expr,
    For,
    ForKind,
    IntImm,
    IterType,
    IterVar,
    Node,
    Range,
    Stmt,
    Var,
    any_node,
    cast,
    cell_region,
    collect,
    conjuncts,
    is_one,
    logical_and,
    seq,
    substitute,
    uses_var,
)
from loopwright.ir.intrinsics import if_then_else
from loopwright.schedule.errors import BadStepArgument, ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.rewrite.bindings import TRUE, is_true
from loopwright.schedule.rewrite.blocks import is_leaf
from loopwright.schedule.rewrite.buffers import fresh_buffer
from loopwright.schedule.rewrite.combiners import Reduction, read_reduction, update_statement
from loopwright.schedule.rewrite.edits import Edits
from loopwright.schedule.rewrite.plain_loops import facts_around
from loopwright.schedule.rewrite.regions import facts_inside
from loopwright.schedule.step import BlockResult, Proof, Step
from loopwright.schedule.view import View


class NotFactorable(ScheduleError):
    """rfactor was asked of a loop whose iterations are not members of one reduction and nothing else.

    The loop must run over reduction axes alone, hold a single block, and stand with the block's other loops in one
    nest; no guard may relate data loops to it, and no loop that the block has no axis for may repeat a part of the
    reduction. `split` and `reorder` give a nest that shape.

    For example:

        from loopwright import te
        from loopwright.schedule import Schedule
        A = te.placeholder((4, 8), name="A")
        k = te.reduce_axis((0, 8), name="k")
        C = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="C")
        sch = Schedule(te.create_prim_func([A, C]))
        sch.rfactor(sch.get_loops("C")[0], 0)
    """

    code = "LW0283"

    def __init__(self, loop: For, problem: str, hint: str | None = None) -> None:
        super().__init__(
            f"rfactor: {problem}", at=loop, hint=hint, fields={"loop": loop.loop_var.name, "problem": problem}
        )


class NotCommutative(ScheduleError):
    """rfactor would combine the members of a reduction in another order, and its operation is not commutative.

    An argmax that keeps the first of equal values is such an operation: in another order, another one is first. Partial
    results along the outermost loop of the reduction keep the order. Or break ties by the index, whatever comes first:
    `a[1] > b[1]` or (`a[1] == b[1]` and `a[0] < b[0]`).

    For example:

        from loopwright import te
        from loopwright.schedule import Schedule

        def better(a, b):
            first = a[1] >= b[1]
            return te.if_then_else(first, a[0], b[0]), te.if_then_else(first, a[1], b[1])

        argmax = te.comm_reducer(better, lambda i, v: (te.const(-1, i), te.min_value(v)), name="argmax")
        A = te.placeholder((8,), "int32", name="A")
        k = te.reduce_axis((0, 8), name="k")
        where, value = te.compute((1,), lambda i: argmax((k.var, A[k]), axis=k), name="best")
        sch = Schedule(te.create_prim_func([A, where, value]))
        k_0, k_1 = sch.split(sch.get_loops("best")[1], [2, 4])
        sch.rfactor(k_1, 0)
    """

    code = "LW0263"

    def __init__(self, loop: For, block: Block, outer: For) -> None:
        names = (loop.loop_var.name, outer.loop_var.name)
        super().__init__(
            f"rfactor: the reduction {block.name_hint!r} is not commutative, and loop {names[1]} of it is around loop "
            f"{names[0]}",
            at=loop,
            why="its members would be combined in another order",
            hint=f"rfactor loop {names[1]}, which keeps the order; or break ties by the index",
            fields={"loop": names[0], "block": block.name_hint},
        )


class _Nest(NamedTuple):
    """A reduction block with its loops, told apart: those its data axes use, and the one to factor."""

    realize: BlockRealize
    loops: Sequence[For]
    data: Sequence[For]
    factored: For
    kept: Sequence[Expr]  # guards that stay: on data loops (both blocks), and on other loops of the reduction
    on_loop: Sequence[Expr]  # guards on the factored loop


def rfactor(view: View, loop: For, factor_axis: int) -> Step:
    """Make partial results along `loop`, kept in a new dimension `factor_axis`, and combine them afterwards."""
    # Check
    nest = _nest_of(view, loop)
    answer = read_reduction("rfactor", nest.realize)
    _check_steering(nest, answer.buffers)
    _check_stored(nest, answer)
    _check_rows(nest, answer)
    _check_domains(view, nest)
    if not answer.commutative:
        _check_order(nest)
    axis = _checked_axis(loop, factor_axis, len(answer.indices))

    # Build
    name = nest.realize.block.name_hint
    partial = tuple([_partial_buffer(buffer, loop, axis) for buffer in answer.buffers])
    first = _partial_nest(view.fresh_block_name(f"{name}_rf"), nest, answer, partial, axis)
    second = _combining_nest(nest, answer, partial, axis)
    edits = Edits()
    path = view.block_path(block_key(nest.realize.block))
    edits.replaced[nest.loops[0]] = seq([first.statement, second.statement])
    edits.allocated[view.scope_of(path)] = list(partial)
    result = BlockResult(block_key(first.block))
    moved = {block_key(nest.realize.block): block_key(second.block)}
    return Step(edits.apply(view.function), Proof.GIVEN, results=[result], at=loop, moved=moved)


# --- checks -------------------------------------------------------------------------------------------------------


def _nest_of(view: View, loop: For) -> _Nest:
    if isinstance(loop.extent, IntImm) and loop.extent.value < 0:
        raise NotFactorable(loop, f"loop {loop.loop_var.name} has no iterations: its extent is {loop.extent}")
    below = view.blocks_below(loop)
    if len(below) != 1:
        names = ", ".join([realize.block.name_hint for realize in below]) or "none"
        raise NotFactorable(loop, f"loop {loop.loop_var.name} must hold one block; it holds {names}", "see fission")
    (realize,) = below
    block = realize.block
    loops = view.loops_of(block_key(block))
    for item, inner in zip(loops, [*loops[1:], realize], strict=True):
        if item.body is not inner:
            problem = f"loop {item.loop_var.name} holds more than the nest of block {block.name_hint!r}"
            raise NotFactorable(loop, problem, "call rfactor before merge or compute_at; or part it with fission first")
    if not is_leaf(block):
        raise NotFactorable(loop, f"block {block.name_hint!r} has blocks inside")

    pairs = list(zip(block.iter_vars, realize.iter_values, strict=True))
    data_values = [value for axis, value in pairs if axis.iter_type != IterType.CommReduce]
    reduce_values = [value for axis, value in pairs if axis.iter_type == IterType.CommReduce]
    data = [item for item in loops if _is_used(item.loop_var, data_values)]
    reducing = {item.loop_var for item in loops if _is_used(item.loop_var, reduce_values)}
    name = loop.loop_var.name
    if loop in data:
        both = " as well as its reduction" if loop.loop_var in reducing else ""
        problem = f"loop {name} runs over data axes of block {block.name_hint!r}{both}"
        names = ", ".join([item.loop_var.name for item in loops if item.loop_var in reducing and item not in data])
        raise NotFactorable(loop, problem, f"its loops of the reduction are: {names or 'none'}")
    for item in data:
        if item.loop_var in reducing:
            problem = f"loop {item.loop_var.name} runs over data and over the reduction of block {block.name_hint!r}"
            raise NotFactorable(loop, problem)
    _check_repeats(block, loop, loops, data, reducing)
    conditions = conjuncts(realize.predicate)
    divided = _divided(loop, conditions)
    touched = [value for value in reduce_values if _variables(value) & divided]
    _check_bounds(loop, [item for item in loops if _is_used(item.loop_var, touched)], loops, data)
    # Partial results are combined in every iteration of the data loops, also where the reduction has none.
    of_cells = [item for item in loops if item.loop_var not in reducing]
    known = [Loop(item.loop_var, item.min, item.extent) for item in of_cells]
    about_cells = [condition for condition in conditions if not _variables(condition) & reducing]
    for depth, item in enumerate(of_cells):
        if item in data and carries(known, depth, data_values, about_cells):
            problem = f"several iterations of loop {item.loop_var.name} reach one cell of the result"
            raise NotFactorable(loop, problem)
    return _Nest(realize, loops, data, loop, *_guards(loop, loops, data, reducing, conditions))


def _check_steering(nest: _Nest, buffers: Sequence[Buffer]) -> None:
    """Which members there are must not depend on what they make."""
    realize = nest.realize
    bounds = [bound for item in nest.loops for bound in (item.min, item.extent)]
    for expr in (realize.predicate, *realize.iter_values, *bounds):
        loaded = next((buffer for buffer in buffers if _loads(expr, buffer)), None)
        if loaded is not None:
            problem = f"whether block {realize.block.name_hint!r} runs, or where, depends on {loaded.name}: {expr}"
            raise NotFactorable(nest.factored, problem)


def _check_stored(nest: _Nest, answer: Reduction) -> None:
    """Partial results are loaded, so a condition on them is one on numbers that wrapped; one on indices is exact."""
    facts = facts_inside(nest.realize.block)
    cells = [BufferLoad(buffer, answer.indices) for buffer in answer.buffers]
    values = answer.combine(cells, answer.operands)
    for operand in answer.operands:
        if as_stored(operand, facts) is operand:
            continue

        def compares(node: Node, operand: Expr = operand) -> bool:
            return (
                isinstance(node, (CompareExpr, *EXACT_NODES))
                and node is not operand
                and not any([holds_data(side) for side in (node.a, node.b)])
                and any_node(node, lambda part: part is operand)
            )

        if any([any_node(value, compares) for value in values]):
            problem = f"whether {operand} takes part is decided before it is stored, and it may leave {operand.dtype}"
            raise NotFactorable(nest.factored, problem, "compute it in a wider type")


def _check_rows(nest: _Nest, answer: Reduction) -> None:
    """Where iterations of data loops share a cell, each starts it anew: what counts are the members of the last.

    Partial results are the same unless a start keeps what the cell held, or unless there is one start for all of them:
    that is so in a loop of the reduction around them.
    """
    realize, block = nest.realize, nest.realize.block
    values = {axis.var: value for axis, value in zip(block.iter_vars, realize.iter_values, strict=True)}
    cells = [substitute(index, values) for index in answer.indices]
    pairs = zip(block.iter_vars, realize.iter_values, strict=True)
    reduced = {var for axis, value in pairs if axis.iter_type == IterType.CommReduce for var in _variables(value)}
    of_cells = [item for item in nest.loops if item.loop_var not in reduced]
    known = [Loop(item.loop_var, item.min, item.extent) for item in of_cells]
    about_cells = [condition for condition in conjuncts(realize.predicate) if not _variables(condition) & reduced]
    assert block.init is not None
    kept = next((buffer.name for buffer in answer.buffers if _loads(block.init, buffer)), None)
    around: str | None = None  # a loop of the reduction
    for item in nest.loops:
        name = item.loop_var.name
        if item.loop_var in reduced:
            around = name if around is None and not is_one(item.extent) else around
        elif (kept or around) and item in nest.data and carries(known, of_cells.index(item), cells, about_cells):
            problem = f"iterations of loop {name} share a cell of {answer.buffers[0].name}"
            if kept:
                raise NotFactorable(nest.factored, f"{problem}, and start from what it held before")
            hint = f"reorder {name} to the outside of {around}, or give the iterations cells of their own"
            raise NotFactorable(nest.factored, f"{problem}, and loop {around} of the reduction is around them", hint)


def _loads(root: Node, buffer: Buffer) -> bool:
    return any_node(root, lambda node: isinstance(node, BufferLoad) and node.buffer.data is buffer.data)


def _check_order(nest: _Nest) -> None:
    """Partial results are made and combined in the order of the members only along their outermost loop."""
    pairs = zip(nest.realize.block.iter_vars, nest.realize.iter_values, strict=True)
    reduced = [value for axis, value in pairs if axis.iter_type == IterType.CommReduce]
    for item in nest.loops:
        if item is nest.factored:
            return
        if _is_used(item.loop_var, reduced) and not (isinstance(item.extent, IntImm) and item.extent.value == 1):
            raise NotCommutative(nest.factored, nest.realize.block, item)


def _divided(loop: For, conditions: Sequence[Expr]) -> set[Var]:
    """Loops whose reduction axes become axes of the loops themselves: the factored one, and those its guards are about.

    Such a guard moves into the operand, so that it no longer keeps an axis of the block inside its domain.
    """
    result = {loop.loop_var}
    for condition in conditions:
        used = _variables(condition)
        if loop.loop_var in used:
            result |= used
    return result


def _check_domains(view: View, nest: _Nest) -> None:
    """A guard on the factored loop moves into the operand, so no other axis may need it to stay inside its domain."""
    if not nest.on_loop:
        return
    realize, divided = nest.realize, _divided(nest.factored, nest.on_loop)
    facts = facts_around(view, view.block_path(block_key(realize.block))[:-1])
    with facts.constraint_scope(logical_and(TRUE, *nest.kept)):
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
            if axis.dom is None or (axis.iter_type == IterType.CommReduce and _variables(value) & divided):
                continue
            first = axis.dom.min
            if not (facts.can_prove(value >= first) and facts.can_prove(value < first + axis.dom.extent)):
                problem = f"a guard on loop {nest.factored.loop_var.name} keeps axis {axis.var.name} inside its domain"
                raise NotFactorable(nest.factored, problem)


def _check_repeats(block: Block, loop: For, loops: Sequence[For], data: Sequence[For], reducing: set[Var]) -> None:
    """A loop that no axis uses adds everything below once more.

    Partial results do that too as long as they are sums: not where the loop that is factored is all of the reduction.
    """
    begun, is_whole = False, reducing <= {loop.loop_var}
    for item in loops:
        name, count = item.loop_var.name, item.extent
        if item.loop_var in reducing:
            begun = begun or not (isinstance(count, IntImm) and count.value == 1)
            continue
        if item in data or (isinstance(count, IntImm) and count.value == 1):
            continue
        if item is loop or is_whole:
            problem = f"loop {name} repeats the reduction of block {block.name_hint!r}"
            raise NotFactorable(loop, problem, f"bind an axis to {name}, or take the loop away")
        if begun:
            problem = f"loop {name} repeats a part of the reduction of block {block.name_hint!r}"
            raise NotFactorable(loop, problem, f"bind an axis to {name}, or take the loop away")
        if not isinstance(count, IntImm) or count.value < 1:
            raise NotFactorable(loop, f"loop {name}, which no axis of block {block.name_hint!r} uses, may not run")


def _check_bounds(loop: For, new_axes: Sequence[For], loops: Sequence[For], data: Sequence[For]) -> None:
    """The new buffer and axes have one size each, and the data loops run the same without the others."""
    every, shared = {item.loop_var for item in loops}, {item.loop_var for item in data}
    sized = [loop, *[item for item in new_axes if item is not loop]]
    checked: list[tuple[For, set[Var]]] = [*[(item, set()) for item in sized], *[(item, shared) for item in data]]
    for item, allowed in checked:
        for bound in (item.min, item.extent):
            used = [var.name for var in _variables(bound) if var in every and var not in allowed]
            if used:
                problem = f"the bounds of loop {item.loop_var.name} depend on loop {used[0]}"
                raise NotFactorable(loop, problem)


def _guards(
    loop: For, loops: Sequence[For], data: Sequence[For], reducing: set[Var], conditions: Sequence[Expr]
) -> tuple[list[Expr], list[Expr]]:
    shared = {item.loop_var for item in data}
    others = {item.loop_var for item in loops} - shared
    kept: list[Expr] = []
    on_loop: list[Expr] = []
    for condition in conditions:
        used = _variables(condition)
        if used & shared and used & others:
            names = sorted([var.name for var in used & (shared | others)])
            raise NotFactorable(
                loop,
                f"the guard {condition} relates data to the reduction (loops {', '.join(names)})",
                "which members there are would depend on the cell; choose tiles that divide the extents",
            )
        for var in (used & others) - reducing if not _holds_at_first(condition, loops) else ():
            problem = f"the guard {condition} is on loop {var.name}, which no axis of the block is bound to"
            raise NotFactorable(loop, problem, "bind it to one: v = T.axis.spatial(n, i)")
        (on_loop if loop.loop_var in used else kept).append(condition)
    return kept, on_loop


def _holds_at_first(condition: Expr, loops: Sequence[For]) -> bool:
    """Whether a condition holds in the first iteration of the loops it names, which there is: all cells are started."""
    named = [item for item in loops if item.loop_var in _variables(condition)]
    if not all([isinstance(item.extent, IntImm) and item.extent.value > 0 for item in named]):
        return False
    first = substitute(condition, {item.loop_var: item.min for item in named})
    return is_true(Analyzer().simplify(first))


def _checked_axis(loop: For, factor_axis: int, rank: int) -> int:
    if isinstance(factor_axis, bool) or not isinstance(factor_axis, int) or not -rank - 1 <= factor_axis <= rank:
        problem = f"factor_axis is {factor_axis!r}, but the partial results have {rank + 1} dimensions"
        raise BadStepArgument("rfactor", problem, loop, f"give a number from {-rank - 1} to {rank}")
    return factor_axis + rank + 1 if factor_axis < 0 else factor_axis


def _is_used(var: Var, exprs: Sequence[Expr]) -> bool:
    return any(uses_var(expr, {var}.__contains__) for expr in exprs)


def _variables(expr: Expr) -> set[Var]:
    return set(collect(expr, Var))


# --- the partial results ------------------------------------------------------------------------------------------


class _Made(NamedTuple):
    statement: Stmt
    block: Block


def _partial_buffer(buffer: Buffer, loop: For, axis: int) -> Buffer:
    dtype = buffer.shape[0].dtype if buffer.shape else loop.loop_var.dtype
    shape = [*buffer.shape[:axis], cast(loop.extent, dtype), *buffer.shape[axis:]]
    return fresh_buffer(f"{buffer.name}_rf", shape, buffer, buffer.scope())


def _place(indices: Sequence[Expr], axis: int, at: Expr) -> tuple[Expr, ...]:
    return (*indices[:axis], at, *indices[axis:])


def _offset(loop: For, var: Expr) -> Expr:
    """Where the partial result of an iteration is: loops count from `min`, buffers from 0."""
    return var if isinstance(loop.min, IntImm) and loop.min.value == 0 else var - loop.min


def _partial_nest(name: str, nest: _Nest, answer: Reduction, partial: Sequence[Buffer], axis: int) -> _Made:
    realize, loop = nest.realize, nest.factored
    block = realize.block
    own = Var(f"v{loop.loop_var.name}", loop.loop_var.dtype)
    axes = [IterVar(Range.from_min_extent(loop.min, loop.extent), own, IterType.DataPar)]
    bound: list[Expr] = [loop.loop_var]
    facts = Analyzer()
    values: dict[Var, Expr] = {}  # what stands for the old axes
    inner: dict[Var, Expr] = {loop.loop_var: own}  # what stands for loops that touched axes run over
    reduced: list[tuple[IterVar, Expr]] = []
    divided = _divided(loop, nest.on_loop)
    for old, value in zip(block.iter_vars, realize.iter_values, strict=True):
        if old.iter_type == IterType.CommReduce and _variables(value) & divided:
            for other in nest.loops:
                if other.loop_var not in inner and _is_used(other.loop_var, [value]):
                    part = Var(f"v{other.loop_var.name}", other.loop_var.dtype)
                    inner[other.loop_var] = part
                    domain = Range.from_min_extent(other.min, other.extent)
                    reduced.append((IterVar(domain, part, IterType.CommReduce), other.loop_var))
            values[old.var] = value
            continue
        fresh = Var(old.var.name, old.var.dtype)
        values[old.var] = fresh
        result = IterVar(old.dom, fresh, old.iter_type, old.thread_tag)
        if old.iter_type == IterType.CommReduce:
            reduced.append((result, value))
        else:
            axes.append(result)
            bound.append(value)
    axes += [item for item, _ in reduced]
    bound += [value for _, value in reduced]
    for item in axes:
        if item.dom is not None:
            facts.bind(item.var, item.dom)
    values = {
        var: value if isinstance(value, Var) and value not in inner else cast(_inside(value, inner, facts), var.dtype)
        for var, value in values.items()
    }

    cell = _place([substitute(index, values) for index in answer.indices], axis, _offset(loop, own))
    old_values = [BufferLoad(buffer, cell) for buffer in partial]
    operands = [substitute(operand, values) for operand in answer.operands]
    units = [substitute(unit, values) for unit in answer.identity]
    if nest.on_loop:
        # The guard tells members from what is none; it is about loops, which the block sees as axes of its own.
        guard = logical_and(TRUE, *[_guard_inside(item, inner, nest, reduced) for item in nest.on_loop])
        none = [substitute(unit, values) for unit in answer.neutral]
        operands = [if_then_else(guard, operand, unit) for operand, unit in zip(operands, none, strict=True)]
    combined = answer.combine(old_values, operands) if reduced else operands  # a partial result may be one member
    new = Block(
        tuple(axes),
        tuple([substitute(region, values) for region in block.reads if region.buffer not in answer.buffers]),
        tuple([cell_region(buffer, cell) for buffer in partial]),
        name,
        update_statement(partial, cell, combined),
        init=_init(partial, cell, units) if reduced else None,
        annotations=block.annotations,
    )
    statement: Stmt = BlockRealize(tuple(bound), logical_and(TRUE, *nest.kept), new)
    for around in reversed(nest.loops):
        statement = around.with_(body=statement)
    return _Made(statement, new)


def _guard_inside(guard: Expr, inner: dict[Var, Expr], nest: _Nest, reduced: Sequence[tuple[IterVar, Expr]]) -> Expr:
    """A guard on the factored loop, in axes of the block."""
    known = dict(inner)
    for item, value in reduced:
        if isinstance(value, Var):
            known.setdefault(value, item.var)
    loops = {item.loop_var for item in nest.loops}
    for var in _variables(guard):
        if var in loops and var not in known:
            problem = f"the guard {guard} is about loop {var.name}, which is no axis of the reduction"
            raise NotFactorable(nest.factored, problem)
    return substitute(guard, known)


def _init(buffers: Sequence[Buffer], cell: tuple[Expr, ...], values: Sequence[Expr]) -> Stmt:
    return seq([update_statement([buffer], cell, [value]) for buffer, value in zip(buffers, values, strict=True)])


def _inside(value: Expr, inner: Mapping[Var, Expr], facts: Analyzer) -> Expr:
    return facts.simplify(substitute(value, inner))


# --- combining them -----------------------------------------------------------------------------------------------


def _combining_nest(nest: _Nest, result: Reduction, partial: Sequence[Buffer], axis: int) -> _Made:
    realize, loop = nest.realize, nest.factored
    block = realize.block
    pairs = zip(block.iter_vars, realize.iter_values, strict=True)
    reduced = [value for old, value in pairs if old.iter_type == IterType.CommReduce]
    idle = [item for item in nest.loops if is_one(item.extent) and not _is_used(item.loop_var, reduced)]
    loops = [item for item in nest.loops if item in nest.data or item is loop or item in idle]
    fresh = {item.loop_var: Var(item.loop_var.name, item.loop_var.dtype) for item in loops}
    at = Var(f"v{loop.loop_var.name}", loop.loop_var.dtype)
    axes = [IterVar(Range.from_min_extent(loop.min, loop.extent), at, IterType.CommReduce)]
    bound: list[Expr] = [fresh[loop.loop_var]]
    for old, value in zip(block.iter_vars, realize.iter_values, strict=True):
        if old.iter_type != IterType.CommReduce:
            axes.append(old)
            bound.append(substitute(value, fresh))
    cell = result.indices
    there = _place(cell, axis, _offset(loop, at))
    mine = [BufferLoad(buffer, cell) for buffer in result.buffers]
    theirs = [BufferLoad(buffer, there) for buffer in partial]
    new = block.with_(
        iter_vars=tuple(axes),
        reads=tuple([cell_region(buffer, there) for buffer in partial]),
        writes=tuple([cell_region(buffer, cell) for buffer in result.buffers]),
        body=update_statement(result.buffers, cell, result.combine(mine, theirs)),
    )
    on_data = [item for item in nest.kept if not _uses_others(item, nest)]
    guard = logical_and(TRUE, *[substitute(item, fresh) for item in on_data])
    statement: Stmt = BlockRealize(tuple(bound), guard, new)
    for item in reversed(loops):
        kind = item.kind if item is not loop or item.kind is ForKind.UNROLLED else ForKind.SERIAL
        binding = item.thread_binding if item is not loop else None
        statement = item.with_(
            loop_var=fresh[item.loop_var],
            min=substitute(item.min, fresh),
            extent=substitute(item.extent, fresh),
            kind=kind,
            thread_binding=binding,
            body=statement,
        )
    return _Made(statement, new)


def _uses_others(guard: Expr, nest: _Nest) -> bool:
    """Whether a guard is about loops of the reduction: it says which members there are."""
    others = {item.loop_var for item in nest.loops} - {item.loop_var for item in nest.data}
    return bool(_variables(guard) & others)
