"""infer_storage_scopes: memory of kernels that nobody gave a scope."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright.analysis.thread_axes import scope_of
from loopwright.ir import Allocate, collect_statements
from loopwright.script import tir as T
from loopwright.transform import infer_storage_scopes, lower_blocks, write_allocations


@T.prim_func
def kernel(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        S = T.decl_buffer((8,))
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            S[tx] = A[bx, tx]
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            L = T.decl_buffer((2,))
            for k in range(2):
                L[k] = S[7 - tx] + T.float32(1)
            B[bx, tx] = L[0] + L[1]


def test_of_a_block_and_of_a_thread():
    got = infer_storage_scopes(lower_blocks(write_allocations(kernel)))
    scopes = {node.buffer_var.name: scope_of(node.buffer_var) for node in collect_statements(got.body, Allocate)}
    assert scopes == {"S": "shared", "L": "local"}
    assert infer_storage_scopes(got) is got


def test_it_runs():
    module = lw.build(kernel, target="cuda -model=emulated")
    a, b = np.arange(32, dtype="float32").reshape(4, 8), np.zeros((4, 8), "float32")
    for order in ("forwards", "backwards"):
        module.set_thread_order(order)
        module(a, b)
        np.testing.assert_array_equal(b, 2 * (a[:, ::-1] + 1))


@pytest.mark.parametrize("scope", ["global", "shared", "shared.dyn", "local"])
def test_lanes_have_memory_of_their_own(scope):
    """A recurrence in each lane: in memory that all lanes had together, they would disturb each other."""

    @T.prim_func
    def chains(A: T.Buffer((4, 3), "int32"), B: T.Buffer((4, 3), "int32")):
        for bx in T.thread_binding(4, thread="blockIdx.x"):
            for j in T.vectorized(3):
                S = T.decl_buffer((1,), "int32", scope=scope)
                S[0] = A[bx, j]
                for _ in range(3):
                    S[0] = S[0] * 2 + A[bx, j]
                B[bx, j] = S[0]

    a, b = np.arange(12, dtype="int32").reshape(4, 3), np.zeros((4, 3), "int32")
    lw.build(chains, target="cuda -model=emulated")(a, b)
    assert np.array_equal(b, 15 * a)


def test_what_keeps_its_scope():
    @T.prim_func
    def outside(A: T.Buffer(8), B: T.Buffer(8)):
        S = T.decl_buffer((8,))
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            S[tx] = A[tx]
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            B[tx] = S[7 - tx]

    @T.prim_func
    def between(A: T.Buffer((2, 8)), B: T.Buffer((2, 8))):
        for ty in T.thread_binding(2, thread="threadIdx.y"):
            S = T.decl_buffer((8,))
            for tx in T.thread_binding(8, thread="threadIdx.x"):
                S[tx] = A[ty, tx]
            for tx in T.thread_binding(8, thread="threadIdx.x"):
                B[ty, tx] = S[7 - tx]

    for func in (outside, between):
        before = lower_blocks(write_allocations(func))
        assert infer_storage_scopes(before) is before
