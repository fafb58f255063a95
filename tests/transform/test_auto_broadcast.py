"""Buffers with buffer_type="auto_broadcast": an axis of one element stands for any length, found at the call."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.evaluator import evaluate
from loopwright.ir import BufferStore, For, ForKind, PrimFunc, Var, decl_buffer
from loopwright.runtime.call_errors import IndexOutOfRange, StrideMismatch


@pytest.fixture(params=["llvm", "c", "evaluator"])
def run(request):
    """How a function is run: built for a target, or in the evaluator."""
    if request.param == "evaluator":
        return lambda func: lambda *args: evaluate(func, *args)
    return lambda func: lw.build(func, target=request.param)


def added(names: str = "ABC") -> PrimFunc:
    """C = A + B on open sizes, where A and B broadcast."""
    sizes = {name: (Var(f"{name.lower()}0"), Var(f"{name.lower()}1")) for name in names}
    a, b = (decl_buffer(sizes[name], name=name, buffer_type="auto_broadcast") for name in names[:2])
    c = decl_buffer(sizes[names[2]], name=names[2])
    i, j = Var("i"), Var("j")
    body = For(j, 0, c.shape[1], ForKind.SERIAL, BufferStore(c, a[i, j] + b[i, j], [i, j]))
    return PrimFunc([a, b, c], For(i, 0, c.shape[0], ForKind.SERIAL, body))


SHAPES = [((2, 3), (2, 3)), ((2, 1), (2, 3)), ((1, 3), (2, 1)), ((1, 1), (2, 3)), ((2, 3), (1, 1)), ((1, 1), (1, 1))]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("one", "other"), SHAPES)
def test_one_element_stands_for_an_axis(run, one, other):
    random = np.random.default_rng(0)
    a, b = random.random(one, np.float32), random.random(other, np.float32)
    c = np.zeros(np.broadcast_shapes(one, other), "float32")
    run(added())(a, b, c)
    np.testing.assert_array_equal(c, a + b)


@pytest.mark.parametrize(("one", "other"), [((2, 2), (2, 3)), ((1, 3), (1, 2)), ((2, 3), (0, 3))])
def test_what_does_not_fit_is_found_at_the_call(run, one, other):
    a, b, c = np.ones(one, "float32"), np.ones(other, "float32"), np.zeros((2, 3), "float32")
    with pytest.raises(IndexError, match=r"outside its shape|with shape"):
        run(added())(a, b, c)


def test_strided_views_keep_their_strides(run):
    wide = np.arange(24, dtype="float32").reshape(4, 6)
    c = np.zeros((2, 3), "float32")
    run(added())(wide[::2, ::2], wide[:1, 1::2], c)
    np.testing.assert_array_equal(c, wide[::2, ::2] + wide[:1, 1::2])


def test_through_binds_of_a_te_schedule():
    m, n, o = ([te.size_var(f"{name}{axis}") for axis in range(3)] for name in "mno")
    A, B = te.placeholder(tuple(m), name="A"), te.placeholder(tuple(n), name="B")
    C = te.compute(tuple(o), lambda i, j, k: A[i, j, k] + B[i, j, k], name="C")
    binds = {x: tir.decl_buffer(x.shape, x.dtype, name=x.op.name, buffer_type="auto_broadcast") for x in (A, B)}
    add = lw.build(te.create_schedule(C.op), [A, B, C], target="llvm", name="add", binds=binds)
    a, b = np.random.default_rng(0).random((2, 4, 3), np.float32), np.array([[[1.0]], [[2.0]]], "float32")
    c = np.zeros((2, 4, 3), "float32")
    add(a, b, c)
    np.testing.assert_array_equal(c, a + b)
    with pytest.raises(IndexOutOfRange, match=r"add: reads B\[0, 2, 0\], which is outside its shape \(2, 2, 1\)"):
        add(a, np.zeros((2, 2, 1), "float32"), c)


def test_a_buffer_that_is_written_does_not_broadcast():
    n = Var("n")
    c = decl_buffer((n,), name="C", buffer_type="auto_broadcast")
    i, m = Var("i"), Var("m")
    func = PrimFunc([c, m], For(i, 0, m, ForKind.SERIAL, BufferStore(c, i.astype("float32"), [i])))
    run, out = lw.build(func), np.zeros(1, "float32")
    run(out, 1)
    with pytest.raises(IndexOutOfRange, match=r"writes C\[1\], which is outside its shape \(1,\)"):
        run(out, 2)


def test_a_stride_that_is_given_must_be_the_one_found(run):
    n = Var("n")
    a, b = decl_buffer((n,), name="A", strides=[1], buffer_type="auto_broadcast"), decl_buffer((4,), name="B")
    i = Var("i")
    func = PrimFunc([a, b], For(i, 0, 4, ForKind.SERIAL, BufferStore(b, a[i], [i])))
    run(func)(np.arange(4, dtype="float32"), out := np.zeros(4, "float32"))
    np.testing.assert_array_equal(out, [0, 1, 2, 3])
    with pytest.raises(StrideMismatch, match="stride"):
        run(func)(np.ones(1, "float32"), out)
