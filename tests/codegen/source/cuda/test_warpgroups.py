"""Warpgroups: wgmma of every type and layout, emulated, against numpy; and what can be wrong with it.

`BUGS` are changes of a kernel with two stages, each of which stops or gives another result in one of three orders.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir, tir
from loopwright.codegen.source.cuda.errors import NeedsNewerGpu
from loopwright.ir.warpgroup_intrinsics import OPERAND_KINDS, WARPGROUP_INTRINSICS, widths
from loopwright.runtime.errors import LoopwrightError
from loopwright.script import from_source
from tests.codegen.source.cuda.disassembly import HAS_NVRTC, sass
from tests.codegen.source.cuda.registers_in_flight import touched_in_flight

EMULATED = "cuda -model=emulated -arch=sm_90a"
RUNS = [("forwards", 0), ("backwards", 0), *[("random", seed) for seed in range(6)]]


class Layout(NamedTuple):
    """Where the elements of a tile are: `swizzle` bytes, elements along K or (transposed) not, and how it is cut."""

    swizzle: int = 128
    is_transposed: bool = False
    is_swapped: bool = False  # the two steps: which one is the smaller

    def steps(self, rows: int, row_bytes: int) -> tuple[int, int]:
        """leading and stride, in bytes, of a tile of `rows` rows, whose K takes `row_bytes`."""
        if self.is_transposed:
            return (1024, -(-rows // 64) * 1024) if self.is_swapped else (row_bytes // 16 * 1024, 1024)
        if self.swizzle:
            return 0, 8 * row_bytes
        return (rows * 16, 128) if self.is_swapped else (128, 8 * row_bytes)

    def offset(self, x: int, k: int, size: int, steps: tuple[int, int]) -> int:
        """The byte where an element begins, but for the swizzle."""
        leading, stride = steps
        if self.is_transposed:
            return x // 64 * leading + x % 64 * size + k // 8 * stride + k % 8 * 128
        along = k * size
        if self.swizzle:  # tiles of `swizzle` bytes along K lie behind each other, eight rows of each
            tile = along // self.swizzle * 8 * self.swizzle
            return x // 8 * stride + tile + x % 8 * self.swizzle + along % self.swizzle
        return x // 8 * stride + along // 16 * leading + x % 8 * 16 + along % 16

    def swizzled(self, offset: int) -> int:
        """The byte where the element at `offset` is."""
        mask = {128: 7, 64: 3, 32: 1, 0: 0}[self.swizzle]
        return offset ^ (offset >> 7 & mask) << 4

    def memory(self, matrix: np.ndarray) -> np.ndarray:
        """The tile as it lies in shared memory."""
        (rows, columns), size = matrix.shape, matrix.itemsize
        steps = self.steps(rows, columns * size)
        padded = -(-rows // 64) * 64 if self.is_transposed else rows
        bytes = np.full(-(-padded * columns * size // 1024) * 1024, 0x7A, "uint8")
        for x in range(rows):
            for k in range(columns):
                start = self.swizzled(self.offset(x, k, size, steps))
                bytes[start : start + size] = matrix[x, k : k + 1].view("uint8")
        return bytes.view(matrix.dtype)


FLAT = Layout(0)
TRANSPOSED = Layout(128, True)


class Form(NamedTuple):
    """A matmul of 64 rows a warpgroup by n columns."""

    n: int
    kind: str = "float16"
    a: Layout | None = Layout()  # None: in registers
    b: Layout = Layout()
    b_kind: str = ""
    calls: int = 4  # along K
    warpgroups: int = 1
    scope: str = "shared"


FORMS = {
    "n8": Form(8),
    "n64_flat": Form(64, a=FLAT, b=FLAT),
    "n64_flat_swapped": Form(64, a=Layout(0, False, True), b=Layout(0, False, True)),
    "n128_two_warpgroups": Form(128, warpgroups=2),
    "n256_dynamic": Form(256, scope="shared.dyn"),
    "n64_swizzle_64": Form(64, a=Layout(64), b=Layout(64)),
    "n40_swizzle_32": Form(40, a=Layout(32), b=Layout(32)),
    "n64_b_transposed": Form(64, b=TRANSPOSED),
    "n96_b_transposed": Form(96, b=TRANSPOSED),
    "n192_b_transposed_swapped": Form(192, a=Layout(64), b=Layout(128, True, True), calls=2),
    "n64_a_transposed": Form(64, a=TRANSPOSED, warpgroups=2),
    "n128_both_transposed": Form(128, "bfloat16", TRANSPOSED, TRANSPOSED),
    "n64_bfloat16": Form(64, "bfloat16"),
    "n64_tfloat32": Form(64, "tfloat32", b=Layout(64)),
    "n32_float8_e4m3": Form(32, "float8_e4m3"),
    "n32_float8_e5m2": Form(32, "float8_e5m2", calls=8),
    "n64_float8_mixed": Form(64, "float8_e4m3", b_kind="float8_e5m2", a=Layout(64)),
    "n64_int8": Form(64, "int8"),
    "n24_uint8": Form(24, "uint8", a=FLAT),
    "n48_mixed_integers": Form(48, "uint8", b_kind="int8"),
    "n64_registers": Form(64, a=None),
    "n64_registers_b_transposed": Form(64, "bfloat16", a=None, b=TRANSPOSED, warpgroups=2),
    "n16_registers_tfloat32": Form(16, "tfloat32", a=None),
    "n64_registers_float8": Form(64, "float8_e5m2", a=None),
    "n32_registers_int8": Form(32, "int8", a=None),
}

# Tiles come as they shall lie in shared memory.
MATMUL = """
@T.prim_func
def NAME(A: T.Buffer(A_SHAPE, "A_TYPE"), B: T.Buffer(B_SIZE, "B_TYPE"), C: T.Buffer((ROWS, N), "C_TYPE")):
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", THREADS)
    BS = T.decl_buffer(B_SIZE, "B_TYPE", scope="SCOPE")
    acc = T.decl_buffer(N // 2, "C_TYPE", scope="local")
    A_MEMORY
    for i in range(B_SIZE // THREADS):
        BS[i * THREADS + tx] = B[i * THREADS + tx]
    T.fence_proxy_async()
    T.tvm_storage_sync("shared")
    T.wgmma_fence()
    for k in T.unroll(CALLS):
        T.wgmma(T.address_of(acc[0]), N, "A_KIND", A_OPERAND, "B_KIND", B_OPERAND, k > 0)
    T.wgmma_commit()
    T.wgmma_wait(0, T.address_of(acc[0]), N // 2)
    for j, h, e in T.grid(N // 8, 2, 2):
        C[tx // 128 * 64 + h * 8 + tx % 128 // 32 * 16 + tx % 32 // 4, j * 8 + tx % 4 * 2 + e] = acc[j * 4 + h * 2 + e]
"""
A_SHARED = """AS = T.decl_buffer(A_SHAPE, "A_TYPE", scope="SCOPE")
    for i in range(A_SHAPE // THREADS):
        AS[i * THREADS + tx] = A[i * THREADS + tx]"""
# Register r of call c has PACKED elements.
A_REGISTERS = """AR = T.decl_buffer(CALLS * 4 * PACKED, "A_TYPE", scope="local")
    for c, r, e in T.grid(CALLS, 4, PACKED):
        AR[c * 4 * PACKED + r * PACKED + e] = A[
            tx // 128 * 64 + r % 2 * 8 + tx % 128 // 32 * 16 + tx % 32 // 4,
            c * 8 * PACKED + r // 2 * 4 * PACKED + tx % 4 * PACKED + e]"""


def operand(name: str, layout: Layout, rows: int, row_bytes: int, size: int) -> str:
    """The arguments from the address on; the second warpgroup has other rows of A."""
    leading, stride = steps = layout.steps(rows, row_bytes)
    along = layout.offset(0, 32 // size, size, steps) // size
    whole = layout.offset(64, 0, size, steps) // size if name == "AS" and rows > 64 else 0
    at = f"tx // 128 * {whole} + k * {along}"
    if layout.swizzle and not layout.is_transposed:
        calls = layout.swizzle // 32  # in a tile
        at = f"tx // 128 * {whole} + k // {calls} * {8 * layout.swizzle // size} + k % {calls} * {32 // size}"
    return f"T.address_of({name}[{at}]), {layout.swizzle}, {leading}, {stride}, {int(layout.is_transposed)}"


def matmul(name: str, form: Form) -> str:
    kind, b_kind = OPERAND_KINDS[form.kind], form.b_kind or form.kind
    size, rows, row_bytes = kind.dtype.nbytes, 64 * form.warpgroups, 32 * form.calls
    b_rows = -(-form.n // 64) * 64 if form.b.is_transposed else form.n
    b_operand = operand("BS", form.b, form.n, row_bytes, size)
    if form.a is None:
        a_operand = f"T.address_of(AR[k * {16 // size}]), 0, 0, 0, 0"
        text = MATMUL.replace("A_MEMORY", A_REGISTERS).replace("A_SHAPE", f"(ROWS, {row_bytes // size})")
    else:
        a_operand = operand("AS", form.a, rows, row_bytes, size)
        text = MATMUL.replace("A_MEMORY", A_SHARED).replace("A_SHAPE", str(rows * row_bytes // size))
    values = {
        "A_KIND": form.kind,
        "B_KIND": b_kind,
        "A_TYPE": kind.dtype,
        "B_TYPE": OPERAND_KINDS[b_kind].dtype,
        "C_TYPE": kind.accumulator,
        "B_SIZE": -(-b_rows * row_bytes // 1024) * 1024 // size,
        "A_OPERAND": a_operand,
        "B_OPERAND": b_operand,
        "PACKED": 4 // size,
        "CALLS": form.calls,
        "SCOPE": form.scope,
        "ROWS": rows,
        "THREADS": 128 * form.warpgroups,
        "NAME": name,
    }
    for word, value in values.items():
        text = text.replace(word, str(value))
    return re.sub(r"\bN\b", str(form.n), text)


def operands(form: Form, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B transposed, and C; their products and sums are exact."""
    random = np.random.default_rng(seed)
    b_kind = OPERAND_KINDS[form.b_kind or form.kind]
    kind = OPERAND_KINDS[form.kind]
    k = kind.k * form.calls

    def some(rows: int, dtype: Any) -> np.ndarray:
        low, high = (-128, 128) if dtype == "int8" else (0, 256) if dtype == "uint8" else (-8, 9)
        return random.integers(low, high, (rows, k)).astype(dtype)

    a, b = some(64 * form.warpgroups, kind.dtype.numpy()), some(form.n, b_kind.dtype.numpy())
    accumulator = kind.accumulator.numpy()
    return a, b, (a.astype("float64") @ b.astype("float64").T).astype(accumulator)


def built(texts: Mapping[str, str]) -> Any:
    """One module of several programs by their names: it is compiled once."""
    return lw.build(ir.IRModule({name: from_source(text) for name, text in texts.items()}), target=EMULATED)


@functools.cache
def right() -> Any:
    """Kernels that are right."""
    return built({**{name: matmul(name, form) for name, form in FORMS.items()}, "in_place": IN_PLACE})


def tensor(array: np.ndarray) -> Any:
    """What is called with: numpy does not hand on types that it does not know."""
    return lw.nd.array(array)


@pytest.mark.parametrize("name", FORMS)
def test_matmuls(name: str):
    form = FORMS[name]
    a, b, expected = operands(form)
    given = a if form.a is None else form.a.memory(a)
    for order, seed in RUNS[:4]:
        right().set_thread_order(order, seed)
        c = np.zeros(expected.shape, expected.dtype)
        right()[name](tensor(given), tensor(form.b.memory(b)), c)
        np.testing.assert_array_equal(c, expected)


# Threads swizzle: row r of 128 bytes, its 16 bytes of number c // 8.
IN_PLACE = """
@T.prim_func
def in_place(A: T.Buffer((64, 64), "float16"), B: T.Buffer((64, 64), "float16"), C: T.Buffer((64, 64), "float32")):
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 128)
    AS = T.decl_buffer((64, 64), "float16", scope="shared")
    BS = T.decl_buffer((64, 64), "float16", scope="shared")
    acc = T.decl_buffer(48, "float32", scope="local")
    for i in range(32):
        r: T.int32 = i * 2 + tx // 64
        c: T.int32 = tx % 64
        AS[r, T.bitwise_xor(c // 8, r % 8) * 8 + c % 8] = A[r, c]
        BS[r, T.bitwise_xor(c // 8, r % 8) * 8 + c % 8] = B[r, c]
    for i in range(48):
        acc[i] = T.float32(3)
    T.fence_proxy_async()
    T.tvm_storage_sync("shared")
    T.wgmma_fence()
    for k in T.unroll(4):
        T.wgmma(T.address_of(acc[16]), 64, "float16", T.address_of(AS[0, k * 16]), 128, 0, 1024, 0,
                "float16", T.address_of(BS[0, k * 16]), 128, 0, 1024, 0, 1)
    T.wgmma_commit()
    T.wgmma_wait(0, T.address_of(acc[16]), 32)
    for j, h, e in T.grid(8, 2, 2):
        C[h * 8 + tx // 32 * 16 + tx % 32 // 4, j * 8 + tx % 4 * 2 + e] = acc[16 + j * 4 + h * 2 + e] * acc[j]
"""


def test_threads_may_write_the_swizzle_and_accumulators_begin_anywhere():
    a, b, expected = operands(Form(64))
    for order, seed in RUNS[:4]:
        right().set_thread_order(order, seed)
        c = np.zeros((64, 64), "float32")
        right()["in_place"](a, b, c)
        np.testing.assert_array_equal(c, expected * 3 + 9)


def test_sums_are_rounded_once_a_call():
    form = FORMS["n8"]
    random = np.random.default_rng(1)
    a, b = random.standard_normal((64, 64)).astype("float16"), random.standard_normal((8, 64)).astype("float16")
    c, expected = np.zeros((64, 8), "float32"), np.zeros((64, 8), "float32")
    for k in range(0, 64, 16):
        products = a[:, k : k + 16].astype("float64") @ b[:, k : k + 16].astype("float64").T
        expected = (expected + products).astype("float32")
    right().set_thread_order("forwards")
    right()["n8"](Layout().memory(a), form.b.memory(b), c)
    np.testing.assert_allclose(c, expected, rtol=0, atol=1e-5)


SPECIAL = {
    "float8_e4m3": [448, -0.0, 2**-9, -(2**-6), np.nan],
    "float8_e5m2": [57344, 2**-16, -np.inf, np.nan, 1.75],
    "float16": [65504, 2**-24, -np.inf, np.nan, 2**-14],
    "bfloat16": [3.0e38, 2**-126, np.inf, np.nan, -(2**-133)],
}


@pytest.mark.parametrize("kind", SPECIAL)
def test_numbers_at_the_ends_of_their_range(kind: str):
    name = next(name for name, form in FORMS.items() if form.kind == kind and not form.b_kind and form.a == Layout())
    form = FORMS[name]
    a, b, _ = operands(form)
    a, b = a * 0, b * 0
    a[:5, 0], b[:, 0] = SPECIAL[kind], 1
    right().set_thread_order("backwards")
    c = np.zeros((64, form.n), "float32")
    right()[name](tensor(Layout().memory(a)), tensor(form.b.memory(b)), c)
    np.testing.assert_array_equal(c, np.repeat(a[:, :1].astype("float32"), form.n, axis=1))


def test_tfloat32_has_ten_bits_of_fraction():
    form = FORMS["n64_tfloat32"]
    a, b, _ = operands(form)
    low = (a.view("uint32") | 0x1FFF).view("float32")  # bits that are not read
    c, expected = np.zeros((64, 64), "float32"), a.astype("float64") @ b.astype("float64").T
    right().set_thread_order("forwards")
    right()["n64_tfloat32"](Layout().memory(low), form.b.memory(b), c)
    np.testing.assert_array_equal(c, expected)


def test_they_print_and_parse():
    program = from_source(STAGES)
    text = program.script()
    for name in WARPGROUP_INTRINSICS:
        assert f"T.{name.removeprefix('tir.')}(" in text
    assert ir.structural_equal(from_source(text), program)


def test_what_is_only_read_is_given_as_such():
    kernel = next(kernel for name, kernel in right().kernels.kernels.items() if "n8" in name)
    assert [parameter.is_written for parameter in kernel.parameters] == [False, False, True]
    assert kernel.has_barriers


# --- bugs ---------------------------------------------------------------------------------------------------------

# Four slabs of 32 along K, in two stages; two warpgroups of 64 rows each. B lies along its columns. (Plain stores to
# memory that a call reads have barriers of the compiler's: there would be none to forget.)
STAGES = """
@T.prim_func
def stages(A: T.Buffer((4, 4096), "float16"), B: T.Buffer((4, 4096), "float16"), C: T.Buffer((128, 128), "float32")):
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 256)
    AS = T.decl_buffer((2, 4096), "float16", scope="shared.dyn")
    BS = T.decl_buffer((2, 4096), "float16", scope="shared.dyn")
    acc = T.decl_buffer(64, "float32", scope="local")
    T.set_max_registers(120, "dec")
    for k in range(4):
        for i in range(2):
            j: T.int32 = i * 2048 + tx * 8
            T.ptx_cp_async("float16", T.address_of(AS[k % 2, j]), 0, T.address_of(A[k, j]), 0, 16)
            T.ptx_cp_async("float16", T.address_of(BS[k % 2, j]), 0, T.address_of(B[k, j]), 0, 16)
        T.ptx_commit_group()
        T.ptx_wait_group(0)
        T.fence_proxy_async()
        T.tvm_storage_sync("shared")
        T.wgmma_fence()
        for s in T.unroll(2):
            T.wgmma(T.address_of(acc[0]), 128,
                    "float16", T.address_of(AS[k % 2, tx // 128 * 2048 + s * 16]), 64, 0, 512, 0,
                    "float16", T.address_of(BS[k % 2, s * 1024]), 128, 4096, 1024, 1, k + s > 0)
        T.wgmma_commit()
        T.compute_now(T.Cast("float32", k))
        T.wgmma_wait(1)
        T.tvm_storage_sync("shared")
    T.wgmma_wait(0, T.address_of(acc[0]), 64)
    for j, h, e in T.grid(16, 2, 2):
        C[tx // 128 * 64 + h * 8 + tx % 128 // 32 * 16 + tx % 32 // 4, j * 8 + tx % 4 * 2 + e] = acc[j * 4 + h * 2 + e]
"""


class Bug(NamedTuple):
    """A change of the stages, and what is said of it in some order."""

    old: str
    new: str
    message: str = ""


WAIT = "        T.wgmma_wait(1)\n"
LAST = "    T.wgmma_wait(0, T.address_of(acc[0]), 64)\n"
FENCE = "        T.wgmma_fence()\n"
COMMIT = "        T.wgmma_commit()\n"
SYNC = '        T.tvm_storage_sync("shared")\n'
READY = f"        T.fence_proxy_async()\n{SYNC}"
A_AT = "AS[k % 2, tx // 128 * 2048 + s * 16]"
B_AT = "BS[k % 2, s * 1024]"
STORE = STAGES[STAGES.index(LAST) + len(LAST) :]
MULTIPLY = STAGES[STAGES.index(FENCE) : STAGES.index(COMMIT)]
LOOP = "        for s in T.unroll(2):\n            T.wgmma("
FOR_SOME = "        for s in T.unroll(2):\n          if COND:\n            T.wgmma("
BUGS = {
    "tiles are overwritten while wgmma reads them": Bug(WAIT, "", "wrong results"),
    "a wait for a group too few": Bug(WAIT, WAIT.replace("1", "2"), "wrong results"),
    "the last group is not waited for": Bug(
        LAST, LAST.replace("wait(0", "wait(1"), "ends without waiting for its wgmma"
    ),
    "no group is waited for at the end": Bug(LAST, "", "ends without waiting for its wgmma"),
    "accumulators are read before the wait": Bug(LAST + STORE, STORE + LAST, "wrong results"),
    "a store to accumulators under way": Bug(
        WAIT, f"{WAIT}        acc[3] = T.float32(0)\n", "something writes to the acc"
    ),
    "groups are not committed": Bug(COMMIT, "", "wrong results|without wgmma_commit"),
    "a group is committed before its wgmma": Bug(MULTIPLY + COMMIT, COMMIT + MULTIPLY, "ends without wgmma_commit"),
    "no barrier after the tiles are filled": Bug(READY, READY.replace(SYNC, ""), "wrong results"),
    "no barrier before the tiles are filled again": Bug(WAIT + SYNC, WAIT, "wrong results"),
    "a barrier before the wait alone": Bug(WAIT + SYNC, SYNC + WAIT, "wrong results"),
    "the stride of A": Bug("64, 0, 512, 0", "64, 0, 1024, 0", "wrong results"),
    "the stride of B": Bug("4096, 1024, 1", "4096, 2048, 1", "not all in shared memory"),
    "the leading step of B": Bug("4096, 1024, 1", "1024, 1024, 1", "wrong results"),
    "both steps of B": Bug("4096, 1024, 1", "1024, 4096, 1", "wrong results|not all in shared"),
    "steps beyond the memory": Bug("4096, 1024, 1", "65536, 1024, 1", "B of wgmma is not all in shared memory"),
    "the swizzle of A": Bug("64, 0, 512, 0", "32, 0, 512, 0", "A of wgmma begins 32 bytes after a multiple of 256"),
    "a swizzle of which A is no tile": Bug("64, 0, 512, 0", "128, 0, 1024, 0", "wrong results"),
    "B is not transposed": Bug("4096, 1024, 1", "4096, 1024, 0", "not all in shared memory"),
    "the second call begins anew": Bug("k + s > 0", "k > 0", "wrong results"),
    "every slab begins anew": Bug("k + s > 0", "s > 0", "wrong results"),
    "a step along K of 8": Bug(A_AT, A_AT.replace("s * 16", "s * 8"), "wrong results"),
    "a step along K beyond the line": Bug(
        A_AT, A_AT.replace("s * 16", "s * 32"), "A of wgmma begins 64 bytes after a multiple"
    ),
    "a step along K of B in columns": Bug(B_AT, B_AT.replace("s * 1024", "s * 16"), "B of wgmma begins 32 bytes after"),
    "an address that is no multiple of 16": Bug(
        A_AT, A_AT.replace("s * 16", "s * 16 + 4"), "begins 8 bytes after a multiple"
    ),
    "rows of the other warpgroup": Bug(A_AT, A_AT.replace("tx // 128", "(1 - tx // 128)"), "wrong results"),
    "tiles of the other stage": Bug(B_AT, B_AT.replace("k % 2", "(k + 1) % 2"), "wrong results"),
    "warps with different tiles": Bug(
        A_AT, A_AT.replace("tx // 128 * 2048", "tx // 32 * 512"), "with different arguments"
    ),
    "lanes with different tiles": Bug(
        B_AT, B_AT.replace("s * 1024", "(s + tx % 2) % 2 * 1024"), "with different arguments"
    ),
    "one warp multiplies": Bug(LOOP, FOR_SOME.replace("COND", "tx < 32"), "commit different wgmma|other warps of its"),
    "one warp does not multiply": Bug(LOOP, FOR_SOME.replace("COND", "tx >= 32"), "commit different wgmma"),
    "half of the lanes multiply": Bug(
        LOOP, FOR_SOME.replace("COND", "tx % 32 < 16"), "waits for lanes of its warp|different"
    ),
    "a warp has another fence": Bug(
        FENCE,
        "        if tx < 32:\n            T.wgmma_fence()\n        else:\n            T.wgmma_fence()\n",
        "call this and",
    ),
    "no fence after the tiles are filled": Bug(READY, SYNC, "wrong results"),
    "one thread makes the fence": Bug(
        "        T.fence_proxy_async()\n", "        if tx == 100:\n            T.fence_proxy_async()\n"
    ),
    "no fence": Bug(FENCE, "", "before the first wgmma_fence"),
    "a warp waits for fewer groups": Bug(
        WAIT,
        "        if tx < 32:\n            T.wgmma_wait(1)\n        else:\n            T.wgmma_wait(0)\n",
        "call this and",
    ),
    "different limits of registers": Bug(
        'T.set_max_registers(120, "dec")',
        'if tx // 32 == 1:\n        T.set_max_registers(96, "dec")\n    else:\n        T.set_max_registers(88, "dec")',
        "call this and what is in line",
    ),
    "accumulators that overlap": Bug("acc[0]), 128", "acc[k % 2 * 2]), 120", "are a part of those of the wgmma"),
    "a part of a warpgroup": Bug('"threadIdx.x", 256', '"threadIdx.x", 192', "of which the block has a part"),
    "lanes that have ended": Bug(LAST, f"    if tx > 0:\n    {LAST}", "waits for lanes|have ended"),
}


REGISTERS_OF_THREE = """
@T.prim_func
def three(A: T.Buffer(384)):
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 384)
    if tx < 128:
        T.set_max_registers(40, "dec")
    else:
        T.set_max_registers(232, "inc")
    A[tx] = T.float32(1)
"""


def test_registers_that_the_gpu_does_not_have_are_never_there():
    many = REGISTERS_OF_THREE.replace("232", "240").replace("three", "many")
    module = built({"three": REGISTERS_OF_THREE, "many": many})
    a = np.zeros(384, "float32")
    module["three"](a)
    assert a.all()
    with pytest.raises(LoopwrightError, match="ask for 66560 registers together, and there are 65536"):
        module["many"](a)


def with_bug(bug: Bug) -> str:
    assert bug.old in STAGES, bug.old
    return STAGES.replace(bug.old, bug.new, 1)


@functools.cache
def wrong() -> Any:
    """The stages with each of the bugs, and without."""
    texts = {"no_bug": STAGES, **{f"bug_{k}": with_bug(bug) for k, bug in enumerate(BUGS.values())}}
    with lw.PassContext(disabled_pass=["check_async_order"]):  # which refuses most of them
        return built({name: text.replace("def stages", f"def {name}") for name, text in texts.items()})


def outcomes(name: str) -> list[str]:
    """What the emulation says of a program in the orders in which it does not compute what is wanted."""
    random = np.random.default_rng(3)
    a, b = random.integers(-8, 9, (128, 128)).astype("float16"), random.integers(-8, 9, (128, 128)).astype("float16")
    expected = a.astype("float32") @ b.astype("float32").T
    slabs = [slice(k, k + 32) for k in range(0, 128, 32)]
    given = [np.stack([layout.memory(m[:, k]) for k in slabs]) for layout, m in ((Layout(64), a), (TRANSPOSED, b))]
    found = []
    for order, seed in RUNS:
        wrong().set_thread_order(order, seed)
        c = np.zeros((128, 128), "float32")
        try:
            wrong()[name](*given, c)
        except LoopwrightError as error:
            found.append(f"{order} {seed}: {error}")
        else:
            if not np.array_equal(c, expected):
                found.append(f"{order} {seed}: wrong results")
    return found


def test_the_stages_are_right_without_bugs():
    assert outcomes("no_bug") == []


@pytest.mark.parametrize("name", BUGS)
def test_bugs_are_caught(name: str):
    found = outcomes(f"bug_{list(BUGS).index(name)}")
    assert found
    assert any([re.search(BUGS[name].message, one) for one in found]), found


# --- GPUs ---------------------------------------------------------------------------------------------------------

_INSTRUCTIONS = {"int8": "IGMMA", "uint8": "IGMMA", "float8_e4m3": "QGMMA", "float8_e5m2": "QGMMA"}


@pytest.mark.skipif(not HAS_NVRTC, reason="NVRTC is not installed")
@pytest.mark.parametrize("name", FORMS)
def test_a_gpu_has_an_instruction_for_them(name: str):
    form = FORMS[name]
    code = sass(from_source(matmul(name, form)), "sm_90a")
    assert touched_in_flight(code) == []
    k = OPERAND_KINDS[form.kind].k
    assert code.count(f"{_INSTRUCTIONS.get(form.kind, 'HGMMA')}.64x{form.n}x{k}") == form.calls
    assert "WARPGROUP.ARRIVE" in code and "WARPGROUP.DEPBAR" in code
    assert "STL" not in code and "LDL" not in code  # accumulators are registers


@pytest.mark.skipif(not HAS_NVRTC, reason="NVRTC is not installed")
def test_a_gpu_does_not_wait_between_them():
    both = sass(from_source(STAGES), "sm_90a")
    code = both[both.index(".text.stages_kernel:") :]  # which comes last
    slabs = code.count("WARPGROUP.DEPBAR.LE gsb0, 0x1")  # 4, where the loop is unrolled
    assert slabs in (1, 4) and code.count("HGMMA.64x128x16") == 2 * slabs and code.count("R24, gsb0") == slabs
    assert code.count("WARPGROUP.DEPBAR.LE gsb0, 0x0") == 1  # those of the program, and no others
    assert "USETMAXREG.DEALLOC.CTAPOOL 0x78" in code and "FENCE.VIEW.ASYNC" in code
    assert "STL" not in both and "LDL" not in both
    walked = sass(from_source(IN_PLACE), "sm_90a")  # loops go through 48 accumulators
    assert walked.count("HGMMA") == 4 and "STL" not in walked


def text_of(program: str, target: str = "cuda -arch=sm_90a") -> str:
    source: str = lw.build(from_source(program), target=target).get_source("cuda")
    return source


def test_the_text_has_a_function_for_each_shape_and_says_what_it_computes():
    source = text_of(matmul("n8", FORMS["n8"]))
    assert source.count("void lw_wgmma_m64n8k16_f16(float (&d)[4], uint64_t a, uint64_t b, int32_t adds) {") == 1
    assert "lw_wgmma_m64n8k16_f16(*(float (*)[4])&acc[0], lw_matrix(&AS[" in source
    assert "lw_wgmma_wait<0>();\n    lw_keep(*(float (*)[4])&acc[0]);" in source
    assert "__shared__ __align__(1024) uint16_t AS[4096];" in source
    mixed = text_of(matmul("x", FORMS["n64_registers_b_transposed"]))
    assert "lw_wgmma_m64n64k16_bf16_a_registers_b_transposed(*(float (*)[32])&acc[0], *(uint32_t (*)[4])&AR[" in mixed
    words = text_of(matmul("x", FORMS["n48_mixed_integers"]))
    assert "lw_wgmma_m64n48k32_u8_s8(*(int32_t (*)[24])&acc[0]" in words
    assert "lw_keep_words(*(uint32_t (*)[24])&acc[0]);" in words


def test_dynamic_shared_memory_begins_at_a_multiple_of_the_pattern():
    source = text_of(matmul("x", FORMS["n256_dynamic"]))
    assert "extern __shared__ __align__(1024) unsigned char dynamic_shared[];" in source
    small = matmul("x", Form(8, calls=1, a=FLAT, b=FLAT, scope="shared.dyn"))
    assert "extern __shared__ __align__(16) unsigned char" in text_of(small)


@pytest.mark.parametrize(
    ("target", "got"),
    [
        ("cuda -arch=sm_90", "sm_90"),
        ("cuda -arch=sm_100a", "sm_100a"),
        ("cuda -arch=sm_90a,sm_100a", "sm_90"),
        ("cuda -model=emulated -arch=sm_90", "sm_90"),
    ],
)
def test_other_gpus_have_none(target: str, got: str):
    with pytest.raises(NeedsNewerGpu, match=f"wgmma.* needs sm_90a, and the target is {got}"):
        text_of(matmul("x", FORMS["n8"]), target)


def test_the_fence_of_the_proxy_is_older():
    program = """
@T.prim_func
def fence(A: T.Buffer(64)):
    tx = T.launch_thread("threadIdx.x", 64)
    T.fence_proxy_async()
    A[tx] = T.float32(1)
"""
    assert "lw_fence_proxy_async();" in text_of(program, "cuda -arch=sm_100")
    with pytest.raises(NeedsNewerGpu, match="fence_proxy_async needs sm_90, and the target is sm_80"):
        text_of(program, "cuda -arch=sm_80")


# --- what is refused ----------------------------------------------------------------------------------------------


def memory(dtype: str, scope: str) -> Any:
    return tir.address_of(tir.decl_buffer((4096,), dtype, scope=scope)[0])


def call(**given: Any) -> Any:
    shared, kind = given.pop("memory", "float16"), given.get("a_kind", "float16")
    values = {
        "accumulators": memory("float32", "local"),
        **{"n": 64, "a_kind": kind, "a": memory(shared, "shared"), "a_swizzle": 128, "a_leading": 0, "a_stride": 1024},
        **{"a_is_transposed": 0, "b_kind": kind, "b": memory(shared, "shared.dyn"), "b_swizzle": 128, "b_leading": 0},
        **{"b_stride": 1024, "b_is_transposed": 0, "adds": 1},
        **given,
    }
    return tir.wgmma(*values.values())


REGISTERS = {"a_swizzle": 0, "a_stride": 0}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: call(accumulators=memory("float32", "shared")),
            "float32 in local memory.* accumulators; got that of float32 in sh",
        ),
        (
            lambda: call(accumulators=memory("float16", "local")),
            "float32 in local memory.* accumulators; got that of float16",
        ),
        (lambda: call(accumulators=1), "as accumulators; got no address"),
        (lambda: call(n=60), "takes a multiple of 8 up to 256 as n; got 60"),
        (lambda: call(n=264), "takes a multiple of 8 up to 256 as n; got 264"),
        (lambda: call(n=tir.Var("n", "int32")), "takes a constant as n; got n"),
        (lambda: call(a_kind="float32"), "takes one of float16, bfloat16, .* as a_kind"),
        (lambda: call(b_kind="bfloat16"), "takes a type of one family with .*float16.* as b_kind; got .*bfloat16"),
        (
            lambda: call(memory="bfloat16"),
            "the address of float16 in shared or local memory, .* as a; got that of bfloat16",
        ),
        (
            lambda: call(a=memory("float16", "global")),
            "in shared or local memory, .* as a; got that of float16 in global",
        ),
        (lambda: call(b=memory("float16", "local")), "in shared memory, .* as b; got that of float16 in local"),
        (lambda: call(a_swizzle=16), "takes 0, 32, 64 or 128 as a_swizzle; got 16"),
        (
            lambda: call(a_stride=512),
            "a multiple of 1024 bytes .those after which the swizzle 128 repeats.* as a_stride; got 512",
        ),
        (lambda: call(b_stride=1 << 18), "less than 2.18, as b_stride; got 262144"),
        (lambda: call(b_leading=8), "a multiple of 16 bytes, less than 2.18, as b_leading; got 8"),
        (lambda: call(b_is_transposed=1, b_leading=512), "a multiple of 1024 bytes .* as b_leading; got 512"),
        (lambda: call(b_is_transposed=2), "takes 0 or 1 as b_is_transposed; got 2"),
        (lambda: call(b_is_transposed=1, b_swizzle=64), "as b_is_transposed; got 1 for float16 with the swizzle 64"),
        (
            lambda: call(a_kind="tfloat32", memory="float32", b_is_transposed=1),
            "takes 0 for all but float16 and bfloat16 with the swizzle 128 as b_is_transposed; got 1 for float32",
        ),
        (lambda: call(a_kind="int8", memory="int8"), "the address of int32 in local memory, .* as accumulators"),
        (
            lambda: call(a_kind="int8", memory="int8", accumulators=memory("int32", "local"), n=40),
            "takes 8, 16, 24 or a multiple of 16 up to 256 as n; got 40",
        ),
        (lambda: call(a=memory("float16", "local")), "takes 0, 0, 0 and 0 as a_swizzle … a_is_transposed of registers"),
        (
            lambda: call(a=memory("float32", "local"), **REGISTERS),
            "float16 or int32 or uint32 in local memory.* as a; got",
        ),
        (lambda: call(adds=1.0), "takes int32 or bool as adds; got float32"),
        (lambda: tir.wgmma_wait(8), "takes 0 to 7 as n; got 8"),
        (lambda: tir.wgmma_wait(tir.Var("n", "int32")), "takes a constant as n; got n"),
        (
            lambda: tir.wgmma_wait(0, memory("float32", "local")),
            "takes pairs of an address and a count as accumulators",
        ),
        (lambda: tir.wgmma_wait(0, memory("float16", "local"), 4), "as accumulator 0; got that of float16"),
        (lambda: tir.wgmma_wait(0, memory("float32", "local"), 0), "takes at least 1 as count 0; got 0"),
        (lambda: tir.set_max_registers(100, "inc"), "takes a multiple of 8 from 24 to 256 as count; got 100"),
        (lambda: tir.set_max_registers(104, "more"), 'takes "inc" or "dec" as how; got'),
    ],
)
def test_what_is_no_such_instruction_is_refused(make: Callable[[], Any], message: str):
    with pytest.raises(TypeError, match=message):
        make()


def test_registers_may_hold_words_that_the_program_has_packed():
    call(a=memory("uint32", "local"), **REGISTERS)
    assert [n for n in widths(OPERAND_KINDS["int8"]) if n < 64] == [8, 16, 24, 32, 48]
