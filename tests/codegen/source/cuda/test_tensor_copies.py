"""Tensor copies: boxes of every kind, emulated against numpy; a ring of tiles that they bring and take, and its bugs.

`BUGS` are changes of the ring, each of which stops or gives another result in one of three orders of threads.
"""

from __future__ import annotations

import functools
import itertools
import re
from typing import Any, NamedTuple

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir, tir
from loopwright.codegen.source.cuda.errors import KernelTooLarge, NeedsNewerGpu, NoSuchInstruction
from loopwright.ir.tensor_copy_intrinsics import TENSOR_COPY_INTRINSICS
from loopwright.runtime.errors import LoopwrightError, NotBuilt
from loopwright.script import from_source
from tests.codegen.source.cuda.disassembly import HAS_NVRTC, sass

EMULATED = "cuda -model=emulated -arch=sm_90"
RUNS = [("forwards", 0), ("backwards", 0), *[("random", seed) for seed in range(8)]]
MASKS = {0: 0, 32: 1, 64: 3, 128: 7}

# --- one box ------------------------------------------------------------------------------------------------------

# Copies a box of a tensor to B; what is written out here is where the swizzle puts the bytes of an element.
BOX = """
@T.prim_func
def box(n: T.int32, A: T.Buffer((n,), "TYPE"), B: T.Buffer(COUNT, "TYPE"), SIZES, AT):
    A_map = T.tensor_map(A.data, "TYPE", SWIZZLE, RANK, GIVEN, BOX)
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.decl_buffer(COUNT, "TYPE", scope="SCOPE")
    full = T.decl_buffer(1, "uint64", scope="shared")
    if tx == 0:
        T.mbarrier_init(T.address_of(full[0]), 32)
    T.tvm_storage_sync("shared")
    if tx < 32:
        T.tensor_copy_async(T.address_of(S[0]), A_map, T.address_of(full[0]), INDICES)
        T.mbarrier_arrive(T.address_of(full[0]))
    T.mbarrier_wait(T.address_of(full[0]), 0)
    for c in range(CHUNKS):
        if c * 64 + tx < COUNT:
            B[c * 64 + tx] = S[((c * 64 + tx) * BYTES ^ ((c * 64 + tx) * BYTES >> 7 & MASK) << 4) // BYTES]
"""

# Stores a box that the threads make of B.
STORE = """
@T.prim_func
def box(n: T.int32, A: T.Buffer((n,), "TYPE"), B: T.Buffer(COUNT, "TYPE"), SIZES, AT):
    A_map = T.tensor_map(A.data, "TYPE", SWIZZLE, RANK, GIVEN, BOX)
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.decl_buffer(COUNT, "TYPE", scope="SCOPE")
    for c in range(CHUNKS):
        if c * 64 + tx < COUNT:
            S[((c * 64 + tx) * BYTES ^ ((c * 64 + tx) * BYTES >> 7 & MASK) << 4) // BYTES] = B[c * 64 + tx]
    T.fence_proxy_async()
    T.tvm_storage_sync("shared")
    if tx == 0:
        T.tensor_store_async(A_map, T.address_of(S[0]), INDICES)
        T.bulk_commit_group()
        T.bulk_wait_group_read(0)
"""


class Kind(NamedTuple):
    """A map and a box; `shapes` are of tensors, the last dimension of which may be longer in memory."""

    dtype: str
    swizzle: int
    box: tuple[int, ...]
    scope: str = "shared"

    @property
    def name(self) -> str:
        return f"box_{self.dtype}_{self.swizzle}_{'_'.join(map(str, self.box))}_{self.scope.replace('.', '_')}"

    def text(self, program: str) -> str:
        rank, count = len(self.box), int(np.prod(self.box))
        size = np.dtype(self.dtype).itemsize
        sizes = [f"s{k}" for k in range(rank)] + [f"t{k}" for k in range(rank - 1)]
        indices = [f"i{k}" for k in range(rank)]
        words = {
            "SIZES": ", ".join([f"{name}: T.int64" for name in sizes]),
            "GIVEN": ", ".join([*sizes, "1"]),
            "AT": ", ".join([f"{name}: T.int32" for name in indices]),
            "INDICES": ", ".join(indices),
            "BOX": ", ".join(map(str, self.box)),
            "COUNT": str(count),
            "CHUNKS": str(-(-count // 64)),
            "BYTES": str(size),
            "MASK": str(MASKS[self.swizzle]),
            "RANK": str(rank),
            "SWIZZLE": str(self.swizzle),
            "TYPE": self.dtype,
            "SCOPE": self.scope,
        }
        for word, value in words.items():
            program = re.sub(rf"\b{word}\b", value, program)
        return program.replace("def box", f"def {self.name}")


KINDS = [
    Kind("float32", 0, (64,)),
    Kind("int8", 0, (48,)),
    Kind("float64", 0, (3, 5)),  # rows that the hardware does not take
    Kind("float16", 128, (16, 64)),
    Kind("float16", 64, (10, 32)),
    Kind("int8", 32, (9, 32)),
    Kind("float32", 128, (2, 5, 32), "shared.dyn"),
    Kind("float64", 64, (3, 2, 4, 8)),
    Kind("uint8", 128, (2, 1, 2, 3, 128)),
]


@functools.cache
def boxes(program: str) -> Any:
    """One module of the program for all kinds: it is compiled once."""
    return lw.build(ir.IRModule({kind.name: from_source(kind.text(program)) for kind in KINDS}), target=EMULATED)


def tensor(kind: Kind, rng: np.random.Generator, is_aligned: bool) -> tuple[np.ndarray, np.ndarray]:
    """Memory, and a tensor in it: one that the hardware takes, or one that begins or lies anywhere."""
    size = np.dtype(kind.dtype).itemsize
    shape = [int(extent + rng.integers(-1, 4)) for extent in kind.box]
    shape = [max(extent, 1) for extent in shape]
    multiple = max(16 // size, 1) if is_aligned else 1
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, -(-(strides[0] * extent + int(rng.integers(0, 3))) // multiple) * multiple)
    start = 0 if is_aligned else int(rng.integers(0, 4))
    count = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides))
    raw = np.zeros((start + count) * size + 64, "uint8")
    begin = -raw.ctypes.data % 16 + start * size
    memory = raw[begin : begin + count * size].view(kind.dtype)
    memory[:] = rng.integers(1, 100, count).astype(kind.dtype)
    return memory, np.lib.stride_tricks.as_strided(memory, shape, [stride * size for stride in strides])


def cut(kind: Kind, values: np.ndarray, at: list[int]) -> tuple[Any, Any]:
    """What of the box is in the tensor: slices of the tensor, and of the box."""
    ends = list(zip(at, kind.box, values.shape))
    inside = [(max(i, 0), max(min(i + b, s), max(i, 0))) for i, b, s in ends]
    of_tensor = tuple([slice(low, high) for low, high in inside])
    return of_tensor, tuple([slice(low - i, high - i) for (low, high), i in zip(inside, at)])


def positions(kind: Kind, values: np.ndarray, rng: np.random.Generator) -> list[list[int]]:
    rank = len(kind.box)
    some = [[int(rng.integers(-b, s + 1)) for b, s in zip(kind.box, values.shape)] for _ in range(6)]
    outside = [[-b for b in kind.box], list(values.shape), [-(2**31)] * rank, [2**31 - 1] * rank]
    return [[0] * rank, *some, *outside]


def sizes(values: np.ndarray) -> list[int]:
    return [*values.shape, *[stride // values.itemsize for stride in values.strides[:-1]]]


@pytest.mark.parametrize("is_aligned", [True, False])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_box_is_copied(kind: Kind, is_aligned: bool):
    rng = np.random.default_rng(len(kind.name) + is_aligned)
    memory, values = tensor(kind, rng, is_aligned)
    module = boxes(BOX)
    for at, (order, seed) in itertools.product(positions(kind, values, rng), RUNS[:3]):
        module.set_thread_order(order, seed)
        result = np.full(kind.box, 77, kind.dtype)
        module[kind.name](len(memory), memory, result.reshape(-1), *sizes(values), *at)
        wanted = np.zeros(kind.box, kind.dtype)
        if max(map(abs, at)) < 2**20:
            of_tensor, of_box = cut(kind, values, at)
            wanted[of_box] = values[of_tensor]
        np.testing.assert_array_equal(result, wanted, f"{order} at {at} of {values.shape}")


@pytest.mark.parametrize("is_aligned", [True, False])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_box_is_stored(kind: Kind, is_aligned: bool):
    rng = np.random.default_rng(len(kind.name) + is_aligned)
    memory, values = tensor(kind, rng, is_aligned)
    module = boxes(STORE)
    given = rng.integers(1, 100, kind.box).astype(kind.dtype)
    for at, (order, seed) in itertools.product(positions(kind, values, rng), RUNS[:3]):
        module.set_thread_order(order, seed)
        before = memory.copy()
        wanted = before.copy()
        if max(map(abs, at)) < 2**20:
            of_tensor, of_box = cut(kind, values, at)
            np.lib.stride_tricks.as_strided(wanted, values.shape, values.strides)[of_tensor] = given[of_box]
        module[kind.name](len(memory), memory, given.reshape(-1), *sizes(values), *at)
        np.testing.assert_array_equal(memory, wanted, f"{order} at {at} of {values.shape}")
        memory[:] = before


# --- a ring of tiles ----------------------------------------------------------------------------------------------

# Warp 0 copies 4 tiles of 8 rows into two stages, warps 1 and 2 double them, and a thread of theirs stores them.
RING = """
@T.prim_func
def ring(m: T.int32, A: T.Buffer((m, 64), "float16"), B: T.Buffer((m, 64), "float16")):
    A_map = T.tensor_map(A.data, "float16", 128, 2, m, 64, 64, 1, 8, 64)
    B_map = T.tensor_map(B.data, "float16", 0, 2, m, 64, 64, 1, 8, 64)
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 96)
    S = T.decl_buffer((2, 512), "float16", scope="shared")
    R = T.decl_buffer((2, 512), "float16", scope="shared")
    full = T.decl_buffer(2, "uint64", scope="shared")
    empty = T.decl_buffer(2, "uint64", scope="shared")
    if tx == 0:
        for s in range(2):
            T.mbarrier_init(T.address_of(full[s]), 32)
            T.mbarrier_init(T.address_of(empty[s]), 64)
    T.tvm_storage_sync("shared")
    if tx < 32:
        for k in range(4):
            T.mbarrier_wait(T.address_of(empty[k % 2]), 1 - k // 2 % 2)
            T.tensor_copy_async(T.address_of(S[k % 2, 0]), A_map, T.address_of(full[k % 2]), k * 8, 0)
            T.mbarrier_arrive(T.address_of(full[k % 2]))
    else:
        for k in range(4):
            if tx == 32:
                T.bulk_wait_group_read(1)
            T.role_barrier(1, 64)
            T.mbarrier_wait(T.address_of(full[k % 2]), k // 2 % 2)
            for r in range(8):
                R[k % 2, r * 64 + tx - 32] = S[k % 2, r * 64 + ((tx - 32) ^ r * 8)] * T.float16(2)
            T.mbarrier_arrive(T.address_of(empty[k % 2]))
            T.fence_proxy_async()
            T.role_barrier(2, 64)
            if tx == 32:
                T.tensor_store_async(B_map, T.address_of(R[k % 2, 0]), k * 8, 0)
                T.bulk_commit_group()
        if tx == 32:
            T.bulk_wait_group_read(0)
"""


class Bug(NamedTuple):
    """A change of the ring, and what is said of it in some order."""

    old: str
    new: str
    message: str = ""


COPY = "T.tensor_copy_async(T.address_of(S[k % 2, 0]), A_map, T.address_of(full[k % 2]), k * 8, 0)"
STORED = "T.tensor_store_async(B_map, T.address_of(R[k % 2, 0]), k * 8, 0)"
WAIT_READ = "if tx == 32:\n                T.bulk_wait_group_read(1)\n"
LAST_WAIT = "        if tx == 32:\n            T.bulk_wait_group_read(0)\n"
BUGS = {
    "readers do not wait for the copy": Bug("T.mbarrier_wait(T.address_of(full[k % 2]), k // 2 % 2)", "T.evaluate(0)"),
    "the copying warp does not wait for readers": Bug(
        "T.mbarrier_wait(T.address_of(empty[k % 2]), 1 - k // 2 % 2)", "T.evaluate(0)"
    ),
    "only lane 0 copies": Bug(COPY, f"if tx == 0:\n                {COPY}", "waits for lanes of its warp"),
    "lanes that copy different boxes": Bug("% 2]), k * 8, 0)", "% 2]), k * 8, tx)", "different arguments"),
    "a target that is no multiple of 1024 bytes": Bug(COPY, COPY.replace("S[k % 2, 0]", "S[k % 2, 64]"), "1024 bytes"),
    "a box that is too long": Bug("128, 2, m, 64, 64, 1, 8, 64", "128, 2, m, 64, 64, 1, 16, 64", "which is under way"),
    "a copy to the other stage": Bug(COPY, COPY.replace("S[k % 2, 0]", "S[1 - k % 2, 0]")),
    "a copy that nobody waits for": Bug(
        "    else:\n", f"        {COPY.replace('k % 2', '0').replace('k * 8', '0')}\n    else:\n"
    ),
    "a copy that another mbarrier waits for": Bug(COPY, COPY.replace("full", "empty")),
    "readers that know no swizzle": Bug("((tx - 32) ^ r * 8)", "(tx - 32)"),
    "readers that know another swizzle": Bug("((tx - 32) ^ r * 8)", "((tx - 32) ^ r // 2 % 4 * 8)"),
    "rows and columns exchanged": Bug(COPY, COPY.replace("k * 8, 0", "0, k * 8")),
    "a store before all threads have written": Bug("T.role_barrier(2, 64)", "T.evaluate(0)"),
    "no fence before the store": Bug("T.fence_proxy_async()", "T.evaluate(0)"),
    "a source that is overwritten before it is read": Bug(WAIT_READ, "T.evaluate(0)\n"),
    "a wait for one group too few": Bug(WAIT_READ, WAIT_READ.replace("(1)", "(2)")),
    "stores that are in no group": Bug("                T.bulk_commit_group()\n", ""),
    "nobody waits for the last stores": Bug(LAST_WAIT, "        T.evaluate(0)\n", "without waiting until its store"),
    "other threads do not wait for the thread that stores": Bug("T.role_barrier(1, 64)", "T.evaluate(0)"),
    "a source that is no multiple of 128 bytes": Bug(STORED, STORED.replace("R[k % 2, 0]", "R[k % 2, 8]"), "128 bytes"),
    "all threads store one after the other": Bug(STORED, STORED.replace("k * 8", "k * 8 + 1")),
}


@functools.cache
def rings() -> Any:
    """The ring, with each of the bugs and without: one module."""
    texts = {"no_bug": RING}
    for k, bug in enumerate(BUGS.values()):
        assert RING.count(bug.old) == 1, bug.old
        texts[f"bug_{k}"] = RING.replace(bug.old, bug.new)
    programs = {name: from_source(text.replace("def ring", f"def {name}")) for name, text in texts.items()}
    return lw.build(ir.IRModule(programs), target=EMULATED)


def outcomes(name: str, rows: int = 30) -> list[str]:
    """What the emulation says of a program in the orders in which it does not compute what is wanted."""
    a = np.random.default_rng(1).integers(1, 100, (rows, 64)).astype("float16")
    raw = np.zeros(a.size + 16, "float16")
    start = -raw.ctypes.data % 16 // 2
    given = raw[start : start + a.size].reshape(a.shape)
    given[:] = a
    found = []
    for order, seed in RUNS:
        rings().set_thread_order(order, seed)
        b = np.zeros((rows, 64), "float16")
        try:
            rings()[name](rows, given, b)
        except LoopwrightError as error:
            found.append(f"{order} {seed}: {error}")
        else:
            if not np.array_equal(b[:32], (2 * a)[:32]):
                found.append(f"{order} {seed}: wrong results")
    return found


@pytest.mark.parametrize("rows", [1, 30, 32, 40])
def test_the_ring_is_right_without_bugs(rows: int):
    assert outcomes("no_bug", rows) == []


@pytest.mark.parametrize("name", BUGS)
def test_bugs_are_caught(name: str):
    found = outcomes(f"bug_{list(BUGS).index(name)}")
    assert found
    assert any([re.search(BUGS[name].message, one) for one in found]), found


TWO = """
@T.prim_func
def two(A: T.Buffer((8, 64), "float16"), B: T.Buffer((8, 64), "float16"), is_wanted: T.bool):
    with T.LetStmt(T.tensor_map(A.data, "float16", 0, 2, 8, 64, 64, 1, 8, 64)) as A_map:
        unused = T.tensor_map(B.data, "float16", 0, 1, 8, 1, 8)
        if is_wanted:
            for k in range(3):
                B_map = T.tensor_map(B.data, "float16", 0, 2, 8, 64, 64, 1, 8, 64)
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    STEP(A_map, B_map)
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    STEP(B_map, A_map)
"""
STEP = """\
                    S = T.decl_buffer((8, 64), "float16", scope="shared")
                    full = T.decl_buffer(1, "uint64", scope="shared")
                    if tx == 0:
                        T.mbarrier_init(T.address_of(full[0]), 1)
                    T.tvm_storage_sync("shared")
                    T.tensor_copy_async(T.address_of(S[0, 0]), FROM, T.address_of(full[0]), 0, 0)
                    if tx == 0:
                        T.mbarrier_arrive(T.address_of(full[0]))
                        T.mbarrier_wait(T.address_of(full[0]), 0)
                        T.tensor_store_async(TO, T.address_of(S[0, 0]), 1, 0)
                        T.bulk_commit_group()
                        T.bulk_wait_group(0)
"""


@pytest.mark.parametrize("is_aligned", [True, False])
def test_maps_of_several_kernels_in_loops_of_the_host(is_aligned: bool):
    text = re.sub(r" *STEP\((\w+), (\w+)\)\n", lambda m: STEP.replace("FROM", m[1]).replace("TO", m[2]), TWO)
    module = lw.build(from_source(text), target=EMULATED)
    parameters = [[p.name for p in kernel.parameters] for kernel in module.kernels.kernels.values()]
    assert parameters == [["A_map", "B_map"], ["A_map", "B_map"]]
    for order, seed in RUNS[:3]:
        module.set_thread_order(order, seed)
        raw = np.zeros((3, 8, 64), "float16").reshape(-1)
        start = -raw.ctypes.data % 16 // 2 + (not is_aligned)
        a = raw[start : start + 512].reshape(8, 64)
        a[:] = np.random.default_rng(seed).integers(1, 100, a.shape)
        b, first = np.zeros((8, 64), "float16"), a.copy()
        module(a, b, False)
        assert np.array_equal(a, first)
        module(a, b, True)
        wanted_a, wanted_b = first.copy(), np.zeros((8, 64), "float16")
        for _ in range(3):
            wanted_b[1:] = wanted_a[:-1].copy()
            wanted_a[1:] = wanted_b[:-1].copy()
        np.testing.assert_array_equal(a, wanted_a)
        np.testing.assert_array_equal(b, wanted_b)


# --- text ---------------------------------------------------------------------------------------------------------


def test_they_print_and_parse():
    program = from_source(RING.replace("bulk_wait_group_read(0)", "bulk_wait_group(0)"))
    text = program.script()
    assert 'A_map: T.handle("float16", "tensor_map") = T.tensor_map(A.data, "float16", 128, 2, ' in text
    for name in TENSOR_COPY_INTRINSICS:
        assert f"T.{name.removeprefix('tir.')}(" in text
    assert ir.structural_equal(from_source(text), program)


def test_a_kernel_gets_maps_by_value():
    module = lw.build(from_source(RING), target="cuda -arch=sm_90")
    kernel = module.kernels.kernels["ring_kernel"]
    assert [(p.name, p.is_tensor_map, p.is_written) for p in kernel.parameters] == [
        ("A_map", True, False),
        ("B_map", True, True),
    ]
    text = module.get_source("cuda")
    assert "(const __grid_constant__ lw_tensor_map A_map, const __grid_constant__ lw_tensor_map B_map) {" in text
    assert "__shared__ __align__(1024) uint16_t S[1024];" in text
    assert "__shared__ __align__(128) uint16_t R[1024];" in text


def test_dynamic_memory_begins_where_the_swizzle_repeats():
    kind = next(kind for kind in KINDS if kind.scope == "shared.dyn")
    text = lw.build(from_source(kind.text(BOX)), target="cuda -arch=sm_90").get_source("cuda")
    assert "extern __shared__ __align__(1024) unsigned char dynamic_shared[];" in text


@pytest.mark.skipif(not HAS_NVRTC, reason="NVRTC is not installed")
@pytest.mark.parametrize("kind", KINDS[::2], ids=lambda kind: kind.name)
def test_a_gpu_has_instructions_for_them(kind: Kind):
    code = sass(from_source(kind.text(BOX)), "sm_90a")
    assert f"UTMALDG.{len(kind.box)}D" in code and "LDG" in code.replace("UTMALDG", "")
    code = sass(from_source(kind.text(STORE)), "sm_90")
    for instruction in (f"UTMASTG.{len(kind.box)}D", "UTMACMDFLUSH", "DEPBAR", "FENCE.VIEW.ASYNC"):
        assert instruction in code


@pytest.mark.parametrize("target", ["cuda -arch=sm_80", "cuda -model=emulated -arch=sm_89"])
def test_older_gpus_have_none(target: str):
    with pytest.raises(NeedsNewerGpu, match="fence_proxy_async needs sm_90, and the target is sm_8"):
        lw.build(from_source(KINDS[0].text(STORE)), target=target)


# --- what is refused ----------------------------------------------------------------------------------------------


def test_a_map_is_made_outside_of_the_kernel():
    line = '    A_map = T.tensor_map(A.data, "float16", 128, 2, m, 64, 64, 1, 8, 64)\n'
    text = RING.replace(line, "").replace("    S = T.decl", f"{line}    S = T.decl")
    with pytest.raises(NoSuchInstruction, match="tensor_map is a call of the host, which stands outside of the loops"):
        lw.build(from_source(text), target="cuda -arch=sm_90")


def test_a_box_has_as_many_coordinates_as_the_tensor_dimensions():
    text = RING.replace(COPY, COPY.replace("k * 8, 0", "k * 8, 0, 0"))
    message = "tensor_copy_async has 3 coordinates, and A_map is the map of a tensor of 2 dimensions"
    with pytest.raises(NoSuchInstruction, match=message):
        lw.build(from_source(text), target="cuda -arch=sm_90")


CALLS = {
    "tensor_map": 'T.call_extern("void", "use", T.tensor_map(A.data, "float32", 0, 1, 64, 1, 64))',
    "bulk_commit_group": "T.bulk_commit_group()",
    "fence_proxy_async": "T.fence_proxy_async()",
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("target", ["llvm", "c"])
def test_cpus_have_none(target: str, name: str):
    text = f"@T.prim_func\ndef f(A: T.Buffer(64)):\n    T.evaluate({CALLS[name]})"
    with pytest.raises(NotBuilt, match=f"the intrinsic tir.{name} on the .* is not built yet"):
        lw.build(from_source(text), target=target)(np.zeros(64, "float32"))


def test_maps_count_among_the_arguments_of_a_kernel():
    lines = [f'    M{k} = T.tensor_map(A.data, "float32", 0, 1, 64, 1, 64)' for k in range(128)]
    uses = [f"            T.tensor_store_async(M{k}, T.address_of(S[0]), 0)" for k in range(128)]
    text = "\n".join(
        [
            "@T.prim_func\ndef many(A: T.Buffer(64)):",
            *lines,
            '    for tx in T.thread_binding(32, thread="threadIdx.x"):',
            '        S = T.decl_buffer(64, scope="shared")',
            "        if tx == 0:",
            *uses,
        ]
    )
    with pytest.raises(KernelTooLarge, match=r"takes 32,768 bytes of arguments \(128 of them\)"):
        lw.build(from_source(text), target="cuda -arch=sm_90")


def address(dtype: str, scope: str) -> Any:
    return tir.address_of(tir.decl_buffer((8,), dtype, name="A", scope=scope)[0])


DATA = tir.decl_buffer((64, 64), "float16", name="A").data
MAP = tir.Var("A_map", ir.PointerType(ir.PrimType("float16"), "tensor_map"))
SHARED, FULL, GLOBAL = address("float16", "shared"), address("uint64", "shared"), address("float16", "global")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: tir.tensor_map(1, "float16", 0, 1, 64, 1, 64), r"takes a pointer, as A.data is one; got int32"),
        (lambda: tir.tensor_map(DATA, "int4", 0, 1, 64, 1, 64), "takes elements of 1, 2, 4 or 8 bytes; got int4"),
        (lambda: tir.tensor_map(DATA, "float16", 16, 1, 64, 1, 64), "takes 0, 32, 64 or 128 as swizzle; got 16"),
        (lambda: tir.tensor_map(DATA, "float16", 0, 6, 64, 1, 64), "takes 1 to 5 as rank; got 6"),
        (lambda: tir.tensor_map(DATA, "float16", 0, 2, 64, 1, 64), "2 strides and 2 extents of the box; got 3"),
        (lambda: tir.tensor_map(DATA, "float16", 0, 1, 64.0, 1, 64), "takes int32 or int64 as shape, .*; got float32"),
        (lambda: tir.tensor_map(DATA, "float16", 0, 1, 64, 1, 300), r"boxes of 1 to 256 elements .*; got \[300\]"),
        (lambda: tir.tensor_map(DATA, "float16", 0, 1, 64, 1, tir.Var("n", "int32")), "takes a constant as box; got n"),
        (lambda: tir.tensor_map(DATA, "float16", 0, 1, 64, 2, 64), "takes tensors whose last stride is 1; got 2"),
        (lambda: tir.tensor_map(DATA, "float16", 64, 1, 64, 1, 64), "whose rows have 64 bytes; got 64 × 2 bytes"),
        (lambda: tir.tensor_copy_async(GLOBAL, MAP, FULL, 0), "in shared memory.* as target; got.* in global"),
        (lambda: tir.tensor_copy_async(SHARED, DATA, FULL, 0), r"a variable that holds a tensor map.* as map; got A"),
        (lambda: tir.tensor_copy_async(SHARED, MAP, SHARED, 0), "one uint64 in shared.* as barrier; got.*float16"),
        (lambda: tir.tensor_copy_async(SHARED, MAP, FULL), "takes 1 to 5 coordinates; got 0"),
        (lambda: tir.tensor_store_async(MAP, SHARED, tir.const(0, "int64")), "takes int32 as coordinates; got int64"),
        (lambda: tir.tensor_store_async(MAP, 3, 0), "an address in shared memory.* as source; got no address"),
        (lambda: tir.bulk_wait_group(-1), "takes a number of groups that is not negative; got -1"),
        (lambda: tir.bulk_wait_group_read(tir.Var("n", "int32")), "takes a constant as groups; got n"),
    ],
)
def test_what_is_no_such_call_is_refused(build: Any, message: str):
    with pytest.raises(TypeError, match=message):
        build()
