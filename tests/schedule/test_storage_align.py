"""storage_align: strides of an allocated buffer are padded."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.schedule.allocations import NotOurMemory
from loopwright.schedule.buffers import NoSuchBuffer
from loopwright.schedule.errors import BadStepArgument
from tests.schedule.steps import chain, check, refused


def strides(sch):
    return [int(stride) for stride in sch.get(sch.get_block("D")).writes[0].buffer.strides]


@pytest.mark.parametrize(
    ("factor", "offset", "stride"), [(1, 0, 5), (8, 0, 8), (8, 1, 9), (4, 3, 7), (5, 0, 5), (16, 15, 15)]
)
def test_the_stride_is_the_offset_modulo_the_factor(factor, offset, stride):
    before = chain()
    sch = tir.Schedule(before)
    sch.storage_align("D", 0, 0, factor, offset)
    assert strides(sch) == [stride, 1]
    assert sch.get(sch.get_block("D")).annotations["buffer_dim_align"] == [[0, 0, factor, offset]]
    check(sch, before)


def test_asking_again_replaces_the_wish_for_that_axis():
    before = chain()
    sch = tir.Schedule(before)
    sch.storage_align("D", 0, 0, 8, 1)
    sch.storage_align("D", 0, -2, 16, 2)
    assert strides(sch) == [18, 1]
    sch.storage_align("D", 0, 1, 2, 0)
    assert strides(sch) == [18, 2]
    check(sch, before)


def test_wrong_arguments_are_refused():
    sch = tir.Schedule(chain())
    refused(sch, BadStepArgument, r"axis is 2, but D has 2 dimensions", "storage_align", "D", 0, 2, 8, 0)
    refused(sch, BadStepArgument, r"factor is 0", "storage_align", "D", 0, 0, 0, 0)
    refused(sch, NoSuchBuffer, r"writes 1 buffers, so there is none at 1", "storage_align", "D", 1, 0, 8, 0)
    refused(sch, NotOurMemory, r"F is an argument", "storage_align", "F", 0, 0, 8, 0)
    sch.annotate(sch.get_block("D"), "buffer_dim_align", "odd")
    refused(sch, BadStepArgument, r"the annotation buffer_dim_align of block 'D'", "storage_align", "D", 0, 0, 8, 0)
