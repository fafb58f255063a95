"""check_races: parallel and vectorized loops whose iterations meet."""

from __future__ import annotations

from time import thread_time

import pytest

from loopwright.analysis import ParallelRace, accesses_of, check_races, races
from loopwright.ir import For, ForKind, PrimFunc, collect
from loopwright.script import from_source
from loopwright.script import tir as T


def refused(function) -> ParallelRace:
    with pytest.raises(ParallelRace) as caught:
        check_races(function)
    assert caught.value.code == "LW0823"
    return caught.value


def test_parallel_reduction():
    @T.prim_func
    def f(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
        for i in range(4):
            for k in T.parallel(8):
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + A[vi, vk]

    error = refused(f)
    assert error.problem == "iterations k = 0 and k = 1 of the parallel loop k both touch C[0]"
    assert error.why == (
        'block "C" reads it at i = 0, k = 0, and block "C" writes it at i = 0, k = 1; '
        "a parallel loop runs them in any order"
    )
    assert error.hint == "make the loop k serial, or give each of its iterations elements of its own"
    assert "for k in T.parallel(8):" in str(error)


def test_disjoint_writes():
    @T.prim_func
    def rows(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
        for i in T.parallel(4):
            for j in range(8):
                C[i, j] = C[i, j] + A[i, j]

    @T.prim_func
    def tiles(A: T.Buffer((12,), "float32"), C: T.Buffer((12,), "float32")):
        for i in T.parallel(3):
            for j in range(4):
                C[i * 4 + j] = A[i * 4 + j]

    @T.prim_func
    def reads_are_free(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
        for i in T.parallel(4):
            C[i] = A[0] + A[3 - i]

    for function in (rows, tiles, reads_are_free):
        check_races(function)


def test_overlapping_tiles():
    @T.prim_func
    def f(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
        for i in T.parallel(3):
            for j in range(5):
                C[i * 4 + j] = A[i * 4 + j]

    error = refused(f)
    assert error.problem == "iterations i = 0 and i = 1 of the parallel loop i both touch C[4]"
    assert error.fields["iterations"] == ({"i": 0, "j": 4}, {"i": 1, "j": 0})


def test_reading_a_neighbour():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        for i in T.parallel(7):
            A[i] = A[i + 1]

    assert refused(f).problem == "iterations i = 0 and i = 1 of the parallel loop i both touch A[1]"


def test_memory_allocated_inside_is_private():
    @T.prim_func
    def inside(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
        for i in T.parallel(4):
            with T.block("outer"):
                vi = T.axis.spatial(4, i)
                X = T.alloc_buffer((1,), "float32")
                X[0] = A[vi]
                C[vi] = X[0]

    @T.prim_func
    def listed_outside(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
        X = T.alloc_buffer((1,), "float32")
        for i in T.parallel(4):
            X[0] = A[i]
            C[i] = X[0]

    @T.prim_func
    def outside(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
        X = T.decl_buffer((1,), "float32")
        for i in T.parallel(4):
            X[0] = A[i]
            C[i] = X[0]

    check_races(inside)
    check_races(listed_outside)  # private_memory.py
    assert refused(outside).problem == "iterations i = 0 and i = 1 of the parallel loop i both touch X[0]"


def test_fused_indices():
    @T.prim_func
    def whole(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
        for f in T.parallel(32):
            C[f // 8, f % 8] = A[f // 8, f % 8]

    @T.prim_func
    def loses_the_row(A: T.Buffer((4, 8), "float32"), C: T.Buffer((8,), "float32")):
        for f in T.parallel(32):
            C[f % 8] = A[f // 8, f % 8]

    @T.prim_func
    def three(A: T.Buffer((4, 8, 3), "float32"), C: T.Buffer((3, 16, 4), "float32")):
        for f in T.parallel(96):
            for j in range(2):
                C[f % 3, f // 3 % 8 * 2 + j, f // 24] = A[f // 24, f // 3 % 8, f % 3]

    @T.prim_func
    def three_loses_one(A: T.Buffer((4, 8, 3), "float32"), C: T.Buffer((3, 16, 4), "float32")):
        for f in T.parallel(96):
            for j in range(2):
                C[f % 3, f // 3 % 4 * 2 + j, f // 24] = A[f // 24, f // 3 % 8, f % 3]

    check_races(whole)
    check_races(three)
    assert refused(three_loses_one).problem == (
        "iterations f = 0 and f = 12 of the parallel loop f both touch C[0, 0, 0]"
    )
    assert refused(loses_the_row).problem == "iterations f = 0 and f = 8 of the parallel loop f both touch C[0]"


def test_symbolic_sizes():
    @T.prim_func
    def f(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        C = T.match_buffer(c, (n,), "float32")
        for i in T.parallel(n):
            C[i // 2] = A[i]

    error = refused(f)
    assert error.problem == "iterations i = 0 and i = 1 of the parallel loop i both touch C[0]"
    assert "at n = 2, i = 0" in error.why


def test_conditions_keep_iterations_apart():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
        for i in T.parallel(8):
            if i == 3:
                C[0] = A[i]

    check_races(f)


def test_one_iteration_races_with_nobody():
    @T.prim_func
    def f(C: T.Buffer((1,), "float32")):
        for i in T.parallel(1):
            C[0] = C[0] + T.Cast("float32", i)

    check_races(f)


def test_what_depends_on_data_is_not_judged():
    @T.prim_func
    def f(I: T.Buffer((8,), "int32"), C: T.Buffer((8,), "float32")):
        for i in T.parallel(8):
            C[I[i]] = T.float32(1)

    check_races(f)


def test_vectorized_loops_run_in_lockstep():
    @T.prim_func
    def loads_come_first(A: T.Buffer((9,), "float32")):
        for i in T.vectorized(8):
            A[i] = A[i + 1]

    @T.prim_func
    def carried(A: T.Buffer((9,), "float32")):
        for i in T.vectorized(8):
            A[i + 1] = A[i]

    @T.prim_func
    def sum_of_lanes(A: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
        for i in T.vectorized(8):
            C[0] = C[0] + A[i]

    @T.prim_func
    def two_statements(A: T.Buffer((8,), "float32"), X: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        for i in T.vectorized(8):
            X[i] = A[i]
            C[i] = X[i]

    @T.prim_func
    def mirrored(A: T.Buffer((8,), "float32"), X: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        for i in T.vectorized(8):
            X[i] = A[i]
            C[i] = X[7 - i]

    check_races(loads_come_first)
    check_races(two_statements)
    error = refused(carried)
    assert error.problem == "iterations i = 1 and i = 0 of the vectorized loop i both touch A[1]"
    assert error.why.endswith("a vectorized loop runs them in lockstep, not one after the other")
    assert "of the vectorized loop i both touch C[0]" in refused(sum_of_lanes).problem
    assert "of the vectorized loop i both touch X[" in refused(mirrored).problem


def test_nested_parallel_loops_are_judged_each():
    @T.prim_func
    def f(A: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")):
        for i in T.parallel(4):
            for j in T.parallel(4):
                C[i, j // 2] = A[i, j]

    error = refused(f)
    assert error.problem == "iterations j = 0 and j = 1 of the parallel loop j both touch C[0, 0]"


def test_tiles_under_a_serial_loop_need_no_search(monkeypatch):
    """The loop around stands still while the parallel one runs: it does not widen what an iteration touches."""

    @T.prim_func
    def f(A: T.Buffer((32,), "float32"), C: T.Buffer((32,), "float32")):
        for o in range(2):
            for i in T.parallel(4):
                for j in range(4):
                    C[o * 16 + i * 4 + j] = A[o * 16 + i * 4 + j]

    monkeypatch.setattr(races, "_meeting", lambda *_, **__: pytest.fail("isl was asked"))
    check_races(f)


def test_as_many_pairs_as_the_budget_allows_are_asked(monkeypatch):
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        for i in T.parallel(4):
            C[i] = A[i]
            C[i + 4] = C[7 - i]

    # Three pairs with the first store come before that of the load with the second one.
    monkeypatch.setattr(races, "PAIRS", 4)
    assert refused(f).problem == "iterations i = 0 and i = 3 of the parallel loop i both touch C[7]"
    monkeypatch.setattr(races, "PAIRS", 3)
    check_races(f)


def divided(levels: int) -> PrimFunc:
    """Divisions and remainders inside one another in the index of a parallel loop."""
    index = "i"
    for level in range(levels):
        index = f"(({index} * 3 + {level}) // {level + 2} + {index} % {level + 3})"
    return from_source(
        "@T.prim_func\ndef f(A: T.Buffer((1000,), 'float32'), B: T.Buffer((100000,), 'float32')):\n"
        f"    for i in T.parallel(1000):\n        B[{index} % 100000] = A[i]\n"
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize("levels", [2, 3, 5, 6, 8])
def test_divisions_in_divisions_take_a_bounded_time(levels):
    function = divided(levels)
    started = thread_time()
    try:
        check_races(function)  # what isl cannot decide passes
    except ParallelRace as race:
        (first,), (second,) = [list(values.values()) for values in race.fields["iterations"]]
        index = compile(str(function.body.body.indices[0]), "index", "eval")
        assert first != second
        assert eval(index, {"i": first}) == eval(index, {"i": second})
    assert thread_time() - started < 10


def test_a_loop_is_not_made_parallel_where_nobody_can_tell():
    function = divided(8)
    serial = function.with_(body=function.body.with_(kind=ForKind.SERIAL))
    started = thread_time()
    found = races.prove_no_race(accesses_of(serial), serial.body.loop_var)
    assert found == "which cell of B the statement writes, or whether, depends on data"
    middle = divided(6)
    middle = middle.with_(body=middle.body.with_(kind=ForKind.SERIAL))
    found = races.prove_no_race(accesses_of(middle), middle.body.loop_var)
    assert found == "whether the iterations of i touch one cell is too complex to decide"
    assert thread_time() - started < 10


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("T.ptx_mma(OPERANDS)", None),
        ("T.call_extern('int32', 'f', M.data)", None),
        ("    T.ptx_mma(OPERANDS)", "M is touched by calls, or goes by several names"),
    ],
)
def test_what_calls_do_after_the_lanes_of_a_thread_have_met_is_no_race(call, reason):
    operands = '"float32", "m8n8k4", "row", "row", "fp16", "fp16", "fp16", M.data, 0, M.data, 0, M.data, 0, False'
    function = from_source(f"""
@T.prim_func
def f(A: T.Buffer((32, 4), "float16")):
    tx = T.launch_thread("threadIdx.x", 32)
    M = T.decl_buffer(4, "float16", scope="local")
    for c in T.vectorized(4):
        M[c] = A[tx, c]
    {call.replace("OPERANDS", operands)}
""")
    (loop,) = collect(function.body, For)
    assert races.prove_no_race(accesses_of(function), loop.loop_var) == reason
