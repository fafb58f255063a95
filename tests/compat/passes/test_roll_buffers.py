"""InjectRollingBuffer, by the name of scripts: overlapping tiles in a circular buffer."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.compat.passes.device_passes import DeviceWorkLeft
from loopwright.ir import AttrStmt, BufferRealize, assert_structural_equal, collect
from loopwright.script import tir as T
from tests.transform.before_after import same_results

roll = tir.transform.InjectRollingBuffer()


def test_a_tile_rolls_and_only_new_rows_are_computed():
    @T.prim_func(private=True)
    def before(A: T.Buffer((14, 3)), C: T.Buffer((12, 3))):
        rows = T.Buffer((14, 3))
        for o in range(4):
            T.realize(rows[o * 3 : o * 3 + 5, 0:3], "")
            T.attr(rows, "rolling_buffer_scope", True)
            for i, j in T.grid(5, 3):
                rows[o * 3 + i, j] = A[o * 3 + i, j] * T.float32(2)
            for i, j, k in T.grid(3, 3, 3):
                C[o * 3 + i, j] = C[o * 3 + i, j] + rows[o * 3 + i + k, j]

    @T.prim_func(private=True)
    def expected(A: T.Buffer((14, 3)), C: T.Buffer((12, 3))):
        rows = T.Buffer((14, 3))
        T.realize(rows[0:5, 0:3], "")
        for o in range(4):
            for i, j in T.grid(5, 3):
                if T.likely(o < 1 or i >= 2):
                    rows[(o * 3 + i) % 5, j] = A[o * 3 + i, j] * T.float32(2)
            for i, j, k in T.grid(3, 3, 3):
                C[o * 3 + i, j] = C[o * 3 + i, j] + rows[(o * 3 + i + k) % 5, j]

    rolled = roll(before)
    assert_structural_equal(rolled, expected, map_free_vars=True)
    same_results(before, rolled)


def test_the_innermost_of_two_tiled_loops_rolls_through_two_stages():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8, 12), "int32"), C: T.Buffer((6, 8), "int32")):
        first, second = T.Buffer((8, 12), "int32"), T.Buffer((8, 10), "int32")
        for y, x in T.grid(3, 2):
            T.realize(first[y * 2 : y * 2 + 4, x * 4 : x * 4 + 8], "")
            T.attr(first, "rolling_buffer_scope", True)
            T.realize(second[y * 2 : y * 2 + 4, x * 4 : x * 4 + 6], "")
            T.attr(second, "rolling_buffer_scope", True)
            for i, j in T.grid(4, 8):
                first[y * 2 + i, x * 4 + j] = A[y * 2 + i, x * 4 + j] + y * 2 + i + x * 4 + j
            for i, j in T.grid(4, 6):
                second[y * 2 + i, x * 4 + j] = 0
                for k in range(3):
                    second[y * 2 + i, x * 4 + j] = second[y * 2 + i, x * 4 + j] + first[y * 2 + i, x * 4 + j + k]
            for i, j in T.grid(2, 4):
                C[y * 2 + i, x * 4 + j] = second[y * 2 + i, x * 4 + j] + second[y * 2 + i + 2, x * 4 + j + 2]

    rolled = roll(before)
    outer, inner = collect(rolled.body, BufferRealize)
    assert [str(outer.bounds[k].extent) for k in (0, 1)] == ["4", "8"] and outer.body is inner
    assert rolled.body.loop_var.name == "y" and rolled.body.body is outer and not collect(rolled.body, AttrStmt)
    same_results(before, rolled)


def test_a_tile_whose_steps_do_not_repeat_values_stays():
    @T.prim_func(private=True)
    def before(A: T.Buffer((14,), "int32"), C: T.Buffer((12,), "int32")):
        rows = T.Buffer((14,), "int32")
        for o in range(4):
            T.realize(rows[o * 3 : o * 3 + 5], "")
            T.attr(rows, "rolling_buffer_scope", True)
            for i in range(5):
                rows[o * 3 + i] = A[o * 3 + i] * i
            for i in range(3):
                C[o * 3 + i] = rows[o * 3 + i] + rows[o * 3 + i + 2]

    rolled = roll(before)
    assert not collect(rolled.body, AttrStmt) and len(collect(rolled.body, BufferRealize)) == 1
    assert isinstance(rolled.body.body, BufferRealize)
    same_results(before, rolled)


def test_a_mark_without_memory_is_refused():
    @T.prim_func(private=True)
    def marked(A: T.Buffer((4,))):
        with T.attr(A, "rolling_buffer_scope", True):
            A[0] = T.float32(1)

    with pytest.raises(DeviceWorkLeft, match=r"does not lower this: a rolling buffer that no T\.realize stores"):
        roll(marked)
