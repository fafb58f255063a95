"""find_mismatch: pairs of programs that compute the same, and pairs that do not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from loopwright.analysis import accesses_of
from loopwright.analysis.dataflow import InitOf, NotProvable, dataflow_of
from loopwright.arith.isl import BudgetExceeded
from loopwright.evaluator import difference, evaluate, evaluate_terms
from loopwright.evaluator.errors import OutOfBounds
from loopwright.ir import BlockRealize, Buffer, BufferStore, For, ForKind, PrimFunc, Stmt, Var, pre_order_visit
from loopwright.schedule import Schedule
from loopwright.schedule.errors import NotProved
from loopwright.schedule.origins import Origins
from loopwright.schedule.proof.find_mismatch import Mismatch, Race, Unproved, _Comparison, find_mismatch, find_race
from loopwright.schedule.proof.reaching_writes import ReachingWrites
from loopwright.script import tir as T
from tests.schedule.pairs import axis, blocks_of, version_of
from tests.schedule.random_pairs import random_cached, random_pair


def same(before: PrimFunc, after: PrimFunc, origins: Origins | None = None, terms: bool = True) -> None:
    """Proved; and the evaluator agrees."""
    after = version_of(before, after)
    assert find_mismatch(before, after, origins or Origins()) is None
    if terms:
        assert difference(evaluate_terms(before), evaluate_terms(after)) is None


def refused(before: PrimFunc, after: PrimFunc, origins: Origins | None = None, terms: bool = True) -> Mismatch:
    """Refused with a witness; and the evaluator agrees."""
    after = version_of(before, after)
    found = find_mismatch(before, after, origins or Origins())
    assert isinstance(found, Mismatch)
    if terms:
        assert difference(evaluate_terms(before), evaluate_terms(after)) is not None
    return found


# --- order ----------------------------------------------------------------------------------------------------------


@T.prim_func
def pointwise(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
    for i, j in T.grid(6, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)


@T.prim_func
def recurrence(A: T.Buffer((6, 8), "float32")):
    for i, j in T.grid(5, 7):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi + 1, vj] = A[vi, vj + 1] * T.float32(2)


def test_reorder_is_free_without_dependences():
    @T.prim_func
    def after(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
        for j, i in T.grid(8, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)

    same(pointwise, after)


def test_reorder_of_a_recurrence():
    @T.prim_func
    def after(A: T.Buffer((6, 8), "float32")):
        for j, i in T.grid(7, 5):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi + 1, vj] = A[vi, vj + 1] * T.float32(2)

    found = refused(recurrence, after)
    assert found.why() == "iteration (vi=1, vj=0) of A reads A[1, 1] before iteration (vi=0, vj=1) of A writes it"
    assert found.cell == ("A", (1, 1))
    assert found.reader.iteration == {"vi": 1, "vj": 0}
    assert found.expected is not None and found.expected.iteration == {"vi": 0, "vj": 1}


def test_skewed_recurrence_may_be_reordered():
    @T.prim_func
    def after(A: T.Buffer((6, 8), "float32")):
        for s, i in T.grid(11, 5):
            with T.block("A"):
                vi = T.axis.spatial(5, i)
                vj = T.axis.spatial(7, s - i)
                T.where(0 <= s - i and s - i < 7)
                A[vi + 1, vj] = A[vi, vj + 1] * T.float32(2)

    @T.prim_func
    def backwards(A: T.Buffer((6, 8), "float32")):
        for s, i in T.grid(11, 5):
            with T.block("A"):
                vi = T.axis.spatial(5, 4 - i)
                vj = T.axis.spatial(7, s - (4 - i))
                T.where(0 <= s - (4 - i) and s - (4 - i) < 7)
                A[vi + 1, vj] = A[vi, vj + 1] * T.float32(2)

    same(recurrence, after)  # (i, j) and (i - 1, j + 1) lie on one diagonal, where i runs in order ...
    refused(recurrence, backwards)  # ... and here it does not


# --- merging --------------------------------------------------------------------------------------------------------


@T.prim_func
def two_stages(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[7 - vi] * T.float32(2)


def test_merging_with_a_mirrored_read():
    @T.prim_func
    def after(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,), "float32")
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + T.float32(1)
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[7 - vi] * T.float32(2)

    found = refused(two_stages, after, terms=False)
    assert found.why() == "iteration (vi=0) of C reads B[7] before iteration (vi=7) of B writes it"
    assert found.found is not None and found.found.kind == "undefined"


def test_merging_where_each_reads_its_own():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,), "float32")
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + T.float32(1)
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi] * T.float32(2)

    @T.prim_func
    def after(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,), "float32")
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + T.float32(1)
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi] * T.float32(2)

    same(before, after)


def test_merging_over_an_overwritten_input():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), B: T.Buffer((7,), "float32")):
        for i in range(7):
            with T.block("B"):
                vi = T.axis.spatial(7, i)
                B[vi] = A[vi + 1]
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = T.float32(0)

    @T.prim_func
    def after(A: T.Buffer((8,), "float32"), B: T.Buffer((7,), "float32")):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = T.float32(0)
        for i in range(7):
            with T.block("B"):
                vi = T.axis.spatial(7, i)
                B[vi] = A[vi + 1]

    assert refused(before, after).why() == (
        "iteration (vi=0) of B reads A[1] after iteration (vi=1) of A has overwritten it"
    )


def test_the_last_write_counts():
    @T.prim_func
    def before(A: T.Buffer((4,), "float32"), B: T.Buffer((5,), "float32")):
        for i, j in T.grid(4, 2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi + vj] = A[vi]

    @T.prim_func
    def after(A: T.Buffer((4,), "float32"), B: T.Buffer((5,), "float32")):
        for j, i in T.grid(2, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi + vj] = A[vi]

    assert refused(before, after).why() == (
        "B[1] ends with what iteration (vi=0, vj=1) of B wrote, not iteration (vi=1, vj=0) of B"
    )


def test_a_block_left_out():
    @T.prim_func
    def after(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,), "float32")
        for i in range(7):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + T.float32(1)
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[7 - vi] * T.float32(2)

    found = refused(two_stages, after, terms=False)
    assert found.why() == "iteration (vi=0) of C reads B[7], but iteration (vi=7) of B no longer writes it"


# --- reductions -----------------------------------------------------------------------------------------------------


@T.prim_func
def row_sum(A: T.Buffer((6, 10), "float32"), C: T.Buffer((6,), "float32")):
    for i, k in T.grid(6, 10):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]


def test_fused_split_and_reordered_reduction():
    @T.prim_func
    def after(A: T.Buffer((6, 10), "float32"), C: T.Buffer((6,), "float32")):
        for f1, f0 in T.grid(4, 15):
            with T.block("C"):
                vi = T.axis.spatial(6, (f0 * 4 + f1) // 10)
                vk = T.axis.reduce(10, (f0 * 4 + f1) % 10)
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]

    same(row_sum, after)


def test_update_executed_twice():
    @T.prim_func
    def after(A: T.Buffer((6, 10), "float32"), C: T.Buffer((6,), "float32")):
        for i, k0, k1 in T.grid(6, 4, 4):
            with T.block("C"):
                vi = T.axis.spatial(6, i)
                vk = T.axis.reduce(10, k0 * 2 + k1)
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]

    found = refused(row_sum, after, terms=False)
    assert found.kind == "twice"
    assert found.why() == ("iteration (vi=0, vk=2) of C updates C[0] more than once before the function returns")


def test_update_missing():
    @T.prim_func
    def after(A: T.Buffer((6, 10), "float32"), C: T.Buffer((6,), "float32")):
        for i, k0, k1 in T.grid(6, 3, 3):
            with T.block("C"):
                vi = T.axis.spatial(6, i)
                vk = T.axis.reduce(10, k0 * 3 + k1)
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]

    assert refused(row_sum, after).why() == (
        "the caller reads C[0], but iteration (vi=0, vk=9) of C no longer updates it"
    )


@T.prim_func
def decomposed(A: T.Buffer((6, 10), "float32"), C: T.Buffer((6,), "float32")):
    for i in range(6):
        with T.block("C_start"):
            wi = T.axis.spatial(6, i)
            C[wi] = T.float32(0)
        for k in range(10):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] + A[vi, vk]


def decomposition(before: PrimFunc, after: PrimFunc) -> Origins:
    return Origins(renamed={axis(after, "C_start"): (InitOf(axis(before, "C")), lambda axes: axes)})


def test_decompose_reduction():
    same(row_sum, decomposed, decomposition(row_sum, decomposed))
    assert isinstance(find_mismatch(row_sum, version_of(row_sum, decomposed)), Mismatch)


def test_init_moved_inside():
    @T.prim_func
    def after(A: T.Buffer((6, 10), "float32"), C: T.Buffer((6,), "float32")):
        for i in range(6):
            for k in range(10):
                with T.block("C_start"):
                    wi = T.axis.spatial(6, i)
                    C[wi] = T.float32(0)
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + A[vi, vk]

    found = refused(row_sum, after, decomposition(row_sum, after))
    assert found.kind == "missing"
    assert found.why() == "the caller reads C[0], but the update of iteration (vi=0, vk=0) of C is lost by then"


def test_reader_before_the_last_update():
    @T.prim_func
    def before(A: T.Buffer((6, 10), "float32"), D: T.Buffer((6,), "float32")):
        C = T.alloc_buffer((6,), "float32")
        for i, k in T.grid(6, 10):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
        for i in range(6):
            with T.block("D"):
                vi = T.axis.spatial(6, i)
                D[vi] = T.exp(C[vi])

    @T.prim_func
    def by_rows(A: T.Buffer((6, 10), "float32"), D: T.Buffer((6,), "float32")):
        C = T.alloc_buffer((6,), "float32")
        for i in range(6):
            for k in range(10):
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + A[vi, vk]
            with T.block("D"):
                vi = T.axis.spatial(6, i)
                D[vi] = T.exp(C[vi])

    @T.prim_func
    def too_early(A: T.Buffer((6, 10), "float32"), D: T.Buffer((6,), "float32")):
        C = T.alloc_buffer((6,), "float32")
        for k0 in range(2):
            for k1, i in T.grid(5, 6):
                with T.block("C"):
                    vi = T.axis.spatial(6, i)
                    vk = T.axis.reduce(10, k0 * 5 + k1)
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + A[vi, vk]
            for i in range(6):
                with T.block("D"):
                    vi = T.axis.spatial(6, i)
                    D[vi] = T.exp(C[vi])

    same(before, by_rows)
    # D runs twice; its second run is right, and the caller sees that one. The first is refused all the same: an
    # instance must see the same each time it runs.
    found = refused(before, too_early, terms=False)
    assert found.why() == "iteration (vi=0) of D reads C[0] before iteration (vi=0, vk=5) of C updates it"


def test_partial_sums_keep_their_order():
    @T.prim_func
    def before(A: T.Buffer((6,), "float32"), C: T.Buffer((1,), "float32"), P: T.Buffer((6,), "float32")):
        for k in range(6):
            with T.block("C"):
                v0 = T.axis.spatial(1, 0)
                vk = T.axis.reduce(6, k)
                C[v0] = C[v0] + A[vk]
            with T.block("P"):
                vk = T.axis.spatial(6, k)
                P[vk] = C[0]

    @T.prim_func
    def after(A: T.Buffer((6,), "float32"), C: T.Buffer((1,), "float32"), P: T.Buffer((6,), "float32")):
        for k in range(6):
            with T.block("C"):
                v0 = T.axis.spatial(1, 0)
                vk = T.axis.reduce(6, k)
                C[v0] = C[v0] + A[vk]
        for k in range(6):
            with T.block("P"):
                vk = T.axis.spatial(6, k)
                P[vk] = C[0]

    found = refused(before, after)
    assert (
        found.why()
        == "C[0] holds the update of iteration (v0=0, vk=1) of C as well when iteration (vk=0) of P reads it"
    )
    same(before, before)


@T.prim_func
def argmax(A: T.Buffer((4, 6), "float32"), best: T.Buffer((4,), "int32"), value: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 6):
        with T.block("argmax"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                best[vi] = -1
                value[vi] = T.float32(-100)
            v_best: T.int32 = T.Select(value[vi] >= A[vi, vk], best[vi], vk)
            v_value: T.float32 = T.Select(value[vi] >= A[vi, vk], value[vi], A[vi, vk])
            best[vi] = v_best
            value[vi] = v_value


def test_tuple_reduction():
    @T.prim_func
    def reordered(A: T.Buffer((4, 6), "float32"), best: T.Buffer((4,), "int32"), value: T.Buffer((4,), "float32")):
        for k, i in T.grid(6, 4):
            with T.block("argmax"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    best[vi] = -1
                    value[vi] = T.float32(-100)
                v_best: T.int32 = T.Select(value[vi] >= A[vi, vk], best[vi], vk)
                v_value: T.float32 = T.Select(value[vi] >= A[vi, vk], value[vi], A[vi, vk])
                best[vi] = v_best
                value[vi] = v_value

    @T.prim_func
    def one_field_started_late(
        A: T.Buffer((4, 6), "float32"), best: T.Buffer((4,), "int32"), value: T.Buffer((4,), "float32")
    ):
        for i in range(4):
            with T.block("start"):
                wi = T.axis.spatial(4, i)
                best[wi] = -1
                value[wi] = T.float32(-100)
            for k in range(6):
                with T.block("again"):
                    ui = T.axis.spatial(4, i)
                    T.where(k == 3)
                    value[ui] = T.float32(-100)
                with T.block("argmax"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    v_best: T.int32 = T.Select(value[vi] >= A[vi, vk], best[vi], vk)
                    v_value: T.float32 = T.Select(value[vi] >= A[vi, vk], value[vi], A[vi, vk])
                    best[vi] = v_best
                    value[vi] = v_value

    same(argmax, reordered)
    origins = Origins(renamed={axis(one_field_started_late, "start"): (InitOf(axis(argmax, "argmax")), lambda v: v)})
    refused(argmax, one_field_started_late, origins)


def test_different_reductions_of_one_cell_do_not_commute():
    @T.prim_func
    def before(A: T.Buffer((4,), "float32"), C: T.Buffer((1,), "float32")):
        for k in range(4):
            with T.block("sum"):
                v = T.axis.spatial(1, 0)
                vk = T.axis.reduce(4, k)
                C[v] = C[v] + A[vk]
        for k in range(4):
            with T.block("product"):
                v = T.axis.spatial(1, 0)
                vk = T.axis.reduce(4, k)
                C[v] = C[v] * A[vk]

    @T.prim_func
    def after(A: T.Buffer((4,), "float32"), C: T.Buffer((1,), "float32")):
        for k in range(4):
            with T.block("sum"):
                v = T.axis.spatial(1, 0)
                vk = T.axis.reduce(4, k)
                C[v] = C[v] + A[vk]
            with T.block("product"):
                v = T.axis.spatial(1, 0)
                vk = T.axis.reduce(4, k)
                C[v] = C[v] * A[vk]

    refused(before, after, terms=False)


# --- what nobody writes ---------------------------------------------------------------------------------------------


def with_block(function: PrimFunc, change: Callable[[BlockRealize], BlockRealize]) -> PrimFunc:
    """The function with its innermost block changed, and every node that stays the very same."""
    return function.with_(body=_change_innermost(function.body, change))


def _change_innermost(statement: Stmt, change: Callable[[BlockRealize], BlockRealize]) -> Stmt:
    if isinstance(statement, For):
        return statement.with_(body=_change_innermost(statement.body, change))
    assert isinstance(statement, BlockRealize)
    if not isinstance(statement.block.body, (For, BlockRealize)):
        return change(statement)
    block = statement.block.with_(body=_change_innermost(statement.block.body, change))
    return statement.with_(block=block)


def test_loads_of_inputs_that_stay_need_no_search(monkeypatch):
    compared = []
    compare = _Comparison._compare
    monkeypatch.setattr(_Comparison, "_compare", lambda self, b: compared.append(b.name) or compare(self, b))
    guarded = with_block(pointwise, lambda realize: realize.with_(predicate=realize.iter_values[0] < 6))
    assert find_mismatch(pointwise, guarded, by_lemmas=False) is None
    assert "A" not in compared


@T.prim_func
def square(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]


def test_a_load_that_stays_in_a_block_that_stands_for_other_iterations():
    """Each cell is written by the iteration that it is said to be, but the load reads what another one did."""

    def transpose(realize: BlockRealize) -> BlockRealize:
        store = realize.block.body
        assert isinstance(store, BufferStore)
        return realize.with_(block=realize.block.with_(body=store.with_(indices=store.indices[::-1])))

    after = with_block(square, transpose)
    origins = Origins(renamed={axis(square, "B"): (axis(square, "B"), lambda axes: axes[::-1])})
    found = find_mismatch(square, after, origins)
    assert isinstance(found, Mismatch)
    assert found.cell == ("A", (1, 0))
    assert difference(evaluate_terms(square), evaluate_terms(after)) is not None


def test_a_load_that_stays_and_is_said_to_stand_for_another():
    key, (vi, vj) = axis(square, "B"), [one.var for one in blocks_of(square)["B"].iter_vars]
    after = with_block(square, lambda realize: realize.with_(predicate=realize.iter_values[0] < 4))
    assert find_mismatch(square, after, Origins(loads={(key, 0): (key, 0, [vi, vj])})) is None
    found = find_mismatch(square, after, Origins(loads={(key, 0): (key, 0, [vj, vi])}))
    assert isinstance(found, Mismatch)
    assert found.cell == ("A", (1, 0))


def test_a_load_that_stays_but_is_indexed_by_a_loop_outside_its_block():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[i]

    after = with_block(before, lambda realize: realize.with_(iter_values=(7 - realize.iter_values[0],)))
    found = find_mismatch(before, after)
    assert isinstance(found, Mismatch)
    assert found.cell == ("A", (7,))
    assert difference(evaluate_terms(before), evaluate_terms(after)) is not None


# --- recomputation and copies ---------------------------------------------------------------------------------------


@T.prim_func
def blur(A: T.Buffer((18,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((18,), "float32")
    for i in range(18):
        with T.block("B"):
            vi = T.axis.spatial(18, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi] + B[vi + 1] + B[vi + 2]


def test_overlapping_recomputation():
    @T.prim_func
    def halo(A: T.Buffer((18,), "float32"), C: T.Buffer((16,), "float32")):
        B = T.alloc_buffer((18,), "float32")
        for i0 in range(4):
            for i1 in range(6):
                with T.block("B"):
                    vi = T.axis.spatial(18, i0 * 4 + i1)
                    B[vi] = A[vi] * T.float32(2)
            for i1 in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(16, i0 * 4 + i1)
                    C[vi] = B[vi] + B[vi + 1] + B[vi + 2]

    @T.prim_func
    def too_narrow(A: T.Buffer((18,), "float32"), C: T.Buffer((16,), "float32")):
        B = T.alloc_buffer((18,), "float32")
        for i0 in range(4):
            for i1 in range(5):
                with T.block("B"):
                    vi = T.axis.spatial(18, i0 * 4 + i1)
                    B[vi] = A[vi] * T.float32(2)
            for i1 in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(16, i0 * 4 + i1)
                    C[vi] = B[vi] + B[vi + 1] + B[vi + 2]

    same(blur, halo)
    found = refused(blur, too_narrow, terms=False)
    assert found.why() == "iteration (vi=3) of C reads B[5] before iteration (vi=5) of B writes it"


@T.prim_func
def rolling(A: T.Buffer((18,), "float32"), C: T.Buffer((16,), "float32")):
    W = T.alloc_buffer((3,), "float32")
    for i in range(18):
        with T.block("B"):
            vi = T.axis.spatial(18, i)
            W[vi % 3] = A[vi] * T.float32(2)
        with T.block("C"):
            vi = T.axis.spatial(16, i - 2)
            T.where(i >= 2)
            C[vi] = W[vi % 3] + W[(vi + 1) % 3] + W[(vi + 2) % 3]


def test_rolling_window():
    @T.prim_func
    def too_small(A: T.Buffer((18,), "float32"), C: T.Buffer((16,), "float32")):
        W = T.alloc_buffer((2,), "float32")
        for i in range(18):
            with T.block("B"):
                vi = T.axis.spatial(18, i)
                W[vi % 2] = A[vi] * T.float32(2)
            with T.block("C"):
                vi = T.axis.spatial(16, i - 2)
                T.where(i >= 2)
                C[vi] = W[vi % 2] + W[(vi + 1) % 2] + W[(vi + 2) % 2]

    same(blur, rolling)
    assert refused(blur, too_small).why() == (
        "iteration (vi=0) of C reads W[0] after iteration (vi=2) of B has overwritten what iteration (vi=0) of B wrote"
    )


def test_memory_allocated_inside_a_loop():
    @T.prim_func
    def after(A: T.Buffer((18,), "float32"), C: T.Buffer((16,), "float32")):
        for i0 in range(4):
            with T.block("tile"):
                v0 = T.axis.spatial(4, i0)
                B = T.alloc_buffer((6,), "float32")
                for i1 in range(6):
                    with T.block("B"):
                        vi = T.axis.spatial(18, v0 * 4 + i1)
                        B[vi - v0 * 4] = A[vi] * T.float32(2)
                for i1 in range(4):
                    with T.block("C"):
                        vi = T.axis.spatial(16, v0 * 4 + i1)
                        C[vi] = B[vi - v0 * 4] + B[vi - v0 * 4 + 1] + B[vi - v0 * 4 + 2]

    same(blur, after)


@T.prim_func
def scale(A: T.Buffer((12, 4), "float32"), C: T.Buffer((12,), "float32")):
    for i in range(12):
        with T.block("C"):
            vi = T.axis.spatial(12, i)
            C[vi] = A[vi, 0] + A[vi, 1]


def test_copies_are_seen_through():
    @T.prim_func
    def cached(A: T.Buffer((12, 4), "float32"), C: T.Buffer((12,), "float32")):
        L = T.alloc_buffer((4, 4), "float32")
        for i0 in range(3):
            for a, b in T.grid(4, 2):
                with T.block("A_copy"):
                    w0 = T.axis.spatial(12, i0 * 4 + a)
                    w1 = T.axis.spatial(4, b)
                    L[w1, w0 % 4] = A[w0, w1]
            for i1 in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(12, i0 * 4 + i1)
                    C[vi] = L[0, vi % 4] + L[1, vi % 4]

    @T.prim_func
    def stale(A: T.Buffer((12, 4), "float32"), C: T.Buffer((12,), "float32")):
        L = T.alloc_buffer((4, 4), "float32")
        for i0 in range(3):
            for a, b in T.grid(4, 2):
                with T.block("A_copy"):
                    w0 = T.axis.spatial(12, i0 * 4 + a)
                    w1 = T.axis.spatial(4, b)
                    T.where(i0 < 2)
                    L[w1, w0 % 4] = A[w0, w1]
            for i1 in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(12, i0 * 4 + i1)
                    C[vi] = L[0, vi % 4] + L[1, vi % 4]

    same(scale, cached, Origins(copies=frozenset([axis(cached, "A_copy")])))
    assert refused(scale, stale, Origins(copies=frozenset([axis(stale, "A_copy")]))).why() == (
        "iteration (vi=8) of C reads L[0, 0], which holds the initial A[4, 0] instead of the initial A[8, 0]"
    )
    # A block that is not known to copy is just another writer.
    assert isinstance(find_mismatch(scale, version_of(scale, cached)), Mismatch)


def test_accumulator_in_a_buffer_of_its_own():
    @T.prim_func
    def after(A: T.Buffer((6, 10), "float32"), C: T.Buffer((6,), "float32")):
        L = T.alloc_buffer((1,), "float32")
        for i in range(6):
            for k in range(10):
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        L[0] = T.float32(0)
                    L[0] = L[0] + A[vi, vk]
            with T.block("C_copy"):
                wi = T.axis.spatial(6, i)
                C[wi] = L[0]

    @T.prim_func
    def too_late(A: T.Buffer((6, 10), "float32"), C: T.Buffer((6,), "float32")):
        L = T.alloc_buffer((1,), "float32")
        for i, k in T.grid(6, 10):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    L[0] = T.float32(0)
                L[0] = L[0] + A[vi, vk]
        for i in range(6):
            with T.block("C_copy"):
                wi = T.axis.spatial(6, i)
                C[wi] = L[0]

    same(row_sum, after, Origins(copies=frozenset([axis(after, "C_copy")])))
    refused(row_sum, too_late, Origins(copies=frozenset([axis(too_late, "C_copy")])), terms=False)


def test_copies_in_and_out_of_an_accumulator():
    @T.prim_func
    def before(A: T.Buffer((6, 10), "float32"), C: T.Buffer((6,), "float32")):
        for i, k in T.grid(6, 10):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] + A[vi, vk]

    @T.prim_func
    def after(A: T.Buffer((6, 10), "float32"), C: T.Buffer((6,), "float32")):
        L = T.alloc_buffer((6,), "float32")
        for k0 in range(5):
            for i in range(6):
                with T.block("in"):
                    wi = T.axis.spatial(6, i)
                    L[wi] = C[wi]
                for k1 in range(2):
                    with T.block("C"):
                        vi = T.axis.spatial(6, i)
                        vk = T.axis.reduce(10, k0 * 2 + k1)
                        L[vi] = L[vi] + A[vi, vk]
                with T.block("out"):
                    wi = T.axis.spatial(6, i)
                    C[wi] = L[wi]

    same(before, after, Origins(copies=frozenset([axis(after, "in"), axis(after, "out")])), terms=False)


def test_inlining():
    @T.prim_func
    def after(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = (A[7 - vi] + T.float32(1)) * T.float32(2)

    @T.prim_func
    def wrong_cell(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = (A[vi] + T.float32(1)) * T.float32(2)

    b, c = axis(two_stages, "B"), axis(two_stages, "C")
    same(two_stages, after, Origins(loads={(c, 0): (b, 0, (7 - c,))}))
    refused(two_stages, wrong_cell, Origins(loads={(c, 0): (b, 0, (7 - c,))}))
    claim = find_mismatch(two_stages, version_of(two_stages, wrong_cell), Origins(loads={(c, 0): (b, 0, (c,))}))
    assert isinstance(claim, Unproved) and claim.reason == "what is inlined into C is not always what it reads"
    assert isinstance(find_mismatch(two_stages, version_of(two_stages, after)), Mismatch)


# --- sizes ----------------------------------------------------------------------------------------------------------


def test_no_iterations():
    @T.prim_func
    def before(A: T.Buffer((0, 4), "float32"), B: T.Buffer((0, 4), "float32")):
        for i, j in T.grid(0, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    @T.prim_func
    def after(A: T.Buffer((0, 4), "float32"), B: T.Buffer((0, 4), "float32")):
        for j, i in T.grid(4, 0):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    same(before, after)


def test_symbolic_sizes():
    @T.prim_func
    def before(a: T.handle, c: T.handle, n: T.int32):
        A = T.match_buffer(a, (n,), "float32")
        C = T.match_buffer(c, (n,), "float32")
        B = T.alloc_buffer((n,), "float32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] + T.float32(1)
        for i in range(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = B[n - 1 - vi] * T.float32(2)

    @T.prim_func
    def tiled(a: T.handle, c: T.handle, n: T.int32):
        A = T.match_buffer(a, (n,), "float32")
        C = T.match_buffer(c, (n,), "float32")
        B = T.alloc_buffer((n,), "float32")
        for i1, i0 in T.grid(4, (n + 3) // 4):
            with T.block("B"):
                vi = T.axis.spatial(n, i0 * 4 + i1)
                T.where(i0 * 4 + i1 < n)
                B[vi] = A[vi] + T.float32(1)
        for i in range(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = B[n - 1 - vi] * T.float32(2)

    @T.prim_func
    def merged(a: T.handle, c: T.handle, n: T.int32):
        A = T.match_buffer(a, (n,), "float32")
        C = T.match_buffer(c, (n,), "float32")
        B = T.alloc_buffer((n,), "float32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] + T.float32(1)
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = B[n - 1 - vi] * T.float32(2)

    same(before, tiled, terms=False)
    found = refused(before, merged, terms=False)
    assert found.why() == "iteration (vi=0) of C reads B[1] before iteration (vi=1) of B writes it (for n = 2)"


# --- what cannot be proved ------------------------------------------------------------------------------------------


def test_gather_is_proved_and_scatter_is_not():
    @T.prim_func
    def gather(A: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,), "float32")
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[I[vi]]

    @T.prim_func
    def reversed_loops(A: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,), "float32")
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, 7 - i)
                B[vi] = A[vi]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, 7 - i)
                C[vi] = B[I[vi]]

    @T.prim_func
    def merged(A: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,), "float32")
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[I[vi]]

    same(gather, reversed_loops, terms=False)
    assert refused(gather, merged, terms=False).reader.block == "C"

    @T.prim_func
    def scatter(A: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32"), C: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[I[vi]] = A[vi]

    assert find_mismatch(scatter, scatter.with_attr("other", 1)) is None  # the very same statements
    found = find_mismatch(scatter, version_of(scatter, scatter))
    assert isinstance(found, Unproved)
    assert found.reason == 'where block "C" writes C, or whether, depends on data'


def test_names_that_are_not_unique():
    @T.prim_func
    def before(A: T.Buffer((4,), "float32")):
        for _t, i in T.grid(3, 4):
            with T.block("A"):
                vi = T.axis.spatial(4, i)
                A[vi] = A[vi] * T.float32(2)

    found = find_mismatch(before, version_of(before, before))
    assert isinstance(found, Unproved)
    assert found.reason == "iterations that read A with the same axis values see different values"


def test_one_name_for_several_values_is_found_behind_the_compared_buffers():
    @T.prim_func
    def before(A: T.Buffer((2,), "float32"), C: T.Buffer((2,), "float32")):
        S = T.alloc_buffer((1,), "float32")
        R = T.alloc_buffer((1,), "float32")
        for i in range(2):
            with T.block("S"):
                vi = T.axis.spatial(2, i)
                S[0] = A[vi]
            with T.block("R"):
                v0 = T.axis.spatial(1, 0)
                R[v0] = S[v0] * T.float32(2)
            with T.block("C"):
                vi = T.axis.spatial(2, i)
                C[vi] = R[0]

    @T.prim_func
    def after(A: T.Buffer((2,), "float32"), C: T.Buffer((2,), "float32")):
        S = T.alloc_buffer((1,), "float32")
        R = T.alloc_buffer((1,), "float32")
        for i in range(2):
            with T.block("S"):
                vi = T.axis.spatial(2, i)
                S[0] = A[vi]
            with T.block("R"):
                v0 = T.axis.spatial(1, 0)
                R[v0] = S[v0] * T.float32(2)
        for i in range(2):
            with T.block("C"):
                vi = T.axis.spatial(2, i)
                C[vi] = R[0]

    changed = version_of(before, after)
    found = find_mismatch(before, changed, buffers=changed.argument_buffers()[1:])
    assert isinstance(found, Unproved)
    assert found.reason == "iterations that read S with the same axis values see different values"


def test_copying_what_holds_no_value():
    @T.prim_func
    def after(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((9,), "float32")
        L = T.alloc_buffer((9,), "float32")
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + T.float32(1)
        for i in range(9):
            with T.block("L"):
                wi = T.axis.spatial(9, i)
                L[wi] = B[wi]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = L[7 - vi] * T.float32(2)

    found = find_mismatch(two_stages, version_of(two_stages, after), Origins(copies=frozenset([axis(after, "L")])))
    assert isinstance(found, Unproved)
    assert found.reason == "block L would copy cells of B that hold no value"


def test_cells_chosen_from_outside_the_block():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), C: T.Buffer((4,), "float32")):
        for i in range(2):
            with T.block("outer"):
                v0 = T.axis.spatial(2, i)
                for j in range(4):
                    with T.block("C"):
                        vj = T.axis.spatial(4, j)
                        C[vj] = A[v0 * 4 + vj]

    @T.prim_func
    def after(A: T.Buffer((8,), "float32"), C: T.Buffer((4,), "float32")):
        for i in range(2):
            with T.block("outer"):
                v0 = T.axis.spatial(2, 1 - i)
                for j in range(4):
                    with T.block("C"):
                        vj = T.axis.spatial(4, j)
                        C[vj] = A[v0 * 4 + vj]

    # By its own axis, iteration vj of C is not one value but two; by the axes around it, the last one is another.
    outer = before.body.block.body
    assert isinstance(outer, For)
    realize = outer.body.with_(iter_values=(1 - outer.loop_var,))
    root = before.body.block.with_(body=outer.with_(body=realize))
    kept = before.with_(body=before.body.with_(block=root))
    assert difference(evaluate_terms(before), evaluate_terms(kept)) is not None
    for changed in (kept, version_of(before, after)):
        found = find_mismatch(before, changed)
        assert isinstance(found, Mismatch)
        assert found.why() == "C[0] ends with what iteration (vj=0, v0=0) of C wrote, not iteration (vj=0, v0=1) of C"


# --- races ----------------------------------------------------------------------------------------------------------


def loop_of(function: PrimFunc, kind: ForKind) -> Var:
    found = []

    def look(node: object) -> None:
        if isinstance(node, For) and node.kind is kind:
            found.append(node.loop_var)

    pre_order_visit(function.body, look)
    return found[0]


def test_race_names_both_iterations_and_the_cell():
    @T.prim_func
    def f(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
        for i in range(4):
            for k in T.parallel(8):
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + A[vi, vk]

    found = find_race(f, loop_of(f, ForKind.PARALLEL))
    assert isinstance(found, Race)
    assert found.why() == (
        "iterations k = 0 and k = 1 of the parallel loop k both touch C[0]: "
        'block "C" reads it at i = 0, k = 0, and block "C" writes it at i = 0, k = 1; '
        "a parallel loop runs them in any order"
    )


@pytest.mark.parametrize("kind", ["parallel", "vectorized"])
def test_lockstep(kind):
    @T.prim_func
    def ahead(A: T.Buffer((9,), "float32")):
        for i in T.vectorized(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = A[vi + 1]

    @T.prim_func
    def ahead_parallel(A: T.Buffer((9,), "float32")):
        for i in T.parallel(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = A[vi + 1]

    if kind == "vectorized":
        assert find_race(ahead, loop_of(ahead, ForKind.VECTORIZED)) is None
    else:
        assert isinstance(find_race(ahead_parallel, loop_of(ahead_parallel, ForKind.PARALLEL)), Race)


def test_scatter_under_a_parallel_loop_is_not_proved():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32"), C: T.Buffer((8,), "float32")):
        for i in T.parallel(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[I[vi]] = A[vi]

    found = find_race(f, loop_of(f, ForKind.PARALLEL))
    assert isinstance(found, Unproved)
    assert found.why() == 'which cell of C block "C" writes, or whether, depends on data'


def test_shared_panel_under_a_parallel_loop():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        P = T.alloc_buffer((2,), "float32")
        for i0 in T.parallel(4):
            for i1 in range(2):
                with T.block("P"):
                    vi = T.axis.spatial(8, i0 * 2 + i1)
                    P[vi % 2] = A[vi]
            for i1 in range(2):
                with T.block("C"):
                    vi = T.axis.spatial(8, i0 * 2 + i1)
                    C[vi] = P[vi % 2]

    assert find_race(f, loop_of(f, ForKind.PARALLEL)) is None  # a panel for each iteration

    @T.prim_func
    def one_for_all(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        P = T.decl_buffer((2,), "float32")
        for i0 in T.parallel(4):
            for i1 in range(2):
                with T.block("P"):
                    vi = T.axis.spatial(8, i0 * 2 + i1)
                    P[vi % 2] = A[vi]
            for i1 in range(2):
                with T.block("C"):
                    vi = T.axis.spatial(8, i0 * 2 + i1)
                    C[vi] = P[vi % 2]

    found = find_race(one_for_all, loop_of(one_for_all, ForKind.PARALLEL))
    assert isinstance(found, Race)
    assert found.fields["buffer"] == "P"


def test_private_memory_read_after_a_bound_loop():
    @T.prim_func
    def f(A: T.Buffer((4, 8), "float32"), D: T.Buffer((4,), "float32")):
        C = T.alloc_buffer((4,), "float32", scope="local")
        for i in range(4):
            for k in T.thread_binding(8, thread="blockIdx.x"):
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + A[vi, vk]
        for i in range(4):
            with T.block("D"):
                vi = T.axis.spatial(4, i)
                D[vi] = C[vi]

    found = find_race(f, loop_of(f, ForKind.THREAD_BINDING))
    assert isinstance(found, Race)
    assert found.why().startswith("iterations k = 0 and k = 1 of the bound loop k both touch C[0]")


# --- against the evaluator ------------------------------------------------------------------------------------------


@pytest.mark.one_in(2)
@pytest.mark.parametrize("chunk", range(4))
def test_random_pairs(chunk):
    accepted = 0
    for seed in range(chunk * 40, chunk * 40 + 40):
        before, after = random_pair(seed)
        try:
            same_terms = difference(evaluate_terms(before), evaluate_terms(after)) is None
        except OutOfBounds:
            continue
        found = find_mismatch(before, after)
        if found is None:
            accepted += 1
            assert same_terms, seed
        elif isinstance(found, Mismatch):
            assert found.why(), seed
    assert accepted > 5


@pytest.mark.one_in(3)
@pytest.mark.parametrize("chunk", range(3))
def test_random_copies(chunk):
    accepted = 0
    for seed in range(chunk * 60, chunk * 60 + 60):
        before, after, copy = random_cached(seed)
        try:
            expected = evaluate_terms(before)
        except OutOfBounds:
            continue
        found = find_mismatch(before, after, Origins(copies=frozenset([copy])))
        if found is None:
            accepted += 1
            assert difference(expected, evaluate_terms(after)) is None, seed
        elif isinstance(found, Mismatch):
            assert found.why(), seed
    assert accepted > 20


def test_a_proof_cut_off_by_its_budget_leaves_nothing_behind(monkeypatch):
    """While names are looked at, a buffer counts as sound; if the look is cut off, or fails, that is forgotten."""
    sight = ReachingWrites(dataflow_of(accesses_of(pointwise)))
    a, b = pointwise.argument_buffers()

    def circle(end: Exception) -> Callable[[ReachingWrites, Buffer], None]:
        def look(self: ReachingWrites, buffer: Buffer) -> None:
            if buffer is a:
                self.check_names(b)  # which takes `a` for granted
                raise end
            self.check_names(a)

        return look

    monkeypatch.setattr(ReachingWrites, "_check", circle(BudgetExceeded(1)))
    with pytest.raises(BudgetExceeded):
        sight.check_names(a)
    assert sight._checked == {}
    monkeypatch.setattr(ReachingWrites, "_check", circle(NotProvable("it differs")))
    with pytest.raises(NotProvable, match="it differs"):
        sight.check_names(a)
    assert list(sight._checked) == [a]


def test_a_block_that_lost_a_load_proves_nothing():
    """Loads are compared by number: of one where there were two, nobody knows which it is."""

    @T.prim_func
    def before(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi] * 0 + B[vi]

    @T.prim_func
    def after(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi]

    found = find_mismatch(before, version_of(before, after))
    assert isinstance(found, Unproved)
    assert found.reason == "block C would have 1 load, where it had 2 loads: which stands for which is not known"
    key = axis(before, "C")
    told = Origins(loads={(key, 0): (key, 1, [key])}, rewritten=frozenset([key]))
    assert find_mismatch(before, version_of(before, after), told) is None


def test_a_start_that_did_not_run_before_stays_within_its_buffer():
    """A split leaves nothing of i in `i - j + m`: i is of the reduction then, and may have no iterations."""

    @T.prim_func
    def diagonals(A: T.Buffer(12, "int32"), n: T.int32, m: T.int32):
        B = T.alloc_buffer((12,), "int32")
        for i in range(T.min(m, 5)):
            for j in T.serial(i - 1, i - 1 + T.min(n, 5)):
                with T.block("B"):
                    v0 = T.axis.spatial(12, i - j + m)
                    v1 = T.axis.reduce(12, j)
                    with T.init():
                        B[v0] = 5
                    B[v0] = B[v0] + A[v1]

    sch = Schedule(diagonals)
    loop = sch.get_loops("B")[1]
    with pytest.raises(NotProved, match=r"B\[v0\] would be started where it was not before[^§]*: decompose_reduction"):
        sch.split(loop, [None, 4])
    sch.decompose_reduction("B", sch.get_loops("B")[0])
    sch.split(sch.get_loops("B_update")[1], [None, 4])


def test_the_tail_of_a_reduction_that_a_guard_ties_to_other_loops():
    @T.prim_func
    def tied(A: T.Buffer(12, "int32"), B: T.Buffer(12, "int32"), n: T.int32, m: T.int32):
        for i in T.serial(1, 1 + T.min(n, 5)):
            for j in range(T.min(n, 5)):
                with T.block("B"):
                    v0 = T.axis.spatial(12, m - i)
                    v1 = T.axis.reduce(12, j - i + m)
                    T.where(j >= i)
                    with T.init():
                        B[v0] = 0
                    B[v0] = B[v0] + A[v1]

    sch = Schedule(tied)
    sch.split(sch.get_loops("B")[1], [5, 1])
    a = np.arange(12, dtype="int32")
    for n, m in ((3, 2), (5, 5), (0, 0), (4, 4)):
        before, after = np.full(12, 9, "int32"), np.full(12, 9, "int32")
        evaluate(tied, a, before, n, m)
        evaluate(sch.mod["main"], a, after, n, m)
        assert before.tolist() == after.tolist()
