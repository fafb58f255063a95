"""shape_values: what a graph computes about shapes, as numbers and expressions of size variables.

    shape_of(%x)                                   with %x: Tensor[(n, 12, 64)]: [n, 12, 64]
    take(shape_of(%x), 0) * 12                     n * 12
    concatenate([…, [768]])                        [n * 12, 768]

Small tensors are arrays: of numbers where all elements are known, else of objects: numbers, expressions, and None for
an element that nobody knows. Operators that move elements do so by their references; arithmetic is done here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from loopwright.arith import Analyzer
from loopwright.ir import Expr as PrimExpr
from loopwright.ir.intrinsics import maximum, minimum
from loopwright.ir.operators import floordiv, floormod, truncdiv, truncmod
from loopwright.relay.expr import Call, Constant, Expr, Tuple, TupleGetItem
from loopwright.relay.interpreter import typed_result
from loopwright.relay.nested import Nested
from loopwright.relay.op.registry import Op
from loopwright.relay.transform.typed_rewrite import KnownTypes
from loopwright.relay.types import TensorType, as_dim, is_any
from loopwright.runtime.errors import LoopwrightError

_MOST = 256  # elements of a tensor that is looked at
_DEEPEST = 200  # operators from a shape to its use
# Operators that move elements, whatever those are.
_MOVES: Final = frozenset(
    "take gather strided_slice concatenate stack reshape squeeze expand_dims transpose broadcast_to tile repeat "
    "reverse split copy dyn.reshape dyn.strided_slice dyn.expand_dims dyn.squeeze".split()
)


# An element of a small tensor: a number of Python's or numpy's, or an expression; None where nobody knows it.
Element: TypeAlias = float | PrimExpr | None


_Arithmetic: TypeAlias = Callable[[int | PrimExpr, int | PrimExpr], int | PrimExpr | None]


def _rounds(down: _Arithmetic, to_zero: _Arithmetic) -> _Arithmetic:
    """A division that rounds towards zero, of numbers or sizes by what is positive.

    Of sizes, which are not negative, both roundings are the same; a difference of sizes may be negative.
    """

    def divide(one: int | PrimExpr, other: int | PrimExpr) -> int | PrimExpr | None:
        if isinstance(other, (int, float)) and other <= 0:
            return None
        is_size = one >= 0 if isinstance(one, int) else Analyzer().can_prove(one >= 0)
        return (down if is_size else to_zero)(one, other)

    return divide


# Of two elements of which at least one is no number.
_ARITHMETIC: Final[dict[str, _Arithmetic]] = {
    "add": lambda one, other: one + other,
    "subtract": lambda one, other: one - other,
    "multiply": lambda one, other: one * other,
    "divide": _rounds(floordiv, truncdiv),
    "floor_divide": _rounds(floordiv, floordiv),
    "trunc_divide": _rounds(floordiv, truncdiv),
    "mod": _rounds(floormod, truncmod),
    "floor_mod": _rounds(floormod, floormod),
    "trunc_mod": _rounds(floormod, truncmod),
    "maximum": maximum,
    "minimum": minimum,
}
_COMPARISONS: Final[dict[str, Callable[[Any, Any], PrimExpr]]] = {
    "equal": lambda one, other: one.equal(other) if isinstance(one, PrimExpr) else other.equal(one),
    "less": lambda one, other: one < other,
    "less_equal": lambda one, other: one <= other,
    "greater": lambda one, other: one > other,
    "greater_equal": lambda one, other: one >= other,
}
_OF_NUMBERS: Final[dict[str, Callable[[int, int], bool]]] = {
    "equal": operator.eq,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
_OPPOSITE: Final = {"less": "greater_equal", "less_equal": "greater", "greater": "less_equal", "greater_equal": "less"}


class ShapeValues:
    """The elements of small tensors; remembered by expression."""

    def __init__(self, types: KnownTypes) -> None:
        self.types = types
        self._found: dict[int, Nested[np.ndarray] | None] = {}
        self._kept: list[Expr] = []

    def of(self, expression: Expr) -> Nested[np.ndarray] | None:
        """The elements of a tensor (a list of arrays for a tuple); None where nothing is known."""
        return self._of(expression, 0)

    def numbers(self, expression: Expr) -> np.ndarray | None:
        """The elements, where all of them are numbers."""
        result = self.of(expression)
        return result if isinstance(result, np.ndarray) and result.dtype != object else None

    def sizes(self, expression: Expr) -> tuple[int | PrimExpr, ...] | None:
        """The elements of a vector as sizes, where all of them are known."""
        result = self.of(expression)
        if not isinstance(result, np.ndarray) or any(element is None for element in result.flat):
            return None
        if any(isinstance(element, (float, np.floating)) for element in result.flat):
            return None
        return tuple(element if isinstance(element, PrimExpr) else int(element) for element in result.flat)

    def _of(self, expression: Expr, depth: int) -> Nested[np.ndarray] | None:
        if id(expression) not in self._found:
            self._kept.append(expression)
            self._found[id(expression)] = None  # while it is looked at
            self._found[id(expression)] = self._look(expression, depth) if depth < _DEEPEST else None
        return self._found[id(expression)]

    def _look(self, expression: Expr, depth: int) -> Nested[np.ndarray] | None:
        if isinstance(expression, Constant):
            return expression.data if expression.data.size <= _MOST else None
        if isinstance(expression, Tuple):
            fields = [self._of(field, depth + 1) for field in expression.fields]
            return _all_known(fields)
        if isinstance(expression, TupleGetItem):
            whole = self._of(expression.tuple_value, depth + 1)
            return whole[expression.index] if isinstance(whole, list) else None
        if not isinstance(expression, Call) or not isinstance(expression.op, Op) or expression.attrs.stateful:
            return None
        if not self._is_small(expression):
            return None
        return self._of_call(expression, depth)

    def _is_small(self, expression: Call) -> bool:
        of = self.types.visit(expression)
        fields = [of] if isinstance(of, TensorType) else list(getattr(of, "fields", ()))
        for field in fields:
            if not isinstance(field, TensorType) or not all(isinstance(size, int) for size in field.shape):
                # Moves say what they give; their types may not.
                return expression.op.name in _MOVES and len(getattr(field, "shape", ())) <= 1
            if int(np.prod(field.concrete_shape)) > _MOST:
                return False
        return bool(fields)

    def _of_call(self, call: Call, depth: int) -> Nested[np.ndarray] | None:
        name = call.op.name
        if name in ("shape_of", "ndarray_size"):
            return self._shape(call)
        inputs = _all_known([self._of(arg, depth + 1) for arg in call.args])
        if inputs is None:
            return None
        if not any(_has_objects(value) for value in inputs):
            with np.errstate(all="ignore"):
                return typed_result(call, call.attrs.reference(*inputs))
        if name in _MOVES:
            return self._moved(call, inputs)
        if name in _ARITHMETIC:
            return _elements(lambda one, other: _computed(_ARITHMETIC[name], name, one, other), *inputs)
        if name in _COMPARISONS:
            return _elements(lambda one, other: _compared(name, one, other), *inputs)
        if name == "cast":
            kind = str(call.attrs.dtype)
            return inputs[0] if kind.startswith(("int", "uint", "float")) else None
        if name in ("floor", "ceil", "round"):
            return inputs[0]  # symbols are whole numbers
        if name == "where":
            return _elements(lambda choice, one, other: None if choice is None else (one if choice else other), *inputs)
        if name in ("prod", "sum") and call.attrs.axis in (None, (), 0, (0,)) and np.ndim(inputs[0]) == 1:
            assert isinstance(inputs[0], np.ndarray)
            start, step = (1, "multiply") if name == "prod" else (0, "add")
            total: Element = start
            for element in inputs[0]:
                total = _computed(_ARITHMETIC[step], step, total, element)
            return _array(total, (1,) if call.attrs.keepdims else ())
        if name in ("ones_like", "zeros_like"):
            return np.full(np.shape(inputs[0]), int(name == "ones_like"), "int64")
        return None

    def _shape(self, call: Call) -> np.ndarray | None:
        of = self.types.visit(call.args[0])
        if not isinstance(of, TensorType):
            return None
        sizes = [None if is_any(size) else size for size in of.shape]
        if call.op.name == "shape_of":
            return _array(sizes, (len(sizes),))
        total: Element = 1
        for size in sizes:
            total = _computed(_ARITHMETIC["multiply"], "multiply", total, size)
        return _array(total, ())

    def _moved(self, call: Call, inputs: list[Nested[np.ndarray]]) -> Nested[np.ndarray] | None:
        # What says where elements go must be numbers; what is moved is the first operand.
        if any(_has_objects(value) for value in inputs[1:]):
            return None
        try:
            moved = call.attrs.reference(*inputs)
        except (LoopwrightError, TypeError, ValueError, IndexError):
            return None
        if isinstance(moved, (list, tuple)):
            return [_array(part, np.shape(part)) for part in moved]
        return _array(moved, np.shape(moved))


def _all_known(values: Sequence[Nested[np.ndarray] | None]) -> list[Nested[np.ndarray]] | None:
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None


def _has_objects(value: Nested[np.ndarray]) -> bool:
    if isinstance(value, list):
        return any(_has_objects(one) for one in value)
    return np.asarray(value).dtype == object


def _array(elements: Sequence[Element] | np.ndarray | Element, shape: tuple[int, ...]) -> np.ndarray:
    """Elements as an array: of numbers where they all are."""
    result = np.empty(shape, dtype=object)
    listed = np.asarray(elements, dtype=object).reshape(-1) if not isinstance(elements, list) else elements
    for index in range(result.size):
        result.reshape(-1)[index] = listed[index]
    if all(isinstance(element, (bool, np.bool_)) for element in result.flat) and result.size:
        return result.astype(bool)
    if all(isinstance(element, (int, np.integer)) for element in result.flat):
        return result.astype("int64")
    if all(isinstance(element, (int, float, np.integer, np.floating)) for element in result.flat):
        return result.astype("float64")
    return result


def _elements(function: Callable[..., Element], *inputs: Nested[np.ndarray]) -> np.ndarray:
    repeated = np.broadcast_arrays(*[np.asarray(value, dtype=object) for value in inputs])
    shape = repeated[0].shape
    result = [function(*[value.flat[index] for value in repeated]) for index in range(repeated[0].size)]
    return _array(result, shape)


def _plain(element: Element) -> int | PrimExpr | None:
    """A number as Python has it; a whole one as an int."""
    if isinstance(element, (float, np.floating)):
        return int(element) if float(element).is_integer() else None
    return int(element) if isinstance(element, (int, np.integer)) else element


def _computed(function: _Arithmetic, name: str, left: Element, right: Element) -> int | PrimExpr | None:
    one, other = _plain(left), _plain(right)
    if name == "multiply" and (_is_number(one, 0) or _is_number(other, 0)):
        return 0
    if one is None or other is None:
        return None
    if isinstance(one, int) and isinstance(other, int) and name in ("divide", "trunc_divide", "mod", "trunc_mod"):
        if other == 0:
            return None
        quotient = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
        return quotient if "divide" in name else one - quotient * other
    if isinstance(one, int) and isinstance(other, int) and name in ("maximum", "minimum"):
        return max(one, other) if name == "maximum" else min(one, other)
    result = function(one, other)
    size = None if result is None else as_dim(result)
    return None if is_any(size) else size


def _is_number(element: int | PrimExpr | None, value: int) -> bool:
    return isinstance(element, int) and element == value


def _compared(name: str, left: Element, right: Element) -> bool | None:
    """Whether a comparison holds, where that can be shown."""
    one, other = _plain(left), _plain(right)
    if one is None or other is None:
        return None
    if isinstance(one, int) and isinstance(other, int):
        return _OF_NUMBERS[name](one, other)
    analyzer = Analyzer()
    if analyzer.can_prove(_COMPARISONS[name](one, other)):
        return True
    opposite = ("less", "greater") if name == "equal" else (_OPPOSITE[name],)
    return False if any(analyzer.can_prove(_COMPARISONS[each](one, other)) for each in opposite) else None
