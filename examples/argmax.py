"""Argmax: a reduction over pairs (index, value), as a te reducer, as a script, and with several threads.

    python examples/argmax.py

`te.comm_reducer` makes a reducer of a function that combines two pairs; of equal values the first counts. Both outputs
are computed in one nest of loops.
"""

from __future__ import annotations

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.ir import PrimFunc
from loopwright.schedule import Schedule
from loopwright.script import tir as T

ROWS, COLUMNS = 37, 101


def argmax() -> list[te.Tensor]:
    """The index of the greatest element of each row, and the element."""

    def better(a, b):
        first = te.any(a[1] > b[1], te.all(a[1].equal(b[1]), a[0] < b[0]))
        return te.if_then_else(first, a[0], b[0]), te.if_then_else(first, a[1], b[1])

    def worst(index: str, value: str) -> tuple[object, object]:
        return te.max_value(index), te.min_value(value)

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
                    value[vi] = T.min_value("float32")
                first: T.bool = value[vi] > X[vi, vk] or (value[vi] == X[vi, vk] and where[vi] < vk)
                new_where: T.int32 = T.if_then_else(first, where[vi], vk)
                new_value: T.float32 = T.if_then_else(first, value[vi], X[vi, vk])
                where[vi] = new_where
                value[vi] = new_value

    return main


def main() -> None:
    x = np.random.default_rng(0).integers(0, 50, (ROWS, COLUMNS)).astype("float32")  # with many equal values
    function = te.create_prim_func(argmax())
    sch = Schedule(function)
    i, _ = sch.get_loops("best")
    sch.parallel(i)
    programs = {"te": function, "te, rows in parallel": sch.mod, "script": argmax_script()}
    for name, program in programs.items():
        where, value = np.empty(ROWS, "int32"), np.empty(ROWS, "float32")
        lw.build(program)(x, where, value)
        np.testing.assert_array_equal(where, x.argmax(axis=1))
        np.testing.assert_array_equal(value, x.max(axis=1))
        print(f"{name}: the first greatest element of {ROWS} rows, exactly as numpy finds it")


if __name__ == "__main__":
    main()
