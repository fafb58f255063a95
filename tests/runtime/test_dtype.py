from __future__ import annotations

import pickle

import ml_dtypes
import numpy as np
import pytest

from loopwright.runtime.dlpack import dlpack_type
from loopwright.runtime.dtype import DataType, UnknownDataType


@pytest.mark.parametrize(
    ("text", "bits", "lanes", "dlpack"),
    [
        ("float32", 32, 1, (2, 32, 1)),
        ("float32x4", 32, 4, (2, 32, 4)),
        ("int8", 8, 1, (0, 8, 1)),
        ("uint16x2", 16, 2, (1, 16, 2)),
        ("bfloat16", 16, 1, (4, 16, 1)),
        ("bool", 1, 1, (6, 8, 1)),
        ("e4m3_float8", 8, 1, (10, 8, 1)),
        ("e5m2_float8", 8, 1, (12, 8, 1)),
        ("handle", 64, 1, (3, 64, 1)),
    ],
)
def test_bits_lanes_and_dlpack(text: str, bits: int, lanes: int, dlpack: tuple[int, int, int]):
    dtype = DataType(text)
    assert (dtype.bits, dtype.lanes, dlpack_type(dtype)) == (bits, lanes, dlpack)
    assert dtype == text
    assert DataType(text) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype


def test_numpy_types_and_aliases():
    assert DataType(np.float32) is DataType(np.dtype("float32")) is DataType("float") is DataType("float32x1")
    assert DataType(ml_dtypes.bfloat16) == "bfloat16"
    assert DataType(ml_dtypes.float8_e4m3fn) == "e4m3_float8"
    assert DataType("bfloat16x2").numpy() == ml_dtypes.bfloat16


@pytest.mark.parametrize("text", ["float31", "flaot32", "float32x0", "float32x", "x4", "int32x-1", object()])
def test_unknown_types_are_named(text: object):
    with pytest.raises(ValueError, match="unknown data type") as caught:
        DataType(text)
    assert isinstance(caught.value, UnknownDataType)
    assert "use one of bool, int8" in str(caught.value)


def test_limits():
    assert (DataType("int8").min_value(), DataType("int8").max_value()) == (-128, 127)
    assert (DataType("bool").min_value(), DataType("bool").max_value()) == (0, 1)
    assert DataType("uint64").max_value() == 2**64 - 1
    assert DataType("e4m3_float8").max_value() == 448.0
