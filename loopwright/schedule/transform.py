"""Steps made of steps, under the names that search rules use: `tile_with_tensor_intrin`."""

from __future__ import annotations

from loopwright.schedule.engine.schedule import Schedule
from loopwright.schedule.handles import BlockRV, LoopRV
from loopwright.schedule.tensorize_mapping import get_tensorize_loop_mapping
from loopwright.transform.tensor_intrinsics import TensorIntrin


def tile_with_tensor_intrin(
    sch: Schedule, block: BlockRV | str, intrin_name: str, allow_padding: bool = False
) -> LoopRV | None:
    """Tile a block so that an intrinsic computes what is inside the loop that is given back; None where none fits.

    Each loop that stands for one of the intrinsic is split by its extent, and the inner parts are brought inside, in
    the intrinsic's order. `tensorize` of the loop given back comes next. With `allow_padding`, axes that are no
    multiples are padded first, by `pad_einsum`.
    """
    intrin = TensorIntrin.get(intrin_name)
    assert intrin is not None
    handle = sch.get_block(block) if isinstance(block, str) else block
    found = get_tensorize_loop_mapping(sch, handle, intrin.desc, allow_padding)
    if found is None:
        return None
    if found.block_iter_paddings is not None:
        sch.pad_einsum(handle, found.block_iter_paddings)
        found = get_tensorize_loop_mapping(sch, handle, intrin.desc)
        assert found is not None
    tiled = {sref.stmt.loop_var: desc for sref, desc in found.loop_map.items() if sref.stmt is not None}  # type: ignore[union-attr]
    outer: list[LoopRV] = []
    inner: dict[int, LoopRV] = {}
    for loop in sch.get_loops(handle):
        desc = tiled.get(loop.var)
        if desc is None:
            outer.append(loop)
            continue
        first, last = sch.split(loop, [None, intrin.pattern.extent(desc.loop_var)])
        outer.append(first)
        inner[found.desc_loop_indexer[desc]] = last
    tile = [inner[location] for location in sorted(inner)]
    if not tile:
        return None  # an intrinsic of one iteration has no loop to give
    sch.reorder(*outer, *tile)
    return tile[0]
