"""share_expressions: arithmetic that a statement holds twice or more is computed once, before it.

    for i in range(8):                        →    for i in range(8):
        A[i * 4 + n] = B[i * 4 + n]                    cse_var_1 = i * 4 + n
        C[i] = i * 4 + n                               A[cse_var_1] = B[cse_var_1]
                                                       C[i] = cse_var_1

Unlike `common_subexpressions` it looks at whole statements, sequences and loops among them, outermost first, and leaves
what calls a function or reads memory where it is, as well as what may fail. The largest expressions come first.
"""

from __future__ import annotations

from loopwright.arith.structure import Structure
from loopwright.compat.passes.named_pass import named_pass
from loopwright.ir import (
    Allocate,
    AttrStmt,
    BinaryExpr,
    Block,
    Broadcast,
    Buffer,
    BufferLoad,
    Call,
    Cast,
    Expr,
    For,
    IterVar,
    Let,
    LetStmt,
    Node,
    Not,
    PrimFunc,
    Ramp,
    Rewriter,
    Select,
    SeqStmt,
    Stmt,
    Var,
    any_node,
    deep,
    pre_order_visit,
    uses_var,
)
from loopwright.ir.node import rewrite_tuple
from loopwright.ir.pass_context import PassContext
from loopwright.ir.passes import Pass
from loopwright.transform.parts.purity import can_fail


class _Replace(Rewriter):
    def __init__(self, structure: Structure, number: int, var: Var) -> None:
        self.structure, self.number, self.var = structure, number, var

    def _expr(self, expr: Expr) -> Expr:
        return self.var if self.structure.number(expr) == self.number else self.rebuild(expr)

    visit_BinaryExpr = visit_Cast = visit_Select = visit_Not = _expr

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        return buffer


class _Share:
    def __init__(self) -> None:
        self.count = 0

    def statement(self, root: Stmt) -> Stmt:
        """The statement with what it holds twice before it, and then its parts."""
        depth = 0
        while True:
            found = self._largest(root)
            if found is None:
                break
            structure, number, expr = found
            self.count += 1
            depth += 1
            var = Var(f"cse_var_{self.count}", expr.dtype)
            root = LetStmt(var, expr, _Replace(structure, number, var).visit(root))
        return self._below(root, depth)

    def _below(self, root: Stmt, lets: int) -> Stmt:
        """Go on inside, below the lets that were put before the statement."""
        if lets:
            assert isinstance(root, LetStmt)
            return root.with_(body=self._below(root.body, lets - 1))
        if isinstance(root, SeqStmt):
            return root.with_(seq=rewrite_tuple(root.seq, self.statement))
        return root.rebuild(lambda child: self.statement(child) if isinstance(child, Stmt) else child)

    def _largest(self, root: Stmt) -> tuple[Structure, int, Expr] | None:
        structure = Structure()
        times: dict[int, int] = {}
        expressions: dict[int, Expr] = {}
        inside: set[Var] = set()

        def look(node: Node) -> bool:
            if isinstance(node, For):
                inside.add(node.loop_var)
            elif isinstance(node, (LetStmt, Let)):
                inside.add(node.var)
            elif isinstance(node, Allocate):
                inside.add(node.buffer_var)
            elif isinstance(node, AttrStmt) and isinstance(node.node, IterVar):
                inside.add(node.node.var)
            elif isinstance(node, Block):
                inside.update([axis.var for axis in node.iter_vars])
            elif isinstance(node, Buffer):
                return False
            elif isinstance(node, (BinaryExpr, Cast, Select, Not)) and _is_plain(node):
                number = structure.number(node)
                times[number] = times.get(number, 0) + 1
                expressions.setdefault(number, node)
            return True

        pre_order_visit(root, look)
        best: tuple[int, int] | None = None
        for number, expr in expressions.items():
            if times[number] > 1 and not uses_var(expr, inside.__contains__) and not can_fail(expr):
                size = _size(expr)
                if best is None or size > best[0]:
                    best = size, number
        return None if best is None else (structure, best[1], expressions[best[1]])


def _is_plain(expr: Expr) -> bool:
    return not any_node(expr, lambda node: isinstance(node, (Call, BufferLoad, Ramp, Broadcast, Let)))


def _size(expr: Expr) -> int:
    count = 0

    def look(_: Node) -> None:
        nonlocal count
        count += 1

    pre_order_visit(expr, look)
    return count


def share_expressions(enable_cse_tir: bool = True, identify_equiv_terms: bool = False) -> Pass:
    """The pass; expressions are the same when they are written alike, whatever `identify_equiv_terms` says."""

    @named_pass("CommonSubexprElimTIR")
    @deep
    def run(func: PrimFunc) -> PrimFunc:
        if not enable_cse_tir or PassContext.current().setting("tir.disable_cse_tir"):
            return func
        return func.with_(body=_Share().statement(func.body))

    return run
