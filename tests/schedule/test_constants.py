"""Steps on programs with constants: a constant holds its values from the start, as an argument does."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import tir
from loopwright.ir import PrimFunc, bind_constants
from loopwright.schedule import Schedule, ScheduleError
from loopwright.script import tir as T


@T.prim_func
def chain(A: T.Buffer((4, 6)), W: T.Buffer((6, 8)), V: T.Buffer((6, 8)), C: T.Buffer((4, 8))):
    B = T.alloc_buffer((6, 8))
    for k, j in T.grid(6, 8):
        with T.block("B"):
            vk, vj = T.axis.remap("SS", [k, j])
            B[vk, vj] = W[vk, vj] * V[vk, vj]
    for i, j, k in T.grid(4, 8, 6):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]


A, W, V = (
    np.random.default_rng(seed).integers(-9, 9, shape).astype("float32")
    for seed, shape in ((1, (4, 6)), (2, (6, 8)), (3, (6, 8)))
)


def frozen() -> PrimFunc:
    return bind_constants(chain, {"W": W, "V": V})


def check(sch: Schedule) -> None:
    assert sch.is_proved
    c = np.zeros((4, 8), "float32")
    lw.build(sch.mod, target="llvm")(A, c)
    assert np.array_equal(c, A @ (W * V))


def test_copies_stand_inside_the_declarations() -> None:
    sch = tir.Schedule(frozen())
    copy = sch.cache_read("B", 0, "global")
    sch.transform_layout(copy, ("write", 0), lambda k, j: (j // 4, k, j % 4))
    assert sch.mod.script().index("W_1 = T.decl_buffer") < sch.mod.script().index('T.block("W_global")')
    sch.compute_at(copy, sch.get_loops("B")[0])
    check(sch)


def test_inlining_and_moving_a_block() -> None:
    sch = tir.Schedule(frozen())
    sch.compute_inline("B")
    check(sch)
    sch = tir.Schedule(frozen())
    sch.compute_at("B", sch.get_loops("C")[1])
    check(sch)


def test_sums_are_copied_out_inside_the_declarations() -> None:
    sch = tir.Schedule(frozen())
    out = sch.cache_write("C", 0, "local")
    sch.reverse_compute_at(out, sch.get_loops("C")[0])
    check(sch)


def test_staging_a_constant() -> None:
    sch = tir.Schedule(frozen())
    sch.stage("B", sch.get_loops("B")[0], "V", "local")
    check(sch)


@pytest.mark.parametrize("loop", [0, 1])
def test_loops_over_constants_run_in_any_order(loop: int) -> None:
    sch = tir.Schedule(frozen())
    sch.reorder(*reversed(sch.get_loops("B")))
    sch.parallel(sch.get_loops("B")[loop])
    check(sch)


def test_a_copy_that_would_not_be_filled_is_refused_still() -> None:
    sch = tir.Schedule(frozen())
    with pytest.raises(ScheduleError):
        sch.compute_at("C", sch.get_loops("B")[0])
