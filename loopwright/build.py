"""lower and build: from what a user wrote to what runs.

    te tensors ─┐
    PrimFunc ───┼─► IRModule ─► lower: the pass pipeline ─► codegen ─► runtime Module
    IRModule ───┘

`as_module.py` is the first arrow. A program that was built before comes from the compile cache instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from loopwright.as_module import NotBuildable, as_module, is_te_schedule
from loopwright.display import progress
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.pass_context import PassContext
from loopwright.ir.rare_collections import rare_collections
from loopwright.ir.verifier import verify
from loopwright.runtime.artifact_store import is_on as cache_is_on
from loopwright.target import Target, describe, require_buildable

if TYPE_CHECKING:
    from loopwright.codegen.llvm.native_module import CompiledModule
    from loopwright.codegen.source.c.make_module import CModule
    from loopwright.codegen.source.cuda.make_module import CudaModule

    BuiltModule = CompiledModule | CModule | CudaModule

TargetLike = str | Target | Mapping[str, object]


@rare_collections
def lower(
    inp: object,
    args: Sequence[object] | TargetLike | None = None,
    name: str = "main",
    binds: object = None,
    simple_mode: bool = False,
    target: TargetLike | None = None,
) -> IRModule:
    """The program after every lowering pass, ready for code generation; `simple_mode` keeps loops whole.

    Without `target`, for the current target; without that, as far as it is the same for all: loops bound to threads
    are launches, types and intrinsics are those of the program.
    """
    from loopwright.transform import lower as run_pipeline
    from loopwright.transform.pipeline import lower_for_any_target

    args, target = _args_and_target(inp, args, target)
    module = as_module(inp, args, name, binds)
    verify(module)
    chosen = Target.current() if target is None else Target(target)
    without = ["partition_loops"] if simple_mode else []
    if chosen is None:
        return lower_for_any_target(module, without=without)
    return run_pipeline(module, chosen, without=without)


@rare_collections
def build(
    inputs: object,
    args: Sequence[object] | TargetLike | None = None,
    target: TargetLike | None = None,
    target_host: str | Target | None = None,
    runtime: object = None,
    name: str = "main",
    binds: object = None,
    autosched: bool = False,
    winograd: bool | int = False,
) -> BuiltModule:
    """A runtime Module of native functions from a PrimFunc, an IRModule, te tensors, or `{target: IRModule}`.

    The module is callable (its entry function), holds each function by name, and shows its source with
    `get_source("ll")` and `get_source("asm")`, or, for target "c", `get_source("c")` and `get_source("h")`. Without
    `target`, the current target or else `llvm` for this machine. `autosched=True` schedules the program by rule first,
    as `loopwright.autosched.apply` does; `winograd=True` then allows convolutions to be rounded otherwise
    (see "Winograd" in the documentation). A program that was built before comes from the compile cache.

    `name` is what the one function of the program is called, in Python and in C (`loopwright_` before it); without it,
    a function keeps the name it has. A program of several functions has their names already.
    """
    if target_host is not None:
        warnings.warn("target_host is deprecated: use Target(target, host=...)", DeprecationWarning, stacklevel=2)
    args, target = _args_and_target(inputs, args, target)
    if isinstance(inputs, Mapping) and inputs and args is None and target is None:
        return _build_each(inputs, name, ScheduleOptions(autosched, winograd))
    chosen = Target(target) if target is not None else Target.current(allow_none=True) or Target("llvm")
    require_buildable(chosen)
    return _build_module(as_module(inputs, args, name, binds), chosen, ScheduleOptions(autosched, winograd))


def _args_and_target(inputs: object, args: Any, target: TargetLike | None) -> tuple[Any, TargetLike | None]:
    """`build(func, "llvm")` can mean nothing but the target: only a schedule has args."""
    is_target = target is None and isinstance(args, (str, Target, Mapping)) and not is_te_schedule(inputs)
    return (None, args) if is_target else (args, target)


class ScheduleOptions(NamedTuple):
    """How a program is scheduled before it is compiled."""

    autosched: bool = False  # by rule
    winograd: bool | int = False  # which the rules may then use, with tiles of at most that size


def _build_module(module: IRModule, target: Target, options: ScheduleOptions) -> BuiltModule:
    """The module compiled for `target`: found in the cache, or scheduled, checked, lowered, compiled and kept."""
    if _is_source(target) or not cache_is_on():  # compiled when first called, by other compilers
        return _compiled(module, target, options)
    from loopwright.codegen.build_key import build_key
    from loopwright.codegen.compile_cache import find

    start = perf_counter()
    rules = _rules_text(module, target, options)
    key = build_key(module, target, _intrinsic, rules) if rules is not None else None
    named = perf_counter()
    if key is None:
        return _compiled(module, target, options)
    result: BuiltModule | None = find(key, describe(target), _reader(target))
    if result is not None:
        _check_pass_names()
        result.timings = {"key": named - start, **result.timings}
        return result
    built = _compiled(module, target, options)
    _keep(key, built, target)
    built.timings["key"] = named - start
    return built


def _is_source(target: Target) -> bool:
    """Whether what is built is text, for a compiler of C or C++."""
    return target.kind == "c" or (target.kind == "cuda" and target.model == "emulated")


def _reader(target: Target) -> Callable[..., Any] | None:
    """What reads a module for cuda from the cache."""
    if target.kind != "cuda":
        return None
    from loopwright.codegen.source.cuda.kept import cuda_in

    return cuda_in


def _keep(key: str, built: BuiltModule, target: Target) -> None:
    """Keep what was built under `key`; a module for cuda when the code of its host is compiled."""
    from loopwright.codegen.compile_cache import keep, kept_native
    from loopwright.codegen.llvm.native_module import CompiledModule

    seconds = sum(built.timings.values())
    if isinstance(built, CompiledModule):
        keep(key, kept_native(built), str(target), seconds)
        return
    from loopwright.codegen.source.cuda.kept import kept_cuda
    from loopwright.codegen.source.cuda.make_module import LaunchingModule

    if isinstance(built, LaunchingModule) and built.description is not None:
        functions, description = built.compiled, built.description
        functions.when_compiled = lambda host: keep(key, kept_cuda(host, functions, description), str(target), seconds)


def _compiled(module: IRModule, target: Target, options: ScheduleOptions) -> BuiltModule:
    """The module scheduled if so wanted, checked, lowered and compiled for `target`."""
    with progress.task("build") as task:
        return _compiled_in(task, module, target, options)


def _compiled_in(task: progress.Task, module: IRModule, target: Target, options: ScheduleOptions) -> BuiltModule:
    from loopwright.analysis import check_program
    from loopwright.transform import lower as run_pipeline

    begin = perf_counter()
    if options.autosched:
        from loopwright.autosched import apply

        module = apply(module, target, winograd=options.winograd).mod
    if target.kind == "cuda":
        from loopwright.autosched.default_binding import bind_unbound_loops

        verify(module)
        module = bind_unbound_loops(module, target)
    start = perf_counter()
    verify(module)
    module = check_program(module)
    checked = perf_counter()
    lowered = run_pipeline(module, target)
    finished = perf_counter()
    task.now("machine code")
    result = _generate(lowered, target, _entry_name(module))
    scheduled = {"schedule": start - begin} if options.autosched else {}
    result.timings = {**scheduled, "check": checked - start, "lower": finished - checked, **result.timings}
    return result


def _rules_text(module: IRModule, target: Target, options: ScheduleOptions) -> str | None:
    """What a build depends on beside the program and the target; None where that has no text."""
    gpu = ""
    if target.kind == "cuda":
        from loopwright.codegen.source.cuda.images import has_hooks
        from loopwright.target import describe_gpu

        if has_hooks():
            return None  # functions of the user's
        gpu = repr(describe_gpu(target))
    if not options.autosched:
        return gpu
    from loopwright.autosched import Machine
    from loopwright.autosched.gpu.rules import GPU_RULES
    from loopwright.autosched.gpu.rules import __name__ as gpu_rules
    from loopwright.autosched.known import known_schedules
    from loopwright.autosched.rule import names_of
    from loopwright.autosched.rules import rules_in_use
    from loopwright.autosched.rules.winograd.allowed import largest_tile

    winograd = options.winograd
    rules = names_of(GPU_RULES, gpu_rules) if gpu else rules_in_use()
    if rules is None:
        return None
    known: list[str] = []
    source = known_schedules()
    if source is not None:
        functions = [function for _, function in module.functions_items() if isinstance(function, PrimFunc)]
        known = [source.key(function, target, largest_tile(winograd)) for function in functions]
    return " ".join([gpu, "autosched", Machine.of(target).key, f"winograd={winograd!r}", rules, *known])


def _intrinsic(name: str) -> tuple[PrimFunc, PrimFunc] | None:
    """What a tensor intrinsic of that name is in this process."""
    from loopwright.transform.tensor_intrinsics import TensorIntrin

    result = TensorIntrin.get(name, allow_missing=True)
    return None if result is None else (result.desc, result.impl)


def _check_pass_names() -> None:
    """Warn of misspelt pass names, as running the passes would have done."""
    context = PassContext.current()
    if context.disabled_pass or context.required_pass:
        import loopwright.transform  # noqa: F401, whose passes are known by name then

        context.check_names(())


def _build_each(programs: Mapping[Any, object], name: str, options: ScheduleOptions) -> BuiltModule:
    """The module of the first target, which imports those of the others; `programs` says what is built for each."""
    if not all([isinstance(program, (IRModule, PrimFunc)) for program in programs.values()]):
        raise NotBuildable(programs)
    first, *others = [
        build(program, target=target, name=name, autosched=options.autosched, winograd=options.winograd)
        for target, program in programs.items()
    ]
    for module in others:
        first.import_module(module)
    return first


def _generate(lowered: IRModule, target: Target, entry_name: str | None) -> BuiltModule:
    """The runtime Module of a lowered program."""
    if target.kind == "cuda":
        from loopwright.codegen.source.cuda import make_cuda_module
        from loopwright.transform import split_host_device

        return make_cuda_module(split_host_device(lowered), target, describe(target), entry_name)
    if target.kind == "c":
        from loopwright.codegen.source import make_c_module

        return make_c_module(lowered, describe(target), entry_name)
    from loopwright.codegen.llvm import make_module

    return make_module(lowered, describe(target), entry_name)


def _entry_name(module: IRModule) -> str | None:
    names = [str(function.attrs.get("global_symbol", name)) for name, function in module.functions_items()]
    if len(names) == 1:
        return names[0]
    return "main" if "main" in names else None


__all__ = ["build", "lower"]
