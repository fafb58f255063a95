"""Converters of PyTorch's operators, a file a family; `../registry.py` says how one is written."""

from __future__ import annotations

from typing import Final

# Every file that has converters; loaded together, at the first import of a model.
CONVERTER_FILES: Final = [
    "activation",
    "attention",
    "control_flow",
    "convolution",
    "creation",
    "image",
    "indexing",
    "linear",
    "normalization",
    "ordering",
    "padding",
    "pointwise",
    "pooling",
    "quantized",
    "random",
    "recurrent",
    "reduction",
    "scattering",
    "shapes",
]
