"""The JSON of a trace: [kind, inputs, attributes, outputs] a step, in the layout that others of its kind use.

    ["GetBlock", [], ["C", "main"], ["b0"]]
    ["GetLoops", ["b0"], [], ["l1", "l2"]]
    ["Split", ["l1", null, 8], [true], ["l3", "l4"]]
    ["Annotate", ["l3", "\"vector\""], ["kind"], []]

Handles are b0, l1, v2, numbered as they are made. A text among the inputs carries quotes of its own, so that it is no
handle; attributes are plain data, in which a sampled number is {"rv": "v2"}. Settings of ours that others do not have
come last, and are left out where they are as usual.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from loopwright.schedule.handles import BlockRV, ExprRV, LoopRV

_SPREAD: Final = ("Split", "Fuse", "Reorder", "Merge")  # the items of their last input stand one by one
_AS_INPUTS: Final[Mapping[str, tuple[str, ...]]] = {"Annotate": ("ann_val",)}  # settings that stand with the inputs
_OURS: Final[Mapping[str, Mapping[str, Any]]] = {"Split": {"tail": "guard"}, "RollingBuffer": {"size": None}}

Handle = BlockRV | LoopRV | ExprRV


def step_data(kind: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any], names: Any) -> list[Any]:
    """Kind, inputs and attributes of a step as data; `names` tells what handles are called."""
    moved = _AS_INPUTS.get(kind, ())
    given = [*inputs.values(), *[attrs[name] for name in moved if name in attrs]]
    if kind in _SPREAD and given:
        given = [*given[:-1], *given[-1]]
    settings = {name: value for name, value in attrs.items() if name not in moved}
    ours = _OURS.get(kind, {})
    for name in reversed(list(settings)):
        if name not in ours or settings[name] != ours[name]:
            break
        del settings[name]
    return [kind, [_input(value, names) for value in given], [_attribute(value, names) for value in settings.values()]]


def read_step(
    kind: str, inputs: Sequence[Any], attrs: Sequence[Any], rows: tuple[Sequence[str], Sequence[str]], known: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and settings by name, `rows` being the names of a kind's. Raises KeyError, TypeError or ValueError."""
    input_names, attr_names = rows
    moved = _AS_INPUTS.get(kind, ())
    names = [*input_names, *[name for name in attr_names if name in moved and len(inputs) > len(input_names)]]
    values = [_from_input(value, known) for value in inputs]
    if kind in _SPREAD and not (len(values) == len(names) and isinstance(values[-1], list)):
        values = [*values[: len(names) - 1], values[len(names) - 1 :]]
    given = dict(zip(names, values, strict=True))
    settings = {name: given.pop(name) for name in names[len(input_names) :]}
    rest = [name for name in attr_names if name not in settings]
    ours = _OURS.get(kind, {})
    lacking = [name for name in rest[len(attrs) :] if name in ours]
    read = [_from_attribute(value, known) for value in attrs]
    settings.update(zip(rest[: len(rest) - len(lacking)], read, strict=True))
    settings.update({name: ours[name] for name in lacking})
    return given, {name: settings[name] for name in attr_names if name in settings}


def _input(value: Any, names: Any) -> Any:
    if isinstance(value, Handle):
        return names.text(value)
    if isinstance(value, (list, tuple)):
        return [_input(item, names) for item in value]
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return {key: _input(item, names) for key, item in value.items()}
    return value


def _attribute(value: Any, names: Any) -> Any:
    if isinstance(value, Handle):
        return {"rv": names.text(value)}
    if isinstance(value, (list, tuple)):
        return [_attribute(item, names) for item in value]
    if isinstance(value, Mapping):
        return {key: _attribute(item, names) for key, item in value.items()}
    return value


def _from_input(value: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        return json.loads(value) if value.startswith('"') else known[value]
    if isinstance(value, list):
        return [_from_input(item, known) for item in value]
    if isinstance(value, dict):
        return {key: _from_input(item, known) for key, item in value.items()}
    return value


def _from_attribute(value: Any, known: Mapping[str, Any]) -> Any:
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
