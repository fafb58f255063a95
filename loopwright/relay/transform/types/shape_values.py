"""shape_values: what a graph computes about shapes, as numbers and expressions of size variables.

    shape_of(%x)                                   with %x: Tensor[(n, 12, 64)]: [n, 12, 64]
    take(shape_of(%x), 0) * 12                     n * 12
    concatenate([…, [768]])                        [n * 12, 768]

Small tensors are arrays as `size_arrays.py` has them, which does their arithmetic. Operators that move elements do so
by their references.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from loopwright.ir import Expr as PrimExpr
from loopwright.relay.expr import Call, Constant, Expr, Tuple, TupleGetItem
from loopwright.relay.interpreter import typed_result
from loopwright.relay.nested import Nested
from loopwright.relay.op.registry import Op
from loopwright.relay.size_arrays import ELEMENTWISE, accumulated, array_of, elementwise
from loopwright.relay.transform.typed_rewrite import KnownTypes
from loopwright.relay.types import TensorType, is_any
from loopwright.runtime.errors import LoopwrightError

_MOST = 256  # elements of a tensor that is looked at
_DEEPEST = 200  # operators from a shape to its use
# Operators that move elements, whatever those are.
_MOVES: Final = frozenset(
    "take gather strided_slice concatenate stack reshape squeeze expand_dims transpose broadcast_to tile repeat "
    "reverse split copy dyn.reshape dyn.strided_slice dyn.expand_dims dyn.squeeze".split()
)


class ShapeValues:
    """The elements of small tensors; remembered by expression."""

    def __init__(self, types: KnownTypes) -> None:
        self.types = types
        self._found: dict[Expr, Nested[np.ndarray] | None] = {}

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
        if expression not in self._found:
            self._found[expression] = None  # while it is looked at
            self._found[expression] = self._look(expression, depth) if depth < _DEEPEST else None
        return self._found[expression]

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
        if name in ELEMENTWISE:
            return elementwise(name, *[np.asarray(value, dtype=object) for value in inputs])
        if name == "cast":
            kind = str(call.attrs.dtype)
            return inputs[0] if kind.startswith(("int", "uint", "float")) else None
        if name in ("floor", "ceil", "round"):
            return inputs[0]  # symbols are whole numbers
        if name in ("prod", "sum") and call.attrs.axis in (None, (), 0, (0,)) and np.ndim(inputs[0]) == 1:
            assert isinstance(inputs[0], np.ndarray)
            total = accumulated(*(("multiply", inputs[0], 1) if name == "prod" else ("add", inputs[0], 0)))
            return array_of(total, (1,) if call.attrs.keepdims else ())
        if name in ("ones_like", "zeros_like"):
            return np.full(np.shape(inputs[0]), int(name == "ones_like"), "int64")
        return None

    def _shape(self, call: Call) -> np.ndarray | None:
        of = self.types.visit(call.args[0])
        if not isinstance(of, TensorType):
            return None
        sizes = array_of([None if is_any(size) else size for size in of.shape], (len(of.shape),))
        return sizes if call.op.name == "shape_of" else array_of(accumulated("multiply", sizes, 1), ())

    def _moved(self, call: Call, inputs: list[Nested[np.ndarray]]) -> Nested[np.ndarray] | None:
        # What says where elements go must be numbers; what is moved is the first operand.
        if any(_has_objects(value) for value in inputs[1:]):
            return None
        try:
            moved = call.attrs.reference(*inputs)
        except (LoopwrightError, TypeError, ValueError, IndexError):
            return None
        if isinstance(moved, (list, tuple)):
            return [array_of(part, np.shape(part)) for part in moved]
        return array_of(moved, np.shape(moved))


def _all_known(values: Sequence[Nested[np.ndarray] | None]) -> list[Nested[np.ndarray]] | None:
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None


def _has_objects(value: Nested[np.ndarray]) -> bool:
    if isinstance(value, list):
        return any(_has_objects(one) for one in value)
    return np.asarray(value).dtype == object
