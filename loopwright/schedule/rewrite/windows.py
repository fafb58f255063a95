"""Windows: the box of a buffer that a block touches while some loops run and the loops around them stand still.

    for i0, k0 in T.grid(4, 8):
        for i1, k1 in T.grid(16, 32):            the window of A in one iteration of k0:
            … A[i0 * 16 + i1, k0 * 32 + k1]          16 × 32 elements from A[i0 * 16, k0 * 32]

The first element of the window is an expression of the loops that stand still; its size does not depend on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from loopwright.analysis.may_fail import may_fail
from loopwright.analysis.queries import undefined_vars
from loopwright.arith import (
    Analyzer,
    IntervalSet,
    detect_iter_map,
    interval_of,
    inverse_affine_iter_map,
    linear_coefficients,
)
from loopwright.arith.bounds import FAR, ROOMY
from loopwright.arith.iter_map import NotInvertible
from loopwright.ir import (
    LT,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Expr,
    For,
    IntImm,
    Let,
    LetStmt,
    Range,
    Stmt,
    Var,
    Visitor,
    collect,
    conjuncts,
    const,
    deep,
    logical_and,
    pre_order_visit,
    reads_memory,
    structural_equal,
    substitute,
    uses_var,
)
from loopwright.schedule.handles import block_key
from loopwright.schedule.rewrite.bindings import TRUE
from loopwright.schedule.rewrite.blocks import is_leaf
from loopwright.schedule.rewrite.regions import facts_inside, facts_under
from loopwright.schedule.view import Path, View


@dataclass(frozen=True)
class Access:
    """A load or store in a block, with the loops inside the block around it."""

    indices: tuple[Expr, ...]
    loops: tuple[For, ...]
    writes: bool


@dataclass(frozen=True)
class Window:
    """The elements `origin + 0 … shape - 1` of a buffer; the variables of `origin` are loops that stand still."""

    buffer: Buffer
    origin: tuple[Expr, ...]
    shape: tuple[Expr, ...]
    reads: bool
    writes: bool
    limits: tuple[Expr | None, ...]  # indices from here on are not touched: the block's own guard says so

    def variables(self) -> list[Var]:
        """The loop variables that the origin depends on, in order of appearance."""
        result: dict[Var, None] = {}
        for low in self.origin:
            pre_order_visit(low, lambda node: result.setdefault(node) if isinstance(node, Var) else None)
        return list(result)


@deep
def accesses(root: Stmt, buffer: Buffer) -> list[Access]:
    """The loads and stores of `buffer` in a block's body or init."""
    walk = _Accesses(buffer)
    walk.visit(root)
    return walk.found


class _Accesses(Visitor):
    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.loops: tuple[For, ...] = ()
        self.lets: dict[Var, Expr] = {}
        self.found: list[Access] = []

    def visit_For(self, loop: For) -> None:
        outside, self.loops = self.loops, (*self.loops, loop)
        self.visit(loop.body)
        self.loops = outside

    def visit_LetStmt(self, let: LetStmt | Let) -> None:
        self.visit(let.value)
        self.lets[let.var] = substitute(let.value, self.lets)
        self.visit(let.body)

    visit_Let = visit_LetStmt

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self._add(load, writes=False)

    def visit_BufferStore(self, store: BufferStore) -> None:
        self._add(store, writes=True)

    def _add(self, access: BufferLoad | BufferStore, writes: bool) -> None:
        if access.buffer is self.buffer:
            indices = tuple([substitute(index, self.lets) for index in access.indices])
            self.found.append(Access(indices, self.loops, writes))
        self.visit_children(access)


def loops_within(path: Path, scope: BlockRealize) -> list[For]:
    """The loops on a path below the block `scope`, outermost first."""
    start = next(k for k, statement in enumerate(path) if statement is scope)
    return [statement for statement in path[start + 1 :] if isinstance(statement, For)]


def window_of(
    view: View, realizes: Sequence[BlockRealize], buffer: Buffer, scope: BlockRealize, still: Sequence[For]
) -> Window:
    """What blocks in `scope` touch of `buffer` while the loops `still` around all of them stand still."""
    facts = facts_under(still, [scope])
    standing = {loop.loop_var for loop in still}
    hull: list[IntervalSet | None] | None = None
    limits: list[Expr | None] | None = None
    reads = writes = False
    for realize in realizes:
        block = realize.block
        path = view.block_path(block_key(realize.block))
        moving = [loop for loop in loops_within(path, scope) if loop.loop_var not in standing]
        values = _values_through(path[next(k for k, statement in enumerate(path) if statement is scope) + 1 :])
        for access in [a for part in (block.init, block.body) if part is not None for a in accesses(part, buffer)]:
            reads, writes = reads or not access.writes, writes or access.writes
            domains = {
                loop.loop_var: Range.from_min_extent(substitute(loop.min, values), substitute(loop.extent, values))
                for loop in (*moving, *access.loops)
            }
            inside = facts_under([*loops_within(path, scope), *access.loops], [scope])
            indices = [inside.simplify(substitute(index, values)) for index in access.indices]
            box = [_interval(facts, index, domains) for index in indices]
            guard = substitute(realize.predicate, values)  # blocks around it have axes of their own, too
            ends = [_limit(inside, index, guard, domains) for index in indices]
            hull = box if hull is None else [_hull(facts, a, b) for a, b in zip(hull, box, strict=True)]
            limits = ends if limits is None else [_later(facts, a, b) for a, b in zip(limits, ends, strict=True)]
    whole: list[IntervalSet | None] = [None] * buffer.ndim
    parts = [_part(facts, part, extent) for part, extent in zip(hull or whole, buffer.shape, strict=True)]
    origin, shape = tuple([low for low, _ in parts]), tuple([size for _, size in parts])
    return Window(buffer, origin, shape, reads, writes, tuple(limits or [None] * buffer.ndim))


def first_cell(
    view: View, realizes: Sequence[BlockRealize], buffer: Buffer, scope: BlockRealize, still: Sequence[For]
) -> tuple[Expr, ...] | None:
    """What the first iteration of the loops inside `still` touches; None where that is not one cell, or data decides.

    Of a fused loop that is the first cell in memory, while the box of all iterations may be most of the buffer.
    """
    if len(realizes) != 1:
        return None
    realize = realizes[0]
    path = view.block_path(block_key(realize.block))
    standing = {loop.loop_var for loop in still}
    values = _values_through(path[next(k for k, statement in enumerate(path) if statement is scope) + 1 :])
    parts = [part for part in (realize.block.init, realize.block.body) if part is not None]
    found = [access for part in parts for access in accesses(part, buffer)]
    if not found or any(access.loops for access in found):
        return None
    first = found[0].indices
    for other in found[1:]:
        if not all([structural_equal(a, b) for a, b in zip(first, other.indices, strict=True)]):
            return None
    starts: dict[Var, Expr] = {}
    for loop in loops_within(path, scope):
        if loop.loop_var not in standing:  # a loop may begin where one around it says, which begins somewhere, too
            starts[loop.loop_var] = substitute(substitute(loop.min, values), starts)
    cell = tuple([substitute(substitute(index, values), starts) for index in first])
    return None if any([reads_memory(index) for index in cell]) else cell


def _limit(facts: Analyzer, index: Expr, predicate: Expr, moving: Mapping[Var, Range]) -> Expr | None:
    """The end of an index where a guard `e < end` is about it: e and the index differ by what stands still."""
    if index.dtype.lanes != 1 or not uses_var(index, moving.__contains__):
        return None
    for condition in conjuncts(predicate):
        if isinstance(condition, LT) and condition.a.dtype is index.dtype:
            gap = facts.simplify(condition.a - index)
            if not uses_var(gap, moving.__contains__) and not uses_var(condition.b, moving.__contains__):
                return facts.simplify(condition.b - gap)
    return None


def _later(facts: Analyzer, a: Expr | None, b: Expr | None) -> Expr | None:
    if a is None or b is None:
        return None
    return a if facts.can_prove(a >= b) else b if facts.can_prove(b >= a) else None


def _values_through(path: Sequence[Stmt]) -> dict[Var, Expr]:
    """What the iteration variables of every block on a path stand for, and its lets, in terms of loops."""
    values: dict[Var, Expr] = {}
    for statement in path:
        if isinstance(statement, LetStmt):
            values[statement.var] = substitute(statement.value, values)
        elif isinstance(statement, BlockRealize):
            for axis, value in zip(statement.block.iter_vars, statement.iter_values, strict=True):
                values[axis.var] = substitute(value, values)
    return values


def _interval(facts: Analyzer, index: Expr, domains: Mapping[Var, Range]) -> IntervalSet | None:
    if index.dtype.lanes != 1 or reads_memory(index) or may_fail(index, facts) is not None:
        return None
    result = interval_of(facts.simplify(index), domains, facts)
    if result is None or any(uses_var(end, domains.__contains__) for end in result):
        return None
    return result


def _hull(facts: Analyzer, a: IntervalSet | None, b: IntervalSet | None) -> IntervalSet | None:
    if a is None or b is None:
        return None
    low = a.min_value if facts.can_prove(a.min_value <= b.min_value) else b.min_value
    high = a.max_value if facts.can_prove(a.max_value >= b.max_value) else b.max_value
    for other in (a, b):
        if not (facts.can_prove(low <= other.min_value) and facts.can_prove(high >= other.max_value)):
            return None
    return IntervalSet(low, high)


def _part(facts: Analyzer, part: IntervalSet | None, extent: Expr) -> tuple[Expr, Expr]:
    """Origin and size in one dimension: the whole of it when nothing smaller is sure."""
    whole = const(0, extent.dtype), extent
    if part is None:
        return whole
    low, size = facts.simplify(part.min_value), facts.simplify(part.max_value - part.min_value + 1)
    if isinstance(low, IntImm) and low.value == 0 and structural_equal(size, facts.simplify(extent)):
        return whole
    greatest = size.value if isinstance(size, IntImm) else facts.const_int_bound(size).max_value
    if not 1 <= greatest < FAR or (isinstance(extent, IntImm) and greatest >= extent.value):
        return whole
    if greatest >= ROOMY and not isinstance(size, IntImm):
        # That bound is the type's: of a size that may be any, a part is as large as it is said to be.
        unbounded = [facts.const_int_bound(var).max_value >= FAR for var in collect(size, Var)]
        if any(unbounded):
            return (low.astype(extent.dtype), size.astype(extent.dtype)) if all(unbounded) else whole
    return low.astype(extent.dtype), const(greatest, extent.dtype)


def region_in(block: Block, buffer: Buffer, writes: bool | None = None) -> BufferRegion | None:
    """The box of `buffer` that one run of a block reads, writes or (None) touches, in its own iteration variables."""
    facts = facts_inside(block)
    hull: list[IntervalSet | None] | None = None
    for access in [item for part in (block.init, block.body) if part is not None for item in accesses(part, buffer)]:
        if writes is not None and access.writes != writes:
            continue
        domains = {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in access.loops}
        box = [_interval(facts, index, domains) for index in access.indices]
        hull = box if hull is None else [_hull(facts, a, b) for a, b in zip(hull, box, strict=True)]
    if hull is None:
        return None
    if not is_leaf(block):
        hull = [None] * buffer.ndim  # accesses of blocks inside are in variables of theirs
    parts = [_part(facts, part, extent) for part, extent in zip(hull, buffer.shape, strict=True)]
    return BufferRegion(buffer, tuple([Range.from_min_extent(low, size) for low, size in parts]))


# --- a window's element in terms of a block ------------------------------------------------------------------------


def loops_from_axes(view: View, realize: BlockRealize) -> dict[Var, Expr]:
    """The loops around a block in terms of its own iteration variables, those that they determine."""
    block = realize.block
    loops = view.loops_of(block_key(realize.block))
    domains = {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in loops}
    axes: dict[Var, Expr] = {axis.var: value for axis, value in zip(block.iter_vars, realize.iter_values, strict=True)}
    # An axis that is a loop says so directly; this needs no map.
    known: dict[Var, Expr] = {}
    for axis, value in axes.items():
        if isinstance(value, Var):
            known.setdefault(value, axis)
    facts = facts_under(loops)
    simple = {axis: facts.simplify(value) for axis, value in axes.items()}
    inside = {axis: set(undefined_vars(value)) for axis, value in axes.items()}
    has_guard = not (isinstance(realize.predicate, IntImm) and realize.predicate.value)
    for predicate in (realize.predicate, TRUE) if has_guard else (TRUE,):
        for chosen in (list(axes), *[[axis] for axis in axes]):
            if all([var in known for axis in chosen for var in inside[axis] if var in domains]):
                continue  # a map would say nothing new
            reached = set().union(*[inside[axis] for axis in chosen])
            used = {var: domain for var, domain in domains.items() if var in reached}
            guard = _about(predicate, set(used))
            result = detect_iter_map([simple[axis] for axis in chosen], used, guard, "onto").indices
            if not result:
                continue
            try:
                inverse = inverse_affine_iter_map(result, list(chosen))
            except NotInvertible:
                continue
            for var, value in inverse.items():
                known.setdefault(var, value)
    for axis, value in axes.items():
        for var, digit in _digits(axis, value).items():
            known.setdefault(var, digit)
    known = {var: value for var, value in known.items() if _returns(facts, axes, var, value)}
    # Where an axis is moved along by loops that are told already, the others are digits of what it was before.
    sure = {var: value for var, value in known.items() if not uses_var(value, domains.__contains__)}
    for axis, value in axes.items():
        for var, digit in _digits(axis, value, sure).items():
            if var not in known and _returns(facts, axes, var, digit):
                known[var] = digit
    # A loop that begins where another one says is told from that one, too.
    plain = {var: value for var, value in known.items() if not uses_var(value, domains.__contains__)}
    told = {var: facts.simplify(substitute(value, plain)) for var, value in known.items() if var not in plain}
    return plain | {var: value for var, value in told.items() if not uses_var(value, domains.__contains__)}


def _digits(axis: Var, value: Expr, known: Mapping[Var, Expr] | None = None) -> dict[Var, Expr]:
    """The loops in `y * 196 + p * 16 + l` as digits of the axis, if each runs less far than the step of the one before.

    A map of loops to axes wants them to leave no gap; here 12 steps of 16 may be followed by one of 196. What is
    `known` in terms of axes is taken off first.
    """
    known = known or {}
    variables = [var for var in undefined_vars(value) if var not in known]
    linear = linear_coefficients(value, variables)
    if linear is None or len(variables) < (1 if known else 2):
        return {}
    linear = linear[0], substitute(linear[1], known)
    steps = [int(step.value) if isinstance(step, IntImm) else 0 for step in linear[0]]
    if min(steps) < 1:
        return {}
    result: dict[Var, Expr] = {}
    rest: Expr = axis - linear[1]
    for step, var in sorted(zip(steps, variables, strict=True), key=lambda pair: -pair[0]):
        result[var] = rest // step
        rest = rest % step
    return result


def _returns(facts: Analyzer, axes: Mapping[Var, Expr], var: Var, value: Expr) -> bool:
    """Whether `value`, at the values of the axes, is the loop variable again."""
    return facts.can_prove_equal(substitute(value, axes), var)


def _about(predicate: Expr, variables: set[Var]) -> Expr:
    """Those conjuncts of a predicate that are about the variables alone."""
    kept = [item for item in conjuncts(predicate) if not uses_var(item, lambda used: used not in variables)]
    return logical_and(TRUE, *kept)


def inside_shape(window: Window, offsets: Sequence[Expr], facts: Analyzer) -> Iterator[Expr]:
    """The conditions under which an element of the window is one of the buffer, as far as they need be asked."""
    for low, offset, extent, limit in zip(window.origin, offsets, window.buffer.shape, window.limits, strict=True):
        index = low + offset
        ends = [extent]
        if limit is not None and not facts.can_prove(extent <= limit):
            ends = [limit] if facts.can_prove(limit <= extent) else [limit, extent]
        for condition in (index >= const(0, index.dtype), *[index < end for end in ends]):
            if not facts.can_prove(condition):
                yield facts.simplify(condition)
