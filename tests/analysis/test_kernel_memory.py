"""kernel_memory: a kernel reads in shared memory and registers what the same launch has written."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright.analysis.kernel_memory import flows_between_launches
from loopwright.script import from_source
from loopwright.transform import launch_threads, lower_blocks
from loopwright.transform.on_request.launch_threads import NotALaunch

HEAD = """
@T.prim_func
def main(A: T.Buffer((4, 8)), I: T.Buffer((8,), "int32"), B: T.Buffer((4, 8))):
    S = T.decl_buffer((8,), scope="{scope}")
"""
AGAIN = """
    for k in range(4):
        for tx in T.thread_binding(8, thread="threadIdx.x"):
"""
CASES = {
    "the first launch writes": (AGAIN + """
            if k < 1:
                S[tx] = A[k, tx]
            B[k, tx] = S[tx]
""", True),
    "one launch hands on to the next": (AGAIN + """
            if k > 0:
                B[k, tx] = S[tx]
            S[tx] = A[k, tx]
""", True),
    "every launch writes first": (AGAIN + """
            S[tx] = A[k, tx]
            B[k, tx] = S[tx]
""", False),
    "what is read under a condition is written under it": (AGAIN + """
            if k > 1:
                S[tx] = A[k, tx]
            if k > 2:
                B[k, tx] = S[tx]
""", False),
    "a sum over launches": (AGAIN + """
            if k == 0:
                S[tx] = T.float32(0)
            S[tx] = S[tx] + A[k, tx]
            B[k, tx] = S[tx]
""", True),
    "the second kernel writes a part": ("""
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        S[tx] = A[0, tx]
        B[0, tx] = S[tx]
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        if tx < 4:
            S[tx] = A[1, tx]
        B[1, tx] = S[tx]
""", True),
    "each of two kernels writes first": ("""
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        S[tx] = A[0, tx]
        B[0, tx] = S[tx]
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        S[tx] = A[1, tx]
        B[1, tx] = S[tx]
""", False),
    "who knows": (AGAIN + """
            if I[tx] > 0:
                S[tx] = A[k, tx]
            B[k, tx] = S[tx]
""", None),
    "a while loop": ("""
    count = T.decl_buffer((1,), "int32")
    count[0] = 0
    while count[0] < 4:
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            if count[0] < 1:
                S[tx] = A[count[0], tx]
            B[count[0], tx] = S[tx]
        count[0] = count[0] + 1
""", None),
}


@pytest.mark.parametrize("scope", ["local", "shared"])
@pytest.mark.parametrize("what", CASES)
def test_values_that_cross_launches(what, scope):
    text, crosses = CASES[what]
    function = lower_blocks(from_source(HEAD.format(scope=scope) + text))
    (memory,) = [buffer for buffer in _buffers(function) if buffer.name == "S"]
    assert flows_between_launches(function, memory) is crosses
    if crosses is False:
        launch_threads(function)
        return
    verb = "reads" if crosses else "may read"
    with pytest.raises(NotALaunch, match=rf"{verb} S of scope '{scope}', which an(other kernel| earlier launch) has"):
        launch_threads(function)


def _buffers(function):
    loads = lw.ir.collect(function.body, lw.ir.BufferLoad) + lw.ir.collect(function.body, lw.ir.BufferStore)
    return dict.fromkeys([access.buffer for access in loads])


def test_launches_with_memory_of_their_own_are_right():
    text, _ = CASES["every launch writes first"]
    function = from_source(HEAD.format(scope="local") + text)
    a, b = np.arange(32, dtype="float32").reshape(4, 8), np.zeros((4, 8), "float32")
    lw.build(function, target="cuda -model=emulated")(a, np.zeros(8, "int32"), b)
    np.testing.assert_array_equal(b, a)
