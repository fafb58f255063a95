"""topi.nn: the operators of neural networks.

`convolution.py` holds the general convolution and its names for each layout, `depthwise.py`, `blocked.py` and
`transposed.py` its kin, `pooling.py` the windows without weights. `padding.py` and `window.py` are what they share: the
cells around data, and how a window moves over it.
"""

from loopwright.topi.nn.blocked import conv2d_NCHWc, conv2d_NCHWc_int8, unpack_NCHWc_to_nchw
from loopwright.topi.nn.convolution import (
    conv,
    conv1d,
    conv1d_ncw,
    conv1d_nwc,
    conv2d,
    conv2d_hwcn,
    conv2d_nchw,
    conv2d_nhwc,
    conv3d_ncdhw,
    conv3d_ndhwc,
    group_conv1d_ncw,
    group_conv1d_nwc,
    group_conv2d_nchw,
    group_conv2d_nhwc,
)
from loopwright.topi.nn.depthwise import depthwise_conv2d_nchw, depthwise_conv2d_NCHWc, depthwise_conv2d_nhwc
from loopwright.topi.nn.dilate import dilate
from loopwright.topi.nn.padding import (
    get_pad_tuple,
    get_pad_tuple1d,
    get_pad_tuple3d,
    get_pad_tuple_generic,
    mirror_pad,
    pad,
)
from loopwright.topi.nn.pooling import global_pool, pool1d, pool2d, pool3d
from loopwright.topi.nn.transposed import (
    conv1d_transpose_ncw,
    conv2d_transpose_nchw,
    conv3d_transpose_ncdhw,
    group_conv1d_transpose_ncw,
    group_conv2d_transpose_nchw,
    group_conv3d_transpose_ncdhw,
)

__all__ = [
    "conv",
    "conv1d",
    "conv1d_ncw",
    "conv1d_nwc",
    "conv1d_transpose_ncw",
    "conv2d",
    "conv2d_NCHWc",
    "conv2d_NCHWc_int8",
    "conv2d_hwcn",
    "conv2d_nchw",
    "conv2d_nhwc",
    "conv2d_transpose_nchw",
    "conv3d_ncdhw",
    "conv3d_ndhwc",
    "conv3d_transpose_ncdhw",
    "depthwise_conv2d_NCHWc",
    "depthwise_conv2d_nchw",
    "depthwise_conv2d_nhwc",
    "dilate",
    "get_pad_tuple",
    "get_pad_tuple1d",
    "get_pad_tuple3d",
    "get_pad_tuple_generic",
    "global_pool",
    "group_conv1d_ncw",
    "group_conv1d_nwc",
    "group_conv1d_transpose_ncw",
    "group_conv2d_nchw",
    "group_conv2d_nhwc",
    "group_conv2d_transpose_nchw",
    "group_conv3d_transpose_ncdhw",
    "mirror_pad",
    "pad",
    "pool1d",
    "pool2d",
    "pool3d",
    "unpack_NCHWc_to_nchw",
]
