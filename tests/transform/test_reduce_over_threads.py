"""reduce_over_threads: trees in shared memory instead of threads that take turns."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.ir import assert_structural_equal
from loopwright.script import tir as T
from loopwright.transform import allreduce_threads, lower_blocks, reduce_over_threads, write_allocations
from loopwright.transform.passes.simplify import simplify

EMULATED = "cuda -model=emulated"


def test_a_sum_of_six_threads():
    @T.prim_func
    def total(A: T.Buffer(6, "int32"), B: T.Buffer(1, "int32")):
        for tx in T.thread_binding(6, thread="threadIdx.x"):
            with T.block("B"):
                v = T.axis.reduce(6, tx)
                with T.init():
                    B[0] = 0
                B[0] = B[0] + A[v]

    @T.prim_func
    def expected(A: T.Buffer(6, "int32"), B: T.Buffer(1, "int32")):
        for tx in T.thread_binding(6, thread="threadIdx.x"):
            R = T.decl_buffer((1,), "int32", scope="local")
            with T.decl_buffer((1, 6), "int32", scope="shared") as S:
                S[0, tx] = A[tx]
                T.tvm_storage_sync("shared")
                if tx < 2:
                    S[0, tx] = S[0, tx] + S[0, tx + 4]
                T.tvm_storage_sync("shared")
                if tx < 2:
                    S[0, tx] = S[0, tx] + S[0, tx + 2]
                T.tvm_storage_sync("shared")
                if tx < 1:
                    S[0, tx] = S[0, tx] + S[0, tx + 1]
                T.tvm_storage_sync("shared")
                R[0] = S[0, 0]
                T.tvm_storage_sync("shared")
            if tx == 0:
                B[0] = R[0]

    got = reduce_over_threads(allreduce_threads(total))
    assert_structural_equal(
        simplify(lower_blocks(got)).without_attr("global_symbol"),
        simplify(lower_blocks(write_allocations(expected))).without_attr("global_symbol"),
    )


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 31, 32, 33, 100])
@pytest.mark.parametrize("length", [5, 96, 100])
def test_every_number_of_threads(threads, length):
    A = te.placeholder((4, length), "int32", name="A")
    k = te.reduce_axis((0, length), "k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    i, k = sch.get_loops("B")
    _, inner = sch.split(k, [None, threads])
    sch.bind(i, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    module = lw.build(sch.mod, target=EMULATED)
    module.set_thread_order("random", seed=threads)
    a, b = np.arange(4 * length, dtype="int32").reshape(4, length) * 7919, np.zeros(4, "int32")
    module(a, b)
    np.testing.assert_array_equal(b, a.sum(1))


def test_rows_of_threads_reduce_for_themselves():
    """Threads along y are rows; each is summed along x."""
    A = te.placeholder((6, 40), name="A")
    k = te.reduce_axis((0, 40), "k")
    B = te.compute((6,), lambda i: te.max(A[i, k], axis=k), name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    i, k = sch.get_loops("B")
    outer, row = sch.split(i, [None, 3])
    _, inner = sch.split(k, [None, 16])
    sch.bind(outer, "blockIdx.x")
    sch.bind(row, "threadIdx.y")
    sch.bind(inner, "threadIdx.x")
    module = lw.build(sch.mod, target=EMULATED)
    a, b = np.random.default_rng(1).random((6, 40), "float32"), np.zeros(6, "float32")
    for order in ("forwards", "backwards", "random"):
        module.set_thread_order(order)
        module(a, b)
        np.testing.assert_array_equal(b, a.max(1))
    assert "__syncthreads" in module.get_source()
