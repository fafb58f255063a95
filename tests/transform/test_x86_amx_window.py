"""Convolutions on AMX tiles: the machine computes what the description says, for every shape of a window."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.runtime import amx
from loopwright.runtime.tensor import as_argument
from loopwright.target import describe
from loopwright.transform.tensor_intrinsics import TensorIntrin, check
from loopwright.transform.tensor_intrinsics.x86_amx_window import WindowShape, _pairs, amx_window, depth_of_tiles

FEATURES = describe("llvm").features
has_amx = pytest.mark.skipif("amx-int8" not in FEATURES or bool(amx.ask()), reason="this machine has no AMX")

SHAPES = [
    WindowShape(32, (28,), (1,), 64, (1,), (1,)),
    WindowShape(16, (49,), (1,), 128, (1,), (1,)),
    WindowShape(48, (3, 14), (3, 3), 64, (1, 1), (1, 1)),
    WindowShape(16, (3, 7), (3, 3), 12, (2, 2), (1, 1)),
    WindowShape(16, (5, 20), (2, 3), 96, (1, 2), (2, 3)),
    WindowShape(32, (2, 33), (3, 1), 4, (1, 1), (2, 2)),
    WindowShape(16, (1, 1), (1, 5), 72, (3, 3), (1, 1)),
]


@has_amx
@pytest.mark.parametrize("types", ["s8u8s32", "s8s8s32", "bf16bf16f32"])
@pytest.mark.parametrize("shape", SHAPES, ids=WindowShape.text)
def test_the_machine_does_what_is_described(shape: WindowShape, types: str) -> None:
    """Both as native code: the evaluator would take long for these."""
    if "bf16" in types and "amx-bf16" not in FEATURES:
        pytest.skip("this machine has no tiles of halves")
    for seed, from_zero in enumerate((False, True)):
        intrin = TensorIntrin.get(amx_window(shape, types, from_zero))
        assert intrin is not None
        arrays = [
            check._numbers(buffer, np.random.default_rng([seed, place]), seed)
            for place, buffer in enumerate(intrin.parameters)
        ]
        wanted, got = [array.copy() for array in arrays], [array.copy() for array in arrays]
        check._built(intrin.desc, None)(*[as_argument(array) for array in wanted])
        check._built(intrin.impl, None)(*[as_argument(array) for array in got])
        assert np.array_equal(wanted[2], got[2])


@has_amx
def test_a_small_one_in_the_evaluator() -> None:
    check.check_intrinsic(amx_window(WindowShape(16, (2, 3), (1, 2), 4, (1, 2), (1, 1)), "u8u8s32"), cases=2)


def test_names() -> None:
    shape = WindowShape(16, (2, 9), (3, 3), 64, (1, 2), (1, 1))
    name = amx_window(shape, "u8s8s32", from_zero=True)
    assert name == "amx_window_16x2x9_3x3x64_s1x2_d1x1_u8s8s32_from_zero"
    del TensorIntrin.known[name]
    found = TensorIntrin.get(name)
    assert found is not None
    assert [tuple(int(size) for size in buffer.shape) for buffer in found.parameters] == [
        (1, 3, 3, 1, 16, 64),
        (16, 4, 2, 10, 4),
        (16, 2, 9),
    ]


@pytest.mark.parametrize(
    "name",
    [
        "amx_window_16x9_3x64_s1_d1_f32f32f32",  # no such types
        "amx_window_17x9_3x64_s1_d1_s8u8s32",  # no whole tiles of filters
        "amx_window_16x9_3x65_s1_d1_s8u8s32",  # nor of channels
        "amx_window_16x2x9_3x64_s1_d1_s8u8s32",  # a window of another rank
        "amx_window_16_64_s1_d1_s8u8s32",  # no pixels
        "amx_window_16x9_3x64_s0_d1_s8u8s32",
        "amx_window_016x9_3x64_s1_d1_s8u8s32",
    ],
)
def test_names_of_nothing(name: str) -> None:
    assert TensorIntrin.get(name, allow_missing=True) is None


def test_bad_sizes() -> None:
    shape = WindowShape(16, (9,), (3,), 65, (1,), (1,))
    with pytest.raises(ValueError, match="amx_window: 16x9_3x65_s1_d1 is not made of whole tiles of s8u8s32"):
        amx_window(shape)
    with pytest.raises(ValueError, match="types 'f32' are not one of"):
        amx_window(shape, "f32")


def test_channels_are_cut_into_equal_tiles() -> None:
    assert [depth_of_tiles(n, "s8u8s32") for n in (1, 3, 4, 64, 65, 96, 128, 130)] == [4, 4, 4, 64, 36, 48, 64, 44]
    assert [depth_of_tiles(n, "bf16bf16f32") for n in (1, 32, 33, 64)] == [2, 32, 18, 32]


def test_pairs_of_tiles() -> None:
    assert [tuple(part) for part in _pairs(16, 16)] == [(0, 0, 1, (16,))]
    assert [tuple(part) for part in _pairs(31, 16)] == [(0, 0, 1, (16, 15))]
    assert [tuple(part) for part in _pairs(7, 1)] == [(0, 2, 3, (1, 1)), (6, 0, 1, (1,))]
