"""ToCPS: functions do not return, they call what is to be done next.

    fn (%x) { %f(%f(%x)) }    →    fn [R](%x, %k: fn (T) -> R) -> R { %f(%x, fn (%v) { %f(%v, %k) }) }

Operators, tuples, cells and data are computed in place; calls of functions, choices and matches are given the rest of
the program. Functions of the module that are used get a second form (`f_cps`). `un_cps` gives such a function the
identity as what is next, so that it can be called as before.
"""

from __future__ import annotations

from collections.abc import Callable

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.types import TupleType, Type
from loopwright.relay.adt import Clause, Constructor, Match
from loopwright.relay.expr import Call, Expr, Function, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var
from loopwright.relay.graph_functions import graph_function
from loopwright.relay.infer_type import infer_module
from loopwright.relay.op.registry import Op
from loopwright.relay.transform.functions.normal_forms import ToANormalForm
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.types import FuncType, RefType, TypeCall, TypeVar

_Next = Callable[[Expr], Expr]  # the rest of a program, as a function of a value's name


class _Cps:
    """One program; the functions of the module that were met have their second forms in `names`."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.names: dict[str, GlobalVar] = {}
        self.made: dict[GlobalVar, Function] = {}
        self.answer = TypeVar("R")
        self.vars: dict[Expr, Expr] = {}

    def type(self, of: Type) -> Type:
        if isinstance(of, TupleType):
            return TupleType(tuple(self.type(field) for field in of.fields))
        if isinstance(of, RefType):
            return RefType(self.type(of.value))
        if isinstance(of, TypeCall):
            return TypeCall(of.func, [self.type(part) for part in of.args])
        if isinstance(of, FuncType):
            after = FuncType([self.type(of.ret_type)], self.answer)
            return FuncType([*map(self.type, of.arg_types), after], self.answer, of.type_params)
        return of

    def function(self, function: Function, own_answer: bool = False) -> Function:
        """A function in the new form; with an answer of its own type, if it is no part of another."""
        outer = self.answer
        if own_answer:
            self.answer = TypeVar("R")
        of = function.checked_type
        assert isinstance(of, FuncType)
        params = [self.variable(param) for param in function.params]
        after = Var("k", FuncType([self.type(of.ret_type)], self.answer))
        body = self.block(function.body, lambda value: Call(after, [value]))
        types = [*function.type_params, *([self.answer] if own_answer else [])]
        result = Function([*params, after], body, self.answer, types, function.attrs)
        self.answer = outer
        return result

    def variable(self, var: Var) -> Var:
        of = var.type_annotation if var.type_annotation is not None else var.checked_type_
        result = Var(var.name_hint, None if of is None else self.type(of))
        self.vars[var] = result
        return result

    def atom(self, expression: Expr) -> Expr:
        if isinstance(expression, GlobalVar):
            return self.named(expression)
        return self.vars.get(expression, expression)

    def named(self, var: GlobalVar) -> GlobalVar:
        if var.name not in self.names:
            new = self.names[var.name] = GlobalVar(f"{var.name}_cps")
            if new.name not in self.mod:
                self.made[new] = self.function(graph_function(self.mod, var), own_answer=True)
        return self.names[var.name]

    def block(self, body: Expr, after: _Next) -> Expr:
        if not isinstance(body, Let):
            return self.value(body, lambda value: after(self.atom(value)), None)
        var, rest = body.var, body.body
        if isinstance(body.value, Function):
            of = body.value.checked_type
            new = self.vars[var] = Var(var.name_hint, self.type(of))
            return Let(new, self.function(body.value), self.block(rest, after))
        return self.value(body.value, lambda _: self.block(rest, after), var)

    def value(self, value: Expr, after: _Next, known_as: Var | None) -> Expr:
        """A value, and then the rest; the rest knows it as `known_as`, where it has a name."""
        if isinstance(value, Call) and not isinstance(value.op, (Op, Constructor)):
            return Call(self.atom(value.op), [*map(self.atom, value.args), self.rest(value, after, known_as)])
        if isinstance(value, (If, Match)):
            follow = Var("next")
            body = self.branches(value, lambda result: Call(follow, [result]))
            return Let(follow, self.rest(value, after, known_as), body)
        if known_as is None:
            return after(value)
        return Let(self.variable(known_as), self.direct(value), after(known_as))

    def rest(self, value: Expr, after: _Next, known_as: Var | None) -> Function:
        var = Var("v") if known_as is None else known_as
        of = value.checked_type
        new = Var(var.name_hint, self.type(of))
        self.vars[var] = new
        return Function([new], after(var), self.answer)

    def branches(self, value: If | Match, after: _Next) -> Expr:
        if isinstance(value, If):
            yes, no = self.block(value.true_branch, after), self.block(value.false_branch, after)
            return If(self.atom(value.cond), yes, no)
        cases = [(clause.lhs.with_vars(self.variable), self.block(clause.rhs, after)) for clause in value.clauses]
        return Match(self.atom(value.data), [Clause(lhs, rhs) for lhs, rhs in cases], value.complete)

    def direct(self, value: Expr) -> Expr:
        """What is computed in place."""
        if isinstance(value, Call):
            return Call(value.op, [self.atom(arg) for arg in value.args], value.attrs, (), value.span)
        if isinstance(value, Tuple):
            return Tuple([self.atom(field) for field in value.fields])
        if isinstance(value, TupleGetItem):
            return TupleGetItem(self.atom(value.tuple_value), value.index)
        if isinstance(value, RefCreate):
            return RefCreate(self.atom(value.value))
        if isinstance(value, RefRead):
            return RefRead(self.atom(value.ref))
        if isinstance(value, RefWrite):
            return RefWrite(self.atom(value.ref), self.atom(value.value))
        return self.atom(value)


def to_cps(func: Function, mod: IRModule | None = None) -> Function:
    """The function in the new form; functions of the module that it uses are added to it in theirs."""
    module = IRModule() if mod is None else mod
    named = module.copy()
    named["the_function_itself"] = func  # type: ignore[assignment]
    named = ToANormalForm()(named)
    work = _Cps(named)
    result = work.function(graph_function(named, "the_function_itself"), own_answer=True)
    for var, function in work.made.items():
        module[var] = function  # type: ignore[assignment]
    return result


def un_cps(func: Function) -> Function:
    """A function in the new form as one that returns."""
    after = func.params[-1].type_annotation
    assert isinstance(after, FuncType)
    params = [Var(param.name_hint, param.type_annotation) for param in func.params[:-1]]
    types = [of for of in func.type_params if of is not func.declared_ret_type]
    value = Var("x", after.arg_types[0])
    identity = Function([value], value, after.arg_types[0])
    return Function(params, Call(func, [*params, identity]), after.arg_types[0], types)


def ToCPS() -> GraphPass:
    """Bring functions into the form in which nothing returns."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        added = mod.copy()
        result = to_cps(function, added)
        for var in added.get_global_vars():
            if var.name not in mod:
                mod[var] = added[var]
        infer_module(mod)
        return result

    return GraphPass(change, PassInfo(1, "ToCPS"))
