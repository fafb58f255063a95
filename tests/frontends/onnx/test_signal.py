"""DFT, STFT, MelWeightMatrix against numpy's transforms."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from loopwright.frontends.onnx import from_onnx
from loopwright.frontends.onnx.compiled import CompiledModel, interpreted
from loopwright.frontends.onnx.errors import BadNode
from tests.frontends.onnx.one_node import compare, one_node
from tests.frontends.onnx.onnx_models import imported, random


def pair(x: np.ndarray) -> np.ndarray:
    return np.stack([x.real, x.imag], axis=-1)


def transform(x: np.ndarray, *rest: np.ndarray | None, **options: int) -> np.ndarray:
    graph, feed = one_node(
        "DFT", [x, *rest], constant=tuple(k for k, one in enumerate(rest, 1) if one is not None), **options
    )
    return CompiledModel(graph, make_runner=interpreted).run(feed)[0]


def bound(x: np.ndarray, n: int) -> float:
    """Sums of n products in float32, of two factors and a turn each."""
    return float(np.finfo(np.float32).eps * (n + 8) * np.abs(x).max() * np.sqrt(2) * 4)


@pytest.mark.parametrize("size", [1, 2, 7, 128, 150, 257, 640])
def test_complex_numbers_there_and_back(size):
    x = random(2, size, 2)
    exact = x[..., 0] + 1j * x[..., 1]
    np.testing.assert_allclose(transform(x), pair(np.fft.fft(exact)), atol=bound(x, size))
    np.testing.assert_allclose(transform(x, inverse=1), pair(np.fft.ifft(exact)), atol=bound(x, size))


@pytest.mark.parametrize("size", [7, 16, 200])
def test_the_half_that_real_numbers_have(size):
    x = random(2, size, 1)
    half = transform(x, onesided=1)
    np.testing.assert_allclose(half, pair(np.fft.rfft(x[..., 0])), atol=bound(x, size))
    back = transform(half, np.int64(size), opset=20, onesided=1, inverse=1)
    np.testing.assert_allclose(back, x, atol=2 * bound(x, size))


@pytest.mark.parametrize("length", [5, 12])
def test_another_length_and_another_axis(length):
    x = random(8, 3, 2)
    exact = np.fft.fft(x[..., 0] + 1j * x[..., 1], n=length, axis=0)
    np.testing.assert_allclose(transform(x, np.int64(length), np.int64(0)), pair(exact), atol=bound(x, length))


def test_pieces_of_a_signal():
    x, window = random(2, 40, 1), np.hanning(16).astype(np.float32)
    compare("STFT", [x, np.int64(5), window], constant=(1,), atol=1e-4)
    compare("STFT", [x, np.int64(8), None, np.int64(16)], constant=(1, 3), onesided=0, atol=1e-4)


def test_mel_bands():
    values = [np.int64(8), np.int64(64), np.int64(8000), np.float32(0), np.float32(4000)]
    compare("MelWeightMatrix", values, constant=(0, 1, 2, 3, 4))


def test_the_axis_of_parts_is_not_transformed():
    graph, _ = one_node("DFT", [random(2, 3, 2), None, np.int64(-1)], constant=(2,))
    with pytest.raises(BadNode, match="the last axis is that of real and imaginary parts"):
        imported(graph)
    graph, _ = one_node("DFT", [random(2, 3, 3)])
    with pytest.raises(BadNode, match="the last axis has size 3"):
        imported(graph)


def test_a_transform_of_absurd_length_is_refused():
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[1, 1048583, 1] x) => (float[1, 1048583, 2] y)'
    with pytest.raises(BadNode, match="does not fit into memory"):
        from_onnx(parser.parse_model(text + "{ y = DFT <axis = 1> (x) }"))
