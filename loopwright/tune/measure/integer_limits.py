"""integer_limits: which integers a program can bear in an argument: what indexes an array must be one of its indices.

B[i] = A[idx[i]]            idx < A.shape[0]
t[i] = idx[i]; B[t[i]]      through a copy as well
range(count[0])             few turns
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from loopwright.ir import Buffer, BufferLoad, BufferStore, Call, Expr, For, IntImm, PrimFunc, collect

_MOST_SHIFTED: Final = 8


def integer_limits(function: PrimFunc) -> dict[Buffer, int]:
    """For buffers of integers: values that are 0 or more, and less than this, are safe; others have no limit."""
    limits: dict[Buffer, int] = {}

    def limit(buffers: Iterable[Buffer], most: int) -> bool:
        changed = [buffer for buffer in buffers if most < limits.get(buffer, most + 1)]
        limits.update(dict.fromkeys(changed, most))
        return bool(changed)

    stores = collect(function.body, BufferStore)
    for access in collect(function.body, BufferLoad, BufferStore):
        for index, extent in zip(access.indices, access.buffer.shape, strict=True):
            limit(_loaded(index), int(extent) if isinstance(extent, IntImm) else 1)
    for loop in collect(function.body, For):
        limit([*_loaded(loop.extent), *_loaded(loop.min)], _smallest(function))
    for call in collect(function.body, Call):
        if str(getattr(call.op, "name", "")).endswith(("shift_left", "shift_right")):
            limit(_loaded(call.args[1]), _MOST_SHIFTED)
    while any([limit(_loaded(store.value), limits[store.buffer]) for store in stores if store.buffer in limits]):
        pass
    return limits


def _loaded(value: Expr) -> list[Buffer]:
    return [load.buffer for load in collect(value, BufferLoad) if not load.buffer.dtype.is_float]


def _smallest(function: PrimFunc) -> int:
    extents = [extent for buffer in function.buffer_map.values() for extent in buffer.shape]
    return min([int(extent) for extent in extents if isinstance(extent, IntImm) and int(extent) > 1], default=2)
