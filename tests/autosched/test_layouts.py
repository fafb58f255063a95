"""The index maps that rules give to steps, as text and as what they do to a buffer."""

from __future__ import annotations

import pytest

from loopwright import te
from loopwright.autosched.layouts import dimensions, folded, in_panels, layout, moved_last, swapped_last
from loopwright.autosched.register_transpose import transpose_intrinsic
from loopwright.schedule import Schedule
from loopwright.transform.tensor_intrinsics import built_in_names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (layout(["d0", "d1"], ["d1", "d0"]), "lambda d0, d1: (d1, d0)"),
        (moved_last(4, 1), "lambda d0, d1, d2, d3: (d0, d2, d3, d1)"),
        (moved_last(2, 1), "lambda d0, d1: (d0, d1)"),
        (swapped_last(3), "lambda d0, d1, d2: (d0, d2, d1)"),
        (in_panels(2, 1, 16), "lambda d0, d1: (d1 // 16, d0, d1 % 16)"),
        (in_panels(3, 0, 4), "lambda d0, d1, d2: (d0 // 4, d1, d2, d0 % 4)"),
        (folded(dimensions(3), [2, 3, 5]), "((d0) * 3 + d1) * 5 + d2"),
        (folded(dimensions(1), [7]), "d0"),
    ],
)
def test_layouts_are_lambdas(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize(
    ("text", "shape"), [(moved_last(3, 0), [5, 6, 4]), (swapped_last(3), [4, 6, 5]), (in_panels(3, 2, 3), [2, 4, 5, 3])]
)
def test_a_buffer_gets_the_shape_that_a_layout_says(text: str, shape: list[int]) -> None:
    A = te.placeholder((4, 5, 6), name="A")
    B = te.compute((4, 5, 6), lambda i, j, k: A[i, j, k] + 1, name="B")
    C = te.compute((4, 5, 6), lambda i, j, k: B[i, j, k] * 2, name="C")
    sch = Schedule(te.create_prim_func([A, C]))
    sch.transform_layout("B", ("write", 0), text)
    assert [int(size) for size in sch.get(sch.get_block("B")).writes[0].buffer.shape] == shape


def test_the_intrinsics_that_turn_tiles_are_built_in_and_others_are_none() -> None:
    assert transpose_intrinsic(16, 0, "float32") == "transpose_16x16_float32"
    assert transpose_intrinsic(8, 2, "int8") == "transpose_8x1x1x8_int8"
    assert transpose_intrinsic(16, 0, "float64") is None
    assert transpose_intrinsic(3, 0, "float32") is None
    assert transpose_intrinsic(4, 1, "float64") in built_in_names()
