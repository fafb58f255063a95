"""The workspace: where large temporary buffers of compiled code live, kept from call to call."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import threading
from itertools import pairwise

import numpy as np
import pytest

import loopwright as lw
from loopwright import runtime
from loopwright.runtime import thread_pool
from loopwright.script import ir as I
from loopwright.script import tir as T

pytestmark = pytest.mark.skipif(thread_pool.library() is None, reason="no native runtime here")


@pytest.fixture
def library() -> ctypes.CDLL:
    found = thread_pool.library()
    assert found is not None
    runtime.trim_workspace()
    return found


def test_workspace_blocks_are_aligned_distinct_and_reused(library: ctypes.CDLL):
    sizes = [0, 1, 4097, 1 << 20, (2 << 20) + 1, 9 << 20]
    first = [library.lw_workspace_alloc(size) for size in sizes]
    for address, size in zip(first, sizes, strict=True):
        assert address % 64 == 0
        ctypes.memset(address, 0xAB, size)
    spans = sorted(zip(first, sizes, strict=True))
    assert all(a + size <= b for (a, size), (b, _) in pairwise(spans))
    for address in reversed(first):
        library.lw_workspace_free(address)
    held = library.lw_workspace_held()
    again = [library.lw_workspace_alloc(size) for size in sizes]
    assert set(again) == set(first)
    assert library.lw_workspace_held() == held
    for address in again:
        library.lw_workspace_free(address)
    runtime.trim_workspace()
    assert library.lw_workspace_held() == 0


def test_workspace_does_not_grow_with_growing_requests(library: ctypes.CDLL):
    for size in range(1 << 20, 16 << 20, 1 << 20):
        library.lw_workspace_free(library.lw_workspace_alloc(size))
    assert library.lw_workspace_held() < 20 << 20
    library.lw_workspace_trim()


def test_workspace_says_no_to_the_impossible(library: ctypes.CDLL):
    for size in (-1, 1 << 62, (1 << 63) - 1):
        assert library.lw_workspace_alloc(size) is None
    library.lw_workspace_free(None)


def test_workspace_freed_by_another_thread_and_after_its_thread_ended(library: ctypes.CDLL):
    made = []
    thread = threading.Thread(target=lambda: made.extend(library.lw_workspace_alloc(size) for size in (100, 5 << 20)))
    thread.start()
    thread.join()
    for address in made:
        ctypes.memset(address, 1, 100)
        library.lw_workspace_free(address)


def test_blocks_used_together_begin_at_different_places_of_a_page(library: ctypes.CDLL):
    """Else their lines would compete for the same few places in L1."""
    blocks = [library.lw_workspace_alloc(3 << 20) for _ in range(4)]
    assert len({address % 4096 for address in blocks}) == 4
    for address in blocks:
        library.lw_workspace_free(address)


def test_a_block_in_use_survives_trimming(library: ctypes.CDLL):
    used, unused = library.lw_workspace_alloc(5 << 20), library.lw_workspace_alloc(5 << 20)
    ctypes.memset(used, 7, 5 << 20)
    library.lw_workspace_free(unused)
    runtime.trim_workspace()
    assert 5 << 20 <= library.lw_workspace_held() < 10 << 20
    assert ctypes.string_at(used + (5 << 20) - 1, 1) == b"\7"
    library.lw_workspace_free(used)


def test_what_threads_keep_is_bounded(library: ctypes.CDLL):
    """Memory that nobody touches costs nothing, so this asks for more than the machine may have."""
    for _ in range(3):
        blocks = [library.lw_workspace_alloc(600 << 20) for _ in range(4)]
        if None in blocks:
            pytest.skip("no address space for this")
        for address in blocks:
            library.lw_workspace_free(address)
        assert library.lw_workspace_held() <= 1 << 30


def test_workers_hear_of_trimming(library: ctypes.CDLL):
    held, meet = {}, threading.Barrier(3, timeout=20)

    @thread_pool.BODY
    def keep(lo: int, _hi: int, _closure: object) -> int:
        library.lw_workspace_free(library.lw_workspace_alloc(3 << 20))
        meet.wait()
        return 0

    @thread_pool.BODY
    def look(lo: int, _hi: int, _closure: object) -> int:
        library.lw_workspace_free(library.lw_workspace_alloc(1))  # a thread hears of it when it next asks for memory
        held[lo] = library.lw_workspace_held()
        meet.wait()
        return 0

    with runtime.threads(3):
        library.lw_parallel_for(keep, 0, 3, None)
        runtime.trim_workspace()
        library.lw_parallel_for(look, 0, 3, None)
    assert len(held) == 3
    assert max(held.values()) < 3 << 20


def with_temporary(n: int):
    @T.prim_func
    def func(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
        temporary = T.alloc_buffer((n,), "float32")
        for i in range(n):
            temporary[n - 1 - i] = A[i] * T.float32(2)
        for i in range(n):
            B[i] = temporary[i] + A[i]

    return func


@pytest.mark.parametrize("n", [4096, 4097, 100_003, 1 << 21])
def test_a_second_call_meets_no_fresh_pages(library: ctypes.CDLL, n: int):
    module = lw.build(with_temporary(n))
    a, b = np.random.default_rng(0).random(n, dtype="float32"), np.zeros(n, "float32")
    module(a, b)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        module(a, b)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert faults < 10 * max(1, n * 4 // 4096) // 2 + 50  # at most half of what fresh memory would cost each time
    np.testing.assert_array_equal(b, a[::-1] * np.float32(2) + a)


def test_the_memory_of_a_caller_and_of_what_it_calls_are_different():
    """The buffer of the caller keeps its values through the calls, each of which has one too."""

    @I.ir_module
    class Module:
        @T.prim_func
        def inner(B: T.Buffer((8,), "int32"), level: T.int32):
            mine = T.alloc_buffer((50000,), "int32")
            for i in range(50000):
                mine[i] = level * 1000
            B[level] = mine[49999]

        @T.prim_func
        def main(B: T.Buffer((8,), "int32")):
            mine = T.alloc_buffer((50000,), "int32")
            for i in range(50000):
                mine[i] = i
            for level in range(8):
                Module.inner(B.data, level)
            for level in range(8):
                B[level] = B[level] + mine[level]

    b = np.zeros(8, "int32")
    lw.build(Module)(b)
    assert b.tolist() == [1001 * level for level in range(8)]


def test_buffers_of_parallel_iterations_and_of_python_threads():
    n = 6000

    @T.prim_func
    def func(A: T.Buffer((12, n), "float32"), B: T.Buffer((12, n), "float32")):
        for i in T.parallel(12):
            with T.block("row"):
                vi = T.axis.spatial(12, i)
                row = T.alloc_buffer((n,), "float32")
                for j in range(n):
                    row[j] = A[vi, j]
                for j in range(n):
                    B[vi, j] = row[n - 1 - j]

    module = lw.build(func)
    wrong: list[int] = []

    def work(seed: int) -> None:
        a = np.random.default_rng(seed).random((12, n), dtype="float32")
        for _ in range(20):
            b = np.zeros_like(a)
            with runtime.threads(3):
                module(a, b)
            if not (b == a[:, ::-1]).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_forked_child_may_use_what_its_parent_kept():
    code = """
import os, sys, warnings
warnings.simplefilter("ignore")
from loopwright.runtime import thread_pool, trim_workspace
library = thread_pool.library()
library.lw_workspace_free(library.lw_workspace_alloc(5 << 20))
used = library.lw_workspace_alloc(3 << 20)
held = library.lw_workspace_held()
child = os.fork()
if child == 0:
    assert library.lw_workspace_held() == held
    library.lw_workspace_free(library.lw_workspace_alloc(5 << 20))
    library.lw_workspace_free(used)
    trim_workspace()
    os._exit(library.lw_workspace_held() != 0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
