"""relay.quantize: a model of real numbers as one of bytes, after training.

    with relay.quantize.qconfig(calibrate_mode="kl_divergence", weight_scale="channel"):
        mod = relay.quantize.quantize(mod, params, dataset=[{"x": sample} for sample in samples])
    lib = relay.build(mod)

Read `quantize.py` first (the walk), then `config.py` (what can be chosen), `calibrate.py` (which numbers occur),
`ranges.py` (how far a byte reaches) and `insert.py` (the graph with quantize and dequantize in it). What the compiler
makes of those is `transform/integer_products.py`. `accuracy.py` says what it costs.
"""

from __future__ import annotations

from loopwright.relay.quantize.accuracy import Accuracy, compare
from loopwright.relay.quantize.config import QConfig, current_qconfig, qconfig
from loopwright.relay.quantize.precision import PRECISIONS, in_precision
from loopwright.relay.quantize.quantize import prerequisite_optimize, quantize

__all__ = [
    "PRECISIONS",
    "Accuracy",
    "QConfig",
    "compare",
    "current_qconfig",
    "in_precision",
    "prerequisite_optimize",
    "qconfig",
    "quantize",
]
