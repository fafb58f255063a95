"""sink_allocations: memory of blocks and threads is allocated as far in as its values allow."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import tir
from loopwright.ir import Allocate, collect
from loopwright.script import tir as T
from loopwright.transform import stages
from loopwright.transform.on_request.sink_allocations import sink_allocations
from tests.transform.before_after import check, unchanged

ORDERS = ("forwards", "backwards", "random")


def test_shared_memory_moves_into_the_loop_that_fills_it():
    @T.prim_func
    def before(A: T.Buffer((2, 32)), B: T.Buffer((2, 32))):
        with T.block("root"):
            S = T.alloc_buffer((32,), scope="shared")
            for b in T.thread_binding(2, thread="blockIdx.x"):
                for k in range(4):
                    for t in T.thread_binding(8, thread="threadIdx.x"):
                        S[k * 8 + t] = A[b, k * 8 + t]
                    for t in T.thread_binding(8, thread="threadIdx.x"):
                        B[b, k * 8 + t] = S[k * 8 + 7 - t]

    @T.prim_func
    def after(A: T.Buffer((2, 32)), B: T.Buffer((2, 32))):
        with T.block("root"):
            for b in T.thread_binding(2, thread="blockIdx.x"):
                for k in range(4):
                    S_data = T.allocate([32], "float32", "shared")
                    S = T.decl_buffer((32,), data=S_data, scope="shared")
                    for t in T.thread_binding(8, thread="threadIdx.x"):
                        S[k * 8 + t] = A[b, k * 8 + t]
                    for t in T.thread_binding(8, thread="threadIdx.x"):
                        B[b, k * 8 + t] = S[k * 8 + 7 - t]

    check(sink_allocations, before, after)


def test_values_that_cross_a_loop_keep_their_memory_outside():
    @T.prim_func
    def before(A: T.Buffer((2, 32)), B: T.Buffer((2, 32))):
        with T.block("root"):
            S = T.alloc_buffer((32,), scope="shared")
            for b in T.thread_binding(2, thread="blockIdx.x"):
                for k in range(4):
                    for t in T.thread_binding(8, thread="threadIdx.x"):
                        S[k * 8 + t] = A[b, k * 8 + t]
                    for t in T.thread_binding(8, thread="threadIdx.x"):
                        B[b, k * 8 + t] = S[t]

    @T.prim_func
    def after(A: T.Buffer((2, 32)), B: T.Buffer((2, 32))):
        with T.block("root"):
            for b in T.thread_binding(2, thread="blockIdx.x"):
                S_data = T.allocate([32], "float32", "shared")
                S = T.decl_buffer((32,), data=S_data, scope="shared")
                for k in range(4):
                    for t in T.thread_binding(8, thread="threadIdx.x"):
                        S[k * 8 + t] = A[b, k * 8 + t]
                    for t in T.thread_binding(8, thread="threadIdx.x"):
                        B[b, k * 8 + t] = S[t]

    check(sink_allocations, before, after)


def test_memory_of_a_thread_moves_into_its_loop_by_its_scope():
    @T.prim_func
    def before(A: T.Buffer((64,)), B: T.Buffer((64,))):
        with T.block("root"):
            L = T.alloc_buffer((64,), scope="local")
            for t in T.thread_binding(8, thread="threadIdx.x"):
                for k in range(8):
                    L[t * 8 + k] = A[t * 8 + k]
                for k in range(8):
                    B[t * 8 + k] = L[t * 8 + 7 - k]

    @T.prim_func
    def after(A: T.Buffer((64,)), B: T.Buffer((64,))):
        with T.block("root"):
            for t in T.thread_binding(8, thread="threadIdx.x"):
                L_data = T.allocate([64], "float32", "local")
                L = T.decl_buffer((64,), data=L_data, scope="local")
                for k in range(8):
                    L[t * 8 + k] = A[t * 8 + k]
                for k in range(8):
                    B[t * 8 + k] = L[t * 8 + 7 - k]

    check(sink_allocations, before, after)


def test_global_memory_and_allocations_stay():
    @T.prim_func
    def func(A: T.Buffer((64,)), B: T.Buffer((64,))):
        with T.block("root"):
            G = T.alloc_buffer((64,))
            for t in T.thread_binding(8, thread="threadIdx.x"):
                for k in range(8):
                    G[t * 8 + k] = A[t * 8 + k]
                for k in range(8):
                    B[t * 8 + k] = G[t * 8 + 7 - k]

    @T.prim_func
    def allocated(A: T.Buffer((64,)), B: T.Buffer((64,))):
        L_data = T.allocate([64], "float32", "local")
        L = T.decl_buffer((64,), data=L_data, scope="local")
        for t in T.thread_binding(8, thread="threadIdx.x"):
            for k in range(8):
                L[t * 8 + k] = A[t * 8 + k]
            for k in range(8):
                B[t * 8 + k] = L[t * 8 + 7 - k]

    unchanged(sink_allocations, func)
    unchanged(sink_allocations, allocated)


@T.prim_func
def matmul(A: T.Buffer((64, 64)), B: T.Buffer((64, 64)), C: T.Buffer((64, 64))):
    for i, j, k in T.grid(64, 64, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def tiled(**annotations: object) -> tir.Schedule:
    """Shared tiles by cooperative fetch, and 4 × 4 sums a thread, as scripts write it: nobody moves an allocation."""
    sch = tir.Schedule(matmul)
    block = sch.get_block("C")
    sums = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    bi, ti, ii = sch.split(i, [None, 8, 4])
    bj, tj, jj = sch.split(j, [None, 8, 4])
    ko, ki = sch.split(k, [None, 8])
    sch.reorder(bi, bj, ti, tj, ko, ki, ii, jj)
    for loop, tag in ((bi, "blockIdx.y"), (bj, "blockIdx.x"), (ti, "threadIdx.y"), (tj, "threadIdx.x")):
        sch.bind(loop, tag)
    sch.reverse_compute_at(sums, tj)
    for operand in (0, 1):
        tile = sch.cache_read(block, operand, "shared")
        sch.compute_at(tile, ko)
        y, x, lane = sch.split(sch.fuse(*sch.get_loops(tile)[-2:]), [8, 8, 4])
        sch.bind(y, "threadIdx.y")
        sch.bind(x, "threadIdx.x")
        sch.vectorize(lane)
        if "double_buffer_scope" in annotations:
            sch.annotate(tile, "double_buffer_scope", 0)
    for key in ("software_pipeline_stage", "software_pipeline_order"):
        if key in annotations:
            sch.annotate(ko, key, annotations[key])
    return sch


@pytest.mark.parametrize(
    ("annotations", "floats", "barriers"),
    [
        ({}, 256, 2),
        ({"double_buffer_scope": 0}, 512, 2),
        ({"software_pipeline_stage": [0, 0, 1], "software_pipeline_order": [0, 1, 2]}, 512, 2),
        ({"software_pipeline_stage": [0, 0, 2], "software_pipeline_order": [0, 1, 2]}, 768, 2),
    ],
)
def test_tiles_in_two_places_need_one_barrier_an_iteration(annotations, floats, barriers):
    """With two versions of a tile the writes of one iteration do not meet its reads: one barrier is in the loop."""
    module = lw.build(tiled(**annotations).mod, target="cuda -model=emulated")
    text = module.get_source()
    text = text[: text.index("kernel_unaligned")]
    assert f"__shared__ __align__(16) float A_shared[{floats}];" in text and "float C_local[16];" in text
    assert text.count("__syncthreads();") == barriers
    inside = text[text.index("for (int32_t k_0") :]
    assert inside[: inside.index("\n    }\n")].count("__syncthreads();") == (1 if annotations else 2)
    a, b = [np.random.default_rng(k).random((64, 64), "float32") for k in range(2)]
    for order in ORDERS:
        module.set_thread_order(order, seed=4)
        c = np.zeros((64, 64), "float32")
        module(a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_sums_stay_around_the_loop_that_adds_to_them():
    function = next(iter(tiled().mod.functions.values()))
    for name, stage in stages(function, "cuda"):
        if name == "compact_buffers":
            sizes = {
                node.buffer_var.name: [int(extent) for extent in node.extents] for node in collect(stage.body, Allocate)
            }
            assert sizes == {"C_local": [4, 4], "A_shared": [32, 8], "B_shared": [8, 32]}
            return
