"""memory_owners: what the text tells of thread owners is what the analysis of the whole program finds."""

from __future__ import annotations

import pytest

from loopwright import autosched, te
from loopwright.analysis import accesses_of
from loopwright.analysis.memory_owners import written_owners
from loopwright.schedule.proof import thread_owners
from loopwright.schedule.proof.loop_kinds import owned_memory
from loopwright.script import from_source
from tests.analysis.test_threads_random import program
from tests.campaign import programs
from tests.check_kernels import check

HEAD = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
"""

TOLD = {  # the program, and whose C is
    "both axes": (
        """
    C = T.alloc_buffer((1,), scope="local")
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            C[0] = A[b, t]
            B[b, t] = C[0]
""",
        ("blockIdx.x", "threadIdx.x"),
    ),
    "shared by the threads of a block": (
        """
    C = T.alloc_buffer((8,), scope="shared")
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            C[t] = A[b, t]
        for u in T.thread_binding(8, thread="threadIdx.x"):
            B[b, u] = C[7 - u]
""",
        ("blockIdx.x",),
    ),
    "also used outside a loop": (
        """
    C = T.alloc_buffer((1,), scope="local")
    for b in T.thread_binding(4, thread="blockIdx.x"):
        C[0] = A[b, 0]
        for t in T.thread_binding(8, thread="threadIdx.x"):
            B[b, t] = C[0]
""",
        ("blockIdx.x",),
    ),
    "read in an extent": (
        """
    C = T.alloc_buffer((1,), "int32", scope="local")
    for b in T.thread_binding(4, thread="blockIdx.x"):
        C[0] = 3
        for t in T.thread_binding(8, thread="threadIdx.x"):
            for k in range(C[0]):
                B[b, t] = A[b, k]
""",
        ("blockIdx.x",),
    ),
    "a warp's": (
        """
    C = T.alloc_buffer((8,), scope="warp")
    for y in T.thread_binding(4, thread="threadIdx.y"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            C[t] = A[y, t]
            B[y, t] = C[t]
""",
        ("threadIdx.y",),
    ),
    "virtual threads": (
        """
    C = T.alloc_buffer((8,), scope="local")
    for v in T.thread_binding(4, thread="vthread.x"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            C[t] = A[v, t]
            B[v, t] = C[t]
""",
        ("threadIdx.x",),
    ),
}

UNTOLD = {
    "allocated by each thread": """
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("inner"):
                C = T.alloc_buffer((1,), scope="local")
                C[0] = A[b, t]
                B[b, t] = C[0]
""",
    "threads that take turns": """
    C = T.alloc_buffer((4,), scope="shared")
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("sum"):
                vi = T.axis.spatial(4, b)
                vk = T.axis.reduce(8, t)
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk]
        for t in T.thread_binding(8, thread="threadIdx.x"):
            B[b, t] = C[b]
""",
    "turns by a name": """
    C = T.alloc_buffer((4,), scope="shared")
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            u: T.int32 = t
            with T.block("sum"):
                vi = T.axis.spatial(4, b)
                vk = T.axis.reduce(8, u)
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk]
        for t in T.thread_binding(8, thread="threadIdx.x"):
            B[b, t] = C[b]
""",
    "launched by an attribute": """
    C = T.alloc_buffer((1,), scope="local")
    b = T.launch_thread("blockIdx.x", 4)
    t = T.launch_thread("threadIdx.x", 8)
    C[0] = A[b, t]
    B[b, t] = C[0]
""",
    "a window": """
    C = T.alloc_buffer((8,), scope="local")
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("inner"):
                D = T.match_buffer(C[t : t + 1], (1,), scope="local", offset_factor=1)
                D[0] = A[b, t]
                B[b, t] = D[0]
""",
}


def found(function):
    analysed = accesses_of(function)
    return {buffer: analysed.owners(buffer) for buffer in owned_memory(function.body)}


@pytest.mark.parametrize("name", TOLD)
def test_owners_are_read_off_the_text(name):
    body, owners = TOLD[name]
    function = from_source(HEAD + body)
    assert written_owners(function.body) == found(function)
    assert set(written_owners(function.body).values()) == {owners}


@pytest.mark.parametrize("name", UNTOLD)
def test_where_the_text_does_not_tell_there_is_no_answer(name):
    assert written_owners(from_source(HEAD + UNTOLD[name]).body) is None


@pytest.fixture
def told(monkeypatch):
    """How often a schedule was told owners by the text; each time the analysis finds the same."""
    counts = {True: 0, False: 0}

    def compared(body):
        owners = written_owners(body)
        counts[owners is not None] += 1
        if owners is not None:
            assert owners == found(versions[body])
        return owners

    versions = {}
    prove = thread_owners.with_owners_proved

    def spy(view, after, step):
        versions[view.function.body], versions[after.function.body] = view.function, after.function
        return prove(view, after, step)

    from loopwright.schedule.engine import deferred, prove_step

    monkeypatch.setattr(thread_owners, "written_owners", compared)
    for module in (deferred, prove_step):
        monkeypatch.setattr(module, "with_owners_proved", spy)
    return counts


def test_every_step_of_a_product(told):
    a, b = te.placeholder((96, 64), name="A"), te.placeholder((64, 80), name="B")
    k = te.reduce_axis((0, 64), name="k")
    c = te.compute((96, 80), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    autosched.apply(te.create_prim_func([a, b, c]), "cuda -model=emulated")
    assert told[True] > 40 and not told[False]


@pytest.mark.parametrize("seed", range(900, 900 + programs(4, 60)))
def test_random_schedules(told, seed):
    assert check(seed).kind in ("right", "refused")


@pytest.mark.parametrize("seed", range(programs(20, 200)))
def test_random_threads(seed):
    function = program(seed, launched=False)
    owners = written_owners(function.body)
    if owners is not None:
        assert owners == found(function)
