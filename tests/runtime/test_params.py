from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from loopwright import nd
from loopwright.runtime import (
    load_param_dict,
    load_param_dict_from_file,
    save_param_dict,
    save_param_dict_to_file,
)
from loopwright.runtime.params import BadParameters

PARAMS = {
    "weight": np.arange(6, dtype="float32").reshape(2, 3),
    "größe": nd.array(np.array([True, False])),
    "empty": np.zeros((0, 3), "int8"),
    "scalar": np.float64(3),
    "half": np.ones(2, ml_dtypes.bfloat16),
    "": np.array([2**63], "uint64"),
}


def test_round_trip(tmp_path):
    save_param_dict_to_file(PARAMS, tmp_path / "params")
    for loaded in (load_param_dict(save_param_dict(PARAMS)), load_param_dict_from_file(tmp_path / "params")):
        assert list(loaded) == list(PARAMS)
        for name, value in PARAMS.items():
            expected = np.asarray(value)
            np.testing.assert_array_equal(loaded[name].numpy(), expected)
            assert loaded[name].numpy().dtype == expected.dtype
            assert tuple(loaded[name].shape) == expected.shape


def test_vectors_keep_their_lanes():
    vectors = nd.empty((2,), "float32x4")
    np.asarray(vectors)[...] = np.arange(8).reshape(2, 4)
    loaded = load_param_dict(save_param_dict({"v": vectors}))["v"]
    assert (str(loaded.dtype), tuple(loaded.shape)) == ("float32x4", (2,))
    np.testing.assert_array_equal(loaded.numpy(), vectors.numpy())


def test_no_parameters_at_all():
    assert load_param_dict(save_param_dict({})) == {}


def test_cut_off_anywhere():
    data = bytes(save_param_dict(PARAMS))
    for size in range(len(data)):
        with pytest.raises(BadParameters, match="load_param_dict"):
            load_param_dict(data[:size])


@pytest.mark.parametrize(("place", "value"), [(0, 1), (16, 255), (17, 255)])
def test_numbers_that_make_no_sense(place, value):
    data = bytearray(save_param_dict(PARAMS))
    data[place] = value
    with pytest.raises(BadParameters):
        load_param_dict(data)


def test_random_damage_is_an_error_or_other_values():
    dice = np.random.default_rng(0)
    data = bytes(save_param_dict(PARAMS))
    for _ in range(300):
        damaged = bytearray(data)
        damaged[dice.integers(len(data))] = dice.integers(256)
        try:
            load_param_dict(damaged)
        except BadParameters:
            continue


def test_names_are_texts():
    with pytest.raises(BadParameters, match="3 is no name"):
        save_param_dict({3: np.zeros(1)})
