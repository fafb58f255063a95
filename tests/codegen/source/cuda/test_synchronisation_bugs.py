"""Seeded synchronisation bugs: what people get wrong on GPUs, each refused by the proof or shown without a GPU.

`WRITTEN` are programs as their author may write them: a proof refuses them before anything is compiled; what depends on
data is stopped by the emulation or found by the evaluator. `TEXTS` are right kernels with one line changed, as a wrong
compiler would write them: the emulation runs another result in one of three orders of threads, or stops. `PASSES` are
passes with a mistake. `test_missing_barriers.py` takes every barrier of some programs away in turn.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.codegen.source.cuda import make_module
from loopwright.evaluator import evaluate
from loopwright.runtime.errors import LoopwrightError
from loopwright.script import from_source
from loopwright.transform.on_request import insert_barriers
from tests.campaign import some
from tests.cuda_programs import PROGRAMS

EMULATED = "cuda -model=emulated"
ORDERS = ("forwards", "backwards", "random")


class Written(NamedTuple):
    """A program, and what says so: the `build`, the `emulation`, or the `evaluator`."""

    body: str
    caught_by: str
    message: str


# Four blocks; each publishes a word under the ticket it takes, and its threads await those of all blocks before it.
HANDOFF = """
    W = T.alloc_buffer((4,), "uint64")
    N = T.alloc_buffer((1,), "int32")
    ticket = T.alloc_buffer((1,), "int32", scope="shared")
    for k in T.thread_binding(4, thread="threadIdx.x"):
        W[k] = T.uint64(0)
        if k == 0:
            N[0] = 0
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for i in T.thread_binding(16, thread="threadIdx.x"):
            if i == 0:
                ticket[0] = T.take_ticket(T.address_of(N[0]))
        for i in T.thread_binding(16, thread="threadIdx.x"):
            if i == 0:
                T.evaluate(T.publish(T.address_of(W[ticket[0]]), T.uint64(7)))
            if i < ticket[0]:
                B[ticket[0] * 16 + i] = T.cast(T.await_published(T.address_of(W[i])), "float32")
"""


def handoff(old: str, new: str) -> str:
    """The program with one thing changed."""
    assert HANDOFF.count(old) == 1
    return HANDOFF.replace(old, new)


LOOP = '        for i in T.thread_binding(16, thread="threadIdx.x"):\n'
PUBLISHES = "T.evaluate(T.publish(T.address_of(W[ticket[0]]), T.uint64(7)))"
AWAITS = "T.await_published(T.address_of(W[i]))"
WRITTEN = {
    "no barrier between a write and a neighbour's read": Written(
        """
    S = T.alloc_buffer((64,), scope="shared")
    for i in T.thread_binding(64, thread="threadIdx.x"):
        S[i] = A[i]
        B[i] = S[63 - i]
""",
        "build",
        r"ThreadRace: thread \(i=0\) and thread \(i=63\) both touch S\[0\] between two barriers",
    ),
    "the same under a condition that only some threads meet": Written(
        """
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.decl_buffer((64,), scope="shared")
    if tx < 32:
        S[tx] = A[tx]
        B[tx] = S[31 - tx]
""",
        "build",
        r"ThreadRace: thread \(tx=0\) and thread \(tx=31\) both touch S\[0\]",
    ),
    "threads exchange what lies in local memory": Written(
        """
    L = T.alloc_buffer((64,), scope="local")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(64, thread="threadIdx.x"):
            L[i] = A[i]
        for i in T.thread_binding(64, thread="threadIdx.x"):
            B[i] = L[63 - i]
""",
        "build",
        r"PrivateMemoryShared: the statement reads L\[63\] in another thread than the one that wrote it",
    ),
    "a thread's own number lies in shared memory": Written(
        """
    S = T.alloc_buffer((1,), scope="shared")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(64, thread="threadIdx.x"):
            S[0] = A[i]
            B[i] = S[0] * 2.0
""",
        "build",
        r"ThreadRace: thread \(i=0\) and thread \(i=1\) both touch S\[0\]",
    ),
    "blocks exchange what lies in shared memory": Written(
        """
    S = T.alloc_buffer((64,), scope="shared")
    for b in T.thread_binding(64, thread="blockIdx.x"):
        S[b] = A[b]
        B[b] = S[63 - b]
""",
        "build",
        r"PrivateMemoryShared: the statement reads S\[63\] in another block than the one that wrote it",
    ),
    "shared memory is to outlive its kernel": Written(
        """
    S = T.alloc_buffer((64,), scope="shared")
    for i in T.thread_binding(64, thread="threadIdx.x"):
        S[i] = A[i]
    for i in T.thread_binding(64, thread="threadIdx.x"):
        B[i] = S[i]
""",
        "build",
        "NotALaunch: .*one kernel reads S of scope 'shared', which another kernel has written",
    ),
    "all threads add to one cell": Written(
        """
    for i in T.thread_binding(64, thread="threadIdx.x"):
        B[0] = B[0] + A[i]
""",
        "build",
        r"ThreadRace: thread \(i=0\) and thread \(i=1\) both touch B\[0\]",
    ),
    "all blocks add to one cell, without an atomic": Written(
        """
    for b in T.thread_binding(64, thread="blockIdx.x"):
        B[0] = B[0] + A[b]
""",
        "build",
        r"ParallelRace: iterations b = 0 and b = 1 of the bound loop b both touch B\[0\]",
    ),
    "a histogram without atomics": Written(
        """
    for i in T.thread_binding(64, thread="threadIdx.x"):
        B[I[i]] = B[I[i]] + 1.0
""",
        "evaluator",
        r"ThreadRace: thread \(i=0\) and thread \(i=7\) both touch B\[0\] with no barrier between",
    ),
    "a scatter in which two threads write one cell": Written(
        """
    for i in T.thread_binding(64, thread="threadIdx.x"):
        B[I[i]] = A[i]
""",
        "evaluator",
        r"ThreadRace: thread \(i=0\) and thread \(i=7\) both touch B\[0\] with no barrier between",
    ),
    "a stencil in place": Written(
        """
    for i in T.thread_binding(63, thread="threadIdx.x"):
        A[i] = A[i + 1]
""",
        "build",
        r"ThreadRace: thread \(i=0\) and thread \(i=1\) both touch A\[1\]",
    ),
    "virtual threads overlap": Written(
        """
    S = T.alloc_buffer((64,), scope="shared")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for v in T.thread_binding(2, thread="vthread.x"):
            for i in T.thread_binding(32, thread="threadIdx.x"):
                S[i + v] = A[v * 32 + i]
        for i in T.thread_binding(32, thread="threadIdx.x"):
            B[i] = S[i]
""",
        "build",
        r"ThreadRace: thread \(v=0, i=1\) and thread \(v=1, i=0\) both touch S\[1\]",
    ),
    "a tree of sums without barriers, in one warp": Written(
        """
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.decl_buffer((64,), scope="shared")
    S[tx] = A[tx]
    if tx < 32:
        S[tx] = S[tx] + S[tx + 32]
        S[tx] = S[tx] + S[tx + 16]
    B[tx] = S[0]
""",
        "build",
        "ThreadRace: .*both touch S",
    ),
    "a cooperative fetch that leaves the last cell out": Written(
        """
    S = T.alloc_buffer((64,), scope="shared")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(64, thread="threadIdx.x"):
            if i < 63:
                S[i] = A[i]
        for i in T.thread_binding(64, thread="threadIdx.x"):
            B[i] = S[63 - i]
""",
        "evaluator",
        r"UninitialisedRead: the program reads S\[63\] before anything has written it",
    ),
    "a cooperative fetch that goes beyond the end": Written(
        """
    S = T.alloc_buffer((64,), scope="shared")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(64, thread="threadIdx.x"):
            S[i + 1] = A[i]
        for i in T.thread_binding(64, thread="threadIdx.x"):
            B[i] = S[63 - i]
""",
        "build",
        r"OutOfBounds: S\[64\] is outside its shape \(64,\)",
    ),
    "a barrier in a branch of some threads": Written(
        """
    tx = T.launch_thread("threadIdx.x", 64)
    if tx < 16:
        T.evaluate(T.tvm_storage_sync("shared"))
    B[tx] = A[tx]
""",
        "build",
        "BarrierNotReached: .* tx < 16 is true for tx = 0 and false for tx = 16",
    ),
    "a barrier in a loop that threads run differently often": Written(
        """
    tx = T.launch_thread("threadIdx.x", 64)
    for k in range(tx):
        T.evaluate(T.tvm_storage_sync("shared"))
    B[tx] = A[tx]
""",
        "build",
        "BarrierNotReached: .* tx is 0 for tx = 0 and 1 for tx = 1",
    ),
    "a barrier in a branch that depends on data": Written(
        """
    tx = T.launch_thread("threadIdx.x", 64)
    if I[tx] > 3:
        T.evaluate(T.tvm_storage_sync("shared"))
    B[tx] = A[tx]
""",
        "emulation",
        "not all threads reach a barrier",
    ),
    "a barrier in a loop as long as data says": Written(
        """
    tx = T.launch_thread("threadIdx.x", 64)
    for k in range(I[tx]):
        T.evaluate(T.tvm_storage_sync("shared"))
    B[tx] = A[tx]
""",
        "emulation",
        "not all threads reach a barrier",
    ),
    "a shuffle that only half of the lanes of its mask reach": Written(
        """
    for t in T.thread_binding(64, thread="threadIdx.x"):
        if t % 32 < 16:
            B[t] = T.tvm_warp_shuffle_xor(T.uint32(0xFFFFFFFF), A[t], 1, 32, 32)
        T.evaluate(T.tvm_storage_sync("shared"))
""",
        "emulation",
        "not all threads reach a shuffle",
    ),
    "a shuffle whose mask lacks its own lane": Written(
        """
    for t in T.thread_binding(64, thread="threadIdx.x"):
        B[t] = T.tvm_warp_shuffle_xor(T.uint32(0xFF), A[t], 1, 32, 32)
""",
        "emulation",
        "the mask in line .* lacks its own lane",
    ),
    "a ticket that is not given on through a barrier": Written(
        handoff(f"{LOOP}            if i == 0:\n                T.ev", "            if i == 0:\n                T.ev"),
        "build",
        r"ThreadRace: thread \(i=0\) and thread \(i=1\) both touch ticket\[0\] between two barriers",
    ),
    "every block publishes the same status word": Written(
        handoff(PUBLISHES, PUBLISHES.replace("ticket[0]", "0")),
        "build",
        "ParallelRace: iterations b = 0 and b = 1 of the bound loop b both touch W",
    ),
    "a status word is published by its block, and read without awaiting it": Written(
        """
    W = T.alloc_buffer((64,), "uint64")
    for b in T.thread_binding(64, thread="blockIdx.x"):
        T.evaluate(T.publish(T.address_of(W[b]), T.uint64(7)))
        B[b] = T.cast(W[63 - b], "float32")
""",
        "build",
        r"ParallelRace: iterations b = 0 and b = 63 of the bound loop b both touch W",
    ),
    "a block awaits what its own first thread publishes": Written(
        handoff("if i < ticket[0]:", "if i <= ticket[0]:"),
        "evaluator",
        r"ThreadRace: thread \(i=0\) and thread \(i=1\) both touch W\[1\] with no barrier between",
    ),
    "a block awaits what a later one publishes": Written(
        handoff(AWAITS, AWAITS.replace("i]", "i + 1]")).replace("i < ticket[0]", "i < 3"),
        "emulation",
        "waits for what no earlier block publishes",
    ),
    "blocks are taken to start in the order of their numbers": Written(
        handoff("T.take_ticket(T.address_of(N[0]))", "3 - b"),
        "emulation",
        "waits for what no earlier block publishes",
    ),
    "a block that publishes nothing": Written(
        handoff(PUBLISHES, f"if ticket[0] != 1:\n                    {PUBLISHES}"),
        "emulation",
        "waits for what no earlier block publishes",
    ),
    "a status word that two blocks publish": Written(
        handoff(PUBLISHES, PUBLISHES.replace("ticket[0]", "ticket[0] // 2")).replace("i < ticket[0]", "i < 0"),
        "emulation",
        "publishes what has been published already",
    ),
    "a word that says that nothing is there": Written(
        handoff("T.uint64(7)", "T.uint64(0)"),
        "emulation",
        "publishes 0, which means that nothing is there",
    ),
    "a counter that is not cleared": Written(
        handoff("N[0] = 0", "W[0] = T.uint64(0)"),
        "evaluator",
        r"UninitialisedRead: the program reads N\[0\] before anything has written it",
    ),
    "status words that are not cleared": Written(
        handoff("W[k] = T.uint64(0)", "B[k] = 0.0"),
        "evaluator",
        r"UninitialisedRead: the program reads W\[0\] before anything has written it",
    ),
    "status words that are cleared by the kernel that uses them": Written(
        handoff("ticket[0] = T", f"for k in range(4 - b * 4):\n{' ' * 20}W[k] = T.uint64(0)\n{' ' * 16}ticket[0] = T"),
        "evaluator",
        r"ThreadRace: block \(b=0\) and block \(b=1\) both touch W\[1\] with no barrier between",
    ),
    "a status word that is written without publishing it": Written(
        handoff(PUBLISHES, "W[ticket[0]] = T.uint64(7)"),
        "evaluator",
        r"ThreadRace: block \(b=0\) and block \(b=1\) both touch W\[0\] with no barrier between",
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_an_author_gets_wrong(name: str):
    bug = WRITTEN[name]
    program = from_source(
        "@T.prim_func\ndef main(A: T.Buffer(64), B: T.Buffer(64), I: T.Buffer(64, 'int32')):" + bug.body
    )
    arrays = np.arange(64, dtype="float32"), np.zeros(64, "float32"), np.arange(64, dtype="int32") % 7
    with pytest.raises(LoopwrightError) as caught:
        module = lw.build(program, target=EMULATED)
        assert bug.caught_by != "build", "it was built"
        if bug.caught_by == "evaluator":
            evaluate(program, *arrays)
        module(*arrays)
    assert re.search(bug.message, f"{type(caught.value).__name__}: {caught.value}")


# --- kernels with one line changed ---

Program = tuple[Any, Any, list[np.ndarray], list[np.ndarray]]


def softmax() -> Program:
    """Two reductions over the warps of a block."""
    A = te.placeholder((2, 3000), name="A")
    a = np.random.default_rng(0).standard_normal((2, 3000)).astype("float32")
    e = np.exp(a - a.max(1, keepdims=True))
    return [A, topi.nn.softmax(A)], None, [a], [e / e.sum(1, keepdims=True)]


def double_buffer() -> Program:
    """The next row is fetched into the other half of shared memory."""
    A = te.placeholder((2, 8, 64), name="A")
    B = te.compute((2, 8, 64), lambda b, k, i: A[b, k, 63 - i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    AS = s.cache_read(A, "shared", [B])
    b, k, i = s[B].op.axis
    s[B].bind(b, te.thread_axis("blockIdx.x"))
    s[B].bind(i, te.thread_axis("threadIdx.x"))
    s[AS].compute_at(s[B], k)
    s[AS].bind(s[AS].op.axis[2], te.thread_axis("threadIdx.x"))
    s[AS].double_buffer()
    a = np.arange(1024, dtype="float32").reshape(2, 8, 64)
    return s, [A, B], [a], [a[:, :, ::-1] * 2]


def transpose() -> Program:
    A = te.placeholder((100, 70), name="A")
    a = np.arange(7000, dtype="float32").reshape(100, 70)
    return [A, topi.transpose(A, [1, 0])], None, [a], [np.ascontiguousarray(a.T)]


def look_back() -> Program:
    """65 tiles of one row, whose totals blocks hand on: two groups, and one tile more."""
    A = te.placeholder((532_000,), "int32", name="A")
    a = np.random.default_rng(0).integers(-9, 9, 532_000).astype("int32")
    return [A, topi.cumsum(A, dtype="float64")], None, [a], [a.cumsum().astype("float64")]


def pipelined() -> Program:
    """65 tiles of one row, of which each of 16 blocks has three under way."""
    A = te.placeholder((532_000,), "float64", name="A")
    a = np.random.default_rng(0).integers(-9, 9, 532_000).astype("float64")
    return [A, topi.cumsum(A)], None, [a], [a.cumsum()]


@functools.cache
def named(name: str) -> Callable[[], Program]:
    def make() -> Program:
        inputs, args, given, wanted = PROGRAMS[name]()
        return inputs, args, given, wanted

    return make


class Changed(NamedTuple):
    """A program, and a pattern of which one occurrence in its text (by number, or all) becomes something else."""

    make: Callable[[], Program]
    pattern: str
    by: str
    number: int | None = 0


SYNC = r"__syncthreads\(\);"
WAIT = r"(lw_mbarrier_wait\(\(void \*\)&barriers\[t_\d+\]), (t_\d+)\);"
TEXTS = {
    "no barrier between the warps of the first of two reductions": Changed(softmax, SYNC, ""),
    "no barrier between the warps of the second of two reductions": Changed(softmax, SYNC, "", 2),
    "no barrier before the result of a reduction is read": Changed(softmax, SYNC, "", 3),
    "a barrier between warps that waits for one warp": Changed(softmax, SYNC, "__syncwarp();", 2),
    "a double buffer with one half": Changed(double_buffer, r"% 2", "% 1", None),
    "a double buffer that fetches into the half in use": Changed(double_buffer, r"\(k \+ 1\) % 2", "k % 2"),
    "no barrier between fetch and use of a double buffer": Changed(double_buffer, SYNC, ""),
    "no barrier before the last use of a double buffer": Changed(double_buffer, SYNC, "", 1),
    "no barrier before a tile is read": Changed(named("gemm"), SYNC, "", 1),
    "no barrier before a tile is overwritten": Changed(named("gemm"), SYNC, ""),
    "a barrier of a tile that waits for one warp": Changed(transpose, SYNC, "__syncwarp();"),
    "a barrier in front of which one thread returns": Changed(
        transpose, SYNC, "if (threadIdx.x == 7) return; __syncthreads();"
    ),
    "a step of a tree of shuffles left out": Changed(softmax, r"(__shfl_xor_sync\([^;]*), 16\)", r"\1, 8)", 1),
    "a warp that does not hand in its part": Changed(
        softmax, r"if \(threadIdx_x % 32 == 0\)", "if (threadIdx_x % 64 == 0)", 1
    ),
    "no barrier between taking and reading a ticket": Changed(look_back, SYNC, ""),
    "no barrier before the totals before a tile are read": Changed(look_back, SYNC, "", 2),
    "tiles in the order of the numbers of blocks": Changed(
        look_back, r"lw_take_ticket\(.*?\)&counter\[0\]\)", "blockIdx.x"
    ),
    "a group whose total nobody publishes": Changed(look_back, r"lw_publish\([^;]*\);", ";", 2),
    "a tile that counts itself among those before it": Changed(
        look_back, r"threadIdx_x % 32 < (number\w* % 32)", r"threadIdx_x % 32 <= \1"
    ),
    "one array for two tiles": Changed(named("gemm"), r"\bB_shared\[(?!\d+\];)", "A_shared[", None),
}

PIPELINED = {
    **{
        f"a role that does not wait: {what}": Changed(pipelined, WAIT, ";", number)
        for number, what in ((0, "for an empty slot"), (1, "for a tile"), (3, "for its sum"), (6, "for what is before"))
    },
    **{
        f"a role that waits for the other phase, {number}": Changed(pipelined, WAIT, r"\1, 1 - (\2));", number)
        for number in (0, 1, 4)
    },
    "a tile that is not copied": Changed(pipelined, r"lw_bulk_copy_async\(\(void \*\)&[^;]*;", ";"),
    "a slot that is empty before all warps have read it": Changed(pipelined, r"(&barriers\[t\], )640\)", r"\g<1>128)"),
    "a slot that is never empty": Changed(pipelined, r"(&barriers\[t\], )640\)", r"\g<1>672)"),
    "no barrier between the warps of a role": Changed(pipelined, r"lw_role_barrier\(2, 128\);", ";"),
    "a barrier of a role that waits for half of its warps": Changed(
        pipelined, r"lw_role_barrier\(4, 512\);", "lw_role_barrier(4, 256);"
    ),
    "one slot where the text says three": Changed(pipelined, r"turn % 3\b", "turn % 1", None),
}


@pytest.mark.parametrize("name", [*TEXTS, *some(list(PIPELINED), 5)])
def test_what_a_compiler_gets_wrong(name: str):
    change = (TEXTS | PIPELINED)[name]
    assert is_right(change.make), "without the bug"
    emit = make_module.emit_cuda

    def changed(*arguments: Any) -> Any:
        kernels = emit(*arguments)
        found = list(re.finditer(change.pattern, kernels.text))
        chosen = found if change.number is None else [found[change.number]]
        text = kernels.text
        for match in reversed(chosen):
            text = text[: match.start()] + match.expand(change.by) + text[match.end() :]
        assert text != kernels.text
        return kernels._replace(text=text)

    with patch.object(make_module, "emit_cuda", changed):
        assert not runs_right(*change.make())


@functools.cache
def is_right(make: Callable[[], Program]) -> bool:
    return runs_right(*make())


def runs_right(inputs: Any, args: Any, given: list[np.ndarray], wanted: list[np.ndarray]) -> bool:
    """Whether the emulated program is right in every order of threads; not where it stops."""
    module = lw.build(inputs, args, target=f"{EMULATED} -arch=sm_90", autosched=args is None)
    for order in ORDERS:
        module.set_thread_order(order, seed=1)
        outputs = [np.zeros_like(one) for one in wanted]
        try:
            module(*given, *outputs)
        except LoopwrightError:
            return False
        if not all([np.allclose(output, one, rtol=1e-4, atol=1e-5) for output, one in zip(outputs, wanted)]):
            return False
    return True


# --- passes with a mistake ---

Kernel = insert_barriers._Kernel


def only_writes(meet: Callable[..., bool]) -> Callable[..., bool]:
    def both(self: Any, one: Any, other: Any, certain: bool = False) -> bool:
        return one.access.writes and other.writes and meet(self, one, other, certain)

    return both


def one_pass(self: Any, loop: Any, before: Any) -> Any:
    return self.insert(loop.body)


PASSES: dict[str, tuple[Callable[[], Any], str]] = {
    "reads need no barrier": (lambda: patch.object(Kernel, "meet", only_writes(Kernel.meet)), "gemm"),
    "a loop is looked at as if it ran once": (lambda: patch.object(Kernel, "_iterations", one_pass), "gemm"),
    "shared memory of a loop is new in every iteration": (
        lambda: patch.object(insert_barriers, "hoist_shared_memory", lambda function: function),
        "convolution",
    ),
}


@pytest.mark.parametrize("name", PASSES)
def test_what_a_pass_gets_wrong(name: str):
    seed, program = PASSES[name]
    with seed():
        assert not runs_right(*PROGRAMS[program]())


def test_the_documentation_counts_them():
    text = (Path(__file__).parents[4] / "docs" / "cuda.md").read_text(encoding="utf-8")
    refused = [bug for bug in WRITTEN.values() if bug.caught_by == "build"]
    assert f"Of {len(WRITTEN) + len(TEXTS) + len(PIPELINED) + len(PASSES)} seeded bugs of synchronisation" in text
    assert f"the build refuses {len(refused)}" in text
