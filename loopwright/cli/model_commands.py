"""model_commands: `compile` and `inspect`, and the part of `run` that is about models; what they do lives elsewhere."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from loopwright.cli.failures import shown
from loopwright.display import progress

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Target = Annotated[str, typer.Option("--target", "-t", help="The target, such as llvm -mcpu=core-avx2.")]
Shapes = Annotated[
    str | None,
    typer.Option("--input-shapes", help='Shapes of inputs: "x:[1,3,224,224] mask:\\[batch,-1]"; -1 keeps a dimension.'),
]
Format = Annotated[
    str | None, typer.Option("--model-format", help="onnx, pytorch or relay, if the file name does not say.")
]
Values = Annotated[str | None, typer.Option("--values", metavar="NPZ", help="Values of inputs that become constants.")]
_OUTPUT = "Outputs"
_PASSES = "Passes"


class FileThenOptions(TyperCommand):
    """`run`: after a script everything is the script's own; after programs or a model, options may still come."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:  # a shell that completes the line has no FILE yet
            trial, *_ = self.make_parser(ctx).parse_args(args=list(args))
            file = trial.get("file")
            is_asked = bool(trial.get("script"))
            ctx.allow_interspersed_args = isinstance(file, str) and (
                trial.get("model_format") is not None or not _is_script(file, is_asked)
            )
        return list(super().parse_args(ctx, args))


def _is_script(file: str, is_asked: bool) -> bool:
    """Whether `run` runs FILE as a script; a file that is not there is reported later."""
    from loopwright.cli.model_files import is_model_file
    from loopwright.cli.programs import split_name
    from loopwright.cli.run import only_defines

    if is_model_file(file):
        return False
    path, wanted = split_name(file)
    return is_asked or (wanted is None and not (Path(path).is_file() and only_defines(path)))


def compile_command(
    model: Annotated[str, typer.Argument(help="A model: .onnx, .pt2, .relay.")],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="By suffix: .tar a package, .so a library with header and C program, .c source.",
        ),
    ] = "module.tar",
    target: Target = "llvm",
    input_shapes: Shapes = None,
    model_format: Format = None,
    values: Values = None,
    output_format: Annotated[
        str | None,
        typer.Option(
            "--output-format",
            "-f",
            help="In a package: so (default), or tar, to be linked later.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    constants: Annotated[
        str,
        typer.Option(help="Where the weights go: library, or file (beside it).", rich_help_panel=_OUTPUT),
    ] = "library",
    module_name: Annotated[
        str | None, typer.Option("--module-name", help="Name of the function.", rich_help_panel=_OUTPUT)
    ] = None,
    dump_code: Annotated[
        str,
        typer.Option("--dump-code", help="Also write the code: asm,ll,tir,relay.", rich_help_panel=_OUTPUT),
    ] = "",
    report: Annotated[
        str | None,
        typer.Option(metavar="HTML", help="Also write a report: graph, kernels, memory.", rich_help_panel=_OUTPUT),
    ] = None,
    profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="Also run it on random inputs: time, share of the roofline and bottleneck of each layer.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False,
    cross_compiler: Annotated[
        str | None, typer.Option("--cross-compiler", help="Links for another machine.", rich_help_panel=_OUTPUT)
    ] = None,
    cross_compiler_options: Annotated[
        str, typer.Option("--cross-compiler-options", help="Arguments for the cross compiler.", rich_help_panel=_OUTPUT)
    ] = "",
    opt_level: Annotated[
        int,
        typer.Option(
            "--opt-level", "-O", metavar="N", min=0, max=4, help="Optimization level.", rich_help_panel=_PASSES
        ),
    ] = 3,
    pass_config: Annotated[
        list[str] | None,
        typer.Option("--pass-config", metavar="K=V", help="A setting of a pass: NAME=VALUE.", rich_help_panel=_PASSES),
    ] = None,
    disabled_pass: Annotated[
        str, typer.Option("--disabled-pass", help="Passes to skip (comma-separated).", rich_help_panel=_PASSES)
    ] = "",
    desired_layout: Annotated[
        list[str] | None,
        typer.Option(
            "--desired-layout",
            metavar="<str>",
            help="A layout: NHWC or NHWC:HWIO; repeatable.",
            rich_help_panel=_PASSES,
        ),
    ] = None,
    desired_layout_ops: Annotated[
        list[str] | None,
        typer.Option(
            "--desired-layout-ops",
            metavar="<str>",
            help="Operators with that layout; repeatable.",
            rich_help_panel=_PASSES,
        ),
    ] = None,
    mixed_precision: Annotated[
        bool, typer.Option("--mixed-precision", help="Compute in float16 where it is safe.", rich_help_panel=_PASSES)
    ] = False,
    mixed_type: Annotated[
        str,
        typer.Option("--mixed-precision-calculation-type", help="The narrow type.", rich_help_panel=_PASSES),
    ] = "float16",
    precision: Annotated[
        str,
        typer.Option(
            "--precision",
            help="float32, float16, bfloat16 or int8; reports the difference from float32.",
            rich_help_panel=_PASSES,
        ),
    ] = "float32",
    calibrate: Annotated[
        str | None,
        typer.Option(
            "--calibrate",
            metavar="NPZ",
            help="Sample inputs for --precision; random ones by default.",
            rich_help_panel=_PASSES,
        ),
    ] = None,
    calibrate_mode: Annotated[
        str,
        typer.Option("--calibrate-mode", help="min_max, percentile or kl_divergence.", rich_help_panel=_PASSES),
    ] = "min_max",
    winograd: Annotated[
        bool,
        typer.Option(
            "--winograd/--no-winograd",
            help="Allow winograd convolutions, which round differently.",
        ),
    ] = True,
    database: Annotated[
        str | None,
        typer.Option("--database", "-d", help="Records of `loopwright tune`: kernels take the schedules it knows."),
    ] = None,
    print_pass_times: Annotated[
        bool, typer.Option("--print-pass-times", help="Print the time of each pass.", rich_help_panel=_PASSES)
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compile a model to one native function: a package, a library for C and Python, or C source.

    `loopwright run` runs a package (.tar). Beside a library (.so), a header and a C program that calls it are written.
    If anything fails, no file is written.
    """
    from loopwright.autosched.known import using
    from loopwright.cli import compile as command
    from loopwright.cli.compiled_model import (
        Options,
        read_config,
        read_disabled_passes,
        read_layouts,
        require_operators,
    )
    from loopwright.cli.model_files import read_model, read_shapes
    from loopwright.cli.run_model import read_arrays
    from loopwright.cli.tune import counted
    from loopwright.runtime.c_header import identifier
    from loopwright.runtime.together import require_writable

    if quiet:
        progress.hide()
    with shown(as_json):
        # Everything that can be refused is refused before the work begins.
        wanted = command.read_output(
            output,
            output_format,
            constants,
            dump_code,
            cross_compiler,
            cross_compiler_options,
            report,
            profile,
            target,
            calibrate,
        )
        command.check_precision(precision, calibrate, calibrate_mode, mixed_precision)
        for path in (output, report):
            if path is not None:
                require_writable(path)
        require_operators(desired_layout_ops or [])
        options = Options(
            target=target,
            opt_level=opt_level,
            name=identifier(module_name if module_name is not None else Path(output).stem),
            config=read_config(pass_config or []),
            disabled_pass=read_disabled_passes(disabled_pass),
            winograd=winograd,
            layouts=read_layouts(desired_layout or [], desired_layout_ops or []),
            mixed=mixed_type if mixed_precision else None,
            precision=precision,
            calibrate_mode=calibrate_mode,
        )
        known = read_arrays(values, None) if values is not None else {}
        start = perf_counter()
        read = read_model(model, model_format, read_shapes(input_shapes), known)
        if precision != "float32":
            from loopwright.cli.precision import samples_for

            options = replace(options, samples=samples_for(read, calibrate))
        tuned = counted(database) if database is not None else None
        with using(tuned):
            written = command.compile_to_files(read, options, wanted, perf_counter() - start)
        if as_json:
            passes = {"pass_times": written.pass_times} if print_pass_times else {}
            kernels = {} if tuned is None else {"tuned": tuned.known, "asked": len(tuned.asked)}
            typer.echo(json.dumps({**written.facts, **passes, **kernels, "warnings": list(written.warnings)}, indent=2))
        elif not quiet:
            typer.echo(command.as_text(written))
            if tuned is not None:
                count = f"{tuned.known} of {len(tuned.asked)} kernels"
                typer.echo(f"  {database}: {count} with a schedule other than the rules'")
            if print_pass_times:
                typer.echo(f"\n{written.pass_times}")
            if written.profile is not None:
                typer.echo(f"\n{written.profile}")


def inspect_command(
    model: Annotated[
        str, typer.Argument(help="A model (.onnx, .pt2, .relay), or a package or library compiled from one.")
    ],
    nodes: Annotated[bool, typer.Option("--nodes", "-n", help="Also list every node with its output shapes.")] = False,
    input_shapes: Shapes = None,
    model_format: Format = None,
    values: Values = None,
    as_json: AsJson = False,
) -> None:
    """Show a model's operators, shapes, FLOPs and memory; what is not supported, and why.

    It compiles nothing, and exits with status 1 if the model cannot be compiled.
    """
    from loopwright.cli import inspect as command
    from loopwright.cli.model_files import read_shapes
    from loopwright.cli.run_model import read_arrays

    with shown(as_json):
        known = read_arrays(values, None) if values is not None else {}
        result = command.inspect(model, model_format, read_shapes(input_shapes), known)
        if as_json:
            typer.echo(json.dumps(command.as_data(result), indent=2))
        else:
            typer.echo(command.as_sheet(result, nodes).for_screen())
        if not result.supported:
            raise typer.Exit(1)


def require_device(device: str) -> None:
    """Models run on CPUs."""
    from loopwright.runtime.errors import NotBuilt

    if device != "cpu":
        raise NotBuilt(f"running a model on {device!r}", "leave --device out: it runs on the CPU")


def run_model_command(file: str, arguments: list[str], target: str, as_json: bool, **wishes: Any) -> None:
    """The part of `run` for models; the options of the command that only models have are `wishes`."""
    from loopwright.cli import run_model as command
    from loopwright.cli.compiled_model import Options
    from loopwright.cli.model_files import read_shapes
    from loopwright.cli.run import read_sizes
    from loopwright.runtime.together import require_writable

    shapes, model_format = read_shapes(wishes.pop("input_shapes")), wishes.pop("model_format")
    request = command.Request(sizes=read_sizes(arguments), **wishes)
    if request.fill_mode not in command.FILL_MODES:
        raise command.UnknownFillMode(request.fill_mode)
    if request.profile:
        command.require_profile(file)
    if request.outputs is not None:
        require_writable(request.outputs)
    runnable = command.prepare(file, Options(target=target), model_format, shapes, request.inputs)
    result = command.run_model(runnable, request)
    typer.echo(json.dumps(command.as_data(result), indent=2) if as_json else command.as_text(result))
