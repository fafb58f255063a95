"""Read a model and see that its graph can be walked: every tensor is made once, before it is used.

    model = load("model.onnx")       a path, bytes, an open file, or a ModelProto

Model-local functions are put in the place of their calls here; nodes that come too late are put in order.
"""

from __future__ import annotations

import heapq
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Final, TypeAlias, Union

from loopwright.frontends.onnx.errors import BrokenGraph, UnreadableModel
from loopwright.model.workers import beside

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, OperatorSetIdProto

# Where a model is read from.
ModelSource: TypeAlias = Union["ModelProto", str, os.PathLike[str], bytes, bytearray, memoryview, IO[bytes]]

DEEPEST: Final = 64  # graphs within graphs
LARGEST_CHECKED: Final = 1 << 28  # bytes of a model that ONNX's own checker is given
_WORTH_A_PROCESS: Final = 1 << 23  # bytes that it reads for longer than a process takes to begin


@dataclass(frozen=True)
class LoadedModel:
    """A model that was read, the folder it came from, and the version of each operator set it uses."""

    proto: ModelProto
    folder: Path | None
    opsets: dict[str, int]


def require_onnx() -> ModuleType:
    """The onnx package, or what to do to have it."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError("reading ONNX models needs the package onnx: pip install onnx", name="onnx") from error
    return onnx


def load(source: ModelSource, check: bool = True) -> LoadedModel:
    """The model at a path, in bytes, in an open file, or as it is."""
    onnx = require_onnx()
    model, content, folder = _read(onnx, source)
    if check:
        for text in _complaints(onnx, model, content):
            warnings.warn(text, stacklevel=3)
    return _in_order(onnx, model, folder)


@contextmanager
def loaded(source: ModelSource, stacklevel: int) -> Iterator[LoadedModel]:
    """The model; what ONNX's own checker says is heard at the end, as a large model is checked in another process."""
    onnx = require_onnx()
    model, content, folder = _read(onnx, source)
    size = model.ByteSize() if content is None else len(content)
    check = partial(_complaints, onnx, model, content)
    with nullcontext(check) if size < _WORTH_A_PROCESS else beside(check) as complaints:
        try:
            yield _in_order(onnx, model, folder)
        finally:
            for text in complaints():
                warnings.warn(text, stacklevel=stacklevel + 2)  # this function, and that of `with`


def _read(onnx: ModuleType, source: ModelSource) -> tuple[ModelProto, bytes | None, Path | None]:
    """The model, its bytes if it came as such, and the folder that they are in."""
    folder: Path | None = None
    content: bytes | None = None
    if isinstance(source, onnx.ModelProto):
        model = source
        name = "the model"
    else:
        name, content, folder = _content(source)
        model = onnx.ModelProto()
        try:
            model.ParseFromString(content)
        except Exception as error:  # protobuf's own class differs between its implementations
            raise UnreadableModel(name, f"its bytes do not decode ({error})", hint="is the file complete?") from error
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise UnreadableModel(name, "it holds no graph", hint="is it an ONNX file?")
    if any(isinstance(text, bytes) for text in _texts(model)):
        raise UnreadableModel(name, "a name in it is no text (UTF-8)")
    return model, content, folder


def _in_order(onnx: ModuleType, model: ModelProto, folder: Path | None) -> LoadedModel:
    model = _without_functions(onnx, model)
    if not check_graph(model.graph):
        model = type(model).FromString(model.SerializeToString())  # the caller's own stays as it is
        check_graph(model.graph, reorder=True)
    return LoadedModel(model, folder, opset_versions(model.opset_import))


def _texts(model: ModelProto) -> Iterator[str | bytes]:
    """Every name in a model. Protobuf hands out bytes in place of a text that does not decode."""
    for entry in model.opset_import:
        yield entry.domain
    graphs = [model.graph]
    while graphs:
        graph = graphs.pop()
        for value in (*graph.input, *graph.output):
            yield value.name
            for dim in value.type.tensor_type.shape.dim:
                yield dim.dim_param
        for tensor in (*graph.initializer, *(sparse.values for sparse in graph.sparse_initializer)):
            yield tensor.name
            for entry in tensor.external_data:
                yield entry.key
                yield entry.value
        for node in graph.node:
            yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
            for attribute in node.attribute:
                yield from (attribute.name, attribute.ref_attr_name)
            graphs += graphs_of(node)


def opset_versions(imports: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """Domain → version; the default domain is "" under either of its names, and version 1 where nothing is said."""
    result: dict[str, int] = {"": 1}
    for entry in imports:
        domain = "" if entry.domain == "ai.onnx" else entry.domain
        result[domain] = max(int(entry.version), 1)
    return result


def _content(source: ModelSource) -> tuple[str, bytes, Path | None]:
    """What to call the source, its bytes, and the folder they are in."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return "what was given", bytes(source), None
    if hasattr(source, "read"):
        content = source.read()
        if not isinstance(content, bytes):
            raise UnreadableModel("the open file", "it was opened as text", hint='open it with mode "rb"')
        path = getattr(source, "name", None)
        return "the open file", content, Path(path).parent if isinstance(path, str) else None
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        try:
            return repr(str(path)), path.read_bytes(), path.parent
        except FileNotFoundError:
            raise UnreadableModel(repr(str(path)), "there is no such file") from None
        except (OSError, ValueError) as error:
            raise UnreadableModel(repr(str(path)), str(error)) from error
    raise UnreadableModel(
        f"an object of type {type(source).__name__}",
        "a path, bytes, an open file or an onnx.ModelProto is needed",
    )


def _complaints(onnx: ModuleType, model: ModelProto, content: bytes | None) -> list[str]:
    """What ONNX's own checker finds is worth a warning: many models that run break one of its rules.

    The checker reads bytes. Where there are none yet they are made from the model, which takes time and memory.
    """
    if (model.ByteSize() if content is None else len(content)) > LARGEST_CHECKED:
        return []
    if any(tensor.data_location == tensor.EXTERNAL for tensor in model.graph.initializer):
        return []  # it would look for the files relative to the working directory
    try:
        onnx.checker.check_model(model if content is None else content)
    except onnx.checker.ValidationError as error:
        return [f"ONNX's checker says: {str(error).strip()}"]
    except (RuntimeError, ValueError) as error:
        return [f"ONNX's checker failed: {error}"]
    return []


def _without_functions(onnx: ModuleType, model: ModelProto) -> ModelProto:
    """The model with the bodies of its own functions in place of their calls."""
    if not model.functions:
        return model
    from onnx import inliner

    try:
        return inliner.inline_local_functions(model)
    except Exception as error:  # what onnx raises here is not declared
        raise BrokenGraph(f"the functions of the model cannot be expanded: {error}") from error


def check_graph(graph: GraphProto, outer: frozenset[str] = frozenset(), depth: int = 0, reorder: bool = False) -> bool:
    """See that each tensor is made once, in this graph and those inside it; whether each is made before its use."""
    if depth > DEEPEST:
        raise BrokenGraph(f"graphs are nested more than {DEEPEST} deep")
    result: dict[str, str] = {}

    def make(name: str, by: str) -> None:
        if name in result and not (by == "an initialiser" and result[name] == "an input"):
            raise BrokenGraph(f"tensor {name!r} is made twice: by {result[name]} and by {by}")
        result[name] = by

    for value in graph.input:
        make(value.name, "an input")
    for tensor in graph.initializer:
        if not tensor.name:
            raise BrokenGraph("an initialiser has no name")
        make(tensor.name, "an initialiser")
    for sparse in graph.sparse_initializer:
        make(sparse.values.name, "an initialiser")
    begin = frozenset(result)
    for index, node in enumerate(graph.node):
        for name in node.output:
            if name:
                make(name, f"node {node_name(node, index)!r}")
    in_order = _put_in_order(graph, begin | outer, set(result), reorder)
    visible = outer | set(result)
    for node in graph.node:
        for inner in graphs_of(node):
            in_order = check_graph(inner, frozenset(visible), depth + 1, reorder) and in_order
    for value in graph.output:
        if value.name not in visible:
            raise BrokenGraph(f"the output {value.name!r} is made by no node")
    return in_order


def _put_in_order(graph: GraphProto, known: frozenset[str], made_here: set[str], reorder: bool) -> bool:
    """Whether each node comes after what it uses; with `reorder`, put the nodes in such an order."""
    ready = set(known)
    needs = [_uses(node) for node in graph.node]
    waiting_for: dict[str, list[int]] = {}
    missing: list[int] = []
    for index, node in enumerate(graph.node):
        absent = {name for name in needs[index] if name not in ready}
        for name in absent:
            if name not in made_here:
                raise BrokenGraph(
                    f"node {node_name(node, index)!r} ({node.op_type}) uses {name!r}, which nothing makes",
                    hint="a weight may be missing from the model's initialisers",
                )
            waiting_for.setdefault(name, []).append(index)
        missing.append(len(absent))
    free = [index for index, count in enumerate(missing) if count == 0]
    order: list[int] = []
    while free:
        index = heapq.heappop(free)
        order.append(index)
        for name in graph.node[index].output:
            for waiter in waiting_for.pop(name, ()):
                missing[waiter] -= 1
                if missing[waiter] == 0:
                    heapq.heappush(free, waiter)
    if len(order) < len(graph.node):
        left = sorted(set(range(len(graph.node))) - set(order))
        names = ", ".join(repr(node_name(graph.node[location], location)) for location in left[:4])
        raise BrokenGraph(
            f"{len(left)} nodes wait for one another, {names} among them",
            why="a graph has no cycles: each node uses what was made before it",
        )
    in_order = order == sorted(order)
    if not in_order and reorder:
        copies = [type(graph.node[location]).FromString(graph.node[location].SerializeToString()) for location in order]
        del graph.node[:]
        graph.node.extend(copies)
    return in_order


def _uses(node: NodeProto) -> list[str]:
    """The tensors that a node needs, those that graphs inside it take from outside included."""
    result = [name for name in node.input if name]
    for graph in graphs_of(node):
        result += _free_names(graph)
    return result


def _free_names(graph: GraphProto, depth: int = 0) -> list[str]:
    if depth > DEEPEST:
        raise BrokenGraph(f"graphs are nested more than {DEEPEST} deep")
    result = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    result |= {sparse.values.name for sparse in graph.sparse_initializer}
    result |= {name for node in graph.node for name in node.output}
    used = [name for node in graph.node for name in node.input if name]
    used += [name for node in graph.node for inner in graphs_of(node) for name in _free_names(inner, depth + 1)]
    used += [value.name for value in graph.output]
    return [name for name in used if name not in result]


def graphs_of(node: NodeProto) -> list[GraphProto]:
    """The graphs among the attributes of a node."""
    result: list[GraphProto] = []
    for attribute in node.attribute:
        if attribute.HasField("g"):
            result.append(attribute.g)
        result.extend(attribute.graphs)
    return result


def node_name(node: NodeProto, index: int) -> str:
    """What a node is called: its name, or its operator and place where it has none."""
    return node.name or f"{node.op_type}_{index}"


def nodes_of(graph: GraphProto) -> Iterable[tuple[int, NodeProto]]:
    """Every node of a graph and of those inside it, with its place in its graph."""
    for index, node in enumerate(graph.node):
        yield index, node
        for inner in graphs_of(node):
            yield from nodes_of(inner)


def text_of(names: Sequence[str], most: int = 8) -> str:
    """Names in a row; of many, the first ones and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
