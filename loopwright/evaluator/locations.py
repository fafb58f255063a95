"""Places: which element of its memory an access reaches, with every index checked against the buffer's shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright.evaluator.errors import OutOfBounds
from loopwright.evaluator.values import Value
from loopwright.ir import Buffer, Node

Run = Callable[[], Value]


class Place:
    """Where one access goes. `run` gives the element offset from the buffer's pointer, or a list with one a lane."""

    __slots__ = (
        "at",
        "broadcasts",
        "buffer",
        "check",
        "indices",
        "loops",
        "offset",
        "run",
        "sizes",
        "strides",
        "vector",
        "writes",
    )

    def __init__(
        self,
        buffer: Buffer,
        indices: Sequence[Run],
        layout: tuple[Sequence[Value], Sequence[Value], Value],
        vector: bool,
        check: bool,
        loops: Callable[[], dict[str, Value]],
        writes: bool,
        at: Node,
    ) -> None:
        """`layout` is shape, strides and offset: each a number, or a closure that gives it."""
        self.buffer, self.indices, self.vector, self.check = buffer, indices, vector, check
        self.sizes, self.strides, self.offset = layout
        self.loops, self.writes, self.at = loops, writes, at
        self.broadcasts = buffer.buffer_type == "auto_broadcast" and not writes and not vector
        self.run: Run = self._general
        if not vector and buffer.dtype.lanes == 1:
            if all(isinstance(item, int) for item in (*self.sizes, *self.strides, self.offset)):
                self.run = self._constant()

    def outside(self) -> OutOfBounds:
        """The error for an index outside the buffer."""
        result = [index() for index in self.indices]
        shape = [_value(size) for size in self.sizes]
        if self.vector:
            wrong = [lane for lane in result[-1] if not 0 <= lane < shape[-1]]
            result[-1] = wrong[0] if wrong else result[-1][0]
        return OutOfBounds(self.buffer, result, shape, self.loops(), self.writes, self.at)

    def indices_of(self, offset: int) -> list[int]:
        """The indices that lead to an offset now."""
        result = [index() for index in self.indices]
        if self.vector:
            result[-1] = result[-1][self._general().index(offset) // self.buffer.dtype.lanes]
        return result

    def _general(self) -> Value:
        """Symbolic layouts, vector indices and buffers of vectors."""
        total = _value(self.offset)
        steps: list[int] | None = None
        last = len(self.indices) - 1
        for k, run in enumerate(self.indices):
            index, size, stride = run(), _value(self.sizes[k]), _value(self.strides[k])
            if self.broadcasts and size == 1 and stride == 0:
                continue  # one element for all indices
            if self.vector and k == last:
                if self.check and not all(0 <= lane < size for lane in index):
                    raise self.outside()
                steps = [lane * stride for lane in index]
            else:
                if self.check and not 0 <= index < size:
                    raise self.outside()
                total += index * stride
        lanes = self.buffer.dtype.lanes
        if steps is None and lanes == 1:
            return total
        return [(total + step) * lanes + lane for step in steps or (0,) for lane in range(lanes)]

    def _constant(self) -> Run:
        """Scalar indices into a buffer whose layout is known."""
        offset, outside = self.offset, self.outside
        if not self.check:
            return self._unchecked()
        if len(self.indices) == 1:
            (i,), (n,), (s,) = self.indices, self.sizes, self.strides

            def one() -> int:
                x: int = i()
                if 0 <= x < n:
                    return x * s + offset
                raise outside()

            return one
        if len(self.indices) == 2:
            (i, j), (n, m), (s, t) = self.indices, self.sizes, self.strides

            def two() -> int:
                x, y = i(), j()
                if 0 <= x < n and 0 <= y < m:
                    return x * s + y * t + offset
                raise outside()

            return two
        rows = list(zip(self.indices, self.sizes, self.strides, strict=True))

        def any_rank() -> int:
            total: int = offset
            for index, size, stride in rows:
                x = index()
                if not 0 <= x < size:
                    raise outside()
                total += x * stride
            return total

        return any_rank

    def _unchecked(self) -> Run:
        offset, rows = self.offset, list(zip(self.indices, self.strides, strict=True))

        def run() -> int:
            total: int = offset
            for index, stride in rows:
                total += index() * stride
            return total

        return run


def _value(item: Value) -> int:
    """A number, or what its closure gives."""
    number: int = item if isinstance(item, int) else item()
    return number
