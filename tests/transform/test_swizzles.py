"""Swizzles: all accesses of a tile find its elements where copies of tensors and tensor cores put them."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.arith import Analyzer
from loopwright.ir import IntImm, PrimFunc, const, decl_buffer
from loopwright.script import from_source
from loopwright.transform import flatten_buffers
from loopwright.transform.parts.swizzles import swizzled
from tests.transform.before_after import same_program
from tests.transform.every_order import check_every_order, some


@pytest.mark.parametrize("lines", [32, 64, 128])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
def test_where_each_element_lies(lines, dtype):
    """Address a holds what plain rows have at a ^ (a >> 7 & mask) << 4."""
    bytes = np.dtype(dtype).itemsize
    columns = lines // bytes
    tile = decl_buffer((3, 8, columns), dtype, "tile", scope="shared")
    seen = set()
    for slot, row, column in np.ndindex(3, 8, columns):
        at = swizzled(tile, (const(slot), const(row), const(column)), lines, Analyzer())
        found = [index.value for index in at if isinstance(index, IntImm)]
        address = ((found[0] * 8 + found[1]) * columns + found[2]) * bytes
        plain = (slot * 8 + row) * lines + column * bytes
        assert address == plain ^ (plain >> 7 & (lines // 16 - 1)) << 4
        seen.add(address)
    assert len(seen) == 3 * 8 * columns


def test_indices_of_a_swizzled_allocation():
    before = from_source("""
@T.prim_func
def main(B: T.Buffer((16, 64), "float16")):
    S_data = T.allocate([16, 64], "float16", "shared", annotations={"swizzle": 128})
    S = T.decl_buffer((16, 64), "float16", data=S_data)
    for r, c in T.grid(16, 64):
        S[r, c] = T.float16(1)
    for r, c in T.grid(16, 64):
        B[r, c] = S[r, c]
""")
    after = from_source("""
@T.prim_func
def main(B: T.Buffer((16, 64), "float16")):
    B_1 = T.decl_buffer((1024,), "float16", data=B.data)
    S_data = T.allocate([1024], "float16", "shared", annotations={"swizzle": 128})
    S = T.decl_buffer((1024,), "float16", data=S_data)
    for r, c in T.grid(16, 64):
        S[r * 64 + (T.bitwise_xor(c // 8, r % 8) * 8 + c % 8)] = T.float16(1)
    for r, c in T.grid(16, 64):
        B_1[r * 64 + c] = S[r * 64 + (T.bitwise_xor(c // 8, r % 8) * 8 + c % 8)]
""")
    same_program(flatten_buffers(before), after)


def staged(columns: int, dtype: str, lanes: int) -> PrimFunc:
    """Threads write vectors to a tile, of which boxes are stored, and another role reads columns."""
    groups, rows = columns // lanes, 16
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((64, {columns}), "{dtype}"), B: T.Buffer((64, {columns}), "{dtype}"),
         C: T.Buffer((64, {columns}), "{dtype}")):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.serial(4, annotations={{"warp_role_stages": 2}}):
            S = T.decl_buffer(({rows}, {columns}), "{dtype}", scope="shared")
            with T.attr("fill", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    for k in range({rows * groups // 32}):
                        for v in T.vectorized({lanes}):
                            S[(k * 32 + tx) // {groups}, (k * 32 + tx) % {groups} * {lanes} + v] = (
                                A[i * {rows} + (k * 32 + tx) // {groups}, (k * 32 + tx) % {groups} * {lanes} + v]
                                + T.Cast("{dtype}", 1)
                            )
            with T.attr("read", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    for k in range({rows * columns // 32}):
                        C[i * {rows} + (k * 32 + tx) % {rows}, (k * 32 + tx) // {rows}] = S[
                            {rows - 1} - (k * 32 + tx) % {rows}, (k * 32 + tx) // {rows}
                        ]
            with T.attr("store", "warp_role", 32):
                for r, c in T.grid({rows}, {columns}):
                    B[i * {rows} + r, c] = S[r, c]
""")


@pytest.mark.parametrize(
    ("columns", "dtype", "lanes"),
    [(64, "float16", 8), (64, "float16", 2), (32, "float16", 4), (16, "float16", 8), (32, "float32", 4),
     (16, "float32", 2), (64, "int8", 8), (128, "int8", 16), (48, "float16", 2), (128, "float16", 4)],
)  # fmt: skip
def test_threads_and_engines_see_one_tile(columns, dtype, lanes):
    function = staged(columns, dtype, lanes)
    source = check_every_order(function, some(64, columns, dtype=dtype), *[np.zeros((64, columns), dtype)] * 2)
    assert "lw_tensor_store_2d" in source
    lines = columns * np.dtype(dtype).itemsize
    assert ("^" in source) == (lines in (32, 64, 128))
