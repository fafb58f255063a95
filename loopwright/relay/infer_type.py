"""Type inference: from the types of the parameters to the type of everything.

    mod = InferType()(mod);  mod["main"].body.checked_type

Types flow from inputs to results: each operator says what it returns for what it is given (`Operator.infer`).
Two things flow back. A parameter without a type (a weight) gets it from the operator that uses it
(`Operator.infer_inputs`). And a function that calls itself (a loop) gets the type of its result from the branch that
does not.
"""

from __future__ import annotations

from collections.abc import Callable

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.types import TupleType, Type
from loopwright.relay.adt import Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from loopwright.relay.errors import TypeMismatch
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
from loopwright.relay.graph_functions import graph_function
from loopwright.relay.op.registry import Op
from loopwright.relay.type_arguments import filled, learned_from, opened
from loopwright.relay.types import (
    AnyDim,
    FuncType,
    IncompleteType,
    RefType,
    TensorType,
    TypeCall,
    TypeVar,
    dims_differ,
    is_any,
    same_dim,
    type_text,
)
from loopwright.relay.visitor import ExprFunctor
from loopwright.runtime.errors import LoopwrightError

_UNKNOWN = IncompleteType()


class Inference(ExprFunctor[Type]):
    """The type of each expression; written into it as well.

    One that is kept answers for a graph that grows (`visit`), at the cost of what is new in it.
    """

    def __init__(self, global_type: Callable[[GlobalVar], Type] | None = None) -> None:
        super().__init__()
        self.global_type = global_type or _no_module
        self.waiting: dict[Var, Function] = {}  # functions of which too little is known before they are called

    def _enter(self, expression: Expr) -> Type:
        result = super()._enter(expression)
        if not isinstance(expression, (Op, GlobalVar)):
            expression.checked_type_ = result
        return result

    def learn(self, var: Var, learned: Type) -> None:
        """A variable without a type has this one."""
        self.memo_map[var] = learned
        var.checked_type_ = learned

    def visit_var(self, var: Var) -> Type:
        if var.type_annotation is not None:
            return var.type_annotation
        # What was learned from a use that a pass has since replaced is still so.
        return var.checked_type_ if var.checked_type_ is not None else _UNKNOWN

    def visit_constant(self, constant: Constant) -> Type:
        return constant.checked_type

    def visit_global_var(self, var: GlobalVar) -> Type:
        return self.global_type(var)

    def visit_op(self, op: Op) -> Type:
        return _UNKNOWN

    def visit_tuple(self, tup: Tuple) -> Type:
        return TupleType(tuple(self.visit(field) for field in tup.fields))

    def visit_tuple_getitem(self, get: TupleGetItem) -> Type:
        of = self.visit(get.tuple_value)
        if isinstance(of, IncompleteType):
            return of
        if not isinstance(of, TupleType):
            raise TypeMismatch(f"field {get.index} was asked of {type_text(of)}, which is no tuple", at=None)
        if not 0 <= get.index < len(of.fields):
            raise TypeMismatch(f"field {get.index} was asked of a tuple of {len(of.fields)}: {type_text(of)}")
        return of.fields[get.index]

    def visit_call(self, call: Call) -> Type:
        if isinstance(call.op, Op):
            return self._of_operator(call)
        callee = self.visit(call.op)
        args = [self.visit(arg) for arg in call.args]
        if isinstance(callee, IncompleteType):
            if isinstance(call.op, Var):
                self.learn(call.op, FuncType(args, _UNKNOWN))
            return _UNKNOWN
        if not isinstance(callee, FuncType):
            raise TypeMismatch(f"something of type {type_text(callee)} is called, which is no function")
        if len(args) != len(callee.arg_types):
            raise TypeMismatch(f"{len(args)} arguments are given to a function of {len(callee.arg_types)}")
        if callee.type_params:
            callee = self._for_these(callee, call, args)
        if isinstance(call.op, Var) and call.op in self.waiting:
            callee = self._finished(call.op, callee, args)
        for index, (given, wanted) in enumerate(zip(args, callee.arg_types, strict=True)):
            arg = call.args[index]
            if isinstance(given, IncompleteType) and isinstance(arg, Var):
                self.learn(arg, wanted)
            elif not fits(given, wanted):
                raise TypeMismatch(
                    f"argument {index} of a call is unable to show the following types match: "
                    f"{type_text(given)} is given, {type_text(wanted)} is wanted"
                )
        return callee.ret_type

    def _for_these(self, callee: FuncType, call: Call, args: list[Type]) -> FuncType:
        """A polymorphic function for these arguments; `args` learns what that says of functions among them."""
        given_types = zip(callee.type_params, call.type_args, strict=False)
        known = {param: of for param, of in given_types if isinstance(param, TypeVar)}
        for given, wanted in zip(args, callee.arg_types, strict=True):
            learned_from(wanted, given, known)
        for index, arg in enumerate(call.args):
            wanted = filled(callee.arg_types[index], known)
            if isinstance(arg, Function) and isinstance(wanted, FuncType) and len(arg.params) == len(wanted.arg_types):
                untyped = [param for param in arg.params if isinstance(self.memo_map[param], IncompleteType)]
                if not untyped:
                    continue
                for param, of in zip(arg.params, wanted.arg_types, strict=True):
                    if param in untyped:
                        self.learn(param, opened(of, callee.type_params))
                self._forget(arg)
                args[index] = self.visit(arg)
                learned_from(callee.arg_types[index], args[index], known)
        whole = [opened(filled(of, known), callee.type_params) for of in (*callee.arg_types, callee.ret_type)]
        return FuncType(whole[:-1], whole[-1])

    def visit_constructor(self, constructor: Constructor) -> Type:
        data = constructor.definition
        return FuncType(constructor.inputs, data.type, data.type_vars)

    def visit_match(self, match: Match) -> Type:
        of = self.visit(match.data)
        result: Type = _UNKNOWN
        for clause in match.clauses:
            self._bind(clause.lhs, of)
            result = joined(result, self.visit(clause.rhs), "clauses of a match")
        return result

    def _bind(self, pattern: Pattern, of: Type) -> None:
        """The variables of a pattern get the types that a value of type `of` gives them."""
        if isinstance(pattern, PatternVar):
            annotated = pattern.var.type_annotation
            self.learn(pattern.var, annotated if annotated is not None else of)
        elif isinstance(pattern, PatternConstructor):
            case, data = pattern.constructor, pattern.constructor.definition
            if len(pattern.patterns) != len(case.inputs):
                raise TypeMismatch(
                    f"the pattern {pattern!r} has {len(pattern.patterns)} fields, and "
                    f"{case.name_hint} has {len(case.inputs)}"
                )
            if not isinstance(of, IncompleteType) and not (isinstance(of, TypeCall) and of.func is data.header):
                raise TypeMismatch(
                    f"the pattern {pattern!r} is unable to show the following types match: it is of {data.header!r}, "
                    f"and the value of {type_text(of)}"
                )
            given = of.args if isinstance(of, TypeCall) else ()
            known = dict(zip(data.type_vars, given, strict=False))
            for inner, wanted in zip(pattern.patterns, case.inputs, strict=True):
                self._bind(inner, opened(filled(wanted, known), data.type_vars))
        elif isinstance(pattern, PatternTuple):
            if isinstance(of, TupleType) and len(of.fields) != len(pattern.patterns):
                raise TypeMismatch(f"the pattern {pattern!r} is held against a tuple of {len(of.fields)}")
            fields = of.fields if isinstance(of, TupleType) else [_UNKNOWN] * len(pattern.patterns)
            for inner, field in zip(pattern.patterns, fields, strict=True):
                self._bind(inner, field)

    def _of_operator(self, call: Call) -> Type:
        attrs = call.attrs
        args = [self.visit(arg) for arg in call.args]
        if any(isinstance(given, IncompleteType) for given in args):
            learn = getattr(attrs, "infer_inputs", None)
            learned = (
                learn(*(None if isinstance(given, IncompleteType) else given for given in args)) if learn else args
            )
            for index, (arg, result) in enumerate(zip(call.args, learned, strict=True)):
                if isinstance(args[index], IncompleteType) and result is not None:
                    if isinstance(arg, Var):
                        self.learn(arg, result)
                    args[index] = result
            if any(isinstance(given, IncompleteType) for given in args):
                return _UNKNOWN
        if not attrs.variadic and len(args) != len(attrs.inputs):
            names = ", ".join(attrs.inputs)
            raise TypeMismatch(f"{attrs.op_name} takes {len(attrs.inputs)} inputs ({names}), and gets {len(args)}")
        try:
            result = attrs.infer(*args)
        except LoopwrightError as error:
            _say_where(error, call)
            raise
        except (TypeError, ValueError, AttributeError, IndexError) as error:
            given = ", ".join(type_text(one) for one in args)
            raise TypeMismatch(
                f"{attrs.op_name} cannot take {given}: {error}", hint=f"its call is {attrs!r}"
            ) from error
        # A call whose values decide sizes may have names for them (`transform/bind_sizes.py`).
        return call.type_args[0] if attrs.data_dependent and call.type_args else result

    def visit_function(self, function: Function) -> Type:
        return self._of_function(function, None)

    def _of_function(self, function: Function, known_as: Var | None) -> Type:
        """The type of a function; inside it `known_as` is the function itself."""
        params = [self.visit(param) for param in function.params]
        if known_as is not None:
            self.learn(known_as, FuncType(params, function.declared_ret_type or _UNKNOWN, function.type_params))
        result = self.visit(function.body)
        # What the body taught about parameters without a type.
        params = [self.memo_map.get(param, _UNKNOWN) for param in function.params]
        declared = function.declared_ret_type
        if declared is not None:
            if isinstance(result, IncompleteType) and self._returns(function.body, declared):
                params = [self.memo_map.get(param, _UNKNOWN) for param in function.params]
                result = declared
            if not fits(result, declared):
                raise TypeMismatch(
                    f"a function is unable to show the following types match: it returns {type_text(result)}, "
                    f"and is declared to return {type_text(declared)}"
                )
            result = declared if not isinstance(declared, IncompleteType) else result
        return FuncType(params, result, function.type_params)

    def _returns(self, body: Expr, result: Type) -> bool:
        """Whether `body` calls a function of which nothing else is known: it returns `result` then."""
        if not isinstance(body, Call) or not isinstance(body.op, Var):
            return False
        known = self.memo_map.get(body.op)
        if not isinstance(known, FuncType) or not isinstance(known.ret_type, IncompleteType):
            return False
        self.learn(body.op, FuncType(known.arg_types, result))
        self.memo_map[body] = body.checked_type_ = result
        return True

    def visit_let(self, let: Let) -> Type:
        chain: list[Let] = []
        body: Expr = let
        while isinstance(body, Let):
            chain.append(body)
            if isinstance(body.value, Function) and body.var.type_annotation is None:
                answer = self._of_function(body.value, body.var)
                if isinstance(answer, FuncType) and _unfinished(answer.ret_type):
                    self._wait(body.var, body.value, answer)
                self.memo_map[body.value] = answer
                body.value.checked_type_ = answer
                self.learn(body.var, answer)
                self._forget_calls_of(body.var, body.value)
            else:
                answer = self.visit(body.value)
                annotated = body.var.type_annotation
                if annotated is not None and not fits(answer, annotated):
                    raise TypeMismatch(
                        f"let {body.var.name_hint}: unable to show the following types match: the value is "
                        f"{type_text(answer)}, the variable {type_text(annotated)}"
                    )
                self.learn(body.var, annotated if annotated is not None else answer)
            body = body.body
        result: Type = self.visit(body)
        for one in reversed(chain[1:]):
            one.checked_type_ = result
        return result

    def _wait(self, var: Var, function: Function, known: FuncType) -> None:
        """Nothing is said of the parameters: the first call will; where they are known, the function never returns."""
        if not any(map(_unfinished, known.arg_types)):
            raise TypeMismatch(f"the type of what {var.name_hint} returns cannot be found: it never returns")
        self.waiting[var] = function

    def _finished(self, var: Var, callee: FuncType, args: list[Type]) -> FuncType:
        """The type of a function that waited for its first call, which this is, or is among others like it."""
        function = self.waiting[var]
        if any(map(_unfinished, args)):
            return callee
        del self.waiting[var]
        for param, given in zip(function.params, args, strict=True):
            if _unfinished(self.memo_map.get(param, _UNKNOWN)):
                self.learn(param, given)
        self._forget(function)
        answer = self._of_function(function, var)
        self.memo_map[function] = function.checked_type_ = answer
        self.learn(var, answer)
        assert isinstance(answer, FuncType)
        return answer

    def _forget_calls_of(self, var: Var, function: Function) -> None:
        """Type the body again, now that the type of its own calls is known."""
        self._forget(function.body)
        self.visit(function.body)

    def _forget(self, root: Expr) -> None:
        """Types of expressions are found again; those of variables stay."""
        from loopwright.relay.visitor import post_order

        for expression in post_order(root):
            if not isinstance(expression, (Var, Constant, Op, GlobalVar)):
                self.memo_map.pop(expression, None)

    def visit_if(self, branch: If) -> Type:
        condition = self.visit(branch.cond)
        if isinstance(condition, TensorType) and (condition.shape or condition.dtype != "bool"):
            raise TypeMismatch(f"a condition is one bool, and not {type_text(condition)}")
        return joined(self.visit(branch.true_branch), self.visit(branch.false_branch))

    def visit_ref_create(self, ref: RefCreate) -> Type:
        return RefType(self.visit(ref.value))

    def visit_ref_read(self, ref: RefRead) -> Type:
        of = self.visit(ref.ref)
        if isinstance(of, IncompleteType):
            return _UNKNOWN
        if not isinstance(of, RefType):
            raise TypeMismatch(f"{type_text(of)} is read as a cell")
        return of.value

    def visit_ref_write(self, ref: RefWrite) -> Type:
        of = self.visit(ref.ref)
        value = self.visit(ref.value)
        if isinstance(of, IncompleteType):
            if isinstance(ref.ref, Var) and not _unfinished(value):
                self.learn(ref.ref, RefType(value))
            return TupleType(())
        if not isinstance(of, RefType) or not fits(value, of.value):
            raise TypeMismatch(f"{type_text(value)} is written into {type_text(of)}")
        return TupleType(())


def _say_where(error: LoopwrightError, call: Call) -> None:
    """An operator's own error knows nothing of the graph: add the name of the node it came from."""
    name = getattr(call.span, "name", None) or (call.span if isinstance(call.span, str) else None)
    if name and not getattr(error, "node_named", False):
        error.add_note(f"in node {name!r} ({call.op.name})")
        error.node_named = True  # type: ignore[attr-defined]


def _unfinished(of: Type) -> bool:
    return isinstance(of, IncompleteType) or (isinstance(of, TupleType) and any(map(_unfinished, of.fields)))


def fits(given: Type, wanted: Type) -> bool:
    """Whether a value of type `given` may stand where `wanted` is declared; sizes that are not known may."""
    if isinstance(given, IncompleteType) or isinstance(wanted, IncompleteType):
        return True
    if isinstance(given, TensorType) and isinstance(wanted, TensorType):
        return (
            given.dtype == wanted.dtype
            and len(given.shape) == len(wanted.shape)
            and not any(map(dims_differ, given.shape, wanted.shape))
        )
    if isinstance(given, TupleType) and isinstance(wanted, TupleType):
        return len(given.fields) == len(wanted.fields) and all(map(fits, given.fields, wanted.fields))
    if isinstance(given, FuncType) and isinstance(wanted, FuncType):
        if given.type_params:
            given = FuncType(
                [opened(of, given.type_params) for of in given.arg_types], opened(given.ret_type, given.type_params)
            )
        return (
            len(given.arg_types) == len(wanted.arg_types)
            and all(map(fits, wanted.arg_types, given.arg_types))
            and fits(given.ret_type, wanted.ret_type)
        )
    if isinstance(given, RefType) and isinstance(wanted, RefType):
        return fits(given.value, wanted.value)
    if isinstance(given, TypeCall) and isinstance(wanted, TypeCall):
        return given.func is wanted.func and all(map(fits, given.args, wanted.args))
    if isinstance(given, TypeVar) and isinstance(wanted, TypeVar):
        return given is wanted
    return type(given) is type(wanted)


def joined(one: Type, other: Type, what: str = "branches of an if") -> Type:
    """The type of a value that has either type: sizes that differ are not known."""
    if isinstance(one, IncompleteType):
        return other
    if isinstance(other, IncompleteType):
        return one
    if isinstance(one, TensorType) and isinstance(other, TensorType):
        if one.dtype == other.dtype and len(one.shape) == len(other.shape):
            pairs = zip(one.shape, other.shape, strict=True)
            return TensorType([a if not is_any(a) and same_dim(a, b) else AnyDim() for a, b in pairs], one.dtype)
    elif isinstance(one, TupleType) and isinstance(other, TupleType) and len(one.fields) == len(other.fields):
        return TupleType(tuple(joined(a, b, what) for a, b in zip(one.fields, other.fields, strict=True)))
    elif isinstance(one, TypeCall) and isinstance(other, TypeCall) and one.func is other.func:
        return TypeCall(one.func, [joined(a, b, what) for a, b in zip(one.args, other.args, strict=True)])
    elif fits(one, other):
        # A function for any types may stand where one for certain types does.
        for_any = isinstance(one, FuncType) and one.type_params
        return other if for_any and isinstance(other, FuncType) and not other.type_params else one
    raise TypeMismatch(
        f"the {what} are unable to show the following types match: {type_text(one)} and {type_text(other)}"
    )


def infer_module(module: IRModule) -> IRModule:
    """Type every graph function of the module; the module is returned as it is, its expressions know their types."""
    in_work: dict[str, Type] = {}

    def global_type(var: GlobalVar) -> Type:
        if isinstance(module[var], PrimFunc):
            return _UNKNOWN
        function = graph_function(module, var)
        if var.name not in in_work:
            declared = [param.type_annotation or _UNKNOWN for param in function.params]
            in_work[var.name] = FuncType(declared, function.declared_ret_type or _UNKNOWN, function.type_params)
            in_work[var.name] = infer(function, global_type)
        return in_work[var.name]

    for var, function in module.items():
        if isinstance(function, Function):
            global_type(var)
    return module


def infer(expression: Expr, global_type: Callable[[GlobalVar], Type] | None = None) -> Type:
    """The type of an expression; everything in it is given its type."""
    return Inference(global_type).visit(expression)


def _no_module(var: GlobalVar) -> Type:
    raise TypeMismatch(f"@{var.name} is called, and there is no module that has it")
