"""Arithmetic on whole tensors: `A + B`, `A * 2`, `-A` are computes over the broadcast shape, one element at a time.

    te.placeholder((4, 1)) + te.placeholder((3,))     a tensor of shape (4, 3)

Shapes are matched from the right, as numpy does; a dimension of 1 is repeated. Where a size is known only when the
program runs, so is whether it is 1: it is read at 0 then, and that sizes fit is checked in the call. The tag of the
compute says what it is: `elemwise` for one tensor alone, `broadcast` for two operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from loopwright.arith import Analyzer
from loopwright.ir import Expr, IntImm, Var, as_expr, is_one
from loopwright.ir.intrinsics import if_then_else
from loopwright.runtime.errors import LoopwrightError
from loopwright.te.assumed_sizes import ASSUMED, assume_broadcast, broadcast_size, kept
from loopwright.te.compute import compute
from loopwright.te.tags import default_tag
from loopwright.te.tensor import Tensor, shape_text, use_for_whole_tensors

# Names of the results, by Python's operator.
_NAMES: Final = {
    "add": "T_add",
    "sub": "T_subtract",
    "mul": "T_multiply",
    "truediv": "T_divide",
    "floordiv": "T_floor_divide",
    "mod": "T_mod",
    "pow": "T_power",
    "lshift": "T_left_shift",
    "rshift": "T_right_shift",
    "and": "T_bitwise_and",
    "or": "T_bitwise_or",
    "xor": "T_bitwise_xor",
    "lt": "T_less",
    "le": "T_less_equal",
    "gt": "T_greater",
    "ge": "T_greater_equal",
    "neg": "T_negative",
    "invert": "T_bitwise_not",
    "abs": "T_abs",
    "pos": "T_identity",
    "astype": "T_cast",
    "equal": "T_equal",
}


class ShapesDoNotMatch(LoopwrightError, ValueError):
    """Whole tensors cannot be combined: from the right, each pair of dimensions must be equal, or one of them 1.

    Sizes that are known only when the program runs are checked in the call.

    For example:

        from loopwright import te
        te.placeholder((4, 3), name="A") + te.placeholder((4,), name="B")
    """

    code = "LW0463"

    def __init__(self, name: str, tensors: Sequence[Tensor], one: Expr, other: Expr) -> None:
        first, *others = [f"{tensor.name} {shape_text(tensor.shape)}" for tensor in tensors]
        message = " and ".join([first.replace(" ", " has shape ", 1), *others])
        super().__init__(
            f"{name}: {message}: dimensions {one!r} and {other!r} are neither equal nor 1",
            why="Incompatible broadcast dims",
            hint="dimensions are matched from the right; index the tensors in a te.compute to match them otherwise",
        )


def apply(method: str, *operands: Any) -> Tensor:
    """The tensor of `method` (`__add__`, `__radd__`, `__neg__`, …) at every element of the operands."""
    name = method.strip("_")
    if name not in _NAMES:
        name, operands = name.removeprefix("r"), operands[::-1]
    if name == "astype":
        tensor, dtype = operands
        return each_element(_NAMES[name], lambda element: element.astype(dtype), tensor)
    if len(operands) == 1:
        return each_element(_NAMES[name], lambda element: getattr(element, method)(), operands[0])
    forward = f"__{name}__" if name != "equal" else "equal"
    return broadcast(_NAMES[name], lambda left, right: getattr(left, forward)(right), *operands)


def each_element(name: str, function: Callable[[Expr], object], tensor: Tensor) -> Tensor:
    """The tensor of `function` at every element of `tensor`."""
    return _made(tensor.shape, lambda *indices: function(tensor(*indices)), name, "elemwise")


def broadcast(name: str, function: Callable[..., object], *operands: object) -> Tensor:
    """The tensor of `function` at every element of the operands, repeated to one shape; some may be expressions."""
    with kept() as assumed:
        shape = broadcast_shape(name, *[operand for operand in operands if isinstance(operand, Tensor)])

    def body(*indices: Var) -> object:
        return function(*[_element(operand, indices, shape) for operand in operands])

    return _made(shape, body, name, "broadcast", {ASSUMED: tuple(assumed)} if assumed else None)


def broadcast_shape(name: str, *tensors: Tensor) -> list[Expr]:
    """The shape that all tensors are repeated to."""
    shape = list(max(tensors, key=lambda tensor: tensor.ndim).shape)
    for tensor in tensors:
        for at, size in enumerate(tensor.shape, len(shape) - tensor.ndim):
            common = common_size(shape[at], size)
            if common is None:
                raise ShapesDoNotMatch(name, tensors, shape[at], size)
            shape[at] = common
    return shape


def common_size(one: Expr, other: Expr) -> Expr | None:
    """The size that two sizes are repeated to; None where they do not fit."""
    if is_one(one) or is_one(other):
        return other if is_one(one) else one
    if Analyzer().can_prove_equal(one, other):
        return one
    if isinstance(one, IntImm) and isinstance(other, IntImm):
        return None
    assume_broadcast(one, other)
    if isinstance(one, IntImm) or isinstance(other, IntImm):
        return one if isinstance(one, IntImm) else other
    return broadcast_size(one, other)


def repeated(index: Expr, size: Expr, wanted: Expr) -> Expr:
    """Where a dimension of `size` is read when it is repeated to `wanted`."""
    if is_one(size):
        return as_expr(0)
    if Analyzer().can_prove_equal(size, wanted):
        return index
    return if_then_else(size.equal(1), as_expr(0).astype(index.dtype), index)


def _made(
    shape: Sequence[Expr], body: Callable[..., object], name: str, tag: str, attrs: Mapping[str, object] | None = None
) -> Tensor:
    result: Tensor = compute(tuple(shape), body, name=name, tag=default_tag(tag), attrs=attrs)
    return result


def _element(operand: object, indices: Sequence[Var], shape: Sequence[Expr]) -> Expr:
    if not isinstance(operand, Tensor):
        return as_expr(operand)
    skipped = len(indices) - operand.ndim
    locations = zip(indices[skipped:], operand.shape, shape[skipped:], strict=True)
    return operand(*[repeated(*location) for location in locations])


use_for_whole_tensors(apply)
