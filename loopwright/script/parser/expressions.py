"""Expressions of a script: an evaluator over Python's syntax tree.

Names stand for values of the script or of the code around it. Operators on IR values build IR; all else is plain
Python. What has no IR in it (comprehensions, lambdas, f-strings, …) is compiled and run by Python itself. Every error
is reported at the expression that raised it.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable
from typing import Any, ClassVar, Final, TypeAlias

from loopwright.ir import (
    Buffer,
    BufferLoad,
    BufferRegion,
    Call,
    Expr,
    GlobalVar,
    IntImm,
    StringImm,
    as_expr,
    const,
    logical_and,
    logical_not,
    logical_or,
)
from loopwright.ir.buffer import WrongIndexCount
from loopwright.ir.expr import binary_operators
from loopwright.ir.intrinsics import if_then_else
from loopwright.ir.machine_intrinsics import undef
from loopwright.ir.operators import cast
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import DiagnosticError, InternalError, SourceLine
from loopwright.script.parser.directives import MetaVar
from loopwright.script.parser.errors import (
    BadValueType,
    ExpressionFailed,
    RankMismatch,
    UndefinedName,
    UnknownAttribute,
    describe,
)
from loopwright.script.parser.scopes import MISSING, Scopes
from loopwright.script.parser.source import Source
from loopwright.script.parser.subscripts import indices_of, read, vector_of

Binary: TypeAlias = Callable[[Any, Any], object]  # on values of Python and of the program alike

BINARY: Final[dict[type[ast.operator], Binary]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
    ast.Pow: operator.pow,
}


def _comparison(sign: str, by_python: Binary) -> Binary:
    # Python turns `0 < x` into `x > 0` when the left side is its own; the program keeps the order written.
    build = binary_operators[sign]

    def compare(a: object, b: object) -> object:
        if isinstance(b, Expr) and isinstance(a, (int, float)):
            return build(a, b)
        return by_python(a, b)

    return compare


_COMPARE: Final[dict[type[ast.cmpop], Binary]] = {
    ast.Eq: _comparison("==", operator.eq),
    ast.NotEq: _comparison("!=", operator.ne),
    ast.Lt: _comparison("<", operator.lt),
    ast.LtE: _comparison("<=", operator.le),
    ast.Gt: _comparison(">", operator.gt),
    ast.GtE: _comparison(">=", operator.ge),
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_UNARY: Final[dict[type[ast.unaryop], Callable[[Any], object]]] = {
    ast.USub: operator.neg,
    ast.UAdd: lambda a: a if isinstance(a, Expr) else +a,
    ast.Invert: operator.invert,
    ast.Not: lambda a: logical_not(a) if isinstance(a, Expr) else not a,
}


_INTRINSIC_MODULES: Final = frozenset(
    {
        "loopwright.ir.intrinsics",
        "loopwright.ir.machine_intrinsics",
        "loopwright.ir.operators",
        "loopwright.script.words.values",
    }
)


class TakesRegions:
    """Marks a function of `T` to which `A[i:i + 4]` is a region; to all others it is a vector."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.function(*args, **kwargs)


class Evaluator:
    """Evaluate expressions in the scopes of one script."""

    def __init__(self, source: Source, scopes: Scopes) -> None:
        self.source = source
        self.scopes = scopes

    def place(self, node: ast.AST) -> SourceLine:
        return self.source.place(node)

    def evaluate(self, node: ast.expr) -> object:
        """The value of an expression: a Python value, an IR node or a directive."""
        return self._table.get(type(node), Evaluator._by_python)(self, node)

    def value(self, node: ast.expr) -> object:
        """Like `evaluate`, but a slice of a buffer is the vector it holds."""
        value = self.assigned(node)
        return value.value if type(value) is MetaVar else value

    def assigned(self, node: ast.expr) -> object:
        """Like `value`, but what T.meta_var marks stays marked: the name it is given leaves nothing in the program."""
        value = self.evaluate(node)
        return self.vector(value, node) if type(value) is BufferRegion else value

    def expression(self, node: ast.expr) -> Expr:
        """An expression of the program; Python numbers become literals."""
        return self._as_expression(self.value(node), node)

    def _as_expression(self, value: object, node: ast.expr) -> Expr:
        if isinstance(value, Expr):
            return value
        try:
            return as_expr(value)
        except Exception as error:
            raise self.failed(error, node) from error

    def condition(self, node: ast.expr) -> Expr:
        """A truth value of the program; integers compare with zero."""
        return self.as_condition(self.value(node), node)

    def as_condition(self, given: object, node: ast.expr) -> Expr:
        """What `node` evaluates to as a condition."""
        value = self._as_expression(given, node)
        if value.dtype.is_bool:
            return value
        if not value.dtype.is_int:
            raise BadValueType(f"a condition must be true or false, got {value.dtype}", self.place(node), "compare it")
        return logical_and(value)

    def failed(self, error: Exception, node: ast.AST) -> Exception:
        """`error` as a diagnostic at `node`, unless it is one already."""
        if isinstance(error, (DiagnosticError, InternalError)):
            return error
        if isinstance(error, WrongIndexCount):
            return RankMismatch(error, self.place(node))
        return ExpressionFailed(error, self.place(node))

    # --- leaves ---

    def _name(self, node: ast.Name) -> object:
        value = self.scopes.get(node.id)
        if value is MISSING:
            raise UndefinedName(node.id, self.scopes.names(), self.place(node))
        return value

    def _constant(self, node: ast.Constant) -> object:
        return node.value

    def _attribute(self, node: ast.Attribute) -> object:
        owner = self.evaluate(node.value)
        value = getattr(owner, node.attr, MISSING)
        if value is MISSING:
            shown = ast.unparse(node.value) if isinstance(node.value, (ast.Name, ast.Attribute)) else describe(owner)
            raise UnknownAttribute(shown, node.attr, dir(owner), self.place(node))
        return value

    # --- operators ---

    def _binary(self, node: ast.BinOp) -> object:
        # Left-leaning chains are as long as programs that print them: a loop, not recursion.
        spine = [node]
        while type(node.left) is ast.BinOp:
            node = node.left
            spine.append(node)
        left = self.value(node.left)
        while spine:
            node = spine.pop()
            right = self.value(node.right)
            try:
                left = BINARY[type(node.op)](left, right)
            except Exception as error:
                raise self.failed(error, node) from error
        return left

    def _unary(self, node: ast.UnaryOp) -> object:
        value = self.value(node.operand)
        try:
            return _UNARY[type(node.op)](value)
        except Exception as error:
            raise self.failed(error, node) from error

    def _boolean(self, node: ast.BoolOp) -> object:
        combine, stops = (logical_and, False) if type(node.op) is ast.And else (logical_or, True)
        result: object = None
        for position, operand in enumerate(node.values):
            value = self.value(operand)
            if position == 0 or not isinstance(result, Expr):
                result = value  # Python's own rule as long as the values are Python's
            else:
                try:
                    result = combine(result, value)
                except Exception as error:
                    raise self.failed(error, node) from error
            if not isinstance(result, Expr) and bool(result) is stops:
                return result
        return result

    def _compare(self, node: ast.Compare) -> object:
        left = self.value(node.left)
        result: object = True
        for sign, operand in zip(node.ops, node.comparators, strict=True):
            right = self.value(operand)
            try:
                holds = _COMPARE[type(sign)](left, right)
                if isinstance(result, Expr):
                    result = logical_and(result, holds)
                else:
                    result = holds
            except Exception as error:
                raise self.failed(error, node) from error
            if not isinstance(result, Expr) and not result:
                return result
            left = right
        return result

    def _conditional(self, node: ast.IfExp) -> object:
        condition = self.value(node.test)
        if isinstance(condition, Expr) and not isinstance(condition, IntImm):
            try:
                return if_then_else(condition, self.value(node.body), self.value(node.orelse))
            except Exception as error:
                raise self.failed(error, node) from error
        return self.value(node.body if condition else node.orelse)

    # --- subscripts ---

    def _subscript(self, node: ast.Subscript) -> object:
        owner: Any = self.evaluate(node.value)
        if isinstance(owner, Buffer):
            return self.access(owner, self.indices(node), node)
        index = self.evaluate(node.slice)
        try:
            return owner[index]
        except Exception as error:
            raise self.failed(error, node) from error

    def indices(self, node: ast.Subscript) -> tuple[object, ...]:
        """The values between the brackets; slices stay slices."""
        index = self.evaluate(node.slice)
        return tuple(index) if isinstance(index, (tuple, list)) else (index,)

    def access(self, buffer: Buffer, indices: tuple[object, ...], node: ast.AST) -> BufferLoad | BufferRegion:
        """`buffer[indices]`: a load, a region when slices have no step, or a vector load."""
        try:
            return read(buffer, indices, lambda: self.place(node))
        except Exception as error:
            raise self.failed(error, node) from error

    def vector(self, region: BufferRegion, node: ast.AST) -> BufferLoad:
        """The values of a region as one vector."""
        return vector_of(region, lambda: self.place(node))

    def store_indices(self, buffer: Buffer, indices: tuple[object, ...], node: ast.AST) -> tuple[Expr, ...]:
        """Indices of a store: slices become vectors of indices."""
        try:
            return indices_of(buffer, indices, lambda: self.place(node))
        except Exception as error:
            raise self.failed(error, node) from error

    def _slice(self, node: ast.Slice) -> slice:
        return slice(
            None if node.lower is None else self.value(node.lower),
            None if node.upper is None else self.value(node.upper),
            None if node.step is None else self.value(node.step),
        )

    # --- displays and calls ---

    def _items(self, nodes: list[ast.expr]) -> list[object]:
        values = []
        for node in nodes:
            if type(node) is ast.Starred:
                values += self._unpacked(node)
            else:
                value = self.evaluate(node)
                values.append(value.value if type(value) is MetaVar else value)
        return values

    def _unpacked(self, node: ast.Starred) -> list[object]:
        value: Any = self.evaluate(node.value)
        try:
            return list(value.value if type(value) is MetaVar else value)
        except Exception as error:
            raise self.failed(error, node) from error

    def _tuple(self, node: ast.Tuple) -> tuple[object, ...]:
        return tuple(self._items(node.elts))

    def _list(self, node: ast.List) -> list[object]:
        return self._items(node.elts)

    def _dict(self, node: ast.Dict) -> dict[object, object]:
        result: dict[object, object] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                more: Any = self.evaluate(value)
                result.update(more)
            else:
                result[self.evaluate(key)] = self.evaluate(value)
        return result

    def _call(self, node: ast.Call) -> object:
        function: Any = self.evaluate(node.func)
        args = self._items(node.args)
        kwargs: dict[str, object] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                more: Any = self.evaluate(keyword.value)
                kwargs.update(more)
            else:
                kwargs[keyword.arg] = self.evaluate(keyword.value)
        if not isinstance(function, TakesRegions):
            for position, arg in enumerate(args):
                if isinstance(arg, (BufferRegion, list, tuple)):
                    args[position] = self._vectors(arg, node.args[min(position, len(node.args) - 1)])
            if "dtype" in kwargs:
                _place_dtype(function, args, kwargs)
        if isinstance(function, GlobalVar):
            return self._call_function(function, args, node)
        try:
            return function(*args, **kwargs)
        except Exception as error:
            raise self.failed(error, node) from error

    def _vectors(self, value: object, node: ast.expr) -> object:
        """`value` with every region in it, also inside lists, as the vector it holds."""
        if isinstance(value, BufferRegion):
            return self.vector(value, node)
        if type(value) is not list and type(value) is not tuple:
            return value
        if any(isinstance(item, (BufferRegion, list, tuple)) for item in value):
            return type(value)([self._vectors(item, node) for item in value])
        return value

    def _call_function(self, function: GlobalVar, args: list[object], node: ast.Call) -> Expr:
        try:
            given = [as_expr(arg.data if isinstance(arg, Buffer) else arg) for arg in args]
        except Exception as error:
            raise self.failed(error, node) from error
        return Call(self.result_dtype(function), function, tuple(given))

    def result_dtype(self, function: GlobalVar) -> DataType:
        """What a call of a function of the module returns."""
        return DataType("void")

    def _by_python(self, node: ast.expr) -> object:
        """Whatever has no IR syntax of its own: compiled with all visible names as globals, and run."""
        try:
            code = compile(ast.fix_missing_locations(ast.Expression(node)), self.source.file, "eval")
            return eval(code, self.scopes.flat())
        except NameError as error:
            culprit = [one for one in ast.walk(node) if isinstance(one, ast.Name) and one.id == error.name]
            if not culprit:  # raised by something the expression calls
                raise self.failed(error, node) from error
            raise UndefinedName(culprit[0].id, self.scopes.names(), self.place(culprit[0])) from error
        except Exception as error:
            raise self.failed(error, node) from error

    _table: ClassVar[dict[type, Callable[[Evaluator, Any], object]]] = {
        ast.Name: _name,
        ast.Constant: _constant,
        ast.Attribute: _attribute,
        ast.BinOp: _binary,
        ast.UnaryOp: _unary,
        ast.BoolOp: _boolean,
        ast.Compare: _compare,
        ast.IfExp: _conditional,
        ast.Subscript: _subscript,
        ast.Slice: _slice,
        ast.Tuple: _tuple,
        ast.List: _list,
        ast.Dict: _dict,
        ast.Call: _call,
    }


def _place_dtype(function: object, args: list[object], kwargs: dict[str, object]) -> None:
    """`dtype=` as scripts write it after any intrinsic: in front where the result type is asked for, else left out."""
    if getattr(function, "__module__", None) not in _INTRINSIC_MODULES:
        return
    code = getattr(function, "__code__", None)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code is not None else ()
    if names[:1] == ("dtype",):
        args.insert(0, kwargs.pop("dtype"))
    elif "dtype" not in names:
        del kwargs["dtype"]


def stored_value(value: object, dtype: DataType) -> Expr:
    """`value` as it is stored in memory of `dtype`: Python numbers take the type, expressions are cast."""
    if isinstance(value, (bool, int, float)) and not dtype.is_vector:
        if dtype.is_float:
            return const(float(value), dtype)
        if isinstance(value, int) and (dtype.is_int or dtype.is_bool):
            return const(value, dtype)
    result = as_expr(value)
    if isinstance(result, Call) and result.op.name == "tir.undef":
        return undef(dtype)  # there is nothing to convert
    return result if isinstance(result, StringImm) else cast(result, dtype)
