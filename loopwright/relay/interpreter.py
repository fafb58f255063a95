"""The reference interpreter: a graph evaluated in numpy, operator by operator.

    evaluate(function, [x, w])

It is the oracle that compiled models are held against, and the way constants are folded. Loops are functions that call
themselves at their end; such a call does not nest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, Union

import numpy as np

from loopwright.ir import Expr as PrimExpr
from loopwright.ir import Var as SizeVariable
from loopwright.ir.deep import deep
from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.types import Type
from loopwright.ir.visitor import substitute
from loopwright.model.given_arrays import array_of
from loopwright.relay.adt import Constructor, ConstructorValue, Match, fits_pattern
from loopwright.relay.errors import NotAnExpression, NothingMatches
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
from loopwright.relay.index_checks import require_in_range
from loopwright.relay.nested import Nested
from loopwright.relay.op.registry import Op, Operator
from loopwright.relay.types import TensorType, as_dim
from loopwright.relay.visitor import ExprFunctor
from loopwright.runtime.call_errors import SizesDoNotFit
from loopwright.runtime.errors import LoopwrightError

# A value: an array for a tensor, a list for a tuple, a value of a data type, a function, or what a reference is.
RunValue: TypeAlias = Union[np.ndarray, Sequence["RunValue"], ConstructorValue, Constructor, "_Closure", "RefValue", Op]
# How one operator is evaluated: its attributes and the values of its inputs (arrays, lists of arrays for tuples).
Evaluate: TypeAlias = Callable[[Operator, Sequence[RunValue]], object]


def by_reference(attrs: Operator, inputs: Sequence[RunValue]) -> object:
    """The meaning of the operator, its result in the type that the operator gives it."""
    require_in_range(attrs, inputs)
    with np.errstate(all="ignore"):
        return attrs.reference(*inputs)


class _Closure:
    """A function and the values of the variables around it."""

    def __init__(self, function: Function, around: _Frame) -> None:
        self.function = function
        self.around = around

    def __call__(self, *args: object) -> RunValue:
        return run(self, [_argument(arg) for arg in args])


class RefValue:
    """A reference: `value` is what it holds."""

    def __init__(self, value: RunValue) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"RefValue({self.value!r})"


class _TailCall(Exception):
    """A function ends in a call of another: its frame is left before that begins."""

    def __init__(self, closure: RunValue, args: Sequence[RunValue]) -> None:
        self.closure = closure
        self.arguments = args


class _Frame(ExprFunctor[RunValue]):
    """The values of the expressions of one function body, in one call of it."""

    def __init__(self, module: IRModule | None, operator: Evaluate, around: _Frame | None = None) -> None:
        super().__init__()
        self.module = module
        self.operator = operator
        self.around = around
        # The numbers that size variables stand for; shapes of parameters say them.
        self.sizes: dict[SizeVariable, int] = {} if around is None else dict(around.sizes)

    def set(self, var: Var, value: RunValue) -> None:
        self.memo_map[var] = value
        if isinstance(getattr(var, "type_annotation", None), TensorType) and isinstance(value, np.ndarray):
            for size, given in zip(var.type_annotation.shape, value.shape, strict=False):  # type: ignore[union-attr]
                if isinstance(size, SizeVariable):
                    self.sizes.setdefault(size, given)

    def visit_var(self, var: Var) -> RunValue:
        frame = self.around
        while frame is not None:
            if var in frame.memo_map:
                return frame.memo_map[var]
            frame = frame.around
        raise NotAnExpression(var.name_hint, "a variable without a value")

    def visit_constant(self, constant: Constant) -> RunValue:
        return constant.data

    def visit_global_var(self, var: GlobalVar) -> RunValue:
        if self.module is None:
            raise NotAnExpression(var.name, "a function of a module that is not given")
        return _Closure(self.module[var], _Frame(self.module, self.operator))  # type: ignore[arg-type]

    def visit_op(self, op: Op) -> RunValue:
        return op

    def visit_function(self, function: Function) -> RunValue:
        return _Closure(function, self)

    def visit_tuple(self, tup: Tuple) -> RunValue:
        return [self.visit(field) for field in tup.fields]

    def visit_tuple_getitem(self, get: TupleGetItem) -> RunValue:
        fields = self.visit(get.tuple_value)
        assert isinstance(fields, Sequence)
        return fields[get.index]

    def visit_call(self, call: Call) -> RunValue:
        args = [self.visit(arg) for arg in call.args]
        if isinstance(call.op, Op):
            attrs = _with_numbers(call.attrs, self.sizes)
            try:
                return typed_result(call, self.operator(attrs, args))
            except (ValueError, IndexError) as error:
                if isinstance(error, LoopwrightError):
                    raise
                shapes = ", ".join(str(np.asarray(array).shape) for array in flat_arrays(args))
                raise SizesDoNotFit(f"{call.op.name} cannot take arrays of the shapes {shapes}: {error}") from error
        return run(self.visit(call.op), args)

    def visit_let(self, let: Let) -> RunValue:
        return self.end(let)

    def visit_if(self, branch: If) -> RunValue:
        return self.visit(branch.true_branch if bool(self.visit(branch.cond)) else branch.false_branch)

    def visit_match(self, match: Match) -> RunValue:
        return self.visit(self.taken(match))

    def visit_constructor(self, constructor: Constructor) -> RunValue:
        return constructor

    def taken(self, match: Match) -> Expr:
        """The value of the clause that fits, its variables set."""
        value = self.visit(match.data)
        for clause in match.clauses:
            result: list[tuple[Var, Any]] = []
            if fits_pattern(clause.lhs, value, result):
                for var, part in result:
                    self.set(var, part)
                return clause.rhs
        raise NothingMatches(value, [clause.lhs for clause in match.clauses])

    def visit_ref_create(self, ref: RefCreate) -> RunValue:
        return RefValue(self.visit(ref.value))

    def visit_ref_read(self, ref: RefRead) -> RunValue:
        return self._cell(ref.ref).value

    def visit_ref_write(self, ref: RefWrite) -> RunValue:
        self._cell(ref.ref).value = self.visit(ref.value)
        return []

    def _cell(self, ref: Expr) -> RefValue:
        result = self.visit(ref)
        assert isinstance(result, RefValue)
        return result

    def end(self, expression: Expr, *, last: bool = False) -> RunValue:
        """The value of what a body ends in; with `last`, a call there is not made but handed out."""
        while True:
            if isinstance(expression, Let):
                self.set(expression.var, self.visit(expression.value))
                expression = expression.body
            elif isinstance(expression, If):
                used = bool(self.visit(expression.cond))
                expression = expression.true_branch if used else expression.false_branch
            elif isinstance(expression, Match):
                expression = self.taken(expression)
            elif last and isinstance(expression, Call) and not isinstance(expression.op, Op):
                raise _TailCall(self.visit(expression.op), [self.visit(arg) for arg in expression.args])
            else:
                return self.visit(expression)


def flat_arrays(values: Sequence[RunValue]) -> list[RunValue]:
    """The arrays of values that may be tuples."""
    return [one for value in values for one in (flat_arrays(value) if isinstance(value, list) else [value])]


def _with_numbers(attrs: Operator, sizes: Mapping[SizeVariable, int]) -> Operator:
    """Attributes with the numbers of this run in place of size variables."""
    if not sizes or not any(_is_formula(value) for value in attrs.values()):
        return attrs
    return attrs.with_(**{name: _numbers(value, sizes) for name, value in attrs.items()})


def _is_formula(value: object) -> bool:
    return any(map(_is_formula, value)) if isinstance(value, tuple) else isinstance(value, PrimExpr)


def _numbers(value: object, sizes: Mapping[SizeVariable, int]) -> object:
    if isinstance(value, tuple):
        return tuple(_numbers(item, sizes) for item in value)
    return as_dim(substitute(value, sizes)) if isinstance(value, PrimExpr) else value


def run(closure: RunValue, args: Sequence[RunValue]) -> RunValue:
    """What a function returns for these arguments."""
    while True:
        if isinstance(closure, Constructor):
            return ConstructorValue(closure, args)
        assert isinstance(closure, _Closure)
        frame = _Frame(closure.around.module, closure.around.operator, closure.around)
        for param, value in zip(closure.function.params, args, strict=True):
            frame.set(param, value)
        try:
            return frame.end(closure.function.body, last=True)
        except _TailCall as next_call:
            closure, args = next_call.closure, next_call.arguments


def typed_result(call: Call, value: object) -> Nested[np.ndarray]:
    """References compute as numpy likes; the type of the graph is what counts."""
    if isinstance(value, (list, tuple)):
        fields = getattr(call.checked_type_, "fields", None)
        return [_typed(one, fields[k] if fields else None) for k, one in enumerate(value)]
    return _typed(value, call.checked_type_)


def _typed(value: object, wanted: Type | None) -> np.ndarray:
    array = np.asarray(value)
    if isinstance(wanted, TensorType):
        kind = wanted.dtype.numpy()
        if array.dtype != kind:
            with np.errstate(all="ignore"):
                array = array.astype(kind)
    return array


@deep
def evaluate(
    expression: Expr,
    values: Mapping[Var, object] | Sequence[object] = (),
    module: IRModule | None = None,
    operator: Evaluate = by_reference,
) -> RunValue:
    """The value of an expression whose variables have `values`, or what a function returns for them in order.

    Arrays for tensors, lists for tuples. Types should have been inferred: results have the element types of the graph.
    """
    outside = _Frame(module, operator)
    if isinstance(values, Mapping):
        for var, value in values.items():
            outside.set(var, _argument(value))
        result = outside.end(expression)
        return result
    closure = _Closure(expression, outside) if isinstance(expression, Function) else outside.visit(expression)
    return run(closure, [_argument(value) for value in values])


def _argument(value: object) -> RunValue:
    if isinstance(value, (Constructor, _Closure)):
        return value
    if isinstance(value, ConstructorValue):
        return ConstructorValue(value.constructor, [_argument(field) for field in value.fields])
    if isinstance(value, RefValue):
        value.value = _argument(value.value)  # the cell itself: what is written to it, its owner sees
        return value
    if isinstance(value, Constant):
        return value.data
    if isinstance(value, (list, tuple)):
        return [_argument(item) for item in value]
    return array_of(value, "an argument")
