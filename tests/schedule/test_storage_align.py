"""storage_align: strides of an allocated buffer are padded."""

from __future__ import annotations

import pytest

import loopwright
from loopwright import tir
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.rewrite.allocations import NotOurMemory
from loopwright.schedule.rewrite.buffers import NoSuchBuffer
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
    sch.unannotate(sch.get_block("D"), "buffer_dim_align")
    sch.annotate(sch.get_block("D"), "buffer_dim_align", [["a", 0, 8, 1]])
    refused(sch, BadStepArgument, r"the annotation buffer_dim_align of block 'D'", "storage_align", "D", 0, 0, 8, 0)


def asked(sch) -> dict[str, object]:
    """The blocks that ask for an alignment, and what they ask for."""
    blocks = [sch.get(block) for block in sch.get_child_blocks(sch.get_block("root"))]
    key = "buffer_dim_align"
    return {block.name_hint: block.annotations[key] for block in blocks if key in block.annotations}


def built(sch, before) -> None:
    check(sch, before)
    loopwright.build(sch.mod)


@pytest.mark.parametrize(
    ("step", "arguments", "name"),
    [
        ("cache_write", (0, "local"), "D_local"),
        ("reindex", (("write", 0),), "D_reindex"),
        ("reindex_cache_write", (0, "local", lambda i, j, r: (i * 5 + j,)), "D_local"),
    ],
)
def test_it_goes_to_the_block_that_writes_the_buffer_now(step, arguments, name):
    before = chain()
    sch = tir.Schedule(before)
    sch.storage_align("D", 0, 1, 8, 1)
    getattr(sch, step)("D", *arguments)
    assert asked(sch) == {name: [[0, 1, 8, 1]]}
    built(sch, before)


def test_it_is_dropped_with_the_dimension_that_it_is_about():
    before = chain()
    sch = tir.Schedule(before)
    sch.annotate(sch.get_block("D"), "buffer_dim_align", [[0, 1, 8, 1]])
    sch.transform_layout("D", ("write", 0), lambda i, j: (i * 5 + j,))
    assert asked(sch) == {}
    built(sch, before)


def test_it_stays_where_the_buffer_is_replaced_by_one_in_other_memory():
    before = chain()
    sch = tir.Schedule(before)
    sch.storage_align("D", 0, 0, 8, 1)
    sch.set_scope("D", 0, "local")
    assert asked(sch) == {"D": [[0, 0, 8, 1]]}
    assert strides(sch) == [9, 1]
    built(sch, before)


def test_partial_sums_do_not_ask_for_the_alignment_of_the_whole():
    sch = tir.Schedule(chain())
    sch.storage_align("D", 0, 1, 8, 1)
    sch.rfactor(sch.get_loops("D")[2], 0)
    assert asked(sch) == {"D": [[0, 1, 8, 1]]}
    loopwright.build(sch.mod)


def test_what_a_user_takes_away_stays_away():
    sch = tir.Schedule(chain())
    sch.storage_align("D", 0, 1, 8, 1)
    sch.unannotate(sch.get_block("D"), "buffer_dim_align")
    sch.cache_write("D", 0, "local")
    assert asked(sch) == {}
