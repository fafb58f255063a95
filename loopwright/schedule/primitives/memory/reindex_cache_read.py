"""reindex_cache_read: like `reindex` of something a block reads, in memory and in a layout of your choice.

    … A[vi, vk] …          →     A_shared[vk // 4, vi, vk % 4] = A[vi, vk]     in a block of its own, before
                                 … A_shared[vk // 4, vi, vk % 4] …

Here `reindex_cache_read("C", 0, "shared", lambda vi, vj, vk: (vk // 4, vi, vk % 4))`: the layout is over the axes of
the block, and uses those of the access. Proved: every read sees the value it saw before, looking through the copy.
"""

from __future__ import annotations

from loopwright.ir import BlockRealize
from loopwright.schedule.rewrite.buffers import BufferName, find_buffer
from loopwright.schedule.rewrite.index_map import LayoutMap
from loopwright.schedule.rewrite.reindexing import Wanted, reindexed
from loopwright.schedule.step import Step
from loopwright.schedule.view import View


def reindex_cache_read(
    view: View, block: BlockRealize, read_buffer_index: BufferName, storage_scope: str, index_map: str
) -> Step:
    """Have `block` read a copy of a buffer, element `index_map(axes)` holding what it reads at `axes`."""
    chosen = find_buffer("reindex_cache_read", block, read_buffer_index, "reads")
    name = view.fresh_block_name(f"{chosen.name}_{storage_scope}")
    wanted = Wanted(name, storage_scope, LayoutMap.of(index_map, "reindex_cache_read"))
    return reindexed(view, "reindex_cache_read", block, chosen, False, wanted)
