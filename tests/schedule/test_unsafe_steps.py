"""unsafe_set_dtype, unsafe_hide_buffer_access: steps that nobody proves say so."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright import tir
from loopwright.evaluator import evaluate
from loopwright.ir.verifier import verify
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.rewrite.allocations import NotOurMemory
from tests.schedule.steps import chain, check_replay, matmul, refused


@pytest.mark.parametrize("dtype", ["float16", "float64", "bfloat16"])
def test_a_buffer_of_another_type(dtype):
    before = chain()
    sch = tir.Schedule(before)
    sch.unsafe_set_dtype("D", 0, dtype)
    assert not sch.is_proved and not sch.trace.is_proved
    assert str(sch.trace).startswith("# unproved")
    verify(sch.mod["main"])
    assert sch.get(sch.get_block("E")).reads[0].buffer.dtype == dtype
    arrays = [np.random.default_rng(0).standard_normal(s).astype("float32") for s in [(4, 3), (3, 5), (5, 2)]]
    one, other = np.zeros((4, 2), "float32"), np.zeros((4, 2), "float32")
    evaluate(before, *arrays, one)
    evaluate(sch.mod["main"], *arrays, other)
    # D is rounded at each of 3 updates, then exp: |D| < 8 here, so a relative error of at most 8 * 3 units
    unit = {"float16": 2**-11, "bfloat16": 2**-8, "float64": 2**-24}[dtype]
    assert np.all(np.abs(one - other) <= np.abs(arrays[2]).sum() * np.exp(8.0) * 24 * unit)
    assert not loopwright.build(sch.mod).is_proved
    check_replay(sch, before)


def test_the_same_type_changes_nothing():
    sch = tir.Schedule(chain())
    before = sch.mod["main"]
    sch.unsafe_set_dtype("D", "D", "float32")
    assert sch.get(sch.get_block("D")).writes[0].buffer.dtype == before.argument_buffers()[0].dtype


def test_hidden_regions():
    before = matmul()
    sch = tir.Schedule(before)
    sch.unsafe_hide_buffer_access("C", "read", [1])
    assert [region.buffer.name for region in sch.get(sch.get_block("C")).reads] == ["A"]
    sch.unsafe_hide_buffer_access("C", "write", [0])
    assert not sch.get(sch.get_block("C")).writes
    assert not sch.is_proved
    sch.undo()
    sch.undo()
    assert sch.is_proved


def test_what_is_refused():
    sch = tir.Schedule(matmul())
    refused(sch, NotOurMemory, "C is an argument", "unsafe_set_dtype", "C", 0, "float16")
    refused(sch, BadStepArgument, "buf_type is 'x'", "unsafe_hide_buffer_access", "C", "x", [0])
    refused(
        sch, BadStepArgument, "reads 2 buffers, so there is none at 2", "unsafe_hide_buffer_access", "C", "read", [2]
    )
    other = tir.Schedule(chain())
    refused(other, BadStepArgument, "unsafe_set_dtype: ", "unsafe_set_dtype", "D", 0, "float17x")
