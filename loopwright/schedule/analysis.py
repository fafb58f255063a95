"""Small questions about schedules, under the names that search rules use: `has_block`, `is_output_block`.

What a tensor intrinsic could compute is asked in `tensorize_mapping.py`; its names are here as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.arith import Analyzer, linear_coefficients
from loopwright.arith.index_map import IndexMap
from loopwright.ir import Buffer, Expr, For, IntImm, Var, as_expr, const
from loopwright.schedule.engine.schedule import Schedule
from loopwright.schedule.handles import BlockRV
from loopwright.schedule.primitives.queries import get_output_blocks
from loopwright.schedule.tensorize_mapping import (
    AutoTensorizeMappingInfo,
    TensorizeInfo,
    get_auto_tensorize_mapping_info,
    get_tensorize_loop_mapping,
)

__all__ = [
    "AutoTensorizeMappingInfo",
    "TensorizeInfo",
    "get_auto_tensorize_mapping_info",
    "get_tensorize_loop_mapping",
    "has_block",
    "is_output_block",
    "suggest_index_map",
]


def has_block(sch: Schedule, block_name: str) -> bool:
    """Whether some function of the schedule has a block of that name."""
    return any([block_name in view.block_names() for view in sch.views().values()])


def is_output_block(sch: Schedule, block: BlockRV | str) -> bool:
    """Whether a block writes a buffer that its scope does not allocate."""
    handle = sch.get_block(block) if isinstance(block, str) else block
    for view in sch.views().values():
        key = view.current(handle.key)
        if key in view.index.blocks:
            return any([result.key == key for result in get_output_blocks(view, view.root)])
    return False


def suggest_index_map(
    buffer: Buffer, indices: Sequence[Expr], loops: Sequence[For], predicate: Expr | bool = True
) -> IndexMap | None:
    """A layout in which the loops, in their order, walk through the buffer; None where the indices are no such walk.

    The index of each dimension is a sum of loops times strides; a new dimension is made for each loop, outermost first.
    Loops that no index uses are left out; what a guard (`predicate`) says is not used.
    """
    facts = Analyzer()
    extents: dict[Var, int] = {}
    for loop in loops:
        if not isinstance(loop.extent, IntImm):
            return None
        extents[loop.loop_var] = loop.extent.value
    inputs = [Var(f"i{position}", extent.dtype) for position, extent in enumerate(buffer.shape)]
    digits: dict[Var, Expr] = {}
    for index, given, extent in zip(indices, inputs, buffer.shape, strict=True):
        linear = linear_coefficients(as_expr(index), list(extents), facts)
        if linear is None or not facts.can_prove_equal(linear[1], 0) or not isinstance(extent, IntImm):
            return None
        parts = [
            (factor.value, var)
            for factor, var in zip(linear[0], extents, strict=True)
            if isinstance(factor, IntImm) and factor.value
        ]
        if any(not isinstance(factor, IntImm) for factor in linear[0]):
            return None
        reach = 1
        for stride, var in sorted(parts, key=lambda part: part[0]):
            if stride != reach or var in digits:
                return None
            digit: Expr = given if stride == 1 else given // const(stride, given.dtype)
            reach = stride * extents[var]
            digits[var] = digit if reach >= extent.value else digit % const(extents[var], given.dtype)
        if reach < extent.value:
            return None
    results = [facts.simplify(digits[var]) for var in extents if var in digits]
    return IndexMap(tuple(inputs), tuple(results))
