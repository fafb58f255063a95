"""Moved inits: where a step that keeps the order of iterations moves the start of a reduction.

    for i, k in T.grid(4, 6):    →    C[0:4] = 0            the init of each cell, before the loop that carries the sum
        C[i] += A[i, k]               for f in range(24):
                                          C[f // 6] += A[f // 6, f % 6]

The init of a reduction runs before the outermost loop that carries it, so splitting and fusing loops may move it. Here
is asked through which buffers that could change a value; what is found is proved like any other step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace

from loopwright.analysis.effects import Effects, effects, effects_of_all
from loopwright.analysis.reduction_init import NamedInits, reducing_variables, variables_of, write_named_inits
from loopwright.ir import (
    Allocate,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    IntImm,
    IterType,
    LetStmt,
    Node,
    PrimFunc,
    Stmt,
    Var,
    Visitor,
    collect,
    conjuncts,
    deep,
    is_one,
    pre_order_visit,
    structural_equal,
    substitute,
    uses_var,
)
from loopwright.schedule.handles import BlockKey, block_key
from loopwright.schedule.proof.lemmas import fixed_by
from loopwright.schedule.rewrite.bindings import is_true
from loopwright.schedule.rewrite.blocks import is_unit_axis
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import Path, View


@deep
def met_by_inits(loop: Stmt, path: Path) -> list[Buffer]:
    """The buffers through which a new place for a reduction's init, within `loop`, could change a value.

    The init runs before the outermost loop that carries the reduction, so splitting or fusing loops may move it, and a
    fused loop runs it once for each update. That is without consequence where nothing in the loop but the updates of
    the same cell touches the buffer, each cell has one start, and nothing in the loop writes what the init reads.
    `path` are the statements around the loop.
    """
    parts = _Parts(path)
    parts.visit(loop)
    result: dict[Var, Buffer] = {}
    for realize in parts.blocks:
        if realize.block.init is None:
            continue
        own, init = effects(realize.block, path), effects(realize.block.init, [*path, realize.block])
        others = [mark for block, mark in parts.marks if block is not realize]
        for data, buffer in init.writes.items():
            met = any([data in mark.reads or data in mark.writes for mark in others])
            if met or own.calls or _touches_several_cells(realize.block, data) or _shares_cells(realize.block, data):
                result[data] = buffer
        asked = {**init.reads, **effects_of_all([realize.predicate, *realize.iter_values], path).reads}
        for data, buffer in asked.items():
            if any([data in mark.writes for mark in (own, *others)]):
                result[data] = buffer
    return list(result.values())


def inits_moved_out(view: View, loops: Sequence[For]) -> list[Buffer]:
    """The buffers of reductions that start before the fused loop, and before the reduction's own loop until now.

    All of them start before the first is updated. That is the same where each has cells of its own, and where the
    start depends on no condition: it would be asked for in loops of the reduction too, which may have no iterations.
    """
    result = []
    for realize in view.blocks_below(loops[-1].body):
        block = realize.block
        if block.init is None:
            continue
        axes = list(zip(block.iter_vars, realize.iter_values, strict=True))
        data = [(axis, value) for axis, value in axes if axis.iter_type != IterType.CommReduce]
        with_data = [any([uses_var(value, {loop.loop_var}.__contains__) for _, value in data]) for loop in loops]
        if not any(with_data) or all(with_data):
            continue
        axes_of_cells = [axis.var for axis, _ in data if not is_unit_axis(axis)]
        own = all([any([index is var for index in cell]) for var in axes_of_cells for cell in _cells_of(block.init)])
        path = view.block_path(block_key(block))
        if not own or not is_true(realize.predicate) or any([isinstance(node, IfThenElse) for node in path]):
            result += [region.buffer for region in block.writes]
    return result


def inits_of_rows(view: View, loop: For) -> list[Buffer]:
    """The buffers of reductions in a loop whose extent depends on loops around it.

    Rows without iterations start too, which a guard that ties loops of the reduction to those around would not say.
    """
    path = view.loop_path(loop.loop_var)
    around = {other.loop_var for other in view.all_loops_above(path[:-1])}
    (*_, written) = _lets_written_out(path)
    assert isinstance(written, For)
    if not uses_var(written.extent, around.__contains__):
        return []
    started = [realize.block for realize in view.blocks_below(loop.body) if realize.block.init is not None]
    return [region.buffer for block in started for region in block.writes]


def with_inits_proved(view: View, after: View, step: Step) -> Step:
    """The step, which has to show that every value is kept where other loops than before may say what is started.

    A loop that no reduction axis is bound to has the init inside it, and one that is has not. A condition on loops
    of a reduction and on others says for which of the others there is a start at all. Which loops these are may
    change with every split of a loop and every number that takes the place of one.
    """
    if step.proof is Proof.GIVEN or (step.proof is Proof.VALUES and step.buffers is None):
        return step
    old, new = view.index.blocks, after.index.blocks
    added: list[Buffer] = []
    for key, path in new.items():
        realize = path[-1]
        assert isinstance(realize, BlockRealize)
        if realize.block.init is None:
            continue
        before, path = _lets_written_out(old.get(key, ())) or None, _lets_written_out(path)
        is_same = before is not None and _init_key(before) == _init_key(path)
        if not is_same and (_may_run_other_inits(before, path) or _starts_over_other_loops(view, after, key)):
            added += [region.buffer for region in realize.block.writes]
            added += effects(realize.block.init, path).reads.values()
    if not added:
        return step
    return replace(step, proof=Proof.VALUES, buffers=[*(step.buffers or ()), *added])


def _lets_written_out(path: Path) -> Path:
    """The statements of a path, of which bounds, conditions and bindings hold values of lets in the place of names."""
    if not any([isinstance(node, LetStmt) for node in path]):
        return path
    values: dict[Var, Expr] = {}
    result: list[Stmt] = []
    for node in path:
        if isinstance(node, LetStmt):
            values[node.var] = substitute(node.value, values)
        elif isinstance(node, For):
            node = node.with_(min=substitute(node.min, values), extent=substitute(node.extent, values))
        elif isinstance(node, IfThenElse):
            node = node.with_(condition=substitute(node.condition, values))
        elif isinstance(node, BlockRealize):
            bindings = tuple([substitute(value, values) for value in node.iter_values])
            node = node.with_(iter_values=bindings, predicate=substitute(node.predicate, values))
        result.append(node)
    return tuple(result)


def _init_key(path: Path) -> list[Hashable]:
    """What decides which cells a reduction starts, and when: loops, conditions, bindings, and where memory begins.

    A loop of one iteration decides nothing, unless its variable depends on others or memory begins inside it.
    """
    realize = path[-1]
    assert isinstance(realize, BlockRealize)
    axes = [(axis.iter_type, value) for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)]
    keys: list[Hashable] = [realize.predicate, realize.block.init is None, frozenset(axes)]
    inside = max([k for k, node in enumerate(path) if isinstance(node, Allocate)], default=-1)
    for k, node in enumerate(path):
        if isinstance(node, For):
            if k < inside or not (is_one(node.extent) and isinstance(node.min, IntImm)):
                keys.append((node.loop_var, node.min, node.extent))
        elif isinstance(node, IfThenElse):
            keys.append(node.condition)
        elif isinstance(node, Allocate):
            keys.append(node.buffer_var)
    return keys


def _may_run_other_inits(before: Path | None, after: Path) -> bool:
    """Whether a reduction may start other cells: where it is no box, and where it runs over other loops than before."""
    if not _is_box(after):
        return True
    if before is None:
        return False
    if not _is_box(before) or _loop_kinds_changed(before, after):
        return True
    # A condition that went, or that speaks of other loops now: a split adds one on its own loops at most.
    return bool(_guard_kinds(before) - _guard_kinds(after))


def _is_box(path: Path) -> bool:
    """Whether it is known apart which cells a reduction starts and which updates each has: splits and fuses keep both.

    No condition ties loops of the reduction to others, or stands there without naming a loop, and no loop has bounds
    that name another. All else may say by loops of the reduction which cells start.
    """
    realize = path[-1]
    assert isinstance(realize, BlockRealize)
    if realize.block.init is None:
        return True
    if _bounds_name_loops(path):
        return False
    kinds = _guard_kinds(path)
    return not (kinds["both"] or kinds["none"])


def _bounds_name_loops(path: Path) -> bool:
    loops = [node for node in path if isinstance(node, For)]
    bounds = [bound for loop in loops for bound in (loop.min, loop.extent) if not isinstance(bound, IntImm)]
    own = {loop.loop_var for loop in loops}
    return any([not own.isdisjoint(variables_of(bound)) for bound in bounds])


def _starts_over_other_loops(view: View, after: View, key: BlockKey) -> bool:
    """Whether a loop that stays is one that a reduction starts in, or over, in one version only.

    Asked where memory is allocated elsewhere, and where a loop may have no iterations: else the kinds of axes say it.
    """
    before, now = _lets_written_out(view.index.blocks.get(key, ())), _lets_written_out(after.index.blocks[key])
    realize = now[-1]
    assert isinstance(realize, BlockRealize)
    if not before or realize.block.init is None:
        return False
    if _homes(before) == _homes(now) and _all_run(before) and _all_run(now):
        return False
    started, starts = loops_of_inits(view.function).get(key), loops_of_inits(after.function).get(key)
    if started is None or starts is None:
        return False
    staying = {node.loop_var for node in before if isinstance(node, For)}
    staying &= {node.loop_var for node in now if isinstance(node, For)}
    return not staying.isdisjoint(started ^ starts)


def _homes(path: Path) -> dict[Var, set[Var]]:
    """The loops around each allocation."""
    loops: set[Var] = set()
    homes = {}
    for node in path:
        if isinstance(node, For):
            loops.add(node.loop_var)
        elif isinstance(node, Allocate):
            homes[node.buffer_var] = set(loops)
    return homes


def _all_run(path: Path) -> bool:
    """Whether all loops are known to have iterations."""
    extents = [node.extent for node in path if isinstance(node, For)]
    return all([isinstance(extent, IntImm) and extent.value > 0 for extent in extents])


def _guard_kinds(path: Path) -> Counter[str]:
    """How many conditions of a reduction are about the cells it starts, its updates, both, or no loop at all."""
    realize = path[-1]
    assert isinstance(realize, BlockRealize)
    kinds: Counter[str] = Counter()
    conditions = [node.condition for node in path if isinstance(node, IfThenElse)]
    if realize.block.init is None or (not conditions and is_true(realize.predicate)):
        return kinds
    nest = [node for node in path if isinstance(node, For)]
    reduced = reducing_variables(realize)
    loops = {node.loop_var for node in nest}
    for condition in [part for whole in (*conditions, realize.predicate) for part in conjuncts(whole)]:
        if not is_true(condition):
            used = loops & variables_of(condition)
            about_updates = "both" if used - reduced else "updates"
            kinds[about_updates if used & reduced else "cells" if used else "none"] += 1
    return kinds


def _loop_kinds_changed(before: Path, after: Path) -> bool:
    """Whether a loop is one of the reduction in one version only: starts run in the others, or over them.

    Simplifying may take a loop out of a binding, also while it is split or fused: then other kinds of loops come than
    those that go.
    """
    old, new = _loop_kinds(before), _loop_kinds(after)
    if any([old[var] != new[var] for var in old.keys() & new.keys()]):
        return True
    return {old[var] for var in old.keys() - new.keys()} != {new[var] for var in new.keys() - old.keys()}


def _loop_kinds(path: Path) -> dict[Var, str]:
    """What axes each loop is bound to; one of a single iteration runs, whatever they are."""
    realize = path[-1]
    assert isinstance(realize, BlockRealize)
    bound = {var for value in realize.iter_values for var in variables_of(value)}
    reduced = reducing_variables(realize)
    loops = [node.loop_var for node in path if isinstance(node, For) and not is_one(node.extent)]
    return {var: "reduction" if var in reduced else "data" if var in bound else "none" for var in loops}


def loops_of_inits(function: PrimFunc) -> dict[BlockKey, set[Var]]:
    """The loops of the program that each reduction starts in, or over: where one has no iterations, nothing starts."""
    written = write_named_inits(function.body)
    starts = _Starts(written)
    starts.visit(written.body)
    return starts.found


class _Starts(Visitor):
    """For every block with an init, the loops around that init, by the variables they have in the program."""

    def __init__(self, written: NamedInits) -> None:
        self.written = written
        self.around: list[Var] = []
        self.found: dict[BlockKey, set[Var]] = {}

    def visit_For(self, loop: For) -> None:
        self.around.append(self.written.loops.get(loop.loop_var, loop.loop_var))
        self.visit(loop.body)
        self.around.pop()

    def visit_Block(self, block: Block) -> None:
        of = self.written.blocks.get(block)
        if of is not None:
            self.found[block_key(of)] = set(self.around)
        self.visit(block.body)

    def visit_Expr(self, expr: Expr) -> None:
        """Expressions hold no blocks."""


class _Parts(Visitor):
    """The blocks of a nest, each with its footprint, and the statements beside them; blocks are not entered."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blocks: list[BlockRealize] = []
        self.marks: list[tuple[Stmt, Effects]] = []

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        self.blocks.append(realize)
        self.marks.append((realize, effects(realize, self.path)))

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.marks.append((store, effects(store, self.path)))

    def visit_Evaluate(self, statement: Evaluate) -> None:
        self.marks.append((statement, effects(statement, self.path)))

    def visit_Expr(self, expr: Expr) -> None:
        """Bounds and conditions; what they load is data that no step may depend on."""


def _touches_several_cells(block: Block, data: Var) -> bool:
    """Whether the init and the updates touch the memory they accumulate in anywhere but in one cell."""
    stores: list[BufferStore] = []
    loads: list[BufferLoad] = []

    def look(node: Node) -> None:
        if isinstance(node, BufferStore) and node.buffer.data is data:
            stores.append(node)
        elif isinstance(node, BufferLoad) and node.buffer.data is data:
            loads.append(node)

    for part in (block.init, block.body):
        if part is not None:
            pre_order_visit(part, look)
    touched = [*[store.indices for store in stores], *[load.indices for load in loads]]
    return any([not structural_equal(indices, touched[0]) for indices in touched])


def _shares_cells(block: Block, data: Var) -> bool:
    """Whether iterations with other values of the data axes may start one cell, so that the last start counts."""
    assert block.init is not None
    axes = {axis.var for axis in block.iter_vars if axis.iter_type != IterType.CommReduce and not is_unit_axis(axis)}
    stores = [store for store in collect(block.init, BufferStore) if store.buffer.data is data]
    return any([not axes <= fixed_by(store.indices) for store in stores])


def _cells_of(init: Stmt) -> list[tuple[Expr, ...]]:
    """The indices that an init stores at."""
    return [node.indices for node in collect(init, BufferStore)]
