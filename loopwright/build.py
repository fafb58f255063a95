"""lower and build: from what a user wrote to what runs.

    te tensors ─┐
    PrimFunc ───┼─► IRModule ─► lower: the pass pipeline ─► codegen ─► runtime Module
    IRModule ───┘
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.passes import PassContext
from loopwright.ir.verifier import verify
from loopwright.runtime.errors import LoopwrightError, NotBuilt
from loopwright.target import Target, describe, require_buildable


class NotBuildable(LoopwrightError, ValueError):
    """`build` or `lower` was given something that is no program."""

    code = "LW0790"

    def __init__(self, given: object) -> None:
        super().__init__(
            f"cannot build a {type(given).__name__}",
            hint="give a PrimFunc, an IRModule, or a list of te tensors (inputs, then outputs)",
            fields={"given": type(given).__name__},
        )


def lower(
    inp: Any, args: Sequence[Any] | None = None, name: str = "main", binds: Any = None, simple_mode: bool = False
) -> IRModule:
    """The program after every lowering pass, ready for code generation; `simple_mode` keeps loops whole."""
    from loopwright.transform import lower as run_pipeline

    module = as_module(inp, args, name)
    if not simple_mode:
        return run_pipeline(module)
    current = PassContext.current()
    with PassContext(
        opt_level=current.opt_level,
        disabled_pass=[*current.disabled_pass, "partition_loops"],
        instruments=current.instruments,
        config=current.config,
    ):
        return run_pipeline(module)


def build(
    inputs: Any,
    args: Sequence[Any] | None = None,
    target: str | Target | Mapping[str, Any] | None = None,
    target_host: str | Target | None = None,
    runtime: object = None,
    name: str = "main",
    binds: Any = None,
) -> Any:
    """A runtime Module of native functions from a PrimFunc, an IRModule, or te tensors.

    The module is callable (its entry function), holds each function by name, and shows its source with
    `get_source("ll")` and `get_source("asm")`. Without `target`, the current target or else `llvm` for this machine.
    """
    from loopwright.analysis import check_program
    from loopwright.codegen.llvm import make_module
    from loopwright.transform import lower as run_pipeline

    if target_host is not None:
        warnings.warn("target_host is deprecated: use Target(target, host=...)", DeprecationWarning, stacklevel=2)
    start = perf_counter()
    chosen = Target(target) if target is not None else Target.current(allow_none=True) or Target("llvm")
    require_buildable(chosen)
    if chosen.kind != "llvm":
        raise NotBuilt(f"code generation for target {chosen.kind}", 'build for target "llvm"')
    module = as_module(inputs, args, name)
    verify(module)
    check_program(module)
    checked = perf_counter()
    lowered = run_pipeline(module, chosen)
    finished = perf_counter()
    made = make_module(lowered, describe(chosen), _entry_name(module))
    made.timings = {"check": checked - start, "lower": finished - checked, **made.timings}
    return made


def as_module(inputs: Any, args: Sequence[Any] | None = None, name: str = "main") -> IRModule:
    """The IRModule that `inputs` stands for."""
    if isinstance(inputs, IRModule):
        return inputs
    if isinstance(inputs, PrimFunc):
        symbol = inputs.attrs.get("global_symbol", name)
        return IRModule({str(symbol): inputs.with_attr("global_symbol", symbol)})
    from loopwright import te

    if isinstance(inputs, te.Tensor):
        inputs = [inputs]
    if isinstance(inputs, (list, tuple)) and inputs:
        if all(isinstance(item, te.Tensor) for item in inputs):
            return IRModule({name: te.create_prim_func(inputs).with_attr("global_symbol", name)})
        if all(isinstance(item, (PrimFunc, IRModule)) for item in inputs):
            module = IRModule()
            for item in inputs:
                module.update(as_module(item))
            return module
    raise NotBuildable(inputs)


def _entry_name(module: IRModule) -> str | None:
    names = [str(function.attrs.get("global_symbol", name)) for name, function in module.functions_items()]
    if len(names) == 1:
        return names[0]
    return "main" if "main" in names else None


__all__ = ["NotBuildable", "as_module", "build", "lower"]
