"""Operators that say something of a value and leave it as it is: marks for the passes that read them.

relay.annotation.stop_fusion(x)      what computes x and what uses it are not one kernel
relay.annotation.compiler_begin(x, "dnnl"), compiler_end    where a part for another compiler begins and ends
"""

from __future__ import annotations

import numpy as np

from loopwright import te, topi
from loopwright.ir.types import Type
from loopwright.relay.expr import Call, Expr
from loopwright.relay.op.registry import Kind, Operator, register


class Mark(Operator):
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
class StopFusion(Mark):
    """The value; a kernel ends here."""


@register("annotation.checkpoint", Kind.OPAQUE)
class Checkpoint(Mark):
    """The value; gradients compute what leads to it once more instead of keeping it."""

    def expand(self, data: Expr) -> Expr:
        return data


@register("annotation.compiler_begin", Kind.OPAQUE)
class CompilerBegin(Mark):
    """The value; what follows, up to compiler_end, is for `compiler`."""

    compiler: str


@register("annotation.compiler_end", Kind.OPAQUE)
class CompilerEnd(Mark):
    """The value; what came before, from compiler_begin on, is for `compiler`."""

    compiler: str
