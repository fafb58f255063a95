"""Indices that come from data: wrong ones end the call with an error, right ones find their elements.

Arguments lie at the edge of memory (`guarded_arrays.py`): a read beyond them would end the test run.
"""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay, te
from loopwright.model import c_module
from loopwright.relay.value_ranges import value_range
from loopwright.runtime.call_errors import IndexOutOfRange, SizesDoNotFit
from tests.guarded_arrays import guarded

FAR = [2**31, 2**32 + 1, -(2**31) - 1, 2**62, -(2**63)]


def model(params, body):
    return relay.build(relay.IRModule.from_expr(relay.Function(params, body)), target="llvm")


def interpreted(params, body):
    return relay.create_executor("debug", relay.IRModule.from_expr(relay.Function(params, body))).evaluate()


def data(*shape):
    return guarded(np.arange(1, 1 + int(np.prod(shape)), dtype="float32").reshape(shape))


def both(params, body):
    return [model(params, body), interpreted(params, body)]


@pytest.mark.parametrize("rows", [3, "n"])
def test_gather(rows):
    x = relay.var("x", shape=(te.size_var(rows) if isinstance(rows, str) else rows, 4))
    i = relay.var("i", shape=(te.size_var("m"), 4), dtype="int64")
    for run in both([x, i], relay.gather(x, 0, i)):
        values = data(3, 4)
        right = guarded(np.array([[0, 1, 2, 0], [2, 2, 1, 0]]))
        np.testing.assert_array_equal(run(values, right), np.take_along_axis(values, right, 0))
        assert run(values, guarded(np.zeros((0, 4), "int64"))).shape == (0, 4)
        for wrong in (3, -1, *FAR):
            with pytest.raises(IndexOutOfRange, match=rf"index (is )?{wrong}, and axis 0 of .*3"):
                run(values, guarded(np.array([[0, 1, wrong, 0]])))


def test_gather_says_which_tensors_and_which_operator():
    x, i = relay.var("x", shape=(3, 4)), relay.var("i", shape=(1, 4), dtype="int64")
    run = model([x, i], relay.gather(x, 0, i))
    with pytest.raises(IndexOutOfRange, match="input i holds the index 7, and axis 0 of input x is 3: gather has no"):
        run(data(3, 4), np.full((1, 4), 7))
    with pytest.raises(IndexOutOfRange, match="input i holds the index -7, and axis 0 of input x is 3: gather counts"):
        run(data(3, 4), np.full((1, 4), -7))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "uint64"])
def test_each_entry_of_an_index_tuple_has_its_axis(dtype):
    x, i = relay.var("x", shape=(3, 5)), relay.var("i", shape=(2, te.size_var("m")), dtype=dtype)
    for run in both([x, i], relay.gather_nd(x, i)):
        values = data(3, 5)
        np.testing.assert_array_equal(run(values, guarded(np.array([[0, 2], [4, 3]], dtype))), [5, 14])
        for wrong in ([[3], [0]], [[0], [5]], [[0], [200]]):
            with pytest.raises(IndexOutOfRange, match=r"axis [01] of (input x is|the data has size) [35]"):
                run(values, guarded(np.array(wrong, dtype)))


def test_numpy_indexing_counts_from_the_end():
    x = relay.var("x", shape=(te.size_var("n"), 5))
    i, j = relay.var("i", shape=(2, 1), dtype="int64"), relay.var("j", shape=(3,), dtype="int32")
    for run in both([x, i, j], relay.adv_index([x, i, j])):
        values = data(4, 5)
        rows, columns = guarded(np.array([[-4], [3]])), guarded(np.array([0, -5, 4], "int32"))
        np.testing.assert_array_equal(run(values, rows, columns), values[rows, columns])
        for wrong in (4, -5):
            with pytest.raises(IndexOutOfRange, match=rf"index (is )?{wrong}"):
                run(values, np.array([[wrong], [0]]), columns)
        with pytest.raises(IndexOutOfRange, match="-6"):
            run(values, rows, np.array([0, -6, 0], "int32"))


def test_take_keeps_its_modes():
    x, i = relay.var("x", shape=(te.size_var("n"),)), relay.var("i", shape=(te.size_var("m"),), dtype="int64")
    values, wrong = data(3), guarded(np.array([7, -9, 1]))
    np.testing.assert_array_equal(model([x, i], relay.take(x, i, axis=0))(values, wrong), [3, 1, 2])
    np.testing.assert_array_equal(model([x, i], relay.take(x, i, axis=0, mode="wrap"))(values, wrong), [2, 1, 2])
    for body in (relay.take(x, i, axis=0, mode="fast"), relay.take(x, i, mode="fast")):
        for run in both([x, i], body):
            np.testing.assert_array_equal(run(values, np.array([2, 0])), [3, 1])
            with pytest.raises(IndexOutOfRange, match="7"):
                run(values, np.abs(wrong[:1]))
    # There is nothing to take from nothing, whatever the mode.
    for mode in ("clip", "wrap", "fast"):
        with pytest.raises((SizesDoNotFit, IndexOutOfRange), match="input x"):
            model([x, i], relay.take(x, i, axis=0, mode=mode))(data(0), wrong)
        assert model([x, i], relay.take(x, i, axis=0, mode=mode))(data(0), wrong[:0]).shape == (0,)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_checked_indices_count_from_the_end_and_are_looked_at_once(dtype):
    x, i = relay.var("x", shape=(te.size_var("n"), 2)), relay.var("i", shape=(te.size_var("m"),), dtype=dtype)
    body = relay.take(x, relay.checked_indices(i, x, (0,)), axis=0, mode="fast")
    values = data(200, 2)
    for run in both([x, i], body):
        right = guarded(np.array([0, -1, -100, 100], dtype))
        np.testing.assert_array_equal(run(values, right), values[right.astype("int64")])
    run = model([x, i], body)
    assert [launch.name for launch in run.program.launches()] == [
        "checked_indices + take: the range of its indices",
        "checked_indices + take",
    ]
    with pytest.raises(IndexOutOfRange, match="counts negative indices from its end, and no farther"):
        run(data(100, 2), guarded(np.array([-101], dtype)))


def test_checked_tuples():
    x, i = relay.var("x", shape=(te.size_var("n"), 4)), relay.var("i", shape=(te.size_var("m"), 2), dtype="int64")
    checked = relay.checked_indices(i, x, (0, 1), tuples=True)
    for run in both([x, i], relay.gather_nd(x, relay.transpose(checked, (1, 0)))):
        values = data(3, 4)
        np.testing.assert_array_equal(run(values, guarded(np.array([[0, -1], [-3, 2], [2, 3]]))), [4, 3, 12])
        for wrong in ([3, 0], [0, 4], [-4, 0], [0, -5]):
            with pytest.raises(IndexOutOfRange, match=r"axis [01] of"):
                run(values, guarded(np.array([wrong])))


def test_scatter_with_checked_indices():
    x, i = relay.var("x", shape=(5,)), relay.var("i", shape=(2,), dtype="int64")
    u = relay.var("u", shape=(2,))
    for run in both([x, i, u], relay.scatter_elements(x, relay.checked_indices(i, x, (0,)), u)):
        np.testing.assert_array_equal(run(data(5), guarded(np.array([-1, 0])), data(2)), [2, 2, 3, 4, 1])
        for wrong in (5, -6, 2**32 + 1):
            with pytest.raises(IndexOutOfRange, match=rf"{wrong}, and axis 0 of"):
                run(data(5), np.array([0, wrong]), data(2))


def test_constant_indices_become_checks_of_sizes():
    x = relay.var("x", shape=(te.size_var("n"), 3))
    last = model([x], relay.take(x, relay.checked_indices(relay.const(np.array([-2, 1])), x, (0,)), 0, mode="fast"))
    assert len(last.program.launches()) == 1
    np.testing.assert_array_equal(last(data(2, 3)), data(2, 3))
    with pytest.raises(IndexOutOfRange, match=r"a constant holds the index -2, and axis 0 of input x is 1"):
        last(data(1, 3))


def test_indices_that_are_clipped_are_not_looked_at():
    x, i = relay.var("x", shape=(7,)), relay.var("i", shape=(te.size_var("m"),), dtype="int64")
    clipped = relay.clip(i, 0, 6)
    run = model([x, i], relay.take(x, clipped, axis=0, mode="fast"))
    assert len(run.program.launches()) == 1
    np.testing.assert_array_equal(run(data(7), np.array([100, -5, 3])), [7, 1, 4])


def test_ranges_of_values():
    f = relay.var("f", shape=(4,))
    row, column = relay.clip(relay.floor(f), 0, 4), relay.clip(f, 0, 6)
    at = relay.cast(row * relay.const(7.0) + column, "int64")
    typed = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([f], at)))["main"].body
    assert value_range(typed) == (0, 34)
    narrow = relay.cast(row * relay.const(70.0), "int8")
    typed = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([f], narrow)))["main"].body
    assert value_range(typed) == (-128, 127)  # whatever is cut off
    wide = relay.cast(row * relay.const(7e9), "int32")
    typed = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([f], wide)))["main"].body
    assert value_range(typed) is None
    assert value_range(f) is None


@pytest.mark.parametrize(
    ("dtype", "rows", "looks"),
    [("uint8", 256, 0), ("uint8", 255, 1), ("int8", 256, 1), ("uint16", 256, 1)],
)
def test_bytes_are_looked_up_without_a_check(dtype, rows, looks):
    x, i = relay.var("x", shape=(rows,)), relay.var("i", shape=(6,), dtype=dtype)
    run = model([x, i], relay.take(x, relay.checked_indices(relay.cast(i, "int32"), x, (0,)), axis=0, mode="fast"))
    assert len(run.program.launches()) == 1 + looks
    at = np.array([0, 1, 5, 100, 127, 254 if dtype[0] == "u" else -1]).astype(dtype)
    np.testing.assert_array_equal(run(data(rows), at), data(rows)[at.astype("int32")])


def test_losses_look_at_their_targets():
    x, t = relay.var("x", shape=(te.size_var("n"), 3)), relay.var("t", shape=(te.size_var("n"),), dtype="int32")
    w = relay.const(np.ones(3, "float32"))
    run = model([x, t], relay.nn.nll_loss(x, t, w, reduction="sum", ignore_index=-100))
    assert run(data(3, 3), guarded(np.array([0, -100, 2], "int32"))) == -(1 + 9)
    with pytest.raises(IndexOutOfRange, match="input t holds the index 3, and axis 1 of input x is 3"):
        run(data(1, 3), np.array([3], "int32"))


@pytest.mark.parametrize("wrong", ["column", "row"])
def test_sparse_matrices_look_at_their_indices(wrong):
    x = relay.var("x", shape=(2, te.size_var("k")))
    values = relay.var("values", shape=(3,))
    columns, rows = relay.var("columns", shape=(3,), dtype="int32"), relay.var("rows", shape=(3,), dtype="int32")
    run = model([x, values, columns, rows], relay.nn.sparse_dense(x, (values, columns, rows)))
    given = [data(2, 4), data(3), guarded(np.array([0, 3, 1], "int32")), guarded(np.array([0, 1, 3], "int32"))]
    np.testing.assert_array_equal(run(*given), [[1, 14], [5, 34]])
    given[2 if wrong == "column" else 3][-1] = 4
    with pytest.raises(IndexOutOfRange, match=r"a sparse matrix: the (column of a value|end of a row) is 4"):
        run(*given)


def test_branches_check_what_they_run():
    x, i = relay.var("x", shape=(3,)), relay.var("i", shape=(2,), dtype="int64")
    c = relay.var("c", shape=(), dtype="bool")
    run = model([x, i, c], relay.If(c, relay.gather(x, 0, i), relay.zeros((2,), "float32")))
    wrong = np.array([0, 9])
    np.testing.assert_array_equal(run(data(3), wrong, np.array(False)), [0, 0])
    with pytest.raises(IndexOutOfRange, match="9"):
        run(data(3), wrong, np.array(True))


def test_two_users_of_the_same_indices_look_once():
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(5,))
    i = relay.var("i", shape=(2,), dtype="int64")
    run = model([x, y, i], relay.Tuple([relay.gather(x, 0, i), relay.gather(y, 0, i)]))
    assert sum("range" in launch.name for launch in run.program.launches()) == 1
    assert [list(one) for one in run(data(3), data(5), np.array([0, 2]))] == [[1, 3], [1, 3]]
    with pytest.raises(IndexOutOfRange, match="axis 0 of input x is 3"):
        run(data(3), data(5), np.array([0, 4]))


def test_c_source_checks_too():
    x, i = relay.var("x", shape=(3,)), relay.var("i", shape=(2,), dtype="int64")
    run = model([x, i], relay.gather(x, 0, i))
    source = c_module(run.program).get_source()
    assert "holds the index" in source
