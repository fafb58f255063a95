"""trim_grid: blocks that no thread of which stores anything are not launched.

    y = T.launch_thread("blockIdx.y", 32768)               y = T.launch_thread("blockIdx.y", min(32768, (n + 63) // 64))
    …                                                      …
    if z * 2097152 + y * 64 + t < n:               →       if z * 2097152 + y * 64 + t < n:
        B[…] = …                                               B[…] = …

A dimension of the grid that is too large for its axis is cut into two, of which the inner one is as large as a grid can
be. Blocks without work are quick, but there are tens of thousands of them where the dimension is small. The condition
stays: of the last ones along z, it lets some through.

Needs: `launch_threads`, flat buffers, conditions around what threads store.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from loopwright.analysis.effects import is_pure_call
from loopwright.analysis.thread_axes import axis_of, tag_of
from loopwright.arith import Analyzer
from loopwright.ir import (
    LE,
    LT,
    Add,
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferLoad,
    BufferStore,
    Call,
    Cast,
    Expr,
    FloorDiv,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    LetStmt,
    Max,
    Min,
    Mul,
    PrimFunc,
    Range,
    Stmt,
    Var,
    Visitor,
    cast,
    collect,
    conjuncts,
    const,
    deep,
    structural_equal,
    uses_var,
)
from loopwright.ir.passes import function_pass
from loopwright.runtime.dtype import INT64
from loopwright.transform.parts.statements import StmtRewriter

_BLOCKS: Final = "blockIdx."
_HARMLESS: Final = "tir.tvm_storage_sync"


class _TrimGrid(StmtRewriter):
    def __init__(self) -> None:
        self.around: list[Var] = []  # the axes of blocks and threads

    def visit_AttrStmt(self, launch: AttrStmt) -> Stmt:
        if not tag_of(launch):
            return self.rebuild(launch)
        self.around.append(axis_of(launch).var)
        launch = self.rebuild(launch)
        self.around.pop()
        extent = launch.value
        if not tag_of(launch).startswith(_BLOCKS) or not isinstance(extent, IntImm) or extent.value < 2:
            return launch
        bounds = _Bounds(axis_of(launch).var, self.around)
        bounds.visit(launch.body)
        needed = bounds.needed()
        if needed is None:
            return launch
        least = Analyzer().simplify(Min(const(extent.value, INT64), needed))
        is_all = isinstance(least, IntImm) and least.value == extent.value
        if is_all:
            return launch
        count, axis = cast(least, extent.dtype), launch.node
        assert isinstance(axis, IterVar)
        return launch.with_(node=axis.with_(dom=Range(const(0, extent.dtype), count)), value=count)


class _Bound(NamedTuple):
    """Where a store is done only for `step * axis + offset < limit`, whatever else is."""

    step: int
    offset: int
    limit: Expr

    def blocks(self) -> Expr:
        """How many blocks along the axis can do it."""
        above = cast(self.limit, INT64) + const(self.step - 1 - self.offset, INT64)
        return Max(FloorDiv(above, const(self.step, INT64)), const(0, INT64))


class _Bounds(Visitor):
    """What conditions say about an axis, for each store that is seen outside of the kernel."""

    def __init__(self, axis: Var, around: Collection[Var]) -> None:
        self.axis = axis
        self.known: list[Expr] = []  # the conditions around
        self.inner: set[Var] = {axis, *around}  # the variables that the kernel defines
        self.natural: set[Var] = {axis, *around}  # those of them that are never negative
        self.own: set[Var] = set()  # memory of the kernel
        self.bounds: list[_Bound | None] = []

    def needed(self) -> Expr | None:
        """The extent with which each store is done as before; None where that is not known."""
        result: dict[_Bound, None] = {}
        for bound in self.bounds:
            if bound is None:
                return None
            for other in list(result):
                if other.step == bound.step and structural_equal(other.limit, bound.limit):
                    bound = bound._replace(offset=min(bound.offset, other.offset))
                    del result[other]
            result[bound] = None
        counts = [bound.blocks() for bound in result]
        total = counts[0] if counts else None
        for count in counts[1:]:
            assert total is not None
            total = Max(total, count)
        return total

    def visit_AttrStmt(self, node: AttrStmt) -> None:
        if tag_of(node):
            self.inner.add(axis_of(node).var)
            self.natural.add(axis_of(node).var)
        self.visit_children(node)

    def visit_For(self, loop: For) -> None:
        self.inner.add(loop.loop_var)
        if isinstance(loop.min, IntImm) and loop.min.value >= 0:
            self.natural.add(loop.loop_var)
        self.visit_children(loop)

    def visit_LetStmt(self, let: LetStmt) -> None:
        self.inner.add(let.var)
        self.visit_children(let)

    def visit_Allocate(self, node: Allocate) -> None:
        self.own.add(node.buffer_var)
        self.visit_children(node)

    def visit_IfThenElse(self, node: IfThenElse) -> None:
        self.visit(node.condition)
        parts = conjuncts(node.condition)
        self.known += parts
        self.visit(node.then_case)
        del self.known[len(self.known) - len(parts) :]
        if node.else_case is not None:
            self.visit(node.else_case)

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.visit_children(store)
        if store.buffer.data not in self.own:
            self.bounds.append(self._bound())

    def visit_AssertStmt(self, node: AssertStmt) -> None:
        self.bounds.append(None)  # which fails for blocks that store nothing, too

    def visit_Call(self, call: Call) -> None:
        if not is_pure_call(call) and call.op.name != _HARMLESS:
            self.bounds.append(None)
        self.visit_children(call)

    def _bound(self) -> _Bound | None:
        for condition in self.known:
            if not isinstance(condition, (LT, LE)) or not condition.a.dtype.is_int:
                continue
            terms: dict[Var, int] = {}
            offset = _add_terms(condition.a, 1, terms)
            step = terms.get(self.axis, 0)
            if offset is None or step <= 0 or offset < 0 or uses_var(condition.b, self.inner.__contains__):
                continue
            if any([var not in self.natural or factor < 0 for var, factor in terms.items()]):
                continue
            if collect(condition.b, Call, BufferLoad):
                continue
            return _Bound(step, offset - isinstance(condition, LE), condition.b)
        return None


def _add_terms(expr: Expr, factor: int, terms: dict[Var, int]) -> int | None:
    """Add `factor` times a sum of variables and numbers to `terms`; what is constant, or None where it is no sum."""
    if isinstance(expr, IntImm):
        return expr.value * factor
    if isinstance(expr, Var):
        terms[expr] = terms.get(expr, 0) + factor
        return 0
    if isinstance(expr, Cast) and expr.value.dtype.is_int and expr.dtype.bits >= expr.value.dtype.bits:
        return _add_terms(expr.value, factor, terms)
    if isinstance(expr, Mul) and isinstance(expr.b, IntImm):
        return _add_terms(expr.a, factor * expr.b.value, terms)
    if isinstance(expr, Add):
        first, second = _add_terms(expr.a, factor, terms), _add_terms(expr.b, factor, terms)
        return None if first is None or second is None else first + second
    return None


@function_pass
@deep
def trim_grid(func: PrimFunc) -> PrimFunc:
    """Blocks without work are not launched."""
    return func.with_(body=_TrimGrid().visit(func.body))
