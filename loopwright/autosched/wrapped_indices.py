"""wrapped_indices: a cell whose index wraps around a few times is a choice of cells, before anything is scheduled.

    B[i] = A[(i + 3) % 100]      →      B[i] = A[i + 3] if i < 97 else A[i - 97]
    B[i] = A[max(i - 3, 0)]      →      B[i] = A[0] if i < 3 else A[i - 3]               where cells are only moved
    B[i] = A[3 - i if i < 3 else i - 3]     →     B[i] = A[3 - i] if i < 3 else A[i - 3]            the same

The loads that are chosen from walk along memory, and loops are cut where the choice changes. A row that is repeated
whole (`A[i % 100]` for 700 values of i) stays as it is: its axis is split instead (`rules/repeated_rows.py`). The
values are the same, bit for bit.
"""

from __future__ import annotations

from typing import Final

from loopwright.arith import Analyzer
from loopwright.arith.affine_reader import Affine
from loopwright.autosched.facts import const, loads_of
from loopwright.ir import (
    GE,
    GT,
    LE,
    LT,
    Block,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Call,
    Expr,
    FloorMod,
    GlobalVar,
    IRModule,
    Max,
    Min,
    Node,
    PrimFunc,
    Range,
    Rewriter,
    Var,
    any_node,
    collect,
    post_order_visit,
)
from loopwright.ir import const as number
from loopwright.ir.intrinsics import if_then_else

MOST_STRETCHES: Final = 4  # between which an index wraps around
MOST_LIMITS: Final = 4  # of one index: each may double the cells that are chosen from


def wrapped_as_choices(program: IRModule | PrimFunc) -> IRModule | PrimFunc:
    """The program with wrapped indices as choices; the same object where there are none."""
    if isinstance(program, PrimFunc):
        return _in_function(program)
    if not isinstance(program, IRModule):
        return program  # Schedule says what it is
    functions: dict[str | GlobalVar, PrimFunc] = {
        name: _in_function(func) if isinstance(func, PrimFunc) else func for name, func in program.functions_items()
    }
    if all(functions[name] is func for name, func in program.functions_items()):
        return program
    return IRModule(functions, attrs=program.attrs)


def _in_function(func: PrimFunc) -> PrimFunc:
    if not any_node(func.body, lambda node: isinstance(node, (FloorMod, Max, Min)) or _is_choice(node)):
        return func
    return func.with_(body=_Blocks().visit(func.body))


class _Blocks(Rewriter):
    """Finds the innermost blocks without reductions."""

    def visit_Expr(self, expr: Expr) -> Expr:
        return expr

    def visit_Block(self, block: Block) -> Block:
        block = self.rebuild(block)
        has_blocks = any_node(block.body, lambda node: isinstance(node, Block))
        if block.init is not None or has_blocks or block.match_buffers:
            return block
        choose = _Choose(block)
        body = choose.visit(block.body)
        if body is block.body:
            return block
        reads = tuple([_widened(region) if region.buffer in choose.changed else region for region in block.reads])
        return block.with_(body=body, reads=reads)


class _Choose(Rewriter):
    def __init__(self, block: Block) -> None:
        self.affine = Affine()
        self.extents: dict[Var, int | None] = {}
        for axis in block.iter_vars:
            self.affine.own(axis.var)
            starts = axis.dom is not None and const(axis.dom.min) == 0
            self.extents[axis.var] = const(axis.dom.extent) if axis.dom is not None and starts else None
        self.changed: set[object] = set()
        self.is_moved = isinstance(block.body, BufferStore) and isinstance(block.body.value, BufferLoad)

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        load = self.rebuild(load)
        for position, index in enumerate(load.indices):
            found = self._wrapped(index)
            if found is None:
                continue
            remainder, first, last = found
            self.changed.add(load.buffer)
            value: Expr | None = None
            for quotient in range(last, first - 1, -1):
                step = number(quotient * (const(remainder.b) or 0), remainder.a.dtype)
                at = _Replace(remainder, remainder.a - step if quotient else remainder.a).visit(index)
                own = load.with_(indices=(*load.indices[:position], at, *load.indices[position + 1 :]))
                following = number((quotient + 1) * (const(remainder.b) or 0), remainder.a.dtype)
                value = own if value is None else if_then_else(remainder.a < following, own, value)
            assert value is not None
            return value
        return self._limited(load) if self.is_moved and load.indices else load

    def _limited(self, load: BufferLoad) -> Expr:
        """A cell that a limit keeps inside along the last axis: the one at the limit, or the one that was asked for.

        So it is with an index that is itself a choice.
        """
        found: list[tuple[Expr, Expr, Expr, Expr]] = []  # what is replaced, the condition, by what

        def look(node: Node) -> None:
            if found:
                return
            if isinstance(node, (Max, Min)) and self._is_axis(node.a) and const(node.b) is not None:
                below, above = (node.b, node.a) if isinstance(node, Max) else (node.a, node.b)
                found.append((node, node.a < node.b, below, above))
            elif isinstance(node, Call) and _is_choice(node) and self._is_limit(node.args[0]):
                condition, chosen, other = node.args
                found.append((node, condition, chosen, other))

        last = load.indices[-1]
        if loads_of(last):
            return load
        post_order_visit(last, look)
        choices = [call for call in collect(last, Call) if _is_choice(call)]
        if not found or len(collect(last, Max, Min)) + len(choices) > MOST_LIMITS:
            return load
        (node, condition, *values), analyzer = found[0], Analyzer()
        self.changed.add(load.buffer)
        cells = []
        for chosen in values:
            index = analyzer.simplify(_Replace(node, chosen).visit(last))
            cells.append(self._limited(load.with_(indices=(*load.indices[:-1], index))))
        return if_then_else(condition, *cells)

    def _is_axis(self, index: Expr) -> bool:
        """Whether an index moves along one axis of the block."""
        form = self.affine.form(index)
        return form is not None and not form.parts() and len(form.terms) == 1

    def _is_limit(self, condition: Expr) -> bool:
        """Whether a condition holds on one side of a place of an axis."""
        if not isinstance(condition, (LT, LE, GT, GE)):
            return False
        a, b = condition.a, condition.b
        return (self._is_axis(a) and const(b) is not None) or (self._is_axis(b) and const(a) is not None)

    def _wrapped(self, index: Expr) -> tuple[FloorMod, int, int] | None:
        """The first remainder in an index that wraps around a few times, with its least and greatest quotient."""
        found: list[tuple[FloorMod, int, int]] = []

        def look(node: Node) -> None:
            if isinstance(node, FloorMod) and not found:
                quotients = self._quotients(node)
                if quotients is not None:
                    found.append((node, *quotients))

        if loads_of(index):
            return None
        post_order_visit(index, look)
        return found[0] if found else None

    def _quotients(self, node: FloorMod) -> tuple[int, int] | None:
        form, by = self.affine.form(node.a), const(node.b)
        if form is None or by is None or by <= 1 or form.parts() or len(form.terms) != 1:
            return None
        ((var, step),) = form.terms.items()
        extent = self.extents.get(var) if isinstance(var, Var) else None
        if not extent or (step == 1 and form.const % by == 0 and extent % by == 0):
            return None
        ends = sorted([form.const // by, (form.const + step * (extent - 1)) // by])
        return (ends[0], ends[1]) if 1 < ends[1] - ends[0] + 1 <= MOST_STRETCHES else None


class _Replace(Rewriter):
    def __init__(self, old: Expr, new: Expr) -> None:
        self.old, self.new = old, new

    def _one(self, expr: FloorMod | Max | Min | Call) -> Expr:
        return self.new if expr is self.old else self.rebuild(expr)

    visit_FloorMod = visit_Max = visit_Min = visit_Call = _one


def _is_choice(node: Node) -> bool:
    return isinstance(node, Call) and node.op.name.removeprefix("tir.") == "if_then_else"


def _widened(region: BufferRegion) -> BufferRegion:
    """All of the buffer: a declared region may be more than what is read."""
    whole = [Range.from_min_extent(number(0, size.dtype), size) for size in region.buffer.shape]
    return region.with_(region=tuple(whole))
