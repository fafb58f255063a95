"""Words for memory: buffers, allocations, regions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from loopwright.ir import Buffer as BufferNode
from loopwright.ir import (
    BufferLoad,
    BufferRegion,
    BufferStore,
    Evaluate,
    IntImm,
    Prefetch,
    Stmt,
    Var,
    as_expr,
    as_exprs,
    cast,
    const,
)
from loopwright.ir import Range as RangeNode
from loopwright.runtime.dtype import DataType
from loopwright.script.parser import directives as d
from loopwright.script.parser.expressions import TakesRegions
from loopwright.script.words.types import DtypeFunction
from loopwright.script.words.values import Range

__all__ = [
    "Buffer",
    "alloc_buffer",
    "allocate",
    "allocate_const",
    "buffer_decl",
    "buffer_store",
    "decl_buffer",
    "evaluate",
    "match_buffer",
    "prefetch",
    "realize",
]


def _spec(
    shape: object,
    dtype: str | None = "float32",
    data: Var | None = None,
    strides: Sequence[object] | None = None,
    elem_offset: object = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Sequence[int] | None = None,
) -> d.BufferSpec:
    sizes = None if shape is None else tuple(shape) if isinstance(shape, (tuple, list, Sequence)) else (shape,)
    if isinstance(dtype, DtypeFunction):
        dtype = dtype.dtype
    return d.BufferSpec(
        sizes, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type, axis_separators
    )


class _BufferWord:
    """`T.Buffer((16, 16), "float32")`: a parameter's annotation, or a buffer over memory that exists."""

    def __call__(self, shape: object, dtype: str = "float32", *args: Any, **kwargs: Any) -> d.BufferSpec | BufferNode:
        spec = _spec(shape, dtype, *args, **kwargs)
        # Outside a script there is no name to give: it is a buffer at once.
        return spec if d.reading.depth else spec.make("buffer")

    def __getitem__(self, keys: object) -> d.BufferSpec:
        """The older spelling `T.Buffer[(16, 16), "float32"]`."""
        warnings.warn("T.Buffer[...] is deprecated: write T.Buffer(shape, dtype)", DeprecationWarning, stacklevel=2)
        return _spec(*keys) if isinstance(keys, tuple) and len(keys) == 2 else _spec(keys)


Buffer = _BufferWord()


def buffer_decl(shape: object, dtype: str = "float32", *args: Any, **kwargs: Any) -> d.BufferSpec:
    """An older spelling of `T.Buffer`."""
    warnings.warn("T.buffer_decl is deprecated: write T.Buffer(shape, dtype)", DeprecationWarning, stacklevel=2)
    return _spec(shape, dtype, *args, **kwargs)


def alloc_buffer(shape: object, dtype: str = "float32", *args: Any, **kwargs: Any) -> d.AllocBuffer:
    """Memory of the enclosing block, or of the root block."""
    return d.AllocBuffer(_spec(shape, dtype, *args, **kwargs))


def decl_buffer(shape: object, dtype: str = "float32", *args: Any, **kwargs: Any) -> d.DeclSpec:
    """A buffer over `data`; without `data` its memory is allocated too."""
    return d.DeclSpec(_spec(shape, dtype, *args, **kwargs))


@TakesRegions
def match_buffer(
    param: Var | BufferRegion | BufferLoad, shape: object = None, dtype: str | None = None, *args: Any, **kwargs: Any
) -> d.MatchSpec:
    """The buffer behind a parameter, or, inside a block, a buffer that names a region."""
    return d.MatchSpec(param, _spec(shape, dtype, *args, **kwargs))


def allocate(
    extents: object,
    dtype: str,
    scope: str = "global",
    condition: object = None,
    annotations: Mapping[str, object] | None = None,
) -> d.AllocateSpec:
    """A pointer to fresh memory."""
    sizes = extents if isinstance(extents, (tuple, list)) else (extents,)
    holds = const(True) if condition is None else as_expr(condition)
    return d.AllocateSpec(as_exprs(tuple(sizes)), DataType(dtype), scope, holds, annotations or {}, None)


def allocate_const(
    data: object, dtype: str, extents: Sequence[object], annotations: Mapping[str, object] | None = None
) -> d.AllocateConstSpec:
    """A pointer to constant memory that holds `data`, a list or an array."""
    sizes = as_exprs(tuple(extents))
    shape = [one.value for one in sizes if isinstance(one, IntImm)]
    if len(shape) != len(sizes):
        raise ValueError("allocate_const: the extents must be constants")
    flat = np.asarray(data, DataType(dtype).numpy()).reshape(-1)
    if flat.size != prod(shape):
        raise ValueError(f"allocate_const: {flat.size} values for extents {shape}, which hold {prod(shape)}")
    values = flat.reshape(shape)
    return d.AllocateConstSpec(values, DataType(dtype), sizes, annotations or {}, None)


@TakesRegions
def realize(buffer_slice: object, storage_scope: str = "", condition: object = True) -> d.RealizeSpec:
    """Have a region stored while the scope runs."""
    region = d.region_of(buffer_slice)
    if region is None:
        raise TypeError("realize: give a region such as A[0:16, 0:16]")
    return d.RealizeSpec(region, storage_scope, as_expr(condition))


def prefetch(buffer: BufferNode, bounds: Sequence[RangeNode | tuple[object, object]]) -> Stmt:
    """Ask for a region of `buffer` to be brought near."""
    return Prefetch(buffer, tuple([one if isinstance(one, RangeNode) else Range(*one) for one in bounds]))


def buffer_store(buffer: BufferNode, value: object, indices: Sequence[object]) -> Stmt:
    """The assignment `buffer[indices] = value`."""
    locations = as_exprs(tuple(indices) if isinstance(indices, (tuple, list)) else (indices,))
    return BufferStore(buffer, cast(as_expr(value), BufferLoad(buffer, locations).dtype), locations)


def evaluate(value: object) -> Stmt:
    """Compute `value` for its effect."""
    return Evaluate(as_expr(value))
