"""Operators that give a tensor another shape, its elements in the same order: reshape and its kin.

Codes in a new shape: 0 takes the next size of the data (`allowzero` makes it the size 0), -1 is what is left, -2 takes
all sizes that are left, -3 joins the next two, -4 a b splits the next one into a and b, one of which may be -1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np

from loopwright import te, topi
from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Call, Expr
from loopwright.relay.op.from_topi import numbers_of, only_interpreted
from loopwright.relay.op.registry import Kind, Operator, calls, make, register
from loopwright.relay.op.sizes import divide_exactly, equal_dim, normal_axis, text, times
from loopwright.relay.types import AnyDim, Dim, DimLike, TensorType, as_dim, is_any, same_dim


def resolve(op: str, shape: Sequence[Dim], newshape: Sequence[DimLike], allowzero: bool = False) -> list[Dim]:
    """The sizes that a new shape with codes means for data of `shape`."""
    return [size for group in _resolved(op, shape, _groups(op, newshape), allowzero) for size in group]


def _groups(op: str, newshape: Sequence[DimLike]) -> list[list[DimLike]]:
    """The codes, -4 together with the two sizes that follow it."""
    result: list[list[DimLike]] = []
    entries = iter(newshape)
    for code in entries:
        group = [code]
        if _is(code, -4):
            group += islice(entries, 2)
            if len(group) < 3:
                raise TypeMismatch(f"{op}: -4 in {tuple(newshape)} is followed by the two sizes to split into")
        result.append(group)
    return result


def _is(code: object, number: int) -> bool:
    return isinstance(code, int) and code == number


def _resolved(op: str, shape: Sequence[Dim], groups: Sequence[Sequence[DimLike]], allowzero: bool) -> list[list[Dim]]:
    """The sizes of each group; the data's own sizes that no code took are shared out by -1."""
    message = [code for group in groups for code in group]
    rest = list(shape)  # sizes of the data that the codes have yet to take

    def take(code: int) -> Dim:
        if not rest:
            raise TypeMismatch(f"{op}: {code} in {tuple(message)} takes a size, and {text(shape)} has no more")
        return rest.pop(0)

    result: list[list[Dim]] = []
    own: list[Dim] = []  # sizes of the data, and of the result, that have to have the same product
    new: list[Dim] = []
    infer: list[int] = []
    for code, *more in groups:
        if _is(code, 0) and not allowzero:
            result.append([take(0)])
        elif _is(code, -1):
            infer.append(len(result))
            result.append([AnyDim()])
            own += [take(-1)] if rest else []
        elif _is(code, -2):
            result.append(rest[:])
            rest.clear()
        elif _is(code, -3):
            result.append([times(take(-3), take(-3))])
        elif _is(code, -4):
            result.append(_split(op, take(-4), more))
        elif isinstance(code, int) and code < 0:
            raise TypeMismatch(f"{op}: {code} in {tuple(message)} is no code", hint="codes are 0, -1, -2, -3 and -4")
        else:
            result.append([as_dim(code)])
            new.append(result[-1][0])
            own += [take(0)] if rest else []
    own += rest
    if len(infer) > 1:
        raise TypeMismatch(f"{op}: {tuple(message)} has {len(infer)} times -1", hint="one size at most can be inferred")
    if not infer and not all(isinstance(size, int) for size in (*own, *new)):
        # Numbers on both sides cancel: what is left says more of a size that is not known.
        for size in [size for size in own if isinstance(size, int) and size > 0]:
            twin = next((k for k, other in enumerate(new) if isinstance(other, int) and other == size), None)
            if twin is not None:
                del new[twin], own[next(k for k, other in enumerate(own) if isinstance(other, int) and other == size)]
    left, right = times(*own), times(*new)
    if infer:
        result[infer[0]] = [_quotient(op, shape, message, left, right, own, new)]
    elif not equal_dim(left, right):
        raise TypeMismatch(
            f"{op} is unable to show the following types match: shape {text(shape)} and new shape {tuple(message)}",
            why=f"they have {left} and {right} elements besides those taken over",
        )
    return result


def _quotient(
    op: str, shape: Sequence[Dim], message: Sequence[object], left: Dim, right: Dim, own: list[Dim], new: list[Dim]
) -> Dim:
    """What -1 stands for."""
    if isinstance(right, int) and isinstance(left, int):
        if (right == 0 and left != 0) or (right and left % right):
            raise TypeMismatch(
                f"{op} is unable to show the following types match: shape {text(shape)} and new shape {tuple(message)}",
                why=f"{left} elements cannot be divided by {right}",
            )
        return left // right if right else 0
    # Sizes that stand on both sides need not be known to cancel.
    for size in list(own):
        twin = next((other for other in new if same_dim(size, other)), None)
        if twin is not None:
            own.remove(size)
            new.remove(twin)
    return divide_exactly(times(*own), times(*new))


def _split(op: str, size: Dim, parts: Sequence[DimLike]) -> list[Dim]:
    one, other = parts
    if _is(one, -1) and _is(other, -1):
        raise TypeMismatch(f"{op}: -4 splits {size} into -1 and -1", hint="one of the two can be inferred")
    if _is(one, -1):
        one = divide_exactly(size, as_dim(other))
    elif _is(other, -1):
        other = divide_exactly(size, as_dim(one))
    if not equal_dim(size, times(as_dim(one), as_dim(other))):
        raise TypeMismatch(f"{op}: -4 splits {size} into {one} and {other}")
    return [as_dim(one), as_dim(other)]


class _Reshaping(Operator):
    """What reshape and its kin have in common: the new shape is all there is to say."""

    def sizes(self, *shapes: Sequence[Dim]) -> list[Dim]:
        """The new shape, from those of the inputs."""
        raise NotImplementedError

    def compute(self, data: te.Tensor, *others: te.Tensor) -> te.Tensor:
        shapes = [[as_dim(size) for size in tensor.shape] for tensor in (data, *others)]
        sizes: Sequence[Any] = self.sizes(*shapes)  # a tensor has no AnyDim
        return topi.reshape(data, sizes)

    def reference(self, data: np.ndarray, *others: np.ndarray) -> np.ndarray:
        return _reshaped(data, self.sizes(data.shape, *[one.shape for one in others]))


def _reshaped(data: np.ndarray, sizes: Sequence[Any]) -> np.ndarray:
    return data.reshape(tuple(int(size) for size in sizes))


MOST_DIMENSIONS: Final = 64  # as many as numpy has


@register("reshape", Kind.INJECTIVE)
class Reshape(_Reshaping):
    """The data under `newshape`, in which 0, -1, -2, -3 and -4 are codes."""

    newshape: tuple[int, ...]
    allowzero: bool = False

    def infer(self, data: TensorType) -> Type:
        return TensorType(self.sizes(data.shape), str(data.dtype))

    def sizes(self, *shapes: Sequence[Dim]) -> list[Dim]:
        return resolve("reshape", shapes[0], self.newshape, self.allowzero)

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("reshape_like", grad, call.args[0])]


@register("vm.reshape_tensor", Kind.INJECTIVE)
class VmReshapeTensor(_Reshaping):
    """The data under `newshape`, the sizes of which are `shape` when the program runs: on the CPU that runs it."""

    host_inputs = ("shape",)
    newshape: tuple[int, ...]

    def infer(self, data: TensorType, shape: TensorType) -> Type:
        return TensorType(self.sizes(data.shape), str(data.dtype))

    def sizes(self, *shapes: Sequence[Dim]) -> list[Dim]:
        return resolve("vm.reshape_tensor", shapes[0], self.newshape, False)


@calls("reshape")
def reshape(data: Expr, newshape: object, allowzero: bool = False) -> Expr:
    """The data under `newshape`: numbers and codes, or an expression that is the shape when the program runs."""
    numbers = numbers_of(newshape)
    if numbers is None:
        return make("dyn.reshape", data, newshape, allowzero=allowzero)
    return make("reshape", data, newshape=numbers, allowzero=allowzero)


@register("contrib_reverse_reshape", Kind.INJECTIVE)
class ReverseReshape(_Reshaping):
    """`reshape` whose codes are read from the right, taking the sizes of the data from the right."""

    newshape: tuple[int, ...]

    def infer(self, data: TensorType) -> Type:
        return TensorType(self.sizes(data.shape), str(data.dtype))

    def sizes(self, *shapes: Sequence[Dim]) -> list[Dim]:
        groups = _groups("reverse_reshape", self.newshape)[::-1]
        transposed = [[code, *reversed(more)] for code, *more in groups]
        result = _resolved("reverse_reshape", tuple(reversed(shapes[0])), transposed, False)
        return [size for group in reversed(result) for size in reversed(group)]


@calls("reverse_reshape")
def reverse_reshape(data: Expr, newshape: object) -> Expr:
    """`reshape` whose codes are read from the right."""
    return make("contrib_reverse_reshape", data, newshape=newshape)


@register("reshape_like", Kind.INJECTIVE)
class ReshapeLike(_Reshaping):
    """The data with its sizes from `lhs_begin` to `lhs_end` replaced by those of `shape_like` in its own range."""

    lhs_begin: int = 0
    lhs_end: int | None = None
    rhs_begin: int = 0
    rhs_end: int | None = None

    def infer(self, data: TensorType, shape_like: TensorType) -> Type:
        new = self.sizes(data.shape, shape_like.shape)
        if not equal_dim(times(*data.shape), times(*new)):
            raise TypeMismatch(
                f"reshape_like is unable to show the following types match: {data} and {shape_like}",
                why=f"the new shape {text(new)} has another number of elements",
            )
        return TensorType(new, str(data.dtype))

    def sizes(self, *shapes: Sequence[Dim]) -> list[Dim]:
        own, like = (list(shape) for shape in shapes)
        first, last = slice(self.lhs_begin, self.lhs_end).indices(len(own))[:2]
        own[first:last] = like[slice(self.rhs_begin, self.rhs_end)]
        return own

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("reshape_like", grad, call.args[0]), make("zeros_like", call.args[1])]


@register("expand_dims", Kind.BROADCAST)
class ExpandDims(_Reshaping):
    """`num_newaxis` sizes of 1 put in before `axis`."""

    axis: int
    num_newaxis: int = 1

    def infer(self, data: TensorType) -> Type:
        return TensorType(self.sizes(data.shape), str(data.dtype))

    def compute(self, data: te.Tensor, *others: te.Tensor) -> te.Tensor:
        return topi.expand_dims(data, self.axis, self.num_newaxis)

    def sizes(self, *shapes: Sequence[Dim]) -> list[Dim]:
        shape = list(shapes[0])
        at = normal_axis("expand_dims", self.axis, len(shape), extra=1)
        return [*shape[:at], *[1] * self.num_newaxis, *shape[at:]]

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("reshape_like", grad, call.args[0])]


@calls("expand_dims")
def expand_dims(data: Expr, axis: Expr | int, num_newaxis: int = 1) -> Expr:
    """Sizes of 1 put in before `axis`, a number, or an expression that is one when the program runs."""
    if isinstance(axis, Expr):
        numbers = numbers_of(axis)
        if numbers is None:
            return make("dyn.expand_dims", data, axis, num_newaxis=num_newaxis)
        return make("expand_dims", data, axis=numbers[0], num_newaxis=num_newaxis)
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise ValueError(f"expand_dims: axis is {type(axis).__name__} {axis!r}; give an integer or an expression")
    return make("expand_dims", data, axis=int(axis), num_newaxis=num_newaxis)


@register("squeeze", Kind.INJECTIVE)
class Squeeze(_Reshaping):
    """The data without the sizes `axis` names, which are 1; without an axis, without all that are 1."""

    axis: tuple[int, ...] | None = None

    def infer(self, data: TensorType) -> Type:
        return TensorType(self.sizes(data.shape), str(data.dtype))

    def compute(self, data: te.Tensor, *others: te.Tensor) -> te.Tensor:
        return topi.squeeze(data, self.axis)

    def sizes(self, *shapes: Sequence[Dim]) -> list[Dim]:
        shape = list(shapes[0])
        gone = list(self._gone(shape))
        for axis in gone:
            if not equal_dim(shape[axis], 1):
                raise TypeMismatch(f"squeeze: axis {axis} of shape {text(shape)} has size {shape[axis]}, not 1")
        return [size for axis, size in enumerate(shape) if axis not in gone]

    def _gone(self, shape: Sequence[Dim]) -> Iterator[int]:
        if self.axis is None:
            for axis, size in enumerate(shape):
                if is_any(size):
                    raise TypeMismatch(
                        f"squeeze: whether axis {axis} of {text(shape)} is 1 is not known", hint="name the axes"
                    )
                if same_dim(size, 1):
                    yield axis
            return
        for axis in (self.axis,) if isinstance(self.axis, int) else self.axis:
            yield normal_axis("squeeze", axis, len(shape))

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [make("reshape_like", grad, call.args[0])]


@calls("squeeze")
def squeeze(data: Expr, axis: int | Sequence[int] | None = None) -> Expr:
    """The data without sizes of 1; an expression for the axes is read when the program runs."""
    if axis is not None:
        numbers = numbers_of(axis)
        if numbers is None:
            return make("dyn.squeeze", data, axis)
        return make("squeeze", data, axis=numbers)
    return make("squeeze", data)


@register("dyn.reshape", Kind.INJECTIVE)
class DynReshape(Operator):
    """`reshape` to a shape that is a tensor; it may hold the codes 0 and -1."""

    allowzero: bool = False

    def infer(self, data: TensorType, newshape: TensorType) -> Type:
        return TensorType([AnyDim()] * vector_length("dyn.reshape", "newshape", newshape), str(data.dtype))

    def compute(self, data: te.Tensor, newshape: te.Tensor) -> te.Tensor:
        raise only_interpreted("dyn.reshape", "the shape")

    def reference(self, data: np.ndarray, newshape: np.ndarray) -> np.ndarray:
        codes = [int(code) for code in newshape]
        return _reshaped(data, resolve("dyn.reshape", data.shape, codes, self.allowzero))


@register("dyn.expand_dims", Kind.BROADCAST)
class DynExpandDims(Operator):
    """`expand_dims` at an axis that is a tensor of rank 0."""

    num_newaxis: int = 1

    def infer(self, data: TensorType, axis: TensorType) -> Type:
        return TensorType([AnyDim()] * (len(data.shape) + self.num_newaxis), str(data.dtype))

    def compute(self, data: te.Tensor, axis: te.Tensor) -> te.Tensor:
        raise only_interpreted("dyn.expand_dims", "the axis")

    def reference(self, data: np.ndarray, axis: np.ndarray) -> np.ndarray:
        return ExpandDims(axis=int(axis.reshape(())), num_newaxis=self.num_newaxis).reference(data)


@register("dyn.squeeze", Kind.INJECTIVE)
class DynSqueeze(Operator):
    """`squeeze` along axes that are a tensor."""

    def infer(self, data: TensorType, axis: TensorType) -> Type:
        gone = vector_length("dyn.squeeze", "axis", axis)
        return TensorType([AnyDim()] * (len(data.shape) - gone), str(data.dtype))

    def compute(self, data: te.Tensor, axis: te.Tensor) -> te.Tensor:
        raise only_interpreted("dyn.squeeze", "the axes")

    def reference(self, data: np.ndarray, axis: np.ndarray) -> np.ndarray:
        return Squeeze(axis=tuple(int(one) for one in np.atleast_1d(axis))).reference(data)


def vector_length(op: str, what: str, given: TensorType) -> int:
    """How many numbers a shape-like operand holds, which is known from its type."""
    size = given.shape[0] if len(given.shape) == 1 else None
    if not isinstance(size, int):
        raise TypeMismatch(f"{op}: {what} is {given}, not a vector of a known size")
    if size > MOST_DIMENSIONS:
        raise TypeMismatch(f"{op}: {what} has {size} entries, and a tensor has {MOST_DIMENSIONS} dimensions at most")
    return size
