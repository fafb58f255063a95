"""When two graphs are the same: equality and hash for `ir.structural_equal` and `ir.structural_hash`.

A graph is written as rows, one a value, each after those it is made of and naming them by their numbers; graphs are the
same when their rows are. Variables are numbered where they are met, so their names do not matter; their types do. A
type that was inferred is as good as one that was declared; one that is nowhere declared follows from the rest, and is
not compared. Sizes in types are compared as expressions of size variables, which correspond
one to one. Attributes are compared by value and type, constants by their bytes.

What is computed once is not what is computed twice: sharing matters for calls and all else that does something. Tuples,
projections and constants, which cost nothing, are compared by value.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from loopwright.ir.expr import GlobalVar
from loopwright.ir.expr import Var as SizeVariable
from loopwright.ir.structural_hash import Serialization
from loopwright.ir.types import TupleType, Type
from loopwright.relay.adt import Constructor, Match, Pattern
from loopwright.relay.expr import Call, Constant, Expr, Function, If, Let, RefCreate, RefRead, Tuple, TupleGetItem, Var
from loopwright.relay.op.registry import Op
from loopwright.relay.types import FuncType, IncompleteType, RefType, TensorType, TypeCall, TypeVar, is_any
from loopwright.relay.visitor import parts, post_order
from loopwright.target import VirtualDevice

Row = tuple[object, ...]


class _Plain(Serialization):
    """Sizes and attributes as text; a size variable is numbered where it is first met."""

    def __init__(self) -> None:
        super().__init__(map_free_vars=True)

    def bind(self, var: SizeVariable) -> None:
        self.parts.append(f"size {var.dtype!s}")
        self.number(var)


class _Elements:
    """The elements of a constant, compared by their bytes: weights are large, and mostly one object on both sides."""

    __slots__ = ("data",)

    def __init__(self, data: np.ndarray) -> None:
        self.data = data

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Elements):
            return False
        one, two = self.data, other.data
        if one is two:
            return True
        return one.dtype == two.dtype and one.shape == two.shape and one.tobytes() == two.tobytes()

    def __hash__(self) -> int:
        return hash((str(self.data.dtype), self.data.shape))

    def __repr__(self) -> str:
        digest = hashlib.blake2b(np.ascontiguousarray(self.data).tobytes(), digest_size=16).hexdigest()
        return f"{self.data.dtype}{self.data.shape}{digest}"


class _TypeOf:
    """The type of a variable or of what a function returns: as it was declared, or else as it was inferred.

    Where neither side declares one, it follows from the rest.
    """

    __slots__ = ("declared", "inferred")

    def __init__(self, declared: Row, inferred: Row) -> None:
        self.declared = declared
        self.inferred = inferred

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _TypeOf):
            return False
        if not self.declared and not other.declared:
            return True
        return (self.declared or self.inferred) == (other.declared or other.inferred)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return repr(self.declared)


class Rows:
    """The rows of one graph, and the value that each stands for."""

    def __init__(self, root: Expr | Type, map_free_vars: bool, by_name: bool = False) -> None:
        self.map_free_vars = map_free_vars
        self.by_name = by_name  # free variables by their names: for a hash that lasts
        self.rows: list[Row] = []
        self.values: list[Expr | Type] = []
        self._places: dict[Expr, int] = {}
        self._known: dict[Row, int] = {}
        self._type_vars: dict[TypeVar, int] = {}
        self._plain = _Plain()
        self._bound: set[Var] = set()
        if isinstance(root, Type):
            self.rows.append(self._type(root))
            self.values.append(root)
            return
        order = list(post_order(root))
        for expression in order:
            if isinstance(expression, Function):
                self._bound.update(expression.params)
            elif isinstance(expression, Let):
                self._bound.add(expression.var)
            elif isinstance(expression, Match):
                self._bound.update(var for clause in expression.clauses for var in clause.lhs.variables())
        for expression in order:
            self._add(expression)

    def size_variables(self) -> list[SizeVariable]:
        """The variables of sizes, in the order of their numbers."""
        return [var for var in self._plain.numbers if isinstance(var, SizeVariable)]

    def _add(self, expression: Expr) -> None:
        row = self._row(expression)
        by_value = isinstance(expression, (Tuple, TupleGetItem, Constant, GlobalVar, Constructor))
        location = self._known.get(row) if by_value else None
        if location is None:
            location = len(self.rows)
            self.rows.append(row)
            self.values.append(expression)
            if by_value:
                self._known[row] = location
        self._places[expression] = location

    def _row(self, expression: Expr) -> Row:
        name = type(expression).__name__
        if isinstance(expression, Var):
            return self._variable(expression)
        if isinstance(expression, Constant):
            return (name, _Elements(expression.data))
        if isinstance(expression, GlobalVar):
            return (name, expression.name)
        if isinstance(expression, Constructor):
            return (name, expression.name_hint, expression.belong_to.name_hint)
        below = tuple([self._places[part] for part in parts(expression)])
        if isinstance(expression, Call):
            if not isinstance(expression.op, Op):
                return (name, "", below, tuple([self._type(given) for given in expression.type_args]))
            return (name, expression.op.name, below, self._attributes(dict(expression.attrs.items())))
        if isinstance(expression, TupleGetItem):
            return (name, expression.index, below)
        if isinstance(expression, Function):
            types = tuple([self._type(param) for param in expression.type_params])
            inferred = expression.checked_type_
            inferred = inferred.ret_type if isinstance(inferred, FuncType) else None
            result = _TypeOf(self._type(expression.declared_ret_type), self._type(inferred))
            return (name, below, types, result, self._attributes(expression.attrs))
        if isinstance(expression, Match):
            return (name, below, expression.complete, tuple([_cases(clause.lhs) for clause in expression.clauses]))
        return (name, below)

    def _variable(self, var: Var) -> Row:
        of = _TypeOf(self._type(var.type_annotation), self._type(var.checked_type_))
        if var not in self._bound and not self.map_free_vars:
            return ("free", var.name_hint if self.by_name else var, of)
        device = var.virtual_device_
        return ("Var", of) if device is None or device == VirtualDevice() else ("Var", of, device)

    def _attributes(self, values: dict[str, object]) -> Row:
        return tuple([(name, self._text(values[name])) for name in sorted(values)])

    def _text(self, value: object) -> Row:
        """A size or an attribute; a number and a truth value are never the same."""
        if isinstance(value, VirtualDevice):
            return (value,)
        self._plain.parts = []
        self._plain.data(value)
        return tuple(self._plain.parts)

    def _size(self, size: object) -> object:
        if isinstance(size, int):
            return size
        return "?" if is_any(size) else self._text(size)

    def _type(self, of: Type | None) -> Row:
        if of is None or isinstance(of, IncompleteType):
            return ()
        if isinstance(of, TensorType):
            return ("Tensor", str(of.dtype), tuple([self._size(size) for size in of.shape]))
        if isinstance(of, TupleType):
            return ("Tuple", *[self._type(field) for field in of.fields])
        if isinstance(of, FuncType):
            params = tuple([self._type(param) for param in of.type_params])
            return ("Func", params, tuple([self._type(part) for part in of.arg_types]), self._type(of.ret_type))
        if isinstance(of, RefType):
            return ("Ref", self._type(of.value))
        if isinstance(of, TypeCall):
            return ("TypeCall", of.func.name_hint, *[self._type(part) for part in of.args])
        if isinstance(of, TypeVar):
            return ("TypeVar", self._type_vars.setdefault(of, len(self._type_vars)))
        return (type(of).__name__, repr(of))


def _cases(pattern: Pattern) -> Row:
    """A pattern without its variables, which are numbered as others are."""
    below = tuple([_cases(inner) for inner in getattr(pattern, "patterns", ())])
    return (type(pattern).__name__, getattr(getattr(pattern, "constructor", None), "name_hint", ""), below)


def compare(comparison: Any, one: Expr | Type, other: Expr | Type) -> bool:
    """Whether two graphs (or types) are the same; the comparison learns of the first difference."""
    left = Rows(one, comparison.map_free_vars)
    right = Rows(other, comparison.map_free_vars)
    if left.rows == right.rows:
        return True
    count = min(len(left.rows), len(right.rows))
    location = next((k for k in range(count) if left.rows[k] != right.rows[k]), count - 1)
    result, wanted = left.values[location], right.values[location]
    comparison.path.extend(reversed(_path(one, result)))
    if not isinstance(result, Type) and not isinstance(wanted, Type):
        comparison.shown = (result, wanted)
    what = _Said(result, left.rows[location]), _Said(wanted, right.rows[location])
    return bool(comparison.differ(*what))


class _Said:
    """A value as the message of a difference names it."""

    def __init__(self, value: Expr | Type, row: Row) -> None:
        self.value = value
        self.row = row

    def __repr__(self) -> str:
        value = self.value
        if isinstance(value, Call):
            attrs = ", ".join([f"{name}={given!r}" for name, given in value.attrs.items()]) if value.attrs else ""
            return f"{value.op.name}({attrs})" if isinstance(value.op, Op) else "a call"
        if isinstance(value, Var):
            return f"%{value.name_hint}" + (f": {value.type_annotation}" if value.type_annotation is not None else "")
        if isinstance(value, Constant):
            return f"a constant {value.checked_type}" if value.data.size > 8 else f"constant {value.data!r}"
        if isinstance(value, Function):
            return f"a function of {len(value.params)} parameters, attributes {value.attrs}"
        if isinstance(value, (If, Let, Tuple, RefCreate, RefRead)):
            return f"{type(value).__name__} of {len(parts(value))} parts"
        return f"field {value.index}" if isinstance(value, TupleGetItem) else str(value)


def _path(root: Expr | Type, wanted: Expr | Type) -> list[str]:
    """The way from the root to a value: `.body.args[0]`; the first one found."""
    if isinstance(root, Type):
        return []
    came: dict[Expr | Type, tuple[Expr, str]] = {}
    seen = {root}
    waiting = [root]
    for expression in waiting:
        if expression is wanted:
            break
        for name, part in _named_parts(expression):
            if part not in seen:
                seen.add(part)
                came[part] = (expression, name)
                waiting.append(part)
    steps: list[str] = []
    while wanted in came:
        wanted, name = came[wanted]
        steps.append(name)
    return steps[::-1]


def _named_parts(expression: Expr) -> list[tuple[str, Expr]]:
    if isinstance(expression, Call):
        callee = [] if isinstance(expression.op, Op) else [(".op", expression.op)]
        return callee + [(f".args[{k}]", arg) for k, arg in enumerate(expression.args)]
    if isinstance(expression, Tuple):
        return [(f".fields[{k}]", field) for k, field in enumerate(expression.fields)]
    if isinstance(expression, Function):
        return [(f".params[{k}]", param) for k, param in enumerate(expression.params)] + [(".body", expression.body)]
    names = ("tuple_value", "var", "cond", "ref", "value", "true_branch", "false_branch", "body")
    return [(f".{name}", getattr(expression, name)) for name in names if hasattr(expression, name)]


def write(serialization: Serialization, root: Expr | Type) -> None:
    """Add a graph (or a type) to what is hashed."""
    serialization.text(repr(Rows(root, serialization.map_free_vars, by_name=True).rows))


def size_variables(root: Expr | Type) -> list[SizeVariable]:
    """The size variables of a graph, in the order in which they are met: in two equal graphs they correspond."""
    return Rows(root, map_free_vars=True).size_variables()
