"""unchanged_writers: what the very same statements wrote needs no search; and nothing else is taken for it."""

from __future__ import annotations

import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.ir import Buffer, PrimFunc
from loopwright.schedule import ScheduleError
from loopwright.schedule.origins import Origins
from loopwright.schedule.proof import find_mismatch as comparing
from loopwright.schedule.proof.unchanged_writers import with_unchanged_writers
from loopwright.script import from_source
from tests.schedule.pairs import axis

WRITER = """
    for f in T.thread_binding(24, thread="threadIdx.x"):
        with T.block("W{k}"):
            wi{k} = T.axis.spatial(3, f // 7)
            wj{k} = T.axis.spatial(7, f % 7)
            T.where(f < 21)
            B[wi{k}, wj{k}] = A[wi{k}, wj{k}] * 2.0"""
READER = """
    for i, j in T.grid(3, 7):
        with T.block("R{k}"):
            ri{k}, rj{k} = T.axis.remap("SS", [i, j])
            {result}[ri{k}, rj{k}] = B[ri{k}, 6 - rj{k}]"""
SCAN = """
    for i, j in T.grid(3, 6):
        with T.block("S"):
            si, sj = T.axis.remap("SS", [i, j])
            B[si, sj + 1] = B[si, sj] + 1.0"""


def program(*nests: str) -> PrimFunc:
    return from_source(
        "@T.prim_func\ndef f(A: T.Buffer((3, 7)), C: T.Buffer((3, 7)), D: T.Buffer((3, 7))):\n"
        f"    B = T.alloc_buffer((3, 7)){''.join(nests)}"
    )


def unchanged(before: PrimFunc, after: PrimFunc | None = None, origins: Origins | None = None) -> set[str]:
    """The buffers of which it is seen at once; of two versions with the same statements, where one is given."""
    old, new = [comparing._reaching_writes(f).settled for f in (before, after or before.with_attr("other", 1))]
    return {buffer.name for buffer in with_unchanged_writers(old, new, origins or Origins())}


def test_what_is_written_before_it_is_read_is_unchanged():
    assert unchanged(program(WRITER.format(k=0), READER.format(k=0, result="C"))) == {"A", "B", "C"}


@pytest.mark.parametrize(
    "nests",
    [
        READER.format(k=0, result="C") + WRITER.format(k=0) + READER.format(k=1, result="D"),
        WRITER.format(k=0) + READER.format(k=0, result="C") + WRITER.format(k=1) + READER.format(k=1, result="D"),
    ],
)
def test_a_reader_before_a_writer_sees_something_else(nests):
    assert "B" not in unchanged(program(nests))


def test_a_writer_whose_loops_are_open_may_write_several_values():
    """A sum along a row, in place: its iterations are told apart by the axes, so what they read is compared as well."""
    nests = WRITER.format(k=0), SCAN, READER.format(k=0, result="C")
    assert "B" in unchanged(program(*nests))
    repeated = SCAN.replace("for i, j in T.grid(3, 6)", "for t, i, j in T.grid(2, 3, 6)")
    assert "B" not in unchanged(program(WRITER.format(k=0), repeated, READER.format(k=0, result="C")))


def test_a_writer_that_stands_for_another_is_not_unchanged():
    function = program(WRITER.format(k=0), READER.format(k=0, result="C"))
    writer, reader = axis(function, "W0"), axis(function, "R0")
    assert "B" not in unchanged(function, origins=Origins(copies=frozenset([writer])))
    assert "B" not in unchanged(function, origins=Origins(renamed={reader: (writer, lambda axes: axes)}))
    assert "B" in unchanged(function, origins=Origins(renamed={reader: (reader, lambda axes: axes)}))


def test_other_statements_are_not_the_same_though_they_look_alike():
    nests = WRITER.format(k=0), READER.format(k=0, result="C")
    assert "B" not in unchanged(program(*nests), program(*nests))


def rows_of_a_prime_length() -> tuple[PrimFunc, Buffer]:
    A = te.placeholder((3, 70001), name="A")
    B = te.compute((3, 70001), lambda i, j: te.exp(A[i, j]), name="B")
    k = te.reduce_axis((0, 70001), "k")
    C = te.compute((3,), lambda i: te.sum(B[i, k], axis=k), name="C")
    function = te.create_prim_func([A, B, C])
    return function, function.argument_buffers()[1]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The buffers that the exact test was asked about."""
    names: list[str] = []
    exact = comparing._Comparison._compare

    def compare(self: comparing._Comparison, buffer: Buffer) -> object:
        names.append(buffer.name)
        return exact(self, buffer)

    monkeypatch.setattr(comparing._Comparison, "_compare", compare)
    return names


def test_a_reduction_is_scheduled_beside_threads_without_a_search_of_what_it_reads(compared: list[str]):
    function, _ = rows_of_a_prime_length()
    sch = tir.Schedule(function)
    block, thread = sch.split(sch.fuse(*sch.get_loops("B")), [None, 256])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    compared.clear()
    row, _ = sch.get_loops("C")
    sch.bind(row, "blockIdx.x")
    _, inner = sch.split(sch.get_loops("C")[1], [None, 128])
    sch.bind(inner, "threadIdx.x")
    assert "B" not in compared and "A" not in compared
    with pytest.raises(ScheduleError, match=r"reverse_compute_at|compute_at"):
        sch.compute_at("B", sch.get_loops("C")[0])  # whose statement is another one then


def test_rules_take_no_time_over_rows_of_a_prime_length(compared: list[str]):
    """This took minutes: isl over the quotients of a fused loop by 70001."""
    function, _ = rows_of_a_prime_length()
    lw.autosched.apply(function, "cuda -arch=sm_90")
    assert "B" not in compared
