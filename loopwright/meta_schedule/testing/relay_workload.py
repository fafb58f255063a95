"""Models to extract tasks from: `get_network("resnet_18", [1, 3, 224, 224])`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loopwright.relay.testing import mobilenet, resnet
from loopwright.runtime.errors import NotBuilt


def get_network(
    name: str, input_shape: Sequence[int], *, cache_dir: str | None = None, layout: str | None = None, **_: Any
) -> tuple[Any, Any, tuple[str, list[int], str]]:
    """A model, its parameters, and the name, shape and type of its input."""
    batch, *image = input_shape
    if name.startswith("resnet_"):
        layers = int(name.removeprefix("resnet_"))
        mod, params = resnet.get_workload(batch_size=batch, num_layers=layers, image_shape=tuple(image))
    elif name.startswith("mobilenet"):
        mod, params = mobilenet.get_workload(batch_size=batch, image_shape=tuple(image))
    else:
        what = f"meta_schedule.testing.relay_workload.get_network({name!r})"
        raise NotBuilt(what, hint="import the model: from_onnx")
    return mod, params, ("data", list(input_shape), "float32")
