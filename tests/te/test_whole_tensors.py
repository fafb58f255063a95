"""Operators on whole tensors."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest

import loopwright
from loopwright import te, tir, topi
from loopwright.arith import Analyzer
from loopwright.ir import substitute
from loopwright.ir.intrinsics import maximum
from loopwright.runtime.call_errors import SizesDoNotFit
from loopwright.te.assumed_sizes import assume_broadcast, broadcast_size, collected


def run(tensor, *inputs):
    """The tensor's values, for inputs given as (placeholder, array)."""
    out = np.empty([int(dim) for dim in tensor.shape], str(tensor.dtype))
    loopwright.build(te.create_prim_func([*[one for one, _ in inputs], tensor]))(*[array for _, array in inputs], out)
    return out


def values(shape, dtype):
    random = np.random.default_rng(0)
    made = random.uniform(1, 9, shape) if dtype.startswith("float") else random.integers(1, 9, shape)
    return made.astype(dtype)


@pytest.mark.parametrize("function", [operator.add, operator.sub, operator.mul, operator.truediv])
@pytest.mark.parametrize(
    ("one", "other"), [((4, 3), (4, 3)), ((4, 1), (3,)), ((3,), (2, 4, 3)), ((1,), (5,)), ((0, 3), (3,))]
)
def test_two_tensors(function, one, other):
    a, b = te.placeholder(one, name="A"), te.placeholder(other, name="B")
    made = function(a, b)
    assert made.op.tag == "broadcast"
    x, y = values(one, "float32"), values(other, "float32")
    np.testing.assert_array_equal(run(made, (a, x), (b, y)), function(x, y))


@pytest.mark.parametrize(
    "function",
    [
        lambda a: a + 2,
        lambda a: 2 - a,
        lambda a: a * a - 3 * a,
        lambda a: -a,
        lambda a: abs(a - 5),
        lambda a: a // 3,
        lambda a: 100 // a,
        lambda a: a % 3,
        lambda a: (a << 1) | (a & 3) ^ (a >> 1),
        lambda a: ~a,
        lambda a: a < 4,
        lambda a: a >= 4,
    ],
)
def test_integers(function):
    a, x = te.placeholder((7,), "int32", name="A"), values((7,), "int32")
    np.testing.assert_array_equal(run(function(a), (a, x)), function(x))


def test_numbers_expressions_and_tensors_of_rank_0_are_repeated():
    a, b, n = te.placeholder((4,), name="A"), te.placeholder((), name="B"), te.var("n")
    x, y = values((4,), "float32"), np.array(3, np.float32)
    np.testing.assert_array_equal(run(a * b, (a, x), (b, y)), x * y)
    np.testing.assert_array_equal(run(b * a + b(), (a, x), (b, y)), y * x + y)
    out = np.empty(4, np.float32)
    loopwright.build(te.create_prim_func([n, a, a * n]))(5, x, out)
    np.testing.assert_array_equal(out, x * 5)


def test_casts():
    a, x = te.placeholder((4,), name="A"), values((4,), "float32")
    np.testing.assert_array_equal(run(a.astype("int32"), (a, x)), x.astype("int32"))


def test_names_and_tags():
    a = te.placeholder((4,), name="A")
    assert ((a + 1).op.name, (a + 1).op.tag) == ("T_add", "broadcast")
    assert ((-a).op.name, (-a).op.tag) == ("T_negative", "elemwise")
    with te.tag_scope("mine"):
        assert (a * 2).op.tag == "mine"


def test_sizes_that_are_not_known():
    n = te.var("n")
    a, b = te.placeholder((n, 3), name="A"), te.placeholder((n, 1), name="B")
    x, y, out = values((5, 3), "float32"), values((5, 1), "float32"), np.empty((5, 3), np.float32)
    loopwright.build(te.create_prim_func([a, b, a + b]))(x, y, out)
    np.testing.assert_array_equal(out, x + y)


@pytest.mark.parametrize(("one", "other"), [(5, 5), (5, 1), (1, 5), (1, 1), (0, 0)])
def test_sizes_of_1_are_found_when_the_program_runs(one, other):
    a, b = te.placeholder((te.var("n"),), name="A"), te.placeholder((te.var("m"),), name="B")
    x, y = values((one,), "float32"), values((other,), "float32")
    out = np.empty(max(one, other), np.float32)
    loopwright.build(te.create_prim_func([a, b, a + b]))(x, y, out)
    np.testing.assert_array_equal(out, x + y)


@pytest.mark.parametrize("size", [1, 5])
def test_a_known_size_is_that_of_the_result(size):
    a, b = te.placeholder((te.var("n"),), name="A"), te.placeholder((5,), name="B")
    assert int((a + b).shape[0]) == 5
    x, y, out = values((size,), "float32"), values((5,), "float32"), np.empty(5, np.float32)
    loopwright.build(te.create_prim_func([a, b, a + b]))(x, y, out)
    np.testing.assert_array_equal(out, x + y)


@pytest.mark.parametrize("name", ["exp", "tanh", "floor", "isnan", "abs"])
def test_functions_of_whole_tensors(name):
    a, x = te.placeholder((4, 3), name="A"), values((4, 3), "float32")
    made = getattr(te, name)(a)
    assert (made.op.name, made.op.tag) == (f"T_{name}", "elemwise")
    np.testing.assert_allclose(run(made, (a, x)), getattr(np, name)(x), rtol=2e-6)


def test_shapes_that_do_not_match():
    with pytest.raises(te.ShapesDoNotMatch, match=r"T_add: A has shape \(4, 3\) and B \(4,\): dimensions 3 and 4"):
        te.placeholder((4, 3), name="A") + te.placeholder((4,), name="B")


def test_equality_still_means_the_tensor():
    a, b = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    assert a == a
    assert a != b


@pytest.mark.parametrize("by_te_schedule", [False, True])
def test_sizes_of_a_call_that_do_not_fit(by_te_schedule):
    n, m = te.size_var("n"), te.size_var("m")
    A, B = te.placeholder((n, 2), name="A"), te.placeholder((m, 2), name="B")
    C = A + B
    if by_te_schedule:
        s = te.create_schedule(C.op)
        s.cache_write(C, "local")
        add = loopwright.build(s, [A, B, C])
    else:
        add = loopwright.build(te.create_prim_func([A, B, C]))
    for first, second in ((2, 2), (1, 3), (3, 1), (0, 1), (1, 0), (0, 0)):
        a, b = np.ones((first, 2), "float32"), np.ones((second, 2), "float32")
        out = np.zeros(np.broadcast_shapes(a.shape, b.shape), "float32")
        add(a, b, out)
        np.testing.assert_array_equal(out, a + b)
    for first, second in ((2, 3), (3, 2), (0, 2), (2, 0)):
        a, b, out = [np.ones((rows, 2), "float32") for rows in (first, second, second)]
        told = rf"axis 0 of A is {first}, axis 0 of B is {second}: T_add(\.local)? needs them equal, or one of them 1"
        with pytest.raises(SizesDoNotFit, match=told):
            add(a, b, out)


def test_an_open_size_beside_a_number():
    A, B = te.placeholder((te.size_var("n"),), name="A"), te.placeholder((4,), name="B")
    C = topi.multiply(A, B)
    scale = loopwright.build(te.create_prim_func([A, B, C]))
    b = np.arange(4, dtype="float32")
    for rows in (1, 4):
        a, out = np.full(rows, 3, "float32"), np.zeros(4, "float32")
        scale(a, b, out)
        np.testing.assert_array_equal(out, a * b)
    for rows in (0, 3, 5, 7):
        with pytest.raises(SizesDoNotFit, match=f"axis 0 of A is {rows}, the other size is 4: T_multiply needs them"):
            scale(np.ones(rows, "float32"), b, np.zeros(4, "float32"))


def test_who_compiles_the_operators_may_check_instead():
    A, B = te.placeholder((te.size_var("n"),), name="A"), te.placeholder((te.size_var("m"),), name="B")
    with collected() as found:
        C = A + B
    assert [one.needs for one in found] == ["them equal, or one of them 1"]
    assert "Assert" not in te.create_prim_func([A, B, C]).script()
    assert "Assert" in te.create_prim_func([A, B, A + B]).script()
    n = te.size_var("n")
    A, B = te.placeholder((n, 1), name="A"), te.placeholder((n, 4), name="B")
    assert "Assert" not in te.create_prim_func([A, B, A + B]).script()


def test_a_schedule_of_a_function_that_checks_its_sizes():
    A, B = te.placeholder((te.size_var("n"), 8), name="A"), te.placeholder((4, 8), name="B")
    C = topi.nn.relu(A + B)
    sch = tir.Schedule(te.create_prim_func([A, B, C]))
    sch.compute_inline("T_add")
    i, j = sch.get_loops("T_relu")
    sch.vectorize(j)
    sch.parallel(i)
    assert sch.is_proved
    built = loopwright.build(sch.mod)
    a, b, out = np.full((1, 8), -2, "float32"), np.ones((4, 8), "float32"), np.ones((4, 8), "float32")
    built(a, b, out)
    np.testing.assert_array_equal(out, np.zeros((4, 8)))
    with pytest.raises(SizesDoNotFit, match="axis 0 of A is 2, the other size is 4"):
        built(np.ones((2, 8), "float32"), b, out)


def test_a_size_repeated_with_an_expression_of_itself():
    n, k = te.size_var("n"), te.size_var("k")
    for other in (n // 2, k // maximum(n, 1), n * k, n - 1, k):
        size = broadcast_size(n, other)
        again = Analyzer().simplify(broadcast_size(broadcast_size(Analyzer().simplify(size), other), k))
        for numbers in itertools.product(range(5), repeat=2):
            known = dict(zip((n, k), map(te.const, numbers), strict=True))
            sizes = [Analyzer().simplify(substitute(each, known)).value for each in (n, other, k)]
            if len({each for each in sizes if each != 1}) <= 1:
                wanted = next((each for each in sizes if each != 1), 1)
                assert Analyzer().simplify(substitute(again, known)).value == wanted


def test_what_simplifying_leaves_is_no_size_that_was_checked():
    n, z = te.size_var("n"), te.size_var("z")
    with collected() as found:
        assume_broadcast(Analyzer().simplify(broadcast_size(n, z // maximum(n, 1))), z)
        assume_broadcast(Analyzer().simplify(broadcast_size(n, z)), z)
    assert [str(one.condition) for one in found] == [
        "T.Select(n != 1, n, z) == z or T.Select(n != 1, n, z) == 1 or z == 1"
    ]


def test_a_number_on_the_left_is_beside_every_element():
    x, y = te.var("x", "float32"), te.var("y", "int32")
    A, B = te.placeholder((4, 5), name="A"), te.placeholder((3,), "int32", name="B")
    for made in (x + A, x - A, x * A, x / A, y // B, y % B):
        assert isinstance(made, te.Tensor)
    assert repr((x - A).op.body[0]) == "x - A[i0, i1]"


def test_a_schedule_of_tensors_of_rank_0_is_built():
    a, b = te.placeholder((), name="a"), te.placeholder((), name="b")
    total = te.compute((), lambda: a() + b(), name="total")
    module = loopwright.lower(te.create_schedule(total.op), [a, b, total])
    assert len(module["main"].params) == 3
