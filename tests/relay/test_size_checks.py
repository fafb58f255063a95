"""What compiling assumed of open sizes is checked when the model is called; arguments lie at the edge of memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from loopwright import relay, te
from loopwright.relay.size_checks import EqualSizes, graph_checks
from loopwright.runtime.call_errors import SizesDoNotFit
from tests.guarded_arrays import guarded


class Sizes:
    """Size variables by name."""

    def __init__(self):
        self.made = {}

    def __call__(self, name):
        return self.made.setdefault(name, te.size_var(name))


def graph(build, **shapes):
    """A function of parameters whose shapes are numbers and names; `build` takes their variables."""
    sizes = Sizes()
    params = [
        relay.var(name, shape=tuple(sizes(size) if isinstance(size, str) else size for size in shape))
        for name, shape in shapes.items()
    ]
    body = build(*params)
    return relay.IRModule.from_expr(relay.Function(params, body))


def model(build, **shapes):
    return relay.build(graph(build, **shapes), target="llvm")


def numbers(*shape):
    return guarded(np.arange(1, 1 + int(np.prod(shape)), dtype="float32").reshape(shape))


SOME = [0, 1, 2, 3, 5]


def test_a_broadcast_of_two_open_sizes_is_that_of_numpy_or_refused():
    add = model(lambda a, b: a + b, a=("n", 4), b=("m", 4))
    for n, m in itertools.product(SOME, SOME):
        a, b = numbers(n, 4), numbers(m, 4)
        if n == m or 1 in (n, m):
            np.testing.assert_array_equal(add(a, b), a + b)
        else:
            with pytest.raises(SizesDoNotFit, match=rf"axis 0 of input a \(n\) is {n}, axis 0 of input b \(m\) is {m}"):
                add(a, b)


def test_a_large_difference_is_no_crash():
    add = model(lambda a, b: a + b, a=("n", 4), b=("m", 4))
    with pytest.raises(SizesDoNotFit, match=r"\(m\) is 16000000: add needs them equal, or one of them 1"):
        add(np.zeros((2, 4), "float32"), np.zeros((16_000_000, 4), "float32"))


@pytest.mark.parametrize("number", [0, 2, 7])
def test_a_broadcast_against_a_number(number):
    add = model(lambda a, b: a + b, a=("n",), b=(number,))
    for n in (0, 1, 2, 7, 8):
        a, b = numbers(n), numbers(number)
        if n in (1, number):
            np.testing.assert_array_equal(add(a, b), a + b)
        else:
            with pytest.raises(SizesDoNotFit, match=rf"axis 0 of input a \(n\) is {n}, axis 0 of input b is {number}"):
                add(a, b)


@pytest.mark.parametrize("values", [(1, 1), (0, 0), (1, 2)])
def test_a_constant_repeated_to_an_open_size_is_checked_whatever_passes_make_of_it(values):
    def scaled(a):
        of = a.type_annotation.shape
        return a * relay.broadcast_to(relay.const(np.array(values, "float32")), (of[1],))

    for _ in range(2):  # a type that is known already says nothing less
        found = model(scaled, a=("n", "m"))
        np.testing.assert_array_equal(found(numbers(3, 2)), numbers(3, 2) * np.array(values, "float32"))
        for m in (0, 1, 3):
            with pytest.raises(SizesDoNotFit, match=rf"axis 0 of a constant is 2, m is {m}: broadcast_to needs"):
                found(numbers(3, m))


def test_three_open_sizes_and_every_axis():
    where = model(lambda a, b, c: relay.where(a > b, b, c), a=("n", "k"), b=("m", "k"), c=("l", "j"))
    for n, m, l, k, j in itertools.product([0, 1, 2], [1, 2, 3], [1, 2], [1, 3], [1, 3]):
        a, b, c = numbers(n, k), numbers(m, k), numbers(l, j)
        try:
            expected = np.where(a > b, b, c)
        except ValueError:
            with pytest.raises(SizesDoNotFit, match="needs them equal, or one of them 1"):
                where(a, b, c)
            continue
        np.testing.assert_array_equal(where(a, b, c), expected)


def test_a_size_that_was_repeated_is_not_asked_again():
    module = relay.transform.InferType()(graph(lambda a, b: ((a + b) * a + b) * (b + a), a=("n",), b=("m",)))
    assert [str(check.condition) for check in graph_checks(module["main"])] == ["n == m or n == 1 or m == 1"]
    assert str(module["main"].body.checked_type) == "Tensor[(T.Select(m == 1, n, m)), float32]"


def test_what_is_computed_is_named_by_its_operator():
    double = model(lambda a, b: relay.exp(relay.concatenate([a, a], 0)) + b, a=("n",), b=("m",))
    with pytest.raises(SizesDoNotFit, match=r"the result of exp \(n \* 2\) is 6, axis 0 of input b \(m\) is 5: add"):
        double(numbers(3), numbers(5))
    np.testing.assert_array_equal(double(numbers(3) * 0, numbers(6)), numbers(6) + 1)


def test_equal_sizes_of_two_names_are_one_in_kernels():
    product = model(relay.nn.dense, x=("n", "k"), w=(5, "j"))
    np.testing.assert_array_equal(product(numbers(2, 3), numbers(5, 3)), numbers(2, 3) @ numbers(5, 3).T)
    with pytest.raises(SizesDoNotFit, match=r"input x \(k\) is 3, axis 1 of input w \(j\) is 4: nn.dense needs"):
        product(numbers(2, 3), numbers(5, 4))


def test_sizes_that_no_variable_can_be_solved_for_are_one_in_kernels_too():
    both = model(
        lambda a, b: relay.concatenate([relay.concatenate([a, a], 0), relay.concatenate([b, b, b], 0)], 1),
        a=("n", 4),
        b=("m", 5),
    )
    a, b = numbers(3, 4), numbers(2, 5)
    np.testing.assert_array_equal(both(a, b), np.concatenate([np.concatenate([a, a]), np.concatenate([b, b, b])], 1))
    with pytest.raises(SizesDoNotFit, match=r"\(n \* 2\) is 6, axis 0 of the result of concatenate \(m \* 3\) is 9"):
        both(a, numbers(3, 5))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n, m", [(1, 1), (2, 2), (1, 3), (3, 1), (0, 1), (1, 0), (2, 3), (0, 2)])
def test_batches_of_a_product(n, m):
    product = model(lambda a, b: relay.nn.batch_matmul(a, b, transpose_b=False), a=("n", 3, 4), b=("m", 4, 5))
    a, b = numbers(n, 3, 4), numbers(m, 4, 5)
    if n == m or 1 in (n, m):
        np.testing.assert_array_equal(product(a, b), a @ b)
    else:
        with pytest.raises(SizesDoNotFit, match=rf"axis 0 of input a \(n\) is {n}, axis 0 of input b \(m\) is {m}"):
            product(a, b)


def test_reshapes_of_open_sizes():
    rows = model(lambda a: relay.reshape(a, (-1, 4)), a=("n", 6))
    np.testing.assert_array_equal(rows(numbers(2, 6)), numbers(2, 6).reshape(-1, 4))
    assert rows(numbers(0, 6)).shape == (0, 4)
    with pytest.raises(SizesDoNotFit, match="reshape needs the first to be a multiple of the second"):
        rows(numbers(3, 6))
    same = model(lambda a, b: relay.reshape_like(a, b), a=("n", 6), b=("m", "k"))
    np.testing.assert_array_equal(same(numbers(2, 6), numbers(3, 4)), numbers(3, 4))
    with pytest.raises(SizesDoNotFit, match="n \\* 6 is 12, m \\* k is 10: reshape_like needs them equal"):
        same(numbers(2, 6), numbers(2, 5))


def test_windows_that_do_not_fit():
    pool = model(lambda a: relay.nn.max_pool2d(a, pool_size=(3, 3)), a=(1, 2, "h", "w"))
    assert pool(numbers(1, 2, 3, 4)).shape == (1, 2, 1, 2)
    for rows in (2, 1, 0):  # the last two would have results of less than no elements
        with pytest.raises(SizesDoNotFit, match=rf"axis 2 of input a \(h\) is {rows}: nn.max_pool2d needs it at least"):
            pool(numbers(1, 2, rows, 4))


def test_sizes_that_values_decide_are_checked_when_they_are_known():
    sizes = Sizes()
    a, b = relay.var("a", shape=(sizes("n"),)), relay.var("b", shape=(sizes("m"),))
    found = relay.cast(relay.reshape(relay.argwhere(a), (-1,)), "float32")
    run = relay.build(relay.IRModule.from_expr(relay.Function([a, b], relay.Tuple([relay.exp(b), found + b]))))
    values = guarded(np.array([0, 3, 0, 5], "float32"))
    np.testing.assert_array_equal(run(values, numbers(2))[1], [2, 5])
    np.testing.assert_array_equal(run(values, numbers(1))[1], [2, 4])
    np.testing.assert_array_equal(run(values * 0, numbers(1))[1], [])
    with pytest.raises(SizesDoNotFit, match=r"is 2, axis 0 of input b \(m\) is 3"):
        run(values, numbers(3))


def test_a_branch_that_is_not_taken_is_not_checked():
    sizes = Sizes()
    a, b = relay.var("a", shape=(sizes("n"),)), relay.var("b", shape=(sizes("m"),))
    c = relay.var("c", shape=(), dtype="bool")
    body = relay.If(c, relay.sum(a + b), relay.sum(a))
    run = relay.build(relay.IRModule.from_expr(relay.Function([a, b, c], body)))
    assert run(numbers(2), numbers(3), np.array(False)) == 3
    assert run(numbers(2), numbers(2), np.array(True)) == 6
    with pytest.raises(SizesDoNotFit, match=r"\(n\) is 2, axis 0 of input b \(m\) is 3"):
        run(numbers(2), numbers(3), np.array(True))


def test_the_exported_library_checks_in_both_entries(tmp_path):
    import ctypes

    import loopwright

    add = model(lambda a, b: a + b, a=("n", 4), b=("m", 4))
    add.export_library(str(tmp_path / "add.so"))
    loaded = loopwright.load_module(str(tmp_path / "add.so"))
    a, b, out = numbers(2, 4), numbers(3, 4), np.zeros((3, 4), "float32")
    with pytest.raises(SizesDoNotFit, match=r"axis 0 of input a \(n\) is 2, axis 0 of input b \(m\) is 3"):
        loaded["default"](a, b, out)
    plain = ctypes.CDLL(str(tmp_path / "add.so")).loopwright_default
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (a, b, out)]
    assert plain(*pointers, ctypes.c_int32(2), ctypes.c_int32(3)) != 0
    assert plain(*pointers, ctypes.c_int32(1), ctypes.c_int32(3)) == 0
    np.testing.assert_array_equal(out, a[:1] + b)


def test_equal_sizes_stand_for_each_other():
    n, m, k = te.size_var("n"), te.size_var("m"), te.size_var("k")
    equal = EqualSizes([(n, m), (m, k)])
    assert {str(equal.replaced(size)) for size in (n, m, k)} == {"n"}
    equal.add(k, te.const(4))
    assert {str(equal.replaced(size)) for size in (n, m, k)} == {"4"}
    other = EqualSizes([(n * 2, m * 3)])
    assert str(other.replaced(m * 3)) == str(other.replaced(n * 2))
