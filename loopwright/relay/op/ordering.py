"""Operators that put elements in order, find them, and run along an axis: sort, topk, unique, argwhere, cumsum, …"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright import te, topi
from loopwright.ir import Expr as PrimExpr
from loopwright.ir.intrinsics import maximum, minimum, select
from loopwright.ir.types import TupleType, Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Constant, Expr
from loopwright.relay.op.from_topi import FromTopi
from loopwright.relay.op.registry import Kind, Operator, calls, make, register
from loopwright.relay.op.sizes import normal_axis
from loopwright.relay.types import AnyDim, TensorType
from loopwright.topi.ordering.argwhere import argwhere_cut
from loopwright.topi.registry import OPERATORS


@register("sort", Kind.OPAQUE)
class Sort(FromTopi):
    """The elements along `axis` in order; equal ones keep theirs, NaN counts as greater than every number."""

    axis: int = -1
    is_ascend: bool = True

    def infer(self, data: TensorType) -> Type:
        normal_axis("sort", self.axis, len(data.shape))
        return data


@register("argsort", Kind.OPAQUE)
class Argsort(FromTopi):
    """Where the elements along `axis` are, in order."""

    axis: int = -1
    is_ascend: bool = True
    dtype: str = "int32"

    def infer(self, data: TensorType) -> Type:
        normal_axis("argsort", self.axis, len(data.shape))
        return TensorType(data.shape, self.dtype)

    def arguments(self, *inputs: object) -> Sequence[object]:
        return (*inputs, None, self.axis, self.is_ascend, self.dtype)


@register("topk", Kind.OPAQUE)
class Topk(FromTopi):
    """The first `k` elements along `axis` in order, and where they are; `k` below 1 is all of them.

    A `k` that is an expression of sizes is that many, 0 too.
    """

    k: int | PrimExpr = 1
    axis: int = -1
    ret_type: str = "both"
    is_ascend: bool = False
    dtype: str = "int32"

    def results(self) -> int | None:
        return 2 if self.ret_type == "both" else None

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)


@calls("topk")
def topk(
    data: Expr,
    k: object = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: str = "int32",
) -> Expr:
    """The first `k` elements along `axis`; `k` is a number, or an expression that is one when the program runs."""
    attributes = {"axis": axis, "ret_type": ret_type, "is_ascend": is_ascend, "dtype": dtype}
    if isinstance(k, Constant):
        k = int(np.asarray(k.data).reshape(-1)[0])
    if isinstance(k, Expr):
        return make("dyn.topk", data, k, **attributes)
    return make("topk", data, k=k, **attributes)


@register("dyn.topk", Kind.OPAQUE)
class DynTopk(Operator):
    """`topk` whose `k` is a tensor of one integer."""

    axis: int = -1
    ret_type: str = "both"
    is_ascend: bool = False
    dtype: str = "int32"
    data_dependent = True

    def results(self) -> int | None:
        return 2 if self.ret_type == "both" else None

    def infer(self, data: TensorType, k: TensorType) -> Type:
        shape = list(data.shape)
        shape[normal_axis("dyn.topk", self.axis, len(shape))] = AnyDim()
        values, indices = TensorType(shape, str(data.dtype)), TensorType(shape, self.dtype)
        if self.ret_type == "both":
            return TupleType((values, indices))
        return values if self.ret_type == "values" else indices

    def compute(self, data: te.Tensor, k: te.Tensor) -> list[te.Tensor]:
        """All of a row in order, and how many of them are wanted."""
        result = topi.topk(data, 0, self.axis, self.ret_type, self.is_ascend, self.dtype)
        size = data.shape[normal_axis("dyn.topk", self.axis, data.ndim)].astype("int64")
        given = k(*[0] * k.ndim).astype("int64")
        wanted = select(given < 1, size, minimum(given, maximum(size, 0)))
        count = 2 if self.ret_type == "both" else 1
        sizes = te.compute((count,), lambda _: wanted, name="sizes")
        return [*(result if isinstance(result, list) else [result]), sizes]

    def reference(self, data: np.ndarray, k: np.ndarray) -> np.ndarray:
        number = min(int(np.asarray(k).reshape(-1)[0]), data.shape[self.axis])
        return OPERATORS["topk"].reference(data, number, self.axis, self.ret_type, self.is_ascend, self.dtype)


@register("searchsorted", Kind.OPAQUE)
class Searchsorted(FromTopi):
    """Where `values` belong in rows that are in order."""

    right: bool = False
    dtype: str = "int32"

    def infer(self, sorted_sequence: TensorType, values: TensorType) -> Type:
        return self.type_of_compute(sorted_sequence, values)


@register("unique", Kind.OPAQUE)
class Unique(FromTopi):
    """The different values of a vector, where each is first, which one every element is, and how many there are.

    The results have the length of the data; what is behind the last value is 0.
    """

    is_sorted: bool = True
    return_counts: bool = False

    def results(self) -> int:
        return 5 if self.return_counts else 4

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)


@register("unique_values", Kind.OPAQUE)
class UniqueValues(FromTopi):
    """The different values of a vector in order, and how many there are, without their places: `unique` of which no
    one asks more."""

    return_counts: bool = False

    def results(self) -> int:
        return 3 if self.return_counts else 2

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)


@register("argwhere", Kind.OPAQUE)
class Argwhere(Operator):
    """The indices of the elements that are not zero, one row each."""

    dtype: str = "int32"
    data_dependent = True

    def infer(self, condition: TensorType) -> Type:
        return TensorType([AnyDim(), len(condition.shape)], self.dtype)

    def compute(self, condition: te.Tensor) -> list[te.Tensor]:
        rows, count = argwhere_cut(condition, self.dtype)
        return [rows, te.compute((1,), lambda _: count[0].astype("int64"), name="sizes")]

    def reference(self, condition: np.ndarray) -> np.ndarray:
        return np.argwhere(condition).astype(self.dtype)


class _Scan(FromTopi):
    axis: int | None = None
    dtype: str | None = None
    exclusive: bool | None = None

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)

    def arguments(self, *inputs: object) -> Sequence[object]:
        return (*inputs, self.axis, self.dtype or None, self.exclusive)


@register("cumsum", Kind.OPAQUE)
class Cumsum(_Scan):
    """Running sums along `axis`, or of all elements in a line; `exclusive` leaves each element out of its own."""


@register("cumprod", Kind.OPAQUE)
class Cumprod(_Scan):
    """Running products along `axis`, or of all elements in a line; `exclusive` leaves each out of its own."""


@register("einsum", Kind.OUT_FUSABLE)
class Einsum(FromTopi):
    """The sum of products that `equation` describes, one letter a dimension."""

    equation: str

    def infer(self, data: TupleType) -> Type:
        if not isinstance(data, TupleType):
            raise TypeMismatch(f"einsum: the data is {data}, not several tensors")
        return self.type_of_compute(data)

    def arguments(self, *inputs: Sequence[object]) -> Sequence[object]:
        return (self.equation, *inputs[0])


@calls("einsum")
def einsum(data: Expr | Sequence[Expr], equation: str) -> Expr:
    """The sum of products of the tensors of `data` that `equation` describes."""
    if (isinstance(data, (list, tuple)) and not data) or not isinstance(equation, str):
        raise ValueError("relay.einsum: data is at least one tensor, and the equation a text, as in 'ij,jk->ik'")
    result: Expr = make("einsum", data, equation=equation)
    return result
