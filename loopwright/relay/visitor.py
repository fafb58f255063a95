"""Walks over graphs: each object is met once, however often it is used.

    class _Relu(ExprMutator):
        def visit_call(self, call): ...

`ExprVisitor` looks, `ExprMutator` rebuilds (what is unchanged comes back as the same object), `ExprFunctor` computes
something of each expression. Graphs are deep (a network of a thousand layers is a chain of calls), so the walk keeps a
stack of its own: what an expression is made of is visited before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar, overload

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

R = TypeVar("R")  # what a functor computes


def parts(expression: Expr) -> tuple[Expr, ...]:
    """The expressions that one is made of, in the order they are evaluated; of a function, its body."""
    if type(expression) is Call:
        callee = () if isinstance(expression.op, Op) else (expression.op,)
        return (*callee, *expression.args)
    if type(expression) is Tuple:
        return expression.fields
    if type(expression) is TupleGetItem:
        return (expression.tuple_value,)
    if type(expression) is Function:
        return (*expression.params, expression.body)
    if type(expression) is Let:
        return (expression.var, expression.value, expression.body)
    if type(expression) is If:
        return (expression.cond, expression.true_branch, expression.false_branch)
    if type(expression) is RefCreate:
        return (expression.value,)
    if type(expression) is RefRead:
        return (expression.ref,)
    if type(expression) is RefWrite:
        return (expression.ref, expression.value)
    if type(expression) is Match:
        bound = [var for clause in expression.clauses for var in clause.lhs.variables()]
        return (expression.data, *bound, *[clause.rhs for clause in expression.clauses])
    return ()


def post_order(root: Expr, parts: Callable[[Expr], Sequence[Expr]] = parts) -> Iterator[Expr]:
    """Every expression below `root` and it itself, once, after its `parts`, by default all that it is made of."""
    stack: list[tuple[Expr, Iterator[Expr]]] = [(root, iter(parts(root)))]
    entered = {root}
    while stack:
        expression, rest = stack[-1]
        for part in rest:
            if part not in entered:
                entered.add(part)
                stack.append((part, iter(parts(part))))
                break
        else:
            stack.pop()
            yield expression


def post_order_visit(expression: Expr, visit: Callable[[Expr], object]) -> None:
    """Call `visit` on every expression, after what it is made of."""
    for result in post_order(expression):
        visit(result)


class _New:
    """Stands for the result of an expression not visited yet."""


_NEW: Final = _New()


class ExprFunctor(Generic[R]):
    """Compute a value for each expression by the method of its class; results are remembered by object."""

    def __init__(self) -> None:
        self.memo_map: dict[Expr, R] = {}

    def visit(self, expression: Expr) -> R:
        """The result of `expression`, computed if it is new."""
        result = self.memo_map.get(expression, _NEW)
        if not isinstance(result, _New):
            return result
        self._visit_below(expression)
        result = self.memo_map.get(expression, _NEW)
        return self._enter(expression) if isinstance(result, _New) else result

    def _visit_below(self, expression: Expr) -> None:
        """Visit long chains of calls from their beginning, so that the walk does not nest as deep as the graph."""
        stack = [expression]
        while stack:
            top = stack[-1]
            if top in self.memo_map:
                stack.pop()
                continue
            waiting = [part for part in self.first(top) if part not in self.memo_map]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            if top is not expression:
                self._enter(top)

    def first(self, expression: Expr) -> tuple[Expr, ...]:
        """What may be visited before `expression` itself: not what runs under a condition or a name."""
        if type(expression) is Call:
            return expression.args
        if type(expression) is Tuple:
            return expression.fields
        return (expression.tuple_value,) if type(expression) is TupleGetItem else ()

    def _enter(self, expression: Expr) -> R:
        name = _METHODS.get(type(expression)) or ("visit_op" if isinstance(expression, Op) else "visit_other")
        method: Callable[[Expr], R] = getattr(self, name)
        result = method(expression)
        self.memo_map[expression] = result
        return result

    def visit_other(self, expression: Expr) -> R:
        raise NotImplementedError(f"{type(self).__name__} has no rule for {type(expression).__name__}")

    if TYPE_CHECKING:  # a method of each takes its own class

        def visit_call(self, call: Call) -> R: ...
        def visit_tuple(self, tup: Tuple) -> R: ...
        def visit_tuple_getitem(self, get: TupleGetItem) -> R: ...
        def visit_function(self, function: Function) -> R: ...
        def visit_let(self, let: Let) -> R: ...
        def visit_if(self, branch: If) -> R: ...
        def visit_var(self, var: Var) -> R: ...
        def visit_constant(self, constant: Constant) -> R: ...
        def visit_global_var(self, var: GlobalVar) -> R: ...
        def visit_op(self, op: Op) -> R: ...
        def visit_ref_create(self, ref: RefCreate) -> R: ...
        def visit_ref_read(self, ref: RefRead) -> R: ...
        def visit_ref_write(self, ref: RefWrite) -> R: ...
        def visit_match(self, match: Match) -> R: ...
        def visit_constructor(self, constructor: Constructor) -> R: ...
    else:
        visit_call = visit_tuple = visit_tuple_getitem = visit_function = visit_let = visit_if = visit_var = visit_other
        visit_constant = visit_global_var = visit_op = visit_other
        visit_ref_create = visit_ref_read = visit_ref_write = visit_match = visit_constructor = visit_other


class ExprVisitor(ExprFunctor[None]):
    """Meet every expression; override the methods of those of interest (and call `super()` to go on below)."""

    def visit_call(self, call: Call) -> None:
        self.visit(call.op)
        for arg in call.args:
            self.visit(arg)

    def visit_tuple(self, tup: Tuple) -> None:
        for field in tup.fields:
            self.visit(field)

    def visit_tuple_getitem(self, get: TupleGetItem) -> None:
        self.visit(get.tuple_value)

    def visit_function(self, function: Function) -> None:
        for param in function.params:
            self.visit(param)
        self.visit(function.body)

    def visit_let(self, let: Let) -> None:
        body: Expr = let
        while isinstance(body, Let):  # a block of many lets is one long chain
            self.visit(body.var)
            self.visit(body.value)
            body = body.body
        self.visit(body)

    def visit_if(self, branch: If) -> None:
        self.visit(branch.cond)
        self.visit(branch.true_branch)
        self.visit(branch.false_branch)

    def visit_ref_create(self, ref: RefCreate) -> None:
        self.visit(ref.value)

    def visit_ref_read(self, ref: RefRead) -> None:
        self.visit(ref.ref)

    def visit_ref_write(self, ref: RefWrite) -> None:
        self.visit(ref.ref)
        self.visit(ref.value)

    def visit_match(self, match: Match) -> None:
        self.visit(match.data)
        for clause in match.clauses:
            for var in clause.lhs.variables():
                self.visit(var)
            self.visit(clause.rhs)

    def visit_constructor(self, constructor: Constructor) -> None:
        return None

    def visit_var(self, var: Var) -> None:
        return None

    def visit_constant(self, constant: Constant) -> None:
        return None

    def visit_global_var(self, var: GlobalVar) -> None:
        return None

    def visit_op(self, op: Op) -> None:
        return None


class ExprMutator(ExprFunctor[Expr]):
    """Rebuild a graph; a part that does not change comes back as the same object, and shared parts stay shared."""

    def apply(self, function: Function) -> Function:
        """A function rebuilt, which is a function again."""
        result = self.visit(function)
        assert isinstance(result, Function)
        return result

    def visit_binder(self, var: Var) -> Var:
        """What becomes of a variable where it is bound, which is a variable again."""
        result = self.visit(var)
        assert isinstance(result, Var)
        return result

    def visit_call(self, call: Call) -> Expr:
        op = self.visit(call.op)
        args = [self.visit(arg) for arg in call.args]
        if op is call.op and all(map(_is, args, call.args)):
            return call
        return Call(op, args, call.attrs, call.type_args, call.span)

    def visit_tuple(self, tup: Tuple) -> Expr:
        fields = [self.visit(field) for field in tup.fields]
        return tup if all(map(_is, fields, tup.fields)) else Tuple(fields, tup.span)

    def visit_tuple_getitem(self, get: TupleGetItem) -> Expr:
        value = self.visit(get.tuple_value)
        if value is get.tuple_value:
            return get
        return value.fields[get.index] if isinstance(value, Tuple) else TupleGetItem(value, get.index, get.span)

    def visit_function(self, function: Function) -> Expr:
        params = [self.visit_binder(param) for param in function.params]
        body = self.visit(function.body)
        if body is function.body and all(map(_is, params, function.params)):
            return function
        ret_type = function.declared_ret_type if all(map(_is, params, function.params)) else None
        return function.rebuilt(params, body, ret_type)

    def visit_let(self, let: Let) -> Expr:
        chain: list[tuple[Let, Var, Expr]] = []
        body: Expr = let
        while isinstance(body, Let):
            chain.append((body, self.visit_binder(body.var), self.visit(body.value)))
            body = body.body
        result = self.visit(body)
        for old, var, value in reversed(chain):
            same = var is old.var and value is old.value and result is old.body
            result = old if same else Let(var, value, result, old.span)
        return result

    def visit_if(self, branch: If) -> Expr:
        result = [self.visit(part) for part in (branch.cond, branch.true_branch, branch.false_branch)]
        same = all(map(_is, result, (branch.cond, branch.true_branch, branch.false_branch)))
        return branch if same else If(result[0], result[1], result[2], branch.span)

    def visit_ref_create(self, ref: RefCreate) -> Expr:
        value = self.visit(ref.value)
        return ref if value is ref.value else RefCreate(value, ref.span)

    def visit_ref_read(self, ref: RefRead) -> Expr:
        cell = self.visit(ref.ref)
        return ref if cell is ref.ref else RefRead(cell, ref.span)

    def visit_ref_write(self, ref: RefWrite) -> Expr:
        cell, value = self.visit(ref.ref), self.visit(ref.value)
        return ref if cell is ref.ref and value is ref.value else RefWrite(cell, value, ref.span)

    def visit_match(self, match: Match) -> Expr:
        data = self.visit(match.data)
        changed = [(clause.lhs.with_vars(self.visit_binder), self.visit(clause.rhs)) for clause in match.clauses]
        same = all(a is c.lhs and b is c.rhs for (a, b), c in zip(changed, match.clauses, strict=True))
        if data is match.data and same:
            return match
        return Match(data, [Clause(lhs, rhs) for lhs, rhs in changed], match.complete, match.span)

    def visit_constructor(self, constructor: Constructor) -> Expr:
        return constructor

    def visit_var(self, var: Var) -> Expr:
        return var

    def visit_constant(self, constant: Constant) -> Expr:
        return constant

    def visit_global_var(self, var: GlobalVar) -> Expr:
        return var  # type: ignore[return-value]  # no class of this layer, but a value of graphs

    def visit_op(self, op: Op) -> Expr:
        return op  # type: ignore[return-value]  # stands where a callee does


class _Bind(ExprMutator):
    def __init__(self, values: dict[Var, Expr]) -> None:
        super().__init__()
        self.values = values

    def visit_var(self, var: Var) -> Expr:
        return self.values.get(var, var)

    def visit_function(self, function: Function) -> Expr:
        params = [param for param in function.params if param not in self.values]
        body = self.visit(function.body)
        if body is function.body and len(params) == len(function.params):
            return function
        return function.rebuilt(params, body)


@overload
def bind(expression: Function, values: Mapping[Var, Expr]) -> Function: ...
@overload
def bind(expression: Expr, values: Mapping[Var, Expr]) -> Expr: ...
def bind(expression: Expr, values: Mapping[Var, Expr]) -> Expr:
    """The expression with variables replaced; a function loses the parameters that are."""
    return _Bind(dict(values)).visit(expression)


def _is(one: object, other: object) -> bool:
    return one is other


_METHODS: Final[dict[type, str]] = {
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
