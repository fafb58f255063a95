"""relay.qnn.transform: operators on quantized tensors as plain ones.

An operator says itself what it is (`Operator.expand`), on every target alike: both passes are SimplifyInference.
"""

from __future__ import annotations

from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.simplify.simplify_inference import SimplifyInference


def CanonicalizeOps() -> GraphPass:
    """Operators on quantized tensors as sums of products of integers, corrections and shifts."""
    return SimplifyInference()


def Legalize() -> GraphPass:
    """Operators on quantized tensors as those that the target has."""
    return SimplifyInference()


__all__ = ["CanonicalizeOps", "Legalize"]
