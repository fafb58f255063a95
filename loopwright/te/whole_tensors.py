"""Arithmetic on whole tensors: `A + B`, `A * 2`, `-A` are computes over the broadcast shape, one element at a time.

    te.placeholder((4, 1)) + te.placeholder((3,))     a tensor of shape (4, 3)

Shapes are matched from the right, as numpy does; a dimension of 1 is repeated. The tag of the compute says what it is:
`elemwise` for one tensor alone, `broadcast` for two operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from loopwright.arith import Analyzer
from loopwright.ir import Expr, Var, as_expr, is_one
from loopwright.runtime.errors import LoopwrightError
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
    """Two whole tensors cannot be combined: from the right, each pair of dimensions must be equal, or one of them 1.

    For example:

        from loopwright import te
        te.placeholder((4, 3), name="A") + te.placeholder((4,), name="B")
    """

    code = "LW0463"

    def __init__(self, name: str, a: Tensor, b: Tensor, one: Expr, other: Expr) -> None:
        super().__init__(
            f"{name}: {a.name} has shape {shape_text(a.shape)} and {b.name} {shape_text(b.shape)}: "
            f"dimensions {one!r} and {other!r} are neither equal nor 1",
            hint="dimensions are matched from the right; index the tensors in a te.compute to match them otherwise",
        )


def apply(method: str, *operands: Any) -> Tensor:
    """The tensor of `method` (`__add__`, `__radd__`, `__neg__`, …) at every element of the operands."""
    name = method.strip("_")
    if name not in _NAMES:
        name, operands = name.removeprefix("r"), operands[::-1]
    if name == "astype":
        tensor, dtype = operands
        return _each(_NAMES[name], lambda element: element.astype(dtype), tensor)
    tensors = [operand for operand in operands if isinstance(operand, Tensor) and operand.shape]
    if len(operands) == 1:
        return _each(_NAMES[name], lambda element: getattr(element, method)(), tensors[0])
    shape = tensors[0].shape if len(tensors) == 1 else broadcast_shape(_NAMES[name], *tensors)
    forward = f"__{name}__" if name != "equal" else "equal"

    def body(*indices: Var) -> Any:
        left, right = [_element(operand, indices) for operand in operands]
        return getattr(left, forward)(right)

    return _made(shape, body, _NAMES[name], "broadcast")


def broadcast_shape(name: str, a: Tensor, b: Tensor) -> list[Expr]:
    """The shape that both tensors are repeated to."""
    longer, shorter = (a, b) if a.ndim >= b.ndim else (b, a)
    shape = list(longer.shape)
    facts = Analyzer()
    for at, size in enumerate(shorter.shape, longer.ndim - shorter.ndim):
        if is_one(shape[at]):
            shape[at] = size
        elif not is_one(size) and not facts.can_prove_equal(shape[at], size):
            raise ShapesDoNotMatch(name, a, b, *((shape[at], size) if longer is a else (size, shape[at])))
    return shape


def _each(name: str, function: Callable[[Expr], Any], tensor: Tensor) -> Tensor:
    return _made(tensor.shape, lambda *indices: function(tensor(*indices)), name, "elemwise")


def _made(shape: Sequence[Expr], body: Callable[..., Any], name: str, tag: str) -> Tensor:
    made: Tensor = compute(tuple(shape), body, name=name, tag=default_tag(tag))
    return made


def _element(operand: Any, indices: Sequence[Var]) -> Expr:
    if not isinstance(operand, Tensor):
        return as_expr(operand)
    own = indices[len(indices) - operand.ndim :] if operand.ndim else ()
    return operand(*[0 if is_one(size) else index for size, index in zip(operand.shape, own, strict=True)])


use_for_whole_tensors(apply)
