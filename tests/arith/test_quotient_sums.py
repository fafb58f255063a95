"""arith/quotient_sums.py: the digits of a number come together again, whatever each was simplified to before."""

from __future__ import annotations

import itertools
from math import prod
from random import Random

import pytest

from loopwright import te
from loopwright.arith import Analyzer
from loopwright.ir import FloorDiv, FloorMod, Range, SizeVar, Var, collect, const, substitute
from loopwright.schedule import Schedule
from loopwright.transform import lower

f, g, h = Var("f"), Var("g"), Var("h")


def divisions(e):
    return len(collect(e, FloorDiv, FloorMod))


def digits(number, shape):
    """The index of each dimension, outermost first, of the cell with this number."""
    result = []
    for axis, size in enumerate(shape):
        rest = number // prod(shape[axis + 1 :])
        result.append(rest % size if axis else rest)
    return result


def flat(indices, shape):
    total = const(0)
    for axis, index in enumerate(indices):
        total = total + index * prod(shape[axis + 1 :])
    return total


@pytest.mark.parametrize("seed", range(60))
def test_the_digits_of_a_split_loop_are_the_loops(seed):
    rng = Random(seed)
    shape = [rng.choice([2, 3, 5, 7, 9, 12, 14, 30, 49, 70]) for _ in range(rng.randint(2, 5))]
    lanes, several = rng.choice([4, 8, 16, 32, 6]), rng.choice([1, 2, 4])
    facts = Analyzer()
    facts.bind(f, Range(0, -(-prod(shape) // (lanes * several))))
    facts.bind(g, Range(0, several))
    facts.bind(h, Range(0, lanes))
    number = f * (several * lanes) + g * lanes + h
    each = [facts.simplify(digit) for digit in digits(number, shape)]  # one by one, as a schedule does
    result = facts.simplify(flat(each, shape))
    assert divisions(result) == 0
    assert facts.can_prove_equal(result, number)


def test_a_sum_that_is_no_number_keeps_its_quotients():
    facts = Analyzer()
    facts.bind(f, Range(0, 1000))
    for e in (f // 7 * 7 + f % 5, f // 7 * 6 + f % 7, f // 49 * 49 + f // 7 % 6 * 7 + f % 7, f % 7 + f % 5):
        simple = facts.simplify(e)
        assert divisions(simple) > 0
        for value in range(0, 1000, 13):
            expected = int(Analyzer().simplify(substitute(e, {f: const(value)})))
            assert int(Analyzer().simplify(substitute(simple, {f: const(value)}))) == expected


def test_the_value_stays():
    """Sums of random quotients and remainders, of which some cancel: the same number at every point."""
    rng = Random(7)
    gone = 0
    for _ in range(300):
        facts = Analyzer()
        extents = [rng.randint(1, 9), rng.randint(1, 5)]
        low = rng.choice([0, 0, -4])
        facts.bind(f, Range.from_min_extent(const(low), const(extents[0])))
        facts.bind(g, Range(0, extents[1]))
        a, b = rng.choice([2, 3, 4, 7]), rng.choice([2, 3, 5])
        number = f * rng.choice([1, 2, 3, 4, 16, -1]) + g * rng.choice([1, 2, 4, -3]) + rng.randint(-3, 9)
        terms = [facts.simplify(number // (a * b)) * (a * b), facts.simplify(number // a % b) * a]
        terms.append(facts.simplify(number % a))
        if rng.random() < 0.4:
            terms[rng.randrange(3)] *= rng.choice([1, 2, -1])
        if rng.random() < 0.3:
            terms.append((f * 3 + g // 2) % 4)
        e = sum(terms[1:], terms[0])
        simple = facts.simplify(e)
        gone += divisions(simple) == 0
        joined = facts.join_quotients(e)
        for i, j in itertools.product(range(low, low + extents[0]), range(extents[1])):
            at = {f: const(i), g: const(j)}
            expected = int(Analyzer().simplify(substitute(e, at)))
            for other in (simple, joined):
                assert int(Analyzer().simplify(substitute(other, at))) == expected
    assert gone > 100


def test_what_is_left_is_as_little_as_can_be():
    """A chunk of a row that was fused from three axes: the number of the row is a quotient, and nothing else is."""
    facts = Analyzer()
    for var, extent in ((f, 64), (g, 172), (h, 32)):
        facts.bind(var, Range(0, extent))
    number = f % 32 * 5504 + g * 32 + h
    shape = (2, 56, 56, 56)
    each = [f // 32, *[facts.simplify(digit) for digit in digits(number, shape[1:])]]
    index = facts.simplify(flat(each, shape))
    joined = facts.join_quotients(index)
    assert divisions(index) > 1 and divisions(joined) == 1
    for i, j, k in itertools.product((0, 1, 31, 32, 33, 63), (0, 5, 171), (0, 3, 31)):
        at = {f: const(i), g: const(j), h: const(k)}
        expected = i // 32 * 56**3 + i % 32 * 5504 + j * 32 + k
        assert int(Analyzer().simplify(substitute(joined, at))) == expected


def test_open_sizes_are_left_to_others():
    n = SizeVar("n", "int32")
    assert divisions(Analyzer().simplify((f + g) // n * 5 + f % 7 + g % 5)) == 3


def test_a_nest_fused_and_split_by_hand_is_one_walk():
    A = te.placeholder((4, 6, 7, 7), name="A")
    B = te.compute((4, 6, 7, 7), lambda *i: A(*i) * 2.0, name="B")
    sch = Schedule(te.create_prim_func([A, B]))
    fused = sch.fuse(*sch.get_loops("B"))
    _, some, lane = sch.split(fused, [None, 3, 16])
    sch.unroll(some)
    sch.vectorize(lane)
    target = "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1"
    assert divisions(lower(sch.mod, target)["main"].body) == 0
