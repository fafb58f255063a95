"""model_files: a model in a file as a graph, and what its inputs and outputs are called.

    model = read_model("model.onnx", shapes=read_shapes("x:[1,3,224,224]"))
    model.mod, model.params, model.output_names

The ending of the name says which front end reads it; `--model-format` says it otherwise.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from loopwright.runtime.errors import LoopwrightError

if TYPE_CHECKING:
    from loopwright.cli.model_facts import PortFacts
    from loopwright.ir import IRModule, Var
    from loopwright.relay.built import Params

Shapes: TypeAlias = Mapping[str, Sequence[int | str]]  # of inputs by name; open sizes have names, or are -1
Arrays: TypeAlias = Mapping[str, np.ndarray]  # by the names of inputs

# Front end → endings of its files.
FORMATS: Final = {"onnx": (".onnx",), "pytorch": (".pt2", ".pth", ".pt", ".zip"), "relay": (".relay",)}
PACKAGES: Final = (".tar", ".so", ".dylib", ".o", ".a")
# Formats that others read, and what to do with them here.
_ELSEWHERE: Final = {".h5": "keras", ".keras": "keras", ".pb": "tensorflow", ".tflite": "tflite", ".pdmodel": "paddle"}


class NoSuchModel(LoopwrightError, FileNotFoundError):
    """The model or package that a command was given does not exist, is no regular file, or is a directory.

    For example:

        from loopwright.cli.model_files import read_model

        read_model("nowhere.onnx")
    """

    code = "LW0045"

    def __init__(self, path: Path) -> None:
        what = "is a directory" if path.is_dir() else "is not a regular file" if path.exists() else "does not exist"
        folder = path.parent
        names = [one.name for one in folder.iterdir()] if folder.is_dir() and not path.exists() else []
        near = get_close_matches(path.name, names, 1, 0.75)
        super().__init__(
            f"{path} {what}",
            hint=f"did you mean {folder / near[0]}?" if near else "give the path of a model, such as model.onnx",
            fields={"path": str(path)},
        )


class UnknownModelFormat(LoopwrightError, ValueError):
    """The name of a model's file does not say which framework wrote it, and nothing else did.

    For example:

        from loopwright.cli.model_files import format_of

        format_of("model.bin")
    """

    code = "LW0046"

    def __init__(self, path: str, given: str | None) -> None:
        known = ", ".join(f"{name} ({' '.join(endings)})" for name, endings in FORMATS.items())
        other = _ELSEWHERE.get(Path(path).suffix.lower()) if given is None else None
        problem = f"{path} does not say what kind of model it is" if given is None else f"there is no format {given!r}"
        if other is not None:
            problem = f"{path} is a model of {other}, which is not read here"
        hint = f"say it with --model-format; the formats are {known}"
        if other is not None:
            hint = f"save it as ONNX first; the formats are {known}"
        elif given is None and path.endswith(".py"):
            problem = f"{path} is a Python file, and no model"
            hint = f"loopwright show {path} shows it; lw.build(...).export_library(...) exports a kernel"
        super().__init__(
            problem,
            hint=hint,
            fields={"path": path, "format": given},
        )


class BadShapes(LoopwrightError, ValueError):
    """`--input-shapes` is not a list of names with their shapes in brackets: `"x:[1,3,224,224] mask:[1,-1]"`.

    A size that is not positive is left open; a name in its place is a size with that name, the same wherever it occurs.

    For example:

        from loopwright.cli.model_files import read_shapes

        read_shapes("x=(1,3)")
    """

    code = "LW0047"

    def __init__(self, text: str, why: str) -> None:
        super().__init__(
            f"{text!r} is no list of input shapes: {why}",
            hint='write it as in --input-shapes "x:[1,3,224,224] mask:[batch,-1]"',
            fields={"given": text},
        )


@dataclass(frozen=True)
class ReadModel:
    """A model as a graph."""

    path: str
    format: str
    mod: Any  # an IRModule whose `main` is the model
    params: Params  # parameters of `main` that are weights
    output_names: tuple[str, ...]
    known: Arrays = field(default_factory=dict)  # inputs whose value it was made for
    warnings: tuple[str, ...] = ()


def is_package(path: str) -> bool:
    """Whether the name is that of something compiled."""
    return Path(path).suffix.lower() in PACKAGES


def is_model_file(path: str) -> bool:
    """Whether the name is that of a model or of something compiled from one."""
    endings = {ending for group in FORMATS.values() for ending in group}
    return is_package(path) or Path(path).suffix.lower() in endings


def format_of(path: str, given: str | None = None) -> str:
    """The front end that reads the file: the one given, or that of its name's ending."""
    if given is not None:
        if given.lower() not in FORMATS:
            raise UnknownModelFormat(path, given)
        return given.lower()
    ending = Path(path).suffix.lower()
    result = next((name for name, endings in FORMATS.items() if ending in endings), None)
    if result is None:
        raise UnknownModelFormat(path, None)
    return result


_SHAPE: Final = re.compile(r"\s*([^\s\[\]]+?)\s*:\s*\[([^\[\]]*)\]\s*,?\s*")


def read_shapes(text: str | None) -> dict[str, list[int | str]]:
    """`"x:[1,3,224,224] mask:[1,-1]"` by name; sizes of 0 and below are -1: open."""
    shapes: dict[str, list[int | str]] = {}
    location, text = 0, text or ""
    while location < len(text.rstrip()):
        result = _SHAPE.match(text, location)
        if result is None:
            raise BadShapes(text, f"{text[location:][:30]!r} is not NAME:[SIZE, …]")
        name, inside = result[1], result[2].strip()
        if name in shapes:
            raise BadShapes(text, f"{name!r} is there twice")
        shapes[name] = [_size(text, size.strip()) for size in inside.split(",")] if inside else []
        location = result.end()
    return shapes


def _size(text: str, size: str) -> int | str:
    if re.fullmatch(r"[+-]?\d+", size):
        return max(int(size), -1) or -1
    if size == "?":
        return -1
    if not size.isidentifier():
        raise BadShapes(text, f"{size!r} is neither a number nor a name")
    return size


def shapes_option(ports: Sequence[PortFacts]) -> str:
    """The option that gives the open sizes of these inputs numbers, with 1 for each."""
    some = [one for one in ports if any(isinstance(size, str) for size in one["shape"] or ())]
    texts = [
        f"{one['name']}:[{','.join('1' if isinstance(n, str) else str(n) for n in one['shape'] or ())}]" for one in some
    ]
    return f'--input-shapes "{" ".join(texts)}"'


def no_model(path: str) -> LoopwrightError:
    """The error of a path where no file is: there may be one if it is read as FILE:PROGRAM, as other commands do."""
    file = path.rpartition(":")[0]
    return UnknownModelFormat(file, None) if file.endswith(".py") and Path(file).is_file() else NoSuchModel(Path(path))


def read_model(
    path: str,
    model_format: str | None = None,
    shapes: Shapes | None = None,
    values: Arrays | None = None,
) -> ReadModel:
    """The model in the file; `values` are inputs whose value is known, which become constants."""
    if not Path(path).is_file():
        raise no_model(path)
    reader = {"onnx": _read_onnx, "pytorch": _read_pytorch, "relay": _read_relay}[format_of(path, model_format)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = reader(path, dict(shapes or {}), dict(values or {}))
    message = tuple(dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, UserWarning)))
    return ReadModel(
        found.path, found.format, found.mod, found.params, found.output_names, found.known, (*found.warnings, *message)
    )


def _read_onnx(path: str, shapes: Shapes, values: Arrays) -> ReadModel:
    from loopwright.frontends.onnx.convert import import_model
    from loopwright.frontends.onnx.load import load

    result = import_model(load(path), shape=shapes, values=values)
    return ReadModel(path, "onnx", result.mod, result.params, result.tensor_names, values)


def _read_pytorch(path: str, shapes: Shapes, values: Arrays) -> ReadModel:
    from loopwright.frontends import from_pytorch

    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "reading PyTorch models needs the package torch: pip install torch", name="torch"
        ) from error
    exported: Any
    if Path(path).suffix.lower() == ".pt2":
        if shapes:
            raise BadShapes(_as_text(shapes), f"{path} says itself what its inputs are")
        exported = torch.export.load(path)
        mod, params = from_pytorch(exported)
    else:
        exported = torch.jit.load(path, map_location="cpu").eval()
        infos = [(name, tuple(None if size == -1 else size for size in shape)) for name, shape in shapes.items()]
        mod, params = from_pytorch(exported, infos or None)
    return ReadModel(path, "pytorch", mod, params, ())


def _read_relay(path: str, shapes: Shapes, values: Arrays) -> ReadModel:
    from loopwright import relay
    from loopwright.runtime.params import load_param_dict

    mod = _with_shapes(relay.parse(Path(path).read_text(encoding="utf-8"), path), shapes)
    beside = Path(path).with_suffix(".params")
    params = dict(load_param_dict(beside.read_bytes())) if beside.is_file() else {}
    return ReadModel(path, "relay", mod, {**params, **values}, (), values)


def _as_text(shapes: Shapes) -> str:
    return " ".join(f"{name}:[{','.join(map(str, shape))}]" for name, shape in shapes.items())


def _with_shapes(mod: Any, shapes: Shapes) -> IRModule:
    """The module with parameters of `main` of these shapes."""
    from loopwright import relay
    from loopwright.relay.visitor import bind
    from loopwright.te import size_var

    if not shapes:
        return mod
    main = mod["main"]
    declared = {param.name_hint: param.type_annotation for param in main.params}
    sizes: dict[str, Var] = {}
    values, params = {}, []
    for name, shape in shapes.items():
        if name not in declared:
            raise BadShapes(_as_text(shapes), f"the model has no input {name!r}; it has {', '.join(declared)}")
        if len(shape) != len(declared[name].shape):
            raise BadShapes(_as_text(shapes), f"{name!r} has {len(declared[name].shape)} dimensions: {declared[name]}")
    for param in main.params:
        given = shapes.get(param.name_hint)
        if given is not None:
            of = declared[param.name_hint]
            wanted = [
                old if size == -1 else sizes.setdefault(size, size_var(size)) if isinstance(size, str) else size
                for size, old in zip(given, of.shape, strict=True)
            ]
            values[param] = fresh = relay.Var(param.name_hint, relay.TensorType(wanted, str(of.dtype)))
            params.append(fresh)
        else:
            params.append(param)
    changed = mod.copy()
    changed["main"] = relay.Function(params, bind(main.body, values), None, main.type_params, main.attrs)
    return relay.transform.InferType()(changed)
