"""The methods of a schedule that make copies, or change how many cells a buffer has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loopwright.ir import Buffer
from loopwright.schedule.doing import Doing, map_text, named, sided
from loopwright.schedule.handles import BlockRV, LoopRV


class CacheMethods(Doing):
    """Copies in other layouts, copies at a loop, circular and shared buffers."""

    def reindex(self, block: BlockRV | str, buffer: tuple[str, int] | str | Buffer) -> BlockRV:
        """A block touches a buffer indexed by its own axes, copied from (or to) the real one."""
        return self._do("ReIndex", {"block": self._block(block)}, buffer=sided(buffer))

    def reindex_cache_read(
        self,
        block: BlockRV | str,
        read_buffer_index: int | str | Buffer,
        storage_scope: str,
        index_map: Callable[..., Any] | str,
    ) -> BlockRV:
        """What a block reads is copied into a layout over its axes."""
        return self._do(
            "ReindexCacheRead",
            {"block": self._block(block)},
            read_buffer_index=named(read_buffer_index),
            storage_scope=storage_scope,
            index_map=map_text("reindex_cache_read", index_map),
        )

    def reindex_cache_write(
        self,
        block: BlockRV | str,
        write_buffer_index: int | str | Buffer,
        storage_scope: str,
        index_map: Callable[..., Any] | str,
    ) -> BlockRV:
        """What a block writes goes to a layout over its axes, and is copied out."""
        return self._do(
            "ReindexCacheWrite",
            {"block": self._block(block)},
            write_buffer_index=named(write_buffer_index),
            storage_scope=storage_scope,
            index_map=map_text("reindex_cache_write", index_map),
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

    def rolling_buffer(
        self, block: BlockRV | str, write_buffer_index: int | str | Buffer, size: int | None = None
    ) -> None:
        """Iterations that overlap keep what they share in a circular buffer (of `size` rows) and compute the rest."""
        return self._do(
            "RollingBuffer", {"block": self._block(block)}, write_buffer_index=named(write_buffer_index), size=size
        )

    def reuse_buffer(self, block: BlockRV | str, buffer: int | str | Buffer, other: int | str | Buffer) -> None:
        """`buffer`, which the block touches, lives in the memory of `other` from now on: never both at a time."""
        return self._do("ReuseBuffer", {"block": self._block(block)}, buffer=named(buffer), other=named(other))
