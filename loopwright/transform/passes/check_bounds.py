"""check_bounds: every access asserts that its indices lie inside the buffer.

    B[i] = A[i + 1]        →    assert 0 <= i and i < 8 and 0 <= i + 1 and i + 1 < 8, "B, A: index out of bounds"
                                B[i] = A[i + 1]

Runs only under `tir.instrument_bound_checkers`: affine accesses are proved in bounds when a program is built, and this
finds the others when it runs. An access that a condition guards is checked under that condition. Not checked are the
condition of a `while`, which is computed again and again, and addresses, which touch nothing.
Needs: buffers with their shapes (before `flatten_buffers`).
"""

from __future__ import annotations

from loopwright.ir import (
    And,
    AssertStmt,
    BufferLoad,
    BufferStore,
    Call,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    Let,
    LetStmt,
    Or,
    PrimFunc,
    Ramp,
    Stmt,
    StringImm,
    Visitor,
    const,
    deep,
    logical_and,
    logical_not,
    logical_or,
)
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.known_ops import ADDRESS_OF, IF_THEN_ELSE
from loopwright.transform.parts.statements import StmtRewriter


class _Collect(Visitor):
    """The conditions under which an expression stays inside its buffers."""

    def __init__(self) -> None:
        self.conditions: list[Expr] = []
        self.names: list[str] = []

    def access(self, node: BufferLoad | BufferStore) -> None:
        for index, extent in zip(node.indices, node.buffer.shape, strict=True):
            first, last = index, index
            if isinstance(index, Ramp):
                first, last = index.base, index.base + index.stride * (index.lanes - 1)
            elif index.dtype.lanes > 1:
                continue  # a gathered vector: no one condition on scalars
            for end in (first,) if first is last else (first, last):
                self.conditions += [end >= const(0, end.dtype), end < extent]
        self.names.append(node.buffer.name)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.visit_children(load)
        self.access(load)

    def visit_Call(self, call: Call) -> None:
        if call.op is ADDRESS_OF and isinstance(call.args[0], BufferLoad):
            for index in call.args[0].indices:
                self.visit(index)
            return
        if call.op is not IF_THEN_ELSE:
            self.visit_children(call)
            return
        condition, chosen, other = call.args
        self.visit(condition)
        self._under(logical_not(condition), chosen)
        self._under(condition, other)

    def visit_And(self, node: And) -> None:
        self.visit(node.a)
        self._under(logical_not(node.a), node.b)

    def visit_Or(self, node: Or) -> None:
        self.visit(node.a)
        self._under(node.a, node.b)

    def visit_Let(self, let: Let) -> None:
        self.visit(let.value)  # what the body reads depends on a variable an assertion cannot see

    def _under(self, excuse: Expr, part: Expr) -> None:
        """The conditions of `part` need to hold only where `excuse` does not."""
        outer, self.conditions = self.conditions, []
        self.visit(part)
        if self.conditions:
            outer.append(logical_or(excuse, logical_and(*self.conditions)))
        self.conditions = outer


class _CheckBounds(StmtRewriter):
    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        collect = _Collect()
        collect.visit_children(store)
        collect.access(store)
        return _asserted(collect, store)

    def visit_For(self, loop: For) -> Stmt:
        return self._loads(self.rebuild(loop), loop.min, loop.extent)

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        return self._loads(self.rebuild(node), node.condition)

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        return self._loads(self.rebuild(node), node.value)

    def visit_AssertStmt(self, node: AssertStmt) -> Stmt:
        return self._loads(self.rebuild(node), node.condition)

    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        return self._loads(node, node.value)

    def _loads(self, statement: Stmt, *exprs: Expr) -> Stmt:
        """The statement, after what it computes first is seen to stay inside."""
        collect = _Collect()
        for expr in exprs:
            collect.visit(expr)
        return _asserted(collect, statement)


def _asserted(collect: _Collect, statement: Stmt) -> Stmt:
    if not collect.conditions:
        return statement
    names = ", ".join(dict.fromkeys(collect.names))
    return AssertStmt(logical_and(*collect.conditions), StringImm(f"{names}: index out of bounds"), statement)


@function_pass
@deep
def check_bounds(func: PrimFunc) -> PrimFunc:
    """Every access asserts that its indices lie inside the buffer."""
    return func.with_(body=_CheckBounds().visit(func.body))
