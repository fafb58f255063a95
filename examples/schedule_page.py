"""A page that goes through a schedule: the textbook ladder on small sizes, with two steps that are refused on the way.

    python examples/schedule_page.py [ladder.html]

Open the file in a browser: arrow keys turn the pages. Each step shows what it changed and the tree of loops; below, the
run of the program on small numbers says for every cell who writes and reads it, and when. Refused steps show the
iterations and the cell that would go wrong.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from loopwright import te
from loopwright.schedule import Schedule, ScheduleError

M, K, N, L = 4, 6, 8, 8
ROWS, COLUMNS, LANES = 2, 4, 4


def chain() -> list[te.Tensor]:
    """D = A @ B, E = exp(D), F = E @ C."""
    A = te.placeholder((M, K), name="A")
    B = te.placeholder((K, N), name="B")
    C = te.placeholder((N, L), name="C")
    k = te.reduce_axis((0, K), name="k")
    n = te.reduce_axis((0, N), name="n")
    D = te.compute((M, N), lambda m, n: te.sum(A[m, k] * B[k, n], axis=k), name="D")
    E = te.compute((M, N), lambda m, n: te.exp(D[m, n]), name="E")
    F = te.compute((M, L), lambda m, l: te.sum(E[m, n] * C[n, l], axis=n), name="F")
    return [A, B, C, F]


def tile(sch: Schedule, block: str) -> None:
    """Tiles of rows and columns; the reduction runs inside a tile, and along rows."""
    m, n, *reduce = sch.get_loops(block)
    m_0, m_1 = sch.split(m, [None, ROWS])
    n_0, n_1 = sch.split(n, [None, COLUMNS])
    sch.reorder(m_0, n_0, *reduce, m_1, n_1)


def ladder() -> Schedule:
    """The steps of the last rung."""
    sch = Schedule(te.create_prim_func(chain()))
    for block in ("D", "E", "F"):
        tile(sch, block)
    sch.merge(sch.get_loops("D")[0], sch.get_loops("E")[0])
    sch.merge(sch.get_loops("D")[1], sch.get_loops("E")[1])
    sch.merge(sch.get_loops("D")[0], sch.get_loops("F")[0])
    with suppress(ScheduleError):  # a tile of F needs whole rows of E: it would read what is not there yet
        sch.merge(sch.get_loops("D")[1], sch.get_loops("F")[1])
    for block in ("D", "E", "F"):
        *_, inner = sch.get_loops(block)
        sch.vectorize(inner)
    with suppress(ScheduleError):  # all iterations of this loop add to the same cells
        sch.parallel(sch.get_loops("D")[2])
    sch.parallel(sch.get_loops("D")[0])
    return sch


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "ladder.html")
    sch = ladder()
    print(sch.history())
    sch.to_html(path, title="The textbook ladder: matmul → exp → matmul")
    print(f"\nwrote {path} ({path.stat().st_size / 1e6:.1f} MB): open it in a browser")


if __name__ == "__main__":
    main()
