"""canonicalize_loops: every loop counts from 0, and loops of one iteration are gone.

    for i in range(2, 10):              →    for i in range(8):
        for j in range(1):                       B[i + 2, 0] = A[i + 2]
            B[i, j] = A[i]

A loop's bounds are evaluated once. Bounds that read memory become lets before the loop: whatever a later pass makes of
them, they are not read again after the loop's body has changed what they read.

Needs: nothing.  Leaves: `min` is the literal 0; loop variable and extent have one type; `extent` reads no memory; no
thread-bound loop and no launch of threads (one of extent 1 is an ordinary unit loop; a longer one is an error on a CPU;
virtual threads become a serial loop that carries a mark for `inject_virtual_thread`). Unit loops with annotations stay:
somebody put the annotation there for a later pass.
"""

from __future__ import annotations

from typing import Final

from loopwright.analysis.thread_axes import LAUNCHES, is_virtual_tag
from loopwright.arith.index_arithmetic import IndexArithmetic, in_64_bits
from loopwright.ir import (
    AttrStmt,
    Expr,
    For,
    ForKind,
    IntImm,
    IterVar,
    LetStmt,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
    cast,
    const,
    deep,
)
from loopwright.ir.pass_context import PassContext
from loopwright.ir.passes import function_pass
from loopwright.runtime.dtype import INT32, INT64, DataType
from loopwright.transform.errors import ThreadLoopOnCpu
from loopwright.transform.parts.flat_index import add_index
from loopwright.transform.parts.folding import FoldingRewriter
from loopwright.transform.parts.purity import has_data
from loopwright.transform.parts.statements import flat_seq

VIRTUAL_THREAD: Final = "virtual_thread"


class _CanonicalizeLoops(FoldingRewriter):
    def __init__(self, keep_unit_loops: bool, keep_threads: bool = False) -> None:
        super().__init__()
        self.keep_unit_loops, self.keep_threads = keep_unit_loops, keep_threads
        self.numbers = IndexArithmetic()

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        return flat_seq(node, self.visit)

    def visit_For(self, loop: For) -> Stmt:
        low, low_once = self._once(f"{loop.loop_var.name}_min", self.visit(loop.min))
        extent, extent_once = self._once(f"{loop.loop_var.name}_extent", self.visit(loop.extent))
        whole = self._from_zero(loop, low, extent)
        for var, value in (*extent_once, *low_once):
            whole = LetStmt(var, value, whole)
        return whole

    def _once(self, name: str, bound: Expr) -> tuple[Expr, list[tuple[Var, Expr]]]:
        """A bound of a loop that reads no memory, and the let that it needs for that."""
        if not has_data(bound):
            return bound, []
        var = Var(name, bound.dtype)
        return var, [(var, bound)]

    def _from_zero(self, loop: For, low: Expr, extent: Expr) -> Stmt:
        is_unit = isinstance(extent, IntImm) and extent.value == 1
        thread = loop.thread_binding
        is_kept = self.keep_threads and thread is not None and not is_virtual_tag(thread.thread_tag)
        if loop.kind is ForKind.THREAD_BINDING and not is_unit and not is_kept:
            if thread is None or not is_virtual_tag(thread.thread_tag):
                raise ThreadLoopOnCpu(loop)
            loop = loop.with_(annotations={**loop.annotations, VIRTUAL_THREAD: True})
        old = loop.loop_var
        dtype = _widest(old.dtype, low.dtype, extent.dtype)
        starts_at_zero = isinstance(low, IntImm) and low.value == 0
        if is_unit and not loop.annotations and not self.keep_unit_loops and not is_kept:
            return self._with_value(old, cast(low, old.dtype), loop.body)
        var = old if old.dtype is dtype else type(old)(old.name, dtype)
        if is_kept:
            kind, binding = loop.kind, thread
        else:
            kind, binding = ForKind.SERIAL if loop.kind is ForKind.THREAD_BINDING else loop.kind, None
        if var is old and starts_at_zero:
            body = self.visit(loop.body)
        else:
            index = var if starts_at_zero else add_index(var, self._as(low, dtype))
            body = self._with_value(old, cast(index, old.dtype), loop.body)
        zero = low if starts_at_zero and low.dtype is dtype else const(0, dtype)
        count = self._as(extent, dtype)
        return loop.with_(loop_var=var, min=zero, extent=count, kind=kind, body=body, thread_binding=binding)

    def _as(self, bound: Expr, dtype: DataType) -> Expr:
        """A bound in the type that the loop counts in; index arithmetic keeps its exact value in a wider one."""
        is_widened = dtype is INT64 and bound.dtype is INT32 and self.numbers.is_index(bound)
        return in_64_bits(bound) if is_widened else cast(bound, dtype)

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        self.numbers.let(node.var, node.value)
        return self.rebuild(node)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        thread = node.node
        if not isinstance(thread, IterVar) or node.attr_key not in LAUNCHES:
            return self.rebuild(node)
        if self.keep_threads and node.attr_key == "thread_extent" and not is_virtual_tag(thread.thread_tag):
            return self.rebuild(node)
        extent = self.visit(node.value)
        if isinstance(extent, IntImm) and extent.value == 1:
            return self._with_value(thread.var, const(0, thread.var.dtype), node.body)
        if node.attr_key == "thread_extent":
            raise ThreadLoopOnCpu(node)
        # Virtual threads run one after the other, until a later pass takes their statements in turn.
        zero, count = const(0, thread.var.dtype), cast(extent, thread.var.dtype)
        marked = {VIRTUAL_THREAD: True}
        return self.visit_For(For(thread.var, zero, count, ForKind.SERIAL, node.body, annotations=marked))

    def _with_value(self, var: Var, value: Expr, body: Stmt) -> Stmt:
        outer = self.values.get(var)
        self.values[var] = value
        new: Stmt = self.visit(body)
        if outer is None:
            del self.values[var]
        else:
            self.values[var] = outer
        return new


def _widest(*dtypes: DataType) -> DataType:
    widest = dtypes[0]
    for dtype in dtypes[1:]:
        if dtype.bits > widest.bits:
            widest = dtype
    return widest


@function_pass
@deep
def canonicalize_loops(func: PrimFunc) -> PrimFunc:
    """Every loop counts from 0, and loops of one iteration are gone."""
    keep = PassContext.current().setting("tir.debug_keep_trivial_loop")
    return func.with_(body=_CanonicalizeLoops(keep).visit(func.body))


@function_pass
@deep
def canonicalize_loops_but_threads(func: PrimFunc) -> PrimFunc:
    """As `canonicalize_loops`, but for no particular machine: loops bound to blocks and threads stay bound."""
    keep = PassContext.current().setting("tir.debug_keep_trivial_loop")
    return func.with_(body=_CanonicalizeLoops(keep, keep_threads=True).visit(func.body))
