"""launch_threads: loops bound to blocks and threads become one launch; here blocks that stay, and threads of roles.

Kernels of all other kinds are in test_insert_barriers.py and in the tests of the CUDA backend.
"""

from __future__ import annotations

import re
from textwrap import indent

import numpy as np
import pytest

from loopwright.ir import PrimFunc
from loopwright.script import from_source
from loopwright.script import tir as T
from loopwright.transform import launch_threads
from loopwright.transform.on_request.launch_threads import NotALaunch
from tests.transform.before_after import check
from tests.transform.every_order import check_every_order


def test_blocks_that_stay_walk_the_tiles():
    @T.prim_func
    def before(A: T.Buffer((35, 8))):
        for by in T.thread_binding(7, thread="blockIdx.y", annotations={"resident_blocks": 3}):
            for bx in T.thread_binding(5, thread="blockIdx.x"):
                for u in T.thread_binding(8, thread="threadIdx.x"):
                    A[by * 5 + bx, u] = T.float32(1)

    @T.prim_func
    def after(A: T.Buffer((35, 8))):
        bx = T.launch_thread("blockIdx.x", 3)
        tx = T.launch_thread("threadIdx.x", 8)
        for turn in range((34 - bx) // 3 + 1):
            A[(turn * 3 + bx) // 5 * 5 + (turn * 3 + bx) % 5, tx] = T.float32(1)

    check(launch_threads, before, after)


def test_no_more_blocks_stay_than_there_are():
    @T.prim_func
    def before(A: T.Buffer((7, 8))):
        for bx in T.thread_binding(7, thread="blockIdx.x", annotations={"resident_blocks": 7}):
            for u in T.thread_binding(8, thread="threadIdx.x"):
                A[bx, u] = T.float32(1)

    @T.prim_func
    def after(A: T.Buffer((7, 8))):
        bx = T.launch_thread("blockIdx.x", 7)
        tx = T.launch_thread("threadIdx.x", 8)
        A[bx, tx] = T.float32(1)

    check(launch_threads, before, after)


GRIDS = [(7,), (1,), (0,), (13,), (3, 5), (1, 7), (2, 3, 5), (3, 0)]


def tiles(grid: tuple[int, ...], blocks: int, body: str, memory: str = "") -> PrimFunc:
    """Each block has a number among all of them, `tile`."""
    names = [f"b{axis}" for axis in "xyz"[: len(grid)]]
    lines, number = [], names[-1]
    for k, (name, extent) in reversed(list(enumerate(zip(names, grid, strict=True)))):
        note = f', annotations={{"resident_blocks": {blocks}}}' if k == len(grid) - 1 else ""
        depth = "    " * (len(grid) - 1 - k)
        lines.append(f'{depth}for {name} in T.thread_binding({extent}, thread="blockIdx.{name[1]}"{note}):')
        number = name if k == len(grid) - 1 else f"({number}) * {extent} + {name}"
    count = max(1, int(np.prod(grid)))
    kernel = "\n".join(lines) + "\n" + indent(body.replace("tile", f"({number})"), "    " * len(grid))
    head = f"@T.prim_func\ndef main(A: T.Buffer(({count}, 32)), B: T.Buffer(({count}, 32))):\n"
    return from_source(head + indent(memory + kernel, "    "))


REVERSED = """
for u in T.thread_binding(32, thread="threadIdx.x"):
    S[u] = A[tile, u]
for u in T.thread_binding(32, thread="threadIdx.x"):
    B[tile, u] = S[31 - u]
"""
BY_ROLES = """
for k in T.serial(1, annotations={"warp_role_stages": 2}):
    S = T.decl_buffer((32,), scope="shared")
    for c in T.serial(32, annotations={"warp_role": "load"}):
        S[c] = A[tile, c]
    for u in T.thread_binding(32, thread="threadIdx.x", annotations={"warp_role": "use"}):
        B[tile, u] = S[31 - u]
"""


@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 29, 100])
@pytest.mark.parametrize("grid", GRIDS)
def test_every_tile_is_computed_once(grid, blocks):
    if blocks > 7 and len(grid) < 3:
        return
    function = tiles(grid, blocks, REVERSED, 'S = T.alloc_buffer((32,), scope="shared")\n')
    a = np.arange(int(np.prod(grid)) * 32 or 32, dtype="float32").reshape(-1, 32)
    source = check_every_order(function, a, np.zeros_like(a))
    assert ("turn" in source) == (blocks < np.prod(grid))


@pytest.mark.parametrize("blocks", [1, 3, 7])
@pytest.mark.parametrize("grid", [(7,), (3, 5), (2, 3, 5)])
def test_roles_go_from_tile_to_tile(grid, blocks):
    a = np.arange(int(np.prod(grid)) * 32, dtype="float32").reshape(-1, 32)
    check_every_order(tiles(grid, blocks, BY_ROLES), a, np.zeros_like(a))


def test_one_kernel_of_a_function_may_stay():
    function = from_source("""
@T.prim_func
def main(A: T.Buffer((7, 32)), B: T.Buffer((7, 32))):
    for b in T.thread_binding(7, thread="blockIdx.x", annotations={"resident_blocks": 2}):
        for u in T.thread_binding(32, thread="threadIdx.x"):
            B[b, u] = A[b, 31 - u]
    for b in T.thread_binding(5, thread="blockIdx.x"):
        for u in T.thread_binding(32, thread="threadIdx.x"):
            A[b, u] = B[b + 1, u]
""")
    a = np.arange(224, dtype="float32").reshape(7, 32)
    check_every_order(function, a, np.zeros_like(a))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("T.thread_binding(7", "T.thread_binding(n"), "resident_blocks of a loop over blocks of n iterations"),
        (('"resident_blocks": 2', '"resident_blocks": 0'), "resident_blocks of loop b is 0"),
        (('"resident_blocks": 2', '"resident_blocks": -1'), "resident_blocks of loop b is -1"),
        (('"resident_blocks": 2', '"resident_blocks": "all"'), "resident_blocks of loop b is all"),
    ],
)
def test_how_many_blocks_stay_is_a_number(change, message):
    text = """
@T.prim_func
def main(B: T.Buffer((7, 32)), n: T.int32):
    for b in T.thread_binding(7, thread="blockIdx.x", annotations={"resident_blocks": 2}):
        for u in T.thread_binding(32, thread="threadIdx.x"):
            B[b, u] = T.float32(1)
"""
    with pytest.raises(NotALaunch, match=re.escape(message)):
        launch_threads(from_source(text.replace(*change)))


def test_threads_of_roles_lie_side_by_side_and_are_counted_by_role():
    before = from_source("""
@T.prim_func
def main(A: T.Buffer((2, 64)), B: T.Buffer((2, 64))):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for i in T.serial(1, annotations={"warp_role_stages": 1}):
            with T.attr("one", "warp_role", 64):
                for x in T.thread_binding(64, thread="threadIdx.x"):
                    A[b, x] = T.float32(1)
            with T.attr("two", "warp_role", 64):
                for z in T.thread_binding(2, thread="threadIdx.z"):
                    for y in T.thread_binding(8, thread="threadIdx.y"):
                        for x in T.thread_binding(4, thread="threadIdx.x"):
                            B[b, z * 32 + y * 4 + x] = T.float32(2)
""")
    after = from_source("""
@T.prim_func
def main(A: T.Buffer((2, 64)), B: T.Buffer((2, 64))):
    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 128)
    for i in T.serial(1, annotations={"warp_role_stages": 1}):
        with T.attr("one", "warp_role", 64):
            if tx < 64:
                A[bx, tx] = T.float32(1)
        with T.attr("two", "warp_role", 64):
            if tx >= 64:
                B[bx, (tx - 64) // 32 * 32 + (tx - 64) // 4 % 8 * 4 + (tx - 64) % 4] = T.float32(2)
""")
    check(launch_threads, before, after)


def test_a_role_of_one_thread_is_not_the_work_of_the_first_thread_of_the_block():
    before = from_source("""
@T.prim_func
def main(A: T.Buffer(4), B: T.Buffer(4)):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.serial(4, annotations={"warp_role_stages": 1}):
            with T.attr("one", "warp_role", 32):
                A[i] = T.float32(1)
            with T.attr("two", "warp_role", 32):
                B[i] = T.float32(2)
""")
    after = from_source("""
@T.prim_func
def main(A: T.Buffer(4), B: T.Buffer(4)):
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 64)
    for i in T.serial(4, annotations={"warp_role_stages": 1}):
        with T.attr("one", "warp_role", 32):
            if tx < 32:
                if tx == 0:
                    A[i] = T.float32(1)
        with T.attr("two", "warp_role", 32):
            if tx >= 32:
                if tx - 32 == 0:
                    B[i] = T.float32(2)
""")
    check(launch_threads, before, after)
