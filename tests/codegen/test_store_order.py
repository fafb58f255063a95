"""Wide vectors are stored register by register, in ascending order; what interleaves lanes is stored as a whole."""

from __future__ import annotations

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir

AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1"


def rounded(lanes: int, dtype: str = "float32", target: str = "llvm", size: int = 67) -> lw.Module:
    """Elements in vectors of so many lanes, some of them left over."""
    x = te.placeholder((size,), dtype, name="x")
    y = te.compute((size,), lambda i: tir.nearbyint(x[i]), name="y")
    schedule = te.create_schedule(y.op)
    outer, inner = schedule[y].split(y.op.axis[0], lanes)
    schedule[y].vectorize(inner)
    return lw.build(schedule, [x, y], target=target)


@pytest.mark.parametrize("lanes", [2, 16, 24, 32, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_all_is_stored(lanes, dtype):
    # With elements left over, LLVM 22 ends the process on AArch64 where 64 float32 pass from one block to another.
    size = 128 if lanes == 64 else 67
    x = np.linspace(-40, 40, size).astype(dtype)
    y = np.zeros(size, dtype)
    rounded(lanes, dtype, size=size)(x, y)
    np.testing.assert_array_equal(y, np.rint(x))


def test_registers_are_stored_in_ascending_order():
    assembly = rounded(64, target=AVX512).get_source("asm")
    found = re.findall(r"vmovups\s+%zmm\d+, (-?\d*)\(", assembly)
    offsets = [int(offset or 0) for offset in found]
    assert len(offsets) >= 4 and offsets[:4] == sorted(offsets[:4])


def test_lanes_that_are_interleaved_are_stored_as_one_vector():
    x = te.placeholder((3, 64), "uint8", name="x")
    y = te.compute((64, 3), lambda i, c: x[c, i], name="y")
    schedule = te.create_schedule(y.op)
    whole = schedule[y].fuse(*y.op.axis)
    _, inner = schedule[y].split(whole, 48)
    schedule[y].vectorize(inner)
    built = lw.build(schedule, [x, y])
    given, found = np.arange(192, dtype=np.uint8).reshape(3, 64), np.zeros((64, 3), np.uint8)
    built(given, found)
    np.testing.assert_array_equal(found, given.T)
    assert "store <48 x i8>" in built.get_source("ll")
