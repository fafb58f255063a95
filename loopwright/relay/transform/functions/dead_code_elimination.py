"""DeadCodeElimination: lets that nobody uses are dropped.

    let %a = nn.relu(%x);        →    let %b = exp(%x);
    let %b = exp(%x);                 %b
    %b

A value that does something besides being a value (it writes a cell, draws random numbers, calls what may do so) stays,
unless `ignore_impurity` says otherwise; then, too, a write to a cell stays when something that stays may read the cell.
`inline_once` puts the value of a let that is used once where it is used; that
may change the order in which values are computed, so impure ones stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.adt import Constructor
from loopwright.relay.expr import (
    Call,
    Constant,
    Expr,
    Function,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from loopwright.relay.op.registry import Op
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.types import FuncType, IncompleteType
from loopwright.relay.visitor import ExprMutator, parts, post_order


class Purity:
    """Whether evaluating an expression does nothing but compute its value."""

    def __init__(self, mod: IRModule | None) -> None:
        self.mod = mod
        self._functions: dict[Function, bool] = {}
        self._bound: dict[Var, Expr] = {}  # variable → what a let says it is
        self._given: set[Var] = set()  # parameters; every call that is looked at gives pure functions for them

    def learn(self, root: Expr) -> None:
        for expression in post_order(root):
            if isinstance(expression, Let):
                self._bound[expression.var] = expression.value

    def is_pure(self, expression: Expr) -> bool:
        """A function is pure as a value, whatever it does when called."""
        stack, seen = [expression], set()
        while stack:
            current = stack.pop()
            if current in seen or isinstance(current, Function):
                continue
            seen.add(current)
            if isinstance(current, (RefCreate, RefRead, RefWrite)):
                return False
            if isinstance(current, Call):
                is_operator = isinstance(current.op, Op)
                if current.attrs.stateful if is_operator else not self.call_is_pure(current.op, current.args):
                    return False
            stack.extend(parts(current))
        return True

    def cells_written(self, expression: Expr) -> set[Var | None]:
        """The variables that name the cells which evaluating an expression may write; None for one without a name."""
        result: set[Var | None] = set()
        stack, seen = [expression], set()
        while stack:
            current = stack.pop()
            if current in seen or isinstance(current, Function):
                continue
            seen.add(current)
            if isinstance(current, RefWrite):
                cell = self._value_of(current.ref)
                result.add(cell if isinstance(cell, Var) and isinstance(self._bound.get(cell), RefCreate) else None)
            if isinstance(current, Call):
                callee = self._value_of(current.op)
                callee = self._bound.get(callee, callee) if isinstance(callee, Var) else callee
                if isinstance(callee, Function):
                    self.learn(callee.body)
                    stack.append(callee.body)
            stack.extend(parts(current))
        return result

    def _value_of(self, expression: object) -> object:
        """What a variable is another name of."""
        while isinstance(expression, Var) and isinstance(self._bound.get(expression), Var):
            expression = self._bound[expression]
        return expression

    def call_is_pure(self, callee: object, args: Sequence[Expr]) -> bool:
        """Whether calling `callee` with these arguments does nothing but compute the result."""
        return self._call_is_pure(callee) and all(map(self._may_be_given, args))

    def _call_is_pure(self, callee: object) -> bool:
        """Whether calling `callee` does nothing else; not where nobody knows what it is."""
        while isinstance(callee, Var) and callee in self._bound:
            callee = self._bound[callee]
        if isinstance(callee, GlobalVar) and self.mod is not None and callee in self.mod:
            callee = self.mod[callee]
        if isinstance(callee, Constructor) or callee in self._given:
            return True
        if not isinstance(callee, Function):
            return False
        if callee not in self._functions:
            self._given.update(callee.params)
            # A function that calls itself is as pure as the rest of it. (That it may never end is not counted.)
            self._functions[callee] = True
            self.learn(callee.body)
            self._functions[callee] = self.is_pure(callee.body)
        return self._functions[callee]

    def _may_be_given(self, arg: Expr) -> bool:
        """Whether a function may be given this value, and call it, and still be pure."""
        if isinstance(arg, (Function, GlobalVar, Constructor)):
            return self._call_is_pure(arg)
        of = getattr(arg, "checked_type_", None) or getattr(arg, "type_annotation", None)
        if of is not None and not isinstance(of, (FuncType, IncompleteType)):
            return True
        if isinstance(arg, Var):
            return self._call_is_pure(arg)
        # Of what is not typed yet, these are no functions.
        makes_data = isinstance(arg, Call) and isinstance(arg.op, (Op, Constructor))
        return of is None and (makes_data or isinstance(arg, (Constant, Tuple)))


class _Eliminate(ExprMutator):
    def __init__(self, root: Expr, purity: Purity, inline_once: bool, ignore_impurity: bool) -> None:
        super().__init__()
        self.purity = purity
        self.inline_once = inline_once
        self.ignore_impurity = ignore_impurity
        self.uses, self.written = _live_uses(root, self._is_pure, purity.cells_written if ignore_impurity else None)
        self.inlined: dict[Var, Expr] = {}

    def _is_pure(self, value: Expr) -> bool:
        return self.ignore_impurity or self.purity.is_pure(value)

    def visit_var(self, var: Var) -> Expr:
        return self.inlined.get(var, var)

    def visit_let(self, let: Let) -> Expr:
        kept: list[tuple[Let, Expr]] = []
        body: Expr = let
        while isinstance(body, Let):
            count = self.uses.get(body.var, 0)
            if count == 0 and body.var not in self.written and self._is_pure(body.value):
                body = body.body
                continue
            value = self.visit(body.value)
            is_loop = isinstance(body.value, Function) and body.var in set(_variables(body.value))
            if self.inline_once and count == 1 and not is_loop and self.purity.is_pure(body.value):
                self.inlined[body.var] = value
            else:
                kept.append((body, value))
            body = body.body
        result = self.visit(body)
        for old, value in reversed(kept):
            same = value is old.value and result is old.body
            result = old if same else Let(old.var, value, result, old.span)
        return result

    def visit_tuple_getitem(self, get: TupleGetItem) -> Expr:
        value = self.visit(get.tuple_value)
        if isinstance(value, Tuple) and self.inline_once:
            return value.fields[get.index]
        return get if value is get.tuple_value else TupleGetItem(value, get.index, get.span)


def _variables(expression: Expr) -> list[Var]:
    return [each for each in post_order(expression) if isinstance(each, Var)]


def _live_uses(
    root: Expr, is_pure: Callable[[Expr], bool], cells_written: Callable[[Expr], set[Var | None]] | None
) -> tuple[dict[Var, int], set[Var]]:
    """How often each variable is used by what stays: the value of an unused let uses nothing.

    With it, the lets that stay for the cells they write: cells that something that stays uses.
    """
    uses: dict[Var, int] = {}
    values: dict[Var, Expr] = {}  # pure values of lets, looked at when their variable is first used
    writers: dict[Var | None, list[Let]] = {}  # a cell → lets whose values write it
    written: set[Var] = set()
    seen: set[Expr] = set()
    stack = [root]
    while stack:
        current = stack.pop()
        if isinstance(current, Var):
            uses[current] = uses.get(current, 0) + 1
            if current in values:
                stack.append(values.pop(current))
            for let in writers.pop(current, ()):
                written.add(let.var)
                values.pop(let.var, None)
                stack.append(let.value)
            continue
        if current in seen or isinstance(current, Op):
            continue
        seen.add(current)
        if isinstance(current, Let):
            cells = cells_written(current.value) if cells_written is not None else set()
            is_written = any([cell is None or cell in uses for cell in cells])
            if is_pure(current.value) and current.var not in uses and not is_written:
                values[current.var] = current.value
                for cell in cells:
                    writers.setdefault(cell, []).append(current)
            else:
                if is_written:
                    written.add(current.var)
                stack.append(current.value)
            stack.append(current.body)
        elif isinstance(current, Function):
            stack.append(current.body)
        else:
            stack.extend(parts(current))
    return uses, written


@overload
def eliminate(
    expression: Function, mod: IRModule | None = None, inline_once: bool = False, ignore_impurity: bool = False
) -> Function: ...
@overload
def eliminate(
    expression: Expr, mod: IRModule | None = None, inline_once: bool = False, ignore_impurity: bool = False
) -> Expr: ...
def eliminate(
    expression: Expr, mod: IRModule | None = None, inline_once: bool = False, ignore_impurity: bool = False
) -> Expr:
    """The expression without lets that are not used."""
    purity = Purity(mod)
    purity.learn(expression)
    return _Eliminate(expression, purity, inline_once, ignore_impurity).visit(expression)


def DeadCodeElimination(inline_once: bool = False, ignore_impurity: bool = False) -> GraphPass:
    """Drop lets that nobody uses; with `inline_once`, put those used once where they are used."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return eliminate(function, mod, inline_once, ignore_impurity)

    return GraphPass(change, PassInfo(1, "DeadCodeElimination"))
