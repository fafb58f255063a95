"""Our side: the program as a callable on tensors of ours, scheduled without measurements."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from benchmarks.bench.case import Array, Problem, Run, aligned
from benchmarks.bench.peers import Contender


def build(program: Any, name: str = "main") -> Any:
    """The compiled module; without the autosched layer, the loops as they were written."""
    import loopwright as lw

    if has_autosched():
        return lw.build(program, name=name, autosched=True)  # type: ignore[call-arg,unused-ignore]
    return lw.build(program, name=name)


def build_winograd(program: Any, tile: int) -> Any:
    """The compiled module of a function whose convolution is computed by winograd, or None where the rule does not."""
    import loopwright as lw
    from loopwright import autosched

    plan = autosched.apply(program, winograd=tile)
    is_taken = any(decision.rule == "winograd" for decision in plan.decisions)
    return lw.build(plan.mod) if is_taken else None


def has_autosched() -> bool:
    """Whether `build` can schedule by itself."""
    import loopwright as lw

    return "autosched" in inspect.signature(lw.build).parameters


def contender(module: Any, problem: Problem) -> Contender:
    """A call of the compiled kernel on the problem's inputs and outputs of its own."""
    outputs = [aligned(x.shape, str(x.dtype)) for x in problem.outputs]
    return Contender(call(module, [*problem.inputs, *outputs]), lambda: outputs)


def call(module: Any, arrays: Sequence[Array]) -> Run:
    """The kernel's call, its arguments made into tensors once: peers get their own kind of array, too."""
    tensors = [_tensor(x) for x in arrays]
    function = module["main"]
    return lambda: function(*tensors)


def _tensor(x: Array) -> Any:
    """The array's memory; numpy does not export a type that is not its own."""
    import loopwright as lw

    if x.dtype.kind == "V" or x.dtype.name == "bfloat16":
        from loopwright.runtime.dlpack import capsule

        return lw.nd.from_dlpack(capsule(x, lw.DataType(x.dtype.name)))
    return lw.nd.from_dlpack(x)
