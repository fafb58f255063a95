"""Patterns of graphs, written as the graphs they match.

    x = wildcard()
    is_op("add")(x, x)           a value added to itself: a pattern that stands twice means the same value twice

A pattern says only what it matches; `matcher.py` says how that is found out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from loopwright.ir.types import Type
from loopwright.relay.expr import Expr
from loopwright.relay.op.registry import Op, get
from loopwright.relay.types import DimLike

# What is done with a pattern; `matcher.py` enters "match", `partition.py` "partition".
searches: Final[dict[str, Callable[..., Any]]] = {}


class DFPattern:
    """The base of patterns. A pattern is itself, whatever it says: it is the key of what it has matched."""

    def parts(self) -> Sequence[DFPattern]:
        """The patterns it is made of."""
        return ()

    def __call__(self, *args: DFPattern | None) -> CallPattern:
        """A call of what this matches; `pattern(None)` one with any arguments."""
        if len(args) == 1 and args[0] is None:
            return CallPattern(self, None)
        return CallPattern(self, [as_pattern(arg) for arg in args])

    def __or__(self, other: DFPattern) -> AltPattern:
        return AltPattern(self, other)

    def __add__(self, other: DFPattern) -> CallPattern:
        return is_op("add")(self, other)

    def __sub__(self, other: DFPattern) -> CallPattern:
        return is_op("subtract")(self, other)

    def __mul__(self, other: DFPattern) -> CallPattern:
        return is_op("multiply")(self, other)

    def __truediv__(self, other: DFPattern) -> CallPattern:
        return is_op("divide")(self, other)

    def optional(self, option_constructor: Callable[[DFPattern], DFPattern]) -> DFPattern:
        """This, or what is made of it: `conv.optional(lambda x: is_op("nn.relu")(x))`."""
        return self | option_constructor(self)

    def has_attr(self, attrs: Mapping[str, object]) -> AttrPattern:
        """This, with attributes of these values."""
        return AttrPattern(self, attrs)

    def has_type(self, ttype: Type) -> TypePattern:
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: str) -> DataTypePattern:
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[DimLike]) -> ShapePattern:
        return ShapePattern(self, shape)

    def dominates(self, parent: DFPattern, path: DFPattern | None = None) -> DominatorPattern:
        """This, reached from `parent` through nothing but `path`."""
        return DominatorPattern(parent, path if path is not None else wildcard(), self)

    def match(self, expr: Expr) -> bool:
        """Whether the expression has this shape."""
        result: bool = searches["match"](self, expr)
        return result

    def partition(
        self, expr: Expr, attrs: Mapping[str, object] | None = None, check: Callable[[Expr], bool] = lambda result: True
    ) -> Expr:
        """The expression with every place of this shape as a call of a function; see `partition.py`."""
        return searches["partition"](self, expr, attrs, check)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(repr(part) for part in self.parts())})"


class ExprPattern(DFPattern):
    """This very expression, or one that is structurally equal; an operator."""

    def __init__(self, expr: Expr | Op | None) -> None:
        self.expr = expr

    def __repr__(self) -> str:
        return f"is_op({self.expr.name!r})" if isinstance(self.expr, Op) else f"is_expr({self.expr})"


class VarPattern(DFPattern):
    """A variable; of that name, if one is given."""

    def __init__(self, name_hint: str = "") -> None:
        self.name = name_hint


class ConstantPattern(DFPattern):
    """A constant."""


class WildcardPattern(DFPattern):
    """Anything; or, once redirected, what another pattern matches, which may hold this one: a pattern that repeats."""

    def __init__(self) -> None:
        self.pattern: DFPattern | None = None

    def redirect_to(self, pat: DFPattern) -> None:
        """Match what `pat` matches from now on."""
        self.pattern = pat

    def parts(self) -> Sequence[DFPattern]:
        return () if self.pattern is None else (self.pattern,)

    def __repr__(self) -> str:
        return "wildcard()"


class CallPattern(DFPattern):
    """A call; of any arguments where `args` is None."""

    def __init__(self, op: DFPattern, args: Sequence[DFPattern] | None) -> None:
        self.op = op
        self.args = None if args is None else tuple(args)

    def parts(self) -> Sequence[DFPattern]:
        return (self.op, *(self.args or ()))


class FunctionPattern(DFPattern):
    """A function; of any parameters where `params` is None."""

    def __init__(self, params: Sequence[DFPattern] | None, body: DFPattern) -> None:
        self.params = None if params is None else tuple(params)
        self.body = body

    def parts(self) -> Sequence[DFPattern]:
        return (*(self.params or ()), self.body)


class IfPattern(DFPattern):
    """A choice between two values."""

    def __init__(self, cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> None:
        self.cond, self.true_branch, self.false_branch = cond, true_branch, false_branch

    def parts(self) -> Sequence[DFPattern]:
        return (self.cond, self.true_branch, self.false_branch)


class LetPattern(DFPattern):
    """A value given a name."""

    def __init__(self, var: DFPattern, value: DFPattern, body: DFPattern) -> None:
        self.var, self.value, self.body = var, value, body

    def parts(self) -> Sequence[DFPattern]:
        return (self.var, self.value, self.body)


class TuplePattern(DFPattern):
    """A tuple; of any fields where `fields` is None."""

    def __init__(self, fields: Sequence[DFPattern] | None) -> None:
        self.fields = None if fields is None else tuple(fields)

    def __getitem__(self, index: int) -> DFPattern:
        if self.fields is None:
            raise IndexError("this pattern matches a tuple of any fields: it has none of its own")
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields or ())

    def parts(self) -> Sequence[DFPattern]:
        return self.fields or ()


class TupleGetItemPattern(DFPattern):
    """A field of a tuple; any one where `index` is None."""

    def __init__(self, tuple_value: DFPattern, index: int | None = None) -> None:
        self.tuple = tuple_value
        self.index = None if index is None or index < 0 else index

    def parts(self) -> Sequence[DFPattern]:
        return (self.tuple,)


class AltPattern(DFPattern):
    """One or the other; the left one is tried first."""

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left, self.right = left, right

    def parts(self) -> Sequence[DFPattern]:
        return (self.left, self.right)


class AttrPattern(DFPattern):
    """What another pattern matches, with attributes of these values: of a call, of a function, of an operator."""

    def __init__(self, pattern: DFPattern, attrs: Mapping[str, object]) -> None:
        self.pattern = pattern
        self.attrs = dict(attrs)

    def parts(self) -> Sequence[DFPattern]:
        return (self.pattern,)


class TypePattern(DFPattern):
    """What another pattern matches, of this type."""

    def __init__(self, pattern: DFPattern, ttype: Type) -> None:
        self.pattern = pattern
        self.type = ttype

    def parts(self) -> Sequence[DFPattern]:
        return (self.pattern,)


class DataTypePattern(DFPattern):
    """What another pattern matches, a tensor of these elements."""

    def __init__(self, pattern: DFPattern, dtype: str) -> None:
        self.pattern = pattern
        self.dtype = dtype

    def parts(self) -> Sequence[DFPattern]:
        return (self.pattern,)


class ShapePattern(DFPattern):
    """What another pattern matches, a tensor of this shape."""

    def __init__(self, pattern: DFPattern, shape: Sequence[DimLike]) -> None:
        self.pattern = pattern
        self.shape = tuple(shape)

    def parts(self) -> Sequence[DFPattern]:
        return (self.pattern,)


class DominatorPattern(DFPattern):
    """`child`, which `parent` reaches on every way, and on the ways there is nothing but `path`."""

    def __init__(self, parent: DFPattern, path: DFPattern, child: DFPattern) -> None:
        self.parent, self.path, self.child = parent, path, child

    def parts(self) -> Sequence[DFPattern]:
        return (self.parent, self.path, self.child)


def as_pattern(value: DFPattern | Expr | Op | None) -> DFPattern:
    """A pattern as it is; an expression stands for itself."""
    return value if isinstance(value, DFPattern) else ExprPattern(value)


def all_patterns(root: DFPattern) -> Iterator[DFPattern]:
    """Every pattern that one is made of, and it itself, once."""
    seen = {root}
    waiting = [root]
    for pattern in waiting:
        yield pattern
        for part in pattern.parts():
            if part not in seen:
                seen.add(part)
                waiting.append(part)


def wildcard() -> WildcardPattern:
    """Anything."""
    return WildcardPattern()


def is_var(name: str = "") -> VarPattern:
    """A variable; of that name, if one is given."""
    return VarPattern(name)


def is_constant() -> ConstantPattern:
    """A constant."""
    return ConstantPattern()


def is_expr(expr: Expr) -> ExprPattern:
    """This expression, or one structurally equal to it."""
    return ExprPattern(expr)


def is_op(op_name: str) -> ExprPattern:
    """The operator of that name: `is_op("add")(wildcard(), wildcard())` is a call of it."""
    return ExprPattern(get(op_name))


def is_tuple(fields: Sequence[DFPattern] | None) -> TuplePattern:
    """A tuple of what these match; of anything where `fields` is None."""
    return TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """A field of a tuple."""
    return TupleGetItemPattern(tuple_value, index)


def is_if(cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> IfPattern:
    """A choice."""
    return IfPattern(cond, true_branch, false_branch)


def is_let(var: DFPattern, value: DFPattern, body: DFPattern) -> LetPattern:
    """A let."""
    return LetPattern(var, value, body)


def has_type(ttype: Type, pattern: DFPattern | None = None) -> TypePattern:
    """What `pattern` matches (anything, if it is not given), of this type."""
    return TypePattern(pattern or wildcard(), ttype)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DataTypePattern:
    """What `pattern` matches (anything, if it is not given), a tensor of these elements."""
    return DataTypePattern(pattern or wildcard(), dtype)


def has_shape(shape: Sequence[DimLike], pattern: DFPattern | None = None) -> ShapePattern:
    """What `pattern` matches (anything, if it is not given), a tensor of this shape."""
    return ShapePattern(pattern or wildcard(), shape)


def has_attr(attrs: Mapping[str, object], pattern: DFPattern | None = None) -> AttrPattern:
    """What `pattern` matches (anything, if it is not given), with attributes of these values."""
    return AttrPattern(pattern or wildcard(), attrs)


def dominates(parent: DFPattern, path: DFPattern, child: DFPattern) -> DominatorPattern:
    """`child`, reached from `parent` through nothing but `path`."""
    return DominatorPattern(parent, path, child)
