"""force_narrow_index_to_int32: sizes, loops and indices of 64 bits become 32 bits wide, in the whole function.

    def f(A: T.Buffer((T.int64(8),))):               →    def f(A: T.Buffer((8,))):
        for i in range(T.int64(8)):                           for i in range(8):
            with T.block("B"):                                    with T.block("B"):
                vi = T.axis.spatial(T.int64(8), i)                    vi = T.axis.spatial(8, i)
                A[vi] = T.float32(0)                                  A[vi] = T.float32(0)

Unlike `narrow_data_type` it asks no proof: the caller knows that all indices fit (a number that plainly does not is an
error), and that the sizes of symbolic shapes will. Data keeps its type: elements of buffers, scalar parameters, and
what is computed from them.

Needs: nothing.  Leaves: no 64-bit loop, block axis, shape, or index.
"""

from __future__ import annotations

from loopwright.ir import (
    BinaryExpr,
    Block,
    BlockRealize,
    Broadcast,
    Buffer,
    BufferRegion,
    Cast,
    CompareExpr,
    Expr,
    For,
    IntImm,
    IterVar,
    Let,
    LetStmt,
    Prefetch,
    PrimFunc,
    Ramp,
    Range,
    Select,
    Stmt,
    Var,
    cast,
    const,
    deep,
)
from loopwright.ir.node import rewrite_tuple
from loopwright.ir.passes import function_pass
from loopwright.runtime.dtype import INT32, INT64
from loopwright.transform.errors import IndexTooWide
from loopwright.transform.parts.index_rewriter import IndexRewriter
from loopwright.transform.parts.purity import has_data


class _ForceNarrow(IndexRewriter):
    def __init__(self, kept: set[Var]) -> None:
        super().__init__()
        self.kept = kept  # scalar parameters: their type is the caller's business

    def successor(self, var: Var) -> Var:
        if var.dtype is not INT64 or var in self.kept:
            return var
        if var not in self.successors:
            self.successors[var] = type(var)(var.name, INT32)
        return self.successors[var]

    # -- where 64 bits are data

    def visit_CompareExpr(self, expr: CompareExpr) -> Expr:
        if expr.a.dtype is INT64 and not has_data(expr):
            return expr.with_(a=self.index(expr.a), b=self.index(expr.b))
        return self.rebuild(expr)

    # -- where they are indices

    def index(self, expr: Expr) -> Expr:
        """`expr` in 32 bits."""
        element = expr.dtype.element
        if element != "int64":
            visited: Expr = self.visit(expr)
            return visited
        if isinstance(expr, IntImm):
            if not -(1 << 31) <= expr.value < 1 << 31:
                raise IndexTooWide(expr.value)
            return const(expr.value, INT32)
        if isinstance(expr, Var):
            return cast(self.successor(expr), INT32)
        if isinstance(expr, BinaryExpr) and not isinstance(expr, CompareExpr):
            return type(expr)._make(self.index(expr.a), self.index(expr.b), span=expr.span)
        if isinstance(expr, Ramp):
            return Ramp(self.index(expr.base), self.index(expr.stride), expr.lanes)
        if isinstance(expr, Broadcast):
            return Broadcast(self.index(expr.value), expr.lanes)
        if isinstance(expr, Select):
            one, other = self.index(expr.true_value), self.index(expr.false_value)
            return expr.with_(condition=self.visit(expr.condition), true_value=one, false_value=other)
        if isinstance(expr, Cast):
            return cast(self.visit(expr.value), INT32.with_lanes(expr.dtype.lanes))
        return Cast(INT32.with_lanes(expr.dtype.lanes), self.visit(expr))

    def visit_Range(self, domain: Range) -> Range:
        return domain.with_(min=self.index(domain.min), extent=self.index(domain.extent))

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        new = self.buffers.get(buffer)
        if new is None:
            new = self.buffers[buffer] = buffer.with_(
                shape=rewrite_tuple(buffer.shape, self.index),
                strides=rewrite_tuple(buffer.strides, self.index),
                elem_offset=self.index(buffer.elem_offset),
            )
        return new

    def visit_BufferRegion(self, region: BufferRegion) -> BufferRegion:
        parts = rewrite_tuple(region.region, self.visit_Range)
        return region.with_(buffer=self.visit_Buffer(region.buffer), region=parts)

    def visit_Prefetch(self, node: Prefetch) -> Stmt:
        return node.with_(buffer=self.visit_Buffer(node.buffer), bounds=rewrite_tuple(node.bounds, self.visit_Range))

    # -- definitions

    def visit_For(self, loop: For) -> Stmt:
        low, extent = self.index(loop.min), self.index(loop.extent)
        return loop.with_(loop_var=self.successor(loop.loop_var), min=low, extent=extent, body=self.visit(loop.body))

    def let(self, let: Let | LetStmt) -> tuple[Var, Expr]:
        if let.var.dtype is INT64 and not has_data(let.value):
            value = self.index(let.value)
            return self.successor(let.var), value
        return let.var, self.visit(let.value)

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        values = rewrite_tuple(realize.iter_values, self.index)
        predicate, block = self.visit(realize.predicate), self.visit(realize.block)
        return realize.with_(iter_values=values, predicate=predicate, block=block)

    def visit_Block(self, block: Block) -> Stmt:
        return self.rebuild(block.with_(iter_vars=rewrite_tuple(block.iter_vars, self._axis)))

    def _axis(self, axis: IterVar) -> IterVar:
        dom = None if axis.dom is None else self.visit_Range(axis.dom)
        return axis.with_(dom=dom, var=self.successor(axis.var))


@function_pass
@deep
def force_narrow_index_to_int32(func: PrimFunc) -> PrimFunc:
    """Sizes, loops and indices of 64 bits become 32 bits wide."""
    scalars = {param for param in func.params if param not in func.buffer_map}
    force = _ForceNarrow(scalars)
    buffers = {param: force.visit_Buffer(buffer) for param, buffer in func.buffer_map.items()}
    body = force.visit(func.body)
    if body is func.body and all(buffers[param] is buffer for param, buffer in func.buffer_map.items()):
        return func
    return func.with_(body=body, buffer_map=buffers)
