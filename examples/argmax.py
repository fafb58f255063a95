"""Argmax: a reduction over pairs (index, value), as a te reducer, as a script, and with several threads.

    python examples/argmax.py

`te.comm_reducer` makes a reducer of a function that combines two pairs. The result must not depend on which pair comes
first, or schedules could not combine them in another order: of equal values the one with the least index counts, and a
NaN, for which no comparison holds, counts as the greatest value. Both outputs are computed in one nest of loops.
"""

from __future__ import annotations

import numpy as np

import loopwright as lw
from loopwright import te, tir
from loopwright.ir import PrimFunc
from loopwright.schedule import Schedule
from loopwright.script import tir as T

ROWS, COLUMNS = 37, 101


def argmax() -> list[te.Tensor]:
    """The index of the greatest element of each row, and the element."""

    def better(a, b):
        (i, x), (j, y) = a, b
        wins = te.any(x > y, te.all(te.isnan(x), tir.Not(te.isnan(y))))
        ties = te.any(x.equal(y), te.all(te.isnan(x), te.isnan(y)))
        return te.if_then_else(te.any(wins, te.all(ties, i < j)), i, j), te.max(x, y)

    def worst(index: str, value: str) -> tuple[object, object]:
        return te.max_value(index), te.const(float("-inf"), value)

    reducer = te.comm_reducer(better, worst, name="argmax")
    X = te.placeholder((ROWS, COLUMNS), name="X")
    k = te.reduce_axis((0, COLUMNS), name="k")
    where, value = te.compute((ROWS,), lambda i: reducer((k.var, X[i, k]), axis=k), name="best")
    return [X, where, value]


def argmax_script() -> PrimFunc:
    """The same, as blocks."""
    rows, columns = ROWS, COLUMNS

    @T.prim_func
    def main(
        X: T.Buffer((rows, columns), "float32"), where: T.Buffer((rows,), "int32"), value: T.Buffer((rows,), "float32")
    ):
        for i, k in T.grid(rows, columns):
            with T.block("best"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    where[vi] = T.max_value("int32")
                    value[vi] = T.float32("-inf")
                x: T.float32 = value[vi]
                y: T.float32 = X[vi, vk]
                wins: T.bool = x > y or (T.isnan(x) and not T.isnan(y))
                ties: T.bool = x == y or (T.isnan(x) and T.isnan(y))
                where[vi] = T.if_then_else(wins or (ties and where[vi] < vk), where[vi], vk)
                value[vi] = T.max(x, y)

    return main


def main() -> None:
    x = np.random.default_rng(0).integers(0, 50, (ROWS, COLUMNS)).astype("float32")  # with many equal values
    x[7, 3] = x[7, 9] = np.nan
    x[8] = -np.inf
    function = te.create_prim_func(argmax())
    sch = Schedule(function)
    i, _ = sch.get_loops("best")
    sch.parallel(i)
    lanes = Schedule(argmax_script())
    _, lane = lanes.split(lanes.get_loops("best")[1], [None, 16])
    lanes.rfactor(lane, 0)  # each lane finds the best of its own; accepted, since the order does not matter
    programs = {"te": function, "te, rows in parallel": sch.mod, "script": argmax_script(), "in lanes": lanes.mod}
    for name, program in programs.items():
        where, value = np.empty(ROWS, "int32"), np.empty(ROWS, "float32")
        lw.build(program)(x, where, value)
        np.testing.assert_array_equal(where, x.argmax(axis=1))
        np.testing.assert_array_equal(value, x.max(axis=1))
        print(f"{name}: the first greatest element of {ROWS} rows, exactly as numpy finds it")


if __name__ == "__main__":
    main()
