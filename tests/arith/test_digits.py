"""Fused loops over open sizes: seen as the nest they were fused from, and still refused where they race."""

import itertools

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir, topi
from loopwright.arith import Analyzer
from loopwright.arith.digits import digits_of, fixed_by
from loopwright.ir import BufferLoad, Evaluate, For, ForKind, SizeVar, Var, const, decl_buffer, seq, substitute
from loopwright.schedule.errors import NotProved, WouldRace
from loopwright.script import tir as T

n, m, k = SizeVar("n", "int32"), SizeVar("m", "int32"), SizeVar("k", "int32")
f = Var("f", "int32")


def loop(extent, *values):
    body = seq([Evaluate(value) for value in values])
    return For(f, const(0, "int32"), extent, ForKind.SERIAL, body)


def number(expression, **values):
    known = {var: const(values[var.name], "int32") for var in (n, m, k, f) if var.name in values}
    return int(Analyzer().simplify(substitute(expression, known)))


@pytest.mark.parametrize("sizes", [(2, 3, 2), (1, 1, 1), (3, 1, 2), (2, 0, 3), (0, 2, 2)])
def test_digits_count_as_the_loop_does(sizes):
    values = f // m // n, f // m % n, f % m
    found = digits_of(loop(k * n * m, *values), ())
    assert found is not None
    _, digits = found
    named = dict(zip("knm", sizes, strict=True))
    nest = [range(number(digit.extent, **named)) for digit in digits]
    by_loop = [tuple(number(v, f=i, **named) for v in values) for i in range(number(k * n * m, **named))]
    assert list(itertools.product(*nest)) == by_loop


@pytest.mark.parametrize(
    ("extent", "values"),
    [
        (n * m, (f // m, f % m, f)),  # something else is looked at
        (n * m, (f // k, f % k)),  # not a factor
        (n * m, (f // m, f % n)),  # two divisors
        (n * 12, (f // 12, f % 12)),  # affine as it is
        (n, (f // m, f % m)),
    ],
)
def test_other_loops_have_no_digits(extent, values):
    assert digits_of(loop(extent, *values), ()) is None


def test_a_divisor_that_may_be_negative_is_none():
    free = Var("free", "int32")
    assert digits_of(loop(n * free, f // free, f % free), ()) is None
    assert digits_of(loop(n * free, f // free, f % free), (free,)) is not None


def test_what_simplifying_multiplied_out_is_a_product():
    block = (n + 1) // 30 + 1
    assert digits_of(loop((n + 1) // 30 * 16 + 16, f // block, f % block), ()) is not None


def test_digits_fix_the_iteration():
    assert fixed_by(f, n * m, [f // m, f % m]) and fixed_by(f, n * m * 4, [f // 4 // m, f % 4, f // 4 % m])
    assert not fixed_by(f, n * m, [f % m]) and not fixed_by(f, n * m, [f // m])
    assert not fixed_by(f, n * m, [f // k, f % k])  # k may be 0
    number = BufferLoad(decl_buffer((1,), "int32"), [const(0, "int32")])
    assert not fixed_by(f, n * number, [f // number, f % number])  # the body may change it


def softmax(*shape):
    data = te.placeholder(shape, name="A")
    return te.create_prim_func([data, topi.nn.softmax(data)])


@pytest.mark.parametrize("shape", [(3, n, m), (n, m, 4), (n, 4, m), (k, n, m)])
def test_fused_loops_over_open_sizes_may_be_parallel(shape):
    sch = tir.Schedule(softmax(*shape, 5))
    for block in ("T_softmax_exp", "T_softmax_maxelem"):
        sch.parallel(sch.fuse(*sch.get_loops(block)[:3]))
    built = lw.build(sch.mod, target="llvm")
    sizes = {n: 3, m: 2, k: 2}
    x = np.random.default_rng(0).random([sizes.get(size, size) for size in shape] + [5], "float32")
    out = np.empty_like(x)
    built(x, out)
    np.testing.assert_allclose(out, np.exp(x) / np.exp(x).sum(-1, keepdims=True), rtol=1e-6)


def test_a_race_between_digits_is_found():
    @T.prim_func
    def racing(a: T.handle, b: T.handle):
        n, m = T.int32(), T.int32()
        A, B = T.match_buffer(a, (n, m)), T.match_buffer(b, (m,))
        for i in range(n * m):
            with T.block("B"):
                vi, vj = T.axis.spatial(n, i // m), T.axis.spatial(m, i % m)
                B[vj] = A[vi, vj]

    sch = tir.Schedule(racing)
    with pytest.raises(WouldRace, match="i // m = 0 and i // m = 1 of the"):
        sch.parallel(sch.get_loops("B")[0])


def test_what_is_no_digit_is_not_proved():
    @T.prim_func
    def scattered(a: T.handle, b: T.handle, m: T.int32):
        n = T.int32()
        A, B = T.match_buffer(a, (n,)), T.match_buffer(b, (n, 64))
        for i in range(n):
            with T.block("B"):
                vi, vj = T.axis.spatial(n, i // m), T.axis.spatial(n, i)
                B[vi, 0] = A[vj]

    sch = tir.Schedule(scattered)
    with pytest.raises((NotProved, WouldRace)):
        sch.parallel(sch.get_loops("B")[0])


@pytest.mark.parametrize("make", [lambda: softmax(3, n, m), lambda: softmax(k, n, n)])
def test_rules_schedule_rows_of_open_sizes(make):
    from loopwright import autosched

    assert [decision.rule for decision in autosched.apply(make(), "llvm").decisions] == ["row group"]
