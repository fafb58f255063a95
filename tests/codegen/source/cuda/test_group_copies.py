"""Copies of groups (cp.async): two stages, filled one tile ahead, emulated; and what can be wrong with them.

`BUGS` are changes of the kernel, each of which stops or gives another result in one of three orders of threads.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir
from loopwright.codegen.source.cuda.errors import NeedsNewerGpu, NoSuchInstruction
from loopwright.runtime.errors import LoopwrightError
from loopwright.script import from_source
from tests.codegen.source.cuda.disassembly import HAS_NVRTC, sass

EMULATED = "cuda -model=emulated -arch=sm_80"
RUNS = [("forwards", 0), ("backwards", 0), *[("random", seed) for seed in range(6)]]

# Six tiles of 64 × LANES; each thread copies a piece of the next tile while all write this one to B, reversed.
PIPELINE = """
@T.prim_func
def pipeline(A: T.Buffer(6 * TILE, "TYPE"), B: T.Buffer((6, TILE), "TYPE")):
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.decl_buffer(2 * TILE, "TYPE", scope="shared")
    T.ptx_cp_async("TYPE", S.data, tx * LANES, A.data, tx * LANES, BYTES)
    T.ptx_commit_group()
    for k in range(6):
        if k + 1 < 6:
            T.ptx_cp_async("TYPE", S.data, (k + 1) % 2 * TILE + tx * LANES, A.data, (k + 1) * TILE + tx * LANES, BYTES)
        T.ptx_commit_group()
        T.ptx_wait_group(1)
        T.tvm_storage_sync("shared")
        for j in range(LANES):
            B[k, j * 64 + tx] = S[k % 2 * TILE + TILE - 1 - (j * 64 + tx)]
        T.tvm_storage_sync("shared")
"""
SHAPES = [("float16", 16), ("float32", 4), ("float32", 8), ("int8", 16), ("float64", 16)]


def pipeline(dtype: str = "float32", size: int = 16) -> str:
    lanes = size // np.dtype(dtype).itemsize
    text = PIPELINE.replace("LANES", str(lanes)).replace("BYTES", str(size))
    return text.replace("TILE", str(64 * lanes)).replace("TYPE", dtype)


def built(texts: Mapping[str, str]) -> Any:
    """One module of several programs by their names: it is compiled once."""
    programs = {name: from_source(text.replace("pipeline", name)) for name, text in texts.items()}
    return lw.build(ir.IRModule(programs), target=EMULATED)


@functools.cache
def right() -> Any:
    """Pipelines that are right."""
    texts = {f"pipeline_{dtype}_{size}": pipeline(dtype, size) for dtype, size in SHAPES}
    texts["addresses"] = re.sub(r"(S|A)\.data, ([^,]*),", r"T.address_of(\1[\2]), 0,", pipeline())
    texts["halves"] = re.sub(r"(S|A)\.data, ([^,]*),", r"T.address_of(\1[tx * 2]), \2 - tx * 2,", pipeline())
    texts["dynamic"] = pipeline().replace('scope="shared"', 'scope="shared.dyn"')
    texts["sized"] = pipeline().replace("A: T.Buffer(6 * 256", "n: T.int32, A: T.Buffer(6 * n").replace(
        "A.data, (k + 1) * 256", "A.data, (k + 1) * n"
    )
    texts["odd"] = pipeline().replace("A: T.Buffer(6 * 256", "A: T.Buffer(6 * 256 + 1").replace(
        "A.data, tx * 4", "A.data, tx * 4 + 1"
    ).replace("A.data, (k + 1) * 256", "A.data, 1 + (k + 1) * 256")
    return built(texts)


def check(name: str, given: np.ndarray, tiles: np.ndarray, *sizes: int) -> None:
    for order, seed in RUNS[:4]:
        right().set_thread_order(order, seed)
        b = np.zeros(tiles.shape, tiles.dtype)
        right()[name](*sizes, given, b)
        np.testing.assert_array_equal(b, tiles[:, ::-1])


@pytest.mark.parametrize(("dtype", "size"), SHAPES)
def test_a_pipeline_of_two_stages(dtype: str, size: int):
    a = np.arange(6 * 64 * size // np.dtype(dtype).itemsize + 1).astype(dtype)
    for start in (0, 1):  # the kernel for tensors that begin anywhere has copies that look where they are
        check(f"pipeline_{dtype}_{size}", a[start : start + a.size - 1], a[start : start + a.size - 1].reshape(6, -1))


TILES = np.arange(1536, dtype="float32").reshape(6, 256)


@pytest.mark.parametrize("name", ["addresses", "halves", "dynamic"])
def test_pointers_and_offsets(name: str):
    check(name, TILES.reshape(-1), TILES)


def test_a_size_of_rows_that_is_known_at_run_time():
    check("sized", TILES.reshape(-1), TILES, 256)
    longer = np.pad(TILES, ((0, 0), (0, 1)))
    check("sized", longer.reshape(-1), TILES, 257)


def test_what_is_no_multiple_of_the_bytes_goes_in_pieces():
    check("odd", np.concatenate([[np.float32(-1)], TILES.reshape(-1)]), TILES)


def text_of(program: str, arch: str = "sm_80") -> str:
    source: str = lw.build(from_source(program), target=f"cuda -arch={arch}").get_source("cuda")
    return source


def test_instructions_want_no_look_at_what_is_proved_aligned():
    source = text_of(pipeline())
    aligned, unaligned = source[source.index("__global__") :].split("pipeline_kernel_unaligned")
    assert "lw_cp_async_16(&S[tx * 4], &A[tx * 4]);" in aligned and "anywhere" not in aligned
    assert "lw_cp_async_16_anywhere(&S[tx * 4], &A[tx * 4]);" in unaligned
    assert "__shared__ __align__(16) float S[512];" in aligned


def test_what_is_copied_from_is_only_read():
    kernel = next(kernel for name, kernel in right().kernels.kernels.items() if "float16" in name)
    assert [parameter.is_written for parameter in kernel.parameters] == [False, True]


def test_they_print_and_parse():
    program = from_source(pipeline())
    text = program.script()
    assert ir.structural_equal(from_source(text), program)


# --- bugs ---------------------------------------------------------------------------------------------------------


class Bug(NamedTuple):
    """A change of the pipeline, and what is said of it in some order."""

    old: str
    new: str
    message: str = ""


FIRST = 'T.ptx_cp_async("float32", S.data, tx * 4, A.data, tx * 4, 16)'
NEXT = 'T.ptx_cp_async("float32", S.data, (k + 1) % 2 * 256 + tx * 4, A.data, (k + 1) * 256 + tx * 4, 16)'
WAIT = "        T.ptx_wait_group(1)\n"
SYNC = '        T.tvm_storage_sync("shared")\n'
COMMIT = "        T.ptx_commit_group()\n        T"
WRITES = "is that of the copy of line|something writes to the target"
BUGS = {
    "nobody waits": Bug(WAIT, "", "ends without waiting for its copy|is that of the copy"),
    "a wait for a group too few": Bug(WAIT, WAIT.replace("1", "2")),
    "only one warp waits": Bug(WAIT, "        if tx < 32:\n    " + WAIT),
    "no barrier after the wait": Bug(WAIT + SYNC, WAIT),
    "a barrier before the wait alone": Bug(WAIT + SYNC, SYNC + WAIT),
    "no barrier before the next copy": Bug(SYNC, "", "wrong results|something writes"),
    "the last copies are not waited for": Bug("if k + 1 < 6", "if k + 1 < 7", "ends without waiting|wrong results"),
    "groups are not committed": Bug(COMMIT, "        T", "is that of the copy of line"),
    "a group is committed before its copy": Bug(
        f"        if k + 1 < 6:\n            {NEXT}\n        T.ptx_commit_group()\n",
        f"        T.ptx_commit_group()\n        if k + 1 < 6:\n            {NEXT}\n",
    ),
    "a copy into the stage that is read": Bug(NEXT, NEXT.replace("(k + 1) % 2", "k % 2")),
    "a copy of the wrong tile": Bug(NEXT, NEXT.replace("(k + 1) * 256", "k * 256")),
    "an offset in bytes": Bug(FIRST, FIRST.replace("S.data, tx * 4", "S.data, tx * 16"), "shared memory|is under way"),
    "copies that are too short": Bug(NEXT, NEXT.replace(", 16)", ", 8)")),
    "threads that copy the same": Bug(NEXT, NEXT.replace("256 + tx * 4", "256 + tx // 2 * 4"), "is that of the copy"),
    "a copy that is not aligned": Bug(NEXT, NEXT.replace("(k + 1) * 256 + tx * 4", "(k + 1) * 256 + tx * 4 + 1")),
    "a store where a copy is under way": Bug(
        COMMIT, f"        S[(k + 1) % 2 * 256 + tx] = T.float32(1)\n{COMMIT}", WRITES
    ),
    "a store to the tile that has come": Bug(WAIT, f"{WAIT}        S[k % 2 * 256 + tx] = T.float32(1)\n"),
}


def with_bug(bug: Bug) -> str:
    text = pipeline()
    if bug.old == SYNC:  # the last one
        at = text.rindex(SYNC)
        return text[:at] + bug.new + text[at + len(SYNC) :]
    assert text.count(bug.old) == 1, bug.old
    return text.replace(bug.old, bug.new)


@functools.cache
def wrong() -> Any:
    """The pipeline with each of the bugs, and without."""
    with lw.PassContext(disabled_pass=["check_async_order"]):  # which refuses most of them
        return built({"no_bug": pipeline(), **{f"bug_{k}": with_bug(bug) for k, bug in enumerate(BUGS.values())}})


def outcomes(name: str) -> list[str]:
    """What the emulation says of a program in the orders in which it does not compute what is wanted."""
    found = []
    for order, seed in RUNS:
        wrong().set_thread_order(order, seed)
        b = np.zeros((6, 256), "float32")
        try:
            wrong()[name](TILES.reshape(-1), b)
        except LoopwrightError as error:
            found.append(f"{order} {seed}: {error}")
        else:
            if not np.array_equal(b, TILES[:, ::-1]):
                found.append(f"{order} {seed}: wrong results")
    return found


def test_the_pipeline_is_right_without_bugs():
    assert outcomes("no_bug") == []


@pytest.mark.parametrize("name", BUGS)
def test_bugs_are_caught(name: str):
    found = outcomes(f"bug_{list(BUGS).index(name)}")
    assert found
    assert any([re.search(BUGS[name].message, one) for one in found]), found


# --- GPUs ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not HAS_NVRTC, reason="NVRTC is not installed")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_a_gpu_has_an_instruction_for_them(arch: str):
    code = sass(from_source(pipeline()), arch)
    assert "LDGSTS.E.BYPASS.128" in code and "LDGDEPBAR" in code and "DEPBAR.LE SB0, 0x1" in code
    small = sass(from_source(pipeline("float32", 8)), arch)
    assert "LDGSTS.E.64" in small and "BYPASS.128" not in small


@pytest.mark.parametrize("target", ["cuda -arch=sm_75", "cuda -arch=sm_75,sm_90", "cuda -model=emulated -arch=sm_70"])
def test_older_gpus_have_none(target: str):
    with pytest.raises(NeedsNewerGpu, match="ptx_cp_async needs sm_80, and the target is sm_7"):
        lw.build(from_source(pipeline()), target=target)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tx * 4, 16)\n    T", "tx * 4, 12)\n    T", "copies 4, 8 or 16 bytes, a constant; got 12"),
        ("tx * 4, 16)\n    T", "tx * 4, bx + 16)\n    T", r"copies 4, 8 or 16 bytes, a constant; got bx \+ 16"),
        ("tx * 4, 16)\n    T", "tx * 4)\n    T", "takes a shared pointer, an offset.* got 4 arguments"),
        (FIRST, FIRST.replace("A.data", "S.data"), "from global to shared memory; its source lies in shared memory"),
        (FIRST, FIRST.replace("S.data", "B.data"), "from global to shared memory; its target lies in global memory"),
        ("wait_group(1)", "wait_group(k)", "ptx_wait_group takes a constant that is not negative; got k"),
        ("wait_group(1)", "wait_group(-1)", "ptx_wait_group takes a constant that is not negative; got -1"),
    ],
)
def test_what_is_no_such_instruction_is_refused(old: str, new: str, message: str):
    assert pipeline().count(old) == 1
    with pytest.raises(NoSuchInstruction, match=message), lw.PassContext(disabled_pass=["check_async_order"]):
        text_of(pipeline().replace(old, new))
