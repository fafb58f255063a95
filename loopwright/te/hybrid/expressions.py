"""Reading the expressions of hybrid functions."""

from __future__ import annotations

import ast
import operator
import types
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from loopwright.ir import (
    Expr,
    FloatImm,
    IntImm,
    ProducerLoad,
    Select,
    const,
    logical_and,
    logical_not,
    logical_or,
    match_types,
)
from loopwright.ir.intrinsics import if_then_else
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError, SourceLine
from loopwright.script.parser.source import Source
from loopwright.te.hybrid.builtins import FUNCTIONS, LOOPS, STORAGE, WrongCall, literal_int, number
from loopwright.te.hybrid.emulation import CASTS
from loopwright.te.hybrid.errors import HybridCallError, HybridError, HybridNameError
from loopwright.te.hybrid.symbols import Meaning, Scalar, Scope
from loopwright.te.operation import has_load
from loopwright.te.tensor import Tensor

_BINARY: Final[Mapping[type, Callable[[Expr, Expr], Expr]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_COMPARE: Final[Mapping[type, Callable[[Expr, Expr], Expr]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_MISSING: Final = object()


class ExpressionReader:
    """Reads expressions; `StatementReader` adds statements and the calls that make some."""

    def __init__(self, function: types.FunctionType, source: Source, scope: Scope) -> None:
        self.function = function
        self.source = source
        self.scope = scope
        self.gone: dict[str, str] = {}  # names of loops that have ended, and the loop's variable

    # --- errors ---------------------------------------------------------------------------------------------------

    def place(self, node: ast.AST) -> SourceLine:
        return self.source.place(node)

    def read(self, node: ast.expr) -> Meaning:
        """What an expression stands for; errors below name the place."""
        method = getattr(self, f"read_{type(node).__name__}", None)
        if method is None:
            raise HybridError(
                f"{type(node).__name__} has no meaning in a hybrid function",
                self.place(node),
                "use arithmetic, comparisons, and/or/not, `a if c else b`, elements and the listed functions",
            )
        try:
            return method(node)
        except HybridError:
            raise
        except WrongCall as error:
            raise HybridCallError(error.problem, self.place(node), error.hint) from None
        except LoopwrightError as error:
            raise HybridError(error.problem, self.place(node), error.hint, error.why) from error

    def number(self, node: ast.expr, what: str = "this") -> Expr:
        """An expression that must be a number."""
        value = self.read(node)
        try:
            return number(value, what)
        except WrongCall as error:
            raise HybridError(error.problem, self.place(node), error.hint) from None

    def condition(self, node: ast.expr) -> Expr:
        value = self.number(node, "the condition")
        return value if value.dtype.is_bool else logical_and(value)

    # --- leaves ---------------------------------------------------------------------------------------------------

    def read_Constant(self, node: ast.Constant) -> Expr | str:
        value = node.value
        if isinstance(value, str):
            return value
        if isinstance(value, (bool, int, float)):
            return const(value)
        raise HybridError(f"the literal {value!r} has no meaning here", self.place(node), "use numbers")

    def read_Name(self, node: ast.Name) -> Meaning:
        result = self.scope.find(node.id)
        if isinstance(result, Scalar):
            return ProducerLoad(result.cell, (const(0),))
        if result is not None:
            return result.meaning
        if node.id in self.gone:
            raise HybridNameError(
                f"{node.id} is used outside the loop over {self.gone[node.id]}, which defines it",
                self.place(node),
                f"assign {node.id} before the loop, so that it lives longer",
            )
        value = self.outside(node.id)
        if value is _MISSING:
            raise HybridNameError(
                f"{node.id} has no value here", self.place(node), "assign it first, or define it as a constant outside"
            )
        return self._captured(node, value)

    def outside(self, name: str) -> object:
        """What the name stands for where the function was defined."""
        code, closure = self.function.__code__, self.function.__closure__ or ()
        for free, cell in zip(code.co_freevars, closure, strict=True):
            if free == name:
                try:
                    return cell.cell_contents
                except ValueError:  # assigned only later
                    return _MISSING
        return self.function.__globals__.get(name, _MISSING)

    def _captured(self, node: ast.Name, value: object) -> Meaning:
        if isinstance(value, (bool, int, float, np.generic)):
            return const(value)
        if isinstance(value, (IntImm, FloatImm, str, DataType)):
            return value
        if isinstance(value, (tuple, list)):
            return tuple([self._captured(node, item) for item in value])
        raise HybridNameError(
            f"{node.id} is {type(value).__name__} {value!r}, which a hybrid function cannot use",
            self.place(node),
            "names from outside are constants or tuples of them; pass tensors as arguments",
        )

    def read_Tuple(self, node: ast.Tuple) -> tuple[Meaning, ...]:
        return tuple([self.read(item) for item in node.elts])

    read_List = read_Tuple

    # --- operators ------------------------------------------------------------------------------------------------

    def read_BinOp(self, node: ast.BinOp) -> Expr | tuple[Meaning, ...]:
        a, b = self.read(node.left), self.read(node.right)
        if isinstance(node.op, ast.Add) and isinstance(a, tuple) and isinstance(b, tuple):
            return a + b
        return self.combine(node.op, number(a, "the left side"), number(b, "the right side"), node)

    def combine(self, op: ast.operator, a: Expr, b: Expr, node: ast.AST) -> Expr:
        build = _BINARY.get(type(op))
        if build is None:
            raise HybridError(f"the operator {type(op).__name__} has no meaning here", self.place(node))
        if isinstance(op, ast.Div) and not a.dtype.is_float and not b.dtype.is_float:
            raise HybridError(
                f"/ divides {a.dtype} by {b.dtype}",
                self.place(node),
                "use // to divide integers, or convert one first: float32(i) / n",
            )
        return build(a, b)

    def read_UnaryOp(self, node: ast.UnaryOp) -> Expr:
        value = self.number(node.operand)
        if isinstance(node.op, ast.Not):
            return logical_not(self.condition(node.operand))
        if isinstance(node.op, ast.USub):
            return const(-value.value, value.dtype) if isinstance(value, (IntImm, FloatImm)) else -value
        return value if isinstance(node.op, ast.UAdd) else ~value

    def read_BoolOp(self, node: ast.BoolOp) -> Expr:
        join = logical_and if isinstance(node.op, ast.And) else logical_or
        return join(*[self.condition(value) for value in node.values])

    def read_Compare(self, node: ast.Compare) -> Expr:
        values = [self.number(node.left), *[self.number(right) for right in node.comparators]]
        parts: list[Expr] = []
        for op, left, right in zip(node.ops, values, values[1:], strict=False):
            a, b = match_types(left, right)
            if isinstance(op, (ast.Eq, ast.NotEq)):
                equal = a.equal(b)
                parts.append(equal if isinstance(op, ast.Eq) else logical_not(equal))
            elif type(op) in _COMPARE:
                parts.append(_COMPARE[type(op)](a, b))
            else:
                raise HybridError(f"the comparison {type(op).__name__} has no meaning here", self.place(node))
        return logical_and(*parts)

    def read_IfExp(self, node: ast.IfExp) -> Meaning:
        condition = self.condition(node.test)
        if isinstance(condition, IntImm):
            return self.read(node.body if condition.value else node.orelse)
        a, b = match_types(self.number(node.body), self.number(node.orelse))
        # As in Python, only the chosen side is evaluated: it may be an element that exists only then.
        lazy = has_load(a) or has_load(b)
        return if_then_else(condition, a, b) if lazy else Select(condition, a, b)

    # --- tensors --------------------------------------------------------------------------------------------------

    def read_Attribute(self, node: ast.Attribute) -> Meaning:
        value = self.read(node.value)
        if isinstance(value, Tensor) and node.attr in ("shape", "dtype", "ndim", "name"):
            if node.attr == "dtype":
                return str(value.dtype)
            return const(value.ndim) if node.attr == "ndim" else getattr(value, node.attr)
        raise HybridError(
            f"{ast.unparse(node)} has no meaning here", self.place(node), "tensors have .shape, .dtype and .ndim"
        )

    def read_Subscript(self, node: ast.Subscript) -> Meaning:
        holder, indices = self.element(node)
        if isinstance(holder, Tensor):
            return holder(*indices)
        part: Meaning = holder
        for depth, index in enumerate(indices):
            if isinstance(part, Tensor):
                return part(*indices[depth:])
            part = self._item(node, part, index)
        return part

    def _item(self, node: ast.Subscript, holder: Meaning, index: Expr) -> Meaning:
        if not isinstance(holder, tuple):
            raise HybridError(f"{ast.unparse(node.value)} cannot be indexed so", self.place(node), "index a tensor")
        position = literal_int(index)
        if position is None:
            raise HybridError(
                "a tuple is indexed by a number that is not constant",
                self.place(node),
                "use a constant, or the variable of a const_range loop",
            )
        if not -len(holder) <= position < len(holder):
            raise HybridError(f"index {position} is outside a tuple of {len(holder)}", self.place(node))
        return holder[position]

    def element(self, node: ast.Subscript) -> tuple[Tensor | tuple[Meaning, ...], tuple[Expr, ...]]:
        """A tensor (or tuple) and the indices given, `a[i][j]` being `a[i, j]`."""
        given = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices = tuple([self.number(index, "the index") for index in given])
        if isinstance(node.value, ast.Subscript):
            tensor, before = self.element(node.value)
            if isinstance(tensor, Tensor):
                return self._checked(node, tensor, (*before, *indices))
        holder = self.read(node.value)
        if isinstance(holder, Tensor):
            return self._checked(node, holder, indices)
        if not isinstance(holder, tuple):
            raise HybridError(f"{ast.unparse(node.value)} cannot be indexed so", self.place(node), "index a tensor")
        return holder, indices

    def _checked(
        self, node: ast.Subscript, tensor: Tensor, indices: tuple[Expr, ...]
    ) -> tuple[Tensor, tuple[Expr, ...]]:
        if len(indices) > tensor.ndim:
            raise HybridError(
                f"{tensor.name} has {tensor.ndim} dimensions, but {len(indices)} indices are given", self.place(node)
            )
        for position, index in enumerate(indices):
            if not index.dtype.is_int or index.dtype.is_bool:
                raise HybridError(
                    f"index {position} of {tensor.name} has type {index.dtype}",
                    self.place(node),
                    "indices are integers: use // to divide, int32(…) to convert",
                )
        return tensor, indices

    # --- calls ----------------------------------------------------------------------------------------------------

    def read_Call(self, node: ast.Call) -> Meaning:
        if not isinstance(node.func, ast.Name):
            raise HybridCallError(
                f"{ast.unparse(node.func)} is not called by a plain name",
                self.place(node),
                "call functions by their names alone",
            )
        name = node.func.id
        if name in LOOPS:
            raise HybridCallError(f"{name} stands outside the head of a loop", self.place(node), f"for i in {name}(…):")
        if name in STORAGE:
            raise HybridCallError(
                f"{name} stands inside an expression", self.place(node), f"give the memory a name: x = {name}(…)"
            )
        if any(isinstance(arg, ast.Starred) for arg in node.args):
            raise HybridCallError("* has no meaning in a call here", self.place(node), "write out the arguments")
        if name in CASTS and len(node.args) == 1 and isinstance(node.args[0], ast.Constant):
            return const(node.args[0].value, name)  # in that type at once, without a rounding on the way
        arguments = [self.read(arg) for arg in node.args]
        keywords = {str(keyword.arg): self.read(keyword.value) for keyword in node.keywords}
        other = self.outside(name)
        if hasattr(other, "read_into"):
            return self.call_function(node, other, arguments, keywords)
        if name not in FUNCTIONS:
            raise HybridCallError(
                f"{name} is no function that a hybrid function may call",
                self.place(node),
                f"the functions are {', '.join(sorted(FUNCTIONS))}, and other hybrid functions",
            )
        if keywords:
            raise HybridCallError(f"{name} takes no keywords", self.place(node), "give the arguments by position")
        return FUNCTIONS[name](*arguments)

    def call_function(
        self, node: ast.Call, other: Any, arguments: list[Meaning], keywords: dict[str, Meaning]
    ) -> Meaning:
        """A call of another hybrid function: its statements become part of this one."""
        raise NotImplementedError
