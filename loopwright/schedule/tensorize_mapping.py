"""Which loops of a block could be the loops of a tensor intrinsic: what search rules ask before they tile.

    C[i, j] += A[i, k] * B[k, j]            get_tensorize_loop_mapping: i → i, j → j, k → k
    C[b, h, w, o] += A[b, h + y, w + x, c] * W[y, x, c, o]
                                            get_auto_tensorize_mapping_info: (b, h, w) → i, o → j, (y, x, c) → k

The expressions must agree; which loop stands for which is read from the accesses. Nothing here is a proof: `tensorize`
says whether the tiled block is the intrinsic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loopwright.arith import Analyzer, linear_coefficients
from loopwright.arith.index_map import IndexMap
from loopwright.ir import (
    BlockRealize,
    Buffer,
    Expr,
    FloorMod,
    For,
    IntImm,
    IterType,
    IterVar,
    PrimFunc,
    Var,
    const,
    uses_var,
)
from loopwright.schedule.engine.schedule import Schedule
from loopwright.schedule.engine.state import StmtSRef
from loopwright.schedule.handles import BlockRV, LoopRV
from loopwright.schedule.rewrite.nests import nest as around
from loopwright.transform.tensor_intrinsics import Pairing, TensorIntrin, pair_accesses
from loopwright.transform.tensor_intrinsics.nest import Nest, NotANest, nest_of


@dataclass(frozen=True, eq=False)
class TensorizeInfo:
    """The loops of a block that stand for loops of a description."""

    loop_map: Mapping[StmtSRef, For]  # a loop of the block: one of the description
    desc_loop_indexer: Mapping[For, int]  # the loops of the description, by their place from the outside
    block_iter_paddings: Sequence[int] | None  # multiples that the axes have to be padded to; None: they fit


@dataclass(frozen=True, eq=False)
class AutoTensorizeMappingInfo:
    """How the axes of a block become those of a description."""

    mappings: Sequence[IndexMap]  # from the block's axes to batch axes, then to those of the description
    lhs_buffer_map: Mapping[Buffer, Buffer]  # a buffer of the block: one of the description
    lhs_iters: Sequence[IterVar]
    rhs_iters: Sequence[IterVar]


def get_tensorize_loop_mapping(
    sch: Schedule, block: BlockRV | str, desc_func: PrimFunc, allow_padding: bool = False
) -> TensorizeInfo | None:
    """The loops of a block that stand for those of `desc_func`; None where it computes something else.

    The extent of such a loop is a multiple of that of the description; with `allow_padding` it may be anything, and
    `block_iter_paddings` are what `pad_einsum` takes.
    """
    realize, nest = _nest(sch, block)
    intrin = TensorIntrin.described(desc_func)
    result = None if nest is None else pair_accesses(nest, intrin)
    if nest is None or result is None:
        return None
    chosen: dict[StmtSRef, For] = {}
    wanted: dict[Var, int] = {}
    for desc in intrin.pattern.loops:
        size = intrin.pattern.extent(desc.loop_var)
        loop = _loop_for(desc.loop_var, result, nest.loops)
        if loop is None:
            if size == 1:
                continue
            return None
        reduces = [var in one.reduced for one, var in ((nest, loop.loop_var), (intrin.pattern, desc.loop_var))]
        if loop.loop_var in wanted or (intrin.pattern.reduced and reduces[0] != reduces[1]):
            return None
        if nest.extent(loop.loop_var) % size and not allow_padding:
            return None
        wanted[loop.loop_var] = size
        chosen[sch.get_sref(LoopRV(loop.loop_var))] = desc
    fits = all(nest.extent(var) % size == 0 for var, size in wanted.items())
    paddings = [1] * len(realize.block.iter_vars)
    for index, value in enumerate(realize.iter_values):
        if isinstance(value, Var) and value in wanted:
            paddings[index] = wanted[value]
    order = {loop: index for index, loop in enumerate(intrin.pattern.loops)}
    return TensorizeInfo(chosen, order, None if fits else paddings)


def get_auto_tensorize_mapping_info(
    sch: Schedule, block: BlockRV | str, desc_func: PrimFunc
) -> AutoTensorizeMappingInfo | None:
    """How `transform_block_layout` makes the axes of a block those of `desc_func`; None where there is no way.

    An axis belongs to the axis of the description that is in the same operands; one that is in all of them becomes an
    axis of its own, in front.
    """
    realize, nest = _nest(sch, block)
    intrin = TensorIntrin.described(desc_func)
    answer = None if nest is None else pair_accesses(nest, intrin)
    if nest is None or answer is None or nest.leaf is None or intrin.pattern.leaf is None:
        return None
    groups: dict[Var, list[IterVar]] = {loop.loop_var: [] for loop in intrin.pattern.loops}
    kinds = {var: (var in intrin.pattern.reduced, _operands([var], answer, 0)) for var in groups}
    batch: list[IterVar] = []
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        used = _operands(_vars_in(value, nest), answer, 1)
        kind = (axis.iter_type == IterType.CommReduce, used)
        same = [var for var, other in kinds.items() if other == kind]
        if same:
            groups[same[0]].append(axis)
        elif used == frozenset(answer.buffers):
            batch.append(axis)
        else:
            return None
    if any(not group and intrin.pattern.extent(var) != 1 for var, group in groups.items()):
        return None
    results = [*[axis.var for axis in batch], *[_joined(group) for group in groups.values()]]
    result = IndexMap(tuple([axis.var for axis in realize.block.iter_vars]), tuple(results))
    mapped = {here: desc for desc, here in answer.buffers.items()}
    return AutoTensorizeMappingInfo([result], mapped, realize.block.iter_vars, intrin.pattern.leaf.iter_vars)


def _nest(sch: Schedule, block: BlockRV | str) -> tuple[BlockRealize, Nest | None]:
    """A block with its loops, as a nest where it is one."""
    handle = sch.get_block(block) if isinstance(block, str) else block
    view = next(view for view in sch.views().values() if view.current(handle.key) in view.index.blocks)
    realize = view.realize(handle.key)
    loops = view.loops_of(handle.key)
    try:
        # The loops around the block may hold other blocks too, which do not count here.
        return realize, nest_of(around(loops, realize))
    except NotANest:
        return realize, None


def _operands(vars: Sequence[Var], result: Pairing, side: int) -> frozenset[Buffer]:
    """The buffers of the description whose accesses use one of these loops, there (0) or here (1)."""
    chosen, used = set(vars), []
    for pair in result.accesses:
        if any([uses_var(index, chosen.__contains__) for index in pair[side].indices]):
            used.append(pair[0].buffer)
    return frozenset(used)


def _vars_in(value: Expr, nest: Nest) -> list[Var]:
    return [loop.loop_var for loop in nest.loops if uses_var(value, {loop.loop_var}.__contains__)]


def _joined(axes: Sequence[IterVar]) -> Expr:
    """Axes as one, the last of them innermost."""
    value: Expr = const(0)
    for axis in axes:
        assert axis.dom is not None
        value = value * axis.dom.extent + axis.var
    return Analyzer().simplify(value)


def _loop_for(var: Var, result: Pairing, loops: Sequence[For]) -> For | None:
    """The loop that stands for `var` of the description: where that alone is an index, the index here says so."""
    for desc, here in result.accesses:
        skipped = len(here.indices) - len(desc.indices)
        for wanted, index in zip(desc.indices, here.indices[skipped:], strict=True):
            loop = _innermost(index, loops) if wanted is var else None
            if loop is not None:
                return loop
    return None


def _innermost(value: Expr, loops: Sequence[For]) -> For | None:
    """The loop that moves an index by one."""
    by_var = {loop.loop_var: loop for loop in loops}
    if isinstance(value, FloorMod):
        return _innermost(value.a, loops)
    if isinstance(value, Var):
        return by_var.get(value)
    linear = linear_coefficients(value, list(by_var), Analyzer())
    if linear is None:
        return None
    steps = dict(zip(by_var, linear[0], strict=True))
    result = [var for var, step in steps.items() if isinstance(step, IntImm) and step.value == 1]
    return by_var[result[0]] if len(result) == 1 else None
