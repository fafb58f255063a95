"""rint: to the nearest integer, as processors round: one that is as near to two goes to the even one."""

from __future__ import annotations

import numpy as np

from loopwright import te
from loopwright.ir import Expr as PrimExpr
from loopwright.ir.types import Type
from loopwright.relay.op.registry import Kind, Operator, register
from loopwright.relay.types import TensorType
from loopwright.te.tags import default_tag
from loopwright.topi import tag


@register("rint", Kind.ELEMWISE)
class Rint(Operator):
    """The integer nearest to each element, halves to the even one. Integers stay as they are."""

    def infer(self, data: TensorType) -> Type:
        return data

    def compute(self, data: te.Tensor) -> te.Tensor:
        is_real = str(data.dtype).startswith(("float", "bfloat"))

        def cell(*at: PrimExpr) -> PrimExpr:
            return te.nearbyint(data(*at)) if is_real else data(*at)

        return te.compute(data.shape, cell, name="T_rint", tag=default_tag(tag.ELEMWISE))

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.rint(data).astype(data.dtype) if data.dtype.kind not in "iub" else data
