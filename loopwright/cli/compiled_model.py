"""compiled_model: from a graph to native code, stage by stage, each with its time.

    made = compile_model(read_model("model.onnx"), Options(target="llvm"))
    made.built(x), made.seconds, made.interface

The stages are those of `relay.build`; here the outputs also get the names that the model gives them.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Protocol

from loopwright.cli.interface import Interface, of_program
from loopwright.cli.model_files import Arrays, ReadModel
from loopwright.display import progress
from loopwright.ir.instrument import PassTimingInstrument
from loopwright.ir.pass_aliases import aliases, is_alias, own_name
from loopwright.ir.pass_config import find_key
from loopwright.ir.pass_context import PassContext, known_passes
from loopwright.runtime.errors import LoopwrightError, NotBuilt
from loopwright.runtime.json_text import JsonObject
from loopwright.target import Target

if TYPE_CHECKING:
    from loopwright.ir import IRModule
    from loopwright.ir.passes import Pass
    from loopwright.model import Program
    from loopwright.relay.built import BuiltModule, Params

LAYOUT_OPERATORS: Final = ("nn.conv2d", "nn.conv2d_transpose", "qnn.conv2d")


class BadOption(LoopwrightError, ValueError):
    """An option of `loopwright compile` has a value that it cannot have.

    For example:

        from loopwright.cli.compiled_model import read_config

        read_config(["tir.disable_vectorize"])
    """

    code = "LW0051"

    def __init__(self, option: str, given: str, why: str, hint: str | None = None) -> None:
        super().__init__(f"{option} {given}: {why}", hint=hint, fields={"option": option, "given": given})


@dataclass(frozen=True)
class Options:
    """What a model is compiled for, and how."""

    target: str = "llvm"
    opt_level: int = 3
    name: str = "default"  # of the function; the symbol in C begins with loopwright_
    config: Mapping[str, object] = field(default_factory=dict)
    disabled_pass: Sequence[str] = ()
    winograd: bool = True
    layouts: Mapping[str, Sequence[str]] = field(default_factory=dict)  # operator → layouts of data and weights
    mixed: str | None = None  # the type of mixed precision
    precision: str = "float32"  # what it computes in: of relay.quantize.PRECISIONS
    calibrate_mode: str = "min_max"
    samples: Sequence[Arrays] | None = None  # to calibrate with, by the names of inputs


class MeasuredPrecision(Protocol):
    """How a model does beside itself in float32 (`precision.py`); `str` says it in words."""

    def to_json(self) -> JsonObject:
        """For programs."""


@dataclass(frozen=True)
class CompiledModel:
    """Native code, and all that is known about it."""

    model: ReadModel
    built: BuiltModule
    program: Program
    interface: Interface
    fused: IRModule  # the graph as kernels
    seconds: Mapping[str, float]
    pass_times: str
    options: Options
    measured: MeasuredPrecision | None = None  # beside itself in float32, where it computes in another precision


def compile_model(model: ReadModel, options: Options, seconds: Mapping[str, float] | None = None) -> CompiledModel:
    """The model as one native function; `seconds` are those of the stages before."""
    from loopwright.model import compile_program
    from loopwright.relay.built import BuiltModule

    times = dict(seconds or {})
    with progress.task(f"compile {Path(model.path).name}") as task:
        task.now("passes")
        start = perf_counter()
        with graph_context(options) as timing:
            fused, program = lowered(model, options)
            pass_times = timing.render()
        times["passes"] = perf_counter() - start
        task.now("")
        with kernel_context(options):
            native = compile_program(program, Target(options.target), winograd=options.winograd)
    times |= native.timings
    names = [value.name for value in program.inputs]
    built = BuiltModule(fused, program, native, names, options.name, None, {})
    return CompiledModel(
        model, built, program, of_program(program, model.output_names), fused, times, pass_times, options
    )


@contextlib.contextmanager
def graph_context(options: Options, target: str | None = None) -> Iterator[PassTimingInstrument]:
    """The target and the settings of passes over graphs meanwhile; gives what measures them."""
    timing = PassTimingInstrument()
    passes = PassContext(
        opt_level=options.opt_level,
        disabled_pass=list(options.disabled_pass),
        config=options.config,
        instruments=[timing],
    )
    with Target(target or options.target), passes:
        yield timing


@contextlib.contextmanager
def kernel_context(options: Options, target: str | None = None) -> Iterator[None]:
    """The same for kernels. Nothing watches them: what is watched is compiled anew, and not taken from the cache."""
    level = min(options.opt_level, PassContext().opt_level)  # as `build` has it; graphs have more levels
    passes = PassContext(opt_level=level, disabled_pass=list(options.disabled_pass), config=options.config)
    with Target(target or options.target), passes:
        yield


def lowered(model: ReadModel, options: Options) -> tuple[IRModule, Program]:
    """The graph as kernels, and the program that calls them; runs in the contexts that are open."""
    from loopwright.relay.build_module import optimize
    from loopwright.relay.lower.lower_to_program import lower_to_program, name_outputs

    mod = _converted(model.mod, options, model.params)
    fused, _ = optimize(mod, Target(options.target), model.params)
    main: Any = fused["main"]
    program = lower_to_program(main, options.name, fused)
    name_outputs(program, model.output_names)
    return fused, program


def _converted(mod: IRModule, options: Options, params: Params) -> IRModule:
    """The graph in the layouts and types that were asked for."""
    from loopwright.relay import transform

    def pass_named(name: str) -> Callable[..., Pass]:
        if name not in transform.__all__:
            raise NotBuilt(f"the pass {name}", "leave the option out")
        return getattr(transform, name)

    if options.layouts:
        mod = pass_named("ConvertLayout")({op: list(layouts) for op, layouts in options.layouts.items()})(mod)
    if options.mixed is not None:
        mod = pass_named("ToMixedPrecision")(options.mixed)(mod)
    if options.precision != "float32":
        from loopwright.relay.quantize import in_precision

        mod = in_precision(mod, options.precision, params, options.samples, options.calibrate_mode)
    return mod


# --- options as they are written --------------------------------------------------------------------------------------


def read_config(given: Sequence[str]) -> dict[str, object]:
    """`--pass-config name=value`, each value in the type of its setting."""
    result: dict[str, object] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise BadOption(
                "--pass-config", text, "it is not NAME=VALUE", "write --pass-config tir.disable_vectorize=1"
            )
        key = find_key(name)
        result[name] = value if key is None else _typed(text, value, key.type)
    return result


def _typed(text: str, value: str, wanted: type) -> object:
    if wanted is bool:
        words = {"1": True, "true": True, "0": False, "false": False}
        if value.lower() not in words:
            raise BadOption("--pass-config", text, f"{value!r} is not a truth value", "write 1, true, 0 or false")
        return words[value.lower()]
    if wanted is int:
        if not re.fullmatch(r"[+-]?\d+", value):
            raise BadOption("--pass-config", text, f"{value!r} is not a number")
        return int(value)
    if wanted is str:
        return value
    raise BadOption("--pass-config", text, f"a setting of type {wanted.__name__} cannot be given on the command line")


def read_layouts(layouts: Sequence[str], operators: Sequence[str]) -> dict[str, list[str]]:
    """`--desired-layout NHWC:HWIO`: one for all the operators, or one for each."""
    if not layouts:
        return {}
    names = list(operators) or list(LAYOUT_OPERATORS)
    if len(layouts) not in (1, len(names)):
        raise BadOption(
            "--desired-layout",
            " ".join(layouts),
            f"there are {len(layouts)} layouts for {len(names)} operators",
            "give one layout, or as many as there are --desired-layout-ops",
        )
    per = list(layouts) * len(names) if len(layouts) == 1 else list(layouts)
    pairs = [layout.partition(":")[::2] for layout in per]
    for data, kernel in pairs:
        _require_layout("the data", data, "NC", ("NCHW", "NHWC", "NCW", "NWC", "NCDHW", "NDHWC"))
        if kernel:
            _require_layout("the weights", kernel, "OI", ("OIHW", "HWIO", "OIW", "WIO", "OIDHW", "DHWIO"))
    return {name: [data, kernel or "default"] for name, (data, kernel) in zip(names, pairs, strict=True)}


def require_operators(names: Sequence[str]) -> None:
    """Refuse operators of `--desired-layout-ops` that do not exist."""
    from loopwright.relay import op

    known = op.list_op_names() if names else []
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 3)
            hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(LAYOUT_OPERATORS)} and others"
            raise BadOption("--desired-layout-ops", name, "there is no such operator", hint)


def _require_layout(what: str, layout: str, own: str, usual: Sequence[str]) -> None:
    """Refuse what is no layout of images, sequences or volumes; a blocked one such as NCHW8c is one."""
    axes = sorted(re.sub(r"\d+[a-z]", "", layout))
    if layout != "default" and axes not in [sorted(own + space) for space in ("W", "HW", "DHW")]:
        hint = f"there are {', '.join(usual)}, and blocked ones such as {usual[0]}8{own[1].lower()}"
        raise BadOption("--desired-layout", layout, f"it is no layout of {what}", hint)


def read_disabled_passes(text: str) -> list[str]:
    """`--disabled-pass FuseOps,vectorize_loops` as names of passes that exist."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        return []
    from loopwright import transform  # noqa: F401  # the passes over kernels are known once they are made
    from loopwright.relay.transform.pipeline import build_passes

    over_graphs = dict.fromkeys([one.info.name for one in build_passes()])
    for name in names:
        if own_name(name) not in known_passes and not is_alias(name):
            near = get_close_matches(name, [*known_passes, *aliases()], 3)
            hint = f"did you mean {', '.join(near)}?" if near else f"those over graphs are {', '.join(over_graphs)}"
            raise BadOption("--disabled-pass", name, "no pass is called that", hint)
    return names
