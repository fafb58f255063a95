"""Inputs that are made up: seeded, in range, and in memory that is watched."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.script import tir as T
from loopwright.tune.measure import UnmeasurableTask, WrongArguments, given_arguments, make_arguments
from loopwright.tune.measure.integer_limits import integer_limits
from tests.tune.measure.programs import add_one, task_of


@T.prim_func
def many_types(
    A: T.Buffer((5, 7), "float32"),
    H: T.Buffer((9,), "float16"),
    Q: T.Buffer((300,), "int8"),
    U: T.Buffer((300,), "uint8"),
    N: T.Buffer((30,), "int64"),
    M: T.Buffer((50,), "bool"),
    alpha: T.float32,
    count: T.int32,
    B: T.Buffer((5, 7), "float32"),
):
    for i, j in T.grid(5, 7):
        B[i, j] = A[i, j] * alpha


def test_numbers_suit_their_types():
    arguments = make_arguments(task_of(many_types), seed=3)
    a, h, q, u, n, m, alpha, count, b = arguments.values
    assert [array.dtype.name for array in (a, h, q, u, n, m, b)] == (
        ["float32", "float16", "int8", "uint8", "int64", "bool", "float32"]
    )
    assert (alpha, count, arguments.written) == (0.5, 1, (8,))
    assert q.min() < -90 and q.max() > 90 and u.max() > 200 and 1 <= n.min() <= n.max() <= 100
    assert 0 not in q and 0 not in u and set(m.tolist()) == {False, True}
    assert 0.01 < a.std() < 1 and (a < 0).any() and len(np.unique(b)) > 1


def test_a_seed_says_all():
    one, again, other = [make_arguments(task_of(many_types), seed).values for seed in (1, 1, 2)]
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not np.array_equal(one[0], other[0])
    assert (make_arguments(task_of(many_types), 1, positive=True).values[0] > 0).all()


@T.prim_func
def gather(A: T.Buffer((10, 4), "float32"), rows: T.Buffer((200,), "int32"), B: T.Buffer((200, 4), "float32")):
    for i, j in T.grid(200, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[rows[vi], vj]


@T.prim_func
def gather_of_a_copy(A: T.Buffer((10,), "float32"), rows: T.Buffer((200,), "int64"), B: T.Buffer((200,), "float32")):
    copy = T.alloc_buffer((200,), "int64")
    for i in range(200):
        copy[i] = rows[i]
    for i in range(200):
        B[i] = A[copy[i]]


@T.prim_func
def turns(A: T.Buffer((16,), "float32"), count: T.Buffer((1,), "int32"), B: T.Buffer((16,), "float32")):
    for i in range(count[0]):
        B[i] = A[i]


@T.prim_func
def shifts(A: T.Buffer((16,), "int32"), by: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        B[i] = T.shift_left(A[i], by[i])


@pytest.mark.parametrize(("program", "most"), [(gather, 10), (gather_of_a_copy, 10), (turns, 16), (shifts, 8)])
def test_integers_that_index_are_in_range(program, most):
    param = program.buffer_map[program.params[1]]
    assert integer_limits(program)[param] == most
    values = make_arguments(task_of(program), seed=0).values[1]
    assert values.min() >= 0 and values.max() < most and (values.size == 1 or values.max() == most - 1)


def test_written_arrays_are_copies_and_others_are_shared():
    arguments = make_arguments(task_of(add_one), seed=0)
    one, other = arguments.fresh(), arguments.fresh()
    assert one.values[0] is other.values[0] and one.values[1] is not other.values[1]
    np.testing.assert_array_equal(one.outputs[0], arguments.values[1])
    assert one.values[0].ctypes.data % 4096 == one.values[1].ctypes.data % 4096 == 0


def test_writes_beside_an_array_are_seen():
    arguments = make_arguments(task_of(add_one), seed=0)
    call = arguments.fresh()
    call.values[1][:] = 1
    assert call.damage() is None
    beyond = np.lib.stride_tricks.as_strided(call.values[1], (65,))
    beyond[64] = 0
    assert call.damage() == "memory behind argument 2 was written"
    call = arguments.fresh()
    call.values[0][3] += 1
    assert call.damage() == "argument 1, which is only read, was written"


def test_strides_are_kept():
    @T.prim_func
    def rows(a: T.handle, B: T.Buffer((3, 4), "float32")):
        A = T.match_buffer(a, (3, 4), "float32", strides=[6, 1])
        for i, j in T.grid(3, 4):
            B[i, j] = A[i, j]

    call = make_arguments(task_of(rows), seed=0).fresh()
    assert call.values[0].strides == (24, 4) and call.damage() is None


def test_absolute_values_are_those_of_floats():
    absolute = make_arguments(task_of(many_types), seed=0).absolute().values
    assert (absolute[0] >= 0).all() and (absolute[2] < 0).any()


@T.prim_func
def open_size(a: T.handle, B: T.Buffer((4,), "float32")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    for i in range(4):
        B[i] = A[i]


def test_what_cannot_be_made_up_is_refused():
    with pytest.raises(UnmeasurableTask, match="parameter 'a' of 'a task': the size n is not a number"):
        make_arguments(task_of(open_size), seed=0)


def test_given_arguments_are_checked():
    arguments = given_arguments(task_of(open_size), [np.ones(9, "float32"), np.zeros(4, "float32")])
    assert arguments.written == (1,)
    with pytest.raises(WrongArguments, match="it has 2 parameters, not 1"):
        given_arguments(task_of(open_size), [np.ones(9, "float32")])
    with pytest.raises(WrongArguments, match=r"argument 2 must be float32 of shape \(4\), not float32 of shape \(5,\)"):
        given_arguments(task_of(open_size), [np.ones(9, "float32"), np.zeros(5, "float32")])
    with pytest.raises(WrongArguments, match="argument 1 must be an array, not float"):
        given_arguments(task_of(open_size), [1.0, np.zeros(4, "float32")])
