"""dp4a: four products of bytes in one instruction, by its name and by tensorize; emulated, evaluated and in PTX."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.evaluator import evaluate
from loopwright.runtime.errors import NotBuilt
from loopwright.script import tir as T
from tests.codegen.source.cuda.test_emit_cuda import needs_nvrtc

EMULATED = "cuda -model=emulated"


def product(m: int, n: int, k: int) -> tir.Schedule:
    """int8 rows by int8 rows, a thread a result; operands come to registers four bytes at a time."""
    A, B = te.placeholder((m, k), "int8", name="A"), te.placeholder((n, k), "int8", name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r].astype("int32") * B[j, r].astype("int32"), axis=r), name="C")
    sch = tir.Schedule(te.create_prim_func([A, B, C]))
    block = sch.get_block("C")
    i, j, r = sch.get_loops(block)
    outer, four = sch.split(r, [None, 4])
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    sch.decompose_reduction(block, outer)
    for operand in (1, 2):
        copy = sch.cache_read(block, operand, "local")
        sch.compute_at(copy, outer)
        sch.vectorize(sch.get_loops(copy)[-1])
    sch.tensorize(four, "dp4a")
    return sch


def bytes_of(*shape: int) -> np.ndarray:
    numbers = np.random.default_rng(0).integers(-128, 128, shape).astype("int8")
    numbers.flat[:4] = [-128, 127, -1, 0]
    return numbers


def test_what_it_computes():
    tir.check_intrinsic("dp4a")


@pytest.mark.parametrize(("m", "n", "k"), [(3, 5, 64), (1, 1, 4), (2, 33, 20)])
def test_a_product_of_bytes(m, n, k):
    sch = product(m, n, k)
    a, b, c = bytes_of(m, k), bytes_of(n, k), np.zeros((m, n), "int32")
    built = lw.build(sch.mod, target=EMULATED)
    built(a, b, c)
    assert np.array_equal(c, a.astype("int32") @ b.astype("int32").T)
    assert "__dp4a((int32_t)" in built.get_source()


@needs_nvrtc
def test_words_are_loaded_as_words():
    """The compiler sees that four bytes which are loaded at once and packed are the word itself."""
    text = lw.build(product(3, 5, 64).mod, target="cuda -arch=sm_80").get_source("ptx")
    (aligned,) = [kernel for kernel in text.split(".entry ") if kernel.startswith("main_kernel(")]
    assert "dp4a.s32.s32" in aligned and "ld.global.nc.u32" in aligned
    assert "u8" not in aligned and "prmt" not in aligned


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_vectors_by_the_name_of_the_function(kind):
    """As scripts for CUDA call it, on elements of four bytes."""
    word = kind.replace("8", "32")
    n = 40
    A, B = (te.placeholder((n,), f"{kind}x4", name=name) for name in "AB")
    C = te.placeholder((n,), word, name="C")
    D = te.compute((n,), lambda i: tir.call_pure_extern(word, "__dp4a", A[i], B[i], C[i]), name="D")
    s = te.create_schedule(D.op)
    block, thread = s[D].split(D.op.axis[0], factor=8)
    s[D].bind(block, te.thread_axis("blockIdx.x"))
    s[D].bind(thread, te.thread_axis("threadIdx.x"))
    rng = np.random.default_rng(0)
    low, high = np.iinfo(kind).min, np.iinfo(kind).max + 1
    a, b = (rng.integers(low, high, (n, 4)).astype(kind) for _ in range(2))
    c = np.full(n, np.iinfo(word).max, word)  # sums wrap around
    expected = (np.sum(a.astype("int64") * b, axis=1) + c).astype(word)
    built, d = lw.build(s, [A, B, C, D], target=EMULATED), lw.nd.empty((n,), word)
    built(*[lw.nd.empty((n,), f"{kind}x4").copyfrom(one) for one in (a, b)], lw.nd.array(c), d)
    assert np.array_equal(d.numpy(), expected)
    result = np.zeros(n, word)
    evaluate(te.create_prim_func([A, B, C, D]), a, b, c, result)
    assert np.array_equal(result, expected)


def test_other_vectors_are_refused():
    @T.prim_func
    def f(A: T.Buffer((8,), "int8"), B: T.Buffer((1,), "int32")):
        for i in T.thread_binding(1, thread="threadIdx.x"):
            B[i] = T.call_pure_extern("int32", "__dp4a", A[T.ramp(0, 1, 8)], 1, 2)

    with pytest.raises(NotBuilt, match="passing a int8x8 to a device function"):
        lw.build(f, target=EMULATED)
