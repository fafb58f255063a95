"""from_pytorch: a model of PyTorch as a module of relay.

mod, params = from_pytorch(module, example_inputs=(x,))
mod, params = from_pytorch(traced, [("input", (1, 3, 224, 224))])
mod, params = from_pytorch(torch.export.export(module, (x,)))
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from loopwright.frontends.pytorch.element_types import as_array, our_dtype
from loopwright.frontends.pytorch.errors import ChangesState
from loopwright.frontends.pytorch.importer import Importer
from loopwright.frontends.pytorch.program import Request, exported, request_of
from loopwright.frontends.pytorch.registry import full_name
from loopwright.frontends.pytorch.values import Argument, Results
from loopwright.ir import Expr as PrimExpr
from loopwright.ir import IRModule, SizeVar
from loopwright.relay.expr import Constant, Expr, Function, Tuple, Var
from loopwright.relay.infer_type import infer_module
from loopwright.relay.types import Dim, TensorType, is_any
from loopwright.runtime.errors import InternalError
from loopwright.runtime.tensor import NDArray, from_numpy

if TYPE_CHECKING:
    import torch
    from torch.export.graph_signature import InputSpec


@dataclass(frozen=True)
class Imported:
    """A model as a module, with what its inputs and outputs are."""

    mod: IRModule
    params: dict[str, np.ndarray]
    inputs: tuple[Var | None, ...]  # one for each leaf of the arguments; None for one that is no tensor
    outputs: tuple[tuple[str | None] | None, ...]  # one for each leaf of the result: None for a tensor, else (value,)
    program: torch.export.ExportedProgram


def from_pytorch(
    script_module: object,
    input_infos: object = None,
    custom_convert_map: Mapping[str, Callable[..., Results]] | None = None,
    default_dtype: str = "float32",
    use_parser_friendly_name: bool = False,
    keep_quantized_weight: bool = False,
    export_renamed_c_graph_path: str | os.PathLike[str] | None = None,
    preserve_pytorch_scopes: bool = False,
    *,
    example_inputs: object = None,
    example_kwargs: Mapping[str, object] | None = None,
    dynamic_shapes: object = None,
    freeze_params: bool = False,
) -> tuple[IRModule, dict[str, NDArray]]:
    """A model as a module whose `main` computes it, and the parameters of `main` that are weights, by name.

    script_module: a torch.nn.Module (in the mode to be used: call `eval()` first), a torch.export.ExportedProgram, or
        TorchScript, which torch's own converter reads.
    input_infos: names, shapes and element types of inputs, [("x", (1, 3)), ("ids", ((1, "n"), "int64"))]; a size is a
        number, a name (the same number wherever it occurs), or None or `relay.AnyDim()` to stay open. Or example
        inputs.
    custom_convert_map: converters of your own, {"aten::relu": function of (arguments, their types)}.
    default_dtype: of the inputs whose element type is not said.
    use_parser_friendly_name: names of weights have underscores in place of dots.
    keep_quantized_weight: accepted for scripts that give it; integer weights are always kept as they are.
    export_renamed_c_graph_path: where to write the exported graph as text.
    preserve_pytorch_scopes: spans begin with the path of the module that a node is in.
    example_inputs, example_kwargs: tensors or arrays to export a module with.
    dynamic_shapes: sizes to keep open, as torch.export takes them.
    freeze_params: weights are constants of the module; otherwise parameters, returned by name.

    Weights are not copied: parameters are tensors on torch's memory. Operators that are not supported are named all at
    once (OpNotImplemented), before anything is converted.
    """
    result = import_module(
        script_module,
        request_of(input_infos, example_inputs, example_kwargs, dynamic_shapes, default_dtype),
        custom=custom_convert_map,
        freeze_params=freeze_params,
        underscores=use_parser_friendly_name,
        scopes=preserve_pytorch_scopes,
    )
    if export_renamed_c_graph_path is not None:
        with open(export_renamed_c_graph_path, "w", encoding="utf-8") as file:
            file.write(f"{result.program.graph}\n")
    return result.mod, {name: from_numpy(data) for name, data in result.params.items()}


def import_module(
    model: object,
    request: Request,
    *,
    custom: Mapping[str, Callable[..., Results]] | None = None,
    freeze_params: bool = False,
    underscores: bool = False,
    scopes: bool = False,
) -> Imported:
    """The same as from_pytorch, with the descriptions of inputs and outputs."""
    own = {full_name(name): function for name, function in (custom or {}).items()}
    program = exported(model, request, own)
    importer = Importer(own, scopes)
    importer.refuse_unsupported(program.graph_module)
    _refuse_changes(program)
    reader = _Placeholders(importer, program, request, freeze_params, underscores)
    values = reader.read()
    results = importer.convert(program.graph_module, values)
    outputs = [
        (one, spec.arg)
        for one, spec in zip(results, program.graph_signature.output_specs)
        if spec.kind.name == "USER_OUTPUT"
    ]
    tensors = [_as_tensor(importer, one) for one, _ in outputs if one is not None and not isinstance(one, str)]
    body = tensors[0] if len(tensors) == 1 else Tuple(tensors)
    module = IRModule.from_expr(Function([*reader.input_vars, *reader.param_vars], body))
    infer_module(module)
    described = tuple((one,) if one is None or isinstance(one, str) else None for one, _ in outputs)
    return Imported(module, reader.params, tuple(reader.inputs), described, program)


def _as_tensor(importer: Importer, result: Argument) -> Expr:
    """A result as a tensor: a number is a tensor of one."""
    if isinstance(result, Expr):
        return result
    if isinstance(result, (bool, int, float)):
        return Constant(np.asarray(result, "bool" if isinstance(result, bool) else None))
    if isinstance(result, PrimExpr):
        return importer.size_tensor(result)
    raise InternalError(f"a result of the model is of the class {type(result).__name__}")


def _refuse_changes(program: torch.export.ExportedProgram) -> None:
    """Refuse models that keep state; inputs that are changed in place are only warned of."""
    specs = program.graph_signature.output_specs
    buffers = [str(spec.target) for spec in specs if spec.kind.name in ("BUFFER_MUTATION", "PARAMETER_MUTATION")]
    if buffers:
        raise ChangesState(buffers)
    inputs = [str(spec.target) for spec in specs if spec.kind.name == "USER_INPUT_MUTATION"]
    if inputs:
        warnings.warn(
            f"the model changes its input {', '.join(inputs)} in place; what is compiled leaves inputs as they are",
            stacklevel=4,
        )


class _Placeholders:
    """The inputs of an exported graph: those of the user, weights, and constants."""

    def __init__(
        self,
        importer: Importer,
        program: torch.export.ExportedProgram,
        request: Request,
        freeze: bool,
        underscores: bool,
    ) -> None:
        self.importer = importer
        self.program = program
        self.request = request
        self.freeze = freeze
        self.underscores = underscores
        self.inputs: list[Var | None] = []
        self.input_vars: list[Var] = []
        self.param_vars: list[Var] = []
        self.params: dict[str, np.ndarray] = {}
        self._names: set[str] = set()
        self._shared: dict[object, Expr] = {}  # memory of a weight → what stands for it

    def read(self) -> list[Argument]:
        """What each placeholder of the graph stands for."""
        specs = self.program.graph_signature.input_specs
        nodes = [fx for fx in self.program.graph.nodes if fx.op == "placeholder"]
        values: list[Argument] = [None] * len(nodes)
        users = [k for k, spec in enumerate(specs) if spec.kind.name == "USER_INPUT"]
        shapes = self._input_shapes([nodes[k] for k in users])
        for index, k in enumerate(users):
            values[k] = self._user_input(index, nodes[k], shapes[index])
        for k, spec in enumerate(specs):
            if spec.kind.name != "USER_INPUT" and nodes[k].users:
                values[k] = self._stored(spec)
        return values

    def _name(self, index: int, fx: torch.fx.Node) -> str:
        names = self.request.names
        return names[index] if names is not None and index < len(names) else str(fx.name)

    def _input_shapes(self, nodes: list[torch.fx.Node]) -> list[list[Dim] | None]:
        """The shapes of the user's inputs. Plain symbols first: 2*s0 may come before s0."""
        sizes = self.importer.sizes
        hints = []
        for index, fx in enumerate(nodes):
            rank = len(getattr(fx.meta.get("val"), "shape", ()))
            name = self._name(index, fx)
            hints.append([self.request.size_names.get((index, axis), f"{name}_d{axis}") for axis in range(rank)])
        for index, fx in enumerate(nodes):  # a program that was exported with open sizes
            for axis, size in enumerate(getattr(fx.meta.get("val"), "shape", ())):
                if (index, axis) in self.request.numbers:
                    sizes.fix(size, self.request.numbers[index, axis])
        for fx, own in zip(nodes, hints):
            if hasattr(fx.meta.get("val"), "shape"):
                sizes.enter(fx.meta["val"].shape, own)
        shapes: list[list[Dim] | None] = []
        for fx, own in zip(nodes, hints):
            if not hasattr(fx.meta.get("val"), "shape"):
                shapes.append(None)
                continue
            result = sizes.enter(fx.meta["val"].shape, own)
            for axis, one in enumerate(result):
                if is_any(one):
                    result[axis] = sizes.enter_derived(fx.meta["val"].shape[axis], own[axis])
            shapes.append(result)
        return shapes

    def _user_input(self, index: int, fx: torch.fx.Node, shape: list[Dim] | None) -> Argument:
        value = fx.meta.get("val")
        if shape is None and type(value).__name__ not in ("SymInt", "SymFloat"):
            self.inputs.append(None)  # a number, a text or None: it was known when the model was exported
            return value
        name = self._unique(self._name(index, fx))
        if shape is None:
            var = Var(name, TensorType((), "int64" if type(value).__name__ == "SymInt" else "float64"))
        else:
            var = Var(name, TensorType(shape, our_dtype(value.dtype, f"the input {name!r}")))
            for axis, size in enumerate(shape):
                if isinstance(size, SizeVar):
                    self.importer.sizes.places.setdefault(size.name, (var, axis))
        self.inputs.append(var)
        self.input_vars.append(var)
        return var

    def _stored(self, spec: InputSpec) -> torch.Tensor:
        """A parameter, a buffer or a constant of the model; what is one tensor in torch is one here."""
        target = str(spec.target)
        tensors = self.program.state_dict
        stored = tensors[target] if target in tensors else self.program.constants[target]
        if not hasattr(stored, "dtype"):
            return stored
        data = as_array(stored, f"the weight {target!r}")
        key = (data.__array_interface__["data"][0], data.shape, data.strides, data.dtype.str) if data.size else target
        if key not in self._shared:
            self._shared[key] = self._weight(spec, target, data)
        return self._shared[key]

    def _weight(self, spec: InputSpec, target: str, data: np.ndarray) -> Expr:
        if self.freeze or spec.kind.name not in ("PARAMETER", "BUFFER"):
            return Constant(data)
        name = self._unique(re.sub(r"\W", "_", target) if self.underscores else target)
        var = Var(name, TensorType(data.shape, our_dtype_of(data)))
        self.params[name] = data
        self.param_vars.append(var)
        return var

    def _unique(self, name: str) -> str:
        result, count = name, 1
        while result in self._names:
            result, count = f"{name}_{count}", count + 1
        self._names.add(result)
        return result


def our_dtype_of(data: np.ndarray) -> str:
    result = Constant(data).checked_type
    assert isinstance(result, TensorType)
    return str(result.dtype)
