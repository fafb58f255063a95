"""clone: a copy of an expression whose own variables are new, so that it may stand in a graph twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import overload

from loopwright.ir.types import Type
from loopwright.relay.adt import Match
from loopwright.relay.expr import Expr, Function, Let, Var
from loopwright.relay.type_arguments import filled
from loopwright.relay.types import TypeVar
from loopwright.relay.visitor import ExprMutator


class _Clone(ExprMutator):
    def __init__(self, types: Mapping[TypeVar, Type] | None = None) -> None:
        super().__init__()
        self.types = types or {}  # what type variables are here

    def visit_let(self, let: Let) -> Expr:
        chain: list[tuple[Var, Expr, Let]] = []
        body: Expr = let
        while isinstance(body, Let):
            var = self._new(body.var)  # before the value: a function may call itself
            chain.append((var, self.visit(body.value), body))
            body = body.body
        result = self.visit(body)
        for var, value, old in reversed(chain):
            result = Let(var, value, result, old.span)
        return result

    def visit_function(self, function: Function) -> Expr:
        params = [self._new(param) for param in function.params]
        body = self.visit(function.body)
        types = [of for of in function.type_params if of not in self.types]
        result = Function(params, body, self._type(function.declared_ret_type), types, function.attrs, function.span)
        result.virtual_device_ = function.virtual_device_
        return result

    def visit_match(self, match: Match) -> Expr:
        for clause in match.clauses:
            for var in clause.lhs.variables():
                self._new(var)
        return super().visit_match(match)

    def _new(self, var: Var) -> Var:
        result = Var(var.name_hint, self._type(var.type_annotation), var.span)
        result.virtual_device_ = var.virtual_device_
        self.memo_map[var] = result
        return result

    def _type(self, of: Type | None) -> Type | None:
        return filled(of, self.types) if self.types and of is not None else of


@overload
def clone(expression: Function) -> Function: ...
@overload
def clone(expression: Expr) -> Expr: ...
def clone(expression: Expr) -> Expr:
    """The expression with new variables in the place of those it binds."""
    return _Clone().visit(expression)


def applied(function: Function, args: Iterable[Expr], types: Mapping[TypeVar, Type] | None = None) -> Expr:
    """The body of a function with its parameters replaced: what a call of it is; `types` are its type arguments."""
    from loopwright.relay.visitor import bind

    copy = _Clone(types).apply(function)
    return bind(copy.body, dict(zip(copy.params, args, strict=True)))
