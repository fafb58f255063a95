"""Element-wise work on a GPU: what is chosen, and that it is right for all sizes and types."""

from __future__ import annotations

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te, topi
from tests.autosched.gpu.emulated import EMULATED, Emulated, Program
from tests.autosched.gpu.emulated import check as check_programs

RNG = np.random.default_rng(0)


def check(args, given, *wanted, rtol=1e-6):
    """Build by rule, run emulated, compare; the plan in words and the kernels' text."""
    made = check_programs(Program(args, given, wanted), rtol=rtol)
    return made.plans[0].explain(), made.source


def values(*shape, dtype="float32"):
    return (RNG.random(shape) * 100).astype(dtype)


TYPES = ("float32", "float16", "int8", "uint8", "bool", "int64", "float64")


def test_copies_are_vectors_of_16_bytes():
    programs, all_widest = [], []
    for dtype in TYPES:
        lanes = 16 // np.dtype(dtype).itemsize
        for n in (lanes - 1, 256 * lanes + 1):
            A, a = te.placeholder((n,), dtype, name="A"), values(n, dtype=dtype)
            programs.append(Program([A, topi.identity(A)], [a], [a]))
            all_widest.append(lanes if n >= lanes else lanes // 2)
    for plan, widest in zip(check_programs(*programs).plans, all_widest, strict=True):
        assert (f"vectors of {widest}" if widest > 1 else "single elements") in plan.explain()


def test_all_threads_but_the_last_run_without_guards():
    n = 256 * 4 * 3 + 5
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2, name="B")
    a = values(n)
    plan, source = check([A, B], [a], a * 2)
    assert "vectors of 4" in plan
    kernel = source[source.index("__global__") :]
    assert "if (blockIdx_x * 256 + threadIdx_x < 769) {" in kernel and "} else {" in kernel


def test_a_block_has_a_few_kibibytes_of_each_operand():
    def plan(n, **kinds):
        A = te.placeholder((n,), name="A", **kinds)
        B = te.compute((n,), lambda i: A[i], name="B")
        return autosched.apply([A, B], "nvidia/nvidia-h200").explain()

    assert "1 vector a thread, 256 threads a block" in plan(2**26 + 1)
    assert "vectors of 8" in plan(2**26, dtype="float16") and "1 vector a thread" in plan(2**26, dtype="float16")
    assert "537 MB at 4.22 TB/s" in plan(2**26 + 1)
    A = te.placeholder((2**24 + 1,), name="A")
    B = te.compute((2**24,), lambda i: A[i + 1], name="B")
    assert "4 elements a thread" in autosched.apply([A, B], "nvidia/nvidia-h200").explain()


def test_a_row_is_added_to_all_rows():
    programs = []
    for columns in (1, 3, 70, 72):
        A = te.placeholder((100, columns), name="A")
        R = te.placeholder((columns,), name="R")
        C = te.placeholder((100, 1), name="C")
        B = topi.add(A, topi.multiply(R, C))
        a, r, c = values(100, columns), values(columns), values(100, 1)
        programs.append(Program([A, R, C, B], [a, r, c], [a + r * c]))
    assert all(["vectors of 4" in plan.explain() for plan in check_programs(*programs, rtol=1e-5).plans])


def test_rows_that_begin_anywhere_are_done_by_elements():
    A = te.placeholder((50, 71), name="A")
    B = te.compute((50, 70), lambda i, j: A[i, j + 1], name="B")
    a = values(50, 71)
    plan, _ = check([A, B], [a], a[:, 1:])
    assert "single elements" in plan


def test_open_sizes():
    n, m = te.var("n"), te.var("m")
    A, R = te.placeholder((n, m), name="A"), te.placeholder((m,), name="R")
    B = te.compute((n, m), lambda i, j: A[i, j] + R[j], name="B")
    C = te.compute((n, m), lambda i, j: A[i, j] * 2, name="C")
    made = Emulated([A, R, B, C])
    plan = made.plans[0].explain()
    assert "each block a piece of a row" in plan and "default binding" not in plan
    for shape in ((1, 1), (7, 3), (33, 64), (5, 1030), (0, 3), (3, 0)):
        a, r = values(*shape), values(shape[1])
        b, c = np.zeros(shape, "float32"), np.zeros(shape, "float32")
        made.functions[0](a, r, b, c)
        np.testing.assert_array_equal(b, a + r)
        np.testing.assert_array_equal(c, a * 2)


def test_open_sizes_around_a_row_of_known_length():
    n, m = te.var("n"), te.var("m")
    A, R = te.placeholder((n, m, 7), name="A"), te.placeholder((n, 7), name="R")
    B = te.compute((n, m, 7), lambda i, j, k: A[i, j, k] + R[i, k], name="B")
    a, r = values(5, 13, 7), values(5, 7)
    plan, _ = check([A, R, B], [a, r], a + r[:, None])
    assert "default binding" not in plan


def test_nothing_and_one_thing():
    zero = te.placeholder((0, 5), name="A")
    check([zero, te.compute((0, 5), lambda i, j: zero[i, j] + 1, name="B")], [values(0, 5)], values(0, 5))
    one = te.placeholder((), name="A")
    check([one, te.compute((), lambda: one() + 1, name="B")], [np.array(2, "float32")], np.array(3, "float32"))


@pytest.mark.parametrize("axis", [0, 1])
def test_cells_that_are_only_moved(axis):
    A, I = te.placeholder((20, 64), name="A"), te.placeholder((9,), "int32", name="I")
    B = te.placeholder((20, 64), name="B")
    a, b, i = values(20, 64), values(20, 64), RNG.integers(0, 20, 9).astype("int32")
    before, after = [0, 0], [0, 0]
    before[axis], after[axis] = 4, 3
    check_programs(
        Program([A, I, topi.take(A, I, axis=axis)], [a, i], [np.take(a, i, axis)]),
        Program([A, B, topi.concatenate([A, B], axis)], [a, b], [np.concatenate([a, b], axis)]),
        Program([A, topi.nn.pad(A, before, after)], [a], [np.pad(a, list(zip(before, after, strict=True)))]),
        Program([A, topi.strided_slice(A, [1, 2], [19, 60], [2, 3])], [a], [a[1:19:2, 2:60:3]]),
        Program([A, topi.reshape(A, (64, 20))], [a], [a.reshape(64, 20)]),
        Program([A, topi.flip(A, axis)], [a], [np.flip(a, axis)]),
        Program([A, topi.repeat(A, 3, axis)], [a], [np.repeat(a, 3, axis)]),
        Program([A, topi.tile(A, (2, 3))], [a], [np.tile(a, (2, 3))]),
    )


def test_several_results_of_mixed_types():
    A = te.placeholder((6, 50), "float16", name="A")
    B = te.compute((6, 50), lambda i, j: A[i, j].astype("float32") * 0.5, name="B")
    C = te.compute((6, 50), lambda i, j: A[i, j] > te.const(50, "float16"), name="C")
    a = values(6, 50, dtype="float16")
    _, source = check([A, B, C], [a], a.astype("float32") * np.float32(0.5), a > 50)
    assert len(set(re.findall(r"main_kernel(?:_\d+)?\b", source))) == 2


def test_a_result_in_another_order_of_loops():
    from loopwright.script import tir as T

    @T.prim_func
    def columns(A: T.Buffer((40, 12)), B: T.Buffer((12, 40))):
        for i, j in T.grid(40, 12):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj, vi] = A[vi, vj] + T.float32(1)

    a, b = values(40, 12), np.zeros((12, 40), "float32")
    lw.build(columns, target=EMULATED, autosched=True)(a, b)
    np.testing.assert_array_equal(b, a.T + np.float32(1))


def test_rows_of_an_even_length_are_shorter_vectors():
    A = te.placeholder((50, 72), name="A")
    B = te.compute((50, 70), lambda i, j: A[i, j], name="B")
    a = values(50, 72)
    plan, source = check([A, B], [a], a[:, :70])
    assert "vectors of 2: 8 bytes" in plan and "float2" in source


def test_a_choice_that_all_lanes_agree_on_is_between_vectors():
    A, B = te.placeholder((20, 64), "float16", name="A"), te.placeholder((20, 32), "float16", name="B")
    C = topi.concatenate([A, B], 1)
    a, b = values(20, 64, dtype="float16"), values(20, 32, dtype="float16")
    plan, source = check([A, B, C], [a, b], np.concatenate([a, b], 1))
    assert "vectors of 8" in plan and "*(uint16x8 *)&T_concat" in source
    below = te.compute((64, 64), lambda i, j: te.if_then_else(j <= i, A[0, j], te.const(0, "float16")), name="D")
    assert "one store; which load a thread does differs" in autosched.apply([A, below], EMULATED).explain()


def test_rows_that_are_picked_by_wide_numbers_are_vectors():
    A, I = te.placeholder((50, 64), "float16", name="A"), te.placeholder((9,), "int64", name="I")
    a, i = values(50, 64, dtype="float16"), RNG.integers(0, 50, 9)
    plan, source = check([A, I, topi.take(A, I, axis=0)], [a, i], a[i])
    assert "vectors of 8: 16 bytes" in plan and "*(uint16x8 *)&T_take" in source


def test_more_elements_than_32_bits_count():
    A = te.placeholder((3, 50000, 50000), "int8", name="A")
    B = te.compute((3, 50000, 50000), lambda b, i, j: A[b, i, j] + te.const(1, "int8"), name="B")
    assert "vectors of 16" in autosched.apply([A, B], "nvidia/nvidia-h200").explain()


def test_channels_that_are_few_are_one_thread():
    A = te.placeholder((2, 9, 31, 3), name="A")
    a = values(2, 9, 31, 3)
    plan, source = check([A, topi.transpose(A, (0, 3, 1, 2))], [a], a.transpose(0, 3, 1, 2).copy())
    assert "all of i1 a thread" in plan


def test_channels_that_become_neighbours_are_interleaved():
    programs = []
    for dtype, channels, shape in (("float32", 2, (5, 12)), ("float16", 4, (3, 70)), ("int8", 2, (264,))):
        parts = [te.placeholder(shape, dtype, name=f"A{k}") for k in range(channels)]
        a = [values(*shape, dtype=dtype) for _ in parts]
        programs.append(Program([*parts, topi.stack(parts, -1)], a, [np.stack(a, -1)]))
    P, B = te.placeholder((3, 2, 44), name="P"), te.placeholder((2,), name="B")
    pixels = te.compute((3, 44, 2), lambda n, i, c: P[n, c, i] * B[c], name="pixels")
    p, b = values(3, 2, 44), values(2)
    programs.append(Program([P, B, pixels], [p, b], [p.transpose(0, 2, 1) * b]))
    stacked = check_programs(*programs, rtol=1e-6).plans[:3]
    assert all(["interleaved in registers" in plan.explain() for plan in stacked])


def test_channels_that_no_vectors_hold_are_not_interleaved():
    for shape, channels in (((5, 7), 2), ((5, 12), 3)):
        parts = [te.placeholder(shape, name=f"A{k}") for k in range(channels)]
        assert "interleaved" not in autosched.apply([*parts, topi.stack(parts, -1)], EMULATED).explain()


def test_padded_rows_are_loaded_one_by_one_and_stored_together():
    programs = []
    for dtype, shape in (("float32", (3, 5, 8)), ("float16", (4, 5, 18)), ("int8", (2, 3, 6))):
        A, a = te.placeholder(shape, dtype, name="A"), values(*shape, dtype=dtype)
        programs.append(Program([A, topi.nn.pad(A, (0, 1, 1), (0, 1, 1))], [a], [np.pad(a, ((0, 0), (1, 1), (1, 1)))]))
    for plan, lanes in zip(check_programs(*programs).plans, (2, 4, 8), strict=True):
        assert f"vectors of {lanes}: 8 bytes are one store; which load a thread does differs" in plan.explain()
    odd = te.placeholder((3, 5, 7), name="A")
    assert "single elements" in autosched.apply([odd, topi.nn.pad(odd, (0, 1, 1), (0, 1, 1))], EMULATED).explain()


def test_results_of_the_same_operands_are_one_kernel():
    n, m = te.var("n"), te.var("m")
    for shape, sizes in (((1003,), (1003,)), ((n, m), (7, 36))):
        A, B = te.placeholder(shape, name="A"), te.placeholder(shape, name="B")
        total, apart = topi.add(A, B), topi.subtract(A, B)
        after = topi.abs(apart)
        a, b = values(*sizes), values(*sizes)
        is_open = shape == (n, m)
        plan, source = check([A, B, total, apart, after], [a, b], a + b, a - b, abs(a - b))
        assert f"T_add, T_subtract{'' if is_open else ', T_abs'}: element-wise, together" in plan
        assert len(set(re.findall(r"main_kernel(?:_\d+)?\b", source))) == 1 + is_open


def test_results_that_share_nothing_large_are_kernels_of_their_own():
    A, B, R = te.placeholder((64, 64), name="A"), te.placeholder((64, 64), name="B"), te.placeholder((64,), name="R")
    first = te.compute((64, 64), lambda i, j: A[i, j] + R[j], name="first")
    other = te.compute((64, 64), lambda i, j: B[i, j] + R[j], name="other")
    turned = te.compute((64, 64), lambda i, j: first[j, i] + 1, name="turned")
    plan = autosched.apply([A, B, R, first, other, turned], EMULATED).explain()
    assert "element-wise, together" not in plan


def test_rows_as_long_as_a_block_are_picked_in_vectors():
    A, I = te.placeholder((20, 1024), name="A"), te.placeholder((9,), "int64", name="I")
    a, i = values(20, 1024), RNG.integers(0, 20, 9)
    _, source = check([A, I, topi.take(A, I, axis=0)], [a, i], a[i])
    assert "= *(const float4 *)&A[" in source


def test_a_bilinear_resize_shares_what_neighbours_compute():
    A = te.placeholder((2, 3, 8, 9), name="A")
    B = topi.image.resize2d(A, [0.0] * 4, (16, 20), "NCHW", "linear")
    made = Emulated([A, B])
    plan = made.plans[0].explain()
    assert "vectors of 4: 16 bytes are one store, and much of what is computed is the same" in plan
    assert plan.count(": element-wise") == 3  # two tables of weights, and all else together
    a, b, wanted = values(2, 3, 8, 9), np.zeros((2, 3, 16, 20), "float32"), np.zeros((2, 3, 16, 20), "float32")
    made.functions[0](a, b)
    lw.build([A, B], target="llvm")(a, wanted)
    np.testing.assert_allclose(b, wanted, rtol=1e-5)
