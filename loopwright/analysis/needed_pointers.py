"""Needed pointers: the parameters that a function reads or writes through, whatever it asks about them before."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright import ir
from loopwright.ir.deep import deep
from loopwright.ir.visitor import Visitor

_NONE: frozenset[ir.Var] = frozenset()


@deep
def needed_pointers(function: ir.PrimFunc, functions: Mapping[str, ir.PrimFunc]) -> set[ir.Var]:
    """The parameters of `function` that may not be null: it loads or stores through them, or a function it calls does.

    What stands behind a question with `isnullptr`, or after one that leaves, needs nothing.
    """
    result: dict[ir.PrimFunc, set[ir.Var]] = {}
    while True:  # functions that call each other tell more in a second round
        before = sum(map(len, result.values()))
        needed = _Needs(functions, result, set(), set()).of(function)
        if sum(map(len, result.values())) == before:
            return needed


def needed_handles(function: ir.PrimFunc, functions: Mapping[str, ir.PrimFunc]) -> set[ir.Var]:
    """Those of them that are plain pointers, not the memory of a tensor; most functions have none to ask about."""
    handles = {param for param in function.params if param.dtype.kind == "handle" and param not in function.buffer_map}
    return handles and handles & needed_pointers(function, functions)


class _Needs(Visitor):
    def __init__(
        self,
        functions: Mapping[str, ir.PrimFunc],
        result: dict[ir.PrimFunc, set[ir.Var]],
        seen: set[ir.PrimFunc],
        needed: set[ir.Var],
    ) -> None:
        self.functions, self.found, self.seen, self.needed = functions, result, seen, needed
        self.behind: dict[ir.Var, frozenset[ir.Var]] = {}  # the pointers that another one is made of
        self.present = _NONE  # pointers known not to be null here

    def of(self, function: ir.PrimFunc) -> set[ir.Var]:
        known = self.found.setdefault(function, set())
        if function not in self.seen:
            self.seen.add(function)
            _Needs(self.functions, self.found, self.seen, known).visit(function.body)
        return known & {*function.params, *(buffer.data for buffer in function.argument_buffers())}

    def need(self, pointers: frozenset[ir.Var]) -> None:
        self.needed |= pointers - self.present

    def roots(self, pointer: ir.Expr) -> frozenset[ir.Var]:
        """The variables that a pointer is made of."""
        if isinstance(pointer, ir.Var):
            return self.behind.get(pointer, frozenset((pointer,))) if pointer.dtype.kind == "handle" else _NONE
        if isinstance(pointer, ir.BufferLoad):
            return self.roots(pointer.buffer.data)  # of address_of
        if isinstance(pointer, ir.Call) and pointer.dtype.kind == "handle":
            return _NONE.union(*map(self.roots, pointer.args))
        return _NONE

    # --- accesses -------------------------------------------------------------------------------------------------

    def visit_BufferLoad(self, load: ir.BufferLoad) -> None:
        self.need(self.roots(load.buffer.data))
        self.visit_children(load)

    def visit_BufferStore(self, store: ir.BufferStore) -> None:
        self.need(self.roots(store.buffer.data))
        self.visit_children(store)

    def visit_Call(self, call: ir.Call) -> None:
        name = call.op.name
        if name == "tir.address_of" and isinstance(call.args[0], ir.BufferLoad):
            for index in call.args[0].indices:
                self.visit(index)
        elif name == "tir.if_then_else":
            self.either(call.args[0], call.args[1], call.args[2])
        else:
            callee = self.functions.get(name) if isinstance(call.op, ir.GlobalVar) else None
            if callee is not None:
                self.passed_on(callee, call)
            self.visit_children(call)

    def passed_on(self, callee: ir.PrimFunc, call: ir.Call) -> None:
        needed = self.of(callee)
        for param, arg in zip(callee.params, call.args, strict=False):
            if param in needed or (param in callee.buffer_map and callee.buffer_map[param].data in needed):
                self.need(self.roots(arg))

    # --- names ----------------------------------------------------------------------------------------------------

    def visit_LetStmt(self, let: ir.LetStmt) -> None:
        self.bind(let.var, let.value)
        self.visit(let.body)

    def visit_Let(self, let: ir.Let) -> None:
        self.bind(let.var, let.value)
        self.visit(let.body)

    def visit_MatchBufferRegion(self, window: ir.MatchBufferRegion) -> None:
        self.behind[window.buffer.data] = self.roots(window.source.buffer.data)

    def bind(self, var: ir.Var, value: ir.Expr) -> None:
        self.visit(value)
        if var.dtype.kind == "handle":
            self.behind[var] = self.roots(value)

    # --- questions ------------------------------------------------------------------------------------------------

    def either(self, condition: ir.Expr, then: ir.Node, otherwise: ir.Node | None) -> None:
        self.visit(condition)
        self.where(condition, True, then)
        if otherwise is not None:
            self.where(condition, False, otherwise)

    def where(self, condition: ir.Expr, answer: bool, part: ir.Node) -> None:
        outer, self.present = self.present, self.present | self.told(condition, answer)
        self.visit(part)
        self.present = outer

    def told(self, condition: ir.Expr, answer: bool) -> frozenset[ir.Var]:
        """The pointers that are not null where `condition` has that answer."""
        if isinstance(condition, ir.Not):
            return self.told(condition.a, not answer)
        if isinstance(condition, ir.And if answer else ir.Or):
            return self.told(condition.a, answer) | self.told(condition.b, answer)
        if isinstance(condition, ir.Call) and condition.op.name == "tir.likely":
            return self.told(condition.args[0], answer)
        if isinstance(condition, ir.Call) and condition.op.name == "tir.isnullptr" and not answer:
            roots = self.roots(condition.args[0])
            return roots if len(roots) == 1 else _NONE
        return _NONE

    def visit_And(self, node: ir.And) -> None:
        self.visit(node.a)
        self.where(node.a, True, node.b)

    def visit_Or(self, node: ir.Or) -> None:
        self.visit(node.a)
        self.where(node.a, False, node.b)

    def visit_IfThenElse(self, choice: ir.IfThenElse) -> None:
        self.either(choice.condition, choice.then_case, choice.else_case)

    def visit_AssertStmt(self, statement: ir.AssertStmt) -> None:
        self.visit(statement.condition)
        self.where(statement.condition, True, statement.body)

    def visit_SeqStmt(self, sequence: ir.SeqStmt) -> None:
        outer = self.present
        for part in sequence.seq:
            self.visit(part)
            if isinstance(part, ir.IfThenElse) and part.else_case is None and _leaves(part.then_case):
                self.present |= self.told(part.condition, False)
            elif isinstance(part, ir.AssertStmt):
                self.present |= self.told(part.condition, True)
        self.present = outer


def _leaves(statement: ir.Stmt) -> bool:
    if isinstance(statement, ir.SeqStmt):
        return bool(statement.seq) and _leaves(statement.seq[-1])
    return ir.is_return(statement)
