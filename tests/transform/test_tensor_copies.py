"""Tensor copies: nests of one thread that copy a box of a tensor, as copies of the engine."""

from __future__ import annotations

from textwrap import indent

import numpy as np
import pytest

from loopwright.ir import PrimFunc
from loopwright.script import from_source
from tests.transform.before_after import same_program
from tests.transform.every_order import calls, check_every_order, some, specialized

LOAD = "for r, c in T.grid(8, 64):\n    S[r, c] = A[i * 8 + r, c]"
STORE = "for r, c in T.grid(8, 64):\n    B[i * 8 + r, c] = S[r, c]"
BY_LANES = (
    'for tx in T.thread_binding(32, thread="threadIdx.x"):\n    for k in range(16):\n'
    "        S[k // 2, k % 2 * 32 + tx] = A[i * 8 + k // 2, k % 2 * 32 + tx]"
)


def program(
    load: str = LOAD, store: str = STORE, tile: str = "(8, 64)", dtype: str = "float16", more: str = "", rows: int = 64
) -> PrimFunc:
    """Tiles go through shared memory; `more` are further parameters."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows}, 64), "{dtype}"), B: T.Buffer((64, 64), "{dtype}"){more}):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.serial(4, annotations={{"warp_role_stages": 2}}):
            S = T.decl_buffer({tile}, "{dtype}", scope="shared")
            with T.attr("load", "warp_role", 32):
{indent(load, " " * 16)}
            with T.attr("store", "warp_role", 32):
{indent(store, " " * 16)}
""")


def check(function: PrimFunc, rows: int = 64) -> str:
    more = [some(4, 64)] * (len(function.params) - 2)
    return check_every_order(function, some(rows, 64), np.zeros((64, 64), "float16"), *more)


def test_what_becomes_of_the_nests():
    expected = from_source("""
@T.prim_func
def main(A: T.Buffer((64, 64), "float16"), B: T.Buffer((64, 64), "float16")):
    B_map: T.handle("float16", "tensor_map") = T.tensor_map(
        B.data, "float16", 128, 2, T.int64(64), T.int64(64), T.int64(64), T.int64(1), 8, 64
    )
    A_map: T.handle("float16", "tensor_map") = T.tensor_map(
        A.data, "float16", 128, 2, T.int64(64), T.int64(64), T.int64(64), T.int64(1), 8, 64
    )
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 64)
    barriers = T.decl_buffer((4,), "uint64", scope="shared")
    S_data = T.allocate([2, 8, 64], "float16", "shared", annotations={"swizzle": 128})
    S = T.decl_buffer((2, 8, 64), "float16", data=S_data)
    if tx == 0:
        for slot in range(2):
            T.mbarrier_init(T.address_of(barriers[slot]), 32)
        for slot in range(2):
            T.mbarrier_init(T.address_of(barriers[slot + 2]), 32)
    T.tvm_storage_sync("shared")
    if tx < 32:
        with T.attr("load", "warp_role", 32):
            for i in range(4):
                T.mbarrier_wait(T.address_of(barriers[i % 2 + 2]), 1 - i // 2 % 2)
                T.tensor_copy_async(T.address_of(S[i % 2, 0, 0]), A_map, T.address_of(barriers[i % 2]), i * 8, 0)
                T.mbarrier_arrive(T.address_of(barriers[i % 2]))
    else:
        with T.attr("store", "warp_role", 32):
            for i in range(4):
                T.mbarrier_wait(T.address_of(barriers[i % 2]), i // 2 % 2)
                if tx - 32 == 0:
                    T.tensor_store_async(B_map, T.address_of(S[i % 2, 0, 0]), i * 8, 0)
                    T.bulk_commit_group()
                    T.bulk_wait_group_read(0)
                T.mbarrier_arrive(T.address_of(barriers[i % 2 + 2]))
""")
    same_program(specialized(program()), expected)


@pytest.mark.parametrize(
    ("load", "copies"),
    [
        (LOAD, 1),
        ("for c, r in T.grid(64, 8):\n    S[r, c] = A[i * 8 + r, c]", 1),  # in another order
        ("for r in T.serial(2, 10):\n    for c in T.vectorized(64):\n        S[r - 2, c] = A[i * 8 + r - 2, c]", 1),
        ("for h, r, c in T.grid(1, 8, 64):\n    S[r, c] = A[i * 8 + h + r, c]", 1),
        # What is outside of the tensor is zero.
        (
            "for r, c in T.grid(8, 64):\n"
            "    S[r, c] = T.if_then_else(i * 8 + r >= 3, A[i * 8 + r - 3, c], T.float16(0))",
            1,
        ),
        ("for r, c in T.grid(8, 64):\n    S[r, c] = T.if_then_else(c < 3, T.float16(0), A[i * 8 + r, c - 3])", 1),
        ("for r, c in T.grid(8, 64):\n    S[r, c] = T.if_then_else(c >= 3, A[i * 8 + r, c - 3], T.float16(-0.0))", 0),
        ("for r, c in T.grid(8, 64):\n    S[r, c] = T.if_then_else(c >= 3, A[i * 8 + r, c - 3], T.float16(1))", 0),
        ("for r, c in T.grid(8, 64):\n    S[r, c] = T.if_then_else(c >= 4, A[i * 8 + r, c - 3], T.float16(0))", 0),
        ("for r, c in T.grid(8, 64):\n    S[r, c] = T.if_then_else(r < 3 or c < 9, A[i * 8 + r, c], T.float16(0))", 0),
        ("for r, c in T.grid(8, 64):\n    S[r, c] = T.if_then_else(A[0, 0] > T.float16(0), A[r, c], T.float16(0))", 0),
        # These are no boxes.
        ("for r, c in T.grid(8, 64):\n    S[r, c] = A[i * 8 + r * 2, c]", 0),
        ("for r, c in T.grid(8, 64):\n    S[r, c] = A[i * 8 + 7 - r, c]", 0),
        ("for r, c in T.grid(8, 64):\n    S[r, c] = A[c, i * 8 + r]", 0),
        ("for r, c in T.grid(8, 64):\n    S[r, c] = A[i * 8 + r + c // 32, c]", 0),
        ("for r, c in T.grid(8, 64):\n    S[r, c] = A[i * 8 + r, c] + T.float16(1)", 0),
        # Something else touches the target, before the copy is there.
        (f"{LOAD}\nS[0, 0] = T.float16(1)", 0),
        (f"for r, c in T.grid(8, 64):\n    S[r, c] = T.float16(0)\n{LOAD}", 0),
        ("for o, r, c in T.grid(2, 8, 64):\n    S[r, c] = A[i * 8 + o * 8 + r, c]", 0),
        ("for o, r, c in T.grid(2, 4, 64):\n    S[o * 4 + r, c] = A[i * 8 + o * 4 + r, c]", 0),  # half a swizzle
        ("for r, c in T.grid(8, 64):\n    S[r, c] = T.if_then_else(i < 4, A[i * 8 + r, c], T.float16(0))", 0),
    ],
)
def test_loads(load, copies):
    function = program(load)
    assert len(calls(specialized(function), "tensor_copy_async")) == copies
    check(function)


@pytest.mark.parametrize(
    ("store", "stores", "waits"),
    [
        (STORE, 1, "read"),
        ("for r, c in T.grid(8, 64):\n    if i * 8 + r < 64:\n        B[i * 8 + r, c] = S[r, c]", 1, "read"),
        ("for r, c in T.grid(8, 64):\n    if i * 8 + r < 20:\n        B[i * 8 + r, c] = S[r, c]", 0, ""),
        ("if i % 2 == 0:\n" + indent(STORE, "    "), 1, "read"),
        ("for r, c in T.grid(8, 64):\n    B[i * 8 + r, c] = S[r, c] * T.float16(2)", 0, ""),
        # A later box may overwrite this one.
        (STORE.replace("i * 8", "i * 4"), 1, "all"),
        (STORE.replace("i * 8", "i // 2 * 8"), 1, "all"),
        (STORE.replace("i * 8 + ", ""), 1, "all"),
        ("for o, r, c in T.grid(2, 8, 64):\n    B[i * 8 + r, c] = S[r, c]", 1, "all"),
        ("for o, r, c in T.grid(2, 8, 64):\n    B[o * 32 + i * 8 + r, c] = S[r, c]", 1, "read"),
        # The kernel has other accesses to the tensor.
        (f"{STORE}\nfor c in range(64):\n    C[i, c] = B[i * 8 + 1, c]", 0, ""),
        (f"for c in range(64):\n    C[i, c] = B[(i + 7) % 8 * 8 + 1, c]\n{STORE}", 0, ""),
        (f"{STORE}\nfor c in range(64):\n    B[i * 8 + 1, c] = T.float16(3)", 0, ""),
        (f"{STORE}\n{STORE.replace('S[r, c]', 'S[7 - r, c]')}", 0, ""),
    ],
)
@pytest.mark.parametrize("load", [LOAD, BY_LANES])
def test_stores(load, store, stores, waits):
    function = program(load, store, more=', C: T.Buffer((4, 64), "float16")')
    result = specialized(function)
    assert len(calls(result, "tensor_store_async")) == stores
    assert len(calls(result, "bulk_wait_group_read")) == (waits == "read")
    assert len(calls(result, "bulk_wait_group")) == (waits == "all")
    check(function)


@pytest.mark.parametrize("rows", [1, 3, 8, 16])
@pytest.mark.parametrize(
    ("columns", "dtype"),
    [(8, "float16"), (32, "float16"), (24, "float16"), (64, "int8"), (16, "int8"), (4, "float32"), (2, "float64")],
)
def test_boxes_begin_at_lines_of_shared_memory(rows, columns, dtype):
    """Where slots are not as long, threads copy."""
    nest = f"for r, c in T.grid({rows}, {columns}):\n    "
    load, store = f"{nest}S[r, c] = A[i * {rows} + r, c]", f"{nest}B[i * {rows} + r, c] = S[r, c]"
    function = program(load, store, f"({rows}, {columns})", dtype)
    is_copied = rows * columns * np.dtype(dtype).itemsize % 128 == 0
    result = specialized(function)
    assert len(calls(result, "tensor_copy_async")) == len(calls(result, "tensor_store_async")) == is_copied
    check_every_order(function, some(64, 64, dtype=dtype), np.zeros((64, 64), dtype))


def test_a_box_whose_slots_repeat_no_swizzle_lies_without():
    nest = "for r, c in T.grid(12, 64):\n    "
    function = program(f"{nest}S[r, c] = A[i * 12 + r, c]", f"{nest}B[i * 12 + r, c] = S[r, c]", "(12, 64)")
    (given,) = [call for call in calls(specialized(function), "tensor_map") if call.args[0].name.startswith("B")]
    assert given.args[2].value == 0
    check(function)


def test_stores_of_threads_are_fenced_before_a_box_is_stored():
    nest = "for r, c in T.grid(12, 64):\n    "
    load = f"{nest}S[r, c] = A[i * 12 + r, c] * T.float16(2)"
    function = program(load, f"{nest}B[i * 12 + r, c] = S[r, c]", "(12, 64)")
    assert len(calls(specialized(function), "fence_proxy_async")) == 1
    check(function)


def test_bulk_copies_stay_out_of_swizzled_tiles():
    load = BY_LANES.replace("k // 2, k % 2 * 32 + tx", "(k * 32 + tx) // 64, (k * 32 + tx) % 64").replace(
        "i * 8 + k // 2, k % 2 * 32 + tx", "i * 8 + (k * 32 + tx) // 64, (k * 32 + tx) % 64"
    )
    function = program(load)
    assert not calls(specialized(function), "bulk_copy_async")
    check(function)


def test_a_tensor_that_ends_inside_a_box():
    load = "for r, c in T.grid(8, 64):\n    S[r, c] = T.if_then_else(i * 8 + r < 30, A[i * 8 + r, c], T.float16(0))"
    function = program(load, rows=30)
    assert len(calls(specialized(function), "tensor_copy_async")) == 1
    check(function, rows=30)


def test_handoffs_between_blocks_come_after_what_threads_store():
    store = f"{STORE}\nT.evaluate(T.publish(T.address_of(F[i]), T.uint64(1)))"
    assert not calls(specialized(program(store=store, more=', F: T.Buffer(4, "uint64")')), "tensor_store_async")


def test_what_the_kernel_stores_is_no_source():
    load = f"{LOAD}\nfor c in range(64):\n    A[i * 8 + 9, c] = T.float16(1)"
    function = program(load)
    assert not calls(specialized(function), "tensor_copy_async")
    check(function)
