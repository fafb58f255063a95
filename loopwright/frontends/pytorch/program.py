"""From what users have to a graph of operators: torch.export does the work.

A module is exported by running it once on examples; sizes that are to stay open are named. Operators that we convert
are kept, the others are expressed by simpler ones (torch's "core" operators, all of which have converters).
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from loopwright.frontends.pytorch.element_types import as_tensor, torch_dtype
from loopwright.frontends.pytorch.errors import CannotExport, InputsNeeded, NotAModel
from loopwright.frontends.pytorch.registry import find, names_of
from loopwright.ir import Var as SizeVariable
from loopwright.relay.types import AnyDim

if TYPE_CHECKING:
    import torch

_EXAMPLE = 4  # an example of a size that stays open; 0 and 1 are special to torch


@dataclass
class Request:
    """What a user says of the inputs of a model."""

    args: tuple[object, ...] = ()
    kwargs: dict[str, object] = field(default_factory=dict)
    dynamic_shapes: Any = None
    names: list[str] | None = None  # of the inputs, in place of torch's
    size_names: dict[tuple[int, int], str] = field(default_factory=dict)  # input, axis → the name of the size
    given: bool = False  # whether anything was said
    numbers: dict[tuple[int, int], int] = field(default_factory=dict)  # input, axis → the number it is to be


def torch_package() -> ModuleType:
    """torch, or an ImportError that says how to get it."""
    try:
        import torch
        import torch.export
    except ImportError as error:
        raise ImportError(
            "reading PyTorch models needs the package torch: pip install torch", name="torch"
        ) from error
    return torch


def exported(model: object, request: Request, kept: Iterable[str] = ()) -> torch.export.ExportedProgram:
    """The model as an ExportedProgram of operators that have converters; `kept` are names of others to keep."""
    torch = torch_package()
    if isinstance(model, torch.export.ExportedProgram):
        program = model
    elif isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        program = _from_script(model, request)
    elif isinstance(model, torch.nn.Module):
        program = _from_module(model, request)
    else:
        raise NotAModel(model)
    return _simplified(program, set(kept))


def _from_module(module: torch.nn.Module, request: Request) -> torch.export.ExportedProgram:
    torch = torch_package()
    if not request.given:
        raise InputsNeeded(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about attributes that torch takes for buffers
        try:
            shapes = _nested(module, request) if request.names is not None else request.dynamic_shapes
            return torch.export.export(module, request.args, request.kwargs or None, dynamic_shapes=shapes)
        except Exception as error:
            raise CannotExport(module, "torch.export", error) from error


def _nested(module: torch.nn.Module, request: Request) -> Any:
    """The open sizes of a list of inputs, in the structure of the arguments: those of `*args` are one."""
    shapes = request.dynamic_shapes
    if shapes is None:
        return None
    kinds = [parameter.kind for parameter in inspect.signature(module.forward).parameters.values()]
    rest = kinds.index(inspect.Parameter.VAR_POSITIONAL) if inspect.Parameter.VAR_POSITIONAL in kinds else len(shapes)
    return shapes if rest >= len(shapes) else (*shapes[:rest], shapes[rest:])


def _from_script(
    model: torch.jit.ScriptModule | torch.jit.ScriptFunction, request: Request
) -> torch.export.ExportedProgram:
    """TorchScript through torch's own converter; exported again, since that one leaves every size open."""
    if not request.given:
        raise InputsNeeded(model)
    try:
        from torch._export.converter import TS2EPConverter
    except ImportError as error:
        raise CannotExport(model, "converting TorchScript with this version of torch", error) from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = TS2EPConverter(model, request.args, request.kwargs or None).convert().module()
        except Exception as error:
            raise CannotExport(model, "torch's converter of TorchScript", error) from error
    return _from_module(module, request)


def _simplified(program: torch.export.ExportedProgram, kept: set[str]) -> torch.export.ExportedProgram:
    torch = torch_package()
    table = torch.export.default_decompositions()
    for op in list(table.keys()):
        if find(op) is not None or kept.intersection(names_of(op)):
            del table[op]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return program.run_decompositions(table)
        except Exception as error:
            raise CannotExport(program, "expressing its operators by simpler ones", error) from error


def request_of(
    input_infos: Any,
    example_inputs: object,
    example_kwargs: Mapping[str, object] | None,
    dynamic_shapes: object,
    dtype: str,
) -> Request:
    """What was said of the inputs, in one form."""
    if _are_infos(input_infos):
        result = _of_infos(input_infos, dtype)
        if example_inputs is None:
            return result
        return Request(
            _tensors(example_inputs), {}, dynamic_shapes or result.dynamic_shapes, result.names, result.size_names, True
        )
    examples = input_infos if example_inputs is None else example_inputs
    given = examples is not None or bool(example_kwargs)
    args = () if examples is None else _tensors(examples)
    kwargs = {name: _tensor(value) for name, value in (example_kwargs or {}).items()}
    return Request(args, kwargs, dynamic_shapes, given=given)


def _are_infos(value: object) -> bool:
    """Whether names come first: [("x", (1, 3)), …]."""
    return (
        isinstance(value, (list, tuple))
        and bool(value)
        and all(isinstance(one, (list, tuple)) and len(one) == 2 and isinstance(one[0], str) for one in value)
    )


def _of_infos(infos: Sequence[Any], default_dtype: str) -> Request:
    """Examples of the shapes and types that names are given for; a size that is no number stays open."""
    torch = torch_package()
    args, dynamic = [], []
    size_names: dict[tuple[int, int], str] = {}
    numbers: dict[tuple[int, int], int] = {}
    named: dict[str, Any] = {}
    for index, (_, of) in enumerate(infos):
        shape, kind = of if len(of) == 2 and isinstance(of[1], str) else (of, default_dtype)
        sizes: list[int] = []
        open_axes: dict[int, Any] = {}
        for axis, size in enumerate(shape):
            name = size if isinstance(size, str) else size.name if isinstance(size, SizeVariable) else None
            if name is not None:
                size_names[index, axis] = name
                open_axes[axis] = named.setdefault(name, torch.export.Dim(name))
            elif size is None or isinstance(size, AnyDim):
                open_axes[axis] = torch.export.Dim.AUTO
            else:
                numbers[index, axis] = int(size)
            sizes.append(numbers.get((index, axis), _EXAMPLE))
        args.append(torch.ones(sizes, dtype=torch_dtype(kind)))
        dynamic.append(open_axes or None)
    shapes = tuple(dynamic) if any(dynamic) else None
    return Request(tuple(args), {}, shapes, [name for name, _ in infos], size_names, True, numbers)


def _tensors(values: object) -> tuple[object, ...]:
    if isinstance(values, (list, tuple)):
        return tuple(_tensor(value) for value in values)
    return (_tensor(values),)


def _tensor(value: object) -> object:
    """Arrays as tensors; what is a tensor, or no array at all, stays."""
    if isinstance(value, (list, tuple)):
        return type(value)(_tensor(item) for item in value)
    if isinstance(value, dict):
        return {key: _tensor(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return as_tensor(value)
    if hasattr(value, "numpy") and not hasattr(value, "requires_grad"):
        return as_tensor(value.numpy())
    return value
