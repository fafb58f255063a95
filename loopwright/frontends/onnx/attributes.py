"""The attributes of a node as values of Python: numbers, texts, lists, arrays, graphs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from loopwright.frontends.onnx.errors import BadNode
from loopwright.frontends.onnx.tensors import sparse_to_array, to_array

if TYPE_CHECKING:
    from onnx import AttributeProto, NodeProto, SparseTensorProto, TensorProto


def attributes_of(
    proto: NodeProto, name: str, folder: Path | None, bound: Mapping[str, AttributeProto] | None = None
) -> tuple[dict[str, object], list[AttributeProto]]:
    """The attributes by name, and as AttributeProtos; those that refer to one of a function's have its value.

    `bound` are the AttributeProtos of the call of the function that the node belongs to.
    """
    values: dict[str, object] = {}
    protos: list[AttributeProto] = []
    for attribute in proto.attribute:
        given = attribute
        if attribute.ref_attr_name:
            referred = (bound or {}).get(attribute.ref_attr_name)
            if referred is None:
                continue  # the caller left it out, and it has no default
            given = type(attribute).FromString(referred.SerializeToString())
            given.name = attribute.name
        values[attribute.name] = _value(given, proto, name, folder)
        protos.append(given)
    return values, protos


def _value(attribute: AttributeProto, proto: NodeProto, name: str, folder: Path | None) -> object:
    kinds = type(attribute)
    kind = attribute.type
    if kind == kinds.FLOAT:
        return float(attribute.f)
    if kind == kinds.INT:
        return int(attribute.i)
    if kind == kinds.STRING:
        return _text(attribute.s)
    if kind == kinds.FLOATS:
        return [float(item) for item in attribute.floats]
    if kind == kinds.INTS:
        return [int(item) for item in attribute.ints]
    if kind == kinds.STRINGS:
        return [_text(item) for item in attribute.strings]
    if kind == kinds.TENSOR:
        return StoredTensor(attribute.t, folder)
    if kind == kinds.SPARSE_TENSOR:
        return StoredTensor(attribute.sparse_tensor, folder, sparse=True)
    if kind == kinds.GRAPH:
        return attribute.g
    if kind == kinds.GRAPHS:
        return list(attribute.graphs)
    if kind == kinds.TYPE_PROTO:
        return attribute.tp
    raise BadNode(name, proto.op_type, f"the attribute {attribute.name!r} is of no kind that we know ({kind})")


class StoredTensor:
    """A tensor among the attributes; its elements are read when somebody asks."""

    def __init__(self, proto: TensorProto | SparseTensorProto, folder: Path | None, sparse: bool = False) -> None:
        self.proto = proto
        self.folder = folder
        self.sparse = sparse

    @property
    def element_code(self) -> int:
        return int(self.proto.values.data_type if self.sparse else self.proto.data_type)

    def array(self) -> np.ndarray:
        return sparse_to_array(self.proto, self.folder) if self.sparse else to_array(self.proto, self.folder)


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")
