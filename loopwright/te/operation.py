"""The operations that graphs are made of: a placeholder is an input; a compute is one loop nest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from loopwright.arith import simplified_size
from loopwright.ir import (
    Expr,
    IntImm,
    IterVar,
    Node,
    ProducerLoad,
    Reduce,
    SizeVar,
    Var,
    as_expr,
    const,
    post_order_visit,
    variables_in,
)
from loopwright.runtime.dtype import FLOAT32, DataType
from loopwright.runtime.errors import LoopwrightError
from loopwright.te.tensor import Operation, Tensor, TensorSlice


class BadShape(LoopwrightError, TypeError, ValueError):
    """The shape of a tensor is not a sequence of sizes.

    A shape is a tuple with one integer or integer expression a dimension: `(4,)`, `(n, 16)`, and `()` for rank 0.

    For example:

        from loopwright import te

        te.placeholder(5)  # (5,) is a shape
    """

    code = "LW0401"

    def __init__(self, asked: str, problem: str, hint: str) -> None:
        super().__init__(f"{asked}: {problem}", hint=hint)


def check_shape(shape: object, asked: str, truncate: bool = False) -> tuple[Expr, ...]:
    """`shape` as expressions; a bare expression means rank 1. `truncate`: floats lose their fraction."""
    if isinstance(shape, (int, float, np.generic)):
        raise BadShape(asked, f"the shape is the bare number {shape}", f"write ({shape},) for one dimension")
    if isinstance(shape, (Expr, TensorSlice)):
        shape = (shape,)
    if isinstance(shape, str) or not isinstance(shape, Sequence):
        raise BadShape(
            asked, f"the shape is {type(shape).__name__} {shape!r}", "give a tuple of sizes, such as (n, 16)"
        )
    return tuple([_check_dim(dim, k, asked, truncate) for k, dim in enumerate(shape)])


def _check_dim(dim: object, position: int, asked: str, truncate: bool) -> Expr:
    if isinstance(dim, float) and truncate and math.isfinite(dim):
        dim = int(dim)
    if isinstance(dim, np.integer):
        dim = int(dim)
    where = f"dimension {position} of the shape"
    if isinstance(dim, (bool, float, str)) or dim is None:
        raise BadShape(asked, f"{where} is {type(dim).__name__} {dim!r}", "sizes are integers; use // to divide them")
    size = as_expr(dim)
    if not size.dtype.is_int or size.dtype.lanes != 1:
        raise BadShape(asked, f"{where} has type {size.dtype}", "sizes are integers; use // to divide them")
    if not isinstance(size, (IntImm, Var)) and not variables_in(size):
        size = simplified_size(size)
    if isinstance(size, IntImm):
        if size.value < 0:
            raise BadShape(asked, f"{where} is {size.value}", "sizes are not negative; 0 makes an empty tensor")
    elif not isinstance(size, Var) and has_load(size):
        raise BadShape(asked, f"{where} reads a tensor", "sizes are known before the program runs: use a te.var")
    return size


def has_load(value: Expr) -> bool:
    """Whether a value is read from a tensor, all or in part."""
    result: list[Node] = []
    post_order_visit(value, lambda node: result.append(node) if isinstance(node, ProducerLoad) else None)
    return bool(result)


class PlaceholderOp(Operation):
    """An input."""

    __slots__ = ("dtype", "shape")

    def __init__(self, name: str, shape: Sequence[Expr], dtype: str | DataType) -> None:
        self.shape = tuple(shape)
        self.dtype = DataType(dtype)
        super().__init__(name, "", None)

    def output_shape(self, index: int) -> tuple[Expr, ...]:
        return self.shape

    def output_dtype(self, index: int) -> DataType:
        return self.dtype


class ComputeOp(Operation):
    """For every point of `axis`, one element of each output: `body[k]`, which may be a reduction over `reduce_axis`.

    `te.compute` checks what it is made from; see `compute.py` for the rules that bodies follow.
    """

    __slots__ = ("_inputs", "axis", "body", "reduce_axis")

    def __init__(
        self,
        name: str,
        tag: str,
        attrs: Mapping[str, object] | None,
        axis: Sequence[IterVar],
        body: Sequence[Expr],
        inputs: Sequence[Tensor],
    ) -> None:
        self.axis = tuple(axis)
        self.body = tuple(body)
        first = self.body[0]
        self.reduce_axis: tuple[IterVar, ...] = first.axis if isinstance(first, Reduce) else ()
        self._inputs = tuple(inputs)
        super().__init__(name, tag, attrs)

    @property
    def num_outputs(self) -> int:
        return len(self.body)

    @property
    def input_tensors(self) -> list[Tensor]:
        return list(self._inputs)

    def output_shape(self, index: int) -> tuple[Expr, ...]:
        return tuple([axis.dom.extent for axis in self.axis if axis.dom is not None])

    def output_dtype(self, index: int) -> DataType:
        return self.body[index].dtype


def placeholder(shape: object, dtype: str | DataType | None = None, name: str = "placeholder") -> Tensor:
    """An input tensor; `()` is rank 0, a bare expression is rank 1, and the type is float32 unless given."""
    sizes = check_shape(shape, f"te.placeholder {name}")
    return PlaceholderOp(name, sizes, FLOAT32 if dtype is None else dtype).output(0)


def var(name: str = "tindex", dtype: str | DataType = "int32", span: object = None) -> Var:
    """A fresh symbol, the same only as itself."""
    return Var(name, dtype, span)


def size_var(name: str = "size", dtype: str | DataType = "int32", span: object = None) -> Var:
    """A fresh symbol that is never negative."""
    return SizeVar(name, dtype, span)


def constant(value: object, dtype: str | DataType | None = None, span: object = None) -> Expr:
    """A literal of type `dtype`: without one, float32 for a number with a point, else int32."""
    if dtype is None:
        dtype = "float32" if isinstance(value, float) else "int32"
    return const(value, dtype)
