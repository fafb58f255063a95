"""dataflow: which write each read sees."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from loopwright.analysis import accesses_of
from loopwright.analysis import isl_flow as flow_question
from loopwright.analysis.dataflow import Dataflow, InitOf, NotProvable, dataflow_of, flow_budget
from loopwright.arith.isl import context
from loopwright.ir import Buffer, PrimFunc
from loopwright.script import tir as T
from tests.analysis.test_against_enumeration import programs
from tests.campaign import programs as how_many


def flows(function: PrimFunc) -> tuple[Dataflow, dict[str, Buffer]]:
    found = dataflow_of(accesses_of(function))
    return found, {buffer.name: buffer for buffer in found.by_buffer}


def is_relation(found, text: str) -> bool:
    import islpy as isl

    return bool(found.is_equal(isl.UnionMap.read_from_str(context(), text)))


def test_the_last_write_before_a_read():
    @T.prim_func
    def f(A: T.Buffer((9,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(4):
            A[i] = T.float32(1)
        for i in range(8):
            A[i + 1] = A[i] + T.float32(1)
            B[i] = A[i]

    found, buffers = flows(f)
    flow = found.flow(buffers["A"])
    tags = [item.tag for item in flow.readers]
    assert [item.kind for item in flow.readers] == ["read", "read", "final"]
    assert [item.kind for item in flow.writers] == ["write", "write", "start"]
    first, shifted, start = [item.tag for item in flow.writers]
    # The first iteration sees the first loop, every other one the iteration before it; and the caller the last of all.
    expected = f"""{{ {tags[0]}[i] -> {shifted}[i - 1] : 1 <= i < 8; {tags[0]}[0] -> {first}[0];
                     {tags[1]}[i] -> {shifted}[i - 1] : 1 <= i < 8; {tags[1]}[0] -> {first}[0];
                     {tags[2]}[c] -> {shifted}[c - 1] : 1 <= c <= 8; {tags[2]}[0] -> {first}[0] }}"""
    assert is_relation(flow.base, expected)
    whole = found.flow(buffers["B"])
    final, store = whole.readers[-1].tag, whole.writers[0].tag
    assert is_relation(whole.base, f"{{ {final}[c] -> {store}[c] : 0 <= c < 8 }}")
    assert start.endswith("start")


def test_cells_of_memory_allocated_in_a_loop():
    @T.prim_func
    def f(A: T.Buffer((4, 3), "float32")):
        for i in range(4):
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                L = T.alloc_buffer((3,), "float32")
                for j in range(3):
                    L[j] = A[vi, j]
                for j in range(3):
                    A[vi, j] = L[2 - j]

    found, buffers = flows(f)
    flow = found.flow(buffers["L"])
    read, store = flow.readers[0].tag, flow.writers[0].tag
    assert is_relation(flow.base, f"{{ {read}[i, j] -> {store}[i, 2 - j] : 0 <= i < 4 and 0 <= j < 3 }}")


def test_updates_of_a_reduction():
    @T.prim_func
    def f(A: T.Buffer((4, 6), "float32"), C: T.Buffer((4,), "float32")):
        for i, k in T.grid(4, 6):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]

    found, buffers = flows(f)
    flow = found.flow(buffers["C"])
    (final,), (update,) = flow.readers, flow.updaters
    init = flow.writers[0]
    assert (final.kind, update.kind, init.kind) == ("final", "update", "write")
    assert is_relation(flow.base, f"{{ {final.tag}[i] -> {init.tag}[i] : 0 <= i < 4 }}")
    assert is_relation(flow.updates, f"{{ {final.tag}[i] -> {update.tag}[i, k] : 0 <= i < 4 and 0 <= k < 6 }}")
    assert init.place is not None and update.place is not None
    block = found.key(update.place)
    assert found.key(init.place) == InitOf(block)


def test_partial_sums_see_the_updates_so_far():
    @T.prim_func
    def f(A: T.Buffer((6,), "float32"), C: T.Buffer((1,), "float32"), P: T.Buffer((6,), "float32")):
        for k in range(6):
            with T.block("C"):
                v0 = T.axis.spatial(1, 0)
                vk = T.axis.reduce(6, k)
                C[v0] = C[v0] + A[vk]
            with T.block("P"):
                vk = T.axis.spatial(6, k)
                P[vk] = C[0]

    found, buffers = flows(f)
    flow = found.flow(buffers["C"])
    reader, update = flow.readers[0].tag, flow.updaters[0].tag
    final = flow.readers[1].tag
    assert is_relation(
        flow.updates,
        f"{{ {reader}[k] -> {update}[u] : 0 <= u <= k < 6; {final}[0] -> {update}[u] : 0 <= u < 6 }}",
    )


def test_fields_of_a_tuple_are_read_together():
    @T.prim_func
    def f(A: T.Buffer((4, 6), "int32"), X: T.Buffer((4,), "int32"), Y: T.Buffer((4,), "int32")):
        for i, k in T.grid(4, 6):
            with T.block("argmax"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    X[vi] = -1
                    Y[vi] = -100
                x: T.int32 = T.Select(Y[vi] > A[vi, vk], X[vi], T.Select(Y[vi] < A[vi, vk], vk, T.min(X[vi], vk)))
                y: T.int32 = T.Select(Y[vi] > A[vi, vk], Y[vi], A[vi, vk])
                X[vi] = x
                Y[vi] = y

    found, buffers = flows(f)
    assert set(found.groups) == {buffers["X"], buffers["Y"]}
    flow = found.flow(buffers["X"])
    assert [(item.kind, item.shadow_of) for item in flow.readers] == [("final", buffers["Y"]), ("final", None)]


@pytest.mark.parametrize("name", ["last", "other_cell", "two_stores"])
def test_what_is_no_reduction(name):
    @T.prim_func
    def last(A: T.Buffer((4, 6), "float32"), C: T.Buffer((4,), "float32")):
        for i, k in T.grid(4, 6):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = A[vi, vk]

    @T.prim_func
    def other_cell(A: T.Buffer((4, 6), "float32"), C: T.Buffer((8,), "float32")):
        for i, k in T.grid(4, 6):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] + C[vi + 1]

    @T.prim_func
    def two_stores(A: T.Buffer((4, 6), "float32"), C: T.Buffer((8,), "float32")):
        for i, k in T.grid(4, 6):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] + A[vi, vk]
                C[vi] = C[vi] * T.float32(2)

    function = {"last": last, "other_cell": other_cell, "two_stores": two_stores}[name]
    found, buffers = flows(function)
    assert not found.groups
    assert not found.flow(buffers["C"]).updaters


def test_tiles_that_agree_are_compared_digit_by_digit():
    @T.prim_func
    def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i1, i0 in T.grid(8, 8):
            with T.block("A"):
                vi = T.axis.spatial(64, i0 * 8 + i1)
                A[vi] = T.float32(1)
        for i0, i1 in T.grid(8, 8):
            with T.block("B"):
                vi = T.axis.spatial(64, i0 * 8 + i1)
                B[vi] = A[vi]

    found, buffers = flows(f)
    flow = found.flow(buffers["A"])
    read, store = flow.readers[0], flow.writers[0]
    assert read.cell == ["i0", "i1"]
    assert store.cell == ["i1", "i0"]
    reads = flow.base.intersect_domain(flow.base.domain().subtract(_only(flow.readers[-1].tag, flow)))
    assert is_relation(reads, f"{{ {read.tag}[a, b] -> {store.tag}[b, a] : 0 <= a < 8 and 0 <= b < 8 }}")


def test_tiles_that_do_not_agree_are_compared_whole():
    @T.prim_func
    def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i1, i0 in T.grid(8, 8):
            with T.block("A"):
                vi = T.axis.spatial(64, i0 * 8 + i1)
                A[vi] = T.float32(1)
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[63 - vi]

    found, buffers = flows(f)
    flow = found.flow(buffers["A"])
    read, store = flow.readers[0].tag, flow.writers[0].tag
    assert [len(item.cell) for item in (*flow.readers, *flow.writers)] == [1, 1, 1, 1]
    reads = flow.base.intersect_domain(flow.base.domain().subtract(_only(flow.readers[-1].tag, flow)))
    assert is_relation(
        reads, f"{{ {read}[i] -> {store}[a, b] : 0 <= i < 64 and 0 <= a < 8 and 0 <= b < 8 and 8b + a = 63 - i }}"
    )


def _only(tag, flow):
    sets = []
    flow.base.domain().foreach_set(sets.append)
    import islpy as isl

    (found,) = [one for one in sets if one.get_tuple_name() == tag]
    return isl.UnionSet.from_set(found)


def test_what_depends_on_data():
    @T.prim_func
    def scatter(A: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32"), C: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[I[vi]] = A[I[vi]]

    found, buffers = flows(scatter)
    with pytest.raises(NotProvable, match='where block "C" writes C, or whether, depends on data'):
        found.flow(buffers["C"])
    with pytest.raises(NotProvable):  # the answer is kept
        found.flow(buffers["C"])
    # A gather reads any cell: one unknown index more.
    reader = found.flow(buffers["A"]).readers[0]
    assert len(reader.dims) == 2


def test_flow_is_kept_with_the_program():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(0)

    program = accesses_of(f)
    flow = dataflow_of(program)
    assert dataflow_of(program) is flow
    assert flow.flow(flow.program.function.argument_buffers()[0]) is flow.flow(
        flow.program.function.argument_buffers()[0]
    )


@pytest.fixture
def asked(monkeypatch):
    """The buffers whose flow isl was asked for."""
    found: list[str] = []
    work_out = flow_question._work_out

    def noted(question, buffer, divisions):
        found.append(buffer)
        return work_out(question, buffer, divisions)

    monkeypatch.setattr(flow_question, "_work_out", noted)
    flow_question._kept.answers.clear()
    return found


def test_a_flow_that_stays_as_it_was_is_not_worked_out_again(asked):
    def version(with_zeros: bool) -> PrimFunc:
        @T.prim_func
        def plain(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), Z: T.Buffer((8,), "float32")):
            for i in range(8):
                A[i] = T.float32(1)
            for i in range(8):
                B[i] = A[7 - i]

        @T.prim_func
        def zeros_between(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), Z: T.Buffer((8,), "float32")):
            for i in range(8):
                A[i] = T.float32(1)
            for i in range(8):
                Z[i] = T.float32(0)
            for i in range(8):
                B[i] = A[7 - i]

        return zeros_between if with_zeros else plain

    for with_zeros in (False, True):
        found, buffers = flows(version(with_zeros))
        flow = found.flow(buffers["A"])
        read, final = [item.tag for item in flow.readers]
        store = flow.writers[0].tag
        expected = f"{{ {read}[i] -> {store}[7 - i] : 0 <= i < 8; {final}[c] -> {store}[c] : 0 <= c < 8 }}"
        assert is_relation(flow.base, expected)
    assert asked == ["A"]


def test_buffers_of_one_name_stay_apart():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(1)
        for i in range(8):
            B[i] = T.float32(2)

    buffers = [buffer.with_(name="a b") for buffer in f.argument_buffers()]
    found = dataflow_of(accesses_of(f))
    tags = [found.tag(buffer) for buffer in buffers]
    assert tags == [found.tag(buffer) for buffer in buffers] == ["b0_a_b_", "b1_a_b_"]


@settings(max_examples=how_many(40, 400))
@given(programs())
def test_the_only_write_of_a_cell_is_the_last_one(made):
    """Where no cell is written twice the answer comes without a search; it is the one that the search finds."""
    function, _ = made
    program = accesses_of(function)
    for buffer in Dataflow(program).by_buffer:
        answers = []
        for budget_of_short_way in (flow_question.ONLY_WRITES_BUDGET, 1):
            flow_question._kept.answers.clear()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(flow_question, "ONLY_WRITES_BUDGET", budget_of_short_way)
                try:
                    answers.append(Dataflow(program).flow(buffer))
                except NotProvable:
                    answers.append(None)
        short, long = answers
        assert (short is None) == (long is None)
        if short is not None:
            assert short.base.is_equal(long.base)
            assert short.updates.is_equal(long.updates)
            assert short.update_bases.is_equal(long.update_bases)


def test_a_flow_given_up_under_a_small_budget_is_followed_under_a_larger_one():
    @T.prim_func
    def tiles(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i, j in T.grid(8, 8):
            A[i * 8 + j] = T.float32(1)
        for i in range(64):
            A[i] = A[63 - i] + T.float32(1)
            B[i] = A[i]

    found, buffers = flows(tiles)
    flow_question._kept.answers.clear()
    with flow_budget(100), pytest.raises(NotProvable, match="the flow through A is too complex to compute"):
        found.flow(buffers["A"])
    assert found.flow(buffers["A"]).readers
