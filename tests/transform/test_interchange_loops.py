"""interchange_loops: a loop over tiles of a row moves into the rows, where the tiles save nothing."""

from __future__ import annotations

from loopwright.script import tir as T
from loopwright.transform import interchange_loops
from tests.transform.before_after import check, same_at_every_stage, same_native, unchanged


@T.prim_func
def tiled_stencil(A: T.Buffer((66, 66)), B: T.Buffer((64, 64))):
    for io in range(4):
        for jo in range(4):
            for i in range(16):
                for j in range(16):
                    B[io * 16 + i, jo * 16 + j] = (
                        A[io * 16 + i, jo * 16 + j]
                        + A[io * 16 + i + 1, jo * 16 + j + 1]
                        + A[io * 16 + i + 2, jo * 16 + j]
                    )


def test_tiles_of_a_stencil():
    @T.prim_func
    def after(A: T.Buffer((66, 66)), B: T.Buffer((64, 64))):
        for io in range(4):
            for i in range(16):
                for jo in range(4):
                    for j in range(16):
                        B[io * 16 + i, jo * 16 + j] = (
                            A[io * 16 + i, jo * 16 + j]
                            + A[io * 16 + i + 1, jo * 16 + j + 1]
                            + A[io * 16 + i + 2, jo * 16 + j]
                        )

    check(interchange_loops, tiled_stencil, after)
    same_native(tiled_stencil, after)
    same_at_every_stage(tiled_stencil)


def test_a_matmul_keeps_its_tiles():
    @T.prim_func
    def func(A: T.Buffer((64, 64)), B: T.Buffer((64, 64)), C: T.Buffer((64, 64))):
        for io, jo, k, i, j in T.grid(4, 4, 64, 16, 16):
            C[io * 16 + i, jo * 16 + j] = C[io * 16 + i, jo * 16 + j] + A[io * 16 + i, k] * B[k, jo * 16 + j]

    unchanged(interchange_loops, func)


def test_a_transpose_keeps_its_tiles():
    @T.prim_func
    def func(A: T.Buffer((64, 64)), B: T.Buffer((64, 64))):
        for io, jo, i, j in T.grid(4, 4, 16, 16):
            B[io * 16 + i, jo * 16 + j] = A[jo * 16 + j, io * 16 + i]

    unchanged(interchange_loops, func)


def test_rows_that_do_not_fit_keep_their_tiles():
    @T.prim_func
    def func(A: T.Buffer((64, 65536)), B: T.Buffer((64, 65536))):
        for io, jo, i, j in T.grid(4, 512, 16, 128):
            B[io * 16 + i, jo * 128 + j] = A[io * 16 + i, jo * 128 + j]

    unchanged(interchange_loops, func)


def test_values_that_flow_between_tiles_keep_them():
    @T.prim_func
    def func(B: T.Buffer((64, 65))):
        for jo, i, j in T.grid(4, 63, 16):
            B[i + 1, jo * 16 + j] = B[i, jo * 16 + j + 1] + 1.0

    unchanged(interchange_loops, func)


def test_what_a_schedule_said_stays():
    @T.prim_func
    def func(A: T.Buffer((64, 64)), B: T.Buffer((64, 64))):
        for jo in T.parallel(4):
            for i, j in T.grid(64, 16):
                B[i, jo * 16 + j] = A[i, jo * 16 + j]
        for jo in range(4):
            for i in range(64):
                for j in T.vectorized(16):
                    B[i, jo * 16 + j] = A[i, jo * 16 + j]

    unchanged(interchange_loops, func)
