"""ToANormalForm, ToBasicBlockNormalForm, ToGraphNormalForm: the same program with a let for everything, or for nothing.

    add(exp(%x), %y)    →    let %v0 = exp(%x);  let %v1 = add(%v0, %y);  %v1                A-normal form
    if (%c) { f(%0) } else { g(%0) }    →    let %v0 = %0;  if (%c) { f(%v0) } else { g(%v0) }    basic blocks

In A-normal form every value has a name, in the order of evaluation. In basic-block form only those have one that blocks
inside their own use: what is left are graphs without shared parts between blocks. In graph form there are no lets but
those that must be: functions that call themselves, and values that do something.

In A-normal form the values of a program with devices (`PlanDevices`) say theirs: a name takes a value out of the
`on_device` it stood in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.adt import Clause, Match
from loopwright.relay.analysis.devices import virtual_devices
from loopwright.relay.blocks import Scope, Scopes
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
from loopwright.relay.op.devices import on_device
from loopwright.relay.transform.functions.dead_code_elimination import Purity
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.typed_rewrite import is_call
from loopwright.relay.visitor import ExprMutator, post_order
from loopwright.target import VirtualDevice


class _Name(ExprMutator):
    """Give values names in their blocks; `everything`, or those that inner blocks use."""

    def __init__(self, scopes: Scopes, everything: bool, devices: Mapping[Expr, VirtualDevice]) -> None:
        super().__init__()
        self.devices = devices  # of a program that has some
        self.scopes = scopes
        self.everything = everything
        self.lists: dict[Scope, list[tuple[Var, Expr]]] = {scopes.root: []}
        self.count = 0

    def block(self, scope: Scope, body: Expr) -> Expr:
        """What a block evaluates, with the names it gives."""
        self.lists[scope] = []
        result = self.visit(body)
        for var, value in reversed(self.lists[scope]):
            result = Let(var, value, result)
        return result

    def _named(self, expression: Expr, value: Expr) -> Expr:
        if not self.everything and expression not in self.scopes.used_elsewhere:
            return value
        var = Var(f"v{self.count}")
        self.count += 1
        self.lists[self.scopes.of[expression]].append((var, self._marked(expression, value)))
        return var

    def _marked(self, expression: Expr, value: Expr) -> Expr:
        """A value that gets a name, and says its device."""
        device = self.devices.get(expression)
        if device is None or device.is_unconstrained or isinstance(value, (Function, Var)):
            return value
        return on_device(value, device, constrain_result=True)

    def visit_call(self, call: Call) -> Expr:
        if self._says_device(call):
            return self.visit(call.args[0])
        return self._named(call, super().visit_call(call))

    def _says_device(self, value: Expr) -> TypeGuard[Call]:
        """Whether all that a value does is to say where another is."""
        return bool(self.devices) and is_call(value, "on_device") and value.attrs.constrain_result

    def visit_constant(self, constant: Constant) -> Expr:
        return self._named(constant, constant) if self.everything else constant

    def visit_tuple(self, tup: Tuple) -> Expr:
        return self._named(tup, super().visit_tuple(tup))

    def visit_tuple_getitem(self, get: TupleGetItem) -> Expr:
        value = self.visit(get.tuple_value)
        return self._named(get, get if value is get.tuple_value else TupleGetItem(value, get.index, get.span))

    def visit_function(self, function: Function) -> Expr:
        return self._named(function, self.function(function))

    def function(self, function: Function) -> Function:
        if "Primitive" in function.attrs:
            return function
        body = self.block(self.scopes.body[function], function.body)
        if body is function.body:
            return function
        return function.rebuilt(function.params, body, function.declared_ret_type)

    def visit_if(self, branch: If) -> Expr:
        condition = self.visit(branch.cond)
        scopes = self.scopes.branches[branch]
        one, other = self.block(scopes[0], branch.true_branch), self.block(scopes[1], branch.false_branch)
        same = condition is branch.cond and one is branch.true_branch and other is branch.false_branch
        return self._named(branch, branch if same else If(condition, one, other, branch.span))

    def visit_match(self, match: Match) -> Expr:
        data = self.visit(match.data)
        pairs = zip(self.scopes.branches[match], match.clauses, strict=True)
        values = [self.block(scope, clause.rhs) for scope, clause in pairs]
        same = data is match.data and all(new is old.rhs for new, old in zip(values, match.clauses, strict=True))
        clauses = [Clause(old.lhs, new) for new, old in zip(values, match.clauses, strict=True)]
        return self._named(match, match if same else Match(data, clauses, match.complete, match.span))

    def visit_let(self, let: Let) -> Expr:
        body: Expr = let
        while isinstance(body, Let):
            # A function that calls itself is known by its own name.
            value: Expr = body.value
            value = self.function(value) if isinstance(value, Function) else self._value(value)
            self.lists[self.scopes.of[body]].append((body.var, value))
            body = body.body
        return self.visit(body)

    def _value(self, value: Expr) -> Expr:
        """The value of a let: it has a name already."""
        if self._says_device(value):
            return self._marked(value.args[0], self._value(value.args[0]))
        if isinstance(value, Call) and value not in self.memo_map and value not in self.scopes.used_elsewhere:
            for arg in value.args:
                self.visit(arg)
            return super().visit_call(value)
        return self.visit(value)

    def visit_ref_create(self, ref: RefCreate) -> Expr:
        return self._named(ref, super().visit_ref_create(ref))

    def visit_ref_read(self, ref: RefRead) -> Expr:
        return self._named(ref, super().visit_ref_read(ref))

    def visit_ref_write(self, ref: RefWrite) -> Expr:
        return self._named(ref, super().visit_ref_write(ref))


def _devices(root: Expr) -> Mapping[Expr, VirtualDevice]:
    """The device of each expression; of none where the program names none."""
    found = virtual_devices(None, root)
    return found if any(not device.is_unconstrained for device in found.values()) else {}


def _normal(name: str, everything: bool) -> GraphPass:
    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Name(Scopes(function), everything, _devices(function) if everything else {}).function(function)

    return GraphPass(change, PassInfo(1, name))


def ToANormalForm() -> GraphPass:
    """Give every value a name, in the order of evaluation."""
    return _normal("ToANormalForm", True)


def ToANormalFormExpr(expr: Expr) -> Expr:
    """An expression with a name for every value, in the order of evaluation."""
    if isinstance(expr, Function):
        return _Name(Scopes(expr), True, _devices(expr)).function(expr)
    return _Name(Scopes(closed := Function([], expr)), True, _devices(expr)).function(closed).body


def ToBasicBlockNormalForm() -> GraphPass:
    """Give names to values that blocks inside their own use."""
    return _normal("ToBasicBlockNormalForm", False)


class _Unname(ExprMutator):
    def __init__(self, purity: Purity) -> None:
        super().__init__()
        self.purity = purity

    def visit_let(self, let: Let) -> Expr:
        kept: list[tuple[Let, Expr]] = []
        body: Expr = let
        while isinstance(body, Let):
            value = self.visit(body.value)
            calls_itself = isinstance(body.value, Function) and any(each is body.var for each in post_order(body.value))
            if calls_itself or not self.purity.is_pure(body.value):
                kept.append((body, value))
            else:
                self.memo_map[body.var] = value
            body = body.body
        result = self.visit(body)
        for old, value in reversed(kept):
            same = value is old.value and result is old.body
            result = old if same else Let(old.var, value, result, old.span)
        return result


def ToGraphNormalForm() -> GraphPass:
    """Put values where their names are used: one object for all of them."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        purity = Purity(mod)
        purity.learn(function)
        return _Unname(purity).apply(function)

    return GraphPass(change, PassInfo(1, "ToGraphNormalForm"))
