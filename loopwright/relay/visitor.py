"""Walks over graphs: each object is met once, however often it is used.

    class _Relu(ExprMutator):
        def visit_call(self, call): ...

`ExprVisitor` looks, `ExprMutator` rebuilds (what is unchanged comes back as the same object), `ExprFunctor` computes
something of each expression. Graphs are deep (a network of a thousand layers is a chain of calls), so the walk keeps a
stack of its own: what an expression is made of is visited before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from loopwright.ir.expr import GlobalVar
from loopwright.relay.adt import Clause, Constructor, Match
from loopwright.relay.expr import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from loopwright.relay.op.registry import Op


def parts(expression: Any) -> tuple[Any, ...]:
    """The expressions that one is made of, in the order they are evaluated; of a function, its body."""
    cls = type(expression)
    if cls is Call:
        callee = () if isinstance(expression.op, Op) else (expression.op,)
        return (*callee, *expression.args)
    if cls is Tuple:
        return expression.fields
    if cls is TupleGetItem:
        return (expression.tuple_value,)
    if cls is Function:
        return (*expression.params, expression.body)
    if cls is Let:
        return (expression.var, expression.value, expression.body)
    if cls is If:
        return (expression.cond, expression.true_branch, expression.false_branch)
    if cls is RefCreate:
        return (expression.value,)
    if cls is RefRead:
        return (expression.ref,)
    if cls is RefWrite:
        return (expression.ref, expression.value)
    if cls is Match:
        bound = [var for clause in expression.clauses for var in clause.lhs.variables()]
        return (expression.data, *bound, *[clause.rhs for clause in expression.clauses])
    return ()


def post_order(root: Any) -> Iterator[Any]:
    """Every expression below `root` and it itself, once, after what it is made of."""
    done: set[int] = set()
    stack: list[tuple[Any, Iterator[Any]]] = [(root, iter(parts(root)))]
    entered = {id(root)}
    while stack:
        expression, rest = stack[-1]
        for part in rest:
            if id(part) not in entered:
                entered.add(id(part))
                stack.append((part, iter(parts(part))))
                break
        else:
            stack.pop()
            if id(expression) not in done:
                done.add(id(expression))
                yield expression


def post_order_visit(expression: Any, visit: Callable[[Any], object]) -> None:
    """Call `visit` on every expression, after what it is made of."""
    for result in post_order(expression):
        visit(result)


class ExprFunctor:
    """Compute a value for each expression by the method of its class; results are remembered by object."""

    def __init__(self) -> None:
        self.memo_map: dict[int, Any] = {}
        self._kept: list[Any] = []  # objects whose ids are keys stay alive

    def visit(self, expression: Any) -> Any:
        """The result of `expression`, computed if it is new."""
        result = self.memo_map.get(id(expression), self)
        if result is not self:
            return result
        self._visit_below(expression)
        result = self.memo_map.get(id(expression), self)
        return self._enter(expression) if result is self else result

    def _visit_below(self, expression: Any) -> None:
        """Visit long chains of calls from their beginning, so that the walk does not nest as deep as the graph."""
        stack = [expression]
        while stack:
            top = stack[-1]
            if id(top) in self.memo_map:
                stack.pop()
                continue
            waiting = [part for part in self.first(top) if id(part) not in self.memo_map]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            if top is not expression:
                self._enter(top)

    def first(self, expression: Any) -> tuple[Any, ...]:
        """What may be visited before `expression` itself: not what runs under a condition or a name."""
        cls = type(expression)
        if cls is Call:
            return tuple(expression.args)
        if cls is Tuple:
            return tuple(expression.fields)
        return (expression.tuple_value,) if cls is TupleGetItem else ()

    def _enter(self, expression: Any) -> Any:
        method = getattr(self, _METHODS.get(type(expression), "visit_other"))
        result = method(expression)
        self.memo_map[id(expression)] = result
        self._kept.append(expression)
        return result

    def visit_other(self, expression: Any) -> Any:
        raise TypeError(f"{type(self).__name__} has no rule for {type(expression).__name__}")

    visit_call = visit_tuple = visit_tuple_getitem = visit_function = visit_let = visit_if = visit_var = visit_other
    visit_constant = visit_global_var = visit_op = visit_other
    visit_ref_create = visit_ref_read = visit_ref_write = visit_match = visit_constructor = visit_other


class ExprVisitor(ExprFunctor):
    """Meet every expression; override the methods of those of interest (and call `super()` to go on below)."""

    def visit_call(self, call: Call) -> Any:
        self.visit(call.op)
        for arg in call.args:
            self.visit(arg)

    def visit_tuple(self, tup: Tuple) -> Any:
        for field in tup.fields:
            self.visit(field)

    def visit_tuple_getitem(self, get: TupleGetItem) -> Any:
        self.visit(get.tuple_value)

    def visit_function(self, function: Function) -> Any:
        for param in function.params:
            self.visit(param)
        self.visit(function.body)

    def visit_let(self, let: Let) -> Any:
        body: Any = let
        while isinstance(body, Let):  # a block of many lets is one long chain
            self.visit(body.var)
            self.visit(body.value)
            body = body.body
        self.visit(body)

    def visit_if(self, branch: If) -> Any:
        self.visit(branch.cond)
        self.visit(branch.true_branch)
        self.visit(branch.false_branch)

    def visit_ref_create(self, ref: RefCreate) -> Any:
        self.visit(ref.value)

    def visit_ref_read(self, ref: RefRead) -> Any:
        self.visit(ref.ref)

    def visit_ref_write(self, ref: RefWrite) -> Any:
        self.visit(ref.ref)
        self.visit(ref.value)

    def visit_match(self, match: Match) -> Any:
        self.visit(match.data)
        for clause in match.clauses:
            for var in clause.lhs.variables():
                self.visit(var)
            self.visit(clause.rhs)

    def visit_constructor(self, constructor: Constructor) -> Any:
        return None

    def visit_var(self, var: Var) -> Any:
        return None

    def visit_constant(self, constant: Constant) -> Any:
        return None

    def visit_global_var(self, var: GlobalVar) -> Any:
        return None

    def visit_op(self, op: Op) -> Any:
        return None


class ExprMutator(ExprFunctor):
    """Rebuild a graph; a part that does not change comes back as the same object, and shared parts stay shared."""

    def visit_call(self, call: Call) -> Any:
        op = self.visit(call.op)
        args = [self.visit(arg) for arg in call.args]
        if op is call.op and all(map(_is, args, call.args)):
            return call
        return Call(op, args, call.attrs, call.type_args, call.span)

    def visit_tuple(self, tup: Tuple) -> Any:
        fields = [self.visit(field) for field in tup.fields]
        return tup if all(map(_is, fields, tup.fields)) else Tuple(fields, tup.span)

    def visit_tuple_getitem(self, get: TupleGetItem) -> Any:
        value = self.visit(get.tuple_value)
        if value is get.tuple_value:
            return get
        return value.fields[get.index] if isinstance(value, Tuple) else TupleGetItem(value, get.index, get.span)

    def visit_function(self, function: Function) -> Any:
        params = [self.visit(param) for param in function.params]
        body = self.visit(function.body)
        if body is function.body and all(map(_is, params, function.params)):
            return function
        ret_type = function.ret_type if all(map(_is, params, function.params)) else None
        return Function(params, body, ret_type, function.type_params, function.attrs, function.span)

    def visit_let(self, let: Let) -> Any:
        chain: list[tuple[Let, Any, Any]] = []
        body: Any = let
        while isinstance(body, Let):
            chain.append((body, self.visit(body.var), self.visit(body.value)))
            body = body.body
        result = self.visit(body)
        for old, var, value in reversed(chain):
            same = var is old.var and value is old.value and result is old.body
            result = old if same else Let(var, value, result, old.span)
        return result

    def visit_if(self, branch: If) -> Any:
        result = [self.visit(part) for part in (branch.cond, branch.true_branch, branch.false_branch)]
        same = all(map(_is, result, (branch.cond, branch.true_branch, branch.false_branch)))
        return branch if same else If(result[0], result[1], result[2], branch.span)

    def visit_ref_create(self, ref: RefCreate) -> Any:
        value = self.visit(ref.value)
        return ref if value is ref.value else RefCreate(value, ref.span)

    def visit_ref_read(self, ref: RefRead) -> Any:
        cell = self.visit(ref.ref)
        return ref if cell is ref.ref else RefRead(cell, ref.span)

    def visit_ref_write(self, ref: RefWrite) -> Any:
        cell, value = self.visit(ref.ref), self.visit(ref.value)
        return ref if cell is ref.ref and value is ref.value else RefWrite(cell, value, ref.span)

    def visit_match(self, match: Match) -> Any:
        data = self.visit(match.data)
        changed = [(clause.lhs.with_vars(self.visit), self.visit(clause.rhs)) for clause in match.clauses]
        same = all(a is c.lhs and b is c.rhs for (a, b), c in zip(changed, match.clauses, strict=True))
        if data is match.data and same:
            return match
        return Match(data, [Clause(lhs, rhs) for lhs, rhs in changed], match.complete, match.span)

    def visit_constructor(self, constructor: Constructor) -> Any:
        return constructor

    def visit_var(self, var: Var) -> Any:
        return var

    def visit_constant(self, constant: Constant) -> Any:
        return constant

    def visit_global_var(self, var: GlobalVar) -> Any:
        return var

    def visit_op(self, op: Op) -> Any:
        return op


class _Bind(ExprMutator):
    def __init__(self, values: dict[Var, Expr]) -> None:
        super().__init__()
        self.values = values

    def visit_var(self, var: Var) -> Any:
        return self.values.get(var, var)

    def visit_function(self, function: Function) -> Any:
        params = [param for param in function.params if param not in self.values]
        body = self.visit(function.body)
        if body is function.body and len(params) == len(function.params):
            return function
        return Function(params, body, None, function.type_params, function.attrs, function.span)


def bind(expression: Any, values: Mapping[Var, Expr]) -> Any:
    """The expression with variables replaced; a function loses the parameters that are."""
    return _Bind(dict(values)).visit(expression)


def _is(one: object, other: object) -> bool:
    return one is other


_METHODS = {
    Call: "visit_call",
    Tuple: "visit_tuple",
    TupleGetItem: "visit_tuple_getitem",
    Function: "visit_function",
    Let: "visit_let",
    If: "visit_if",
    RefCreate: "visit_ref_create",
    RefRead: "visit_ref_read",
    RefWrite: "visit_ref_write",
    Var: "visit_var",
    Constant: "visit_constant",
    GlobalVar: "visit_global_var",
    Op: "visit_op",
    Match: "visit_match",
    Constructor: "visit_constructor",
}
