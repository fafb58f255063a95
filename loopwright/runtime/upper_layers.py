"""upper_layers: what a layer uses of a later one, whose modules it must not import: views of its objects, peers' names.

`loopwright/__init__.py`, which sees all layers, says where each is; it is loaded when it is first needed.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from typing import Any


@cache
def from_upper_layer(name: str) -> Any:
    """The object, or the module, that the package lists under `name`."""
    module, _, attribute = sys.modules["loopwright"]._UPPER_LAYERS[name].partition(":")  # a layer imports no facade
    loaded = importlib.import_module(module)
    return getattr(loaded, attribute) if attribute else loaded
