"""The variables of a graph: those it binds and those it does not.

    free_vars(x + y)                 [x, y]
    free_vars(Function([x], x + y))  [y]

Each is listed once, in the order in which they are met: what is computed first comes first.
"""

from __future__ import annotations

from loopwright.ir.types import TupleType, Type
from loopwright.relay.adt import Match
from loopwright.relay.expr import Call, Expr, Function, Let, Var
from loopwright.relay.types import FuncType, RefType, TypeCall, TypeVar
from loopwright.relay.visitor import post_order


def all_vars(expression: Expr) -> list[Var]:
    """Every variable, bound or free."""
    return [result for result in post_order(expression) if isinstance(result, Var)]


def bound_vars(expression: Expr) -> list[Var]:
    """The variables that are parameters of functions, or named by a let."""
    bound = _bound(expression)
    return [var for var in all_vars(expression) if var in bound]


def free_vars(expression: Expr) -> list[Var]:
    """The variables that nothing in the expression binds."""
    bound = _bound(expression)
    return [var for var in all_vars(expression) if var not in bound]


def _bound(expression: Expr) -> set[Var]:
    result: set[Var] = set()
    for part in post_order(expression):
        if isinstance(part, Function):
            result.update(part.params)
        elif isinstance(part, Let):
            result.add(part.var)
        elif isinstance(part, Match):
            result.update(var for clause in part.clauses for var in clause.lhs.variables())
    return result


def all_type_vars(expression: Expr, mod: object = None) -> list[TypeVar]:
    """Every type variable that stands in the expression, or in a type."""
    return _type_vars(expression)[0]


def bound_type_vars(expression: Expr, mod: object = None) -> list[TypeVar]:
    """The type variables that functions, or function types, bind."""
    result, bound = _type_vars(expression)
    return [var for var in result if var in bound]


def free_type_vars(expression: Expr, mod: object = None) -> list[TypeVar]:
    """The type variables that nothing in the expression, or in the type, binds."""
    result, bound = _type_vars(expression)
    return [var for var in result if var not in bound]


def _type_vars(root: Expr) -> tuple[list[TypeVar], set[Type]]:
    result: dict[TypeVar, None] = {}  # a set that keeps its order
    bound: set[Type] = set()

    def meet(of: Type | None) -> None:
        if isinstance(of, TypeVar):
            result.setdefault(of)
        elif isinstance(of, TupleType):
            for field in of.fields:
                meet(field)
        elif isinstance(of, RefType):
            meet(of.value)
        elif isinstance(of, TypeCall):
            for part in of.args:
                meet(part)
        elif isinstance(of, FuncType):
            bound.update(of.type_params)
            for part in (*of.type_params, *of.arg_types, of.ret_type):
                meet(part)

    if isinstance(root, Type):
        meet(root)
        return list(result), bound
    for expression in post_order(root):
        if isinstance(expression, Var):
            meet(expression.type_annotation)
        elif isinstance(expression, Call):
            for argument in expression.type_args:
                meet(argument)
        elif isinstance(expression, Function):
            bound.update(expression.type_params)
            for part in (*expression.type_params, expression.declared_ret_type):
                meet(part)
    return list(result), bound
