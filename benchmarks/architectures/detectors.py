"""Detectors: convolutions, boxes from grids, non-maximum suppression, and what it selects: results of unknown size.

    ssd()                   separable convolutions, two grids of anchors, a softmax over classes
    yolo()                  three grids joined upwards, sigmoids, the best 300 of all boxes
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.architectures.layers import Layers


class _Detector(Layers):
    def separable(self, x: str, channels: int, out: int, stride: int = 1) -> str:
        """A window in each channel, then a product of channels."""
        x = self.clipped(self.convolution(x, channels, channels, 3, stride, channels))
        return self.clipped(self.convolution(x, channels, out, 1))

    def clipped(self, x: str) -> str:
        return self.add("Clip", x, self.floats(0.0), self.floats(6.0))

    def mixed(self, x: str, channels: int, out: int, size: int = 1, stride: int = 1) -> str:
        return self.silu(self.convolution(x, channels, out, size, stride))

    def partial(self, x: str, channels: int, out: int) -> str:
        """Cross-stage partial: half of the channels pass two convolutions, with a shortcut."""
        half = out // 2
        kept, y = self.mixed(x, channels, half), self.mixed(x, channels, half)
        y = self.add("Add", y, self.mixed(self.mixed(y, half, half), half, half, 3))
        return self.mixed(self.add("Concat", y, kept, axis=1), out, out)

    def suppressed(self, boxes: str, scores: str, most: int, overlap: float, least: float, centred: bool) -> str:
        """Rows (image, class, box) of what non-maximum suppression selects."""
        limits = [self.integers(most), self.floats([overlap]), self.floats([least])]
        return self.add("NonMaxSuppression", boxes, scores, *limits, center_point_box=int(centred))

    def column(self, rows: str, number: int) -> str:
        return self.add("Gather", rows, self.constant(np.int64(number)), axis=1)

    def detections(self, boxes: str, scores: str, rows: str, name: str, image: Any) -> Any:
        """The model whose results are the boxes, scores and classes of the selected rows."""
        from onnx import TensorProto

        classes, places = self.column(rows, 1), self.column(rows, 2)
        found = self.add("Gather", self.add("Squeeze", boxes, self.integers(0)), places, axis=0)
        where = self.add("Concat", *[self.add("Unsqueeze", x, self.integers(1)) for x in (classes, places)], axis=1)
        best = self.add("GatherND", self.add("Squeeze", scores, self.integers(0)), where)
        types = ((found, TensorProto.FLOAT, ["k", 4]), (best, TensorProto.FLOAT, ["k"]))
        return self.made(name, [image], [*types, (classes, TensorProto.INT64, ["k"])])


def ssd(size: int = 160, classes: int = 21, base: int = 32) -> Any:
    """After Liu et al. and MobileNet: 4 anchors at each place of two grids."""
    from onnx import TensorProto

    build, anchors = _Detector(3), 4
    x = build.clipped(build.convolution("image", 3, base, 3, 2))
    channels, grids = base, []
    for wider, stride, is_grid in ((2, 1, 0), (4, 2, 0), (4, 1, 0), (8, 2, 0), (8, 1, 1), (16, 2, 1)):
        x = build.separable(x, channels, base * wider, stride)
        channels = base * wider
        grids += [(x, channels)] * is_grid
    offsets, scores, places = [], [], []
    for number, (grid, wide) in enumerate(grids):
        side = size >> (3 + number)
        for kept, each in ((offsets, 4), (scores, classes)):
            head = build.convolution(grid, wide, anchors * each, 3)
            rows = build.add("Transpose", head, perm=[0, 2, 3, 1])
            kept.append(build.add("Reshape", rows, build.integers(1, -1, each)))
        centres = (np.arange(side) + 0.5) / side
        y, x0, scale = np.meshgrid(centres, centres, 0.1 * 2**number * 1.4 ** np.arange(anchors), indexing="ij")
        places.append(np.stack([y, x0, scale, scale], -1).reshape(-1, 4))
    prior = np.concatenate(places)
    offset = build.add("Mul", build.add("Concat", *offsets, axis=1), build.floats([0.1, 0.1, 0.2, 0.2]))
    centre = build.add("Mul", build.slice(offset, 0, 2, 2), build.floats(prior[:, 2:]))
    centre = build.add("Add", centre, build.floats(prior[:, :2]))
    half = build.add("Mul", build.add("Exp", build.slice(offset, 2, 4, 2)), build.floats(prior[:, 2:] / 2))
    corners = [build.add(operator, centre, half) for operator in ("Sub", "Add")]
    boxes = build.add("Concat", *corners, axis=2)
    chance = build.add("Softmax", build.add("Concat", *scores, axis=1), axis=2)
    likely = build.add("Transpose", build.slice(chance, 1, classes, 2), perm=[0, 2, 1])  # the first is background
    rows = build.suppressed(boxes, likely, 20, 0.5, 0.3, False)
    image = ("image", TensorProto.FLOAT, [1, 3, size, size])
    return build.detections(boxes, likely, rows, "ssd", image)


def yolo(size: int = 256, classes: int = 20, most: int = 300, base: int = 16) -> Any:
    """After YOLO v5: (x, y, w, h, is there anything, classes …) at each of 3 anchors of three grids."""
    from onnx import TensorProto

    build, each = _Detector(4), 5 + classes
    one, two, four, eight, sixteen = [base << level for level in range(5)]
    x = build.mixed(build.mixed("image", 3, one, 3, 2), one, two, 3, 2)
    x = build.partial(x, two, two)
    fine = build.partial(build.mixed(x, two, four, 3, 2), four, four)
    middle = build.partial(build.mixed(fine, four, eight, 3, 2), eight, eight)
    x = build.partial(build.mixed(middle, eight, sixteen, 3, 2), sixteen, sixteen)
    pools = [x]
    for _ in range(3):
        pools.append(build.add("MaxPool", pools[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2]))
    x = build.mixed(build.add("Concat", *pools, axis=1), 4 * sixteen, sixteen)
    coarse = build.mixed(x, sixteen, eight)
    joined = build.add("Concat", build.resized(coarse, (1, 1, 2, 2), "nearest", "asymmetric"), middle, axis=1)
    middle = build.mixed(build.partial(joined, sixteen, eight), eight, four)
    joined = build.add("Concat", build.resized(middle, (1, 1, 2, 2), "nearest", "asymmetric"), fine, axis=1)
    fine = build.partial(joined, eight, four)
    decoded = []
    for grid, wide, step in ((fine, four, 8), (middle, four, 16), (coarse, eight, 32)):
        side = size // step
        head = build.add("Reshape", build.convolution(grid, wide, 3 * each, 1), build.integers(1, 3, each, side, side))
        head = build.add("Sigmoid", build.add("Transpose", head, perm=[0, 1, 3, 4, 2]))
        centre, extent, rest = build.several("Split", 3, head, build.integers(2, 2, 1 + classes), axis=4)
        corner = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="xy"), -1) - 0.5
        centre = build.add("Add", build.add("Mul", centre, build.floats(2.0)), build.floats(corner[None, None]))
        centre = build.add("Mul", centre, build.floats(float(step)))
        anchor = step * np.array([[1.5, 2.0], [2.5, 4.0], [4.0, 3.0]]).reshape(1, 3, 1, 1, 2)
        extent = build.add("Mul", build.add("Pow", build.add("Mul", extent, build.floats(2.0)), build.floats(2.0)),
                           build.floats(anchor))  # fmt: skip
        joined = build.add("Concat", centre, extent, rest, axis=4)
        decoded.append(build.add("Reshape", joined, build.integers(1, -1, each)))
    found = build.add("Concat", *decoded, axis=1)
    boxes, there, kinds = build.several("Split", 3, found, build.integers(4, 1, classes), axis=2)
    scores = build.add("Mul", kinds, there)
    best = build.add("ReduceMax", scores, axes=[2], keepdims=0)
    _, places = build.several("TopK", 2, best, build.integers(most), axis=1)
    places = build.add("Squeeze", places, build.integers(0))
    boxes, scores = [build.add("Gather", x, places, axis=1) for x in (boxes, scores)]
    scores = build.add("Transpose", scores, perm=[0, 2, 1])
    rows = build.suppressed(boxes, scores, 10, 0.45, 0.35, True)
    image = ("image", TensorProto.FLOAT, [1, 3, size, size])
    return build.detections(boxes, scores, rows, "yolo", image)
