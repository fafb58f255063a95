"""narrow_indices: 64-bit indices become 32-bit ones on machines with 32-bit pointers."""

from __future__ import annotations

import pytest

from loopwright.script import tir as T
from loopwright.target import Target
from loopwright.transform.passes.choose_index_width import choose_index_width
from tests.transform.before_after import check, unchanged

THUMB = Target("llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m4")
RV32 = Target("llvm -mtriple=riscv32-unknown-elf")


@pytest.mark.parametrize("target", [THUMB, RV32], ids=str)
def test_loops_and_sums_are_narrowed(target):
    @T.prim_func
    def before(A: T.Buffer((T.int64(64),), "float32"), B: T.Buffer((T.int64(64),), "float32")):
        for i in range(T.int64(8)):
            for j in range(T.int64(8)):
                B[i * T.int64(8) + j] = A[j * T.int64(8) + i]

    @T.prim_func
    def after(A: T.Buffer((T.int64(64),), "float32"), B: T.Buffer((T.int64(64),), "float32")):
        for i in range(8):
            for j in range(8):
                B[i * 8 + j] = A[j * 8 + i]

    check(choose_index_width, before, after, target)


def test_quotients_stay_wide_and_values_keep_their_type():
    @T.prim_func
    def before(n: T.int64, A: T.Buffer((16,), "int64")):
        for i in range(T.int64(5)):
            A[i * n // T.int64(7)] = i + n

    @T.prim_func
    def after(n: T.int64, A: T.Buffer((16,), "int64")):
        for i in range(5):
            A[T.Cast("int32", T.Cast("int64", i) * n // T.int64(7))] = T.Cast("int64", i) + n

    check(choose_index_width, before, after, THUMB)


def test_large_offsets_wrap_to_the_same_cell():
    @T.prim_func
    def before(A: T.Buffer((16,), "float32")):
        for i in range(T.int64(4)):
            A[i + T.int64(4294967296) - T.int64(4294967293)] = T.float32(1)

    @T.prim_func
    def after(A: T.Buffer((16,), "float32")):
        for i in range(4):
            A[T.Add(i, 0) - T.int32(-3)] = T.float32(1)

    check(choose_index_width, before, after, THUMB)


def test_a_symbolic_loop_keeps_its_variable():
    @T.prim_func
    def before(n: T.int64, A: T.Buffer((16,), "float32")):
        for i in range(n):
            A[i] = T.float32(1)

    @T.prim_func
    def after(n: T.int64, A: T.Buffer((16,), "float32")):
        for i in range(n):
            A[T.Cast("int32", i)] = T.float32(1)

    check(choose_index_width, before, after, THUMB)


def test_32_bit_programs_stay_as_they_are():
    @T.prim_func
    def program(A: T.Buffer((16,), "float32")):
        for i in range(16):
            A[i] = T.float32(1)

    unchanged(choose_index_width, program, THUMB)
