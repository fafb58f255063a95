"""relay.qnn: quantized tensors in graphs. `relay.qnn.op` has the operators (`relay/op/qnn/`), `transform` their passes.

An operator is found here too: `relay.qnn.quantize` is `relay.qnn.op.quantize`.

q = relay.qnn.op.quantize(x, relay.const(0.05), relay.const(3), out_dtype="uint8")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopwright.relay.expr import Expr
from loopwright.relay.qnn import op, transform

__all__ = ["op", "transform"]

if not TYPE_CHECKING:  # mypy would believe in every name

    def __getattr__(name: str) -> Expr:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(op, name)
