"""ResNet-50 as an ONNX file, with seeded random weights.

    python examples/resnet50.py resnet50.onnx          102 MB; the same bytes for the same seed

The network of He, Zhang, Ren and Sun (2015) as frameworks export it: 53 convolutions, each followed by a batch
normalization, 16 blocks with a sum each, and a product at the end; 25.6 million weights, 4.1 billion multiply-adds an
image. The weights are random, scaled so that values neither grow nor die on their way through it. What it answers means
nothing; how it is computed, checked and timed is the same as with trained weights.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

BLOCKS = (3, 4, 6, 3)  # in each of the four stages
WIDTHS = (64, 128, 256, 512)  # channels inside the blocks of a stage; a block gives four times as many
FIRST = 64  # channels of the first layer
CLASSES = 1000


class Builder:
    """Collects nodes and weights, layer by layer; each method gives the name of the tensor that its layer makes."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def node(self, op: str, inputs: list[str], name: str, **attributes: Any) -> str:
        from onnx import helper

        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def weight(self, name: str, values: np.ndarray) -> str:
        from onnx import numpy_helper

        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(values, "float32"), name))
        return name

    def convolution(
        self, x: str, name: str, channels: tuple[int, int], kernel: int, stride: int, scale: float = 1.0
    ) -> str:
        """A convolution and its batch normalization, which brings values to about `scale` times their size."""
        inner, outer = channels
        fan = inner * kernel * kernel
        values = self.random.standard_normal((outer, inner, kernel, kernel), np.float32) * np.float32((2 / fan) ** 0.5)
        shape = {
            "kernel_shape": [kernel, kernel],
            "strides": [stride, stride],
            "pads": [kernel // 2] * 4,
            "dilations": [1, 1],
            "group": 1,
        }
        y = self.node("Conv", [x, self.weight(f"{name}.weight", values)], name, **shape)
        uniform = self.random.uniform
        statistics = [
            self.weight(f"{name}.scale", scale * uniform(0.9, 1.1, outer)),
            self.weight(f"{name}.bias", uniform(-0.1, 0.1, outer)),
            self.weight(f"{name}.mean", uniform(-0.1, 0.1, outer)),
            self.weight(f"{name}.var", uniform(0.9, 1.1, outer)),
        ]
        return self.node("BatchNormalization", [y, *statistics], f"{name}.norm", epsilon=1e-5)

    def relu(self, x: str) -> str:
        return self.node("Relu", [x], f"{x}.relu")

    def block(self, x: str, name: str, channels: tuple[int, int], width: int, stride: int) -> str:
        """1×1, 3×3, 1×1, and the sum with what came in; the 3×3 has the stride, as in version 1.5."""
        inner, outer = channels
        y = self.relu(self.convolution(x, f"{name}.conv1", (inner, width), 1, 1))
        y = self.relu(self.convolution(y, f"{name}.conv2", (width, width), 3, stride))
        # A quarter: sums of two values of equal size would double in square from block to block.
        y = self.convolution(y, f"{name}.conv3", (width, outer), 1, 1, scale=0.25)
        if inner != outer or stride != 1:
            x = self.convolution(x, f"{name}.shortcut", (inner, outer), 1, stride)
        return self.relu(self.node("Add", [y, x], f"{name}.sum"))


def resnet50(batch: int = 1, image: int = 224, *, seed: int = 0, blocks: tuple[int, ...] = BLOCKS) -> Any:
    """The model as an `onnx.ModelProto`. Fewer `blocks`, or a smaller `image`, make a smaller one of the same kind."""
    from onnx import TensorProto, helper

    make = Builder(seed)
    y = make.relu(make.convolution("image", "conv1", (3, FIRST), 7, 2))
    y = make.node("MaxPool", [y], "pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = FIRST
    for stage, (count, width) in enumerate(zip(blocks, WIDTHS, strict=True)):
        for place in range(count):
            stride = 2 if stage > 0 and place == 0 else 1
            y = make.block(y, f"stage{stage + 1}.{place}", (channels, 4 * width), width, stride)
            channels = 4 * width
    y = make.node("Flatten", [make.node("GlobalAveragePool", [y], "average")], "flat")
    weight = make.random.standard_normal((CLASSES, channels), np.float32) * np.float32(channels**-0.5)
    bias = make.weight("dense.bias", make.random.uniform(-0.1, 0.1, CLASSES))
    make.node("Gemm", [y, make.weight("dense.weight", weight), bias], "logits", transB=1)
    graph = helper.make_graph(
        make.nodes,
        "resnet50",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, 3, image, image])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, CLASSES])],
        make.weights,
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="resnet50.py"
    )


def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else "resnet50.onnx"
    with open(path, "wb") as file:
        file.write(resnet50().SerializeToString())
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
