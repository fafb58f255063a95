"""tag_scope."""

from __future__ import annotations

import pytest

from loopwright import te


def _copy(A, **options):
    return te.compute(A.shape, lambda i: A[i], **options)


def test_operations_made_inside_get_the_tag():
    A = te.placeholder((4,), name="A")
    with te.tag_scope("conv"):
        B = _copy(A)
    assert B.op.tag == "conv"
    assert _copy(A).op.tag == ""
    assert _copy(A, tag="mine").op.tag == "mine"


def test_as_decorator():
    A = te.placeholder((4,), name="A")

    @te.tag_scope(tag="conv")
    def make():
        return _copy(A)

    assert make().op.tag == "conv"
    assert make().op.tag == "conv"


def test_conflicts():
    A = te.placeholder((4,), name="A")
    with te.tag_scope("outer"):
        _copy(A)
        with pytest.raises(te.TagConflict, match="tag_scope 'inner' is opened inside tag_scope 'outer'"):
            with te.tag_scope("inner"):
                pass
        with pytest.raises(te.TagConflict, match="B has the tag 'mine', but is made inside tag_scope 'outer'"):
            _copy(A, name="B", tag="mine")
        with pytest.raises(ValueError):
            _copy(A, tag="mine")
    assert _copy(A).op.tag == ""


def test_unused_scope_warns():
    with pytest.warns(UserWarning, match="tag 'conv' is declared by te.tag_scope, but nothing was made inside"):
        with te.tag_scope("conv"):
            pass


def test_an_error_inside_closes_the_scope():
    with pytest.raises(KeyError):
        with te.tag_scope("conv"):
            raise KeyError
    assert _copy(te.placeholder((4,))).op.tag == ""
