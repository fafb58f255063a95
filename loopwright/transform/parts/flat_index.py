"""flat_index: sums and products of indices, folded as they are built.

The operators of `ir` fold literals only. Index arithmetic made by lowering also drops zeros and ones and keeps a vector
of evenly spaced indices a Ramp, so that later passes see it.
"""

from __future__ import annotations

from loopwright.ir import Broadcast, Buffer, Expr, IntImm, Ramp, cast, const
from loopwright.runtime.dtype import INT64


def is_literal(expr: Expr, value: int) -> bool:
    """Whether `expr` is that integer."""
    return type(expr) is IntImm and expr.value == value


def add_index(a: Expr, b: Expr) -> Expr:
    """a + b."""
    if is_literal(a, 0) and b.dtype.bits >= a.dtype.bits:
        return b
    if is_literal(b, 0) and a.dtype.bits >= b.dtype.bits:
        return a
    if isinstance(a, Broadcast) and isinstance(b, Broadcast) and a.lanes == b.lanes:
        return Broadcast(add_index(a.value, b.value), a.lanes)
    if isinstance(a, Ramp) and isinstance(b, Ramp) and a.lanes == b.lanes:
        return Ramp(add_index(a.base, b.base), add_index(a.stride, b.stride), a.lanes)
    ramp = a if isinstance(a, Ramp) else b
    if isinstance(ramp, Ramp):
        left, right = scalar_part(a), scalar_part(b)
        if left.dtype.lanes == 1 and right.dtype.lanes == 1:
            base = add_index(left, right)
            return Ramp(base, cast(ramp.stride, base.dtype), ramp.lanes)
    return a + b


def scalar_part(index: Expr) -> Expr:
    """What lane 0 of a Ramp or Broadcast is; a scalar itself."""
    return index.base if isinstance(index, Ramp) else index.value if isinstance(index, Broadcast) else index


def mul_index(a: Expr, b: Expr) -> Expr:
    """a * b."""
    if is_literal(a, 1) and b.dtype.bits >= a.dtype.bits:
        return b
    if is_literal(b, 1) and a.dtype.bits >= b.dtype.bits:
        return a
    if is_literal(a, 0) or is_literal(b, 0):
        wider = a.dtype if a.dtype.bits >= b.dtype.bits else b.dtype
        return const(0, wider.with_lanes(max(a.dtype.lanes, b.dtype.lanes)))
    if isinstance(b, Ramp):
        a, b = b, a
    if isinstance(a, Ramp):
        if isinstance(b, Broadcast):
            b = b.value
        if b.dtype.lanes == 1:
            base = mul_index(a.base, b)
            return Ramp(base, cast(mul_index(a.stride, b), base.dtype), a.lanes)
    return a * b


def sub_index(a: Expr, b: Expr) -> Expr:
    """a - b."""
    if is_literal(b, 0) and a.dtype.bits >= b.dtype.bits:
        return a
    if isinstance(a, Ramp):
        if isinstance(b, Broadcast):
            b = b.value
        if isinstance(b, Ramp) and a.lanes == b.lanes:
            return Ramp(sub_index(a.base, b.base), sub_index(a.stride, b.stride), a.lanes)
        if b.dtype.lanes == 1:
            base = sub_index(a.base, b)
            return Ramp(base, cast(a.stride, base.dtype), a.lanes)
    elif isinstance(b, Ramp):
        return add_index(a, mul_index(b, const(-1, b.base.dtype)))
    return a - b


def element_count(buffer: Buffer) -> int | None:
    """How many elements a compact buffer of constant shape has; None when unknown."""
    count = 1
    for extent in buffer.shape:
        if not isinstance(extent, IntImm):
            return None
        count *= extent.value
    return count


def flat_index(buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    """The element offset of `buffer[indices]` from `buffer.data`, as one index."""
    count = element_count(buffer)
    # Literal strides are multiplied as Python integers; the index needs 64 bits once the buffer does.
    needs_64_bits = count is not None and count >= 1 << 31
    index: Expr = buffer.elem_offset
    for position, stride in zip(indices, flat_strides(buffer), strict=True):
        if needs_64_bits and position.dtype.bits < 64:
            position = widened(position)
        index = add_index(index, mul_index(position, stride))
    if not indices and index.dtype.bits < 32:
        index = cast(index, INT64)
    return index


def widened(index: Expr) -> Expr:
    """`index` as int64; a Ramp stays one."""
    if isinstance(index, Ramp):
        return Ramp(widened(index.base), widened(index.stride), index.lanes)
    return cast(index, INT64.with_lanes(index.dtype.lanes))


def flat_strides(buffer: Buffer) -> tuple[Expr, ...]:
    """The buffer's strides in elements; products of literals never wrap around."""
    if buffer.strides or not buffer.shape:
        return buffer.strides
    dtype = buffer.shape[-1].dtype
    strides: list[Expr] = [const(1, dtype)]
    for extent in reversed(buffer.shape[1:]):
        last = strides[-1]
        if isinstance(last, IntImm) and isinstance(extent, IntImm):
            product = last.value * extent.value
            strides.append(const(product, dtype if product < 1 << 31 else INT64))
        else:
            strides.append(mul_index(last, extent))
    strides.reverse()
    return tuple(strides)
