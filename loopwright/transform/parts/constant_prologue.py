"""constant_prologue: the statements of a function that depend on constants alone, apart from the rest of it.

    packed[j // 16, k, j % 16] = W[k, j]        the early part: W → packed
    C[i, j] += A[i, k] * packed[…]              the rest: it finds `packed` ready

Constants are the `AllocateConst` of a function, and those of its parameters that the attribute `constant_params` names
by position: whoever calls the function knows their content long before. `precompute_constants` computes the early part
of the former now. `part_function` makes two functions of one, for a caller that runs the early one once:

    early(W, packed)    rest(A, C, packed)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from loopwright.ir import (
    AllocateConst,
    Block,
    BlockRealize,
    Buffer,
    DeclBuffer,
    PrimFunc,
    Stmt,
    Var,
    const,
    decl_buffer,
    seq,
)
from loopwright.ir.annotations import CONSTANT_PARAMS
from loopwright.transform.parts.constant_work import MARK, Top, Wrapper, constant_work, look, size_of, top_of


class EarlyPart(NamedTuple):
    """Constant work, and what is left."""

    statements: list[Stmt]
    results: list[Buffer]  # what the rest reads of it
    temporaries: list[Buffer]
    wrappers: list[Wrapper]  # declarations that the statements need
    rest: Stmt  # with the declarations it needs, those of results left out
    kept: tuple[Buffer, ...]  # the root's buffers that are the rest's
    touched_later: set[Var]


def constant_prologue(top: Top, constants: Mapping[Var, int], exact: bool) -> EarlyPart | None:
    """The constant work under `top`; `constants` have bytes. With `exact` only what gives the same bits everywhere."""
    own = {buffer.data: buffer for buffer in top.root.block.alloc_buffers}
    if not constants or not own:
        return None
    works = [look(statement) for statement in top.statements]
    if exact:
        works = [replace(work, can_be_early=work.can_be_early and work.is_exact) for work in works]
    locations = constant_work(works, own, constants)
    if not locations:
        return None
    done = {var for location in locations for var in works[location].writes}
    later = {var for index, work in enumerate(works) if index not in locations for var in work.touches}
    early = {var for location in locations for var in works[location].touches}
    rest = seq([statement for index, statement in enumerate(top.statements) if index not in locations])
    for wrapper in reversed(top.wrappers):
        if _memory(wrapper) in later or _memory(wrapper) not in early:
            rest = wrapper.with_(body=rest)
    return EarlyPart(
        [top.statements[location] for location in locations],
        [own[var] for var in own if var in done & later],
        [own[var] for var in own if var in done - later],
        [wrapper for wrapper in top.wrappers if _memory(wrapper) in early],
        rest,
        tuple([buffer for buffer in top.root.block.alloc_buffers if buffer.data not in done]),
        later,
    )


def early_function(part: EarlyPart, name: str, given: Sequence[Buffer] = ()) -> PrimFunc:
    """The early part as a function of its constants (`given`, then those it declares), so that its code holds none."""
    body = seq(part.statements)
    params: list[Buffer] = []
    for wrapper in reversed(part.wrappers):
        if isinstance(wrapper, DeclBuffer):
            body = wrapper.with_(body=body)
        else:
            memory = wrapper.buffer_var
            params.insert(0, decl_buffer(wrapper.extents, wrapper.dtype, memory.name, data=memory))
    root = Block((), (), (), "root", body, alloc_buffers=tuple(part.temporaries))
    attrs = {"global_symbol": name, MARK: False}
    return PrimFunc([*given, *params, *part.results], BlockRealize((), const(True), root), attrs=attrs)


class Parted(NamedTuple):
    """A function in two. Positions are those of the function's parameters."""

    early: PrimFunc
    reads: tuple[int, ...]  # the parameters that `early` takes, before its results
    results: tuple[Buffer, ...]
    rest: PrimFunc
    keeps: tuple[int, ...]  # the parameters that `rest` takes, before the early results


def constant_params(func: PrimFunc) -> dict[Var, int]:
    """The memory of the parameters that are constants, and their positions."""
    result: dict[Var, int] = {}
    named: Any = func.attrs.get(CONSTANT_PARAMS, ())
    for position in map(int, named):
        buffer = func.buffer_map.get(func.params[position])
        if buffer is not None:
            result[buffer.data] = position
    return result


def part_function(func: PrimFunc, exact: bool) -> Parted | None:
    """The function in two parts, of which one depends on its constant parameters alone; None where nothing does."""
    positions = constant_params(func)
    top = top_of(func)
    if top is None or not positions:
        return None
    buffers = {var: func.buffer_map[func.params[position]] for var, position in positions.items()}
    sizes = {var: size_of(buffer) for var, buffer in buffers.items()}
    known = {var: size for var, size in sizes.items() if size is not None}
    part = constant_prologue(top, known, exact)
    if part is None or any(isinstance(wrapper, AllocateConst) for wrapper in part.wrappers):
        return None
    touched = {var for statement in part.statements for var in look(statement).reads}
    reads = tuple(sorted(positions[var] for var in known if var in touched))
    gone = {positions[var] for var in known if var in touched and var not in part.touched_later}
    keeps = tuple(position for position in range(len(func.params)) if position not in gone)
    early = early_function(part, f"{func.name}_early", [func.buffer_map[func.params[position]] for position in reads])
    root = top.root.with_(block=top.root.block.with_(body=part.rest, alloc_buffers=part.kept))
    attrs = {key: value for key, value in func.attrs.items() if key != CONSTANT_PARAMS}
    params = [func.buffer_map.get(func.params[position], func.params[position]) for position in keeps]
    return Parted(early, reads, tuple(part.results), PrimFunc([*params, *part.results], root, attrs=attrs), keeps)


def _memory(wrapper: Wrapper) -> Var:
    return wrapper.buffer_var if isinstance(wrapper, AllocateConst) else wrapper.buffer.data
