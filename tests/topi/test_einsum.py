"""Products of tensors: how several operands are paired, sizes that are variables, mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.math.einsum import BadSubscripts

n = te.size_var("n")


def test_sizes_that_are_variables():
    a, b = te.placeholder((n, 4), name="a"), te.placeholder((n, 5), name="b")
    outputs = [topi.einsum("ij,ik->jk", a, b), topi.matmul(a, b, transp_a=True), topi.tensordot(a, b, ((0,), (0,)))]
    x, y = (np.random.default_rng(k).integers(-9, 9, (7, 4 + k)).astype("float32") for k in range(2))
    results = [np.zeros((4, 5), "float32") for _ in outputs]
    lw.build([a, b, *outputs], target="llvm", autosched=True)(x, y, *results)
    for result in results:
        assert np.array_equal(result, x.T @ y)


def test_the_cheapest_pair_comes_first():
    big, small, line = te.placeholder((50, 60)), te.placeholder((60, 3)), te.placeholder((3,))
    out = topi.einsum("ij,jk,k->i", big, small, line)
    first = [tensor for tensor in out.op.input_tensors if tensor not in (big, small, line)]
    assert [int(size) for size in first[0].shape] == [60]  # small · line, not big · small


def test_tags():
    a = te.placeholder((3, 4))
    assert (topi.einsum("ij->ji", a).op.name, topi.einsum("ij->ji", a).op.tag) == ("T_einsum", "einsum")
    assert topi.matmul(a, a, transp_b=True).op.tag == "matmul"


@pytest.mark.parametrize(
    ("subscripts", "words"),
    [
        ("ij", "describes 1 operands, and 2 are given"),
        ("ijk,jk", "'ijk' names 3 dimensions"),
        ("ij,jk->il", "has a letter twice, or one that no operand has"),
        ("ij,jk->ii", "has a letter twice"),
        ("i1,jk", "'i1' is not made of letters"),
        ("ij,ij", r"'i' has size 3, and 4 in b"),
        (5, "the subscripts are no text"),
    ],
)
def test_bad_subscripts(subscripts, words):
    with pytest.raises(BadSubscripts, match=words):
        topi.einsum(subscripts, te.placeholder((3, 4), name="a"), te.placeholder((4, 5), name="b"))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda a: topi.matmul(a, a), "the inner size: 4 in a, 3 in b"),
        (lambda a: topi.matmul(a, te.placeholder((4,))), r"b is \(4,\), no matrix"),
        (lambda a: topi.tensordot(a, a, 3), "axes 3 for tensors of 2 and 2 dimensions"),
        (lambda a: topi.tensordot(a, a, ((0, 1), (0,))), "do not pair up"),
        (lambda a: topi.tensordot(a, a, ((0,), (1,))), r"3 in a\[0\], 4 in b\[1\]"),
    ],
)
def test_shapes_that_do_not_fit(call, words):
    with pytest.raises(InvalidShapeError, match=words):
        call(te.placeholder((3, 4), name="a"))
