"""The lemmas, held against the exact test and against the evaluator."""

from __future__ import annotations

import contextlib
import random

import pytest

from loopwright.evaluator import difference, evaluate_terms
from loopwright.evaluator.errors import OutOfBounds
from loopwright.ir import BlockRealize, For, PrimFunc, SeqStmt, Stmt, Var
from loopwright.schedule import Schedule
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.proof.find_mismatch import Mismatch, find_mismatch
from loopwright.schedule.proof.lemmas import fixed_by, permutation_is_free, unchanged_memory
from loopwright.schedule.step import Proof
from loopwright.schedule.view import View
from loopwright.script import tir as T
from tests.campaign import programs
from tests.schedule.harness.cases import moves_of
from tests.schedule.harness.programs import BY_DATA, EFFECTS, template_programs
from tests.schedule.random_pairs import random_nest


def body_of(function: PrimFunc) -> Stmt:
    assert isinstance(function.body, BlockRealize)
    return function.body.block.body


def test_what_is_free_is_proved():
    free = 0
    for seed in range(600):
        before, others = random_nest(seed)
        loop = body_of(before)
        assert isinstance(loop, For)
        if not permutation_is_free(loop, ()):
            continue
        try:
            expected = evaluate_terms(before)
        except OutOfBounds:
            continue
        free += 1
        for other in others:
            assert difference(expected, evaluate_terms(other)) is None, seed
        assert find_mismatch(before, others[free % 3]) is None, seed
    assert free > 20


# Programs of which the search does not understand some copies, that is, says neither yes nor no.
NOT_UNDERSTOOD = {
    "nested_scan",
    "repeated_sum",
    "start_that_reads",
    "starts_from_the_sum_before",
    "sum_and_gain",
    "sum_and_largest",
    "sum_of_what_it_points_to",
    "triangle",
    "two_names_of_a_pointer",
    "without_axes_last_wins",
    "written_where_positive",
}


@pytest.mark.long
@pytest.mark.parametrize("part", range(programs(2, 4)))  # parts, so that two processes share the work
def test_copies_that_need_no_search_are_proved(monkeypatch, part):
    """Each `stage` that is accepted without a search is one that the search accepts as well."""
    answers: dict[str, list[object]] = {}  # by program
    prove = Schedule._prove

    def also_search(self, method, name, view, step):
        if step.proof in (Proof.GIVEN, Proof.LEMMA):
            found = find_mismatch(view.function, step.after, step.origins, step.buffers)
            answers.setdefault(program.name, []).append(found)
        return prove(self, method, name, view, step)

    monkeypatch.setattr(Schedule, "_prove", also_search)
    # The search does not speak of programs with calls that have effects, nor of those that data steers.
    others = (*EFFECTS, *BY_DATA)
    understood = [program for program in template_programs((1, 3), limit=30) if program.source not in others]
    random.Random(0).shuffle(understood)  # a part has programs of all kinds
    for program in understood[part :: programs(192, 4)]:
        for move in moves_of(View(program.function), ["Stage"])["Stage"]:
            with contextlib.suppress(ScheduleError):
                move.apply(Schedule(program.function))
    found = [(name, one) for name, result in answers.items() for one in result]
    assert len(found) > 20
    assert not [name for name, one in found if isinstance(one, Mismatch)]
    assert {name.split("(")[0] for name, one in found if one is not None} <= NOT_UNDERSTOOD


def test_an_index_and_its_rest_tell_the_variable():
    i, j = Var("i"), Var("j")
    assert fixed_by([i // 4, j, i % 4]) == {i, j}
    assert fixed_by([i // 4, i % 3]) == set()
    assert fixed_by([i // 4, j % 4]) == set()
    assert fixed_by([i + j, i]) == {i}


def first_loop(function: PrimFunc) -> For:
    loop = body_of(function)
    assert isinstance(loop, For)
    return loop


def test_matmul_is_free():
    @T.prim_func
    def matmul(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8, 6), "float32"), C: T.Buffer((4, 6), "float32")):
        for i, j, k in T.grid(4, 6, 8):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    assert permutation_is_free(first_loop(matmul), ())


def test_blocks_under_conditions_are_free():
    @T.prim_func
    def one_branch(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
        for i, j in T.grid(6, 8):
            if i < 4:
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]

    @T.prim_func
    def two_branches(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32"), C: T.Buffer((6,), "float32")):
        for i in range(6):
            if i < 4:
                with T.block("B"):
                    vi = T.axis.spatial(6, i)
                    B[vi] = A[vi]
            else:
                with T.block("C"):
                    vi = T.axis.spatial(6, i)
                    C[vi] = A[vi]

    @T.prim_func
    def one_reads_the_other(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32"), C: T.Buffer((6,), "float32")):
        for i in range(6):
            if i < 4:
                with T.block("B"):
                    vi = T.axis.spatial(6, i)
                    B[vi] = A[vi]
            else:
                with T.block("C"):
                    vi = T.axis.spatial(6, i)
                    C[vi] = B[vi - 4]

    @T.prim_func
    def the_condition_is_written(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
        for i in range(6):
            if B[0] < T.float32(1):
                with T.block("B"):
                    vi = T.axis.spatial(6, i)
                    B[vi] = A[vi]

    for function in (one_branch, two_branches):
        assert permutation_is_free(first_loop(function), ())
    for function in (one_reads_the_other, the_condition_is_written):
        assert not permutation_is_free(first_loop(function), ())


def test_what_is_not_free():
    @T.prim_func
    def recurrence(A: T.Buffer((6, 8), "float32")):
        for i, j in T.grid(5, 7):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi + 1, vj] = A[vi, vj + 1]

    @T.prim_func
    def last_one_wins(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6,), "float32")):
        for i, j in T.grid(6, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SR", [i, j])
                B[vi] = A[vi, vj]

    @T.prim_func
    def two_blocks(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                B[vi] = A[vi]
            with T.block("A"):
                vi = T.axis.spatial(6, i)
                A[vi] = T.float32(1)

    @T.prim_func
    def calls(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                B[vi] = T.call_extern("float32", "f", A[vi])

    for function in (recurrence, last_one_wins, two_blocks, calls):
        assert not permutation_is_free(first_loop(function), ())


def test_memory_whose_users_did_not_change():
    @T.prim_func
    def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("A"):
                vi = T.axis.spatial(4, i)
                A[vi] = T.float32(1)
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = T.float32(2)

    def arranged(*order: int) -> PrimFunc:
        body = body_of(f)
        root = f.body.block.with_(body=SeqStmt(tuple([body[k] for k in order])))
        return f.with_(body=f.body.with_(block=root))

    a, b, c = [buffer.data for buffer in f.argument_buffers()]
    assert unchanged_memory(f, arranged(0, 2, 1)) >= {a, b, c}
    assert unchanged_memory(f, arranged(1, 0, 2)) == {b, c}
    assert unchanged_memory(f, arranged(0, 1, 2, 2)) == {a, b}
    assert unchanged_memory(f, arranged(0, 2)) == {c}
