"""relay.qnn: quantized tensors in graphs. `relay.qnn.op` has the operators (`relay/op/qnn/`), `transform` their passes.

q = relay.qnn.op.quantize(x, relay.const(0.05), relay.const(3), out_dtype="uint8")
"""

from __future__ import annotations

from loopwright.relay.qnn import op, transform

__all__ = ["op", "transform"]
