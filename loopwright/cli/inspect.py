"""inspect: what a model is made of, what it costs, and whether it can be compiled, without compiling it.

    loopwright inspect model.onnx            operators, shapes, arithmetic, memory; what is not supported, and why
    loopwright inspect model.onnx --nodes    also every node with the shapes of what it makes
    loopwright inspect model.tar             the same of a package, which knows it

Arithmetic and memory are those of the kernels that would be compiled: the graph goes through all the passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loopwright.cli.compile import arithmetic_text, has_open_sizes, memory_json, ports_json
from loopwright.cli.compiled_model import Options, graph_context, lowered
from loopwright.cli.failures import error_data
from loopwright.cli.interface import of_program
from loopwright.cli.model_facts import KernelFacts, MemoryFacts, NodeFacts, OperatorFacts, PortFacts, ResultFacts
from loopwright.cli.model_files import Arrays, Shapes, format_of, is_package, no_model, read_model, shapes_option
from loopwright.cli.package import read_metadata
from loopwright.display import progress
from loopwright.display.quantities import bytes_text, count_text, flops_text, open_bytes_text
from loopwright.display.sheet import Lines, Part, Sheet, Span, Table, heading, words
from loopwright.runtime.errors import InternalError, LoopwrightError
from loopwright.runtime.json_text import JsonObject

if TYPE_CHECKING:
    from onnx import ModelProto, TypeProto, ValueInfoProto

    from loopwright.ir import PrimFunc

_MOST_KERNELS: Final = 12  # in the table of a terminal
_MOST_NODES: Final = 6  # named of an operator that is not supported
_LARGEST_INFERRED: Final = 1 << 30  # bytes of a model whose shapes ONNX is asked for


@dataclass
class Findings:
    """What is known of a model."""

    path: str
    format: str
    about: JsonObject = field(default_factory=dict)  # opset, producer, bytes, weights …
    inputs: list[PortFacts] = field(default_factory=list)
    outputs: list[PortFacts] = field(default_factory=list)
    operators: list[OperatorFacts] = field(default_factory=list)
    nodes: list[NodeFacts] = field(default_factory=list)
    kernels: list[KernelFacts] = field(default_factory=list)
    flops: float | None = None
    memory: MemoryFacts | None = None
    problem: Exception | None = None  # why it cannot be compiled, beyond operators

    @property
    def supported(self) -> bool:
        """Whether it can be compiled, as far as that is seen without doing it."""
        return self.problem is None and all(one["supported"] for one in self.operators)


def inspect(
    path: str,
    model_format: str | None = None,
    shapes: Shapes | None = None,
    values: Arrays | None = None,
    options: Options | None = None,
) -> Findings:
    """Everything that can be found out without compiling. A file that is no model at all is an error."""
    if not Path(path).is_file():
        raise no_model(path)
    if is_package(path):
        return _inspect_package(path)
    result = Findings(path, format_of(path, model_format))
    with progress.task(f"inspect {Path(path).name}") as task:
        if result.format == "onnx":
            _look_at_onnx(result)
        if all(one["supported"] for one in result.operators):
            task.now("graph")
            try:
                _look_at_graph(result, model_format, shapes, values, options or Options())
            except InternalError:
                raise
            except (LoopwrightError, NotImplementedError) as error:
                result.problem = error
    return result


def _inspect_package(path: str) -> Findings:
    from loopwright.cli.interface import of_description
    from loopwright.runtime.load import load_module

    result = Findings(path, "package")
    metadata = read_metadata(path) if Path(path).suffix.lower() == ".tar" else None
    result.about["bytes"] = Path(path).stat().st_size
    if metadata is None:
        interface = of_description(load_module(path).description, path)
        result.inputs, result.outputs = ports_json(interface.inputs), ports_json(interface.outputs)
        return result
    result.about |= {key: metadata[key] for key in ("model", "target", "name", "version") if key in metadata}
    result.inputs, result.outputs = list(metadata["inputs"]), list(metadata["outputs"])
    result.kernels = list(metadata["kernels"])
    result.flops, result.memory = metadata["flops"], metadata["memory"]
    return result


# --- ONNX -------------------------------------------------------------------------------------------------------------


def _look_at_onnx(answer: Findings) -> None:
    """What the file says: no graph of ours is made, so this also works for models that cannot be compiled."""
    import warnings

    from loopwright.frontends.onnx.functions import has_body
    from loopwright.frontends.onnx.load import load, node_name, nodes_of
    from loopwright.frontends.onnx.registry import find

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are said when it is compiled
        model = load(answer.path)
    proto, graph = model.proto, model.proto.graph
    weights = [(tuple(one.dims), one.data_type) for one in graph.initializer]
    answer.about |= {
        "opset": model.opsets,
        "producer": " ".join(part for part in (proto.producer_name, proto.producer_version) if part) or None,
        "bytes": Path(answer.path).stat().st_size,
        "weights": {"count": len(weights), "numbers": sum(prod(shape) for shape, _ in weights)},
    }
    stored = {tensor.name for tensor in graph.initializer}
    answer.inputs = [_port(value) for value in graph.input if value.name not in stored]
    answer.outputs = [_port(value) for value in graph.output]
    shapes = _inferred(proto)
    uses: dict[tuple[str, str], list[str]] = {}
    for location, node in nodes_of(graph):
        domain = "" if node.domain == "ai.onnx" else node.domain
        name = node_name(node, location)
        uses.setdefault((domain, node.op_type), []).append(name)
        result: list[ResultFacts] = [{"name": one, "shape": shapes.get(one)} for one in node.output if one]
        answer.nodes.append({"name": name, "operator": _label(domain, node.op_type), "outputs": result})
    for (domain, op), names in sorted(uses.items(), key=lambda item: (-len(item[1]), item[0])):
        version = model.opsets.get(domain, 1)
        supported = find(op, domain, version) is not None or has_body(op, domain, version)
        answer.operators.append(
            {
                "operator": _label(domain, op),
                "count": len(names),
                "supported": supported,
                "why": None if supported else _why_not(op, domain, version),
                "nodes": names,
            }
        )


def _label(domain: str, op: str) -> str:
    return f"{domain}.{op}" if domain else op


def _why_not(op: str, domain: str, version: int) -> str:
    """Why an operator has no converter, as far as ONNX's own description of it tells."""
    from onnx import defs

    if "training" in domain:
        return "it trains a model; here models are only run"
    known = {schema.domain for schema in defs.get_all_schemas()}
    if domain == "ai.onnx.ml":
        return "models that are not networks (trees, encoders of texts) are not read"
    if domain not in known:
        return f"the operators of {domain!r} are known to the one who made the model alone"
    try:
        schema = defs.get_schema(op, version, domain)
    except defs.SchemaError:
        newest = max((one.since_version for one in defs.get_all_schemas() if one.domain == domain), default=0)
        return f"ONNX has no such operator in set {version} (the installed package knows sets up to {newest})"
    kinds = {kind for one in (*schema.inputs, *schema.outputs) for kind in one.types}
    if kinds and all("string" in kind for kind in kinds):
        return "texts are not computed with"
    return "there is no converter for it"


def _port(value: ValueInfoProto) -> PortFacts:
    """An input or output as the file declares it; what is not a tensor has no shape."""
    from onnx import TensorProto

    of = value.type
    if not of.HasField("tensor_type"):
        kind = of.WhichOneof("value")
        return {"name": value.name, "dtype": (kind or "unknown").removesuffix("_type"), "shape": None}
    codes = {number: name.lower() for name, number in TensorProto.DataType.items()}
    dtype = {"float": "float32", "double": "float64"}.get(name := codes.get(of.tensor_type.elem_type, "unknown"), name)
    return {"name": value.name, "dtype": dtype, "shape": _dims(of.tensor_type)}


def _dims(tensor: TypeProto.Tensor) -> list[int | str] | None:
    if not tensor.HasField("shape"):
        return None
    return [int(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?" for dim in tensor.shape.dim]


def _inferred(proto: ModelProto) -> dict[str, list[int | str] | None]:
    """Shapes of the tensors of the graph, as ONNX infers them; what it cannot infer is not there."""
    import onnx

    if proto.ByteSize() > _LARGEST_INFERRED:
        return {}
    try:
        inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True)
    except Exception:  # of its own making, or a RuntimeError: shapes are an extra here
        return {}
    values = (*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output)
    return {value.name: _dims(value.type.tensor_type) for value in values if value.type.HasField("tensor_type")}


# --- the graph --------------------------------------------------------------------------------------------------------


def _look_at_graph(
    result: Findings, model_format: str | None, shapes: Shapes | None, values: Arrays | None, options: Options
) -> None:
    """What the model costs, by the program that would be compiled."""
    from loopwright.model import plan_memory
    from loopwright.model.kernel_table import bytes_of, flops_of
    from loopwright.relay.analysis import list_op_freqs

    model = read_model(result.path, model_format, shapes, values)
    if not result.operators:
        counts = sorted(list_op_freqs(model.mod).items(), key=lambda item: (-item[1], item[0]))
        result.operators = [
            {"operator": name, "count": int(count), "supported": True, "why": None, "nodes": []}
            for name, count in counts
        ]
    with graph_context(options):
        _, program = lowered(model, options)
    interface = of_program(program, model.output_names)
    result.inputs, result.outputs = ports_json(interface.inputs), ports_json(interface.outputs)
    work: list[float | None] = []
    rows: dict[PrimFunc, KernelFacts] = {}
    for launch in program.launches():
        flops = flops_of(launch)
        work.append(flops)
        row = rows.get(launch.func)
        if row is not None:
            row["calls"] += 1
            continue
        rows[launch.func] = {
            "name": launch.name or launch.func.name,
            "function": launch.func.name,
            "calls": 1,
            "flops": flops,
            "bytes_moved": bytes_of(launch),
        }
    result.kernels = list(rows.values())
    result.flops = None if None in work else sum(one for one in work if one is not None)
    result.memory = memory_json(plan_memory(program))


# --- what is said about it --------------------------------------------------------------------------------------------


def as_data(result: Findings) -> JsonObject:
    """The findings for programs."""
    return {
        "model": result.path,
        "format": result.format,
        "about": result.about,
        "inputs": result.inputs,
        "outputs": result.outputs,
        "operators": result.operators,
        "nodes": result.nodes,
        "kernels": result.kernels,
        "flops": result.flops,
        "memory": result.memory,
        "supported": result.supported,
        "problem": None if result.problem is None else error_data(result.problem),
    }


def as_sheet(result: Findings, nodes: bool = False) -> Sheet:
    """The findings for the terminal."""
    about = result.about
    message = [result.format.upper() if result.format == "onnx" else result.format]
    if about.get("opset"):
        message.append(", ".join(f"{domain + ' ' if domain else ''}opset {n}" for domain, n in about["opset"].items()))
    if about.get("producer"):
        message.append(f"made by {about['producer']}")
    message += [f"{key} {about[key]}" for key in ("model", "target") if about.get(key)]
    if about.get("bytes"):
        message.append(bytes_text(about["bytes"]))
    parts: list[Part] = [heading(result.path, ", ".join(message))]
    parts.append(words(*[f"  input {_port_text(one)}" for one in result.inputs]))
    parts.append(words(*[f"  output {_port_text(one)}" for one in result.outputs]))
    if about.get("weights"):
        weights = about["weights"]
        parts.append(words(f"  weights: {weights['numbers']:,} numbers in {count_text(weights['count'], 'tensor')}"))
    parts += _cost_parts(result)
    if result.operators:
        rows = tuple((one["operator"], f"{one['count']:,}", _status(one)) for one in result.operators)
        tones = tuple("" if one["supported"] else "bad" for one in result.operators)
        parts += [heading("Operators"), Table(("operator", "nodes", "compiled"), rows, tones)]
    if result.kernels:
        parts += _kernel_parts(result.kernels)
        if any(has_open_sizes(one) for one in result.kernels):
            parts.append(words(f"  {_open_sizes_note(result)}"))
    if nodes and result.nodes:
        rows = tuple(
            (one["name"], one["operator"], "  ".join(_made_text(result) for result in one["outputs"]))
            for one in result.nodes
        )
        parts += [heading("Nodes"), Table(("node", "operator", "makes"), rows)]
    parts += _verdict(result)
    return Sheet(*parts)


def _port_text(port: PortFacts) -> str:
    shape = port["shape"]
    return f"{port['name']}: {port['dtype']}" + ("" if shape is None else f"[{', '.join(map(str, shape))}]")


def _made_text(result: ResultFacts) -> str:
    shape = result["shape"]
    return f"{result['name']}[{'?' if shape is None else ', '.join(map(str, shape))}]"


def _status(one: OperatorFacts) -> str:
    return "yes" if one["supported"] else f"no: {one['why']}"


def _cost_parts(result: Findings) -> list[Part]:
    lines = []
    work = arithmetic_text(result.kernels)
    if work:
        launches = sum(one["calls"] for one in result.kernels)
        lines.append(
            f"  arithmetic: {work}, {count_text(launches, 'launch', 'launches')} of "
            f"{count_text(len(result.kernels), 'kernel')}"
        )
    if result.memory is not None:
        memory = result.memory
        # Kernels that may write over what they read are known only when they are compiled.
        most = "" if result.format == "package" else "at most "
        open_sizes = memory["decided_by_the_call"]
        parts = [f"weights {bytes_text(memory['constants'])}"]
        if memory["arena"] or not open_sizes:
            values, alone = bytes_text(memory["arena"]), bytes_text(memory["unshared"])
            parts.append(f"values {most}{values} (each by itself: {alone})")
        lines.append(f"  memory: {', '.join(parts)}")
        if open_sizes:
            lines.append(f"  plus, for each call, {open_bytes_text(open_sizes)}")
    return [words(*lines)] if lines else []


def _kernel_parts(kernels: Sequence[KernelFacts]) -> list[Part]:
    def work(one: KernelFacts) -> float:
        return float(one["flops"] or 0) * int(one["calls"])

    total = sum(work(one) for one in kernels) or 1.0
    heaviest = sorted(kernels, key=work, reverse=True)[:_MOST_KERNELS]
    rows = tuple(
        (
            str(one["function"]),
            str(one["calls"]),
            _work_text(one),
            "" if one["bytes_moved"] is None else bytes_text(one["bytes_moved"]),
            "" if one["flops"] is None else f"{work(one) / total:.1%}",
        )
        for one in heaviest
    )
    more = len(kernels) - len(heaviest)
    note = f"the {len(heaviest)} with most arithmetic; {more} more" if more > 0 else ""
    return [heading("Kernels", note), Table(("kernel", "calls", "one call", "moves", "share"), rows)]


def _work_text(kernel: KernelFacts) -> str:
    """The arithmetic of one call; nothing is said where a call's sizes decide it."""
    if kernel["flops"] is not None:
        return flops_text(kernel["flops"])
    return "" if has_open_sizes(kernel) else "not counted"


def _open_sizes_note(result: Findings) -> str:
    """Why there are no numbers, and how to have them."""
    sizes = dict.fromkeys(size for port in result.inputs for size in port["shape"] or () if isinstance(size, str))
    message = f"what a call costs depends on {', '.join(sizes) or 'sizes that it decides'}"
    if result.format == "package" or not sizes:
        return message
    return f"{message}: {shapes_option(result.inputs)} shows it"


def _verdict(result: Findings) -> list[Part]:
    if result.format == "package":
        return []
    if result.supported:
        return [Lines(((Span("It can be compiled.", "good"),),), True)]
    lines: list[tuple[Span, ...]] = [(Span("It cannot be compiled:", "bad"),)]
    for one in result.operators:
        if not one["supported"]:
            names = one["nodes"][:_MOST_NODES]
            rest = len(one["nodes"]) - len(names)
            listed = ", ".join(names) + (f" and {rest} more" if rest else "")
            lines.append((Span(f"  {one['operator']} ({listed}): {one['why']}"),))
    if result.problem is not None:
        lines += [(Span(f"  {line}"),) for line in str(error_data(result.problem)["message"]).splitlines()]
    return [Lines(tuple(lines), True)]
