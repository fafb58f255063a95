"""The kernels of `measure_machine`, as TVMScript: one resource of the core limits each of them.

LLVM must not simplify them: operands come from buffers, no two steps of a chain can become one (`x + (x & m)`, not
`x + m`), and every result is stored. Several independent chains hide the latency of each.
"""

from __future__ import annotations

from typing import Final

HEAD: Final = "from loopwright.script import tir as T\n\n@T.prim_func\n"

# Two cycles a step on every CPU: an AND, and an ADD that waits for it.
CLOCK: Final = """def clock(given: T.Buffer((2,), "int64"), result: T.Buffer((1,), "int64")):
    x = T.alloc_buffer((1,), "int64", scope="local")
    x[0] = given[0]
    for step in range({steps}):
        x[0] = x[0] + T.bitwise_and(x[0], given[1])
    result[0] = x[0]
"""
# `x * g + x`, not `x * g + h`: FMLA on Arm overwrites its addend, so `h` would be copied in each step.
FMA: Final = """def fma(given: T.Buffer((1,), "float32"), result: T.Buffer(({chains}, {lanes}), "float32")):
    held = T.alloc_buffer(({chains}, {lanes}), "float32", scope="local")
    for c in T.unroll({chains}):
        for i in T.vectorized({lanes}):
            held[c, i] = result[c, i]
    for step in range({steps}):
        for c in T.unroll({chains}):
            for i in T.vectorized({lanes}):
                held[c, i] = held[c, i] * given[0] + held[c, i]
    for c in T.unroll({chains}):
        for i in T.vectorized({lanes}):
            result[c, i] = held[c, i]
"""
# Four vector instructions a step for each chain of sums, of products and of integers.
VECTOR: Final = """def vector(
    given: T.Buffer((2,), "float32"),
    mask: T.Buffer((1,), "int32"),
    sums: T.Buffer(({chains}, {lanes}), "float32"),
    products: T.Buffer(({chains}, {lanes}), "float32"),
    integers: T.Buffer(({chains}, {lanes}), "int32"),
):
    a = T.alloc_buffer(({chains}, {lanes}), "float32", scope="local")
    m = T.alloc_buffer(({chains}, {lanes}), "float32", scope="local")
    n = T.alloc_buffer(({chains}, {lanes}), "int32", scope="local")
    for c in T.unroll({chains}):
        for i in T.vectorized({lanes}):
            a[c, i] = sums[c, i]
            m[c, i] = products[c, i]
            n[c, i] = integers[c, i]
    for step in range({steps}):
        for c in T.unroll({chains}):
            for i in T.vectorized({lanes}):
                a[c, i] = a[c, i] + given[0]
                m[c, i] = m[c, i] * given[1]
                n[c, i] = n[c, i] + T.bitwise_and(n[c, i], mask[0])
    for c in T.unroll({chains}):
        for i in T.vectorized({lanes}):
            sums[c, i] = a[c, i]
            products[c, i] = m[c, i]
            integers[c, i] = n[c, i]
"""
# A load, an AND and an ADD a step for each of six chains: what the general registers of x86-64 hold.
SCALAR: Final = """def scalar(x: T.Buffer((6, 64), "int64"), y: T.Buffer((6,), "int64")):
    held = T.alloc_buffer((6,), "int64", scope="local")
    for c in T.unroll(6):
        held[c] = y[c]
    for again in range({again}):
        for j in range(32):
            for u in T.unroll(2):
                for c in T.unroll(6):
                    held[c] = held[c] + T.bitwise_and(held[c], x[c, j * 2 + u])
    for c in T.unroll(6):
        y[c] = held[c]
"""
READ: Final = """def read(x_handle: T.handle, y: T.Buffer(({threads}, 8, {lanes}), "float32")):
    x = T.match_buffer(x_handle, ({threads}, {count}, 8, {lanes}), "float32")
    for t in T.{kind}({threads}):
        with T.block("part"):
            vt = T.axis.spatial({threads}, t)
            held = T.alloc_buffer((8, {lanes}), "float32", scope="local")
            for c in T.unroll(8):
                for i in T.vectorized({lanes}):
                    held[c, i] = T.float32(0)
            for again in range({again}):
                for j in range({count}):
                    for c in T.unroll(8):
                        for i in T.vectorized({lanes}):
                            held[c, i] = held[c, i] + x[vt, j, c, i]
            for c in T.unroll(8):
                for i in T.vectorized({lanes}):
                    y[vt, c, i] = held[c, i]
"""
STORE: Final = """def store(given: T.Buffer((1,), "float32"), y: T.Buffer(({count}, 8, {lanes}), "float32")):
    held = T.alloc_buffer(({lanes},), "float32", scope="local")
    for i in T.vectorized({lanes}):
        held[i] = T.float32(0)
    for again in range({again}):
        for i in T.vectorized({lanes}):
            held[i] = held[i] + given[0]
        for j in range({count}):
            for c in T.unroll(8):
                for i in T.vectorized({lanes}):
                    y[j, c, i] = held[i]
"""
# Clamped indices, as a border has them: a gather instruction, where there is one.
GATHER: Final = """def gather(x: T.Buffer((1024,)), y: T.Buffer((8, {lanes}))):
    held = T.alloc_buffer((8, {lanes}), "float32", scope="local")
    for c in T.unroll(8):
        for i in T.vectorized({lanes}):
            held[c, i] = T.float32(0)
    for step in range({steps}):
        for c in T.unroll(8):
            for i in T.vectorized({lanes}):
                held[c, i] = held[c, i] + x[T.max(i + step % 8 + c - 4, 0)]
    for c in T.unroll(8):
        for i in T.vectorized({lanes}):
            y[c, i] = held[c, i]
"""
# Lanes further apart than shuffles reach, of a type that no gather instruction is for.
INSERT: Final = """def insert(x: T.Buffer((8, {lanes}, 33), "int16"), y: T.Buffer((8, {lanes}), "int16")):
    held = T.alloc_buffer((8, {lanes}), "int16", scope="local")
    for c in T.unroll(8):
        for i in T.vectorized({lanes}):
            held[c, i] = y[c, i]
    for again in range({again}):
        for j in range(33):
            for c in T.unroll(8):
                for i in T.vectorized({lanes}):
                    held[c, i] = held[c, i] + x[c, i, j]
    for c in T.unroll(8):
        for i in T.vectorized({lanes}):
            y[c, i] = held[c, i]
"""
# Lanes `stride` elements apart, shuffled out of as many vector loads; neighbours for a stride of 1.
SHUFFLE: Final = """def shuffle(x: T.Buffer(({count}, 8, {lanes} * {stride})), y: T.Buffer((8, {lanes}))):
    held = T.alloc_buffer((8, {lanes}), "float32", scope="local")
    for c in T.unroll(8):
        for i in T.vectorized({lanes}):
            held[c, i] = T.float32(0)
    for again in range({again}):
        for j in range({count}):
            for c in T.unroll(8):
                for i in T.vectorized({lanes}):
                    held[c, i] = held[c, i] + x[j, c, i * {stride}]
    for c in T.unroll(8):
        for i in T.vectorized({lanes}):
            y[c, i] = held[c, i]
"""
# A vector of each cache line of a matrix, one column of lines after the other; with one column, line after line. The
# next column is no neighbour of the last: a prefetcher may have fetched that one, too.
LINES: Final = """def lines(x_handle: T.handle, y: T.Buffer((8, {lanes}))):
    x = T.match_buffer(x_handle, ({size},), "float32")
    held = T.alloc_buffer((8, {lanes}), "float32", scope="local")
    for c in T.unroll(8):
        for i in T.vectorized({lanes}):
            held[c, i] = T.float32(0)
    for again in range({again}):
        for column in range({columns}):
            for j in range({turns}):
                for c in T.unroll(8):
                    for i in T.vectorized({lanes}):
                        held[c, i] = held[c, i] + x[column * 7 % {columns} * {line} + (j * 8 + c) * {row} + i]
    for c in T.unroll(8):
        for i in T.vectorized({lanes}):
            y[c, i] = held[c, i]
"""
