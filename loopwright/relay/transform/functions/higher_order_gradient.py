"""The gradient of programs with choices, closures, cells and recursion: what to do backwards is noted as they run.

    a tensor x       becomes    (x, ref(zeros_like(x)))            its value, and its gradient so far
    let %y = exp(x)  becomes    let %y = (exp(x.0), ref(zeros));
                                let %before = ref_read(%back);
                                ref_write(%back, fn () { add what exp says of y's gradient to x's; %before() })

At the end the gradient of the result is set to ones, and what %back holds is called. Functions of the module that the
program uses become local ones of the same kind; functions that call each other in a circle have no gradient here.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.types import TupleType, Type
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
    TupleWrapper,
    Var,
    require_expr,
)
from loopwright.relay.graph_functions import graph_function
from loopwright.relay.op.registry import Op, make
from loopwright.relay.transform.functions.gradient_errors import NoGradient
from loopwright.relay.transform.functions.normal_forms import ToANormalForm
from loopwright.relay.types import FuncType, RefType, TensorType, TypeCall
from loopwright.relay.visitor import ExprMutator, post_order

_UNIT = TupleType(())


def paired(of: Type) -> Type:
    """The type of values that carry their gradients."""
    if isinstance(of, TensorType):
        return TupleType((of, RefType(of)))
    if isinstance(of, TupleType):
        return TupleType(tuple(paired(field) for field in of.fields))
    if isinstance(of, FuncType):
        return FuncType([paired(part) for part in of.arg_types], paired(of.ret_type), of.type_params)
    if isinstance(of, RefType):
        return RefType(paired(of.value))
    return TypeCall(of.func, [paired(part) for part in of.args]) if isinstance(of, TypeCall) else of


class _Block:
    """Lets, one after the other."""

    def __init__(self) -> None:
        self.lets: list[tuple[Var, Expr]] = []

    def let(self, value: Expr, of: Type | None = None, name: str = "v") -> Var:
        var = Var(name, of)
        var.checked_type_ = of
        self.lets.append((var, value))
        return var

    def ending(self, result: Expr) -> Expr:
        for var, value in reversed(self.lets):
            result = Let(var, value, result)
        return result


class _Replace(ExprMutator):
    """A call that a rule wrote once more is the value that was computed."""

    def __init__(self, call: Call, value: Var) -> None:
        super().__init__()
        self.memo_map[call] = value


def _value(pair: Expr, of: Type) -> Expr:
    """What a value with its gradients is without them."""
    if isinstance(of, TensorType):
        return TupleGetItem(pair, 0)
    if isinstance(of, TupleType):
        return Tuple([_value(TupleGetItem(pair, k), field) for k, field in enumerate(of.fields)])
    return pair


def _gradient(pair: Expr, of: Type) -> Expr:
    """The gradient so far."""
    if isinstance(of, TupleType):
        return Tuple([_gradient(TupleGetItem(pair, k), field) for k, field in enumerate(of.fields)])
    if not isinstance(of, TensorType):
        raise NoGradient(f"a value of type {of}")
    return RefRead(TupleGetItem(pair, 1))


def _begun(value: Expr, of: Type) -> Expr:
    """A value with a gradient of zeros."""
    if isinstance(of, TensorType):
        return Tuple([value, RefCreate(make("zeros_like", value))])
    if isinstance(of, TupleType):
        return Tuple([_begun(TupleGetItem(value, k), field) for k, field in enumerate(of.fields)])
    return value


def _has_floats(of: Type) -> bool:
    if isinstance(of, TupleType):
        return any(map(_has_floats, of.fields))
    return isinstance(of, TensorType) and of.dtype.is_float


class _Reverse:
    """Rewrites blocks in A-normal form; `back` is the cell of what is to be done backwards."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.back = Var("back", RefType(FuncType([], _UNIT)))
        self.names: dict[Expr, Expr] = {}
        self.globals: dict[str, Var] = {}
        self.outside = _Block()  # the functions of the module
        self.at_work: list[str] = []

    def block(self, body: Expr) -> Expr:
        block = _Block()
        while isinstance(body, Let):
            if isinstance(body.value, Function):  # which may call itself
                annotated = body.var.type_annotation
                new = Var(body.var.name_hint, None if annotated is None else paired(annotated))
                self.names[body.var] = new
                block.lets.append((new, self.function(body.value)))
            else:
                self.names[body.var] = block.let(self.expression(body.value, block), None, body.var.name_hint)
            body = body.body
        return block.ending(self.expression(body, block))

    def function(self, function: Function) -> Function:
        params = [Var(param.name_hint, paired(param.checked_type)) for param in function.params]
        self.names.update(zip(function.params, params, strict=True))
        of = function.checked_type
        result = paired(of.ret_type) if isinstance(of, FuncType) else None
        return Function(params, self.block(function.body), result, function.type_params)

    def atom(self, expression: Expr) -> Expr:
        if isinstance(expression, GlobalVar):
            return self.named(expression)
        if isinstance(expression, Constant):
            return _begun(expression, expression.checked_type)
        return self.names.get(expression, expression)

    def named(self, var: GlobalVar) -> Expr:
        if var.name in self.at_work and self.at_work[-1] != var.name:
            raise NoGradient(f"@{var.name}, which functions that it calls call again,")
        if var.name not in self.globals:
            self.globals[var.name] = new = Var(var.name)
            self.at_work.append(var.name)
            function = self.function(graph_function(self.mod, var))
            self.at_work.pop()
            self.outside.lets.append((new, function))
        return self.globals[var.name]

    def expression(self, expression: Expr, block: _Block) -> Expr:
        if isinstance(expression, Call):
            if isinstance(expression.op, Op):
                return self.operator(expression, block)
            return Call(self.atom(expression.op), [self.atom(arg) for arg in expression.args])
        if isinstance(expression, Tuple):
            return Tuple([self.atom(field) for field in expression.fields])
        if isinstance(expression, TupleGetItem):
            return TupleGetItem(self.atom(expression.tuple_value), expression.index)
        if isinstance(expression, Function):
            return self.function(expression)
        if isinstance(expression, If):
            yes, no = self.block(expression.true_branch), self.block(expression.false_branch)
            return If(TupleGetItem(self.atom(expression.cond), 0), yes, no)
        if isinstance(expression, Match):
            return self.match(expression)
        if isinstance(expression, RefCreate):
            return RefCreate(self.atom(expression.value))
        if isinstance(expression, RefRead):
            return RefRead(self.atom(expression.ref))
        if isinstance(expression, RefWrite):
            return RefWrite(self.atom(expression.ref), self.atom(expression.value))
        return self.atom(expression)

    def match(self, match: Match) -> Match:
        def renamed(var: Var) -> Var:
            new = Var(var.name_hint, None if var.type_annotation is None else paired(var.type_annotation))
            self.names[var] = new
            return new

        clauses = [Clause(clause.lhs.with_vars(renamed), self.block(clause.rhs)) for clause in match.clauses]
        return Match(self.atom(match.data), clauses, match.complete)

    def operator(self, call: Call, block: _Block) -> Expr:
        types = [arg.checked_type for arg in call.args]
        pairs = [block.let(self.atom(arg)) for arg in call.args]
        args = [block.let(_value(pair, of), of, "x") for pair, of in zip(pairs, types, strict=True)]
        of = call.checked_type
        again = Call(call.op, args, call.attrs, call.type_args)
        again.checked_type_ = of
        value = block.let(again, of, "y")
        pair = block.let(_begun(value, of))
        rule = call.op.extra.get("FPrimalGradient") or call.attrs.gradient
        if not _has_floats(of) or not any(map(_has_floats, types)):
            return pair
        if rule is None:
            raise NoGradient(call.op.name)
        before = block.let(RefRead(self.back), None, "before")
        inner = _Block()
        grad = inner.let(_gradient(pair, of), of, "grad")
        said = [_Replace(again, value).visit(one) for one in _expressions(rule(again, grad))]
        for one, target, kind in zip(said, pairs, types, strict=True):
            _add(inner, target, inner.let(one), kind)
        block.let(RefWrite(self.back, Function([], inner.ending(Call(before, [])), _UNIT)), None, "_")
        return pair


def _expressions(grads: Sequence[Expr | TupleWrapper]) -> list[Expr]:
    return [require_expr(grad, "a gradient") for grad in grads]


def _add(block: _Block, pair: Expr, grad: Expr, of: Type) -> None:
    """Add to the gradient of a value what one use of it says."""
    if isinstance(of, TupleType):
        for k, field in enumerate(of.fields):
            _add(block, TupleGetItem(pair, k), TupleGetItem(grad, k), field)
    elif _has_floats(of):
        cell = block.let(TupleGetItem(pair, 1))
        block.let(RefWrite(cell, make("add", block.let(RefRead(cell), of), grad)), None, "_")


def _set_to_ones(block: _Block, pair: Expr, of: Type) -> None:
    if isinstance(of, TupleType):
        for k, field in enumerate(of.fields):
            _set_to_ones(block, TupleGetItem(pair, k), field)
    elif isinstance(of, TensorType):
        block.let(RefWrite(TupleGetItem(pair, 1), make("ones_like", TupleGetItem(pair, 0))), None, "_")
    else:
        raise NoGradient(f"a result of type {of}")


def with_noted_gradients(function: Function, mod: IRModule) -> Function:
    """The function that returns (result, (gradient of each parameter …)), whatever it does on the way."""
    changed = mod.copy()
    changed["main"] = function  # type: ignore[assignment]
    changed = ToANormalForm()(changed)
    plain = graph_function(changed)
    of = plain.checked_type
    assert isinstance(of, FuncType)
    reverse = _Reverse(changed)
    params = [Var(param.name_hint, param.checked_type) for param in plain.params]
    main = reverse.function(plain)
    if any(isinstance(each, Constructor) and _holds_tensors(each) for each in post_order(main)):
        raise NoGradient("a data type whose cases hold tensors of a fixed type")
    block = _Block()
    block.lets.append((reverse.back, RefCreate(Function([], Tuple([]), _UNIT))))
    block.lets += reverse.outside.lets
    whole = block.let(main, None, "forward")
    pairs = [block.let(_begun(param, part)) for param, part in zip(params, of.arg_types, strict=True)]
    result = block.let(Call(whole, pairs), None, "result")
    _set_to_ones(block, result, of.ret_type)
    block.let(Call(RefRead(reverse.back), []), None, "_")
    grads = [_gradient(pair, part) for pair, part in zip(pairs, of.arg_types, strict=True)]
    return Function(params, block.ending(Tuple([_value(result, of.ret_type), Tuple(grads)])))


def _holds_tensors(constructor: Constructor) -> bool:
    return any(isinstance(field, TensorType) for field in constructor.inputs)
