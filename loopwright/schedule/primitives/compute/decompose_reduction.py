"""decompose_reduction: the init of a reduction becomes a block of its own, right before a loop.

    for i, k in T.grid(4, 8):                    →    for i in range(4):
        with T.block("C"):                                with T.block("C_init"):
            vi, vk = T.axis.remap("SR", [i, k])               vi = T.axis.spatial(4, i)
            with T.init():                                    C[vi] = 0
                C[vi] = 0                                 for k in range(8):
            C[vi] = C[vi] + A[vi, vk]                         with T.block("C_update"): C[vi] = C[vi] + A[vi, vk]

The new nest runs over the loops from the given one inward but those of the reduction (`i_init`, …, of the same kinds).
Proved: every update adds to the same start value as before; so the loop must not lie inside one that carries the
reduction, or updates would be lost, nor around the statement that writes what the init reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.analysis.dataflow import InitOf
from loopwright.analysis.effects import effects
from loopwright.analysis.reduction_init import loops_of_start, reducing_variables, used_variables
from loopwright.ir import (
    Allocate,
    Block,
    BlockRealize,
    Buffer,
    Expr,
    For,
    IterType,
    IterVar,
    Stmt,
    Var,
    conjuncts,
    const,
    is_one,
    logical_and,
    pre_order_visit,
    seq,
    substitute,
    uses_var,
)
from loopwright.ir.annotations import TENSORIZED
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.origins import Origins
from loopwright.schedule.rewrite.buffers import is_same_region
from loopwright.schedule.rewrite.windows import region_in
from loopwright.schedule.step import BlockResult, Proof, Step
from loopwright.schedule.view import View


class NothingToDecompose(ScheduleError):
    """decompose_reduction was asked of a block that has no init, or whose init cannot stand on its own.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.decompose_reduction("B", sch.get_loops("B")[0])  # B is no reduction
    """

    code = "LW0238"

    def __init__(self, realize: BlockRealize, problem: str) -> None:
        name = realize.block.name_hint
        super().__init__(f"decompose_reduction: block {name!r} {problem}", at=realize, fields={"block": name})


class LoopNotAround(ScheduleError):
    """A step needs a loop around the block, between it and the block that both stand in.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8, 8), name="A")
        k = te.reduce_axis((0, 8), name="k")
        B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
        C = te.compute((8,), lambda i: B[i] * 2, name="C")
        sch = tir.Schedule(te.create_prim_func([A, C]))
        sch.decompose_reduction("B", sch.get_loops("C")[0])
    """

    code = "LW0239"

    def __init__(self, step: str, realize: BlockRealize, loop: For, loops: Sequence[For]) -> None:
        names = ", ".join([other.loop_var.name for other in loops]) or "none"
        super().__init__(
            f"{step}: loop {loop.loop_var.name} is not around block {realize.block.name_hint!r}",
            at=loop,
            hint=f"its loops are: {names}",
        )


def decompose_reduction(view: View, block: BlockRealize, loop: For) -> Step:
    """Write the init of `block` as its own nest before `loop`; the block keeps the updates."""
    key = block_key(block.block)
    loops = view.loops_of(key)
    if block.block.init is None:
        raise NothingToDecompose(block, "has no init")
    if not any(other is loop for other in loops):
        raise LoopNotAround("decompose_reduction", block, loop, loops)
    inner = loops[next(k for k, other in enumerate(loops) if other is loop) :]
    _check_between(view, block, loop)

    init = _init_nest(view, block, inner)
    updated = View(view.replaced(view.block_path(key), block.with_(block=_updates_of(view, block.block))))
    path = updated.loop_path(loop.loop_var)
    after = updated.replaced(path, seq([init, path[-1]]))
    new_key = block_key(_innermost(init).block)
    origins = Origins(renamed={new_key: (InitOf(key), lambda axes: list(axes))})
    written = [region.buffer for region in block.block.writes]
    buffers = [*written, *_read_by(init)]
    return Step(after, Proof.VALUES, origins, [BlockResult(new_key)], at=block, buffers=buffers)


def _check_between(view: View, block: BlockRealize, loop: For) -> None:
    """Between the loop and the block stand loops, sequences and allocations of what the init does not use."""
    path = view.block_path(block_key(block.block))
    start = next(k for k, statement in enumerate(path) if statement is loop)
    for statement in path[start:-1]:
        kind = type(statement).__name__
        if kind not in ("For", "SeqStmt", "Allocate", "DeclBuffer"):
            raise NothingToDecompose(block, f"stands in a {kind} inside loop {loop.loop_var.name}")
    result = {buffer.data for buffer in block.block.alloc_buffers}
    result |= {match.buffer.data for match in block.block.match_buffers}
    result |= {statement.buffer_var for statement in path[start:-1] if isinstance(statement, Allocate)}
    assert block.block.init is not None
    if any(buffer.data in result for buffer in _buffers(block.block.init)):
        raise NothingToDecompose(block, "has an init that uses buffers of the block's own")


def _updates_of(view: View, block: Block) -> Block:
    """The block without its init; what it accumulates into is now something it reads."""
    known = list(block.reads)
    added = [write for write in block.writes if not any(is_same_region(write, read) for read in known)]
    # A block without axes is known by its name.
    name = view.fresh_block_name(f"{block.name_hint}_update") if block.iter_vars else block.name_hint
    return block.with_(init=None, reads=(*added, *known), name_hint=name)


def _init_nest(view: View, realize: BlockRealize, loops: Sequence[For]) -> Stmt:
    block = realize.block
    assert block.init is not None
    pairs = zip(block.iter_vars, realize.iter_values, strict=True)
    data = [(axis, value) for axis, value in pairs if axis.iter_type != IterType.CommReduce]
    fresh = {axis.var: Var(axis.var.name, axis.var.dtype) for axis, _ in data}
    reduction = {axis.var for axis in block.iter_vars} - set(fresh)
    for stated in (block.init, *block.writes):
        if uses_var(stated, reduction.__contains__):
            raise NothingToDecompose(realize, "has an init, or writes a cell, that depends on a reduction axis")
    mirrored, guards = mirrored_loops(view, realize, [value for _, value in data], loops)
    counters = {loop.loop_var: Var(f"{loop.loop_var.name}_init", loop.loop_var.dtype) for loop in mirrored}
    result = Block(
        tuple([IterVar(axis.dom, fresh[axis.var], axis.iter_type, axis.thread_tag) for axis, _ in data]),
        (),
        tuple([substitute(region, fresh) for region in block.writes]),
        view.fresh_block_name(f"{block.name_hint}_init"),
        substitute(block.init, fresh),
        annotations={key: value for key, value in block.annotations.items() if key != TENSORIZED},
    )
    reads = [region_in(result, buffer, writes=False) for buffer in _read_by(result.body)]
    result = result.with_(reads=tuple([region for region in reads if region is not None]))
    values = tuple([substitute(value, counters) for _, value in data])
    predicate = logical_and(const(True), *[substitute(guard, counters) for guard in guards])
    nest: Stmt = BlockRealize(values, predicate, result)
    for loop in reversed(mirrored):
        nest = loop.with_(
            loop_var=counters[loop.loop_var],
            min=substitute(loop.min, counters),
            extent=substitute(loop.extent, counters),
            body=nest,
        )
    return nest


def _read_by(init: Stmt) -> list[Buffer]:
    return list(effects(init).reads.values())


def mirrored_loops(
    view: View, realize: BlockRealize, values: Sequence[Expr], loops: Sequence[For]
) -> tuple[list[For], list[Expr]]:
    """The loops that the init runs over, and the conditions it keeps.

    All loops but those of the reduction, since one that has no iterations means that nothing starts. A condition on
    loops of the reduction alone says which updates happen, not which cells there are: it is left out.
    """
    inner = {loop.loop_var: loop for loop in loops}
    reduced = reducing_variables(realize)
    outer = {loop.loop_var for loop in view.loops_of(block_key(realize.block))} - {*inner, *reduced}
    needed = {var for var, loop in inner.items() if var not in reduced and not is_one(loop.extent)}
    for value in values:
        needed |= used_variables(value, inner)
    bounds = {var: (loop.min, loop.extent) for var, loop in inner.items()}
    guards = [
        guard
        for guard in conjuncts(realize.predicate)
        if used_variables(guard, inner) or used_variables(guard, outer) or not used_variables(guard, reduced)
    ]
    needed, kept = loops_of_start(needed, bounds, outer, guards)
    return [loop for loop in loops if loop.loop_var in needed], kept


def _buffers(root: Stmt) -> set[Buffer]:
    result: set[Buffer] = set()
    pre_order_visit(root, lambda node: result.add(node) if isinstance(node, Buffer) else None)
    return result


def _innermost(nest: Stmt) -> BlockRealize:
    while isinstance(nest, For):
        nest = nest.body
    assert isinstance(nest, BlockRealize)
    return nest
