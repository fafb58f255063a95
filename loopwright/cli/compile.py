"""compile: a model becomes a package, a library with its header and a C program, or C source.

    loopwright compile model.onnx -o model.tar      a package: `loopwright run model.tar`
    loopwright compile model.onnx -o model.so       also model.h and model_main.c
    loopwright compile model.onnx -o model.c        also model.h; for small models

The ending of the output's name says what it becomes. All files of one output appear together or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from loopwright.cli.compiled_model import (
    BadOption,
    CompiledModel,
    Options,
    compile_model,
    graph_context,
    kernel_context,
    lowered,
)
from loopwright.cli.interface import Port, of_program
from loopwright.cli.model_facts import KernelFacts, MemoryFacts, PortFacts
from loopwright.cli.model_files import ReadModel
from loopwright.cli.package import FORMAT, METADATA, write_package
from loopwright.display import progress
from loopwright.display.quantities import bytes_text, count_text, flops_text, open_bytes_text, size_text, time_text
from loopwright.runtime.json_text import JsonObject
from loopwright.runtime.params import save_param_dict
from loopwright.runtime.together import together

if TYPE_CHECKING:
    from loopwright.model.kernel import Kernel
    from loopwright.model.plan import Plan
    from loopwright.model.profile import Profile
    from loopwright.relay.built import BuiltModule
    from loopwright.target import CpuDescription

FORMS: Final = ("tar", "so", "dylib", "o", "a", "c", "h", "ll", "s")
LIBRARY_FORMS: Final = ("so", "tar")  # inside a package
DUMPS: Final = ("asm", "ll", "tir", "relay")


@dataclass(frozen=True)
class Output:
    """What to write, and where."""

    path: str
    form: str  # of FORMS
    library: str = "so"  # inside a package
    constants: str = "library"  # where the weights go
    dumps: Sequence[str] = ()
    cross_compiler: str | None = None
    cross_options: Sequence[str] = ()
    report: str | None = None
    profile: bool = False  # also run it, with a clock around every kernel
    calibrate: str | None = None  # the file of samples


def read_output(
    path: str,
    library: str | None = None,
    constants: str = "library",
    dump_code: str = "",
    cross_compiler: str | None = None,
    cross_options: str = "",
    report: str | None = None,
    profile: bool = False,
    target: str = "llvm",
    calibrate: str | None = None,
) -> Output:
    """The options that say what is written, checked."""
    form = Path(path).suffix.removeprefix(".").lower()
    if form not in FORMS:
        known = ", ".join(f".{one}" for one in FORMS)
        raise BadOption("--output", path, "unknown suffix", known)
    if library is not None and library not in LIBRARY_FORMS:
        hint = "so is a linked library, tar are the objects, to be linked where they will run"
        raise BadOption("--output-format", library, "it is neither so nor tar", hint)
    if library is not None and form != "tar":
        raise BadOption("--output-format", library, f"it says what is inside a package, and {path} is none")
    if constants not in ("library", "file"):
        raise BadOption("--constants", constants, "it is neither library nor file")
    if constants == "file" and (form not in ("so", "dylib", "tar") or library == "tar"):
        raise BadOption("--constants", constants, "only a linked library reads its weights from a file")
    dumps = [one.strip() for one in dump_code.split(",") if one.strip()]
    for one in dumps:
        if one not in DUMPS:
            raise BadOption("--dump-code", dump_code, f"{one!r} is no kind of code", f"there are {', '.join(DUMPS)}")
    if form == "c" and ({"asm", "ll"} & {*dumps} or report is not None):
        what = "--report" if report is not None else "--dump-code"
        raise BadOption(what, report or dump_code, "C source is not compiled here: there is no code to show")
    if Path(path).resolve() == Path(report or "").resolve():
        raise BadOption("--report", str(report), "it is the output itself")
    if profile:
        _require_runnable(path, form, target)
    return Output(
        path,
        form,
        library or "so",
        constants,
        dumps,
        cross_compiler,
        cross_options.split(),
        report,
        profile,
        calibrate,
    )


def check_precision(precision: str, calibrate: str | None, mode: str, mixed: bool) -> None:
    """The options about precision, checked."""
    from loopwright.relay.quantize.config import CALIBRATE_MODES
    from loopwright.relay.quantize.precision import require_precision

    require_precision(precision)
    if mode not in CALIBRATE_MODES:
        raise BadOption("--calibrate-mode", mode, "there is no such mode", f"there are {', '.join(CALIBRATE_MODES)}")
    if calibrate is not None and precision == "float32":
        hint = "add --precision int8, float16 or bfloat16"
        raise BadOption("--calibrate", calibrate, "samples are for a precision other than float32", hint)
    if mixed and precision != "float32":
        raise BadOption("--precision", precision, "--mixed-precision says it already", "leave --mixed-precision out")


def _require_runnable(path: str, form: str, target: str) -> None:
    """Refuse to profile what does not run here."""
    from loopwright.codegen.llvm.load_object import is_runnable
    from loopwright.target import Target, describe

    if form == "c":
        raise BadOption("--profile -o", path, "C source is not compiled here: there is nothing to run")
    if not is_runnable(describe(Target(target))):
        raise BadOption("--profile -t", target, "its code does not run on this machine")


@dataclass(frozen=True)
class Written:
    """What was written, and what is known of it."""

    files: list[str]
    facts: JsonObject  # what `--json` prints
    pass_times: str
    warnings: tuple[str, ...]
    profile: Profile | None = None
    measured: str = ""  # a smaller precision beside float32


def compile_to_files(model: ReadModel, options: Options, output: Output, read_seconds: float) -> Written:
    """Compile the model and write what is asked for."""
    seconds = {"read": read_seconds}
    if output.form == "c":
        return _write_c(model, options, output, seconds)
    if (output.library if output.form == "tar" else output.form) == "so" and output.cross_compiler is None:
        from loopwright.runtime.export import begin_runtime

        begin_runtime()
    result = compile_model(model, options, seconds)
    if options.precision != "float32":
        from loopwright.cli.precision import measure

        start = perf_counter()
        answer = measure(result, options.samples or (), output.calibrate)
        seconds_now = {**result.seconds, "compare": perf_counter() - start}
        result = replace(result, measured=answer, seconds=seconds_now)
    start = perf_counter()
    name = Path(output.path).name
    with progress.task(f"write {name}"), together(output.path) as folder:
        _write_form(result, output, folder)
        for kind in output.dumps:
            (folder / f"{name}.{kind}").write_text(_dump(result, kind), encoding="utf-8")
        files = [str(Path(output.path).parent / one.name) for one in sorted(folder.iterdir())]
    times = {**result.seconds, "write": perf_counter() - start}
    profile = None
    if output.profile:
        from loopwright.cli.run_model import profile_made

        profile = profile_made(result)
    if output.report is not None:
        from loopwright.cli.report import write_report

        write_report(output.report, result, profile=profile)
        files.append(output.report)
    facts = {"wrote": files, **facts_of(result), "seconds": times}
    measured = "" if result.measured is None else str(result.measured)
    if profile is not None:
        facts |= {"profile": profile.as_data(), "roofline": profile.limits.as_data()}
    return Written(files, facts, result.pass_times, model.warnings, profile, measured)


def _write_form(result: CompiledModel, output: Output, folder: Path) -> None:
    path = folder / Path(output.path).name
    built = result.built
    if output.form == "tar":
        _write_package(result, output, path)
        return
    built.export_library(str(path), **_link_options(output))
    if output.form in ("so", "dylib", "o", "a"):
        _write_header(built, folder, path.stem)
        example = f"{path.stem}_main.c"
        (folder / example).write_text(_c_example(built, path.stem, example), encoding="utf-8")


def _link_options(output: Output) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if output.form in ("so", "dylib", "tar"):
        options["constants"] = output.constants
        if output.cross_options:
            options["options"] = list(output.cross_options)
    if output.cross_compiler:
        options["cc"] = output.cross_compiler
    return options


def _write_header(built: BuiltModule, folder: Path, stem: str) -> None:
    from loopwright.runtime.c_header import c_header

    (folder / f"{stem}.h").write_text(c_header(built.compiled.description, stem), encoding="utf-8")


def _c_example(built: BuiltModule, stem: str, file: str) -> str:
    from loopwright.model.c_example import c_example

    return c_example(built.compiled.description, stem, file)


def _write_package(result: CompiledModel, output: Output, path: Path) -> None:
    """The parts in a folder inside the one that will be removed, then the archive of them."""
    folder = path.parent / "parts"
    folder.mkdir()
    built = result.built
    library = folder / f"mod.{output.library}"
    options = _link_options(output) if output.library == "so" else {}
    built.export_library(str(library), **options)
    _write_header(built, folder, "mod")
    metadata = {
        "loopwright_package": FORMAT,
        "interface": result.interface.to_json(),
        **facts_of(result),
        "version": built.compiled.description.version,
    }
    parts: dict[str, Path | bytes] = {METADATA: json.dumps(metadata, indent=2).encode(), library.name: library}
    weights = folder / "mod.weights"
    if weights.exists():
        parts[weights.name] = weights
    parts["mod.json"] = built.get_graph_json().encode()
    parts["mod.params"] = bytes(save_param_dict({}))
    parts["mod.h"] = folder / "mod.h"
    parts["main.c"] = _c_example(built, "mod", "main.c").encode()
    write_package(path, parts)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def _write_c(model: ReadModel, options: Options, output: Output, seconds: dict[str, float]) -> Written:
    """The program as C source, for the target "c"."""
    from loopwright.model import c_module
    from loopwright.target import Target

    target = options.target if Target(options.target).kind.name == "c" else "c"
    start = perf_counter()
    with progress.task(f"compile {Path(model.path).name}") as task:
        task.now("passes")
        with graph_context(options, target) as timing:
            fused, program = lowered(model, options)
            pass_times = timing.render()
        seconds["passes"] = perf_counter() - start
        task.now("C source")
        with kernel_context(options, target):
            module = c_module(program, target)
            source, header = module.get_source("c"), module.get_source("h")
    seconds["source"] = perf_counter() - start - seconds["passes"]
    path = Path(output.path)
    with together(path) as folder:
        (folder / path.name).write_text(source, encoding="utf-8")
        (folder / f"{path.stem}.h").write_text(header, encoding="utf-8")
        for kind in output.dumps:
            text = str(fused) if kind == "relay" else "\n\n".join(one.func.script() for one in program.launches())
            (folder / f"{path.name}.{kind}").write_text(text, encoding="utf-8")
        files = [str(path.parent / one.name) for one in sorted(folder.iterdir())]
    interface = of_program(program, model.output_names)
    facts = {
        "wrote": files,
        "model": model.path,
        "target": target,
        "name": options.name,
        "precision": options.precision,
        "accuracy": None,
        "inputs": ports_json(interface.inputs),
        "outputs": ports_json(interface.outputs),
        "kernels": [],
        "flops": None,
        "memory": None,
        "seconds": seconds,
    }
    return Written(files, facts, pass_times, model.warnings)


def _dump(result: CompiledModel, kind: str) -> str:
    """The model as text: its graph, its kernels as scheduled, their LLVM text or their assembly."""
    native = result.built.compiled
    if kind == "relay":
        return str(result.fused)
    if kind == "tir":
        return "\n\n".join(row.text for row in native.kernels)
    return "\n".join([native.get_source(kind), *[_kernel_text(row.kernel, native.cpu, kind) for row in native.kernels]])


def _kernel_text(kernel: Kernel, cpu: CpuDescription, kind: str) -> str:
    from loopwright.codegen.llvm.effort import Effort
    from loopwright.codegen.llvm.engine import compile_text

    if kind == "ll":
        return str(kernel.ll)
    # The kernel does not say how much LLVM was asked to do; its object does.
    tries = [compile_text(kernel.ll, cpu, effort=effort) for effort in Effort]
    return next((one for one in tries if one.object_bytes == kernel.object_bytes), tries[-1]).asm()


# --- what is said about it --------------------------------------------------------------------------------------------


def ports_json(ports: Sequence[Port]) -> list[PortFacts]:
    """Inputs or outputs for programs."""
    return [{"name": port.name, "dtype": port.dtype, "shape": list(port.shape)} for port in ports]


def facts_of(result: CompiledModel) -> JsonObject:
    """What is known of a compiled model, as plain data."""
    built = result.built
    rows = built.kernels
    work = [row.flops * row.calls if row.flops is not None else None for row in rows]
    plan = built.plan
    return {
        "model": result.model.path,
        "target": str(built.compiled.description.target),
        "name": result.options.name,
        "precision": result.options.precision,
        "accuracy": None if result.measured is None else result.measured.to_json(),
        "inputs": ports_json(result.interface.inputs),
        "outputs": ports_json(result.interface.outputs),
        "kernels": [
            {
                "name": row.name,
                "function": row.launch.func.name,
                "calls": row.calls,
                "flops": row.flops,
                "bytes_moved": row.bytes_moved,
                "code_bytes": row.code_bytes,
            }
            for row in rows
        ],
        "flops": None if None in work else sum(one for one in work if one is not None),
        "memory": memory_json(plan),
    }


def memory_json(plan: Plan) -> MemoryFacts:
    """The memory that a model takes, in bytes."""
    return {
        "arena": plan.peak,
        "lower_bound": plan.lower_bound,
        "unshared": plan.unshared,
        "constants": plan.constant_bytes,
        "decided_by_the_call": [size_text(slot.nbytes) for group in plan.slots.values() for slot in group],
    }


def has_open_sizes(kernel: KernelFacts) -> bool:
    """Whether what a kernel costs is decided by a call; a kernel of known sizes may still be one that nobody counts."""
    return kernel["flops"] is None and kernel["bytes_moved"] is None


def arithmetic_text(kernels: Sequence[KernelFacts]) -> str:
    """The arithmetic of a run, and how many kernels are not counted in it; nothing where a call's sizes decide it."""
    counted = [one["flops"] * one["calls"] for one in kernels if one["flops"] is not None]
    if not counted or any(has_open_sizes(one) for one in kernels):
        return ""
    rest = len(kernels) - len(counted)
    return f"{flops_text(sum(counted))} a run" + (f" ({count_text(rest, 'kernel')} not counted)" if rest else "")


def as_text(written: Written) -> str:
    """What was written, for the terminal."""
    facts = written.facts
    lines = [f"wrote {', '.join(written.files)}"]
    kernels = facts["kernels"]
    if kernels:
        launches = sum(one["calls"] for one in kernels)
        work = arithmetic_text(kernels)
        message = f"{count_text(launches, 'launch', 'launches')} of {count_text(len(kernels), 'kernel')}"
        lines.append(f"  {message}, {work}" if work else f"  {message}")
    memory = facts["memory"]
    if memory is not None:
        bound = f"(lower bound {bytes_text(memory['lower_bound'])})" if memory["arena"] else ""
        open_sizes = memory["decided_by_the_call"]
        values = f", values {bytes_text(memory['arena'])} {bound}".rstrip() if memory["arena"] or not open_sizes else ""
        lines.append(f"  memory: weights {bytes_text(memory['constants'])}{values}")
        if open_sizes:
            lines.append(f"  plus, for each call, {open_bytes_text(open_sizes)}")
    if facts["precision"] != "float32":
        lines.append(f"  {facts['precision']}: {written.measured or 'not run here, so not compared with float32'}")
    stages = [f"{stage} {time_text(spent)}" for stage, spent in facts["seconds"].items() if spent >= 0.0005]
    lines.append(f"  {time_text(sum(facts['seconds'].values()))}: {', '.join(stages)}")
    lines += [f"  warning: {text}" for text in written.warnings]
    return "\n".join(lines)
