"""Groups: a convolution in groups, with its channels as two axes: which group, and which channel of it.

    Y[n, f, y, x] += X[n, f // 4 * 8 + c, y, x] * W[f, c]
        →    Y2[n, g, o, y, x] += X[n, g * 8 + c, y, x] * W2[g, o, c]

W2 and Y2 are other names for the same numbers: the copies that make them are written into the blocks that use them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwright.autosched.facts import Access, Axis, BlockFacts, const
from loopwright.autosched.layouts import dimensions, layout
from loopwright.autosched.program import Entry
from loopwright.autosched.renaming import Renamed, rename
from loopwright.ir import Expr, FloorDiv, Node, post_order_visit
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
    return _of_one_channel(facts)


def _of_one_channel(facts: BlockFacts) -> Groups | None:
    """Groups with one output channel each, and windows along lines: their channels of the image follow one another."""
    row = next((axis for axis in facts.spatial if axis.var is facts.write.indices[-1]), None)
    if row is None or row.extent == 1:
        return None
    for axis in facts.spatial:
        if axis.extent in (None, 1) or not any(index is axis.var for index in facts.write.indices):
            continue
        direct = [access for access in facts.reads if any(index is axis.var for index in access.indices)]
        image = next((access for access in facts.reads if access not in direct), None)
        if len(direct) != 1 or image is None or not any(form and row.var in form.terms for form in image.forms[-1:]):
            continue
        taps = [own for own in facts.reduce if own.extent != 1]
        for channel in taps:
            of_group = {axis.var: channel.extent, channel.var: 1}
            if len(taps) > 1 and any(form is not None and form.terms == of_group for form in image.forms):
                return Groups(axis, 1, direct[0])
    return None


def part_groups(sch: Schedule, facts: BlockFacts, groups: Groups, epilogue: Sequence[Entry]) -> Renamed:
    """Part the channels of the weights, of the result and of the block."""
    block = sch.get_block(facts.name)
    weights, result = _parted(groups.weights.indices, groups), _parted(facts.write.indices, groups)
    renamed = rename(sch, block, groups.weights.buffer, weights, epilogue, result)
    sch.transform_block_layout(block, _parted([axis.var for axis in facts.axes], groups))
    return renamed


def _parted(indices: Sequence[Expr], groups: Groups) -> str:
    """lambda n, f, y, x: (n, f // 4, f % 4, y, x)."""
    names = dimensions(len(indices))
    parted: list[str] = []
    for name, index in zip(names, indices, strict=True):
        is_parted = index is groups.axis.var
        parted += [f"{name} // {groups.size}", f"{name} % {groups.size}"] if is_parted else [name]
    return layout(names, parted)
