"""Wide accesses: when an index is a multiple of the lanes, and for which sizes."""

from __future__ import annotations

import itertools

import pytest

from loopwright import ir, te
from loopwright.analysis.wide_accesses import aligned_for, wide_copy, widths
from loopwright.arith import Analyzer
from loopwright.runtime.dtype import DataType

i, j, n, m = [te.var(name) for name in "ijnm"]


def wide(expr: ir.Expr) -> ir.Expr:
    return expr.astype("int64")


@pytest.mark.parametrize(
    ("index", "lanes", "sizes"),
    [
        (i * 4 + j * 8, 4, set()),
        (i * 6, 4, None),
        (i * 6, 2, set()),
        (i * 4 + 2, 4, None),
        ((i * 4 + 2) - 2, 4, set()),
        (wide(i) * wide(n) + wide(j) * 4, 4, {n}),
        (wide(i * n * m + j * 4), 4, {m}),
        (i * n + j * m, 4, {n, m}),
        (i * n + j, 4, None),
        (i * (n * 4) + j * 4, 4, set()),
        (i * (n + 4) + j * 4, 4, {n}),
        ((i * 4) // 64 * 1024 + (i * 4) % 64, 4, set()),
        ((i * 4) % 6, 4, None),
        (i * 8 // 2, 4, set()),
        (i * 8 // 4, 4, None),
        (i * 12 // 3, 4, set()),
        (te.min(i * 4, n), 4, {n}),
        (te.if_then_else(i < 3, j * 4, 8), 4, set()),
        (ir.const(0), 16, set()),
    ],
)
def test_an_index_is_a_multiple(index, lanes, sizes):
    found = aligned_for(index, lanes, {n, m})
    assert (None if found is None else set(found)) == sizes
    if found is None:
        return
    multiples = [range(0, 3 * lanes, lanes) if var in found else range(3) for var in (n, m)]
    for values in itertools.product(range(5), range(5), *multiples):
        at = ir.substitute(index, {var: ir.const(value) for var, value in zip((i, j, n, m), values)})
        assert ir_value(at) % lanes == 0


def ir_value(expr: ir.Expr) -> int:
    result = Analyzer().simplify(expr)
    assert isinstance(result, ir.IntImm)
    return result.value


def test_an_access_has_at_most_16_bytes():
    assert widths(4, 4) == [4, 2]
    assert widths(1, 16) == [16, 8, 4, 2]
    assert widths(8, 8) == [2]
    assert widths(4, 6) == [2]
    assert widths(2, 8) == [8, 4, 2]
    assert widths(4, 3) == []


@pytest.mark.parametrize(
    ("dtype", "lanes", "stride", "is_wide"),
    [
        ("float32", 4, 1, True),
        ("float32", 8, 1, False),
        ("float32", 4, 2, False),
        ("int8", 16, 1, True),
        ("int4", 8, 1, False),
    ],
)
def test_a_copy_is_one_access_each_way(dtype, lanes, stride, is_wide):
    A, B = [ir.decl_buffer((64,), DataType(dtype), name) for name in "AB"]
    ramp = ir.Ramp(i * 16, ir.const(stride), lanes)
    copy = ir.BufferStore(B, ir.BufferLoad(A, (ramp,)), (ramp,))
    assert (wide_copy(copy) is not None) == is_wide
    assert wide_copy(ir.BufferStore(B, ir.BufferLoad(A, (ir.Ramp(i, ir.const(1), lanes),)), (ramp,))) is None
