"""order: what waits for what, in small kernels; each error says who, where and what."""

from __future__ import annotations

import pytest

from loopwright.analysis.async_order import (
    AccumulatorsInUse,
    AsyncOrderError,
    NotOrdered,
    PhaseMismatch,
    WaitsForever,
    check_async_order,
)
from loopwright.script import from_source


def kernel(body: str, threads: int = 64, init: str = "32") -> str:
    """A kernel with an mbarrier of so many arrivals, and shared memory."""
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    return f"""
@T.prim_func
def f(A: T.Buffer(1024), B: T.Buffer((8, 64))):
    tx = T.launch_thread("threadIdx.x", {threads})
    S = T.decl_buffer((2, 64), scope="shared")
    full = T.decl_buffer(2, "uint64", scope="shared")
    acc = T.decl_buffer(4, "float32", scope="local")
    if tx == 0:
        for s in range(2):
            T.mbarrier_init(T.address_of(full[s]), {init})
    T.tvm_storage_sync("shared")
{lines}
"""


def said(body: str, threads: int = 64, init: str = "32") -> str:
    """The error of a kernel, or nothing."""
    try:
        doubts = check_async_order(from_source(kernel(body, threads, init))).doubts
    except AsyncOrderError as error:
        return f"{type(error).__name__}: {error.problem}"
    assert not doubts
    return ""


ARRIVE, WAIT = "T.mbarrier_arrive(T.address_of(full[0]))", "T.mbarrier_wait(T.address_of(full[0]), {})"
FIRST, SECOND = WAIT.format(0), WAIT.format(1)
MEET, SYNC = "T.role_barrier(1, 64)", 'T.tvm_storage_sync("shared")'
INIT = "T.mbarrier_init(T.address_of(full[1]), 1)"
FILL = f"""
if tx < 32:
    S[0, tx] = A[tx]
    {ARRIVE}
else:
    {WAIT.format(0)}
    B[0, tx] = S[0, tx - 32]
"""


def test_what_is_told_is_known():
    assert said(FILL) == ""


def test_what_is_told_too_early_is_not():
    early = FILL.replace(f"    S[0, tx] = A[tx]\n    {ARRIVE}", f"    {ARRIVE}\n    S[0, tx] = A[tx]")
    assert "threads 32 to 63 read it, and threads 0 to 31 write it" in said(early)


def test_one_thread_may_tell_for_those_that_have_met():
    meet = FILL.replace(f"    {ARRIVE}", f"    T.role_barrier(1, 32)\n    if tx == 0:\n        {ARRIVE}")
    assert said(meet, init="1") == ""
    alone = meet.replace("    T.role_barrier(1, 32)\n", "")
    assert "threads 32 to 63 read it, and threads 0 to 31 write it" in said(alone, init="1")


def test_a_thread_knows_what_it_did_itself():
    own = "S[0, tx] = A[tx]\nB[0, tx] = S[0, tx]\nS[0, tx] = A[tx + 64]"
    assert said(f"{own}\n{ARRIVE}", init="64") == ""
    other = f"S[0, tx] = A[tx]\nB[0, tx] = S[0, 63 - tx]\n{ARRIVE}"
    message = "S[0, 0] is read before anybody has written it: threads 0 to 63 read it"
    assert message in said(other, init="64")
    again = f"S[0, tx] = A[tx]\n{SYNC}\n{other}"
    assert "threads 0 to 63 write it" in said(again, init="64")


def test_two_threads_write_one_element():
    message = "S[0, 0]: threads 0 to 63 write it, and another one of these threads writes it as well"
    assert message in said(f"S[0, tx % 8] = A[tx]\n{ARRIVE}", init="64")


def for_some(condition: str, *lines: str) -> str:
    """Lines under a condition."""
    return "\n".join([f"if {condition}:", *["    " + line for line in lines]])


TOO_FAR = for_some("tx < 32", ARRIVE, FIRST, ARRIVE, SECOND) + f"\nelse:\n    {FIRST}"
HELD_BACK = for_some("tx < 32", ARRIVE, FIRST, ARRIVE, MEET) + f"\nelse:\n    {MEET}\n    {SECOND}"


@pytest.mark.parametrize(
    ("body", "init", "message"),
    [
        (ARRIVE, 32, "mbarrier full[0]: threads 0 to 63 arrive, and with them phase 0 has more arrivals than the 32"),
        (for_some("tx < 32", ARRIVE), 64, "mbarrier full[0]: the block ends with 32 of 64 arrivals of phase 0"),
        (f"{ARRIVE}\n{ARRIVE}", 64, "and with them phase 0 has more arrivals than the 64"),
        (f"{ARRIVE}\n{FIRST}\n{ARRIVE}\n{SECOND}", 64, ""),
        (f"{SECOND}\n{ARRIVE}\n{FIRST}", 64, ""),
        (f"{FIRST}\n{ARRIVE}", 64, "threads 0 to 63 wait for the phase of parity 0 of mbarrier full[0] for ever"),
        (FIRST.replace(", 0)", ", tx // 1024 + 2)"), 64, "mbarrier full[0]: the parity is 2"),
        (TOO_FAR, 32, "phase 1 may complete while threads 32 to 63 wait for phase 0: the parities do not tell"),
        (HELD_BACK, 32, ""),
        (for_some("tx == 0", INIT), 32, "mbarrier full[1]: it is initialised again"),
        (INIT, 32, "mbarrier full[1]: threads 0 to 63 initialise it"),
        (for_some("tx < 32", MEET), 32, "threads 0 to 31 wait at role_barrier 1, where 32 of 64 threads are for ever"),
        (MEET.replace("64", "32 + tx // 32 * 32"), 32, "threads 32 to 63 wait at role_barrier 1, where 32 of 64"),
        (for_some("tx < 32", SYNC), 32, "wait at the barrier of the block, where 32 of 64 threads are"),
    ],
)
def test_phases_and_meetings(body: str, init: int, message: str):
    result = said(body, init=str(init))
    assert message in result and bool(message) is bool(result)


def test_named_barriers_are_not_used_by_others_at_once():
    pairs = "for p in range(2):\n    if tx // 64 == p:\n        T.role_barrier(1, 64)\n" + ARRIVE
    assert "role_barrier 1: threads 0 to 63 may come at p = 0 while others still meet" in said(pairs, 128, "128")
    apart = pairs.replace("T.role_barrier(1, 64)", "T.role_barrier(1 + p, 64)")
    assert said(apart, 128, "128") == ""
    sizes = f"if tx < 32:\n    T.role_barrier(1, 64)\nelse:\n    T.role_barrier(1, 96)\n{ARRIVE}"
    assert "threads 0 to 31 wait for 64 threads, and others for 96" in said(sizes, 96, "96")


COPY = "T.bulk_copy_async(T.address_of(S[0, 0]), T.address_of(A[0]), 256, T.address_of(full[0]))"
LOAD = for_some("tx < 32", COPY, ARRIVE)
STORE = "S[0, tx] = A[tx]"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"{LOAD}\n{FIRST}\nB[0, tx] = S[0, tx]", ""),
        (LOAD, "PhaseMismatch: mbarrier full[0]: nobody waits for its last phase, 0"),
        (
            for_some("tx < 32", COPY),
            "PhaseMismatch: mbarrier full[0]: the block ends before the phase of a copy completes",
        ),
        (f"{LOAD}\nelse:\n    {FIRST}\n    {STORE}", ""),
        (f"{STORE}\n{LOAD}\n{FIRST}", "S[0, 32]: warp 0 has a copy to it, and threads 0 to 63 write it"),
        (f"{STORE}\n{SYNC}\n{LOAD}\n{FIRST}", "S[0, 32]: threads 0 to 63 write it, and then warp 0 has a copy"),
        (f"{STORE}\nT.fence_proxy_async()\n{SYNC}\n{LOAD}\n{FIRST}", ""),
        (f"{SYNC}\n{LOAD}\n{FIRST}".replace("tx < 32", "tx < 16"), "16 of the 32 threads of warp 0 call bulk_copy"),
        (f"{LOAD.replace('256', '0')}\n{FIRST}", ""),
    ],
)
def test_copies(body: str, message: str):
    result = said(body)
    assert message in result and bool(message) is bool(result)


WGMMA = """T.wgmma(T.address_of(acc[0]), 8, "float16", T.address_of(H[0, 0]), 128, 0, 1024, 0,
    "float16", T.address_of(H[0, 0]), 128, 0, 1024, 0, 0)"""
MATMUL = f"""
H = T.decl_buffer((64, 64), "float16", scope="shared")
for i in range(32):
    H[i * 2 + tx // 64, tx % 64] = T.float16(0)
T.fence_proxy_async()
T.tvm_storage_sync("shared")
T.wgmma_fence()
{WGMMA}
T.wgmma_commit()
T.wgmma_wait(0, T.address_of(acc[0]), 4)
B[tx // 64, tx % 64] = acc[0]
"""


DONE, STORED = "T.wgmma_wait(0, T.address_of(acc[0]), 4)\n", "B[tx // 64, tx % 64] = acc[0]\n"
FENCE, COMMIT = "T.wgmma_fence()\n", "T.wgmma_commit()\n"


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        (
            DONE,
            "",
            AccumulatorsInUse,
            "threads 0 to 127 read it, before a wgmma_wait says that it is free: warpgroup 0",
        ),
        (DONE, DONE.replace("wait(0", "wait(1"), AccumulatorsInUse, "before a wgmma_wait says that it is free"),
        (COMMIT, "", AccumulatorsInUse, "before a wgmma_wait says that it is free"),
        (FENCE, "", AccumulatorsInUse, "threads 0 to 127 begin a wgmma, and no wgmma_fence stands before it"),
        (FENCE, f"{FENCE}acc[1] = T.float32(0)\n", AccumulatorsInUse, "no wgmma_fence stands before it"),
        (f"{SYNC}\nT.wgmma", "T.wgmma", NotOrdered, "H.*warpgroup 0 multiplies it, and threads 0 to 127 write it"),
        (COMMIT, f"{COMMIT}H[0, tx % 64] = T.float16(1)\n", NotOrdered, "threads 0 to 127 write it"),
        (DONE + STORED, "", AccumulatorsInUse, "the kernel ends before a wgmma_wait for what warpgroup 0 adds up"),
    ],
)
def test_matmuls(old: str, new: str, error: type[Exception], message: str):
    assert said(MATMUL, 128) == "" and old in MATMUL
    with pytest.raises(error, match=message):
        check_async_order(from_source(kernel(MATMUL.replace(old, new), 128)))


def test_all_threads_that_wait_for_ever_are_named():
    body = f"if tx < 32:\n    {WAIT.format(0)}\nelse:\n    T.role_barrier(1, 64)"
    with pytest.raises(WaitsForever) as caught:
        check_async_order(from_source(kernel(body)))
    assert caught.value.problem == "threads 0 to 31 wait for the phase of parity 0 of mbarrier full[0] for ever"
    why = "threads 32 to 63 wait at role_barrier 1, where 32 of 64 threads are"
    assert caught.value.why == f"{why}; phase 0 of mbarrier full[0] has 0 of 32 arrivals"


def test_what_is_not_initialised_is_said_so():
    text = kernel(ARRIVE, init="64").replace('    T.tvm_storage_sync("shared")\n', "")
    with pytest.raises(PhaseMismatch, match="threads 0 to 63 use it, and nothing orders that after an mbarrier_init"):
        check_async_order(from_source(text))
