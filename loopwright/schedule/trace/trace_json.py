"""The JSON of a trace: [kind, inputs, attributes, outputs] a step, in the layout that others of its kind use.

    ["GetBlock", [], ["C", "main"], ["b0"]]
    ["GetLoops", ["b0"], [], ["l1", "l2"]]
    ["Split", ["l1", "None", 8], [true], ["l3", "l4"]]
    ["Annotate", ["l3", "\"vector\""], ["kind"], []]
    ["TransformLayout", ["b0", "{\"root\": 1, …}"], [0, 1, null, false], []]

Handles are b0, l1, v2, numbered as they are made. A text among the inputs carries quotes of its own, so that it is no
handle; attributes are plain data, in which a sampled number is {"rv": "v2"}. Settings of ours that others do not have
come last, and are left out where they are as usual. A map of indices is a graph of nodes (`MapGraphs`) among the
inputs, and a buffer its number and 0 (read) or 1 (written); a map or buffer that cannot be said so is an attribute of
ours: its text, its name. What older files of ours, and of others, have in other places is read as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, TypeGuard

from loopwright.arith.index_map import IndexMap
from loopwright.runtime.upper_layers import from_upper_layer
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.rewrite.index_map import LayoutMap
from loopwright.schedule.trace.calls import Arguments, Handle

_SPREAD: Final = ("Split", "Fuse", "Reorder", "Merge")  # the items of their last input stand one by one
_AS_INPUTS: Final[Mapping[str, tuple[str, ...]]] = {"Annotate": ("ann_val",)}  # settings that stand with the inputs
# Settings that others do not have, with what they usually are: left out where they are so.
OURS: Final[Mapping[str, Mapping[str, str | int | None]]] = {
    "Split": {"tail": "guard"},
    "CacheRead": {"load": None},
    "RollingBuffer": {"size": None},
    "Prefetch": {"levels": 0, "lines": 1},
}

_SIDES: Final = ("read", "write")
_WITH_SIDE: Final = ("TransformLayout", "ReIndex", "SetAxisSeparator")  # their buffer is read or written
_ATTRIBUTES: Final = {"TransformLayout": 3, "ReIndex": 1, "SetAxisSeparator": 2}  # of ours, without a side
_WITH_MAP: Final = ("TransformLayout", "TransformBlockLayout", "ReindexCacheRead", "ReindexCacheWrite")
_WITH_CONSUMERS: Final = ("CacheRead", "CacheWrite")  # an empty list stands for all
_PEERS_ALONE: Final[Mapping[str, tuple[bool, ...]]] = {"TransformLayout": (False,)}  # settings that we do without


class UnreadableMap(ScheduleError, ValueError):
    """A trace holds an index map as a graph of nodes that is broken, or has nodes that no index is made of.

    Indices are made of variables, integers, + - * // %, min and max.

    For example:

        from loopwright.compat.node_graph import read_map

        read_map('{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "tir.Call", "attrs": {}}]}')
    """

    code = "LW0262"
    is_tried = False

    def __init__(self, problem: str) -> None:
        hint = "write the map as text: lambda i, j: (j, i)"
        super().__init__(f"index map: {problem}", hint=hint, fields={"problem": problem})


class MapGraphs(Protocol):
    """Index maps as graphs of nodes, which only traces of the peer need: `compat/node_graph.py`."""

    def is_graph(self, value: object) -> TypeGuard[str]:
        """Whether a value of a trace is such a graph."""

    def read_map(self, text: str, known: Mapping[str, Any] | None = None) -> IndexMap:
        """The map that a graph holds; `known` are sampled numbers that it may name."""

    def read_value(self, text: str) -> float | int | str:
        """A pad value that a graph holds."""

    def write_map(self, given: IndexMap) -> str:
        """A map as a graph."""


def _graphs() -> MapGraphs:
    graphs: MapGraphs = from_upper_layer("index maps of traces")
    return graphs


class HandleNames(Protocol):
    """What handles are called in a trace."""

    def text(self, value: object) -> str:
        """A handle as its name."""


def step_data(kind: str, inputs: Arguments, attrs: Arguments, names: HandleNames) -> list[object]:
    """Kind, inputs and attributes of a step as data; `names` tells what handles are called."""
    moved = _AS_INPUTS.get(kind, ())
    given = [*inputs.values(), *[attrs[name] for name in moved if name in attrs]]
    if kind in _SPREAD and given:
        given = [*given[:-1], *given[-1]]
    settings = {name: value for name, value in attrs.items() if name not in moved}
    ours = OURS.get(kind, {})
    for name in reversed(list(settings)):
        if name not in ours or settings[name] != ours[name]:
            break
        del settings[name]
    if kind in _WITH_CONSUMERS and not given[1]:
        given[1] = [] if given[1] is None else None
    read = [_input(value, names) for value in given]
    graph = _graph_of(settings.get("index_map")) if kind in _WITH_MAP else None
    if graph is not None:
        read.append(graph)
        del settings["index_map"]
    listed = [_attribute(value, names) for value in settings.values()]
    if kind in _WITH_SIDE and isinstance(listed[0], list) and (graph is not None or kind not in _WITH_MAP):
        side, number = listed[0]
        listed = [number, _SIDES.index(side), *listed[1:], *_PEERS_ALONE.get(kind, ())]
    return [kind, read, listed]


def _graph_of(text: object) -> str | None:
    """A map of indices as others write it; None where they have no way to."""
    result = LayoutMap.of(text) if isinstance(text, str) else None
    return _graphs().write_map(result) if result is not None and not result.separators else None


def read_step(
    kind: str,
    inputs: Sequence[object],
    attrs: Sequence[object],
    rows: tuple[Sequence[str], Sequence[str]],
    known: Mapping[str, Handle],
) -> tuple[dict[str, object], dict[str, object]]:
    """Inputs and settings by name, `rows` being the names of a kind's. Raises KeyError, TypeError or ValueError."""
    input_names, attr_names = rows
    inputs, attrs = _in_our_places(kind, inputs, attrs, known)
    moved = _AS_INPUTS.get(kind, ())
    names = [*input_names, *[name for name in attr_names if name in moved and len(inputs) > len(input_names)]]
    values = [_from_input(value, known) for value in inputs]
    if kind in _SPREAD and not (len(values) == len(names) and isinstance(values[-1], list)):
        values = [*values[: len(names) - 1], values[len(names) - 1 :]]
    given = dict(zip(names, values, strict=True))
    settings = {name: given.pop(name) for name in names[len(input_names) :]}
    rest = [name for name in attr_names if name not in settings]
    ours = OURS.get(kind, {})
    lacking = [name for name in rest[len(attrs) :] if name in ours]
    read = [_from_attribute(value, known) for value in attrs]
    settings.update(zip(rest[: len(rest) - len(lacking)], read, strict=True))
    settings.update({name: ours[name] for name in lacking})
    return given, {name: settings[name] for name in attr_names if name in settings}


def _in_our_places(
    kind: str, inputs: Sequence[object], attrs: Sequence[object], known: Mapping[str, Handle]
) -> tuple[list[object], list[object]]:
    """Inputs and attributes with maps and buffers where, and as, our rows have them."""
    inputs, attrs = list(inputs), list(attrs)
    if kind in _WITH_CONSUMERS and inputs[1:] == [[]]:
        inputs[1] = None
    elif kind in _WITH_CONSUMERS and inputs[1:] in ([None], ["None"]):
        inputs[1] = []
    graphs = [item for item in inputs if _graphs().is_graph(item)] if kind in _WITH_MAP else []
    inputs = [item for item in inputs if not (graphs and item is graphs[0])]
    usual = _ATTRIBUTES.get(kind, len(attrs)) - len(graphs)
    if kind in _WITH_SIDE and len(attrs) > usual:
        number, side, *rest = attrs
        if side not in (0, 1):
            raise ValueError(f"{side!r} is neither 0 (read) nor 1 (written)")
        attrs = [[_SIDES[side], number], *rest[: usual - 1]]
    if graphs:
        attrs.insert(1 if kind == "TransformLayout" else len(attrs), graphs[0])
    return inputs, [_ungraphed(kind, index, item, known) for index, item in enumerate(attrs)]


def _ungraphed(kind: str, index: int, item: object, known: Mapping[str, Handle]) -> object:
    if kind not in _WITH_MAP or not _graphs().is_graph(item):
        return item
    if kind == "TransformLayout" and index == 2:
        return _graphs().read_value(item)
    return _graphs().read_map(item, known).text


def _input(value: object, names: HandleNames) -> object:
    if value is None:
        return "None"
    if isinstance(value, Handle):
        return names.text(value)
    if isinstance(value, (list, tuple)):
        return [_input(item, names) for item in value]
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return {key: _input(item, names) for key, item in value.items()}
    return value


def _attribute(value: object, names: HandleNames) -> object:
    if isinstance(value, Handle):
        return {"rv": names.text(value)}
    if isinstance(value, (list, tuple)):
        return [_attribute(item, names) for item in value]
    if isinstance(value, Mapping):
        return {key: _attribute(item, names) for key, item in value.items()}
    return value


def _from_input(value: object, known: Mapping[str, Handle]) -> object:
    if isinstance(value, str) and value == "None":
        return None
    if isinstance(value, str):
        return json.loads(value) if value.startswith('"') else known[value]
    if isinstance(value, list):
        return [_from_input(item, known) for item in value]
    if isinstance(value, dict):
        return {key: _from_input(item, known) for key, item in value.items()}
    return value


def _from_attribute(value: object, known: Mapping[str, Handle]) -> object:
    if isinstance(value, str):
        # Older files of ours have quotes of their own here as well.
        return json.loads(value) if len(value) > 1 and value.startswith('"') and value.endswith('"') else value
    if isinstance(value, list):
        return [_from_attribute(item, known) for item in value]
    if isinstance(value, dict):
        if list(value) == ["rv"]:
            return known[value["rv"]] if value["rv"] in known else int(value["rv"])
        return {key: _from_attribute(item, known) for key, item in value.items()}
    return value
