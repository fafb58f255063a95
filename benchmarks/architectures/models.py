"""The models by name, and inputs for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.architectures import audio, detectors, images, sequences, unets

Array = np.ndarray[Any, Any]
MODELS: dict[str, Callable[[], Any]] = {
    each.__name__: each
    for each in (
        unets.unet,
        unets.unet_resized,
        unets.wave_unet,
        detectors.ssd,
        detectors.yolo,
        images.preprocess,
        images.blend,
        images.equalise,
        images.segment,
        images.classify,
        audio.mel,
        audio.keywords,
        audio.wavenet,
        audio.conformer,
        sequences.decoder_step,
        sequences.points,
        sequences.diffusion,
    )
}


def inputs_of(model: Any, seed: int = 1) -> dict[str, Array]:
    """Seeded inputs: normal numbers, bytes, or numbers of tokens."""
    from onnx import helper

    random = np.random.default_rng(seed)
    found = {}
    for value in model.graph.input:
        shape = [size.dim_value for size in value.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if dtype.kind == "f":
            found[value.name] = random.standard_normal(shape).astype(dtype)
        else:
            found[value.name] = random.integers(0, 256, shape).astype(dtype)
    return found
