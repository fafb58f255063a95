"""Operators of ONNX Runtime, against what they mean in numpy."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.frontends.onnx.onnx_models import random, run


def assert_near(found, wanted, terms, size):
    """Within the rounding of `terms` additions of numbers up to `size`, each off by a float32's last place or two."""
    assert np.abs(found - wanted).max() <= 2 * terms * np.finfo("f").eps * size


def of_node(op, inputs, outputs=1, **attributes):
    names = ["" if one is None else f"x{k}" for k, one in enumerate(inputs)]
    node = helper.make_node(op, names, [f"y{k}" for k in range(outputs)], domain="com.microsoft", **attributes)
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in zip(names, inputs)
        if name
    ]
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["a"]) for name in node.output]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_model(helper.make_graph([node], "g", infos, made), opset_imports=opsets)
    return run(graph, *[one for one in inputs if one is not None])


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attended(q, k, v, heads, added=0.0):
    def apart(x):
        return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)

    q, k, v = apart(q), apart(k), apart(v)
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1]) + added
    return (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(q.shape[0], q.shape[2], -1)


def test_fast_gelu():
    x, b = random(3, 4), random(4, seed=1)
    z = x + b
    wanted = 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))
    np.testing.assert_allclose(of_node("FastGelu", [x, b]), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("causal", [0, 1])
def test_attention_with_a_mask(causal):
    x, w, b = (one.astype("d") for one in (random(2, 5, 8), random(8, 24, seed=1), random(24, seed=2)))
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], "int32")
    q, k, v = np.split(x @ w + b, 3, axis=2)
    added = np.where(mask == 0, -10000.0, 0)[:, None, None]
    if causal:
        added = added + np.where(np.arange(5)[None] > np.arange(5)[:, None], -1e30, 0)
    found = of_node("Attention", [*(one.astype("f") for one in (x, w, b)), mask], num_heads=2, unidirectional=causal)
    scores = np.abs(q).max() * np.abs(k).max() * 4
    assert_near(found, attended(q, k, v, 2, added), 8 + 4 + 5 + 8, (1 + scores) * np.abs(v).max())


def test_attention_that_remembers():
    x, w, b, past = random(1, 2, 8), random(8, 24, seed=1), random(24, seed=2), random(2, 1, 2, 3, 4, seed=3)
    _, k, v = np.split(x @ w + b, 3, axis=2)
    _, present = of_node("Attention", [x, w, b, None, past], 2, num_heads=2)
    new = np.stack([one.reshape(1, 2, 2, 4).transpose(0, 2, 1, 3) for one in (k, v)])
    np.testing.assert_allclose(present, np.concatenate([past, new], axis=3), rtol=1e-5, atol=1e-6)


def test_multi_head_attention():
    q, k, v = random(2, 5, 8), random(2, 6, 8, seed=1), random(2, 6, 8, seed=2)
    found = of_node("MultiHeadAttention", [q, k, v], num_heads=4)
    scores = np.abs(q).max() * np.abs(k).max() * 2
    assert_near(found, attended(q, k, v, 4), 2 + 6 + 8, (1 + scores) * np.abs(v).max())


def test_skip_layer_normalization():
    x, skip, gamma, beta = random(2, 3, 8), random(2, 3, 8, seed=1), random(8, seed=2), random(8, seed=3)
    z = x + skip
    wanted = (z - z.mean(-1, keepdims=True)) / np.sqrt(z.var(-1, keepdims=True) + 1e-5) * gamma + beta
    found = of_node("SkipLayerNormalization", [x, skip, gamma, beta], epsilon=1e-5)
    assert_near(found, wanted, 8 + 8, np.abs(wanted).max() + 1)


def test_rotary_embedding():
    x, angles = random(2, 2, 3, 8), np.random.default_rng(1).random((10, 4))
    places = np.array([[0, 1, 2], [5, 6, 7]])
    cos, sin = np.cos(angles).astype("f"), np.sin(angles).astype("f")
    found = of_node("RotaryEmbedding", [x, places, cos, sin])
    c, s = cos[places][:, None], sin[places][:, None]
    one, other = x[..., :4], x[..., 4:]
    np.testing.assert_allclose(
        found, np.concatenate([one * c - other * s, one * s + other * c], -1), rtol=1e-5, atol=1e-6
    )
