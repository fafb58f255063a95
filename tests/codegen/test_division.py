"""Integer division by what has no quotient: native code gives a value that means nothing, and lives on."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir
from loopwright.ir.operators import truncdiv, truncmod
from loopwright.script import tir as T
from loopwright.target import Target
from tests.c_programs import UNDEFINED, Case, CBatch

pytestmark = pytest.mark.optimized

INTS = "int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()
OPERATIONS: dict[str, Callable[[ir.Expr, ir.Expr], ir.Expr]] = {
    "truncdiv": truncdiv,
    "truncmod": truncmod,
    "floordiv": lambda a, b: a // b,
    "floormod": lambda a, b: a % b,
}


def operands(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Dividends of every sort, by 0, by -1 and by some that have a quotient."""
    kind = ir.DataType(dtype)
    values = sorted({kind.lowest, kind.lowest + 1, 0, 1, 7, kind.highest} | ({-7, -1} if kind.lowest else set()))
    divisors = [0, 1, 3, kind.highest, *((-1, -3, kind.lowest) if kind.lowest else ())]
    found = list(itertools.product(values, divisors))
    return tuple(np.array([pair[side] for pair in found], kind.numpy()) for side in (0, 1))


def wanted(operation: str, dtype: str, a: int, b: int) -> int:
    b = b or 1
    floor = operation.startswith("floor")
    quotient = a // b if floor or (a < 0) == (b < 0) else -(-a // b)
    if operation.endswith("mod"):
        return a - quotient * b
    kind = ir.DataType(dtype)
    return (quotient - kind.lowest) % (1 << kind.bits) + kind.lowest


def expected(operation: str, dtype: str) -> np.ndarray:
    found = [wanted(operation, dtype, int(a), int(b)) for a, b in zip(*operands(dtype), strict=True)]
    return np.array(found, ir.DataType(dtype).numpy())


def divides(operation: str, dtype: str, kind: ir.ForKind = ir.ForKind.SERIAL) -> ir.PrimFunc:
    count, i = len(operands(dtype)[0]), ir.Var("i")
    a, b, c = (ir.decl_buffer((count,), dtype, name) for name in "ABC")
    value = OPERATIONS[operation](ir.BufferLoad(a, [i]), ir.BufferLoad(b, [i]))
    return ir.PrimFunc([a, b, c], ir.For(i, 0, count, kind, ir.BufferStore(c, value, [i])))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", [ir.ForKind.SERIAL, ir.ForKind.VECTORIZED])
@pytest.mark.parametrize("dtype", ["int2", "int4", "uint4", *INTS])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_operands_stop_native_code(operation, dtype, kind):
    a, b = operands(dtype)
    result = np.full_like(a, 99)
    lw.build(divides(operation, dtype, kind))(a, b, result)
    np.testing.assert_array_equal(result, expected(operation, dtype))


class _Known(CBatch):
    """Programs whose right answers are given: the evaluator has none for some operands."""

    def _compare(self, answers: bytes, who: str) -> None:
        position = 0
        for case in self.cases:
            position += sum(array.nbytes for array in case.arrays[:-1])
            got = np.frombuffer(answers, case.arrays[-1].dtype, len(case.arrays[-1]), position)
            position += got.nbytes
            operation, dtype = case.label.split()
            np.testing.assert_array_equal(got, expected(operation, dtype), case.label)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc here")
def test_no_operands_stop_c(tmp_path: Path):
    cases = []
    for operation, dtype in itertools.product(OPERATIONS, ["int4", *INTS]):
        a, b = operands(dtype)
        cases.append(Case(divides(operation, dtype), [a, b, np.zeros_like(a)], f"{operation} {dtype}"))
    _Known(cases, Target("c")).run(["gcc", "-O1", *UNDEFINED], tmp_path)


def test_a_size_of_zero_divides():
    """A size is a divisor like any other: it may be 0."""

    @T.prim_func
    def rows(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "int32")
        C = T.match_buffer(c, (4,), "int32")
        for i in range(4):
            C[i] = T.floordiv(i * 4, n) + T.floormod(i, n) + A.shape[0]

    result = np.full(4, 99, "int32")
    lw.build(rows)(np.zeros(0, "int32"), result)
    np.testing.assert_array_equal(result, [0, 4, 8, 12])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("divisor", [3, 8, -3])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_constant_divisor_costs_nothing(operation, divisor):
    i = ir.Var("i")
    a, c = (ir.decl_buffer((64,), "int32", name) for name in "AC")
    value = OPERATIONS[operation](ir.BufferLoad(a, [i]), ir.IntImm("int32", divisor))
    kernel = lw.build(ir.PrimFunc([a, c], ir.For(i, 0, 64, ir.ForKind.SERIAL, ir.BufferStore(c, value, [i]))))
    text = kernel.get_source("ll")
    assert not re.search(r"icmp ult i32", text)
    array = np.arange(-32, 32, dtype="int32")
    result = np.zeros_like(array)
    kernel(array, result)
    np.testing.assert_array_equal(result, [wanted(operation, "int32", int(x), divisor) for x in array])


def _many(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Every byte by every third; of wider types products and what lies beside them, by divisors of any size."""
    kind = np.dtype(dtype)
    if kind.itemsize == 1:
        every = np.arange(1 << 8).astype(dtype)
        return np.tile(every, 86), np.repeat(every[::3], 1 << 8)
    rng, count, bits = np.random.default_rng(kind.itemsize), 1 << 12, 8 * kind.itemsize
    b, q = (rng.integers(0, 1 << 63, count) >> rng.integers(0, 63, count) for _ in "bq")
    b = b.astype("uint64") % np.uint64(1 << (bits - 1)) + np.uint64(1)
    a = q.astype("uint64") % (np.uint64((1 << bits) - 1) // b) * b + rng.integers(-1, 2, count).view("uint64")
    if kind.kind == "i":
        b = np.where(rng.random(count) < 0.5, b, np.uint64(0) - b)
    return a.astype(dtype), b.astype(dtype)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"])
def test_lanes_divide_exactly(dtype):
    """By way of floats, and beyond their digits lane by lane: the quotients of Python's integers."""
    first, second = _many(dtype)
    lanes, i = 16, ir.Var("i")
    a, b = (ir.decl_buffer(first.shape, dtype, name) for name in "AB")
    index = ir.Ramp(i * lanes, ir.const(1), lanes)
    results = {name: np.zeros_like(first) for name in OPERATIONS}
    outputs = [ir.decl_buffer(first.shape, dtype, name) for name in results]
    x, y = (ir.BufferLoad(buffer, (index,)) for buffer in (a, b))
    stores = [ir.BufferStore(c, OPERATIONS[c.name](x, y), (index,)) for c in outputs]
    loop = ir.For(i, ir.const(0), ir.const(len(first) // lanes), ir.ForKind.SERIAL, ir.seq(stores))
    lw.build(ir.PrimFunc([a, b, *outputs], loop))(first, second, *results.values())
    for name, result in results.items():
        want = [wanted(name, dtype, p, q) for p, q in zip(first.tolist(), second.tolist(), strict=True)]
        np.testing.assert_array_equal(result, np.array(want, first.dtype), name)
