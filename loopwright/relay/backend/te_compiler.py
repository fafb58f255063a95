"""te_compiler: single functions of a graph as kernels, without a model around them.

    kernel = relay.backend.te_compiler.get().lower(function, "llvm")       its loops
    run = relay.backend.te_compiler.get().jit(function, "llvm")            compiled: inputs, then outputs

`relay.build` needs none of this: it keeps kernels by what they compute, in the compile cache.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from loopwright import te
from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.structural_hash import structural_digest
from loopwright.ir.types import Type
from loopwright.model import compile_program
from loopwright.model.program import Launch, Program, Value
from loopwright.relay.expr import Function
from loopwright.relay.infer_type import infer_module
from loopwright.relay.lower.lower_function import Lowered, lower_function
from loopwright.relay.op.registry import Op, Operator
from loopwright.relay.op.strategies import OpImplementation, valid_implementations
from loopwright.relay.op.strategies import select_implementation as selected
from loopwright.relay.types import known_sizes
from loopwright.runtime.module import Module
from loopwright.target import Target, TargetLike


class CachedFunc:
    """A lowered function: `prim_func`, and the module that holds it under `prim_fn_var`."""

    def __init__(self, lowered: Lowered, target: Target) -> None:
        self.lowered = lowered
        self.prim_func: PrimFunc = lowered.func
        self.target = target
        self.prim_fn_var = GlobalVar(lowered.name)
        self.funcs = IRModule({lowered.name: lowered.func})

    def same_as(self, other: object) -> bool:
        """Whether both are one object: equal functions for equal targets are lowered once."""
        return self is other


class TECompiler:
    """Lowers functions of operators, each once."""

    def __init__(self) -> None:
        self._lowered: dict[tuple[object, str], CachedFunc] = {}
        self._built: dict[CachedFunc, Module] = {}

    def lower(self, source_func: Function, target: TargetLike | None = None, mod_name: str = "default") -> CachedFunc:
        """The loops of a function whose body is operators alone."""
        chosen = Target(target) if target is not None else Target.current(allow_none=True) or Target("llvm")
        if not isinstance(source_func, Function):
            raise TypeError(f"TECompiler.lower takes a function of a graph, not {type(source_func).__name__}")
        infer_module(IRModule({"main": source_func}))  # type: ignore[dict-item]
        key = (structural_digest(source_func), str(chosen))
        result = self._lowered.get(key)
        if result is None:
            result = self._lowered[key] = CachedFunc(lower_function(source_func), chosen)
        return result

    def jit(self, source_func: Function, target: TargetLike | None = None) -> Module:
        """The function compiled: what is called with its inputs and then its outputs."""
        lowered = self.lower(source_func, target)
        result = self._built.get(lowered)
        if result is None:
            result = self._built[lowered] = _compiled(lowered.lowered, lowered.target)
        return result

    def clear(self) -> None:
        """Forget what was lowered."""
        self._lowered.clear()
        self._built.clear()

    def items(self) -> list[tuple[object, CachedFunc]]:
        """What was lowered, by what names it."""
        return list(self._lowered.items())


def _compiled(kernel: Lowered, target: Target) -> Module:
    """A model of one launch."""
    inputs, outputs = (
        [Value(f"{name}{k}", known_sizes(of), str(of.dtype)) for k, of in enumerate(types)]
        for name, types in (("p", kernel.inputs), ("output", kernel.outputs))
    )
    launch = Launch(kernel.func, (*inputs, *outputs), len(outputs), (), kernel.name)
    return compile_program(Program(kernel.name, inputs, outputs, {}, [launch]), target)


@functools.cache
def get() -> TECompiler:
    """The one of this process."""
    return TECompiler()


def lower_to_primfunc(relay_func: Function, target: TargetLike) -> PrimFunc:
    """The loops of a function whose body is operators alone."""
    return get().lower(relay_func, target).prim_func


def get_valid_implementations(
    op: Op, attrs: Operator, inputs: Sequence[te.Tensor], out_type: Type, target: TargetLike
) -> list[OpImplementation]:
    """The implementations of an operator whose conditions hold for these inputs."""
    return valid_implementations(op, attrs, inputs, out_type, Target(target))


def select_implementation(
    op: Op,
    attrs: Operator,
    inputs: Sequence[te.Tensor],
    out_type: Type,
    target: TargetLike,
    use_autotvm: bool = True,  # there is no search whose records could be asked
) -> tuple[OpImplementation, list[te.Tensor]]:
    """The implementation that computes a call of an operator, and what it computes."""
    return selected(op, attrs, inputs, out_type, Target(target))


__all__ = [
    "CachedFunc",
    "TECompiler",
    "get",
    "get_valid_implementations",
    "lower_to_primfunc",
    "select_implementation",
]
