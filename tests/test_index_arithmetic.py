"""Index arithmetic is exact: the evaluator, simplification, the proof, LLVM and C agree on what leaves int32.

docs/semantics.md, "Index arithmetic". Sizes are small here; scalars and literals are not.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.arith import Analyzer, ProofStrength
from loopwright.build import build
from loopwright.evaluator import evaluate
from loopwright.evaluator.errors import IndexTooLarge
from loopwright.ir import Cast, Range, Var, const, decl_buffer
from loopwright.script import from_source
from loopwright.script import tir as T
from loopwright.target import Target
from loopwright.transform import choose_index_width, lower

LEAST, GREATEST = -(2**31), 2**31 - 1
EDGES = (LEAST, LEAST + 1, -1, 0, 1, 3, GREATEST - 7, GREATEST)
ARM = Target("llvm -mtriple=armv7a-linux-gnueabihf")


def low_bits(number: int, bits: int = 32) -> int:
    return (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


@lru_cache(maxsize=8)  # a function is run with many numbers
def built(function, target):
    return build(function, target=target)


@lru_cache(maxsize=8)
def lowered_for_arm(function):
    return lower(function, ARM)[function.name]


def forget_builds():
    """What was built, and lowered, without a bug that a test puts in."""
    built.cache_clear()
    lowered_for_arm.cache_clear()


def everywhere(function, *arguments):
    """The arrays after each way to run the function; they are the same, and those of the first are given back."""
    results = []
    for target in (None, "llvm", "c"):
        given = [np.array(item) if isinstance(item, np.ndarray) else item for item in arguments]
        if target is None:
            evaluate(function, *given)
        else:
            built(function, target)(*given)
        results.append([item for item in given if isinstance(item, np.ndarray)])
    with ARM:  # where pointers have 32 bits, and what may leave them is computed in 64 all the same
        narrow = [np.array(item) if isinstance(item, np.ndarray) else item for item in arguments]
        evaluate(lowered_for_arm(function), *narrow)
        results.append([item for item in narrow if isinstance(item, np.ndarray)])
    for other in results[1:]:
        for one, same in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, same)
    return results[0]


@T.prim_func
def compare(n: T.int32, m: T.int32, B: T.Buffer((8,), "int32")):
    for i in range(8):
        B[i] = 0
        if i + 2147483647 < m:
            B[i] = B[i] + 1
        if n + 1 < n:
            B[i] = B[i] + 2
        if n - i > n:
            B[i] = B[i] + 4
        if n * i >= m * 2:
            B[i] = B[i] + 8
        if (n + i) // 2 < m:
            B[i] = B[i] + 16
        if T.min(n * 3, m) == m:
            B[i] = B[i] + 32


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", EDGES)
def test_comparisons_are_exact(n):
    for m in EDGES:
        (got,) = everywhere(compare, n, m, np.zeros(8, "int32"))
        wanted = [
            (i + GREATEST < m)
            + 2 * (n + 1 < n)
            + 4 * (n - i > n)
            + 8 * (n * i >= m * 2)
            + 16 * ((n + i) // 2 < m)
            + 32 * (min(n * 3, m) == m)
            for i in range(8)
        ]
        np.testing.assert_array_equal(got, wanted)


@T.prim_func
def store(
    n: T.int32,
    m: T.int32,
    A: T.Buffer((8,), "int32"),
    S: T.Buffer((8, 12), "int32"),
    W: T.Buffer((8, 4), "int64"),
    F: T.Buffer((8, 2), "float64"),
):
    for i in range(8):
        S[i, 0] = n * i + m
        S[i, 1] = (n * i + m) // 3
        S[i, 2] = (n * i + m) % 5
        S[i, 3] = T.min(n * i, m)
        S[i, 4] = T.truncdiv(n * i, 7)
        S[i, 5] = T.Select(i < 4, n * i, m)
        S[i, 6] = A[i] + n * i  # data: low bits
        S[i, 7] = T.max(A[i], n * i)
        S[i, 8] = T.if_then_else(A[i] > 0, n * i, m)
        S[i, 9] = T.shift_right(n * i, 3)
        S[i, 10] = T.Cast("int32", A[i] < n * i)
        S[i, 11] = T.Cast("int32", T.Cast("int8", n * i))
        W[i, 0] = T.Cast("int64", n * i)  # a conversion takes the low bits of what it converts
        W[i, 1] = T.Cast("int64", n) * T.Cast("int64", i)
        W[i, 2] = T.Cast("int64", (n + m) // 2)
        W[i, 3] = T.Cast("int64", A[i] * n)
        F[i, 0] = T.Cast("float64", n * i)
        F[i, 1] = T.Cast("float64", n * i + A[i])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", EDGES)
def test_values_are_low_bits(n):
    a = np.array([LEAST, -5, -1, 0, 1, 7, GREATEST - 1, GREATEST], "int32")
    for m in (LEAST, 0, 5, GREATEST):
        arguments = np.zeros((8, 12), "int32"), np.zeros((8, 4), "int64"), np.zeros((8, 2))
        _, stored, wide, real = everywhere(store, n, m, a, *arguments)
        for i in range(8):
            data = int(a[i])
            quotient = abs(n * i) // 7 * (1 if n * i >= 0 else -1)
            numbers = [
                n * i + m,
                (n * i + m) // 3,
                (n * i + m) % 5,
                min(n * i, m),
                quotient,
                n * i if i < 4 else m,
                data + n * i,
                max(data, low_bits(n * i)),
                n * i if data > 0 else m,
                low_bits(n * i) >> 3,
                data < low_bits(n * i),
                low_bits(n * i, 8),
            ]
            assert stored[i].tolist() == [low_bits(int(number)) for number in numbers]
            assert wide[i].tolist() == [low_bits(n * i), n * i, low_bits((n + m) // 2), low_bits(data * n)]
            assert real[i].tolist() == [low_bits(n * i), low_bits(n * i + data)]


@T.prim_func
def count(n: T.int32, B: T.Buffer((16,), "int64")):
    for i in range(n, n + 4):  # its variable may leave int32
        B[i - n] = T.Cast("int64", i)
        B[i - n + 4] = T.Cast("int64", i - n)
    x: T.int32 = n * 3
    if x // 3 == n:
        B[8] = T.Cast("int64", x // 3)
    for i in range(n * 2 - n * 2 + 3):
        B[9 + i] = T.Cast("int64", x - n * 2 + i - n)


@pytest.mark.parametrize("n", EDGES)
def test_loops_and_lets_are_exact(n):
    (got,) = everywhere(count, n, np.zeros(16, "int64"))
    wanted = [low_bits(n + i) for i in range(4)] + [0, 1, 2, 3] + [n] + [0, 1, 2]
    assert got[:12].tolist() == wanted


def test_a_let_of_data_wraps_and_a_let_of_indices_does_not():
    @T.prim_func
    def func(n: T.int32, A: T.Buffer((1,), "int32"), B: T.Buffer((4,), "int32")):
        x: T.int32 = A[0] + 1
        y: T.int32 = n + 1
        B[0] = T.Cast("int32", x > n)
        B[1] = T.Cast("int32", y > n)
        B[2] = T.Cast("int32", x + 1 > y)
        B[3] = (y + 1) // 2

    (a, got) = everywhere(func, GREATEST, np.array([GREATEST], "int32"), np.zeros(4, "int32"))
    # A[0] + 1 is data and wraps to the least number; beside it, y counts by its low bits, which are the same.
    assert got.tolist() == [0, 1, 1, 2**30]


def test_vectors_of_indices():
    @T.prim_func
    def func(n: T.int32, B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32"), D: T.Buffer((16,), "int64")):
        for i in range(2):
            for j in T.vectorized(8):
                B[i * 8 + j] = (n + (i * 8 + j) * 100000000) // 3
                C[i * 8 + j] = T.if_then_else(n + (i * 8 + j) * 100000000 < 0, 1, 0)
                D[i * 8 + j] = T.Cast("int64", n + (i * 8 + j) * 100000000)

    for n in EDGES:
        got = everywhere(func, n, np.zeros(16, "int32"), np.zeros(16, "int32"), np.zeros(16, "int64"))
        exact = [n + k * 100000000 for k in range(16)]
        assert got[0].tolist() == [low_bits(x // 3) for x in exact]
        assert got[1].tolist() == [int(x < 0) for x in exact]
        assert got[2].tolist() == [low_bits(x) for x in exact]


def test_what_leaves_64_bits_has_no_result():
    @T.prim_func
    def func(n: T.int64, B: T.Buffer((2,), "int64")):
        B[0] = n * n * n  # its low bits are as good as any
        if n * n < n:
            B[1] = T.int64(1)

    got = np.zeros(2, "int64")
    with pytest.raises(IndexTooLarge, match=r"index arithmetic leaves 64 bits: LT of 1208925819614629174706176 and"):
        evaluate(func, 1 << 40, got)
    assert got[0] == 0
    got = np.zeros(2, "int64")
    evaluate(func, 3_000_000_000, got)
    assert got[0] == low_bits(3_000_000_000**3, 64)


# --- the simplifier and the proof ---------------------------------------------------------------------------------


def test_comparisons_with_data_are_not_decided_by_exact_indices():
    i, n = Var("i"), Var("n")
    data = decl_buffer((4,), "int32", "A")
    analyzer = Analyzer()
    analyzer.bind(i, Range(70000, 80000))
    analyzer.bind(n, Range(70000, 80000))
    assert analyzer.can_prove(i * n > n)
    assert not analyzer.can_prove(i * n > data[0])  # beside data it counts by its low bits
    assert not analyzer.can_prove(tir.max(i * n, data[0]) >= 5)
    assert analyzer.can_prove(i * 1000 > data[0].astype("int8").astype("int32"))


def test_exact_proofs_know_that_data_wraps():
    data = decl_buffer((4,), "int32", "A")
    analyzer = Analyzer()
    assert not analyzer.can_prove(data[0] + 1 > data[0], ProofStrength.SYMBOLIC_BOUND)
    n = Var("n")
    assert analyzer.can_prove(n + 1 > n, ProofStrength.SYMBOLIC_BOUND)
    small = Var("s", "int8")
    assert not analyzer.can_prove(small + 1 > small, ProofStrength.SYMBOLIC_BOUND)


def test_a_conversion_takes_the_low_bits_of_an_index():
    i, n = Var("i"), Var("n")
    analyzer = Analyzer()
    analyzer.bind(i, Range(0, 16))
    wide = Cast("int64", i * 1000000000)
    assert not analyzer.can_prove(wide >= const(0, "int64"))
    assert analyzer.can_prove(Cast("int64", i * 1000) >= const(0, "int64"))
    assert not analyzer.can_prove(Cast("int64", n + 1) > Cast("int64", n))
    assert analyzer.modular_set(Cast("int64", n * 3)).coeff == 1


def test_a_vector_loop_under_a_condition_that_never_holds():
    """The proof takes `n + 1 < n` for false; so does every way to run the program."""

    @T.prim_func
    def func(n: T.int32, B: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                T.where(n + 1 < n)
                B[(vi + 1) % 8] = B[vi] * 10

    sch = tir.Schedule(func)
    sch.vectorize(sch.get_loops("B")[0])
    for n in EDGES:
        (got,) = everywhere(sch.mod["main"].with_attr("global_symbol", "main"), n, np.arange(8, dtype="int32"))
        assert got.tolist() == list(range(8))


def test_inlining_keeps_the_low_bits_of_what_was_stored():
    n = te.var("n")
    B = te.compute((8,), lambda i: i * n, name="B")
    C = te.compute((8,), lambda i: te.if_then_else(B[i] < 7, B[i] // 3, 1), name="C")
    func = te.create_prim_func([n, C])
    sch = tir.Schedule(func)
    sch.compute_inline("B")
    for number in EDGES:
        (got,) = everywhere(sch.mod["main"], number, np.zeros(8, "int32"))
        values = [low_bits(i * number) for i in range(8)]
        assert got.tolist() == [value // 3 if value < 7 else 1 for value in values]
        plain = np.zeros(8, "int32")
        evaluate(func, number, plain)
        np.testing.assert_array_equal(got, plain)
    te_sch = te.create_schedule(C.op)
    te_sch[B].compute_inline()
    lowered = lw.lower(te_sch, [n, C])["main"]
    for number in EDGES:
        (got,) = everywhere(lowered, number, np.zeros(8, "int32"))
        values = [low_bits(i * number) for i in range(8)]
        assert got.tolist() == [value // 3 if value < 7 else 1 for value in values]


STORED = """
from loopwright.script import tir as T

@T.prim_func
def main(n: T.int32, C: T.Buffer(4, "{dtype}")):
    B = T.alloc_buffer((4,), "{dtype}")
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v] = T.Cast("{dtype}", {stored})
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v] = {read}
"""
READ = [
    "B[v] * {big} // {big}",
    "B[v] * 3 % 3",
    "T.if_then_else(B[v] + 1 > B[v], T.Cast('{dtype}', 1), T.Cast('{dtype}', 0))",
    "T.max(B[v] * 2, B[v])",
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("stored", ["v", "n", "n + 1", "n * v"])
@pytest.mark.parametrize("read", READ)
def test_what_is_inlined_wraps_as_what_was_loaded(dtype, stored, read):
    """`B[v] * 2 // 2` wraps, since B[v] is data; `n * 2 // 2` would be n."""
    big = 1_000_000_000 if dtype == "int32" else 4_000_000_000_000_000_000
    text = read.format(big=big if dtype == "int32" else f"T.int64({big})", dtype=dtype)
    program = from_source(STORED.format(dtype=dtype, stored=stored, read=text))
    for step, block in (("compute_inline", "B"), ("reverse_compute_inline", "C")):
        sch = tir.Schedule(program)
        getattr(sch, step)(block)
        scheduled = sch.mod["main"]
        for number in EDGES:
            wanted = np.zeros(4, dtype)
            evaluate(program, number, wanted)
            (got,) = everywhere(scheduled, number, np.zeros(4, dtype))
            np.testing.assert_array_equal(got, wanted)


def test_what_is_inlined_stays_an_index_where_nothing_wraps():
    program = from_source(STORED.format(dtype="int32", stored="v * 3", read="B[v] * 2 // 2"))
    sch = tir.Schedule(program)
    sch.compute_inline("B")
    assert "reinterpret" not in sch.mod["main"].script()


# --- sizes that a call gives -------------------------------------------------------------------------------------


@T.prim_func
def twice(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int8")
    B = T.match_buffer(b, (n * 65536,), "int8")
    for i in range(n):
        A[i] = T.int8(1)


@pytest.mark.parametrize("target", [None, "llvm", "c"])
def test_a_size_at_the_call_does_not_wrap(target):
    arrays = np.zeros(65536, "int8"), np.zeros(0, "int8")
    run = build(twice, target=target) if target else lambda *given: evaluate(twice, *given)
    with pytest.raises(ValueError, match=r"argument B has shape \(0,\), expected \(4294967296,\)"):
        run(*arrays)


@pytest.mark.parametrize("target", [None, "llvm", "c"])
def test_a_length_that_its_variable_cannot_hold_is_refused(target):
    @T.prim_func
    def func(a: T.handle):
        n, s = T.int32(), T.int32()
        A = T.match_buffer(a, (n,), "int8", strides=(s,))
        if n > 0:
            T.evaluate(A[0])

    long = np.lib.stride_tricks.as_strided(np.zeros(4, "int8"), (2**31 + 5,), (0,))
    run = build(func, target=target) if target else lambda *given: evaluate(func, *given)
    with pytest.raises(ValueError, match=r"argument A has shape \(2147483653,\)"):
        run(long)


def test_a_packed_call_gets_exact_sizes():
    n = te.var("n")
    B = tir.decl_buffer((n * 65536,), "int8", "B")
    func = tir.PrimFunc([B], tir.Evaluate(tir.call_packed("test.shape", B)))
    assert 'T.tvm_stack_make_shape(T.Cast("int64", n) * T.int64(65536))' in str(choose_index_width(func))


def test_an_access_by_a_converted_index_is_checked():
    """`T.Cast("int64", i * n)` takes low bits: that `i * n` is inside says nothing of it."""

    @T.prim_func
    def func(n: T.int32, B: T.Buffer((4,), "int32")):
        for i in range(4):
            if T.Cast("int64", i * n) // T.int64(1000000) < T.int64(4):
                B[T.Cast("int64", i * n) // T.int64(1000000)] = i

    good = np.zeros(4, "int32")
    lw.build(func)(1000000, good)
    assert good.tolist() == [0, 1, 2, 3]
    with pytest.raises(Exception, match="outside its shape"):
        lw.build(func)(2**31 - 1, np.zeros(4, "int32"))
    with pytest.raises(Exception, match=r"B\[-1\]"):
        evaluate(func, 2**31 - 1, np.zeros(4, "int32"))
