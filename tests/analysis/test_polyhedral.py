"""Witnesses are found where isl's own search for the first point gives up."""

from __future__ import annotations

from loopwright.analysis.polyhedral import _smallest_point
from loopwright.arith.isl import context

UNION = (
    "{ [p0, i0, i1 = 0, i2] : i0 < p0 and 0 <= i2 < i0 and "
    "((3 <= i0 <= 4) or i0 >= 5 or ((1 + i0) mod 3 = 0 and i0 <= 2)) }"
)


def test_the_first_point_of_a_set_that_isl_fails_on():
    import islpy as isl

    points = isl.Set.read_from_str(context(), UNION)
    first = _smallest_point(points, 1)
    assert [first.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(4)] == [3, 2, 0, 0]
