"""lower and build: from what a user wrote to what runs.

    te tensors ─┐
    PrimFunc ───┼─► IRModule ─► lower: the pass pipeline ─► codegen ─► runtime Module
    IRModule ───┘
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any

from loopwright.ir.expr import Producer, Var
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.passes import PassContext
from loopwright.ir.verifier import verify
from loopwright.runtime.artifact_store import is_on as cache_is_on
from loopwright.runtime.errors import LoopwrightError, NotBuilt, with_article
from loopwright.target import CpuDescription, Target, describe, require_buildable


class NotBuildable(LoopwrightError, ValueError):
    """`build` or `lower` was given something that is no program.

    For example:

        import loopwright

        loopwright.build("add.py")
    """

    code = "LW0790"

    def __init__(self, given: object) -> None:
        kind = type(given).__name__
        what, why = with_article(kind), None
        if isinstance(given, (list, tuple)):
            what = f"this {kind}" if given else f"an empty {kind}"
            why = next(
                (
                    f"entry {k} of the {kind} is {with_article(type(item).__name__)}"
                    for k, item in enumerate(given)
                    if not isinstance(item, (PrimFunc, IRModule, Producer, Var))
                ),
                "it mixes tensors and functions" if given else None,
            )
        super().__init__(
            f"cannot build {what}",
            why=why,
            hint="give a PrimFunc, an IRModule, or a list of te tensors (inputs, then outputs)",
            fields={"given": kind},
        )


class ArgsWithoutSchedule(LoopwrightError, TypeError):
    """`args` was given for a program that says itself what its parameters are.

    Only a te schedule leaves them open. The second argument of `build` and `lower` is `args`: a target has its name.

    For example:

        import loopwright
        from loopwright import te

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        loopwright.build(te.create_prim_func([A, B]), "llvm")  # target="llvm"
    """

    code = "LW0791"

    def __init__(self, args: object) -> None:
        a_target = isinstance(args, (str, Mapping, Target))
        super().__init__(
            f"args belongs to a schedule, and is {type(args).__name__} {args!r} here",
            hint=f"write target={args!r}" if a_target else "leave args out: the program says what its parameters are",
        )


class BadFunctionName(LoopwrightError, TypeError):
    """A compiled function is found by its name, which is a text that is not empty.

    For example:

        import loopwright
        from loopwright import te

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        loopwright.build([A, B], name="")
    """

    code = "LW0792"

    def __init__(self, name: object) -> None:
        super().__init__(f"{name!r} cannot name a function", hint='give a text, such as name="main"')


class NameClash(LoopwrightError, ValueError):
    """Two functions of one program would be compiled under the same name.

    For example:

        import loopwright
        from loopwright import ir, te

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        func = te.create_prim_func([A, B]).with_attr("global_symbol", "add")
        loopwright.build(ir.IRModule({"first": func, "second": func}))
    """

    code = "LW0793"

    def __init__(self, symbol: str, first: str, second: str) -> None:
        super().__init__(
            f"functions {first} and {second} would both be compiled as {symbol!r}, their global_symbol",
            hint=f'give one another name: function.with_attr("global_symbol", "{second}_2")',
            fields={"symbol": symbol, "functions": (first, second)},
        )


def lower(
    inp: Any, args: Sequence[Any] | None = None, name: str = "main", binds: Any = None, simple_mode: bool = False
) -> IRModule:
    """The program after every lowering pass, ready for code generation; `simple_mode` keeps loops whole."""
    from loopwright.transform import lower as run_pipeline

    return run_pipeline(as_module(inp, args, name, binds), without=["partition_loops"] if simple_mode else [])


def build(
    inputs: Any,
    args: Sequence[Any] | None = None,
    target: str | Target | Mapping[str, Any] | None = None,
    target_host: str | Target | None = None,
    runtime: object = None,
    name: str = "main",
    binds: Any = None,
    autosched: bool = False,
    winograd: bool | int = False,
) -> Any:
    """A runtime Module of native functions from a PrimFunc, an IRModule, te tensors, or `{target: IRModule}`.

    The module is callable (its entry function), holds each function by name, and shows its source with
    `get_source("ll")` and `get_source("asm")`, or, for target "c", `get_source("c")` and `get_source("h")`. Without
    `target`, the current target or else `llvm` for this machine. `autosched=True` schedules the program by rule first,
    as `loopwright.autosched.apply` does; `winograd=True` then allows convolutions to be rounded otherwise
    (docs/winograd.md). A program that was built before comes from the compile cache (docs/cache.md).
    """
    if target_host is not None:
        warnings.warn("target_host is deprecated: use Target(target, host=...)", DeprecationWarning, stacklevel=2)
    if isinstance(inputs, Mapping) and inputs and args is None and target is None:
        return _build_each(inputs, autosched, winograd)
    chosen = Target(target) if target is not None else Target.current(allow_none=True) or Target("llvm")
    require_buildable(chosen)
    return _build_module(as_module(inputs, args, name, binds), chosen, autosched, winograd)


def _build_module(module: IRModule, target: Target, autosched: bool, winograd: bool | int) -> Any:
    """The module compiled for `target`: found in the cache, or scheduled, checked, lowered, compiled and kept."""
    if target.kind == "c" or not cache_is_on():  # C is compiled when it is first called, by another compiler
        return _compiled(module, target, autosched, winograd)
    from loopwright.codegen.build_key import build_key
    from loopwright.codegen.compile_cache import find, keep

    start = perf_counter()
    rules = _rules_text(target, winograd) if autosched else ""
    key = build_key(module, target, _intrinsic, rules) if rules is not None else None
    named = perf_counter()
    if key is None:
        return _compiled(module, target, autosched, winograd)
    made = find(key, describe(target))
    if made is not None:
        _check_pass_names()
        made.timings = {"key": named - start, **made.timings}
        return made
    made = _compiled(module, target, autosched, winograd)
    keep(key, made, str(target), sum(made.timings.values()))
    made.timings["key"] = named - start
    return made


def _compiled(module: IRModule, target: Target, autosched: bool, winograd: bool | int) -> Any:
    """The module scheduled if so wanted, checked, lowered and compiled for `target`."""
    from loopwright.analysis import check_program
    from loopwright.transform import lower as run_pipeline

    begin = perf_counter()
    if autosched:
        from loopwright.autosched import apply

        module = apply(module, target, winograd=winograd).mod
    start = perf_counter()
    verify(module)
    check_program(module)
    checked = perf_counter()
    lowered = run_pipeline(module, target)
    finished = perf_counter()
    made = _code_generator(target)(lowered, describe(target), _entry_name(module))
    scheduled = {"schedule": start - begin} if autosched else {}
    made.timings = {**scheduled, "check": checked - start, "lower": finished - checked, **made.timings}
    return made


def _rules_text(target: Target, winograd: bool | int) -> str | None:
    """What scheduling by rule depends on beside the program and the target; None where that has no text."""
    from loopwright.autosched import RULES, Machine

    rules = [type(rule) for rule in RULES]
    if not all(rule.__module__.startswith("loopwright.autosched.rules.") for rule in rules):
        return None  # a user's rule may change between two builds
    names = [rule.__qualname__ for rule in rules]
    return " ".join(["autosched", str(Machine.of(target).cores), f"winograd={winograd!r}", *names])


def _intrinsic(name: str) -> tuple[PrimFunc, PrimFunc] | None:
    """What a tensor intrinsic of that name is in this process."""
    from loopwright.transform.tensor_intrinsics import TensorIntrin

    found = TensorIntrin.get(name, allow_missing=True)
    return None if found is None else (found.desc, found.impl)


def _check_pass_names() -> None:
    """Warn of misspelt pass names, as running the passes would have done."""
    context = PassContext.current()
    if context.disabled_pass or context.required_pass:
        import loopwright.transform  # whose passes are known by name then

        context.check_names(())


def _build_each(programs: Mapping[Any, Any], autosched: bool, winograd: bool | int) -> Any:
    """The module of the first target, which imports those of the others; `programs` says what is built for each."""
    if not all([isinstance(program, (IRModule, PrimFunc)) for program in programs.values()]):
        raise NotBuildable(programs)
    first, *others = [
        build(program, target=target, autosched=autosched, winograd=winograd) for target, program in programs.items()
    ]
    for module in others:
        first.import_module(module)
    return first


def _code_generator(target: Target) -> Callable[[IRModule, CpuDescription, str | None], Any]:
    """What makes a runtime Module for targets of that kind."""
    if target.kind == "c":
        from loopwright.codegen.source import make_c_module

        return make_c_module
    from loopwright.codegen.llvm import make_module

    return make_module


def as_module(inputs: Any, args: Sequence[Any] | None = None, name: str = "main", binds: Any = None) -> IRModule:
    """The IRModule that `inputs` stands for; `args` and `binds` belong to a te schedule."""
    if not isinstance(name, str) or not name:
        raise BadFunctionName(name)
    if _is_te_schedule(inputs):
        from loopwright.te.schedule.to_module import schedule_to_module

        return schedule_to_module(inputs, args, name, binds)
    if args is not None:
        raise ArgsWithoutSchedule(args)
    _refuse_binds(binds)
    if _is_tir_schedule(inputs):
        inputs = inputs.mod
    if isinstance(inputs, IRModule):
        _require_distinct_symbols(inputs.functions_items())
        return inputs
    if isinstance(inputs, PrimFunc):
        # A name that is asked for wins over the function's own; the default is no wish.
        symbol = name if name != "main" else inputs.attrs.get("global_symbol", name)
        return IRModule({str(symbol): inputs.with_attr("global_symbol", symbol)})
    from loopwright import te

    if isinstance(inputs, te.Tensor):
        inputs = [inputs]
    if isinstance(inputs, (list, tuple)) and inputs:
        # Variables are parameters too; a list of nothing else computes nothing, and create_prim_func says so.
        if all(isinstance(item, (te.Tensor, Var)) for item in inputs):
            return IRModule({name: te.create_prim_func(inputs).with_attr("global_symbol", name)})
        if all(isinstance(item, (PrimFunc, IRModule)) for item in inputs):
            modules = [as_module(item) for item in inputs]
            _require_distinct_symbols([item for module in modules for item in module.functions_items()])
            merged = IRModule()
            for module in modules:
                merged.update(module)
            return merged
    raise NotBuildable(inputs)


def _is_te_schedule(inputs: object) -> bool:
    """Whether this is a te schedule; te is not loaded to find out."""
    te = sys.modules.get("loopwright.te.schedule.schedule")
    return te is not None and isinstance(inputs, te.Schedule)


def _is_tir_schedule(inputs: object) -> bool:
    schedule = sys.modules.get("loopwright.schedule.schedule")
    return schedule is not None and isinstance(inputs, schedule.Schedule)


def _require_distinct_symbols(functions: Iterable[tuple[str, PrimFunc]]) -> None:
    seen: dict[str, str] = {}
    for key, function in functions:
        symbol = str(function.attrs.get("global_symbol", key))
        if symbol in seen:
            raise NameClash(symbol, seen[symbol], key)
        seen[symbol] = key


def _refuse_binds(binds: object) -> None:
    # Leaving them out in silence would build another program than the one asked for.
    if binds is not None:
        raise NotBuilt("binding tensors to buffers of one's own", "binds belongs to a te schedule: leave it out here")


def _entry_name(module: IRModule) -> str | None:
    names = [str(function.attrs.get("global_symbol", name)) for name, function in module.functions_items()]
    if len(names) == 1:
        return names[0]
    return "main" if "main" in names else None


__all__ = ["ArgsWithoutSchedule", "BadFunctionName", "NameClash", "NotBuildable", "as_module", "build", "lower"]
