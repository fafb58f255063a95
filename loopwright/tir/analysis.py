"""`tir.analysis`: questions about programs, under the names scripts know."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from loopwright.analysis import *  # noqa: F403
from loopwright.analysis import check_bounds, costs
from loopwright.analysis.costs import *  # noqa: F403
from loopwright.analysis.gpu_limits import verify_gpu_code
from loopwright.analysis.memory_copies import identify_memcpy
from loopwright.analysis.queries import *  # noqa: F403
from loopwright.ir import Block, Buffer, IRModule, PointerType, PrimFunc, PrimType, Var, substitute
from loopwright.ir.pass_combinators import Apply
from loopwright.ir.passes import Pass
from loopwright.ir.verifier import verify_well_formed


def OOBChecker() -> Pass:
    """A pass that changes nothing and raises when an access is out of bounds."""

    def check(func: Any) -> Any:
        check_bounds(func)
        return func

    return Apply(check)


_identify_memcpy = identify_memcpy  # scripts know it by this name, and as one of `_ffi_api`
_ffi_api = sys.modules[__name__]


def calculate_allocated_bytes(  # type: ignore[no-redef]  # ours without the name
    func_or_mod: PrimFunc | IRModule,
) -> dict[str, dict[str, int]]:
    """{function: {scope: bytes allocated in it}}; a function alone is called "main"."""
    sizes = costs.calculate_allocated_bytes(func_or_mod)
    return {"main": sizes} if isinstance(func_or_mod, PrimFunc) else sizes


def get_vtcm_compaction_passes() -> list[Pass]:
    """The passes after which `calculate_allocated_bytes` says what a scheduled function needs, in their order."""
    passes = import_module("loopwright.tir.transform")
    names = (
        "LowerInitBlock PlanAndUpdateBufferAllocationLocation ConvertBlocksToOpaque CompactBufferAllocation "
        "LowerMatchBuffer InjectSoftwarePipeline LowerOpaqueBlock FlattenBuffer Simplify VectorizeLoop StorageRewrite"
    )
    return [getattr(passes, name)() for name in names.split()]


def get_prim_func_arg_and_result_memory_constraints(func: PrimFunc, relay_func_type: object) -> list[str]:
    """The scope of the memory of each parameter; empty for global memory and for what is no buffer."""
    scopes = [func.buffer_map[param].scope() if param in func.buffer_map else "" for param in func.params]
    return ["" if scope == "global" else scope for scope in scopes]


def apply_prim_func_arg_and_result_memory_constraints(
    func: PrimFunc, relay_func_type: object, arg_and_result_memory_scopes: Sequence[str]
) -> PrimFunc:
    """The function with the memory of its parameters in these scopes; an empty one changes nothing."""
    replaced: dict[Buffer, Buffer] = {}
    for param, scope in zip(func.params, arg_and_result_memory_scopes, strict=True):
        buffer = func.buffer_map.get(param)
        if buffer is not None and scope and scope != buffer.scope():
            data = Var(buffer.data.name, PointerType(PrimType(buffer.dtype), scope))
            replaced[buffer] = buffer.with_(data=data)
    data_of = {old.data: new.data for old, new in replaced.items()}
    body = substitute(func.body, data_of, replaced)
    buffers = {param: replaced.get(buffer, buffer) for param, buffer in func.buffer_map.items()}
    return func.with_(body=body, buffer_map=buffers)
