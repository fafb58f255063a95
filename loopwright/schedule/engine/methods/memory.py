"""Memory: the methods of a schedule that say how and where a buffer is stored, and what is fetched ahead."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright.ir import Buffer
from loopwright.schedule.engine.arguments import map_text, named, sided
from loopwright.schedule.engine.methods.base import Base
from loopwright.schedule.handles import BlockRV, LoopRV


class MemoryMethods(Base):
    """Layouts, kinds of memory, strides, allocations, shared and circular buffers."""

    def transform_layout(
        self,
        block: BlockRV | str,
        buffer: tuple[str, int] | str | Buffer,
        index_map: Callable[..., object] | str,
        pad_value: object = None,
        *,
        assume_injective_transform: bool = False,
    ) -> None:
        """A buffer is stored in another layout, everywhere it is used; an argument changes for the caller as well.

        `pad_value` fills cells that hold no element: a number, or a map from the new indices to one. Nothing is assumed
        with `assume_injective_transform`: a map that puts two elements into one cell is found out.
        """
        inputs = {"block": self._block(block)}

        def rank() -> int:
            from loopwright.schedule.primitives.memory.reindex import side_of  # primitives load when they are used

            return side_of("transform_layout", self._realize(block), buffer)[0].ndim

        return self._do(
            "TransformLayout",
            inputs,
            buffer=sided(buffer),
            index_map=map_text("transform_layout", index_map, rank),
            pad_value=map_text("transform_layout", pad_value) if callable(pad_value) else pad_value,
        )

    def set_axis_separator(
        self, block: BlockRV | str, buffer: tuple[str, int] | str | Buffer, axis_separators: Sequence[int]
    ) -> None:
        """The dimensions of a buffer are grouped into those of physical memory."""
        return self._do(
            "SetAxisSeparator",
            {"block": self._block(block)},
            buffer=sided(buffer),
            axis_separators=self._list("set_axis_separator", "axis_separators", axis_separators),
        )

    def set_scope(self, block: BlockRV | str, buffer_index: int | str | Buffer, storage_scope: str) -> None:
        """A buffer that the block writes lives in another kind of memory."""
        return self._do(
            "SetScope", {"block": self._block(block)}, buffer_index=named(buffer_index), storage_scope=storage_scope
        )

    def storage_align(self, block: BlockRV | str, buffer_index: int, axis: int, factor: int, offset: int) -> None:
        """The stride of a dimension becomes `offset` modulo `factor`."""
        return self._do(
            "StorageAlign",
            {"block": self._block(block)},
            buffer_index=buffer_index,
            axis=axis,
            factor=factor,
            offset=offset,
        )

    def lift_alloc(self, block: BlockRV | str, buffer: int | str | Buffer, levels: int = 1) -> None:
        """A buffer the block writes is allocated further out: `levels` loops up."""
        return self._do("LiftAlloc", {"block": self._block(block)}, buffer=named(buffer), levels=levels)

    def sink_alloc(self, block: BlockRV | str, buffer: int | str | Buffer) -> None:
        """A buffer the block writes is allocated as far in as its values allow."""
        return self._do("SinkAlloc", {"block": self._block(block)}, buffer=named(buffer))

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

    def unsafe_set_dtype(self, block: BlockRV | str, buffer_index: int | str | Buffer, dtype: str) -> None:
        """A buffer holds numbers of another type; the schedule is unproved from here on."""
        return self._do(
            "UnsafeSetDType", {"block": self._block(block)}, buffer_index=named(buffer_index), dtype=str(dtype)
        )

    def prefetch(
        self,
        block: BlockRV | str,
        loop: LoopRV,
        buffer: int | str | Buffer,
        distance: int = 1,
        levels: int = 0,
        lines: int = 1,
    ) -> None:
        """Each iteration of `loop` asks for what the block touches `distance` iterations later, that many cache lines.

        They are iterations of `loop`, or of the loop that is `levels` loops further out. A loop that is beside the
        block, under a loop around both, stands for the block's own of the same depth and length.
        """
        return self._do(
            "Prefetch",
            {"block": self._block(block), "loop": loop},
            buffer=named(buffer),
            distance=distance,
            levels=levels,
            lines=lines,
        )
