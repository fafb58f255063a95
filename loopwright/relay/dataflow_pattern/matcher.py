"""When a pattern matches: `Matcher.matches` yields every way in which it does.

A way is a dictionary from patterns to the expressions they matched. All ways are tried (the operands of add and
multiply in both orders, both sides of an alternative), so whether a pattern matches does not depend on the order it is
written in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from loopwright.ir import structural_equal
from loopwright.ir.deep import deep
from loopwright.ir.expr import GlobalVar
from loopwright.ir.types import Type
from loopwright.relay.dataflow_pattern.patterns import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
    searches,
)
from loopwright.relay.expr import Call, Constant, Expr, Function, If, Let, Tuple, TupleGetItem, Var
from loopwright.relay.infer_type import infer
from loopwright.relay.op.registry import Op
from loopwright.relay.types import TensorType, as_dim, same_dim, same_type
from loopwright.relay.visitor import parts, post_order
from loopwright.runtime.errors import LoopwrightError

Found = Mapping[DFPattern, tuple[Any, ...]]  # expressions, and operators as those of calls
# Two factors and the divisor; the inner call; what makes an inner call and an outer one.
_Fraction = tuple[tuple[Expr, Expr], Expr, Call, Callable[..., Call], Callable[..., Call]]

_COMMUTATIVE: Final = ("add", "multiply")
# A division and a product that were written in another order: the calls that the order hides.
REORDERED: Final = WildcardPattern()


class Matcher:
    """Matches patterns to expressions of one graph."""

    def __init__(self, root: Expr) -> None:
        self.root = root
        self._users: dict[Expr, list[Expr]] | None = None

    def first(self, pattern: DFPattern, expression: Expr) -> Found | None:
        """One way in which the pattern matches, or None."""
        return next(self.matches(pattern, expression, {}), None)

    def matches(self, pattern: DFPattern, expression: Expr | Op, result: Found) -> Iterator[Found]:
        """Every way; `result` is what was matched before. A pattern matches one expression, wherever it stands."""
        known = result.get(pattern)
        if known is not None and not isinstance(pattern, AltPattern):
            if known[0] is expression:
                yield result
            return
        for way in _RULES[type(pattern)](self, pattern, expression, result):
            yield {**way, pattern: (expression, *way.get(pattern, ()))} if known is None else way

    def all_match(self, patterns: Sequence[DFPattern], expressions: Sequence[Expr], result: Found) -> Iterator[Found]:
        """Every way in which each of several patterns matches its expression."""
        if not patterns:
            yield result
            return
        for way in self.matches(patterns[0], expressions[0], result):
            yield from self.all_match(patterns[1:], expressions[1:], way)

    # -- leaves -------------------------------------------------------------------------------------------------------

    def expr(self, pattern: ExprPattern, expression: Expr, result: Found) -> Iterator[Found]:
        wanted = pattern.expr
        if wanted is expression:
            yield result
        elif not isinstance(wanted, Op) and not isinstance(expression, Op) and type(wanted) is type(expression):
            if structural_equal(wanted, expression):
                yield result

    def var(self, pattern: VarPattern, expression: Expr, result: Found) -> Iterator[Found]:
        if isinstance(expression, Var) and pattern.name in ("", expression.name_hint):
            yield result

    def constant(self, pattern: ConstantPattern, expression: Expr, result: Found) -> Iterator[Found]:
        if isinstance(expression, Constant):
            yield result

    def wildcard(self, pattern: WildcardPattern, expression: Expr, result: Found) -> Iterator[Found]:
        if pattern.pattern is None:
            yield result
            return
        # The pattern may hold this wildcard again: each turn matches anew, and all turns are reported.
        for way in self.matches(pattern.pattern, expression, {}):
            yield {**result, **{key: (*result.get(key, ()), *values) for key, values in way.items()}}

    # -- what is made of parts ----------------------------------------------------------------------------------------

    def call(self, pattern: CallPattern, expression: Expr, result: Found) -> Iterator[Found]:
        if not isinstance(expression, Call):
            return
        for way in self.matches(pattern.op, expression.op, result):
            yield from self._arguments(pattern, expression, way)
        yield from self._reordered(pattern, expression, result)

    def _arguments(self, pattern: CallPattern, call: Call, result: Found) -> Iterator[Found]:
        wanted = pattern.args
        if wanted is None:
            yield result
        elif len(wanted) == len(call.args):
            yield from self.all_match(wanted, call.args, result)
            if isinstance(call.op, Op) and call.op.name in _COMMUTATIVE:
                yield from self.all_match(wanted, call.args[::-1], result)

    def _reordered(self, pattern: CallPattern, call: Call, result: Found) -> Iterator[Found]:
        """(a / b) * c is (a * c) / b, and (c / b) * a: a pattern of one of them matches the others."""
        wanted = pattern.op.expr if isinstance(pattern.op, ExprPattern) else None
        if not isinstance(wanted, Op) or pattern.args is None or wanted.name not in ("divide", "multiply"):
            return
        for factors, divisor, inner, product, quotient in _fractions(call):
            hidden = {**result, REORDERED: (*result.get(REORDERED, ()), inner)}
            for way in self.matches(pattern.op, wanted, hidden):
                if wanted.name == "divide":
                    yield from self.all_match(pattern.args, (product(*factors), divisor), way)
                    continue
                for one, other in (factors, factors[::-1]):
                    yield from self.all_match(pattern.args, (quotient(one, divisor), other), way)
                    yield from self.all_match(pattern.args, (other, quotient(one, divisor)), way)

    def function(self, pattern: FunctionPattern, expression: Expr, result: Found) -> Iterator[Found]:
        if not isinstance(expression, Function):
            return
        wanted = pattern.params
        if wanted is None:
            yield from self.matches(pattern.body, expression.body, result)
        elif len(wanted) == len(expression.params):
            for way in self.all_match(wanted, expression.params, result):
                yield from self.matches(pattern.body, expression.body, way)

    def branch(self, pattern: IfPattern, expression: Expr, result: Found) -> Iterator[Found]:
        if isinstance(expression, If):
            yield from self.all_match(pattern.parts(), parts(expression), result)

    def let(self, pattern: LetPattern, expression: Expr, result: Found) -> Iterator[Found]:
        if isinstance(expression, Let):
            yield from self.all_match(pattern.parts(), parts(expression), result)

    def tuple(self, pattern: TuplePattern, expression: Expr, result: Found) -> Iterator[Found]:
        if not isinstance(expression, Tuple):
            return
        if pattern.fields is None:
            yield result
        elif len(pattern.fields) == len(expression.fields):
            yield from self.all_match(pattern.fields, expression.fields, result)

    def field(self, pattern: TupleGetItemPattern, expression: Expr, result: Found) -> Iterator[Found]:
        if isinstance(expression, TupleGetItem) and pattern.index in (None, expression.index):
            yield from self.matches(pattern.tuple, expression.tuple_value, result)

    def either(self, pattern: AltPattern, expression: Expr, result: Found) -> Iterator[Found]:
        yield from self.matches(pattern.left, expression, result)
        yield from self.matches(pattern.right, expression, result)

    # -- conditions ---------------------------------------------------------------------------------------------------

    def attributes(self, pattern: AttrPattern, expression: Expr, result: Found) -> Iterator[Found]:
        if all(_attribute_is(expression, name, value) for name, value in pattern.attrs.items()):
            yield from self.matches(pattern.pattern, expression, result)

    def typed(self, pattern: TypePattern, expression: Expr, result: Found) -> Iterator[Found]:
        if same_type(self.type_of(expression), pattern.type):
            yield from self.matches(pattern.pattern, expression, result)

    def dtype(self, pattern: DataTypePattern, expression: Expr, result: Found) -> Iterator[Found]:
        of = self.type_of(expression)
        if isinstance(of, TensorType) and of.dtype == pattern.dtype:
            yield from self.matches(pattern.pattern, expression, result)

    def shape(self, pattern: ShapePattern, expression: Expr, result: Found) -> Iterator[Found]:
        of = self.type_of(expression)
        if isinstance(of, TensorType) and len(of.shape) == len(pattern.shape):
            if all(same_dim(a, as_dim(b)) for a, b in zip(of.shape, pattern.shape, strict=True)):
                yield from self.matches(pattern.pattern, expression, result)

    def type_of(self, expression: Expr) -> Type | None:
        """The type of an expression; None where it cannot be found."""
        if isinstance(expression, (Op, GlobalVar)):
            return None
        if expression.checked_type_ is None:
            try:
                return infer(expression)
            except LoopwrightError:
                return None
        known: Type = expression.checked_type_
        return known

    # -- dominators ---------------------------------------------------------------------------------------------------

    def dominator(self, pattern: DominatorPattern, expression: Expr, result: Found) -> Iterator[Found]:
        for way in self.matches(pattern.child, expression, result):
            between: list[Expr] = []
            parents: list[Expr] = []
            reached = self._climb(pattern, expression, way, between, parents)
            if reached and self._all_pass(parents[0], between, expression):
                for whole in self.matches(pattern.parent, parents[0], way):
                    yield {**whole, pattern.path: tuple(between)}

    def _climb(
        self, pattern: DominatorPattern, start: Expr, result: Found, between: list[Expr], parents: list[Expr]
    ) -> bool:
        """Go from the child to the parent on all ways; on every one there is only what `path` matches."""
        waiting, seen = [start], {start}
        while waiting:
            for part in parts(waiting.pop()):
                if part in seen:
                    continue
                seen.add(part)
                if next(self.matches(pattern.parent, part, result), None) is not None:
                    parents.append(part)
                elif next(self.matches(pattern.path, part, {}), None) is not None:
                    between.append(part)
                    waiting.append(part)
                else:
                    return False
        return len(parents) == 1

    def _all_pass(self, parent: Expr, between: list[Expr], child: Expr) -> bool:
        """Whether the parent, and all on the way, is used on the way to the child only."""
        inside = {child, *between}
        return all(
            user in inside
            for expression in (parent, *between)
            if not isinstance(expression, (Var, Constant))
            for user in self.users(expression)
        )

    def users(self, expression: Expr) -> list[Expr]:
        """The expressions of the graph that use this one."""
        if self._users is None:
            self._users = {}
            for user in post_order(self.root):
                for part in parts(user):
                    self._users.setdefault(part, []).append(user)
        return self._users.get(expression, [])


def _is_call(expression: Expr, name: str) -> bool:
    return isinstance(expression, Call) and isinstance(expression.op, Op) and expression.op.name == name


def _fractions(call: Call) -> Iterator[_Fraction]:
    """A product of two factors over a divisor, if the call is one: with its inner call, and how its parts are made."""

    def maker(like: Call) -> Callable[..., Call]:
        return lambda *args: Call(like.op, args, like.attrs)

    if _is_call(call, "divide") and _is_call(call.args[0], "multiply"):
        product = call.args[0]
        assert isinstance(product, Call)
        one, other = product.args
        yield (one, other), call.args[1], product, maker(product), maker(call)
    elif _is_call(call, "multiply"):
        for location in (0, 1):
            inner = call.args[location]
            if isinstance(inner, Call) and _is_call(inner, "divide"):
                yield (inner.args[0], call.args[1 - location]), inner.args[1], inner, maker(call), maker(inner)


def _attribute_is(expression: Expr, name: str, wanted: object) -> bool:
    """Whether a call, a function or an operator has the attribute, of that value."""
    if isinstance(expression, Op):
        return _same(expression.get_attr(name), wanted)
    attrs = getattr(expression, "attrs", None)
    return attrs is not None and name in attrs and _same(attrs[name], wanted)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    if one is None or other is None:
        return one is other
    return structural_equal(one, other) if hasattr(one, "node_fields") else bool(one == other)


_RULES: Final[dict[type, Callable[..., Iterator[Found]]]] = {
    ExprPattern: Matcher.expr,
    VarPattern: Matcher.var,
    ConstantPattern: Matcher.constant,
    WildcardPattern: Matcher.wildcard,
    CallPattern: Matcher.call,
    FunctionPattern: Matcher.function,
    IfPattern: Matcher.branch,
    LetPattern: Matcher.let,
    TuplePattern: Matcher.tuple,
    TupleGetItemPattern: Matcher.field,
    AltPattern: Matcher.either,
    AttrPattern: Matcher.attributes,
    TypePattern: Matcher.typed,
    DataTypePattern: Matcher.dtype,
    ShapePattern: Matcher.shape,
    DominatorPattern: Matcher.dominator,
}


@deep
def match(pattern: DFPattern, expr: Expr) -> bool:
    """Whether the expression has the shape of the pattern."""
    return Matcher(expr).first(pattern, expr) is not None


searches["match"] = match
