"""What a program costs, read off its text: floating-point operations, and bytes it allocates.

Loops count by their extents, which must be constant; a loop or block may say what it costs in its own annotation
`estimated_flops`. Branches cost what their dearer side costs.
"""

from __future__ import annotations

from typing import Any

from loopwright.analysis.reduction_init import write_inits
from loopwright.analysis.thread_axes import scope_of
from loopwright.ir import (
    Allocate,
    AllocateConst,
    BinaryExpr,
    Block,
    Buffer,
    Call,
    Cast,
    CompareExpr,
    Expr,
    For,
    IfThenElse,
    IntImm,
    IRModule,
    Node,
    PrimFunc,
    Select,
    SeqStmt,
    Stmt,
    Visitor,
    deep,
)
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError


class CostUnknown(LoopwrightError, ValueError):
    """The cost of a program depends on a size that is known only when it runs.

    For example:

        from loopwright import te, tir

        n = te.var("n")
        A = te.placeholder((n,), name="A")
        B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
        tir.analysis.estimate_tir_flops(te.create_prim_func([A, B]))
    """

    code = "LW0832"

    def __init__(self, what: str, at: Node) -> None:
        super().__init__(
            f"{what} is not a constant",
            at=at,
            hint='func.specialize({n: 1024}) sets a size; a loop may say its own cost: annotate "estimated_flops"',
        )


class _Flops(Visitor):
    """Visits return how many operations a part takes."""

    def visit_children(self, node: Node) -> float:
        total = 0.0
        parts: list[Node] = []
        node.each_child(parts.append)
        for part in parts:
            total += self.visit(part)
        return total

    def visit_BinaryExpr(self, e: BinaryExpr) -> float:
        return self.visit_children(e) + _float_lanes(e.a if isinstance(e, CompareExpr) else e)

    def visit_Select(self, e: Select) -> float:
        return self.visit_children(e) + _float_lanes(e)

    def visit_Cast(self, e: Cast) -> float:
        return self.visit_children(e) + _float_lanes(e)

    def visit_Call(self, e: Call) -> float:
        if e.op.name == "tir.if_then_else":
            condition, chosen, other = [self.visit(argument) for argument in e.args]
            return float(condition + max(chosen, other))
        weight = 2 if e.op.name == "tir.fma" else 1
        return self.visit_children(e) + weight * _float_lanes(e)

    def visit_IfThenElse(self, node: IfThenElse) -> float:
        other = self.visit(node.else_case) if node.else_case is not None else 0.0
        return float(self.visit(node.condition) + max(self.visit(node.then_case), other))

    def visit_For(self, loop: For) -> float:
        stated = _stated(loop.annotations)
        if stated is not None:
            return stated
        body = self.visit(loop.body)
        if not body:
            return 0.0
        if not isinstance(loop.extent, IntImm):
            raise CostUnknown(f"the extent {loop.extent!r} of loop {loop.loop_var.name}", loop)
        return float(loop.extent.value * body)

    def visit_Block(self, block: Block) -> float:
        stated = _stated(block.annotations)
        if stated is not None:
            return stated
        return float(self.visit(block.body) + (self.visit(block.init) if block.init is not None else 0.0))

    def visit_Buffer(self, buffer: Buffer) -> float:
        return 0.0


def _stated(annotations: Any) -> float | None:
    given = annotations.get("estimated_flops")
    return None if given is None else float(given)


def _float_lanes(e: Expr) -> float:
    return float(e.dtype.lanes) if e.dtype.is_float else 0.0


@deep
def estimate_tir_flops(stmt_or_mod: Stmt | PrimFunc | IRModule) -> float:
    """How many floating-point operations the program takes; a fused multiply-add is two."""
    if isinstance(stmt_or_mod, IRModule):
        return sum([estimate_tir_flops(func) for func in stmt_or_mod.functions.values()])
    if isinstance(stmt_or_mod, PrimFunc):
        return float(_Flops().visit(write_inits(stmt_or_mod.body)))
    return float(_Flops().visit(stmt_or_mod))


def _bytes(node: Allocate | AllocateConst, alignment: int) -> int:
    return _size(node.dtype, node.extents, node, alignment)


def _size(dtype: DataType, extents: Any, at: Node, alignment: int) -> int:
    total = dtype.nbytes
    for extent in extents:
        if not isinstance(extent, IntImm):
            raise CostUnknown(f"the extent {extent!r} of an allocation", at)
        total *= extent.value
    return -(-total // alignment) * alignment


def calculate_allocated_bytes(func_or_mod: PrimFunc | IRModule) -> dict[str, Any]:
    """{scope: bytes allocated in it} for a function, all allocations added up; for a module, that by function."""
    if isinstance(func_or_mod, IRModule):
        return {var.name: calculate_allocated_bytes(func) for var, func in func_or_mod.functions.items()}
    result: dict[str, int] = {}

    class _Sum(Visitor):
        def visit_Allocate(self, node: Allocate) -> None:
            scope = scope_of(node.buffer_var)
            result[scope] = result.get(scope, 0) + _bytes(node, 1)
            self.visit(node.body)

        def visit_Block(self, block: Block) -> None:
            for buffer in block.alloc_buffers:
                scope = buffer.scope()
                result[scope] = result.get(scope, 0) + _size(buffer.dtype, buffer.shape, block, 1)
            self.visit(block.body)

        def visit_Expr(self, expr: Expr) -> None:
            pass

    _Sum().visit(func_or_mod.body)
    return result


def calculate_workspace_bytes(func: PrimFunc, workspace_byte_alignment: int = 1) -> int:
    """The most bytes of allocations that exist at one time."""

    class _Peak(Visitor):
        def visit_Allocate(self, node: Allocate) -> int:
            inner: int = self.visit(node.body)
            is_workspace = scope_of(node.buffer_var).startswith("global")
            return inner + (_bytes(node, workspace_byte_alignment) if is_workspace else 0)

        def visit_Block(self, block: Block) -> int:
            own = [
                _size(buffer.dtype, buffer.shape, block, workspace_byte_alignment)
                for buffer in block.alloc_buffers
                if buffer.scope().startswith("global")
            ]
            inner: int = self.visit(block.body)
            return inner + sum(own)

        def visit_SeqStmt(self, node: SeqStmt) -> int:
            return max([self.visit(part) for part in node.seq])

        def visit_Stmt(self, node: Stmt) -> int:
            return max([self.visit(child) for child in node.children() if isinstance(child, (Stmt, Block))], default=0)

    return int(_Peak().visit(func.body))


def calculate_constant_bytes(func: PrimFunc, constant_byte_alignment: int = 1) -> int:
    """The bytes of all constants the function holds."""
    total = 0

    class _Constants(Visitor):
        def visit_AllocateConst(self, node: AllocateConst) -> None:
            nonlocal total
            total += _bytes(node, constant_byte_alignment)
            self.visit(node.body)

        def visit_Expr(self, expr: Expr) -> None:
            pass

    _Constants().visit(func.body)
    return total


__all__ = [
    "calculate_allocated_bytes",
    "calculate_constant_bytes",
    "calculate_workspace_bytes",
    "estimate_tir_flops",
]
