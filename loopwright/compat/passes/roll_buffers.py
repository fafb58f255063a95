"""roll_buffers: tiles that overlap keep what they share in a circular buffer, and compute only what is new.

    for o in range(2):                                 T.realize(t[0:6])
        T.realize(t[o*4 : o*4+6])                      for o in range(2):
        T.attr(t, "rolling_buffer_scope", True)   →        for i in range(6):
        for i in range(6):                                     if T.likely(o < 1 or i >= 2):
            t[i + o*4] = f(i + o*4)                                t[(i + o*4) % 6] = f(i + o*4)
        ... t[j + o*4] ...                                 ... t[(j + o*4) % 6] ...

The innermost loop that the tile moves with is the one that rolls. The mark is a wish, not a promise: where two
steps cannot be shown to write the same value into a cell that they share, the buffer stays one tile, and only the mark
goes. `schedule/primitives/memory/rolling_buffer.py` is what our own schedules do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from loopwright.arith import Analyzer
from loopwright.arith.loop_bounds import detect_linear_equation
from loopwright.compat.passes.device_passes import DeviceWorkLeft
from loopwright.compat.passes.named_pass import named_pass
from loopwright.ir import (
    AttrStmt,
    Block,
    Buffer,
    BufferLoad,
    BufferRealize,
    BufferStore,
    Call,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    LetStmt,
    Node,
    PrimFunc,
    Range,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    any_node,
    collect,
    const,
    logical_or,
    substitute,
    uses_var,
)
from loopwright.ir.intrinsics import likely

_MARK = "rolling_buffer_scope"


class _Roll(NamedTuple):
    """A buffer whose tile moves along `axis` with `loop`, and shares `overlap` of its `extent` with the tile before."""

    loop: For
    axis: int
    extent: int
    overlap: int
    lower: Expr


class _Site(NamedTuple):
    """A store inside a loop, the loops around it there, and all other expressions that decide whether it runs."""

    store: BufferStore
    loops: tuple[For, ...]
    decided_by: tuple[Expr, ...]


def _left(what: str, at: Node) -> DeviceWorkLeft:
    return DeviceWorkLeft("InjectRollingBuffer", what, at, is_built=True)


@named_pass("InjectRollingBuffer")
def roll_buffers(func: PrimFunc) -> PrimFunc:
    """Marked buffers become circular."""
    marks = [node for node in collect(func.body, AttrStmt) if node.attr_key == _MARK]
    holders: list[Block | For] = [*collect(func.body, Block), *collect(func.body, For)]
    for holder in holders:
        if holder.annotations.get(_MARK):
            raise _left("a mark that is no attribute around statements", holder)
    realized = {node.buffer for node in collect(func.body, BufferRealize)}
    for mark in marks:
        if mark.node not in realized:
            raise _left("a rolling buffer that no T.realize stores", mark)
    if not marks:
        return func
    return func.with_(body=_Roller({mark.node for mark in marks}).visit(func.body))


class _Roller(Rewriter):
    def __init__(self, marked: set[Any]) -> None:
        self.marked = marked
        self.around: list[Stmt] = []
        self.rolls: dict[Buffer, _Roll] = {}
        self.stored: dict[For, list[BufferRealize]] = {}  # what is to be realized around a loop

    def rebuild(self, node: Any) -> Any:
        if not isinstance(node, Stmt):
            return node.rebuild(self.visit)
        self.around.append(node)
        result = node.rebuild(self.visit)
        self.around.pop()
        return result

    def visit_For(self, loop: For) -> Stmt:
        result: Stmt = self.rebuild(loop)
        for realize in reversed(self.stored.pop(loop, [])):
            result = realize.with_(body=result)
        return result

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        return self.visit(attr.body) if attr.attr_key == _MARK else self.rebuild(attr)

    def visit_BufferRealize(self, realize: BufferRealize) -> Stmt:
        roll = _roll_of(realize, self.around) if realize.buffer in self.marked else None
        if roll is None:
            return self.rebuild(realize)
        self.rolls[realize.buffer] = roll
        bounds = list(realize.bounds)
        bounds[roll.axis] = Range(const(0, roll.lower.dtype), const(roll.extent, roll.lower.dtype))
        self.stored.setdefault(roll.loop, []).append(realize.with_(bounds=tuple(bounds)))
        body: Stmt = self.visit(realize.body)
        del self.rolls[realize.buffer]
        return body

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        result: BufferLoad = self.rebuild(load)
        roll = self.rolls.get(load.buffer)
        return result if roll is None else result.with_(indices=_rolled(result.indices, roll))

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        result: BufferStore = self.rebuild(store)
        roll = self.rolls.get(store.buffer)
        if roll is None:
            return result
        first = roll.loop.loop_var < Analyzer().simplify(roll.loop.min + 1)
        place = Analyzer().simplify(store.indices[roll.axis] - roll.lower)
        condition = likely(logical_or(first, place >= roll.overlap))
        return IfThenElse(condition, result.with_(indices=_rolled(result.indices, roll)))


def _rolled(indices: tuple[Expr, ...], roll: _Roll) -> tuple[Expr, ...]:
    index = indices[roll.axis] % const(roll.extent, indices[roll.axis].dtype)
    return (*indices[: roll.axis], index, *indices[roll.axis + 1 :])


# --- what may roll ------------------------------------------------------------------------------------------------


def _roll_of(realize: BufferRealize, around: list[Stmt]) -> _Roll | None:
    """How the realized buffer rolls; None where nothing is shared, or where skipping it cannot be shown to be right."""
    found = _moving_loop(realize, around)
    if found is None:
        return None
    loop, between = found
    axes = [k for k, bound in enumerate(realize.bounds) if _uses(bound.min, loop.loop_var)]
    if len(axes) != 1 or loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
        return None
    bound = realize.bounds[axes[0]]
    linear = detect_linear_equation(bound.min, [loop.loop_var])
    step = linear[0] if linear else None
    if not (isinstance(step, IntImm) and isinstance(bound.extent, IntImm) and 0 < step.value < bound.extent.value):
        return None
    roll = _Roll(loop, axes[0], bound.extent.value, bound.extent.value - step.value, bound.min)
    is_plain = all([isinstance(stmt, (For, AttrStmt, BufferRealize, SeqStmt, DeclBuffer)) for stmt in between])
    steady = not any([_uses(part, loop.loop_var) for stmt in between if isinstance(stmt, For) for part in _span(stmt)])
    return roll if is_plain and steady and _repeats(realize, roll) else None


def _moving_loop(realize: BufferRealize, around: list[Stmt]) -> tuple[For, list[Stmt]] | None:
    """The innermost loop whose variable the bounds use, and what lies between; None where a let decides them."""
    parts = [part for bound in realize.bounds for part in (bound.min, bound.extent)]
    for depth in reversed(range(len(around))):
        stmt = around[depth]
        var = stmt.loop_var if isinstance(stmt, For) else stmt.var if isinstance(stmt, LetStmt) else None
        if var is not None and any([_uses(part, var) for part in parts]):
            return (stmt, around[depth + 1 :]) if isinstance(stmt, For) else None
    return None


def _repeats(realize: BufferRealize, roll: _Roll) -> bool:
    """Whether a step writes into the cells shared with the step before what that step wrote there."""
    sites = _sites(roll.loop.body, (), ())
    if sites is None or _is_aliased(roll.loop.body, realize.buffer):
        return False
    local = {node.buffer for node in collect(roll.loop.body, BufferRealize)}
    written = {site.store.buffer for site in sites}
    asked, waiting = {realize.buffer}, [realize.buffer]
    while waiting:
        buffer = waiting.pop()
        for site in [site for site in sites if site.store.buffer is buffer]:
            if not _is_by_index(site, roll.loop.loop_var):
                return False
            if buffer is realize.buffer and not _covers(site, roll):
                return False
            for read in [load.buffer for part in _parts(site) for load in collect(part, BufferLoad)]:
                if read in written and read not in local:
                    return False  # one step may read what another wrote
                if read in written and read not in asked:
                    asked.add(read)
                    waiting.append(read)
    return True


def _sites(stmt: Stmt, loops: tuple[For, ...], decided_by: tuple[Expr, ...]) -> list[_Site] | None:
    """The stores in `stmt`; None where it holds statements that this does not follow."""
    if isinstance(stmt, BufferStore):
        return [_Site(stmt, loops, decided_by)]
    if isinstance(stmt, Evaluate):
        return None if collect(stmt, Call) else []
    if isinstance(stmt, For):
        return _sites(stmt.body, (*loops, stmt), (*decided_by, *_span(stmt)))
    if isinstance(stmt, IfThenElse):
        inner, cases = (*decided_by, stmt.condition), [stmt.then_case, stmt.else_case]
        found = [_sites(case, loops, inner) for case in cases if case is not None]
    elif isinstance(stmt, SeqStmt):
        found = [_sites(part, loops, decided_by) for part in stmt.seq]
    elif isinstance(stmt, (AttrStmt, BufferRealize)):
        return _sites(stmt.body, loops, decided_by)
    else:
        return None
    return None if any([part is None for part in found]) else [site for part in found if part for site in part]


def _is_by_index(site: _Site, var: Var) -> bool:
    """Whether the store uses `var` for its indices alone: what it writes into a cell depends on the cell."""
    values: dict[Var, object] = {}
    moving = [index for index in site.store.indices if _uses(index, var)]
    for index in moving:
        for loop in site.loops:
            linear = detect_linear_equation(index, [loop.loop_var])
            if linear and isinstance(linear[0], IntImm) and linear[0].value == 1 and loop.loop_var not in values:
                values[loop.loop_var] = Var("cell", index.dtype) - linear[1]
                break
        else:
            return False
    # For one cell these differ from step to step.
    shifted = {loop.loop_var for loop in site.loops if any([_uses(index, loop.loop_var) for index in moving])} | {var}
    analyzer = Analyzer()
    parts = [analyzer.simplify(substitute(part, values)) for part in _parts(site)]
    return not any([uses_var(part, shifted.__contains__) for part in parts])


def _covers(site: _Site, roll: _Roll) -> bool:
    """Whether the loops around the store write the whole tile: cells that a step skips, the one before has written."""
    place = Analyzer().simplify(site.store.indices[roll.axis] - roll.lower)
    spans: list[tuple[int, int]] = []
    loops = [loop for loop in site.loops if _uses(place, loop.loop_var)]
    linear = detect_linear_equation(place, [loop.loop_var for loop in loops])
    if not linear or not isinstance(linear[-1], IntImm) or linear[-1].value != 0:
        return False
    for loop, factor in zip(loops, linear, strict=False):
        if not (isinstance(factor, IntImm) and isinstance(loop.min, IntImm) and isinstance(loop.extent, IntImm)):
            return False
        if loop.min.value != 0:
            return False
        spans.append((factor.value, loop.extent.value))
    size = 1
    for scale, extent in sorted(spans):
        if scale != size:
            return False
        size *= extent
    return size >= roll.extent


def _parts(site: _Site) -> tuple[Expr, ...]:
    return (site.store.value, *site.decided_by)


def _span(loop: For) -> tuple[Expr, Expr]:
    return loop.min, loop.extent


def _is_aliased(body: Stmt, buffer: Buffer) -> bool:
    """Whether the memory of the buffer is reached in another way than by its elements."""

    def reaches(node: Node) -> bool:
        if isinstance(node, Call):
            return node.op.name == "tir.address_of" or any([arg is buffer.data for arg in node.args])
        return isinstance(node, DeclBuffer) and node.buffer.data is buffer.data

    return any_node(body, reaches)


def _uses(expr: Expr, var: Var) -> bool:
    return uses_var(expr, lambda other: other is var)
