"""Window caches: in a block that stands for a tile, a cache holds the tile alone, not the whole buffer.

    with T.block("tile"):                            →    with T.block("tile"):
        vi = T.axis.spatial(8, i)                             vi = T.axis.spatial(8, i)
        for x in range(16): … A[vi * 16 + x] …                A_local = T.alloc_buffer(16, scope="local")
                                                              for x in range(16): … A_local[x] …
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.arith import Analyzer
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Expr,
    For,
    Range,
    Rewriter,
    Stmt,
    deep,
    structural_equal,
)
from loopwright.schedule.rewrite.windows import Window
from loopwright.schedule.view import Path


def is_tile(scope: Path, loops: Sequence[For], window: Window) -> bool:
    """Whether a cache beside the statements of the block `scope` needs less than the buffer: nothing else sees it."""
    whole = all([structural_equal(a, b) for a, b in zip(window.shape, window.buffer.shape, strict=True)])
    return len(scope) > 1 and not loops and not whole


@deep
def in_window(
    realize: BlockRealize, old: Buffer, new: Buffer, window: Window | None, writes: bool = False
) -> BlockRealize:
    """The block with its reads (and `writes`) of `old` going to `new`, which holds the window, or (None) all of it."""
    result: BlockRealize = _InWindow(old, new, window, writes).visit(realize)
    return result


class _InWindow(Rewriter):
    def __init__(self, old: Buffer, new: Buffer, window: Window | None, writes: bool) -> None:
        self.old, self.new, self.window, self.writes = old, new, window, writes
        self.facts = Analyzer()

    def cell(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        if self.window is None:
            return tuple(indices)
        pairs = zip(indices, self.window.origin, strict=True)
        return tuple([self.facts.simplify(index - low.astype(index.dtype)) for index, low in pairs])

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        load = self.rebuild(load)
        return load.with_(buffer=self.new, indices=self.cell(load.indices)) if load.buffer is self.old else load

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        store = self.rebuild(store)
        if not self.writes or store.buffer is not self.old:
            return store
        return store.with_(buffer=self.new, indices=self.cell(store.indices))

    def visit_Block(self, block: Block) -> Block:
        new = block.rebuild(self.visit)
        writes = tuple([self.region(region) for region in block.writes]) if self.writes else block.writes
        return new.with_(reads=tuple([self.region(region) for region in block.reads]), writes=writes)

    def visit_BufferRegion(self, region: BufferRegion) -> BufferRegion:
        return region  # blocks see to their regions

    def region(self, region: BufferRegion) -> BufferRegion:
        if region.buffer is not self.old:
            return region
        lows = self.cell([part.min for part in region.region])
        parts = [Range.from_min_extent(low, part.extent) for low, part in zip(lows, region.region, strict=True)]
        return BufferRegion(self.new, tuple(parts))
