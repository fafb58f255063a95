"""The schedule that these tests look at: a chain of products with two refusals on the way."""

from __future__ import annotations

from loopwright import te
from loopwright.ir import PrimFunc
from loopwright.schedule import Schedule, ScheduleError


def reversed_copy(n: int = 8) -> PrimFunc:
    """B = A + 1, then C = B from its end."""
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[n - 1 - i] * 2.0, name="C")
    return te.create_prim_func([A, C])


def refused_merge(sch: Schedule) -> None:
    try:
        sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
    except ScheduleError:
        return
    raise AssertionError("it was accepted")


def watched() -> Schedule:
    """split, a refused merge, parallel."""
    sch = Schedule(reversed_copy())
    (i,) = sch.get_loops("B")
    refused_merge(sch)
    outer, _ = sch.split(i, [None, 4])
    sch.parallel(outer)
    return sch
