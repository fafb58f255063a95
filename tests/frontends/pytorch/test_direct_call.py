"""Tensors handed to the compiled function as they are, and those that are not."""

import numpy as np
import pytest

import loopwright as lw

torch = pytest.importorskip("torch")


class Affine(torch.nn.Module):
    def forward(self, x):
        return 2 * x + 1


class Two(torch.nn.Module):
    def forward(self, x, y):
        return {"sum": x + y, "parts": (x - y, x)}


@pytest.fixture(scope="module")
def affine():
    return lw.compile(Affine(), (torch.zeros(3, 4),))


def is_affine(result, x):
    assert isinstance(result, torch.Tensor) and not result.requires_grad
    torch.testing.assert_close(result, (2 * x + 1).detach())


def test_a_plain_tensor(affine):
    x = torch.randn(3, 4)
    assert affine._direct(x) is not None
    is_affine(affine(x), x)


def test_views_gradients_and_parameters(affine):
    x = torch.randn(4, 3)
    is_affine(affine(x.T), x.T)
    needs_gradient = torch.randn(3, 4, requires_grad=True)
    is_affine(affine(needs_gradient), needs_gradient)
    parameter = torch.nn.Parameter(torch.randn(3, 4))
    is_affine(affine(parameter), parameter)


def test_a_view_that_is_negated_when_read(affine):
    view = torch.complex(torch.randn(3, 4), torch.randn(3, 4)).conj().imag
    assert view.is_neg() and affine._direct(view) is None
    is_affine(affine(view), view)


def test_arrays_give_arrays(affine):
    x = np.ones((3, 4), "float32")
    result = affine(x)
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, np.full((3, 4), 3, "float32"))


def test_the_errors_stay(affine):
    with pytest.raises(ValueError, match="has dtype float64, expected float32"):
        affine(torch.zeros(3, 4, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"has shape .3, 5., expected"):
        affine(torch.zeros(3, 5))
    with pytest.raises(ValueError, match="2 are given"):
        affine(torch.zeros(3, 4), torch.zeros(3, 4))


def test_results_in_a_structure():
    model = lw.compile(Two(), (torch.zeros(5), torch.zeros(5)))
    x, y = torch.randn(5), torch.randn(5)
    result = model(x, y)
    torch.testing.assert_close(result["sum"], x + y)
    torch.testing.assert_close(result["parts"][0], x - y)
    torch.testing.assert_close(result["parts"][1], x)


def test_open_sizes():
    model = lw.compile(Affine(), (torch.zeros(3, 4),), dynamic_shapes=({0: torch.export.Dim("rows", max=64)},))
    for rows in (2, 7, 2):
        x = torch.randn(rows, 4)
        is_affine(model(x), x)


class InTuple(torch.nn.Module):
    def forward(self, x):
        return (x + 1,)


def test_one_result_in_a_tuple():
    x = torch.randn(5)
    (result,) = lw.compile(InTuple(), (torch.zeros(5),))(x)
    torch.testing.assert_close(result, x + 1)
