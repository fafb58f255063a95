"""Reading the statements of hybrid functions: loops, assignments, conditions, assertions and the return."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Final

from loopwright.ir import (
    AssertStmt,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    IterType,
    IterVar,
    Range,
    Stmt,
    StringImm,
    Var,
    const,
    logical_not,
    match_types,
    no_op,
    seq,
)
from loopwright.te.hybrid.assignments import AssignmentReader
from loopwright.te.hybrid.builtins import LOOPS
from loopwright.te.hybrid.errors import (
    HybridCallError,
    HybridError,
    HybridLoopError,
    HybridNameError,
    HybridReturnError,
)
from loopwright.te.hybrid.expressions import has_load
from loopwright.te.hybrid.symbols import Meaning, Scope, Value
from loopwright.te.tensor import Tensor

_KINDS: Final = {
    "range": ForKind.SERIAL,
    "unroll": ForKind.UNROLLED,
    "parallel": ForKind.PARALLEL,
    "vectorize": ForKind.VECTORIZED,
    "bind": ForKind.THREAD_BINDING,
}
_AXIS_KINDS: Final = {
    ForKind.SERIAL: IterType.DataPar,
    ForKind.UNROLLED: IterType.Unrolled,
    ForKind.PARALLEL: IterType.Parallelized,
    ForKind.VECTORIZED: IterType.Vectorized,
    ForKind.THREAD_BINDING: IterType.ThreadIndex,
}
_DEEPEST_CALL: Final = 64


class StatementReader(AssignmentReader):
    """Reads the body of one hybrid function."""

    # --- the function ---------------------------------------------------------------------------------------------

    def read_function(self, tree: ast.FunctionDef) -> None:
        """Read all of the function's statements."""
        body = list(tree.body)
        self.regions.append(body)
        self.read_all(body)
        if self.returned is None and not self.is_called:
            raise HybridReturnError(
                f"{tree.name} returns nothing",
                self.place(tree.body[-1]),
                "make the result with output_tensor(shape, dtype), and return it at the end",
            )

    def read_all(self, body: Sequence[ast.stmt]) -> None:
        for position, statement in enumerate(body):
            if self.returned is not None:
                raise HybridReturnError(
                    "a statement follows the return", self.place(statement), "return at the end of the function"
                )
            if position == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue  # the docstring
            self.read_statement(statement)

    def read_statement(self, node: ast.stmt) -> None:
        method = getattr(self, f"do_{type(node).__name__}", None)
        if method is None:
            raise HybridError(
                f"{type(node).__name__} has no meaning in a hybrid function",
                self.place(node),
                "use for, if, assert, assignments and one return at the end",
            )
        method(node)

    def do_Pass(self, node: ast.Pass) -> None:
        """Nothing to do."""

    def do_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return
        if not isinstance(node.value, ast.Call):
            raise HybridError(
                "an expression stands alone", self.place(node), "assign it, or leave it out: it has no effect"
            )
        name = node.value.func.id if isinstance(node.value.func, ast.Name) else ""
        if not hasattr(self.outside(name), "read_into"):
            raise HybridError(
                f"the result of {ast.unparse(node.value.func)} is not used", self.place(node), "assign it to something"
            )
        self.read(node.value)

    def do_Return(self, node: ast.Return) -> None:
        if self.nesting:
            inside = "loop" if any(isinstance(outer, ast.For) for outer in self.nesting) else "condition"
            raise HybridReturnError(
                f"return stands inside a {inside}", self.place(node), "return once, at the end of the function"
            )
        value = None if node.value is None else self.read(node.value)
        listed: list[Any] = list(value) if isinstance(value, tuple) else [value]
        for position, item in enumerate(listed):
            if not isinstance(item, Tensor):
                raise HybridReturnError(
                    "the function returns something that is no tensor",
                    self.place(node),
                    "return what output_tensor(shape, dtype) made",
                )
            if item not in self.outputs:
                raise HybridReturnError(
                    f"{item.name} is returned, but was not made by output_tensor",
                    self.place(node),
                    f"make it so: {item.name} = output_tensor({', '.join(['…'] * max(item.ndim, 1))}, …)",
                )
            if item in listed[:position]:
                raise HybridReturnError(f"{item.name} is returned twice", self.place(node), "return each output once")
        self.returned = listed

    # --- loops ----------------------------------------------------------------------------------------------------

    def do_For(self, node: ast.For) -> None:
        if not isinstance(node.target, ast.Name):
            raise HybridLoopError("a loop has one variable", self.place(node.target), "for i in range(n):")
        if node.orelse:
            raise HybridLoopError("else of a loop has no meaning here", self.place(node.orelse[0]))
        name = node.target.id
        if self.scope.find(name) is not None:
            raise HybridNameError(
                f"the loop variable {name} has a value already", self.place(node.target), "use another name for it"
            )
        call = node.iter
        known = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in LOOPS
        if not known:
            raise HybridLoopError(
                f"a loop cannot run over {ast.unparse(node.iter)}", self.place(node.iter), f"use {', '.join(LOOPS)}"
            )
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        if call.keywords:
            raise HybridLoopError(f"{call.func.id} takes no keywords", self.place(call))
        if call.func.id == "const_range":
            self._expand(node, name, call)
        else:
            self._loop(node, name, call, call.func.id)

    def _bounds(self, call: ast.Call, word: str) -> tuple[Expr, Expr]:
        args = [self.number(arg, "a bound of the loop") for arg in call.args]
        if len(args) not in (1, 2):
            raise HybridLoopError(
                f"{word} takes an end, or a beginning and an end; got {len(args)} arguments",
                self.place(call),
                "for a step, multiply inside the loop",
            )
        for value, arg in zip(args, call.args, strict=True):
            if not value.dtype.is_int or value.dtype.is_bool:
                raise HybridLoopError(f"a bound of the loop has type {value.dtype}", self.place(arg), "use integers")
        low, high = match_types(const(0, args[0].dtype), args[0]) if len(args) == 1 else match_types(*args)
        return low, high

    def _expand(self, node: ast.For, name: str, call: ast.Call) -> None:
        """const_range: the body once for every value."""
        low, high = [self.reading.analyzer.simplify(bound) for bound in self._bounds(call, "const_range")]
        if not isinstance(low, IntImm) or not isinstance(high, IntImm):
            raise HybridLoopError(
                "the bounds of const_range are not constant", self.place(call), "use range, or constant bounds"
            )
        for value in range(low.value, high.value):
            outer = self.scope
            self.scope = Scope(outer, True, outer.in_threads)
            self.scope.names[name] = Value(const(value, low.dtype), is_loop=True)
            self.statements, before = [], self.statements
            self._read_body(node, name)
            before.append(self.scope.close(self.statements))
            self.statements, self.scope = before, outer

    def _loop(self, node: ast.For, name: str, call: ast.Call, word: str) -> None:
        tag = ""
        if word == "bind":
            tag, low, high = self._thread(call)
        else:
            low, high = self._bounds(call, word)
        kind = _KINDS[word]
        extent = self.reading.analyzer.simplify(high - low)
        if kind is ForKind.VECTORIZED and not isinstance(extent, IntImm):
            raise HybridLoopError("the bounds of vectorize are not constant", self.place(call), "use a constant extent")
        var = Var(name, extent.dtype)
        domain = Range.from_min_extent(const(0, extent.dtype), extent)
        axis = IterVar(domain, var, _AXIS_KINDS[kind], tag)
        self.reading.axes.append(axis)
        thread = IterVar(domain, Var(tag, extent.dtype), IterType.ThreadIndex, tag) if tag else None

        outer, before = self.scope, self.statements
        self.scope = Scope(outer, True, outer.in_threads or bool(tag))
        self.statements = []
        is_zero = isinstance(low, IntImm) and low.value == 0
        self.scope.names[name] = Value(var if is_zero else var + low, is_loop=True)
        if not (isinstance(extent, IntImm) and extent.value < 1):
            self.reading.analyzer.bind(var, domain)
        self._read_body(node, name)
        body = self.scope.close(self.statements)
        self.statements, self.scope = before, outer
        self.statements.append(For(var, domain.min, extent, kind, body, thread))

    def _thread(self, call: ast.Call) -> tuple[str, Expr, Expr]:
        tag = self.read(call.args[0]) if len(call.args) == 2 else None
        if not isinstance(tag, str):
            raise HybridLoopError(
                "bind takes the name of the threads and their number",
                self.place(call),
                'for i in bind("threadIdx.x", n):',
            )
        extent = self.number(call.args[1], "the number of threads")
        known = self.reading.threads.setdefault(tag, extent)
        if not self.reading.analyzer.can_prove_equal(known, extent):
            raise HybridLoopError(
                f"{tag} is bound to loops of {extent!r} and of {known!r} iterations",
                self.place(call),
                "one kind of threads has one extent",
            )
        return tag, const(0, extent.dtype), extent

    def _read_body(self, node: ast.For, name: str) -> None:
        self.nesting.append(node)
        self.regions.append(node.body)
        self.read_all(node.body)
        self.regions.pop()
        self.nesting.pop()
        self.gone.update(dict.fromkeys(self.scope.names, name))

    # --- conditions -----------------------------------------------------------------------------------------------

    def do_If(self, node: ast.If) -> None:
        condition = self.condition(node.test)
        if not has_load(condition):
            if self.reading.analyzer.can_prove(condition):
                self._branch(node, node.body)
                return
            if self.reading.analyzer.can_prove(logical_not(condition)):
                self._branch(node, node.orelse)
                return
        before = self.statements
        branches: list[Stmt] = []
        for body in (node.body, node.orelse):
            self.statements = []
            self._branch(node, body)
            branches.append(seq(self.statements))
        self.statements = before
        self.statements.append(IfThenElse(condition, branches[0], branches[1] if node.orelse else None))

    def _branch(self, node: ast.If, body: Sequence[ast.stmt]) -> None:
        self.nesting.append(node)
        self.read_all(body)
        self.nesting.pop()

    def do_Assert(self, node: ast.Assert) -> None:
        message = "an assertion of the program failed" if node.msg is None else self.read(node.msg)
        if not isinstance(message, str):
            raise HybridError("the message of assert is no text", self.place(node), 'assert condition, "what is wrong"')
        condition = self.condition(node.test)
        if has_load(condition) or not self.reading.analyzer.can_prove(condition):
            self.statements.append(AssertStmt(condition, StringImm(message), no_op()))

    # --- calls ----------------------------------------------------------------------------------------------------

    def call_function(
        self, node: ast.Call, other: Any, arguments: list[Meaning], keywords: dict[str, Meaning]
    ) -> Meaning:
        self.reading.depth += 1
        if self.reading.depth > _DEEPEST_CALL:
            raise HybridCallError(
                f"{other.__name__} calls itself without end", self.place(node), "hybrid functions cannot recurse"
            )
        result = other.read_into(self.reading, self.scope, self.statements, arguments, keywords, self.place(node))
        self.reading.depth -= 1
        self.outputs.update(dict.fromkeys(result))
        if not result:
            return None
        return result[0] if len(result) == 1 else tuple(result)
