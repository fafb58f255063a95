"""graph_executor: running a compiled model by its graph. Models are not here yet; the names are, and say so."""

from __future__ import annotations

from typing import Any, NoReturn

from loopwright.runtime.errors import NotBuilt

_INSTEAD = "models are not here yet: build a function, and call it"


def create(graph_json_str: str, libmod: Any, device: Any) -> NoReturn:
    """An executor for the graph of a model. Not built yet."""
    raise NotBuilt("contrib.graph_executor.create", _INSTEAD)


class GraphModule:
    """A model that is loaded, its inputs and its outputs. Not built yet."""

    def __init__(self, module: Any) -> None:
        raise NotBuilt("contrib.graph_executor.GraphModule", _INSTEAD)
