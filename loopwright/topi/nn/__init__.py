"""topi.nn: the operators of neural networks.

`conv/` holds the convolutions; start with `conv/convolution.py`, the general one and its names for each layout.
`pooling.py` and `adaptive_pool.py` are windows without weights, `matmul.py` has matmuls, `softmax.py` and
`normalization.py` what runs along rows, `lstm.py` a recurrence. `padding.py` adds the cells around data. `hooks.py` is
what a target may change about operators before they are computed.
"""

from loopwright.topi.movement.reshape import flatten
from loopwright.topi.nn.activation import leaky_relu, prelu, relu
from loopwright.topi.nn.adaptive_pool import adaptive_pool, adaptive_pool1d, adaptive_pool3d
from loopwright.topi.nn.attention import attention
from loopwright.topi.nn.batch_norm import batch_norm
from loopwright.topi.nn.conv.bitserial import (
    binarize_pack,
    binary_dense,
    bitpack,
    bitserial_conv2d_nchw,
    bitserial_conv2d_nhwc,
    bitserial_dense,
)
from loopwright.topi.nn.conv.blocked import conv2d_NCHWc, conv2d_NCHWc_int8, unpack_NCHWc_to_nchw
from loopwright.topi.nn.conv.conv2d_backward_weight import conv2d_backward_weight_nchw
from loopwright.topi.nn.conv.convolution import (
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
from loopwright.topi.nn.conv.correlation import correlation_nchw
from loopwright.topi.nn.conv.deformable import deformable_conv2d_nchw, deformable_conv2d_nhwc
from loopwright.topi.nn.conv.depthwise import depthwise_conv2d_nchw, depthwise_conv2d_NCHWc, depthwise_conv2d_nhwc
from loopwright.topi.nn.conv.depthwise_backward import (
    depthwise_conv2d_backward_input_nhwc,
    depthwise_conv2d_backward_weight_nhwc,
)
from loopwright.topi.nn.conv.dilate import dilate
from loopwright.topi.nn.conv.transposed import (
    conv1d_transpose_ncw,
    conv2d_transpose_nchw,
    conv3d_transpose_ncdhw,
    group_conv1d_transpose_ncw,
    group_conv2d_transpose_nchw,
    group_conv3d_transpose_ncdhw,
)
from loopwright.topi.nn.conv.winograd import (
    conv2d_winograd_nchw,
    conv2d_winograd_nchw_without_weight_transform,
    conv2d_winograd_nhwc,
    conv2d_winograd_nhwc_without_weight_transform,
)
from loopwright.topi.nn.conv.winograd_weights import (
    NoWinograd,
    conv2d_gemm_weight_transform,
    conv2d_winograd_weight_transform,
    conv3d_winograd_weight_transform,
)
from loopwright.topi.nn.depth_to_space import depth_to_space, space_to_depth
from loopwright.topi.nn.fifo_buffer import fifo_buffer
from loopwright.topi.nn.hooks import (
    NoLayoutKnown,
    add_alter_layout,
    batch_matmul_legalize,
    bias_add_legalize,
    conv2d_alter_layout,
    conv2d_infer_layout,
    conv2d_legalize,
    conv2d_transpose_legalize,
    conv3d_alter_layout,
    dense_alter_layout,
    dense_legalize,
    depthwise_conv2d_infer_layout,
    erf_legalize,
    matmul_legalize,
    qnn_add_alter_layout,
    qnn_conv2d_alter_layout,
    qnn_dense_alter_layout,
    qnn_requantize_alter_layout,
    sparse_dense_alter_layout,
    take_legalize,
)
from loopwright.topi.nn.local_response_norm import lrn
from loopwright.topi.nn.lstm import lstm
from loopwright.topi.nn.matmul import batch_matmul, dense, dense_pack, matmul
from loopwright.topi.nn.nll_loss import nll_loss
from loopwright.topi.nn.normalization import group_norm, instance_norm, layer_norm, rms_norm
from loopwright.topi.nn.padding import mirror_pad, pad
from loopwright.topi.nn.pool_grad import pool_grad
from loopwright.topi.nn.pooling import global_pool, pool1d, pool2d, pool3d
from loopwright.topi.nn.scale_shift import bias_add, scale_shift_nchw, scale_shift_nchwc, scale_shift_nhwc
from loopwright.topi.nn.simulated_quantization import simulated_dequantize, simulated_quantize
from loopwright.topi.nn.softmax import fast_softmax, log_softmax, softmax
from loopwright.topi.nn.space_to_batch import batch_to_space_nd, space_to_batch_nd
from loopwright.topi.nn.sparse import (
    sparse_add,
    sparse_conv2d,
    sparse_dense,
    sparse_dense_sp_lhs,
    sparse_dense_sp_rhs,
    sparse_transpose,
)
from loopwright.topi.nn.upsampling import upsampling, upsampling3d
from loopwright.topi.parts.pad_amounts import get_pad_tuple, get_pad_tuple1d, get_pad_tuple3d, get_pad_tuple_generic

__all__ = [
    "NoLayoutKnown",
    "NoWinograd",
    "adaptive_pool",
    "adaptive_pool1d",
    "adaptive_pool3d",
    "add_alter_layout",
    "attention",
    "batch_matmul",
    "batch_matmul_legalize",
    "batch_norm",
    "batch_to_space_nd",
    "bias_add",
    "bias_add_legalize",
    "binarize_pack",
    "binary_dense",
    "bitpack",
    "bitserial_conv2d_nchw",
    "bitserial_conv2d_nhwc",
    "bitserial_dense",
    "conv",
    "conv1d",
    "conv1d_ncw",
    "conv1d_nwc",
    "conv1d_transpose_ncw",
    "conv2d",
    "conv2d_NCHWc",
    "conv2d_NCHWc_int8",
    "conv2d_alter_layout",
    "conv2d_backward_weight_nchw",
    "conv2d_gemm_weight_transform",
    "conv2d_hwcn",
    "conv2d_infer_layout",
    "conv2d_legalize",
    "conv2d_nchw",
    "conv2d_nhwc",
    "conv2d_transpose_legalize",
    "conv2d_transpose_nchw",
    "conv2d_winograd_nchw",
    "conv2d_winograd_nchw_without_weight_transform",
    "conv2d_winograd_nhwc",
    "conv2d_winograd_nhwc_without_weight_transform",
    "conv2d_winograd_weight_transform",
    "conv3d_alter_layout",
    "conv3d_ncdhw",
    "conv3d_ndhwc",
    "conv3d_transpose_ncdhw",
    "conv3d_winograd_weight_transform",
    "correlation_nchw",
    "deformable_conv2d_nchw",
    "deformable_conv2d_nhwc",
    "dense",
    "dense_alter_layout",
    "dense_legalize",
    "dense_pack",
    "depth_to_space",
    "depthwise_conv2d_NCHWc",
    "depthwise_conv2d_backward_input_nhwc",
    "depthwise_conv2d_backward_weight_nhwc",
    "depthwise_conv2d_infer_layout",
    "depthwise_conv2d_nchw",
    "depthwise_conv2d_nhwc",
    "dilate",
    "erf_legalize",
    "fast_softmax",
    "fifo_buffer",
    "flatten",
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
    "group_norm",
    "instance_norm",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "lrn",
    "lstm",
    "matmul",
    "matmul_legalize",
    "mirror_pad",
    "nll_loss",
    "pad",
    "pool1d",
    "pool2d",
    "pool3d",
    "pool_grad",
    "prelu",
    "qnn_add_alter_layout",
    "qnn_conv2d_alter_layout",
    "qnn_dense_alter_layout",
    "qnn_requantize_alter_layout",
    "relu",
    "rms_norm",
    "scale_shift_nchw",
    "scale_shift_nchwc",
    "scale_shift_nhwc",
    "simulated_dequantize",
    "simulated_quantize",
    "softmax",
    "space_to_batch_nd",
    "space_to_depth",
    "sparse_add",
    "sparse_conv2d",
    "sparse_dense",
    "sparse_dense_alter_layout",
    "sparse_dense_sp_lhs",
    "sparse_dense_sp_rhs",
    "sparse_transpose",
    "take_legalize",
    "unpack_NCHWc_to_nchw",
    "upsampling",
    "upsampling3d",
]
