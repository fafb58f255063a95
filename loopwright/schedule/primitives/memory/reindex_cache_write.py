"""reindex_cache_write: like `reindex` of something a block writes, in memory and in a layout of your choice.

    C[vi, vj] = …          →     C_local[vj, vi] = …
                                 C[vi, vj] = C_local[vj, vi]     in a block of its own, after

Here `reindex_cache_write("C", 0, "local", lambda vi, vj, vk: (vj, vi))`: the layout is over the axes of the block, and
uses those of the access. Proved: every read sees the value it saw before, looking through the copy.
"""

from __future__ import annotations

from loopwright.ir import BlockRealize
from loopwright.schedule.rewrite.buffers import BufferName, find_buffer
from loopwright.schedule.rewrite.index_map import LayoutMap
from loopwright.schedule.rewrite.reindexing import Wanted, reindexed
from loopwright.schedule.step import Step
from loopwright.schedule.view import View


def reindex_cache_write(
    view: View, block: BlockRealize, write_buffer_index: BufferName, storage_scope: str, index_map: str
) -> Step:
    """Have `block` write a buffer whose element `index_map(axes)` holds what it writes at `axes`, copied out after."""
    chosen = find_buffer("reindex_cache_write", block, write_buffer_index, "writes")
    name = view.fresh_block_name(f"{chosen.name}_{storage_scope}")
    wanted = Wanted(name, storage_scope, LayoutMap.of(index_map, "reindex_cache_write"))
    return reindexed(view, "reindex_cache_write", block, chosen, True, wanted)
