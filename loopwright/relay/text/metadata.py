"""What the text form has no words for: tensors, kernels and devices, in JSON after the line `#[metadata]`.

meta[relay.Constant][0]        in the text is the first entry of
{"relay.Constant": [{"dtype": "float32", "shape": [2], "data": "…"}]}
"""

from __future__ import annotations

import base64
import json
from typing import Any, Final, TypeAlias

import numpy as np

from loopwright.ir.function import PrimFunc
from loopwright.ir.json_form import load_json, save_json
from loopwright.relay.expr import Constant
from loopwright.runtime.dtype import DataType
from loopwright.runtime.json_text import read_json
from loopwright.target import VirtualDevice

CONSTANT: Final = "relay.Constant"
PRIM_FUNC: Final = "tir.PrimFunc"
VIRTUAL_DEVICE: Final = "VirtualDevice"
Entry: TypeAlias = Constant | PrimFunc | VirtualDevice
Tables: TypeAlias = dict[str, list[Entry]]  # the entries that a text refers to, by kind


class Metadata:
    """The objects that a text refers to by number, in the order they are met."""

    def __init__(self) -> None:
        self.kinds: dict[str, list[object]] = {}
        # By id, since arrays have no hash (`kinds` keeps the objects alive); devices by value.
        self._places: dict[int | VirtualDevice, int] = {}

    def reference(self, kind: str, value: object) -> str:
        """How the text names the object; the same object has one number."""
        key = value if isinstance(value, VirtualDevice) else id(value)
        location = self._places.get(key)
        if location is None:
            entries = self.kinds.setdefault(kind, [])
            location = self._places[key] = len(entries)
            entries.append(value)
        return f"meta[{kind}][{location}]"

    def text(self) -> str:
        """The section, one entry a line; nothing where there is nothing."""
        if not self.kinds:
            return ""
        kinds = []
        for kind, entries in self.kinds.items():
            rows = ",\n".join([f"    {json.dumps(_saved(entry))}" for entry in entries])
            kinds.append(f"  {json.dumps(kind)}: [\n{rows}\n  ]")
        return "\n#[metadata]\n{\n" + ",\n".join(kinds) + "\n}\n"


def _saved(entry: object) -> object:
    if isinstance(entry, PrimFunc):
        return json.loads(save_json(entry))
    if isinstance(entry, VirtualDevice):
        return entry.export()
    array = entry.data if isinstance(entry, Constant) else np.asarray(entry)
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
    return {"dtype": str(DataType(array.dtype.name)), "shape": list(array.shape), "data": data}


def load(document: str) -> Tables:
    """The entries of a section by kind; ValueError, KeyError or TypeError where it is damaged."""
    tables = read_json(document)
    loaded: Tables = {}
    for kind, entries in tables.items():
        if kind == PRIM_FUNC:
            loaded[kind] = [load_json(json.dumps(entry)) for entry in entries]
        elif kind == VIRTUAL_DEVICE:
            loaded[kind] = [VirtualDevice.load(entry) for entry in entries]
        elif kind == CONSTANT:
            loaded[kind] = [Constant(_array(entry)) for entry in entries]
        else:
            raise ValueError(f"there is no kind {kind!r} of metadata")
    return loaded


def _array(entry: dict[str, Any]) -> np.ndarray:
    data = base64.b64decode(entry["data"], validate=True)
    return np.frombuffer(data, DataType(entry["dtype"]).numpy()).reshape(entry["shape"]).copy()
