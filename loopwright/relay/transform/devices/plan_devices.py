"""PlanDevices: every value has a device, and a value that is used on another device is copied.

    on_device(add(%a, %b), cpu)  used by  subtract      →   %0 = add(%a, %b)
                                                            %1 = on_device(%0, cpu, constrain_result=True)
                                                            %2 = device_copy(%1, cpu, cuda)
                                                            subtract(%2, …)

What the program leaves open is decided so: the result of a function is on the device for which kernels are compiled by
default, its parameters where its result is, and any other value where it is used. In the program that comes out,
parameters and results of functions have devices; the body of a function is where its result is, but for what stands in
`on_device(…, constrain_result=True)`; the value of a `let` always does. Planning it again changes nothing.
"""

from __future__ import annotations

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.passes import ModulePass
from loopwright.relay.adt import Clause, Constructor, Match
from loopwright.relay.expr import Call, Expr, Function, If, Let, Tuple, TupleGetItem, Var
from loopwright.relay.graph_functions import graph_functions
from loopwright.relay.infer_type import infer_module
from loopwright.relay.op.devices import device_copy, on_device, placed
from loopwright.relay.op.registry import Op
from loopwright.relay.transform.devices.constraints import Constraints, is_closed, open_parts
from loopwright.relay.transform.typed_rewrite import is_call
from loopwright.relay.visitor import ExprMutator, bind
from loopwright.target import CompilationConfig, VirtualDevice

_NEVER_MARKED = (Var, Function, GlobalVar, Op, Constructor)  # which have devices of their own, or none


class _Prepared(ExprMutator):
    """`on_device` where it says most: on fields of tuples, and for the results of functions."""

    def visit_tuple_getitem(self, get: TupleGetItem) -> Expr:
        value = self.visit(get.tuple_value)
        if is_call(value, "on_device") and not value.attrs.constrain_result:  # a field is copied, not the tuple
            return Call(value.op, [TupleGetItem(value.args[0], get.index, get.span)], value.attrs)
        return get if value is get.tuple_value else TupleGetItem(value, get.index, get.span)

    def visit_function(self, function: Function) -> Expr:
        if is_closed(function):
            return function
        changed = super().visit_function(function)
        assert isinstance(changed, Function)
        body = _result_marked(changed.body)
        if body is changed.body:
            return changed
        return changed.rebuilt(changed.params, body, changed.declared_ret_type)


def _result_marked(body: Expr) -> Expr:
    """What is computed last in a function is its result: the device of the one is that of the other."""
    chain: list[Let] = []
    while isinstance(body, Let):
        chain.append(body)
        body = body.body
    if not is_call(body, "on_device") or not body.attrs.constrain_body or body.attrs.constrain_result:
        return chain[0] if chain else body
    result: Expr = Call(body.op, body.args, body.attrs.with_(constrain_result=True), span=body.span)
    for let in reversed(chain):
        result = Let(let.var, let.value, result, let.span)
    return result


def _decide(function: Function, places: Constraints) -> None:
    """Give every value of a function a device, from its result to its inputs."""
    default = places.config.default_primitive_virtual_device
    places.place(function).fill(default)
    stack: list[Expr] = [function]
    entered: set[Expr] = {function}
    while stack:
        expression = stack.pop()
        device = places.device(expression)
        for part in open_parts(expression):
            if part not in entered:
                entered.add(part)
                places.place(part).fill(device)
                stack.append(part)


class _Captured(ExprMutator):
    """The program with its devices written into it."""

    def __init__(self, places: Constraints) -> None:
        super().__init__()
        self.places = places

    def used(self, part: Expr, around: VirtualDevice, wanted: VirtualDevice | None = None) -> Expr:
        """A part of an expression on device `around`, which wants it on `wanted` (there, if nothing else is said)."""
        wanted = wanted or around
        device = self.places.device(part)
        result = _marked(self.visit(part), device) if device != around else self.visit(part)
        if wanted == device or not self._has_one_place(part):
            return result
        result = device_copy(result, device, wanted)
        return _marked(result, wanted) if wanted != around else result

    def _has_one_place(self, part: Expr) -> bool:
        return self.places.place(part).root.result is None

    def visit_call(self, call: Call) -> Expr:
        device = self.places.device(call)
        if is_call(call, "on_device"):
            return self.used(call.args[0], device)
        if is_call(call, "device_copy"):
            source = self.places.config.canonical(call.attrs.src_virtual_device)
            source = source if source.is_decided else self.places.device(call.args[0])
            inner = self.used(call.args[0], device, source)
            return inner if source == device else device_copy(inner, source, device)
        op = self.visit(call.op)
        if isinstance(call.op, Op):
            places = self.places.inputs_of(call)
            pairs = zip(call.args, places, strict=True)
            wanted = [self.places.device(arg) if place is None else place.device for arg, place in pairs]
        else:
            params = self.places.place(call.op).root.params
            wanted = [param.device for param in params] or [device] * len(call.args)
        args = [self.used(arg, device, one) for arg, one in zip(call.args, wanted, strict=True)]
        if op is call.op and all(one is other for one, other in zip(args, call.args, strict=True)):
            return call
        return Call(op, args, call.attrs, call.type_args, call.span)

    def visit_tuple(self, tup: Tuple) -> Expr:
        device = self.places.device(tup)
        fields = [self.used(field, device) for field in tup.fields]
        return tup if all(a is b for a, b in zip(fields, tup.fields, strict=True)) else Tuple(fields, tup.span)

    def visit_function(self, function: Function) -> Expr:
        device = self.places.device(function)
        params = [placed(param, self.places.device(param)) for param in function.params]
        named = dict(zip(function.params, params, strict=True))
        if is_closed(function):
            body = bind(function.body, named)
        else:
            for param, new in named.items():
                self.memo_map[param] = new
            body = self.used(function.body, device)
        result = function.rebuilt(params, body, function.declared_ret_type)
        result.virtual_device_ = device
        return result

    def visit_let(self, let: Let) -> Expr:
        chain: list[tuple[Let, Expr]] = []
        body: Expr = let
        device = self.places.device(let)
        while isinstance(body, Let):
            where = self.places.device(body.var)
            chain.append((body, _marked(self.used(body.value, device, where), where)))
            body = body.body
        result = self.used(body, device)
        for one, value in reversed(chain):
            result = Let(one.var, value, result, one.span)
        return result

    def visit_if(self, branch: If) -> Expr:
        device = self.places.device(branch)
        condition = self.used(branch.cond, device)
        return If(condition, self.used(branch.true_branch, device), self.used(branch.false_branch, device), branch.span)

    def visit_match(self, match: Match) -> Expr:
        device = self.places.device(match)
        clauses = [Clause(clause.lhs, self.used(clause.rhs, device)) for clause in match.clauses]
        return Match(self.used(match.data, device), clauses, match.complete)


def _marked(expression: Expr, device: VirtualDevice) -> Expr:
    """An expression that says its device."""
    if isinstance(expression, _NEVER_MARKED) or is_call(expression, "on_device"):
        return expression
    return on_device(expression, device, constrain_result=True)


def plan_devices(mod: IRModule, config: CompilationConfig) -> IRModule:
    """The module with a device for every value; DevicesDisagree where there is no such plan."""
    prepared = infer_module(mod.map_functions(lambda one: _Prepared().visit(one) if isinstance(one, Function) else one))
    functions = dict.fromkeys(one for one in graph_functions(prepared).values() if not is_closed(one))
    places = Constraints(prepared, config)
    for function in functions:
        places.read(function)
    places.grant_wishes()
    for function in functions:
        _decide(function, places)
    captured = _Captured(places)
    return infer_module(prepared.map_functions(lambda one: captured.visit(one) if one in functions else one))


def PlanDevices(config: CompilationConfig) -> ModulePass:
    """Decide a device for every value, for the targets of `config`, and copy values between devices."""

    def run(mod: IRModule, context: PassContext) -> IRModule:
        return plan_devices(mod, config)

    return ModulePass(run, PassInfo(0, "PlanDevices"))
