"""bind_unbound_loops: a program without a schedule runs on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.autosched.default_binding import bind_unbound_loops
from loopwright.ir import assert_structural_equal
from loopwright.script import ir as I
from loopwright.script import tir as T
from loopwright.transform.on_request.launch_threads import NotALaunch

EMULATED = "cuda -model=emulated"


def test_outer_loops_become_blocks_and_threads():
    @I.ir_module
    class Before:
        @T.prim_func
        def main(A: T.Buffer((100, 70)), B: T.Buffer((100, 70))):
            for i, j in T.grid(100, 70):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] + T.float32(1)

    sch = tir.Schedule(Before)
    outer, inner = sch.split(sch.fuse(*sch.get_loops("B")), [None, 256])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    got = bind_unbound_loops(Before)
    assert_structural_equal(got["main"], sch.mod["main"])
    assert bind_unbound_loops(got)["main"] is got["main"]


def test_a_matmul_and_what_follows_it():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    B = te.placeholder((m, n), name="B")
    k = te.reduce_axis((0, m), "k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    k2 = te.reduce_axis((0, n), "k2")
    D = te.compute((n,), lambda i: te.max(C[i, k2], axis=k2), name="D")
    k3 = te.reduce_axis((0, n), "k3")
    E = te.compute((), lambda: te.sum(D[k3], axis=k3), name="E")
    module = lw.build([A, B, E], target=EMULATED)
    assert "__launch_bounds__(256)" in module.get_source() and "__launch_bounds__(1)" in module.get_source()
    rng = np.random.default_rng(0)
    for shape in ((20, 30), (1, 1), (33, 7)):
        a, b = rng.random(shape, "float32"), rng.random(shape[::-1], "float32")
        e = np.zeros((), "float32")
        module(a, b, e)
        np.testing.assert_allclose(e, (a @ b).max(1).sum(), rtol=1e-5)


def test_what_is_bound_stays_and_the_rest_is_added():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1, name="B")
    C = te.compute((64,), lambda i: B[63 - i] * 2, name="C")
    s = te.create_schedule(C.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    module = lw.build(s, [A, C], target=EMULATED)
    assert module.get_source().count("__global__") == 2
    a, c = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    module(a, c)
    np.testing.assert_array_equal(c, (a[::-1] + 1) * 2)


@pytest.mark.parametrize("name", ["scan", "scalar", "plain"])
def test_what_cannot_be_distributed_runs_in_one_thread(name):
    @T.prim_func
    def plain(A: T.Buffer(40), B: T.Buffer(40)):
        for i in range(40):
            B[i] = A[i]

    @T.prim_func
    def scan(A: T.Buffer(40), B: T.Buffer(40)):
        for i in range(40):
            with T.block("B"):
                v = T.axis.opaque(40, i)
                B[v] = T.if_then_else(v > 0, B[v - 1], T.float32(0)) + A[v]

    @T.prim_func
    def scalar(A: T.Buffer(40), B: T.Buffer(40)):
        with T.block("B"):
            B[0] = A[0]

    func = {"scan": scan, "scalar": scalar, "plain": plain}[name]
    module = lw.build(func, target=EMULATED)
    a, b = np.arange(40, dtype="float32"), np.zeros(40, "float32")
    module(a, b)
    np.testing.assert_allclose(b, {"scan": np.cumsum(a), "scalar": b * 0, "plain": a}[name])


def test_local_memory_between_two_kernels_is_refused_as_such():
    @T.prim_func
    def func(A: T.Buffer(8), B: T.Buffer(8)):
        C = T.alloc_buffer((8,), scope="local")
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi]
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = C[7 - vi]

    with pytest.raises(NotALaunch, match="C has scope 'local', but is used outside the kernel as well"):
        lw.build(func, target=EMULATED)
