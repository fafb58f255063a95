"""set_axis_separator: the dimensions of a buffer are grouped into those of physical memory."""

from __future__ import annotations

import pytest

import loopwright
from loopwright import te, tir
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.rewrite.buffers import NoSuchBuffer
from loopwright.script import tir as T
from tests.schedule.steps import chain, check, matmul, refused


def test_an_allocated_buffer():
    before = chain()
    sch = tir.Schedule(before)
    sch.set_axis_separator("D", ("write", 0), [1])
    (buffer,) = [region.buffer for region in sch.get(sch.get_block("D")).writes]
    assert buffer.axis_separators == (1,)
    assert sch.get(sch.get_block("E")).reads[0].buffer is buffer
    check(sch, before)
    loopwright.build(sch.mod)


def test_an_argument_changes_in_the_signature():
    before = matmul()
    sch = tir.Schedule(before)
    sch.set_axis_separator("C", "A", [1])
    assert sch.mod["main"].argument_buffers()[0].axis_separators == (1,)
    check(sch, before)


@pytest.mark.parametrize("cuts", [[], [0], [2], [0, 1, 2]])
def test_every_place(cuts):
    before = matmul()
    sch = tir.Schedule(before)
    sch.set_axis_separator("C", "C", cuts)
    check(sch, before)


@T.prim_func
def matched(A: T.Buffer((4, 4)), B: T.Buffer((4, 4))):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi, 0:4])
            T.writes(B[vi, 0:4])
            row = T.match_buffer(A[vi, 0:4], (4,))
            for j in range(4):
                B[vi, j] = row[j]


def test_what_is_refused():
    sch = tir.Schedule(matmul())
    for cuts in ([3], [-1], [1, 1], [2, 1], ["x"], [True]):
        refused(
            sch, BadStepArgument, "are no places to cut the 2 dimensions of C", "set_axis_separator", "C", "C", cuts
        )
    refused(sch, NoSuchBuffer, "writes 1 buffers, so there is none at 4", "set_axis_separator", "C", ("write", 4), [1])


def test_sub_buffers_follow():
    sch = tir.Schedule(matched)
    sch.transform_layout("B", "A", lambda i, j: (i, te.AXIS_SEPARATOR, j))
    (match,) = sch.get(sch.get_block("B")).match_buffers
    assert match.source.buffer.axis_separators == match.buffer.axis_separators == (1,)
    check(sch, matched)


def test_a_layout_may_say_where():
    before = chain()
    sch = tir.Schedule(before)
    sch.transform_layout("D", "D", lambda m, l: (l, te.AXIS_SEPARATOR, m))
    assert sch.get(sch.get_block("D")).writes[0].buffer.axis_separators == (1,)
    check(sch, before)
