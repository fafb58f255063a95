"""from_onnx: a model as a module of relay, and the same with what is known of its inputs and outputs.

    mod, params = from_onnx("model.onnx")

Dimensions with a name ("batch") become size variables: one for a name, the same wherever it occurs. An unknown
dimension without a name becomes one of its own. `shape=` puts numbers, or other names, in their place.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from loopwright.frontends.onnx.element_types import ElementType, of_dtype, of_proto
from loopwright.frontends.onnx.errors import AbsurdSize, BadInputShape, ShapeNeeded, UnknownInput
from loopwright.frontends.onnx.importer import Importer
from loopwright.frontends.onnx.load import LoadedModel, ModelSource, load
from loopwright.frontends.onnx.node import Scope
from loopwright.frontends.onnx.tensors import LARGEST, element_count
from loopwright.frontends.onnx.values import OptionalValue, SequenceValue, Value
from loopwright.ir import Expr as PrimExpr
from loopwright.ir import IRModule
from loopwright.relay.expr import Constant, Expr, Function, Tuple, Var
from loopwright.relay.infer_type import infer_module
from loopwright.relay.types import AnyDim, Dim, TensorType
from loopwright.runtime.tensor import NDArray
from loopwright.runtime.tensor import array as device_array

if TYPE_CHECKING:
    from onnx import TensorShapeProto, TypeProto, ValueInfoProto

# What a value of the model is made of: an element type, a list for a sequence, None for an optional that is absent.
Structure: TypeAlias = ElementType | list["Structure"] | None


@dataclass(frozen=True)
class ModelInput:
    """An input of the model: its name, and the parameters of `main` that it is (several for a sequence)."""

    name: str
    structure: ElementType | list[ElementType] | None
    params: tuple[Var, ...]
    optional: bool = False


@dataclass(frozen=True)
class Imported:
    """A model as a module, with what its inputs and outputs are."""

    mod: IRModule
    params: dict[str, np.ndarray]
    inputs: tuple[ModelInput, ...]
    output_names: tuple[str, ...]
    outputs: tuple[Structure, ...]
    known: dict[str, object] = field(default_factory=dict)  # inputs whose values were given

    @property
    def tensor_names(self) -> tuple[str, ...]:
        """The names of what `main` returns, tensor by tensor."""
        return tuple(one for name, of in zip(self.output_names, self.outputs) for one in _flat_names(name, of))


def _flat_names(name: str, structure: Structure) -> list[str]:
    """The names of the tensors of an output: a sequence has several, an absent optional none."""
    if structure is None:
        return []
    if isinstance(structure, list):
        return [one for index, part in enumerate(structure) for one in _flat_names(f"{name}[{index}]", part)]
    return [name]


def from_onnx(
    model: ModelSource,
    shape: Mapping[str, object] | None = None,
    dtype: str | Mapping[str, str] = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
    convert_config: Mapping[str, object] | None = None,
    export_node_renamed_model_path: str | os.PathLike[str] | None = None,
    values: Mapping[str, object] | None = None,
) -> tuple[IRModule, dict[str, NDArray]]:
    """A model as a module whose `main` computes it, and the parameters of `main` that are weights, by name.

    model: a path, bytes, an open file or an onnx.ModelProto.
    shape: shapes of inputs by name, in place of the model's; a size is a number, a text (a dimension with that name,
        one number wherever it occurs), `relay.AnyDim()`, or None to keep the model's. A rank or a number that
        contradicts the model's is refused, unless the model declares a scalar.
    dtype: element types of inputs by name, in place of the model's. (A single text is not used: the model says it.)
    opset: the version of ONNX's operators to read the model by, in place of the model's.
    freeze_params: whether weights are constants of the module. Otherwise they are parameters, returned by name.
    convert_config: {"use_nt_batch_matmul": False} keeps the second operand of a batched product as it is.
    export_node_renamed_model_path: where to write the model with every node named `Operator_place`: a file if it ends
        in ".onnx", otherwise a folder for a file `tvm_exported_model_` and its time.
    values: inputs whose value is known, by name: they become constants. See the error ValueNeeded.

    Operators that are not supported are named all at once (OpNotImplemented), before anything is converted.
    """
    loaded = load(model)
    if export_node_renamed_model_path is not None:
        loaded = _renamed(loaded, export_node_renamed_model_path)
    result = import_model(
        loaded,
        shape=shape,
        dtype=dtype,
        opset=opset,
        freeze_params=freeze_params,
        convert_config=convert_config,
        values=values,
    )
    return result.mod, {name: device_array(data) for name, data in result.params.items()}


def import_model(
    model: LoadedModel,
    *,
    shape: Mapping[str, object] | None = None,
    dtype: str | Mapping[str, str] = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
    convert_config: Mapping[str, object] | None = None,
    values: Mapping[str, object] | None = None,
    dynamic: bool = True,
) -> Imported:
    """The same as from_onnx, of a model that is loaded, with the descriptions of inputs and outputs."""
    if opset is not None:
        model = LoadedModel(model.proto, model.folder, {**model.opsets, "": int(opset)})
    shape = shapes_by_name(shape)
    graph = model.proto.graph
    stored = {tensor.name for tensor in graph.initializer} | {one.values.name for one in graph.sparse_initializer}
    inputs = [value for value in graph.input if value.name not in stored]
    names = [value.name for value in inputs]
    dtypes = dtype if isinstance(dtype, Mapping) else {}
    for what, given in (("a shape", shape), ("an element type", dtypes), ("a value", values)):
        for name in given or {}:
            if name not in names:
                raise UnknownInput(what, name, names)
    importer = Importer(model, freeze=freeze_params, dynamic=dynamic, config=convert_config)
    importer.refuse_unsupported()
    scope = Scope(model.opsets)
    described: list[ModelInput] = []
    for value in inputs:
        if values is not None and value.name in values:
            scope.names[value.name] = _known_input(importer, value, values[value.name])
            continue
        built, one = _input(importer, value, shape.get(value.name), dtypes.get(value.name))
        scope.names[value.name] = built
        described.append(one)
    results = importer.convert_graph(graph, scope)
    body = [_as_expr(result) for result in results]
    params = [param for one in described for param in one.params]
    function = Function([*params, *importer.param_vars], body[0] if len(body) == 1 else Tuple(body))
    module = IRModule.from_expr(function)
    infer_module(module)
    return Imported(
        module,
        importer.params,
        tuple(described),
        tuple(value.name for value in graph.output),
        tuple(_structure(importer, result) for result in results),
        dict(values or {}),
    )


def shapes_by_name(shape: object) -> dict[str, object]:
    """What `shape=` says, by the names of inputs."""
    if shape is not None and not isinstance(shape, Mapping):
        problem = f"shapes are given by the names of inputs, not as {type(shape).__name__} {shape!r:.80}"
        raise BadInputShape(problem, 'write shape={"x": (1, 4)}')
    return dict(shape or {})


def _input(importer: Importer, value: ValueInfoProto, shape: object, dtype: str | None) -> tuple[Value, ModelInput]:
    """What an input stands for in the graph, and its description."""
    of = value.type
    optional = of.HasField("optional_type")
    if optional:
        of = of.optional_type.elem_type
        if shape is Absent:
            return OptionalValue(None), ModelInput(value.name, None, (), optional=True)
    if of.HasField("sequence_type"):
        if not isinstance(shape, Sequence):
            raise ShapeNeeded(value.name)
        item = of.sequence_type.elem_type
        result = [_tensor_input(importer, f"{value.name}_{k}", item, one, dtype) for k, one in enumerate(shape)]
        kinds = [kind for _, kind in result]
        variables = [var for var, _ in result]
        element = of_proto(item.tensor_type.elem_type, f"the input {value.name!r}")
        whole: Value = SequenceValue(variables, element.dtype)
        described = ModelInput(value.name, kinds, tuple(variables), optional)
        for var in variables:
            importer.enter_input(var, value.name)
    else:
        var, kind = _tensor_input(importer, value.name, of, shape, dtype)
        importer.enter_input(var, value.name)
        whole, described = var, ModelInput(value.name, kind, (var,), optional)
    return (OptionalValue(whole) if optional else whole), described


class Absent:
    """Given as the shape of an optional input: it is absent."""


def _tensor_input(
    importer: Importer, name: str, of: TypeProto, shape: object, dtype: str | None
) -> tuple[Var, ElementType]:
    if not of.HasField("tensor_type"):
        raise ShapeNeeded(name)
    kind = of_dtype(dtype) if dtype else of_proto(of.tensor_type.elem_type, f"the input {name!r}")
    sizes = _sizes(importer, name, of.tensor_type, shape)
    element_count(name, [size for size in sizes if isinstance(size, int)], kind.bits)
    var = Var(name, TensorType(sizes, kind.dtype))
    if kind.carried:
        importer.set_element(var, kind)
    return var, kind


def _sizes(importer: Importer, name: str, of: TypeProto.Tensor, given: Any) -> list[Dim]:
    """The shape of an input: the model's, with what `shape=` says in its place."""
    declared: list[Dim] | None = None
    if of.HasField("shape"):
        declared = [_declared(importer, name, index, dim) for index, dim in enumerate(of.shape.dim)]
    if given is None:
        if declared is None:
            raise ShapeNeeded(name)
        return declared
    if not isinstance(given, (int, Iterable)):
        problem = f"the shape of the input {name!r} is given as {type(given).__name__} {given!r:.80}"
        raise BadInputShape(problem, f"write shape={{{name!r}: (1, 4)}}", input=name)
    listed = [given] if isinstance(given, int) else list(given)
    sizes = [_given(importer, name, index, size, declared) for index, size in enumerate(listed)]
    if declared is not None and not _may_be(declared, sizes):
        texts = [f"({', '.join(map(str, one))})" for one in (listed, declared)]
        raise BadInputShape(
            f"the shape {texts[0]} is given for the input {name!r}, and the model declares {texts[1]}",
            "give the declared rank, and numbers only where the model has a name",
            input=name,
        )
    return sizes


def _may_be(declared: Sequence[Dim], sizes: Sequence[Dim]) -> bool:
    """Whether an input declared so may have these sizes. (Exporters write () where they know nothing.)"""
    if not declared:
        return True
    pairs = zip(declared, sizes, strict=False)
    differ = [one for one in pairs if isinstance(one[0], int) and isinstance(one[1], int) and one[0] != one[1]]
    return len(declared) == len(sizes) and not differ


def _declared(importer: Importer, name: str, index: int, dim: TensorShapeProto.Dimension) -> int | PrimExpr:
    if dim.HasField("dim_value"):
        size = int(dim.dim_value)
        if size < 0 or size > LARGEST:
            raise AbsurdSize(f"the input {name!r}", [size], "a size is negative or beyond any memory")
        return size
    return importer.size_var(dim.dim_param if dim.dim_param else f"{name}_d{index}")


def _given(importer: Importer, name: str, index: int, size: object, declared: Sequence[Dim] | None) -> Dim:
    if size is None or (isinstance(size, int) and size == -1):
        if declared is not None and index < len(declared):
            return declared[index]
        return importer.size_var(f"{name}_d{index}")
    if isinstance(size, str):
        return importer.size_var(size)
    if isinstance(size, (AnyDim, PrimExpr)):
        return size
    if not hasattr(size, "__index__") or int(size) < 0:
        raise AbsurdSize(f"the input {name!r}", [size], "a size is a number that is not negative, a name, or AnyDim()")
    return int(size)


def _known_input(importer: Importer, value: ValueInfoProto, given: object) -> Value:
    """An input whose value is given: constants."""
    of = value.type
    if of.HasField("optional_type"):
        if given is None:
            return OptionalValue(None)
        return OptionalValue(_known_of_type(importer, value.name, of.optional_type.elem_type, given))
    return _known_of_type(importer, value.name, of, given)


def _known_of_type(importer: Importer, name: str, of: TypeProto, given: Any) -> Value:
    if of.HasField("sequence_type"):
        item = of.sequence_type.elem_type
        kind = of_proto(item.tensor_type.elem_type, f"the input {name!r}")
        return SequenceValue([_known_of_type(importer, name, item, one) for one in given], kind.dtype)
    kind = of_proto(of.tensor_type.elem_type, f"the input {name!r}")
    array = np.asarray(given.numpy() if hasattr(given, "numpy") else given)
    if array.dtype != kind.numpy():
        array = array.astype(kind.numpy())
    result = Constant(kind.to_graph(array))
    if kind.carried:
        importer.set_element(result, kind)
    return result


def _as_expr(result: Value) -> Expr:
    """A result of the model as one expression: a sequence is a tuple, an absent optional an empty one."""
    if isinstance(result, OptionalValue):
        return Tuple([]) if result.content is None else _as_expr(result.content)
    if isinstance(result, SequenceValue):
        return Tuple([_as_expr(item) for item in result.items])
    assert isinstance(result, Expr)
    return result


def _structure(importer: Importer, result: Value) -> Structure:
    if isinstance(result, OptionalValue):
        return None if result.content is None else _structure(importer, result.content)
    if isinstance(result, SequenceValue):
        return [_structure(importer, item) for item in result.items]
    kind = importer.elements.get(result)
    return kind if kind is not None else of_dtype(str(importer.type_of(result).dtype))  # type: ignore[attr-defined]


def _renamed(model: LoadedModel, path: str | os.PathLike[str]) -> LoadedModel:
    """The model with every node named by its operator and place, written to `path`, or into it."""
    proto = type(model.proto).FromString(model.proto.SerializeToString())
    for index, node in enumerate(proto.graph.node):
        node.name = f"{node.op_type}_{index}"
    target = Path(path)
    if target.suffix != ".onnx":
        target.mkdir(parents=True, exist_ok=True)
        target /= f"tvm_exported_model_{time.strftime('%Y_%m_%d_%H_%M_%S')}.onnx"
    target.write_bytes(proto.SerializeToString())
    return LoadedModel(proto, model.folder, model.opsets)
