from __future__ import annotations

import numpy as np
import pytest

from loopwright import nd, testing


def test_assert_allclose_compares_shapes_and_values():
    testing.assert_allclose(nd.array(np.ones(3, "float32")), np.ones(3))
    testing.assert_allclose([1.0, np.nan], [1.0, np.nan])
    testing.assert_allclose(1.0, 1.0 + 5e-8)
    with pytest.raises(AssertionError, match="Mismatched elements: 1 / 2"):
        testing.assert_allclose([1.0, 2.0], [1.0, 2.1])
    with pytest.raises(AssertionError, match="the shapes differ"):
        testing.assert_allclose(np.ones((1, 3)), np.ones(3))
    with pytest.raises(AssertionError):
        testing.assert_allclose(1.0, 1.0 + 1e-5)
    testing.assert_allclose(1.0, 1.0 + 1e-5, rtol=1e-4)


def test_gradients():
    x, y = np.linspace(-1, 2, 6).reshape(2, 3), np.linspace(1, 2, 3)

    def function(x, y):
        return (np.sin(x) * y**2).sum()

    grads = [np.cos(x) * y**2, (np.sin(x) * 2 * y).sum(0)]
    testing.check_numerical_grads(function, [x, y], grads)
    testing.check_numerical_grads(function, {"y": y, "x": x}, {"y": grads[1], "x": grads[0]})
    testing.check_numerical_grads(function, [x, y], grads, function_value=function(x, y))
    wrong = grads[0].copy()
    wrong[1, 2] += 1
    with pytest.raises(AssertionError, match=r"the gradient of input 0 is wrong at 1 of 6 places; at \(1, 2\) it is"):
        testing.check_numerical_grads(function, [x, y], [wrong, grads[1]])


def test_gradients_given_by_name_are_found_by_name():
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])

    def function(x, y):
        return (x * x * y).sum()

    testing.check_numerical_grads(function, {"x": x, "y": y}, {"y": x * x, "x": 2 * x * y})
    with pytest.raises(ValueError, match=r"there are gradients of \['x', 'z'\] for the inputs \['x', 'y'\]"):
        testing.check_numerical_grads(function, {"x": x, "y": y}, {"z": x * x, "x": 2 * x * y})


def test_a_kink_takes_any_slope_between_its_sides():
    x = np.array([0.0, 1.0, -1.0])
    relu = lambda x: np.maximum(x, 0).sum()
    for slope in (0.0, 0.4, 1.0):
        testing.check_numerical_grads(relu, [x], [np.array([slope, 1.0, 0.0])])
    with pytest.raises(AssertionError, match=r"at \(0,\) it is 1.5"):
        testing.check_numerical_grads(relu, [x], [np.array([1.5, 1.0, 0.0])])


def test_bad_gradients():
    x = np.ones(2)
    with pytest.raises(AssertionError, match=r"the gradient of input 0 has shape \(3,\), the input \(2,\)"):
        testing.check_numerical_grads(np.sum, [x], [np.ones(3)])
    with pytest.raises(AssertionError, match=r"the gradient of input 0 is nan at \(1,\)"):
        testing.check_numerical_grads(np.sum, [x], [np.array([1, np.nan])])
    with pytest.raises(ValueError, match="1 inputs and 2 gradients"):
        testing.check_numerical_grads(np.sum, [x], [x, x])
    testing.check_numerical_grads(lambda: 1.0, [], [])
    testing.check_numerical_grads(np.sum, [np.zeros((0, 3))], [np.zeros((0, 3))])


def test_strtobool():
    assert testing.strtobool("Yes") and testing.strtobool("1")
    assert not testing.strtobool("off")
    with pytest.raises(ValueError, match="'maybe' is neither yes nor no"):
        testing.strtobool("maybe")
