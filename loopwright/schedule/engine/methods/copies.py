"""Copies: the methods of a schedule that put a copy between a block and a buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright.ir import Buffer
from loopwright.schedule.engine.arguments import map_text, named, sided
from loopwright.schedule.engine.methods.base import Base
from loopwright.schedule.handles import BlockRV, LoopRV


class CopyMethods(Base):
    """Copies in front of a block or after it, at a loop, in other layouts, of indices."""

    def _consumers(self, step: str, given: Sequence[BlockRV | str] | None) -> list[BlockRV | str] | None:
        """The blocks that are to use a copy; None for all of them."""
        return None if given is None else [self._block(block) for block in self._list(step, "consumer_blocks", given)]

    def cache_read(
        self,
        block: BlockRV | str,
        read_buffer_index: int | str | Buffer,
        storage_scope: str = "global",
        consumer_blocks: Sequence[BlockRV | str] | None = None,
        load: int | None = None,
    ) -> BlockRV:
        """A copy of what a block reads, made before it; the block (or the listed ones) reads the copy.

        Where the block loads from the buffer in several places, `load` is the one that alone reads the copy.
        """
        consumers = self._consumers("cache_read", consumer_blocks)
        inputs = {"block": self._block(block), "consumer_blocks": consumers}
        index = named(read_buffer_index)
        return self._do("CacheRead", inputs, read_buffer_index=index, storage_scope=storage_scope, load=load)

    def cache_write(
        self,
        block: BlockRV | str,
        write_buffer_index: int | str | Buffer,
        storage_scope: str = "global",
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """A block writes a new buffer, which is copied out after it."""
        consumers = self._consumers("cache_write", consumer_blocks)
        inputs = {"block": self._block(block), "consumer_blocks": consumers}
        return self._do("CacheWrite", inputs, write_buffer_index=named(write_buffer_index), storage_scope=storage_scope)

    def stage(
        self,
        block: BlockRV | str,
        loop: LoopRV,
        buffer: int | str | Buffer,
        storage_scope: str = "global",
        layout: Callable[..., object] | str | None = None,
    ) -> BlockRV:
        """What one iteration of `loop` reads of `buffer` is copied at the loop, perhaps in another layout."""
        inputs = {"block": self._block(block), "loop": loop}
        return self._do(
            "Stage", inputs, buffer=named(buffer), storage_scope=storage_scope, layout=map_text("stage", layout)
        )

    def reindex(self, block: BlockRV | str, buffer: tuple[str, int] | str | Buffer) -> BlockRV:
        """A block touches a buffer indexed by its own axes, copied from (or to) the real one."""
        return self._do("ReIndex", {"block": self._block(block)}, buffer=sided(buffer))

    def reindex_cache_read(
        self,
        block: BlockRV | str,
        read_buffer_index: int | str | Buffer,
        storage_scope: str,
        index_map: Callable[..., object] | str,
    ) -> BlockRV:
        """What a block reads is copied into a layout over its axes."""
        return self._do(
            "ReindexCacheRead",
            {"block": self._block(block)},
            read_buffer_index=named(read_buffer_index),
            storage_scope=storage_scope,
            index_map=map_text("reindex_cache_read", index_map, lambda: len(self._realize(block).iter_values)),
        )

    def reindex_cache_write(
        self,
        block: BlockRV | str,
        write_buffer_index: int | str | Buffer,
        storage_scope: str,
        index_map: Callable[..., object] | str,
    ) -> BlockRV:
        """What a block writes goes to a layout over its axes, and is copied out."""
        return self._do(
            "ReindexCacheWrite",
            {"block": self._block(block)},
            write_buffer_index=named(write_buffer_index),
            storage_scope=storage_scope,
            index_map=map_text("reindex_cache_write", index_map, lambda: len(self._realize(block).iter_values)),
        )

    def cache_inplace(
        self, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str
    ) -> list[BlockRV]:
        """A block updates a copy of a buffer, copied in before it and out after it; the two copies."""
        return self._do(
            "CacheInplace",
            {"block": self._block(block)},
            read_buffer_index=named(read_buffer_index),
            storage_scope=storage_scope,
        )

    def cache_index(self, block: BlockRV | str, storage_scope: str, cse_thresh: int = 0) -> list[BlockRV]:
        """The indices a block computes are computed before it, those that come up more than `cse_thresh` times."""
        return self._do("CacheIndex", {"block": self._block(block)}, storage_scope=storage_scope, cse_thresh=cse_thresh)

    def read_at(
        self, loop: LoopRV, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str
    ) -> BlockRV:
        """What one iteration of `loop` reads is copied there by one block, for the automatic-copy pass to refine."""
        return self._do(
            "ReadAt",
            {"loop": loop, "block": self._block(block)},
            read_buffer_index=named(read_buffer_index),
            storage_scope=storage_scope,
        )

    def write_at(
        self, loop: LoopRV, block: BlockRV | str, write_buffer_index: int | str | Buffer, storage_scope: str
    ) -> BlockRV:
        """What one iteration of `loop` writes is copied out there by one block."""
        return self._do(
            "WriteAt",
            {"loop": loop, "block": self._block(block)},
            write_buffer_index=named(write_buffer_index),
            storage_scope=storage_scope,
        )
