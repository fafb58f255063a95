"""PartialEvaluate: what is known before the program runs is done: calls, choices, loops.

    let %f = fn (%y) { exp(%y) };            →    exp(exp(%x))
    %f(%f(%x))

Calls of functions that are known become their bodies, an if whose condition is a constant its branch, a match on a
value that is there its clause, a field of a tuple that is there its value; operators on constants are computed. A
function that calls itself is unrolled as long as its condition, or the case it looks at, is known each time. What
writes cells is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loopwright.ir.deep import deep
from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.types import Type
from loopwright.relay.adt import Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from loopwright.relay.expr import Call, Constant, Expr, Function, If, Let, Tuple, TupleGetItem, Var
from loopwright.relay.graph_functions import graph_function
from loopwright.relay.op.registry import Op
from loopwright.relay.transform.functions.clone import applied
from loopwright.relay.transform.functions.dead_code_elimination import Purity
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.simplify.fold_constant import fold_call
from loopwright.relay.transform.typed_rewrite import KnownTypes
from loopwright.relay.type_arguments import learned_from
from loopwright.relay.types import IncompleteType, TypeVar
from loopwright.relay.visitor import ExprMutator, post_order

_MOST_CALLS = 1000  # a loop that runs longer stays a loop


class _Partial(ExprMutator):
    def __init__(self, mod: IRModule, purity: Purity) -> None:
        super().__init__()
        self.mod = mod
        self.purity = purity
        self.types = KnownTypes(mod)
        self.functions: dict[Var, Function] = {}  # variable → the function it is
        self.loops: set[Var] = set()  # variables whose functions call themselves
        self.calls = 0
        self.recursive: dict[str, bool] = {}  # function of the module → whether it comes to call itself

    def visit_let(self, let: Let) -> Expr:
        kept: list[tuple[Let, Expr]] = []
        body: Expr = let
        while isinstance(body, Let):
            if isinstance(body.value, Function) and self._is_pure(body.value):
                if any(each is body.var for each in post_order(body.value)):
                    self.functions[body.var] = body.value
                    self.loops.add(body.var)
                    kept.append((body, body.value))
                else:
                    self._set(body.var, self.visit(body.value))
            else:
                value = self.visit(body.value)
                if self.purity.is_pure(body.value):
                    self._set(body.var, value)
                else:
                    kept.append((body, value))
            body = body.body
        result = self.visit(body)
        for old, value in reversed(kept):
            if old.var in self.loops and not any(each is old.var for each in post_order(result)):
                continue  # every call of it is gone
            same = value is old.value and result is old.body
            result = old if same else Let(old.var, value, result, old.span)
        return result

    def _set(self, var: Var, value: Expr) -> None:
        self.memo_map[var] = value

    def _is_pure(self, function: Function) -> bool:
        return self.purity.is_pure(function.body)

    def visit_call(self, call: Call) -> Expr:
        args = [self.visit(arg) for arg in call.args]
        if isinstance(call.op, Op):
            same = all(new is old for new, old in zip(args, call.args, strict=True))
            changed = call if same else Call(call.op, args, call.attrs, call.type_args, call.span)
            return fold_call(changed, self.types)
        callee, is_loop = self._callee(call.op)
        if callee is None or "Primitive" in callee.attrs or "Compiler" in callee.attrs:
            return super().visit_call(call)
        if not self.purity.call_is_pure(callee, args):
            return super().visit_call(call)
        body = applied(callee, args, self._type_arguments(callee, args))
        if is_loop:
            choice = self._chosen(body)
            if choice is None:
                return super().visit_call(call)
            body = choice
        self.calls += 1
        return self.visit(body)

    def _callee(self, op: Expr | GlobalVar) -> tuple[Function | None, bool]:
        if isinstance(op, GlobalVar):
            function: object = self.mod[op]
            if not isinstance(function, Function):
                return None, False
            return function, self._calls_itself(op.name)
        if isinstance(op, Var) and op in self.loops:
            return self.functions[op], True
        value = self.visit(op)
        return (value, False) if isinstance(value, Function) else (None, False)

    def _calls_itself(self, name: str) -> bool:
        """Whether a function of the module comes to call itself."""
        if name not in self.recursive:
            seen: set[str] = set()
            stack = self._called(name)
            while stack:
                current = stack.pop()
                if current not in seen:
                    seen.add(current)
                    stack += self._called(current)
            self.recursive[name] = name in seen
        return self.recursive[name]

    def _called(self, name: str) -> list[str]:
        known = name in self.mod and isinstance(self.mod[name], Function)
        below: Iterable[object] = post_order(graph_function(self.mod, name)) if known else ()
        return [each.name for each in below if isinstance(each, GlobalVar)]

    def _type_arguments(self, callee: Function, args: list[Expr]) -> dict[TypeVar, Type]:
        """What the type variables of a function are in a call of it; not known where the arguments do not say."""
        result: dict[TypeVar, Type] = {}
        if callee.type_params:
            for param, arg in zip(callee.params, args, strict=True):
                if param.type_annotation is not None:
                    learned_from(param.type_annotation, self.types.visit(arg), result)
        unknown = IncompleteType()
        return {of: result.get(of, unknown) for of in callee.type_params if isinstance(of, TypeVar)}

    def visit_match(self, match: Match) -> Expr:
        clause = self._taken(match)
        return super().visit_match(match) if clause is None else self.visit(clause)

    def _taken(self, match: Match) -> Expr | None:
        """The value of the clause that a known value takes."""
        data = self.visit(match.data)
        for clause in match.clauses:
            found: dict[Var, Expr] = {}
            fits = _fits(clause.lhs, data, found)
            if fits is None:
                return None
            if fits:
                for var, value in found.items():
                    self._set(var, value)
                return clause.rhs
        return None

    def _chosen(self, body: Expr) -> Expr | None:
        """The branch that one more round of a loop takes, where that is known."""
        if self.calls < _MOST_CALLS and isinstance(body, Match):
            return self._taken(body)
        if self.calls >= _MOST_CALLS or not isinstance(body, If):
            return None
        condition = self.visit(body.cond)
        if not isinstance(condition, Constant):
            return None
        return body.true_branch if bool(condition.data) else body.false_branch

    def visit_if(self, branch: If) -> Expr:
        condition = self.visit(branch.cond)
        if isinstance(condition, Constant):
            return self.visit(branch.true_branch if bool(condition.data) else branch.false_branch)
        return super().visit_if(branch)

    def visit_tuple_getitem(self, get: TupleGetItem) -> Expr:
        value = self.visit(get.tuple_value)
        if isinstance(value, Tuple):
            return value.fields[get.index]
        return get if value is get.tuple_value else TupleGetItem(value, get.index, get.span)

    def visit_function(self, function: Function) -> Expr:
        return function if "Primitive" in function.attrs else super().visit_function(function)


def _fits(pattern: Pattern, value: Expr, found: dict[Var, Expr]) -> bool | None:
    """Whether a value fits a pattern, whose variables are then in `found`; None where that is not known."""
    if isinstance(pattern, PatternVar):
        found[pattern.var] = value
        return True
    if isinstance(pattern, PatternConstructor):
        case: object = value.op if isinstance(value, Call) else value
        if not isinstance(case, Constructor):
            return None
        if case.name_hint != pattern.constructor.name_hint:
            return False
        return _all_fit(pattern.patterns, value.args if isinstance(value, Call) else (), found)
    if isinstance(pattern, PatternTuple):
        return _all_fit(pattern.patterns, value.fields, found) if isinstance(value, Tuple) else None
    return True


def _all_fit(patterns: Sequence[Pattern], values: Sequence[Expr], found: dict[Var, Expr]) -> bool | None:
    answers = [_fits(pattern, value, found) for pattern, value in zip(patterns, values, strict=True)]
    return False if False in answers else None if None in answers else True


@deep
def _evaluated(function: Function, mod: IRModule, purity: Purity) -> Function:
    return _Partial(mod, purity).apply(function)


def PartialEvaluate() -> GraphPass:
    """Do before the program runs what can be done."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        purity = Purity(mod)
        purity.learn(function)
        return _evaluated(function, mod, purity)

    return GraphPass(change, PassInfo(1, "PartialEvaluate"))
