"""Nests: the loops, axes and regions that steps write around blocks of their own making."""

from __future__ import annotations

import pytest

from loopwright.ir import BufferStore, For, ForKind, IterType, Var, cell_region, const, decl_buffer, whole_region
from loopwright.schedule.rewrite.nests import axes_over, axis_from_zero, counters_over, nest, nest_over

SIZES = [const(3), const(5, "int64")]


def test_new_loops_count_from_0_the_first_outermost():
    A = decl_buffer((3, 5), name="A")
    counters = counters_over(SIZES)
    body = BufferStore(A, const(0.0, "float32"), counters)
    outer = nest_over(counters, SIZES, body)
    assert isinstance(outer, For) and isinstance(outer.body, For)
    assert [loop.loop_var.name for loop in (outer, outer.body)] == ["ax0", "ax1"]
    assert [str(loop.loop_var.dtype) for loop in (outer, outer.body)] == ["int32", "int64"]
    assert [(loop.min.value, loop.extent.value, loop.kind) for loop in (outer, outer.body)] == [
        (0, 3, ForKind.SERIAL),
        (0, 5, ForKind.SERIAL),
    ]
    assert outer.body.body is body
    assert nest_over([], [], body) is body
    with pytest.raises(ValueError, match="zip"):
        nest_over(counters, SIZES[:1], body)


def test_copies_of_loops_keep_all_but_the_body():
    counters = counters_over(SIZES)
    A = decl_buffer((3, 5), name="A")
    first, second = (BufferStore(A, const(value, "float32"), counters) for value in (0.0, 1.0))
    outer = nest_over(counters, SIZES, first)
    again = nest([outer, outer.body], second)
    assert again.loop_var is outer.loop_var and again.body.loop_var is outer.body.loop_var
    assert again.body.body is second
    assert outer.body.body is first


def test_axes_have_the_types_of_the_sizes():
    axes = axes_over(SIZES)
    assert [(axis.name, str(axis.dtype)) for axis in axes] == [("v0", "int32"), ("v1", "int64")]
    made = axis_from_zero(axes[1], SIZES[1])
    assert (made.dom.min.value, made.dom.extent.value, str(made.dom.min.dtype)) == (0, 5, "int64")
    assert made.iter_type == IterType.DataPar
    assert axis_from_zero(axes[0], SIZES[0], IterType.CommReduce).iter_type == IterType.CommReduce


def test_regions_of_one_cell_and_of_all():
    A = decl_buffer((3, 5), name="A")
    i = Var("i")
    cell, whole = cell_region(A, [i, i + 1]), whole_region(A)
    assert cell.buffer is whole.buffer is A
    assert cell.region[0].min is i
    assert [part.extent.value for part in cell.region] == [1, 1]
    assert [(part.min.value, part.extent.value) for part in whole.region] == [(0, 3), (0, 5)]
    assert whole_region(decl_buffer((), name="s")).region == ()
