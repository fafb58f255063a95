"""Asynchronous copies: a ring of two stages, which one warp fills and two others read, emulated; and what can be wrong.

`BUGS` are changes of the ring, each of which stops or gives another result in one of three orders of threads.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir, tir
from loopwright.codegen.source.cuda.errors import NeedsNewerGpu
from loopwright.ir.async_intrinsics import ASYNC_INTRINSICS
from loopwright.runtime.errors import LoopwrightError
from loopwright.script import from_source
from tests.codegen.source.cuda.disassembly import HAS_NVRTC, sass

EMULATED = "cuda -model=emulated -arch=sm_90"
RUNS = [("forwards", 0), ("backwards", 0), *[("random", seed) for seed in range(8)]]

# Four tiles; warp 0 copies them into S, warps 1 and 2 write them to B, reversed.
RING = """
@T.prim_func
def ring(A: T.Buffer(4 * COLUMNS, "TYPE"), B: T.Buffer((4, COLUMNS), "TYPE")):
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 96)
    S = T.decl_buffer((2, COLUMNS), "TYPE", scope="shared")
    full = T.decl_buffer(2, "uint64", scope="shared")
    empty = T.decl_buffer(2, "uint64", scope="shared")
    if tx == 0:
        for s in range(2):
            T.mbarrier_init(T.address_of(full[s]), 1)
            T.mbarrier_init(T.address_of(empty[s]), 1)
    T.tvm_storage_sync("shared")
    if tx < 32:
        for k in range(4):
            T.mbarrier_wait(T.address_of(empty[k % 2]), 1 - k // 2 % 2)
            T.bulk_copy_async(T.address_of(S[k % 2, 0]), T.address_of(A[k * COLUMNS]), BYTES, T.address_of(full[k % 2]))
            if tx == 0:
                T.mbarrier_arrive(T.address_of(full[k % 2]))
    else:
        for k in range(4):
            T.mbarrier_wait(T.address_of(full[k % 2]), k // 2 % 2)
            for j in range(CHUNKS):
                if j * 64 + tx - 32 < COLUMNS:
                    B[k, j * 64 + tx - 32] = S[k % 2, COLUMNS + 31 - (j * 64 + tx)]
            T.role_barrier(1, 64)
            if tx == 32:
                T.mbarrier_arrive(T.address_of(empty[k % 2]))
"""


def ring(columns: int = 100, dtype: str = "float32") -> str:
    size = columns * np.dtype(dtype).itemsize
    chunks = -(-columns // 64)
    text = RING.replace("BYTES", str(size)).replace("CHUNKS", str(chunks))
    return text.replace("COLUMNS", str(columns)).replace("TYPE", dtype)


def built(texts: Mapping[str, str]) -> Any:
    """One module of several programs by their names: it is compiled once."""
    programs = {name: from_source(text.replace("ring", name)) for name, text in texts.items()}
    return lw.build(ir.IRModule(programs), target=EMULATED)


SHAPES = [(100, "float32"), (1, "float64"), (64, "float16"), (131, "int8"), (7, "float16")]


@functools.cache
def right() -> Any:
    """Rings that are right."""
    texts = {f"ring_{columns}_{dtype}": ring(columns, dtype) for columns, dtype in SHAPES}
    empty = ring().replace("400, T", "COUNT, T").replace("S[k % 2, 100 + 31 - (j * 64 + tx)]", "1.0")
    texts["nothing"] = empty.replace("COUNT", "0")
    texts["less"] = empty.replace("COUNT", "-1")
    texts["dynamic"] = ring().replace('scope="shared"', 'scope="shared.dyn"')
    texts["sized"] = ring().replace("400, T", "n * T.int64(4), T").replace("(A:", "(n: T.int64, A:")
    return built(texts)


@pytest.mark.parametrize(("columns", "dtype"), SHAPES)
def test_a_ring_of_two_stages(columns: int, dtype: str):
    a = np.arange(4 * columns + 1).astype(dtype)
    for start in (0, 1):
        check(f"ring_{columns}_{dtype}", a[start : start + 4 * columns].reshape(4, columns))


def check(name: str, a: np.ndarray, *sizes: int) -> None:
    for order, seed in RUNS[:4]:
        right().set_thread_order(order, seed)
        b = np.zeros(a.shape, a.dtype)
        right()[name](*sizes, a.reshape(-1), b)
        np.testing.assert_array_equal(b, a[:, ::-1])


TILES = np.arange(400, dtype="float32").reshape(4, 100)


def test_the_size_may_be_known_only_at_run_time():
    check("sized", TILES, 100)


def test_dynamic_shared_memory():
    check("dynamic", TILES)


@pytest.mark.parametrize("name", ["nothing", "less"])
def test_a_copy_of_no_bytes_is_nothing(name: str):
    check(name, np.ones((4, 100), "float32"))


def test_what_is_copied_from_is_only_read():
    kernel = next(kernel for name, kernel in right().kernels.kernels.items() if "ring_100_float32" in name)
    assert [parameter.is_written for parameter in kernel.parameters] == [False, True]
    assert kernel.has_barriers


def test_they_print_and_parse():
    program = from_source(ring())
    text = program.script()
    for name in ASYNC_INTRINSICS:
        assert f"T.{name.removeprefix('tir.')}(" in text
    assert ir.structural_equal(from_source(text), program)


# --- bugs ---------------------------------------------------------------------------------------------------------


class Bug(NamedTuple):
    """A change of the ring, and what is said of it in some order."""

    old: str
    new: str
    message: str = ""


ROLE = "T.role_barrier(1, 64)"
COPY = "T.bulk_copy_async(T.address_of(S[k % 2, 0]), T.address_of(A[k * 100]), 400, T.address_of(full[k % 2]))"
ARRIVE = "if tx == 0:\n                T.mbarrier_arrive(T.address_of(full[k % 2]))"
SIGNAL = "if tx == 32:\n                T.mbarrier_arrive(T.address_of(empty[k % 2]))"
WAIT_EMPTY = "T.mbarrier_wait(T.address_of(empty[k % 2]), 1 - k // 2 % 2)"
WAIT_FULL = "T.mbarrier_wait(T.address_of(full[k % 2]), k // 2 % 2)"
INIT_FULL, INIT_EMPTY = "T.mbarrier_init(T.address_of(full[s]), 1)", "T.mbarrier_init(T.address_of(empty[s]), 1)"
NEVER = r"waits in line \d+ for a phase of the mbarrier of line \d+ that never completes"
BUGS = {
    "readers wait for the other parity": Bug(WAIT_FULL, WAIT_FULL.replace("), k // 2 % 2", "), 1 - k // 2 % 2")),
    "the copying warp waits for the other parity": Bug(WAIT_EMPTY, WAIT_EMPTY.replace("1 - ", ""), NEVER),
    "the parity of a stage's first round for all rounds": Bug(WAIT_FULL, WAIT_FULL.replace("k // 2 % 2", "0")),
    "the parity of the tile, not of the round": Bug(WAIT_FULL, WAIT_FULL.replace("k // 2 % 2", "k % 2")),
    "a parity that is none": Bug(WAIT_FULL, WAIT_FULL.replace("k // 2 % 2", "k // 2 + 1"), "parity .* is 0 or 1"),
    "readers do not wait for the copy": Bug(WAIT_FULL, "T.evaluate(0)"),
    "one reader of a warp waits for the others": Bug(WAIT_FULL, f"if tx % 32 == 0:\n                {WAIT_FULL}"),
    "a warp of readers does not wait": Bug(WAIT_FULL, f"if tx < 64:\n                {WAIT_FULL}"),
    "the copying warp does not wait for readers": Bug(WAIT_EMPTY, "T.evaluate(0)"),
    "only lane 0 waits for readers": Bug(WAIT_EMPTY, f"if tx == 0:\n                {WAIT_EMPTY}"),
    "an mbarrier that counts an arrival too many": Bug(INIT_FULL, INIT_FULL.replace(", 1", ", 2"), NEVER),
    "an mbarrier that counts an arrival too few": Bug(SIGNAL, SIGNAL.replace("tx == 32", "tx % 32 == 0")),
    "all lanes arrive": Bug(ARRIVE, ARRIVE.replace("tx == 0", "tx >= 0"), "more arrivals than the mbarrier"),
    "another lane than 0 arrives": Bug(ARRIVE, ARRIVE.replace("tx == 0", "tx == 5")),
    "nobody arrives": Bug(ARRIVE, "T.evaluate(0)", NEVER),
    "readers never arrive": Bug(SIGNAL, "T.evaluate(0)", NEVER),
    "readers arrive before they have read": Bug(WAIT_FULL, f"{WAIT_FULL}\n            {SIGNAL}"),
    "an arrival before the copy": Bug(f"{COPY}\n            {ARRIVE}", f"{ARRIVE}\n            {COPY}"),
    "no barrier after the init": Bug('T.tvm_storage_sync("shared")', "T.evaluate(0)", "has not been initialised"),
    "an mbarrier without init": Bug(INIT_EMPTY, "T.evaluate(0)", "the mbarrier has not been initialised"),
    "every thread of a warp initialises": Bug(
        "if tx == 0:\n        for s", "if tx < 32:\n        for s", "initialised already, in line"
    ),
    "an mbarrier that counts nothing": Bug(INIT_EMPTY, INIT_EMPTY.replace(", 1", ", bx"), "at least one arrival"),
    "readers arrive without waiting for each other": Bug(ROLE, "T.evaluate(0)"),
    "a role barrier of one warp": Bug(ROLE, "T.role_barrier(1, 32)"),
    "a role barrier of a warp too many": Bug(ROLE, "T.role_barrier(1, 96)", "64 of 96 threads wait"),
    "role barriers of two numbers": Bug(ROLE, "T.role_barrier(tx // 32, 64)", "32 of 64 threads wait"),
    "role barriers of two sizes": Bug(ROLE, "T.role_barrier(1, 32 + tx // 64 * 32)", "another number of threads"),
    "a role barrier of 33 threads": Bug(ROLE, "T.role_barrier(1, bx + 33)", "multiple of 32 threads"),
    "a role barrier for a part of each warp": Bug(
        ROLE, "if tx % 32 < 16:\n                T.role_barrier(1, 32 + bx)", "by a part of a warp"
    ),
    "a copy that is too short": Bug("400, T", "396, T"),
    "a copy that is too long": Bug("400, T", "404, T", "that of the copy of line"),
    "a copy that reaches over mbarriers": Bug("400, T", "40000, T", "not all in shared memory"),
    "a copy into the other stage": Bug("S[k % 2, 0]", "S[(k + 1) % 2, 0]"),
    "a copy of the wrong tile": Bug("A[k * 100]", "A[k // 2 * 100]"),
    "a copy that another mbarrier waits for": Bug(COPY, COPY.replace("full", "empty")),
    "lanes that copy from different places": Bug("A[k * 100]", "A[k * 100 + tx % 2]", "with different arguments"),
    "lane 0 copies alone": Bug(COPY, f"if tx == 0:\n                {COPY}", "waits for lanes of its warp"),
    "a copy that nobody waits for": Bug(
        "    else:\n", f"        {COPY.replace('k % 2', '0').replace('k * 100', '0')}\n    else:\n"
    ),
    "a thread writes over an mbarrier": Bug(
        ROLE,
        f"T.call_extern('void', '__builtin_memset', T.address_of(empty[k % 2]), 0, 8)\n            {ROLE}",
        "something has overwritten the mbarrier",
    ),
    "a thread writes where a copy is under way": Bug(
        ARRIVE,
        f"{ARRIVE}\n            T.call_extern('void', '__builtin_memset', T.address_of(S[k % 2, 3]), 0, 4)",
        "something writes to the target",
    ),
}


@functools.cache
def wrong() -> Any:
    """The ring with each of the bugs, and without."""
    texts = {"no_bug": ring()}
    for k, bug in enumerate(BUGS.values()):
        assert ring().count(bug.old) == 1, bug.old
        texts[f"bug_{k}"] = ring().replace(bug.old, bug.new)
    with lw.PassContext(disabled_pass=["check_async_order"]):  # which refuses most of them
        return built(texts)


def outcomes(name: str) -> list[str]:
    """What the emulation says of a program in the orders in which it does not compute what is wanted."""
    found = []
    for order, seed in RUNS:
        wrong().set_thread_order(order, seed)
        b = np.zeros((4, 100), "float32")
        try:
            wrong()[name](TILES.reshape(-1), b)
        except LoopwrightError as error:
            found.append(f"{order} {seed}: {error}")
        else:
            if not np.array_equal(b, TILES[:, ::-1]):
                found.append(f"{order} {seed}: wrong results")
    return found


def test_the_ring_is_right_without_bugs():
    assert outcomes("no_bug") == []


@pytest.mark.parametrize("name", BUGS)
def test_bugs_are_caught(name: str):
    found = outcomes(f"bug_{list(BUGS).index(name)}")
    assert found
    assert any([re.search(BUGS[name].message, one) for one in found]), found


# --- GPUs ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not HAS_NVRTC, reason="NVRTC is not installed")
def test_a_gpu_has_instructions_for_them():
    code = sass(from_source(ring()), "sm_90")
    for instruction in ("UBLKCP", "SYNCS.EXCH.64", "SYNCS.PHASECHK.TRANS64.TRYWAIT", "LDGSTS", "LDGDEPBAR"):
        assert instruction in code
    assert re.search(r"BAR.SYNC\S* 0x1, 0x40", code)


def test_what_is_copied_to_begins_at_16_bytes():
    text = lw.build(from_source(ring(7, "float16")), target="cuda -arch=sm_90").get_source("cuda")
    assert "__shared__ __align__(16) uint16_t S[14];" in text


def test_a_role_barrier_of_one_warp_is_that_of_the_warp():
    text = ring().replace("T.role_barrier(1, 64)", "T.role_barrier(3, 32)")
    with lw.PassContext(disabled_pass=["check_async_order"]):  # the warps of readers do not wait for each other
        source = lw.build(from_source(text), target="cuda -arch=sm_90").get_source("cuda")
    assert "__syncwarp();" in source[source.index("__global__") :] and "role_barrier" not in source


@pytest.mark.parametrize("target", ["cuda -arch=sm_80", "cuda -arch=sm_80,sm_90a", "cuda -model=emulated -arch=sm_89"])
def test_older_gpus_have_none(target: str):
    with pytest.raises(NeedsNewerGpu, match="mbarrier_init needs sm_90, and the target is sm_8"):
        lw.build(from_source(ring()), target=target)


# --- what is no such call -----------------------------------------------------------------------------------------


def address(dtype: str, scope: str) -> Any:
    return tir.address_of(tir.decl_buffer((8,), dtype, name="A", scope=scope)[0])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda bar, s, a: tir.mbarrier_arrive(a),
            r"mbarrier_arrive\(\) takes the address of one uint64 in shared memory.* as barrier; got that of float32",
        ),
        (lambda bar, s, a: tir.mbarrier_init(8, 1), "got no address"),
        (lambda bar, s, a: tir.mbarrier_init(bar, tir.const(1, "int64")), "takes int32 as arrivals; got int64"),
        (lambda bar, s, a: tir.mbarrier_init(bar, 0), "takes 1 to 1048575 as arrivals; got 0"),
        (lambda bar, s, a: tir.mbarrier_wait(bar, 2), "takes 0 to 1 as parity; got 2"),
        (lambda bar, s, a: tir.bulk_copy_async(a, a, 4, bar), "in shared memory.* as target; got.* in global"),
        (lambda bar, s, a: tir.bulk_copy_async(s, s, 4, bar), "in global memory.* as source; got.* in shared"),
        (lambda bar, s, a: tir.bulk_copy_async(s, a, 4.0, bar), "takes int32 or int64 as bytes; got float32"),
        (lambda bar, s, a: tir.bulk_copy_async(s, a, 4, s), "one uint64 in shared memory"),
        (lambda bar, s, a: tir.role_barrier(0, 64), "takes 1 to 15 as number; got 0"),
        (lambda bar, s, a: tir.role_barrier(1, 33), "takes 32 to 1024 as threads, a multiple of 32; got 33"),
    ],
)
def test_what_is_no_such_call_is_refused(build: Any, message: str):
    with pytest.raises(TypeError, match=message):
        build(address("uint64", "shared"), address("float32", "shared.dyn"), address("float32", "global"))
