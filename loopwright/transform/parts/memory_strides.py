"""How far an access moves in memory when a loop variable grows by one."""

from __future__ import annotations

from loopwright.arith import Analyzer, linear_coefficients
from loopwright.ir import BufferLoad, BufferStore, Expr, IntImm, Var, uses_var

Access = BufferLoad | BufferStore


def stride_of(access: Access, var: Var, facts: Analyzer) -> int | None:
    """The distance in elements; None where it is not a constant."""
    total = 0
    strides = element_strides(access)
    for dimension, index in enumerate(access.indices):
        if not uses_var(index, lambda used: used is var):
            continue
        result = linear_coefficients(index, [var], facts)
        stride = strides[dimension]
        if result is None or not isinstance(result[0][0], IntImm) or stride is None:
            return None
        total += result[0][0].value * stride
    return total


def element_strides(access: Access) -> list[int | None]:
    """The distance in elements between neighbours, by dimension; None where it is not a constant."""
    buffer = access.buffer
    if buffer.strides:
        return [_constant(stride) for stride in buffer.strides]
    strides: list[int | None] = []
    total: int | None = 1
    for extent in reversed(buffer.shape):
        strides.append(total)
        size = _constant(extent)
        total = None if total is None or size is None else total * size
    return strides[::-1]


def _constant(value: Expr) -> int | None:
    return value.value if isinstance(value, IntImm) else None
