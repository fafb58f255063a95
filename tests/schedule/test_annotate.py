"""annotate, unannotate: notes on blocks and loops."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.schedule.primitives.compute.annotate import BadAnnotation, NoSuchAnnotation
from loopwright.script import tir as T
from tests.schedule.steps import check, refused


@T.prim_func
def copy(A: T.Buffer(8), B: T.Buffer(8)):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]


@pytest.mark.parametrize("value", ["text", 3, 2.5, True, [1, "two", [3.0]], {"a": 1, "b": [2, "c"]}])
def test_annotate_a_loop_and_a_block(value):
    sch = tir.Schedule(copy)
    block, (loop,) = sch.get_block("B"), sch.get_loops("B")
    sch.annotate(loop, "key", value)
    sch.annotate(block, "key", value)
    assert sch.get(loop).annotations == {"key": value}
    assert sch.get(block).annotations == {"key": value}
    check(sch, copy)
    sch.unannotate(loop, "key")
    sch.unannotate(block, "key")
    check(sch, copy, copy)


def test_annotate_keeps_what_is_there():
    sch = tir.Schedule(copy)
    (loop,) = sch.get_loops("B")
    sch.annotate(loop, "key", 1)
    before = sch.mod["main"]
    sch.annotate(loop, "key", 2)
    assert sch.mod["main"] is before
    assert sch.get(loop).annotations == {"key": 1}
    check(sch, copy)


def test_annotate_a_sampled_number():
    sch = tir.Schedule(copy, seed=3)
    (loop,) = sch.get_loops("B")
    number = sch.sample_categorical([8, 16], [0.5, 0.5])
    sch.annotate(loop, "unroll", number)
    assert sch.get(loop).annotations == {"unroll": int(number)}
    assert sch.trace.as_python()[-1].endswith("ann_val=v2)")
    check(sch, copy)


def test_annotate_refuses():
    sch = tir.Schedule(copy)
    (loop,) = sch.get_loops("B")
    refused(sch, BadAnnotation, "the note 'key' is .* of type object", "annotate", loop, "key", object())
    refused(sch, BadAnnotation, "the key 3 is of type int, not a text", "annotate", loop, 3, 1)
    with pytest.raises(TypeError):
        sch.annotate(loop, "key", {1: 2})
    sch.annotate(loop, "here", 1)
    refused(sch, NoSuchAnnotation, "there is no note 'key'; there are: here", "unannotate", loop, "key")
    with pytest.raises(IndexError):
        sch.unannotate(loop, "key")
