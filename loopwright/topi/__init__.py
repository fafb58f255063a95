"""topi: the operators of neural networks as tensor expressions.

    data = te.placeholder((1, 64, 56, 56), name="data")
    weight = te.placeholder((64, 64, 3, 3), name="weight")
    out = topi.nn.conv2d_nchw(data, weight, stride=1, padding=1, dilation=1)

An operator is a function from tensors to tensors; how it runs is decided later (`autosched`, or a schedule of your
own, which finds the stages by name and tag). Start with `nn/convolution.py`; `testing/` says in numpy what each means.
"""

from loopwright.topi import nn, tag
from loopwright.topi.errors import BadPadding, BadWindow, InvalidShapeError, UnsupportedLayout

__all__ = ["BadPadding", "BadWindow", "InvalidShapeError", "UnsupportedLayout", "nn", "tag"]
