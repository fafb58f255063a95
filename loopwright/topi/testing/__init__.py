"""topi.testing: what the operators mean, in plain numpy; the type of the arrays decides how exactly.

`windows.py` cuts an array into its windows, `convolution.py` and `pooling.py` add them up.
"""

from loopwright.topi.testing.convolution import (
    conv1d_ncw_python,
    conv1d_transpose_ncw_python,
    conv2d_hwcn_python,
    conv2d_nchw_python,
    conv2d_nhwc_python,
    conv2d_transpose_nchw_python,
    conv3d_ncdhw_python,
    conv3d_ndhwc_python,
    conv3d_transpose_ncdhw_python,
    conv_python,
    conv_transpose_python,
    depthwise_conv2d_python_nchw,
    depthwise_conv2d_python_nhwc,
    dilate_python,
)
from loopwright.topi.testing.pooling import pool_python, poolnd_python

__all__ = [
    "conv1d_ncw_python",
    "conv1d_transpose_ncw_python",
    "conv2d_hwcn_python",
    "conv2d_nchw_python",
    "conv2d_nhwc_python",
    "conv2d_transpose_nchw_python",
    "conv3d_ncdhw_python",
    "conv3d_ndhwc_python",
    "conv3d_transpose_ncdhw_python",
    "conv_python",
    "conv_transpose_python",
    "depthwise_conv2d_python_nchw",
    "depthwise_conv2d_python_nhwc",
    "dilate_python",
    "pool_python",
    "poolnd_python",
]
