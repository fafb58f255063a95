"""precompute_constants: what depends on constants alone is computed now, once, and is a constant itself.

    W = the values of an AllocateConst                         packed = its values, another AllocateConst
    for k, j in T.grid(1024, 1024):                       →    for i, j, k in T.grid(8, 1024, 1024):
        packed[j // 16, k, j % 16] = W[k, j]                       C[i, j] += A[i, k] * packed[j // 16, k, j % 16]
    for i, j, k in T.grid(8, 1024, 1024):
        C[i, j] += A[i, k] * packed[j // 16, k, j % 16]

The statements (`constant_prologue.py`) become a function of their own, which is compiled and run here: weights of many
megabytes take milliseconds. Code for a machine that is not this one runs here as code for this one, if it must give the
same bits; else (exp, or a multiply-add that rounds once there and twice here) the work is left where it was.

A function with the attribute `precompute_constants` False stays as it is.
Needs: blocks, in a root block.  Leaves: no constant that nobody reads.
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from loopwright.analysis import check_program
from loopwright.ir import AllocateConst, DeclBuffer, IRModule, PrimFunc, deep
from loopwright.ir.pass_context import PassContext
from loopwright.ir.passes import PrimFuncPass, function_pass
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.ffi import PackedFunction
from loopwright.target import CpuDescription, Target, describe
from loopwright.transform.parts.constant_prologue import EarlyPart, constant_prologue, early_function
from loopwright.transform.parts.constant_work import bytes_of_constant, shape_of, top_of
from loopwright.transform.parts.cpu_of import target_of

_NAME: Final = "precompute"


class Lower(Protocol):
    """The pipeline that this pass is part of: what is computed now is lowered like everything else."""

    def __call__(self, program: IRModule, target: Target) -> IRModule: ...


def precompute_constants_with(lower: Lower) -> PrimFuncPass:
    """The pass, which compiles what depends on constants alone by `lower`."""

    @function_pass
    @deep
    def precompute_constants(func: PrimFunc) -> PrimFunc:
        """What depends on constants alone is computed now, once, and is a constant itself."""
        top = top_of(func)
        if top is None:
            return func
        constants = {var: bytes_of_constant(node) for var, node in top.constants().items()}
        target, is_same = place_to_run(target_of(func))
        part = constant_prologue(top, constants, exact=not is_same)
        if part is None:
            return func
        values = _run(part, target, lower)
        if values is None:
            return func
        rest = part.rest
        for buffer, array in zip(reversed(part.results), reversed(values), strict=True):
            rest = AllocateConst(buffer.data, buffer.dtype, buffer.shape, array, DeclBuffer(buffer, rest))
        return func.with_(body=top.root.with_(block=top.root.block.with_(body=rest, alloc_buffers=part.kept)))

    return precompute_constants


def place_to_run(target: Target) -> tuple[Target, bool]:
    """What to compile work for that is done now, and whether that computes what `target` would in every case."""
    if target.kind == "llvm" and runs_here(describe(target)):
        return target, True
    return Target("llvm"), describe(target).is_host


def runs_here(cpu: CpuDescription) -> bool:
    """Whether this machine runs code for `cpu`."""
    from loopwright.codegen.llvm.load_object import is_runnable

    return cpu.is_host or is_runnable(cpu)


def _run(part: EarlyPart, target: Target, lower: Lower) -> list[np.ndarray] | None:
    """The values of the results; None when the statements fail, as the call would find out, too."""
    inputs = [node for node in part.wrappers if isinstance(node, AllocateConst)]
    func = early_function(part, _NAME)
    try:
        func = check_program(func)
    except LoopwrightError:
        return None  # the whole program is checked with its user's words
    compiled = _compiled(func, target, lower)
    arrays = [np.zeros(shape_of(buffer), buffer.dtype.numpy()) for buffer in part.results]
    given = [np.ascontiguousarray(np.asarray(node.data, node.dtype.numpy())) for node in inputs]
    try:
        compiled(*given, *arrays)
    except LoopwrightError:
        return None
    for array in arrays:
        array.flags.writeable = False
    return arrays


def _compiled(func: PrimFunc, target: Target, lower: Lower) -> PackedFunction:
    from loopwright.codegen.llvm import make_module

    outer = PassContext.current()
    # As the function itself is lowered, so that it computes the same bits; but nobody watches, and no pass joins in.
    config = {key: value for key, value in outer.config.items() if key != "tir.add_lower_pass"}
    with PassContext(outer.opt_level, outer.required_pass, outer.disabled_pass, config=config):
        return make_module(lower(IRModule({_NAME: func}), target), describe(target), _NAME)


__all__ = ["place_to_run", "precompute_constants_with", "runs_here"]
