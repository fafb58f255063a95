"""The order of operations: each once, after what it reads, whatever the shape of the graph."""

from __future__ import annotations

from loopwright import te
from loopwright.te.order import dependencies, in_order


def names(roots):
    return [op.name for op in in_order([tensor.op for tensor in roots], dependencies)]


def next_of(tensor, name):
    return te.compute((4,), lambda i: tensor[i] + 1, name=name)


def test_what_two_read_comes_once_and_first():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    C = te.compute((4,), lambda i: B[i] * 2, name="C")
    D = te.compute((4,), lambda i: C[i] + B[i], name="D")
    assert names([D]) == ["A", "B", "C", "D"]
    assert names([B, D, B]) == ["A", "B", "C", "D"]
    assert names([]) == []


def test_a_scan_stands_for_all_that_it_computes_step_by_step():
    X = te.placeholder((5, 3), name="X")
    state = te.placeholder((5, 3), name="state")
    init = te.compute((1, 3), lambda _, i: X[0, i], name="init")
    update = te.compute((5, 3), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    S = te.scan(init, update, state, inputs=[X], name="S")
    assert names([S]) == ["X", "init", "S"]


def test_chains_may_be_longer_than_the_stack_of_python():
    tensor = te.placeholder((4,), name="A")
    for k in range(3000):
        tensor = next_of(tensor, f"B{k}")
    assert len(names([tensor])) == 3001
