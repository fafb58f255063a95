"""Converters of ONNX's operators, a file a family; `../registry.py` says how one is written."""

from __future__ import annotations

from typing import Final

# Every file that has converters; loaded together, at the first import of a model.
CONVERTER_FILES: Final = [
    "activation",
    "casting",
    "comparison",
    "constants",
    "control_flow",
    "convolution",
    "detection",
    "elementwise",
    "image",
    "indexing",
    "linear",
    "microsoft",
    "losses",
    "movement",
    "ngrams",
    "normalization",
    "pooling",
    "quantized",
    "quantized_microsoft",
    "random",
    "recurrent",
    "reduction",
    "resize",
    "sequences",
    "shapes",
    "signal",
    "training",
    "trees",
]
