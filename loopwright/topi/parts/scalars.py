"""scalars: options that are numbers, or tensors of one element whose value is known when the program runs."""

from __future__ import annotations

from collections.abc import Callable

from loopwright.ir import Buffer, Expr, as_expr, cast
from loopwright.ir.ir_builder import IRBuilder
from loopwright.runtime.dtype import DataType
from loopwright.te import Tensor
from loopwright.topi.parts.sizes import check_same
from loopwright.topi.types import Scalar

Reader = Callable[[IRBuilder, list[Buffer]], Expr]


def scalar_reader(value: Scalar, dtype: str, inputs: list[Tensor]) -> Reader:
    """What reads `value` as `dtype` in the body of an extern; a tensor is added to its `inputs`."""
    if not isinstance(value, Tensor):
        return lambda ib, ins: cast(as_expr(value), DataType(dtype))
    for size in value.shape:
        check_same("a number", "elements", (value.name, size), ("one", as_expr(1)))
    position = len(inputs)
    inputs.append(value)
    return lambda ib, ins: cast(ib.buffer_ptr(ins[position])[(0,) * value.ndim], DataType(dtype))
