"""Operators that ONNX defines by other operators: the body of such a function, for one node.

`onnx.defs` has the bodies: one for a version of the operator set, or one made for the attributes and the types of the
inputs of the very node. A node whose operator has no converter is converted through it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from loopwright.frontends.onnx.element_types import ElementType
from loopwright.frontends.onnx.load import opset_versions
from loopwright.relay.types import Dim

if TYPE_CHECKING:
    from onnx import AttributeProto, FunctionProto, NodeProto, TypeProto
    from onnx.defs import OpSchema


def schema_of(op: str, domain: str, version: int) -> OpSchema | None:
    """What ONNX says of an operator, at that version of its set."""
    from onnx import defs

    try:
        return defs.get_schema(op, version, domain)
    except defs.SchemaError:
        return None


def has_body(op: str, domain: str, version: int) -> bool:
    schema = schema_of(op, domain, version)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


# What is known of an input: its element type and shape; a list of one for a sequence; None where it is left out.
Described: TypeAlias = tuple[ElementType, Sequence[Dim]] | list["Described"] | None


def body_of(proto: NodeProto, domain: str, version: int, types: Sequence[Described]) -> FunctionProto | None:
    """The body of the function that a node stands for, as a FunctionProto; None where there is none."""
    from onnx import FunctionProto

    schema = schema_of(proto.op_type, domain, version)
    if schema is None:
        return None
    if schema.has_context_dependent_function and _fits(schema, proto, types):
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= version]
        encoded = [_type_proto(one) for one in types]
        text = (
            schema.get_context_dependent_function_with_opset_version(versions[-1], proto.SerializeToString(), encoded)
            if versions
            else schema.get_context_dependent_function(proto.SerializeToString(), encoded)
        )
        body = FunctionProto.FromString(text) if text else None
        if body is not None and body.node:
            return body
    if schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= version]
        if versions:
            return FunctionProto.FromString(schema.get_function_with_opset_version(versions[-1]))
        return schema.function_body
    return None


def opsets_inside(body: FunctionProto, outside: Mapping[str, int], domain: str) -> dict[str, int]:
    """The versions of operator sets that hold in a body: its own, then those around it, then the newest."""
    from onnx import defs

    stated = {entry.domain for entry in body.opset_import}
    found = {**outside, **{key: version for key, version in opset_versions(body.opset_import).items() if key in stated}}
    if domain and not stated & {"", "ai.onnx"}:
        found[""] = defs.onnx_opset_version()
    return found


def _fits(schema: OpSchema, proto: NodeProto, types: Sequence[Described]) -> bool:
    """Whether the node has the inputs that its operator needs: ONNX's makers of bodies use them without looking."""
    if not schema.min_input <= len(proto.input) <= schema.max_input:
        return False
    if len(proto.output) < schema.min_output or len(proto.output) > schema.max_output:
        return False
    required = [one for one in schema.inputs if one.option == one.option.Single]
    if len(proto.input) < len(required) or any(not name for name in proto.input[: len(required)]):
        return False
    needed = [name for name, attribute in schema.attributes.items() if attribute.required]
    given = {attribute.name for attribute in proto.attribute}
    return all(name in given for name in needed) and all(
        of is not None or not name for name, of in zip(proto.input, types, strict=True)
    )


def default_attributes(op: str, domain: str, version: int) -> dict[str, AttributeProto]:
    """The AttributeProtos that stand for attributes that a node leaves out."""
    schema = schema_of(op, domain, version)
    if schema is None:
        return {}
    return {
        name: attribute.default_value for name, attribute in schema.attributes.items() if attribute.default_value.name
    }


def _type_proto(of: Described) -> bytes:
    from onnx import TypeProto

    proto = TypeProto()
    _fill_type(proto, of)
    return bytes(proto.SerializeToString())


def _fill_type(proto: TypeProto, of: Described) -> None:
    if of is None:
        return
    if isinstance(of, list):
        _fill_type(proto.sequence_type.elem_type, of[0])
        return
    kind, shape = of
    proto.tensor_type.elem_type = kind.code
    proto.tensor_type.shape.SetInParent()
    for size in shape:
        dim = proto.tensor_type.shape.dim.add()
        if isinstance(size, int):
            dim.dim_value = size
