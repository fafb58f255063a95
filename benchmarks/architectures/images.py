"""Pipelines of images in bytes, and what follows a network: no weights to speak of, many small operators.

    preprocess()            resize, crop, normalise, channels first
    blend()                 two images mixed, converted to Y'CbCr, a mask of the bright ones and whether a row has any
    equalise()              a histogram, its sums, the table they give, and the image looked up in it
    segment()               scores of classes, resized, the best class of each pixel in bytes, how many pixels each has
    classify()              softmax and the best five of a thousand classes
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.architectures.layers import Layers


def preprocess(high: int = 480, wide: int = 640) -> Any:
    """What stands before a classifier: the shorter side to 256, the middle 224 × 224, mean and deviation."""
    from onnx import TensorProto

    build = Layers(10)
    sizes = build.integers(1, 256, 256 * wide // high, 3)
    x = build.add("Resize", "image", "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel")
    top, left = (256 - 224) // 2, (256 * wide // high - 224) // 2
    ends = build.integers(top + 224, left + 224)
    x = build.add("Slice", x, build.integers(top, left), ends, build.integers(1, 2))
    x = build.add("Div", build.add("Cast", x, to=TensorProto.FLOAT), build.floats(255.0))
    x = build.add("Sub", x, build.floats([0.485, 0.456, 0.406]))
    x = build.add("Transpose", build.add("Div", x, build.floats([0.229, 0.224, 0.225])), perm=[0, 3, 1, 2])
    image = ("image", TensorProto.UINT8, [1, high, wide, 3])
    return build.made("preprocess", [image], [(x, TensorProto.FLOAT, [1, 3, 224, 224])])


def blend(high: int = 360, wide: int = 480) -> Any:
    """One image over another by a mask in bytes, and the luminance of the result."""
    from onnx import TensorProto

    build = Layers(11)
    front, back, alpha = [build.add("Cast", name, to=TensorProto.FLOAT) for name in ("front", "back", "alpha")]
    share = build.add("Mul", alpha, build.floats(1 / 255))
    mixed = build.add("Mul", front, share)
    mixed = build.add("Add", mixed, build.add("Mul", back, build.add("Sub", build.floats(1.0), share)))

    def as_bytes(x: str) -> str:
        near = build.add("Clip", build.add("Round", x), build.floats(0.0), build.floats(255.0))
        return build.add("Cast", near, to=TensorProto.UINT8)

    image = as_bytes(mixed)
    matrix = np.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]]).T
    colours = build.add("MatMul", build.add("Cast", image, to=TensorProto.FLOAT), build.floats(matrix))
    colours = as_bytes(build.add("Add", colours, build.floats([0.0, 128.0, 128.0])))
    luma = build.add("Cast", build.slice(colours, 0, 1, 2), to=TensorProto.INT32)
    bright = build.add("Greater", luma, build.constant(np.int32(180)))
    mask = build.add("Where", bright, build.constant(np.uint8(255)), build.constant(np.uint8(0)))
    any_bright = build.add("ReduceMax", build.add("Cast", bright, to=TensorProto.INT32), axes=[1, 2], keepdims=0)
    any_bright = build.add("Cast", any_bright, to=TensorProto.BOOL)
    given = [(name, TensorProto.UINT8, [high, wide, channels]) for name, channels in (("front", 3), ("back", 3))]
    given.append(("alpha", TensorProto.UINT8, [high, wide, 1]))
    found = [(name, TensorProto.UINT8, [high, wide, channels]) for name, channels in ((colours, 3), (mask, 1))]
    return build.made("blend", given, [*found, (any_bright, TensorProto.BOOL, [high])])


def equalise(high: int = 360, wide: int = 480) -> Any:
    """Histogram equalisation of a grey image."""
    from onnx import TensorProto

    build = Layers(12)
    levels = build.add("Cast", build.add("Reshape", "image", build.integers(-1)), to=TensorProto.INT64)
    ones = build.constant(np.ones(high * wide, np.int32))
    counts = build.add("ScatterElements", build.constant(np.zeros(256, np.int32)), levels, ones, reduction="add")
    below = build.add("CumSum", counts, build.constant(np.int64(0)))
    table = build.add("Mul", build.add("Cast", below, to=TensorProto.FLOAT), build.floats(255 / (high * wide)))
    table = build.add("Cast", build.add("Round", table), to=TensorProto.UINT8)
    image = build.add("Gather", table, build.add("Cast", "image", to=TensorProto.INT32))
    given = ("image", TensorProto.UINT8, [high, wide])
    found = [(image, TensorProto.UINT8, [high, wide]), (counts, TensorProto.INT32, [256])]
    return build.made("equalise", [given], found)


def segment(size: int = 64, scale: int = 4, classes: int = 21) -> Any:
    """What stands after a segmenting network."""
    from onnx import TensorProto

    build = Layers(13)
    large = build.resized("scores", (1, 1, scale, scale))
    best = build.add("ArgMax", large, axis=1, keepdims=0)
    same = build.add("Equal", build.add("Unsqueeze", best, build.integers(1)),
                     build.constant(np.arange(classes).reshape(1, classes, 1, 1)))  # fmt: skip
    pixels = build.add("ReduceSum", build.add("Cast", same, to=TensorProto.INT32), build.integers(2, 3), keepdims=0)
    mask = build.add("Cast", best, to=TensorProto.UINT8)
    scores = ("scores", TensorProto.FLOAT, [1, classes, size, size])
    found = [(mask, TensorProto.UINT8, [1, size * scale, size * scale]), (pixels, TensorProto.INT32, [1, classes])]
    return build.made("segment", [scores], found)


def classify(batch: int = 32, classes: int = 1000) -> Any:
    """What stands after a classifier."""
    from onnx import TensorProto

    build = Layers(14)
    chance = build.add("Softmax", "scores", axis=1)
    values, places = build.several("TopK", 2, chance, build.integers(5), axis=1)
    group = build.add("Gather", build.constant(build.random.integers(0, 50, classes)), places)
    scores = ("scores", TensorProto.FLOAT, [batch, classes])
    found = [(values, TensorProto.FLOAT, [batch, 5])]
    return build.made("classify", [scores], [*found, *[(x, TensorProto.INT64, [batch, 5]) for x in (places, group)]])
