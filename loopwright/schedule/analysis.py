"""Small questions about schedules, under the names that search rules use: `has_block`, `is_output_block`.

What a tensor intrinsic could compute is asked in `tensorize_mapping.py`; its names are here as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from loopwright.arith import Analyzer
from loopwright.arith.index_map import IndexMap
from loopwright.arith.iter_map import normalize_to_iter_sum
from loopwright.ir import Buffer, Expr, For, IntImm, Range, Var, as_expr, const
from loopwright.runtime.errors import LoopwrightError
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

    The offset of the element is a sum of digits of the loops, `i // 16 * 64 + j % 4 * 16 + …`, whose strides leave no
    gap; the layout has a dimension for each digit, those of outer loops first. What a guard (`predicate`) says is not
    used.
    """
    shape = [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]
    if len(shape) != buffer.ndim or not all([isinstance(loop.extent, IntImm) for loop in loops]):
        return None
    inputs = [Var(f"i{position}", extent.dtype) for position, extent in enumerate(buffer.shape)]
    ranges = {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in loops}
    try:
        walk = normalize_to_iter_sum(_offset([as_expr(index) for index in indices], shape), ranges)
    except LoopwrightError:
        return None
    positions = {loop.loop_var: position for position, loop in enumerate(loops)}
    digits: list[tuple[int, int, int, int]] = []  # the loop, its digit, and the stride and extent of that
    reach = 1
    for split in reversed(walk.args):
        parts = (split.lower_factor, split.scale, split.extent)
        numbers = [part.value for part in parts if isinstance(part, IntImm)]
        if len(numbers) != len(parts) or not isinstance(split.source.source, Var) or numbers[1] != reach:
            return None
        factor, stride, extent = numbers
        digits.append((positions[split.source.source], -factor, stride, extent))
        reach *= extent
    if reach != prod(shape) or not (isinstance(walk.base, IntImm) and walk.base.value == 0):
        return None
    facts = Analyzer()
    for given, size in zip(inputs, buffer.shape, strict=True):
        facts.bind(given, Range.from_min_extent(const(0, given.dtype), size))
    offset = _offset(inputs, shape)
    results = [facts.simplify(offset // stride % extent) for _, _, stride, extent in sorted(digits)]
    return IndexMap(tuple(inputs), tuple(results))


def _offset(indices: Sequence[Expr], shape: Sequence[int]) -> Expr:
    """The element's place in a compact buffer."""
    result: Expr = const(0, indices[0].dtype) if indices else const(0)
    for index, extent in zip(indices, shape, strict=True):
        result = result * extent + index
    return result
