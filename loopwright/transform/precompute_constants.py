"""precompute_constants: what depends on constants alone is computed now, once, and is a constant itself.

    W = the values of an AllocateConst                         packed = its values, another AllocateConst
    for k, j in T.grid(1024, 1024):                       →    for i, j, k in T.grid(8, 1024, 1024):
        packed[j // 16, k, j % 16] = W[k, j]                       C[i, j] += A[i, k] * packed[j // 16, k, j % 16]
    for i, j, k in T.grid(8, 1024, 1024):
        C[i, j] += A[i, k] * packed[j // 16, k, j % 16]

The statements (see `constant_work.py`) become a function of their own, which is compiled and run here: weights of many
megabytes take milliseconds. Code for a machine that is not this one runs here as code for this one, if it must give the
same bits; else (exp, or a multiply-add that rounds once there and twice here) the work is left where it was.

A function with the attribute `precompute_constants` False stays as it is.
Needs: blocks, in a root block.  Leaves: no constant that nobody reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from loopwright.analysis import check_program
from loopwright.ir import (
    AllocateConst,
    Block,
    BlockRealize,
    Buffer,
    DeclBuffer,
    IRModule,
    PrimFunc,
    Stmt,
    Var,
    const,
    decl_buffer,
    deep,
    seq,
)
from loopwright.ir.pass_context import PassContext
from loopwright.ir.passes import function_pass
from loopwright.runtime.errors import LoopwrightError
from loopwright.target import CpuDescription, Target, describe
from loopwright.transform.constant_work import MARK, Wrapper, constant_work, look, shape_of, top_of
from loopwright.transform.cpu_of import target_of

_NAME: Final = "precompute"


@function_pass
@deep
def precompute_constants(func: PrimFunc) -> PrimFunc:
    """What depends on constants alone is computed now, once, and is a constant itself."""
    top = top_of(func)
    if top is None:
        return func
    root, constants = top.root, top.constants()
    own = {buffer.data: buffer for buffer in root.block.alloc_buffers}
    if not constants or not own:
        return func
    target, is_same = _place_to_run(func)
    works = [look(statement) for statement in top.statements]
    if not is_same:
        works = [replace(work, can_be_early=work.can_be_early and work.is_exact) for work in works]
    places = constant_work(works, own, constants)
    if not places:
        return func
    done = {var for place in places for var in works[place].writes}
    later = {var for place, work in enumerate(works) if place not in places for var in work.touches}
    results = [own[var] for var in own if var in done & later]
    statements = [top.statements[place] for place in places]
    temporaries = [own[var] for var in own if var in done - later]
    early = {var for place in places for var in works[place].touches}
    needed = [wrapper for wrapper in top.wrappers if _memory(wrapper) in early]
    values = _run(statements, needed, results, temporaries, target)
    if values is None:
        return func
    rest = seq([statement for place, statement in enumerate(top.statements) if place not in places])
    for wrapper in reversed(top.wrappers):
        if _memory(wrapper) in later or _memory(wrapper) not in early:
            rest = wrapper.with_(body=rest)
    for buffer, array in zip(reversed(results), reversed(values), strict=True):
        rest = AllocateConst(buffer.data, buffer.dtype, buffer.shape, array, DeclBuffer(buffer, rest))
    kept = tuple([buffer for buffer in root.block.alloc_buffers if buffer.data not in done])
    return func.with_(body=root.with_(block=root.block.with_(body=rest, alloc_buffers=kept)))


def _memory(wrapper: Wrapper) -> Var:
    return wrapper.buffer_var if isinstance(wrapper, AllocateConst) else wrapper.buffer.data


def _place_to_run(func: PrimFunc) -> tuple[Target, bool]:
    """What to compile the work for, and whether that computes what the function would in every case."""
    target = target_of(func)
    if target.kind == "llvm" and runs_here(describe(target)):
        return target, True
    return Target("llvm"), describe(target).is_host


def runs_here(cpu: CpuDescription) -> bool:
    """Whether this machine runs code for `cpu`."""
    from loopwright.codegen.llvm.load_object import is_runnable

    return cpu.is_host or is_runnable(cpu)


def _run(
    statements: Sequence[Stmt],
    wrappers: Sequence[Wrapper],
    results: Sequence[Buffer],
    temporaries: Sequence[Buffer],
    target: Target,
) -> list[np.ndarray] | None:
    """The values of `results`, computed by the statements; None when they fail, as the call would find out, too."""
    inputs = [node for node in wrappers if isinstance(node, AllocateConst)]
    func = _function(statements, wrappers, results, temporaries)
    try:
        check_program(IRModule({_NAME: func}))
    except LoopwrightError:
        return None  # the whole program is checked with its user's words
    compiled = _compiled(func, target)
    arrays = [np.zeros(shape_of(buffer), buffer.dtype.numpy()) for buffer in results]
    given = [np.ascontiguousarray(np.asarray(node.data, node.dtype.numpy())) for node in inputs]
    try:
        compiled(*given, *arrays)
    except LoopwrightError:
        return None
    for array in arrays:
        array.flags.writeable = False
    return arrays


def _function(
    statements: Sequence[Stmt], wrappers: Sequence[Wrapper], results: Sequence[Buffer], temporaries: Sequence[Buffer]
) -> PrimFunc:
    """The statements as a function of the constants, so that its code holds none of them."""
    body = seq(statements)
    params: list[Buffer] = []
    for wrapper in reversed(wrappers):
        if isinstance(wrapper, DeclBuffer):
            body = wrapper.with_(body=body)
        else:
            memory = wrapper.buffer_var
            params.insert(0, decl_buffer(wrapper.extents, wrapper.dtype, memory.name, data=memory))
    root = Block((), (), (), "root", body, alloc_buffers=tuple(temporaries))
    attrs = {"global_symbol": _NAME, MARK: False}
    return PrimFunc([*params, *results], BlockRealize((), const(True), root), attrs=attrs)


def _compiled(func: PrimFunc, target: Target) -> Any:
    from loopwright.codegen.llvm import make_module
    from loopwright.transform.pipeline import lower

    outer = PassContext.current()
    # As the function itself is lowered, so that it computes the same bits; but nobody watches, and no pass joins in.
    config = {key: value for key, value in outer.config.items() if key != "tir.add_lower_pass"}
    with PassContext(outer.opt_level, outer.required_pass, outer.disabled_pass, config=config):
        return make_module(lower(IRModule({_NAME: func}), target), describe(target), _NAME)


__all__ = ["precompute_constants", "runs_here"]
