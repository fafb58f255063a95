"""Models with bytes and fields changed at random: an error of the catalogue, or a model, and never anything else."""

from __future__ import annotations

import random
import warnings

import pytest
from onnx import ModelProto

from loopwright.frontends import from_onnx
from loopwright.runtime.errors import InternalError, LoopwrightError
from tests.frontends.onnx.onnx_models import model

SEEDS = [
    """(float[n, 1, 8, 8] x) => (float[n, 64] y)
    <float[2, 1, 1, 1] w = {1, 2}, float[2] b = {1, 2}, int64[2] s = {0, -1}> {
        c = Conv<strides = [1, 1], pads = [0, 0, 0, 0]>(x, w, b)
        r = Relu(c)
        p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r)
        y = Reshape(p, s)
    }""",
    """(float[2, 3, 4] x) => (float[2, 12] y) <int64[1] zero = {0}, int64[1] rest = {-1}> {
        s = Shape(x)
        first = Gather(s, zero)
        shape = Concat<axis = 0>(first, rest)
        y = Reshape(x, shape)
    }""",
    """(float[2, 6] x, float[6, 5] w) => (float[2, 5] y) <float[5] b = {1, 2, 3, 4, 5}> {
        p = MatMul(x, w)
        q = Add(p, b)
        y = Softmax<axis = 1>(q)
    }""",
    """(float[4, 6] x) => (float[4] y) <int64[2] k = {2, 4}, int64[1] one = {1}, int64[1] zero = {0}> {
        a, b = Split<axis = 1>(x, k)
        c = ReduceMean<keepdims = 0>(b, one)
        d = Slice(a, zero, one, one)
        e = Squeeze(d, one)
        y = Sum(c, e)
    }""",
]


def changed(content: bytes, chance: random.Random) -> bytes:
    """The bytes with a few of them changed, left out, doubled or cut off."""
    data = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        if not data:
            break
        at = chance.randrange(len(data))
        kind = chance.randrange(5)
        if kind == 0:
            data[at] = chance.randrange(256)
        elif kind == 1:
            del data[at : at + chance.randint(1, 8)]
        elif kind == 2:
            data[at:at] = data[at : at + chance.randint(1, 16)]
        elif kind == 3:
            data[at] ^= 1 << chance.randrange(8)
        else:
            del data[at + len(data) // 2 :]
    return bytes(data)


def changed_fields(content: bytes, chance: random.Random) -> bytes:
    """The model with a field of it changed: names exchanged, numbers made absurd, nodes left out or doubled."""
    proto = ModelProto.FromString(content)
    graph = proto.graph
    names = [name for node in graph.node for name in (*node.input, *node.output)] or ["x"]
    if not graph.node:
        return content
    node = chance.choice(graph.node)
    kind = chance.randrange(7)
    if kind == 0 and node.input:
        node.input[chance.randrange(len(node.input))] = chance.choice([*names, "", "nothing"])
    elif kind == 1:
        node.op_type = chance.choice(["Relu", "Add", "Conv", "Gather", "Concat", "Reshape", "Slice", "Nonsense", ""])
    elif kind == 2 and node.attribute:
        attribute = chance.choice(node.attribute)
        attribute.i = chance.choice([-1, 0, 1 << 40, -(1 << 63)])
        if attribute.ints:
            attribute.ints[chance.randrange(len(attribute.ints))] = attribute.i
    elif kind == 3 and graph.initializer:
        tensor = chance.choice(graph.initializer)
        tensor.data_type = chance.randrange(30)
    elif kind == 4 and graph.initializer:
        tensor = chance.choice(graph.initializer)
        tensor.dims.append(chance.choice([-1, 0, 2, 1 << 60]))
    elif kind == 5:
        graph.node.append(node)
    else:
        shape = chance.choice(graph.input).type.tensor_type.shape
        if shape.dim:
            chance.choice(shape.dim).dim_value = chance.choice([-3, 0, 1, 7, 1 << 62])
    return bytes(proto.SerializeToString())


@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_changed_models_are_refused_or_imported(seed):
    content = model(SEEDS[seed]).SerializeToString()
    from_onnx(content)
    chance = random.Random(seed)
    outcomes = {"imported": 0, "refused": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for turn in range(120):
            mutate = changed if turn % 2 else changed_fields
            try:
                from_onnx(mutate(content, chance))
                outcomes["imported"] += 1
            except InternalError:
                raise
            except LoopwrightError:
                outcomes["refused"] += 1
    assert outcomes["refused"] > 20
