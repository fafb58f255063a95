"""Axes: their domains, types and kinds."""

from __future__ import annotations

import pytest

from loopwright import ir, te


def test_reduce_axis():
    k = te.reduce_axis((2, 10), name="k")
    assert (int(k.dom.min), int(k.dom.extent)) == (2, 8)
    assert (k.var.name, k.iter_type, k.dtype) == ("k", ir.IterType.CommReduce, "int32")
    assert te.reduce_axis((0, 3)).var.name == "rv"
    assert te.reduce_axis(ir.Range(0, 3)).dom.extent.value == 3


def test_the_domain_takes_the_wider_type():
    n = te.var("n", "int64")
    k = te.reduce_axis((0, n), name="k")
    assert (k.dtype, k.dom.min.dtype, k.dom.extent.dtype) == ("int64", "int64", "int64")


@pytest.mark.parametrize(
    ("dom", "message"),
    [
        (10, r"te\.reduce_axis k: the domain is int 10(.|\n)*write \(0, n\)"),
        ((1, 2, 3), r"the domain \(1, 2, 3\) has 3 entries, not a begin and an end"),
        ((0, 2.5), r"the bound 2\.5 is not an integer"),
        ((0, te.var("x", "float32")), "the bounds have type float32"),
        ((5, 3), "ends before it begins"),
        ("ab", "the domain is str 'ab'"),
    ],
)
def test_bad_domains(dom, message):
    with pytest.raises(te.BadDomain, match=message):
        te.reduce_axis(dom, name="k")
    with pytest.raises(TypeError):
        te.reduce_axis(dom)


def test_thread_axis():
    t = te.thread_axis("threadIdx.x")
    assert t.iter_type == ir.IterType.ThreadIndex
    assert (t.dom, t.thread_tag, t.var.name) == (None, "threadIdx.x", "threadIdx.x")
    t = te.thread_axis((0, 32), "threadIdx.y", name="ty")
    assert (int(t.dom.extent), t.thread_tag, t.var.name) == (32, "threadIdx.y", "ty")
    with pytest.raises(te.NoThreadTag, match=r"te\.thread_axis: no thread tag is given"):
        te.thread_axis((0, 32))
    with pytest.raises(ValueError):
        te.thread_axis()
