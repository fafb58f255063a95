"""Transposes: naive both ways, and in blocks."""

from __future__ import annotations

from benchmarks.bench.case import Bounded, aligned, uniform
from benchmarks.loops.rung import Loops, Rung, Steps, as_written, scheduled
from loopwright import te
from loopwright.schedule import Schedule


def transpose(steps: Steps, rows: int, columns: int) -> Loops:
    """Y[i, j] = X[j, i]."""
    X = te.placeholder((rows, columns), name="X")
    Y = te.compute((columns, rows), lambda i, j: X[j, i], name="Y")
    x = uniform((rows, columns), seed=1)
    function = scheduled(te.create_prim_func([X, Y]), steps)
    return Loops(function, [x], [aligned((columns, rows))], lambda: [Bounded(x.T.astype("float64"), 0)])


def read_rows(sch: Schedule) -> None:
    """Rows of X are read, columns of Y written."""
    i, j = sch.get_loops("Y")
    sch.reorder(j, i)


def blocked(size: int, read: bool = False) -> Steps:
    """Square blocks; inside one, rows of Y are written or rows of X read."""

    def block(sch: Schedule) -> None:
        i, j = sch.get_loops("Y")
        i_0, i_1 = sch.split(i, [None, size])
        j_0, j_1 = sch.split(j, [None, size])
        sch.reorder(i_0, j_0, *((j_1, i_1) if read else (i_1, j_1)))

    return block


def staged(sch: Schedule) -> None:
    """A block of X is copied row by row, and its columns are read from the copy."""
    blocked(32)(sch)
    _, j_0, _, _ = sch.get_loops("Y")
    copy = sch.cache_read("Y", 0, "global")
    sch.compute_at(copy, j_0)
    sch.sink_alloc(copy, "X_global")


def _rung(name: str, steps: Steps, size: int = 1024) -> Rung:
    return Rung(name, lambda *shape: transpose(steps, *shape), (size, size), (65, 33))


RUNGS = [
    _rung("rows written", as_written),
    _rung("rows read", read_rows),
    _rung("blocks of 16", blocked(16)),
    _rung("blocks of 32, rows read", blocked(32, read=True)),
    _rung("blocks of 24 of 1000", blocked(24), size=1000),
    _rung("blocks of 32, staged", staged),
]
