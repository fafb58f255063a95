"""Graphs of tensors and te schedules as JSON, and pickled."""

from __future__ import annotations

import pickle

import pytest

import loopwright as lw
from loopwright import ir, te, tir


def scheduled():
    n = te.var("n")
    A = te.placeholder((n, 64), name="A")
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((n, 64), lambda i, j: te.exp(A[i, j]) + 1, name="B")
    C = te.compute((n,), lambda i: te.sum(B[i, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], 8)
    s[B].compute_at(s[C], inner)
    s[B].vectorize(B.op.axis[1])
    s[C].pragma(outer, "auto_unroll_max_step", 2)
    return s, [A, C]


def test_a_schedule_comes_back_with_all_that_was_said():
    s, args = scheduled()
    for t in (pickle.loads(pickle.dumps(s)), ir.load_json(ir.save_json(s))):
        own = [t[stage.op].op.output(0) for stage in t.stages if stage.op.name == "A"]
        assert lw.lower(t, [*own, t.outputs[0].output(0)]).script() == lw.lower(s, args).script()


def test_tensors_and_operations_come_back():
    A = te.placeholder((8, 4), name="A")
    state = te.placeholder((8, 4), name="state")
    first = te.compute((1, 4), lambda _, i: A[0, i], name="first")
    step = te.compute((8, 4), lambda t, i: state[t - 1, i] + A[t, i], name="step")
    sums = te.scan(first, step, state, name="sums")

    def body(ins, outs):
        return tir.call_packed("copy", ins[0], outs[0])

    copied = te.extern((8, 4), [sums], body, name="copied")
    loaded = ir.load_json(ir.save_json([A, sums, copied]))
    assert [repr(tensor) for tensor in loaded] == [repr(A), repr(sums), repr(copied)]
    assert loaded[2].op.inputs[0] is loaded[1] and isinstance(loaded[1].op, te.ScanOp)
    assert loaded[1].op.init[0].op.input_tensors == [loaded[0]]


def test_damaged_operations_are_refused():
    text = ir.save_json(te.placeholder((4,), name="A"))
    with pytest.raises(ir.json_form.BadJson, match="the program is damaged"):
        ir.load_json(text.replace('"te.Tensor",{"op":{"@":', '"te.Tensor",{"op":{"list":[],"@":'))
