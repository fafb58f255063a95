"""Groups: a convolution in groups, with its channels as two axes: which group, and which channel of it.

    Y[n, f, y, x] += X[n, f // 4 * 8 + c, y, x] * W[f, c]
        →    Y2[n, g, o, y, x] += X[n, g * 8 + c, y, x] * W2[g, o, c]

W2 and Y2 are other names for the same numbers: the copies that make them are written into the blocks that use them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwright.autosched.facts import Access, Axis, BlockFacts, const
from loopwright.autosched.program import Entry
from loopwright.ir import FloorDiv, Node, post_order_visit
from loopwright.schedule import Schedule


class Groups(NamedTuple):
    """`axis` counts the channels of all groups, `size` of each."""

    axis: Axis
    size: int
    weights: Access


def groups_of(facts: BlockFacts) -> Groups | None:
    """How channels are grouped, or None when one group is all there is."""
    combined = facts.combined
    if combined is None or combined.op != "sum" or len(facts.reads) != 2:
        return None
    divided: list[FloorDiv] = []

    def look(node: Node) -> None:
        if isinstance(node, FloorDiv):
            divided.append(node)

    post_order_visit(combined.value, look)
    for node in divided:
        axis = next((axis for axis in facts.spatial if axis.var is node.a), None)
        size = const(node.b)
        if axis is None or axis.extent is None or size is None or size < 2 or axis.extent % size:
            continue
        direct = [access for access in facts.reads if any(index is axis.var for index in access.indices)]
        if len(direct) == 1 and any(index is axis.var for index in facts.write.indices):
            return Groups(axis, size, direct[0])
    return None


def part_groups(sch: Schedule, facts: BlockFacts, groups: Groups, epilogue: Sequence[Entry]) -> tuple[str, list[str]]:
    """Part the channels; the block that copies the weights, and those after the convolution."""
    block = sch.get_block(facts.name)
    operand = [region.buffer for region in sch.get(block).reads].index(groups.weights.buffer)
    weights = sch.cache_read(block, operand, "global", [block])
    layout = _parting(groups.weights, groups)
    sch.transform_layout(weights, ("write", 0), layout)
    sch.transform_block_layout(weights, layout)
    after = [sch.get_block(entry.name) for entry in epilogue] or [sch.cache_write(block, 0, "global")]
    layout = _parting(facts.write, groups)
    sch.transform_layout(block, ("write", 0), layout)
    for step in after:
        if step is not after[-1]:
            sch.transform_layout(step, ("write", 0), layout)
        sch.transform_block_layout(step, layout)
    names = [f"d{k}" for k in range(len(facts.axes))]
    parted = [
        _parted(name, groups) if axis is groups.axis else name for name, axis in zip(names, facts.axes, strict=True)
    ]
    sch.transform_block_layout(block, f"lambda {', '.join(names)}: ({', '.join(parted)})")
    return weights.name, [step.name for step in after]


def _parting(access: Access, groups: Groups) -> str:
    """lambda n, f, y, x: (n, f // 4, f % 4, y, x)."""
    names = [f"d{k}" for k in range(len(access.indices))]
    parted = [
        _parted(name, groups) if index is groups.axis.var else name
        for name, index in zip(names, access.indices, strict=True)
    ]
    return f"lambda {', '.join(names)}: ({', '.join(parted)})"


def _parted(name: str, groups: Groups) -> str:
    return f"{name} // {groups.size}, {name} % {groups.size}"
