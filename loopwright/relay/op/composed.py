"""Operators that are other operators: `expand` says which, and kernel and meaning follow from that.

    @register("qnn.dequantize", Kind.BROADCAST)
    class Dequantize(Composed):
        def infer(self, data, input_scale, input_zero_point): ...
        def expand(self, data, input_scale, input_zero_point):
            return make("cast", data - …, dtype="float32") * input_scale

SimplifyInference replaces them in a graph before it is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from loopwright import te, topi
from loopwright.ir.types import TupleType, Type
from loopwright.relay.errors import CannotCompile
from loopwright.relay.expr import Call, Constant, Expr, Tuple, TupleGetItem, TupleWrapper, Var
from loopwright.relay.infer_type import Inference
from loopwright.relay.nested import Nested, fields
from loopwright.relay.op.registry import Operator
from loopwright.relay.types import TensorType

T = TypeVar("T", te.Tensor, np.ndarray)


class Composed(Operator):
    """An operator that is composed of others: see the module docstring."""

    def expand(self, *args: Expr) -> Expr | None:  # type: ignore[override]
        raise NotImplementedError(f"{self.op_name} does not say what it is")

    def compute(self, *inputs: Nested[te.Tensor]) -> Nested[te.Tensor]:
        return self._as_graph(inputs, _compute, _tensor_of)

    def reference(self, *inputs: Nested[np.ndarray]) -> Nested[np.ndarray]:
        return self._as_graph(inputs, _refer, lambda array: array)

    def _as_graph(
        self,
        inputs: Sequence[Nested[T]],
        apply: Callable[[Call, list[Nested[T]]], Nested[T]],
        constant: Callable[[np.ndarray], T],
    ) -> Nested[T]:
        names = [Var(f"input{k}", _type_of(value)) for k, value in enumerate(inputs)]
        for name in names:
            name.checked_type_ = name.type_annotation
        expanded = self.expand(*names)
        assert expanded is not None
        root = expanded.tuple_value if isinstance(expanded, TupleWrapper) else expanded
        types = Inference()
        types.visit(root)
        result = dict[Expr, Nested[T]](zip(names, inputs, strict=True))

        def value_of(expression: Expr) -> Nested[T]:
            if expression not in result:
                if isinstance(expression, Constant):
                    result[expression] = constant(expression.data)
                elif isinstance(expression, Tuple):
                    result[expression] = [value_of(field) for field in expression.fields]
                elif isinstance(expression, TupleGetItem):
                    result[expression] = fields(value_of(expression.tuple_value))[expression.index]
                else:
                    assert isinstance(expression, Call)
                    result[expression] = apply(expression, [value_of(arg) for arg in expression.args])
            return result[expression]

        return value_of(root)


def _type_of(value: Nested[T]) -> Type:
    if isinstance(value, (list, tuple)):
        return TupleType(tuple(_type_of(one) for one in value))
    return TensorType(value.shape, str(value.dtype))


def _compute(call: Call, inputs: Sequence[Nested[te.Tensor]]) -> Nested[te.Tensor]:
    result: Nested[te.Tensor] = call.attrs.compute(*inputs)
    return result


def _refer(call: Call, inputs: Sequence[Nested[np.ndarray]]) -> Nested[np.ndarray]:
    from loopwright.relay.interpreter import typed_result

    return typed_result(call, call.attrs.reference(*inputs))


def _tensor_of(array: np.ndarray) -> te.Tensor:
    """A constant as a tensor: one number, or the same one everywhere."""
    if array.size == 0 or not (array == array.flat[0]).all():
        raise CannotCompile(
            "an operator that stands for others holds an array of constants",
            hint="run relay.transform.SimplifyInference first, as relay.build does",
        )
    filled: te.Tensor = topi.full(array.shape, str(array.dtype), array.flat[0].item())
    return filled
