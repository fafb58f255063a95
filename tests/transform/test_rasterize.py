"""rasterize: blocks of a kernel compute tiles in groups of rows, each of them once."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright.script import from_source
from loopwright.transform.parts.rasterize import NotRasterized

EMULATED = "cuda -model=emulated"


def program(tiles: int, order: object, resident: int = 0):
    """Each block takes a ticket, and says at its tile which one: blocks start one after the other."""
    stay = f", 'resident_blocks': {resident}" if resident else ""
    return from_source(f"""
@T.prim_func
def main(counter: T.Buffer(1, "int32"), turn: T.Buffer({tiles}, "int32")):
    ticket = T.alloc_buffer(1, "int32", scope="shared")
    for b in T.thread_binding({tiles}, thread="blockIdx.x", annotations={{"rasterize": {order}{stay}}}):
        for i in T.thread_binding(32, thread="threadIdx.x"):
            if i == 0:
                ticket[0] = T.take_ticket(T.address_of(counter[0]))
        for i in T.thread_binding(32, thread="threadIdx.x"):
            if i == 0:
                turn[b] = ticket[0]
""")


def turns(rows: int, columns: int, group: int, times: int = 1, resident: int = 0) -> np.ndarray:
    module = lw.build(program(times * rows * columns, [rows, columns, group], resident), target=EMULATED)
    result, counter = np.full(times * rows * columns, -1, "int32"), np.zeros(1, "int32")
    module(counter, result)
    return result.reshape(times * rows, columns)


def test_a_group_of_rows_is_walked_column_by_column():
    assert turns(4, 3, 2).tolist() == [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]]


def test_the_last_group_may_have_fewer_rows():
    assert turns(5, 2, 3).tolist() == [[0, 3], [1, 4], [2, 5], [6, 8], [7, 9]]


def test_batches_follow_each_other():
    first = turns(2, 3, 2)
    assert turns(2, 3, 2, times=2).tolist() == [*first.tolist(), *(first + 6).tolist()]


def test_blocks_that_stay_compute_the_same_tiles():
    result = turns(5, 3, 2, times=2, resident=4)
    assert sorted(result.ravel().tolist()) == list(range(30))


@pytest.mark.parametrize(
    ("tiles", "order", "message"),
    [
        (12, [4, 3], r"\[4, 3\] is not three positive numbers"),
        (12, [4, 3, 0], r"\[4, 3, 0\] is not three positive numbers"),
        (13, [4, 3, 2], "its 13 iterations are no multiple of 4 × 3 tiles"),
    ],
)
def test_orders_that_a_loop_cannot_have(tiles, order, message):
    with pytest.raises(NotRasterized, match=message):
        lw.build(program(tiles, order), target=EMULATED)


def test_other_loops_than_those_over_blocks_have_no_order():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((2, 32))):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for i in T.thread_binding(32, thread="threadIdx.x", annotations={"rasterize": [4, 8, 2]}):
            A[b, i] = T.float32(0)
""")
    with pytest.raises(NotRasterized, match="it is no loop over a constant number of blocks"):
        lw.build(func, target=EMULATED)
