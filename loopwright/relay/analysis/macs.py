"""get_total_mac_number: how many multiplications, each with an addition, the large operators of a graph take.

Only convolutions and matrix products count: all else is small beside them.
"""

from __future__ import annotations

from math import prod
from typing import Final

from loopwright.ir.types import TupleType
from loopwright.relay.analysis.operators import operator_calls
from loopwright.relay.expr import Call, Expr
from loopwright.relay.infer_type import infer
from loopwright.relay.types import TensorType

_CONVOLUTIONS: Final = frozenset(
    f"{start}{end}" for start in ("conv1d", "conv2d", "conv3d") for end in ("", "_transpose")
) | {"conv2d_nchwc", "depthwise_conv2d_nchwc"}
_PRODUCTS: Final = frozenset(["batch_matmul", "dense", "dense_pack", "matmul"])


def get_total_mac_number(expr: Expr) -> int:
    """The number of multiply-adds in a graph; its types are inferred where they are not known."""
    if getattr(expr, "checked_type_", None) is None:
        infer(expr)
    return sum(_macs(call) for call in operator_calls(expr))


def _macs(call: Call) -> int:
    name = call.op.name.rpartition(".")[2].removeprefix("contrib_")
    if name in _CONVOLUTIONS:
        return _of_convolution(call, transposed="transpose" in name)
    if name in _PRODUCTS:
        flipped = "transpose_a" in call.attrs and call.attrs["transpose_a"]
        return prod(_shape(call)) * _shape(call.args[0])[-2 if flipped else -1]
    return 0


def _of_convolution(call: Call, transposed: bool) -> int:
    """Each result takes one kernel's elements; transposed, each input meets one kernel's elements."""
    counted = call.args[0] if transposed else call
    layout = str(call.attrs.data_layout)
    if not transposed:
        layout = str(getattr(call.attrs, "out_layout", "") or layout)
    shape = _shape(counted)
    letters = [letter for letter in layout if letter.isalpha()]
    channels = prod(size for size, letter in zip(shape, letters, strict=True) if letter in "Cc")
    return prod(shape) * prod(_shape(call.args[1])) // channels if channels else 0


def _shape(expression: Expr) -> tuple[int, ...]:
    of = expression.checked_type
    while isinstance(of, TupleType):
        of = of.fields[0]
    assert isinstance(of, TensorType)
    return of.concrete_shape
