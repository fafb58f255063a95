"""Operators that say something of a value and leave it as it is: marks for the passes that read them.

relay.annotation.stop_fusion(x)      what computes x and what uses it are not one kernel
relay.annotation.compiler_begin(x, "dnnl"), compiler_end    where a part for another compiler begins and ends
"""

from __future__ import annotations

import numpy as np

from loopwright import te, topi
from loopwright.ir.types import Type
from loopwright.relay.expr import Call, Expr
from loopwright.relay.op.registry import Kind, Operator, calls, make, register


class _Mark(Operator):
    """The value itself."""

    def infer(self, data: Type) -> Type:
        return data

    def compute(self, data: te.Tensor) -> te.Tensor:
        return [topi.identity(one) for one in data] if isinstance(data, list) else topi.identity(data)

    def reference(self, data: np.ndarray) -> np.ndarray:
        return data

    def gradient(self, call: Call, grad: Expr) -> list[Expr]:
        return [grad]


@register("annotation.stop_fusion", Kind.OPAQUE)
class StopFusion(_Mark):
    """The value; a kernel ends here."""


@register("annotation.checkpoint", Kind.OPAQUE)
class Checkpoint(_Mark):
    """The value; gradients compute what leads to it once more instead of keeping it."""

    def expand(self, data: Expr) -> Expr:
        return data


@register("annotation.compiler_begin", Kind.OPAQUE)
class CompilerBegin(_Mark):
    """The value; what follows, up to compiler_end, is for `compiler`."""

    compiler: str


@register("annotation.compiler_end", Kind.OPAQUE)
class CompilerEnd(_Mark):
    """The value; what came before, from compiler_begin on, is for `compiler`."""

    compiler: str


@register("annotation.on_device", Kind.OPAQUE)
class OnDevice(_Mark):
    """The value; it is computed, and its result lies, on a device."""

    device: object = None
    constrain_result: bool = False
    constrain_body: bool = True

    def expand(self, data: Expr) -> Expr:
        return data


@calls("annotation.on_device")
def on_device(body: Expr, device: object, constrain_result: bool = False, constrain_body: bool = True) -> Expr:
    """The value, computed on `device`; with `constrain_result`, its result lies there too."""
    return make(
        "annotation.on_device",
        body,
        device=str(device),
        constrain_result=constrain_result,
        constrain_body=constrain_body,
    )
