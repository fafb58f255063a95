"""PerStoreFeature: a row for each block that stores: what it computes, its loops, and what it reads and writes.

The rows have as many columns as the peer's (164, and 8 more with `extract_workload`). The columns are our own: models
that the peer trained do not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, prod
from typing import Any

import numpy as np

from loopwright.ir import (
    BlockRealize,
    BufferRegion,
    Expr,
    ForKind,
    IntImm,
    IterType,
    Node,
    pre_order_visit,
    uses_var,
)
from loopwright.meta_schedule.feature_extractor.feature_extractor import FeatureExtractor
from loopwright.runtime.dtype import DataType
from loopwright.runtime.tensor import NDArray, array
from loopwright.schedule import Schedule
from loopwright.schedule.view import View

_OPERATORS = "Add Sub Mul Div FloorDiv FloorMod Min Max EQ LT LE And Or Not Select Call".split()
_KINDS = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.UNROLLED, ForKind.THREAD_BINDING)
_PER_BUFFER = 18
_OTHERS = 164 - len(_OPERATORS) - 5 * _PER_BUFFER - 10


class PerStoreFeature(FeatureExtractor):
    """`buffers_per_store` accesses at most are described."""

    def __init__(
        self,
        buffers_per_store: int = 5,
        arith_intensity_curve_num_samples: int = 10,
        cache_line_bytes: int = 64,
        extract_workload: bool = False,
    ) -> None:
        self.buffers_per_store, self.curve = buffers_per_store, arith_intensity_curve_num_samples
        self.cache_line_bytes, self.extract_workload = cache_line_bytes, extract_workload

    def extract_from(self, context: Any, candidates: Sequence[Any]) -> list[NDArray]:
        return [array(self.rows_of(candidate.sch)) for candidate in candidates]

    @property
    def columns(self) -> int:
        """How many numbers a row has."""
        own = len(_OPERATORS) + self.buffers_per_store * _PER_BUFFER + self.curve + _OTHERS
        return own + (8 if self.extract_workload else 0)

    def rows_of(self, sch: Schedule | None) -> np.ndarray:
        """The rows of a schedule."""
        rows = []
        for view in sch.views().values() if sch is not None else ():
            for key in view.index.blocks:
                realize = view.realize(key)
                if len(view.block_path(key)) > 1 and realize.block.writes:
                    rows.append(self._row(view, key, realize))
        result = np.array(rows, dtype=np.float64).reshape(len(rows), self.columns)
        return np.sign(result) * np.log2(1 + np.abs(result))

    def _row(self, view: View, key: Any, realize: BlockRealize) -> list[float]:
        loops = view.all_loops_above(view.block_path(key))
        extents = [_number(loop.extent) for loop in loops]
        instances = float(prod(extents)) or 1.0
        counts = dict.fromkeys(_OPERATORS, 0.0)

        def look(node: Node) -> bool:
            name = type(node).__name__
            if name in counts:
                counts[name] += instances
            return True

        pre_order_visit(realize.block.body, look)
        loop_numbers: list[float] = []
        for kind in _KINDS:
            own = [extent for loop, extent in zip(loops, extents, strict=True) if loop.kind is kind]
            innermost = own[-1] if own else 0
            loop_numbers += [len(own), float(prod(own)), innermost]
        reduced = [axis for axis in realize.block.iter_vars if axis.iter_type == IterType.CommReduce]
        others = [*loop_numbers, len(loops), instances, len(reduced), float(realize.block.init is not None)]
        accesses = [(one, 1.0) for one in realize.block.writes] + [(one, 0.0) for one in realize.block.reads]
        buffers: list[float] = []
        values = dict(zip([axis.var for axis in realize.block.iter_vars], realize.iter_values, strict=True))
        for access, is_write in accesses[: self.buffers_per_store]:
            buffers += self._access(access, is_write, values, loops, extents)
        buffers += [0.0] * (self.buffers_per_store * _PER_BUFFER - len(buffers))
        touched = max(1.0, sum(float(prod([_number(size) for size in one.buffer.shape])) for one, _ in accesses))
        arithmetic = sum(counts.values())
        curve = [arithmetic / max(1.0, touched ** (1 - step / self.curve)) for step in range(self.curve)]
        others = (others + [0.0] * _OTHERS)[:_OTHERS]
        row = [*counts.values(), *buffers, *curve, *others]
        return row + list(counts.values())[:8] if self.extract_workload else row

    def _access(
        self, access: BufferRegion, is_write: float, values: dict[Any, Expr], loops: Sequence[Any], extents: list[int]
    ) -> list[float]:
        size = DataType(str(access.buffer.dtype)).bits / 8
        shape = [_number(one) for one in access.buffer.shape]
        used = [
            any(
                uses_var(part.min, {var}.__contains__) and uses_var(value, {loop.loop_var}.__contains__)
                for part in access.region
                for var, value in values.items()
            )
            for loop in loops
        ]
        moved = [extent for extent, one in zip(extents, used, strict=True) if one]
        kept = [extent for extent, one in zip(extents, used, strict=True) if not one]
        tiles = [
            float(prod([extent for extent, one in zip(extents[-depth:], used[-depth:], strict=True) if one]))
            for depth in range(1, 9)
        ]
        bytes_all = float(prod(shape)) * size
        return [
            is_write,
            1 - is_write,
            bytes_all,
            float(prod(moved)) * size,
            bytes_all / self.cache_line_bytes,
            float(prod(kept)),
            float(bool(used and used[-1])),
            float(len(shape)),
            log2(1 + (shape[-1] if shape else 1)),
            size,
            *tiles,
        ]


def _number(size: Expr) -> int:
    return size.value if isinstance(size, IntImm) else 1


FeatureExtractor.kinds["per-store-feature"] = PerStoreFeature
