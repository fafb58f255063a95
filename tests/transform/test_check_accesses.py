"""check_accesses: what is not proved to stay inside its buffer is checked, outside of loops where that can be."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.analysis import check_program
from loopwright.evaluator import evaluate
from loopwright.evaluator.errors import FailedCheck
from loopwright.evaluator.errors import OutOfBounds as Outside
from loopwright.ir import PrimFunc
from loopwright.ir.annotations import UNPROVED_ACCESSES
from loopwright.ir.verifier import verify
from loopwright.runtime.call_errors import IndexOutOfRange
from loopwright.script import from_source
from loopwright.script import tir as T
from loopwright.transform import check_accesses
from loopwright.transform.errors import IndexCallsFunction
from tests.transform.before_after import same_program

F32 = np.float32


def checked(func: PrimFunc) -> PrimFunc:
    got = check_accesses(check_program(func))
    verify(got)
    assert UNPROVED_ACCESSES not in got.attrs
    return got


def text_of(func: PrimFunc) -> str:
    return checked(func).script()


@pytest.fixture(params=["llvm", "c"])
def build(request):
    return lambda func: lw.build(func, target=request.param)


def test_a_proved_program_is_left_alone():
    @T.prim_func
    def func(A: T.Buffer((13,), "float32"), B: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            B[i, j] = A[i * i + j]

    assert check_accesses(check_program(func)) is func


def test_a_check_leaves_the_loops_it_does_not_depend_on():
    @T.prim_func
    def before(W: T.Buffer((9, 4)), I: T.Buffer((5,), "int32"), B: T.Buffer((5, 4))):
        for i, j in T.grid(5, 4):
            B[i, j] = W[I[i], j]

    @T.prim_func
    def after(W: T.Buffer((9, 4)), I: T.Buffer((5,), "int32"), B: T.Buffer((5, 4))):
        with T.decl_buffer((1,), "int32") as inside:
            inside[0] = 1
            for i in range(5):
                inside[0] = T.Select(T.in_bounds(I[i], 9), inside[0], 0)
            if inside[0] == 0:
                for i, j in T.grid(5, 4):
                    assert T.in_bounds(I[i], 9), T.call_error(
                        "IndexOutOfRange",
                        "before: reads W[%lld, %lld], which is outside its shape (9, 4)",
                        T.Cast("int64", I[i]),
                        T.Cast("int64", j),
                    )
                    T.evaluate(0)
        for i, j in T.grid(5, 4):
            B[i, j] = W[I[i], j]

    same_program(checked(before), after)


def test_an_index_linear_in_a_loop_is_checked_at_its_ends():
    @T.prim_func
    def before(A: T.Buffer((100,)), k: T.int32, B: T.Buffer((50,))):
        for i in range(50):
            B[i] = A[i * 2 + k]

    assert "if not (T.in_bounds(k, 100) and T.in_bounds(98 + k, 100)):" in text_of(before)


def test_a_check_stays_where_the_loop_writes_what_it_reads():
    @T.prim_func
    def before(A: T.Buffer((8,), "int32")):
        for i in range(8):
            A[A[i]] = i

    lines = text_of(before).splitlines()
    at = next(k for k, line in enumerate(lines) if "assert" in line)
    assert "for i in range(8):" in lines[at - 1]
    assert "inside" not in lines[at - 1]


def test_conditions_around_an_access_excuse_it(build):
    @T.prim_func
    def func(A: T.Buffer((4,)), I: T.Buffer((8,), "int32"), M: T.Buffer((8,), "int32"), B: T.Buffer((8,))):
        for i in range(8):
            if M[i] > 0:
                B[i] = A[I[i]]
            else:
                B[i] = T.if_then_else(M[i] < 0, A[I[i] + 1], T.float32(5))

    a, b = np.arange(4, dtype=F32), np.zeros(8, F32)
    mask = np.array([1, 0, 0, -1, -1, 1, 1, 0], "int32")
    at = np.array([3, 99, -99, 2, -1, 0, 1, 4], "int32")
    build(func)(a, at, mask, b)
    np.testing.assert_array_equal(b, [3, 5, 5, 3, 0, 0, 1, 5])
    mask[1] = 1
    with pytest.raises(IndexOutOfRange, match=r"func: reads A\["):
        build(func)(a, at, mask, b)
    mask[1], mask[7] = 0, -1
    with pytest.raises(IndexOutOfRange, match=r"func: reads A\["):
        build(func)(a, at, mask, b)


def test_an_index_that_is_itself_an_access(build):
    @T.prim_func
    def func(A: T.Buffer((4,)), I: T.Buffer((6,), "int32"), J: T.Buffer((8,), "int32"), B: T.Buffer((8,))):
        for i in range(8):
            B[i] = A[I[J[i]]]

    a, b = np.arange(4, dtype=F32), np.zeros(8, F32)
    first = np.array([3, 2, 1, 0, 9, 9], "int32")
    second = np.array([0, 1, 2, 3, 3, 2, 1, 0], "int32")
    run = build(func)
    run(a, first, second, b)
    np.testing.assert_array_equal(b, a[first[second]])
    second[6] = 4
    with pytest.raises(IndexOutOfRange, match=r"func: reads A\["):
        run(a, first, second, b)
    second[6] = 1 << 30
    with pytest.raises(IndexOutOfRange, match=r"func: reads I\["):
        run(a, first, second, b)


def test_the_message_has_the_index_and_the_shape():
    n = te.var("n")
    A, I = te.placeholder((n, 3), name="A"), te.placeholder((5,), "int64", name="I")
    B = te.compute((5, 3), lambda i, j: A[I[i], j], name="B")
    run = lw.build([A, I, B], name="pick")
    at = np.array([0, 1, 2, 1 << 40, 4], "int64")
    with pytest.raises(IndexOutOfRange) as caught:
        run(np.zeros((7, 3), F32), at, np.zeros((5, 3), F32))
    assert caught.value.problem == "pick: reads A[1099511627776, 0], which is outside its shape (7, 3)"
    assert isinstance(caught.value, IndexError)


def test_an_empty_loop_asks_nothing(build):
    @T.prim_func
    def func(A: T.Buffer((4,)), k: T.int32, n: T.int32, B: T.Buffer((4,))):
        for i in range(n):
            B[i] = A[k]

    run, a, b = build(func), np.arange(4, dtype=F32), np.zeros(4, F32)
    run(a, 99, 0, b)
    run(a, 99, -5, b)
    run(a, 3, 4, b)
    assert (b == 3).all()
    for k, n in ((4, 1), (-1, 4), (0, 5)):
        with pytest.raises(IndexOutOfRange, match="which is outside its shape"):
            run(a, k, n, b)


def test_while_loops_are_checked_each_time(build):
    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
        k = T.alloc_buffer((1,), "int32")
        k[0] = 0
        while A[k[0]] > 0:
            k[0] = k[0] + A[k[0]]
        B[0] = k[0]

    run, out = build(func), np.zeros(1, "int32")
    run(np.array([2, 9, 3, 9, 9, 0, 9, 9], "int32"), out)
    assert out[0] == 5
    for steps in ([1] * 8, [100] * 8, [1, 1, 1, 1, 1, 1, 1, 2**31 - 1]):
        with pytest.raises(IndexOutOfRange, match="reads A"):
            run(np.array(steps, "int32"), out)


def test_loop_bounds_lets_and_conditions_are_checked(build):
    @T.prim_func
    def func(P: T.Buffer((4,), "int32"), D: T.Buffer((10,), "int32"), j: T.int32, B: T.Buffer((1,), "int32")):
        B[0] = 0
        for k in range(P[j], P[j + 1]):
            v: T.int32 = D[k]
            if D[v] > 0:
                B[0] = B[0] + 1

    run, out = build(func), np.zeros(1, "int32")
    pointers, data = np.array([0, 4, 10, 11], "int32"), np.arange(10, dtype="int32")
    run(pointers, data, 1, out)
    assert out[0] == 6
    for j in (-1, 2, 3, 4, 2**31 - 1):
        with pytest.raises(IndexOutOfRange, match=r"reads [PD]\["):
            run(pointers, data, j, out)
    data[5] = 10
    with pytest.raises(IndexOutOfRange, match=r"reads D\["):
        run(pointers, data, 1, out)


def test_parallel_and_vectorized_loops(build):
    @T.prim_func
    def func(A: T.Buffer((64,)), I: T.Buffer((4, 16), "int32"), B: T.Buffer((4, 16))):
        for i in T.parallel(4):
            for j in T.vectorized(16):
                B[i, j] = A[I[i, j]]

    run, a, b = build(func), np.arange(64, dtype=F32), np.zeros((4, 16), F32)
    at = np.random.default_rng(0).integers(0, 64, (4, 16)).astype("int32")
    run(a, at, b)
    np.testing.assert_array_equal(b, a[at])
    at[3, 15] = 64
    with pytest.raises(IndexOutOfRange, match=r"reads A\["):
        run(a, at, b)


def test_vector_loops_that_write_their_own_indices(build):
    @T.prim_func
    def func(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
        for i in T.vectorized(16):
            A[i] = A[i] + 1
            B[i] = C[A[i]]

    run, a, b, c = build(func), np.arange(-1, 15, dtype="int32"), np.zeros(16, "int32"), np.arange(16, dtype="int32")
    run(a, b, c)
    np.testing.assert_array_equal(b, c)
    with pytest.raises(IndexOutOfRange, match=r"reads C\["):
        run(a, b, c)


def test_vectors_as_indices(build):
    func = from_source("""
        @T.prim_func
        def func(A: T.Buffer((16,), "float32"), k: T.int32, I: T.Buffer((4,), "int32"), B: T.Buffer((8,), "float32")):
            B[T.Ramp(0, 1, 4)] = A[T.Ramp(k, 2, 4)]
            B[T.Ramp(4, 1, 4)] = A[I[T.Ramp(0, 1, 4)] + T.Broadcast(k, 4)]
    """)
    run, a, b = build(func), np.arange(16, dtype=F32), np.zeros(8, F32)
    at = np.array([3, 1, 4, 1], "int32")
    run(a, 5, at, b)
    np.testing.assert_array_equal(b, [5, 7, 9, 11, 8, 6, 9, 6])
    for k in (-1, 10, 12):
        with pytest.raises(IndexOutOfRange, match="reads A"):
            run(a, k, at, b)


def test_an_index_with_an_effect_is_refused():
    @T.prim_func
    def store(A: T.Buffer((8,), "int32")):
        A[T.call_extern("int32", "rand")] = 0

    with pytest.raises(IndexCallsFunction, match=r"store: the index .*rand.* of A calls an impure function"):
        lw.build(store)


def test_sub_buffers_whose_region_depends_on_data(build):
    @T.prim_func
    def func(A: T.Buffer((10, 4)), I: T.Buffer((3,), "int32"), B: T.Buffer((3, 2, 4))):
        for i in range(3):
            with T.block("B"):
                vi = T.axis.spatial(3, i)
                T.reads(A[I[vi] : I[vi] + 2, 0:4], I[vi])
                T.writes(B[vi, 0:2, 0:4])
                tile = T.match_buffer(A[I[vi] : I[vi] + 2, 0:4], (2, 4), offset_factor=1)
                for j, k in T.grid(2, 4):
                    B[vi, j, k] = tile[j, k]

    run, a, b = build(func), np.random.default_rng(0).random((10, 4), F32), np.zeros((3, 2, 4), F32)
    run(a, np.array([8, 0, 3], "int32"), b)
    np.testing.assert_array_equal(b, np.stack([a[k : k + 2] for k in (8, 0, 3)]))
    for bad in (9, -1, 1 << 30):
        with pytest.raises(IndexOutOfRange, match=r"reads A\["):
            run(a, np.array([0, bad, 3], "int32"), b)


def test_an_early_return_keeps_checks_in_their_place(build):
    @T.prim_func
    def func(A: T.Buffer((4,), "int32"), I: T.Buffer((8,), "int32")):
        for i in range(8):
            if I[i] < 0:
                T.evaluate(T.ret(i))
            A[I[i]] = A[I[i]] + 1
        T.evaluate(T.ret(8))

    run, a = build(func), np.zeros(4, "int32")
    assert run(a, np.array([0, 1, 3, -1, 99, 99, 99, 99], "int32")) == 3
    with pytest.raises(IndexOutOfRange, match="A"):
        run(a, np.array([0, 1, 3, 4, -1, 0, 0, 0], "int32"))


def test_every_stage_agrees_with_the_program():
    @T.prim_func
    def func(A: T.Buffer((6,)), I: T.Buffer((3, 4), "int32"), B: T.Buffer((3, 4))):
        for i, j in T.grid(3, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[I[vi, vj]] * T.float32(2)

    random = np.random.default_rng(0)
    for trial in range(6):
        at = random.integers(0, 6 if trial < 3 else 8, (3, 4)).astype("int32")
        outcomes = []
        for stage in (func, checked(lw.lower(func).values()[0]), lw.lower(check_program(func)).values()[0]):
            a, b = np.arange(6, dtype=F32), np.zeros((3, 4), F32)
            try:
                evaluate(stage, a, at, b)
                outcomes.append(b.tolist())
            except (FailedCheck, Outside):
                outcomes.append("outside")
        assert outcomes[0] == outcomes[1] == outcomes[2]


def test_a_program_that_was_lowered_before_is_checked_too():
    @T.prim_func
    def func(A: T.Buffer((4, 4)), I: T.Buffer((2,), "int32")):
        A[I[0], I[1]] = T.float32(1)

    run, a = lw.build(lw.lower(func)), np.zeros((4, 4), F32)
    run(a, np.array([3, 3], "int32"))
    assert a[3, 3] == 1
    with pytest.raises(IndexOutOfRange, match="writes A"):
        run(a, np.array([4, 0], "int32"))


def test_a_store_outside_harms_nobody():
    """In a process of its own: what was corrupted once might show anywhere."""
    script = """
import numpy as np, loopwright as lw
from loopwright.script import from_source

run = lw.build(from_source('''
@T.prim_func
def square(A: T.Buffer((10,), "float32")):
    for i, j in T.grid(64, 4):
        A[i * i + j] = T.float32(7)
'''))
for _ in range(50):
    a = np.zeros(10, "float32")
    try:
        run(a)
    except IndexError as error:
        said = str(error).splitlines()[0]
print(said)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "square: writes A[10], which is outside its shape (10,) [LW0151]" in done.stdout


def test_random_indices_against_guard_pages():
    command = [sys.executable, "-m", "benchmarks.fuzz_bounds", "--cases", "25", "--seed", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "0 failures" in done.stdout, done.stdout + done.stderr
