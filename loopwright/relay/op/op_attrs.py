"""The classes of attributes by the names that scripts for TVM give them.

    isinstance(call.attrs, op_attrs.Conv2DAttrs)
    op_attrs.Conv2DAttrs(strides=(2, 2))         # or ir.make_node("relay.attrs.Conv2DAttrs", strides=(2, 2))

Here every operator has a class of attributes of its own (`registry.py`); there, several may share one. So these are no
classes of objects: `isinstance` asks for the operator, and what one makes has the class of the first operator in its
row. A call of another operator of the row takes it too.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Final

from loopwright.relay.op.registry import Operator, get

_ROWS: Final = """
AdaptivePool1DAttrs nn.adaptive_max_pool1d nn.adaptive_avg_pool1d
AdaptivePool2DAttrs nn.adaptive_max_pool2d nn.adaptive_avg_pool2d
AdaptivePool3DAttrs nn.adaptive_max_pool3d nn.adaptive_avg_pool3d
AffineGridAttrs image.affine_grid
AllClassNonMaximumSuppressionAttrs vision.all_class_non_max_suppression
AllocStorageAttrs memory.alloc_storage
AllocTensorAttrs memory.alloc_tensor
ArangeAttrs arange
ArgReduceAttrs argmax argmin
ArgsortAttrs argsort
AvgPool1DAttrs nn.avg_pool1d
AvgPool2DAttrs nn.avg_pool2d nn.avg_pool2d_grad
AvgPool3DAttrs nn.avg_pool3d
BatchMatmulAttrs nn.batch_matmul qnn.batch_matmul
BatchNormAttrs nn.batch_norm
BatchToSpaceNDAttrs nn.batch_to_space_nd
BiasAddAttrs nn.bias_add
BinaryConv2DAttrs nn.bitserial_conv2d
BinaryDenseAttrs nn.bitserial_dense
BitPackAttrs nn.bitpack
CastAttrs cast
ClipAttrs clip
ConcatenateAttrs concatenate qnn.concatenate
Conv1DAttrs nn.conv1d
Conv1DTransposeAttrs nn.conv1d_transpose
Conv2DAttrs nn.conv2d nn.contrib_conv2d_nchwc nn.contrib_depthwise_conv2d_nchwc nn.conv2d_backward_weight qnn.conv2d
Conv2DTransposeAttrs nn.conv2d_transpose qnn.conv2d_transpose
Conv2DWinogradAttrs nn.contrib_conv2d_winograd_without_weight_transform
Conv3DAttrs nn.conv3d
Conv3DTransposeAttrs nn.conv3d_transpose
ConvGemmWeightTransformAttrs nn.contrib_conv2d_gemm_weight_transform
ConvWinogradWeightTransformAttrs nn.contrib_conv2d_winograd_weight_transform nn.contrib_conv3d_winograd_weight_transform
CorrelationAttrs nn.correlation
CropAndResizeAttrs image.crop_and_resize
DeformableConv2DAttrs nn.deformable_conv2d
DenseAttrs nn.dense qnn.dense
DensePackAttrs nn.contrib_dense_pack
DequantizeAttrs qnn.dequantize
DeviceCopyAttrs device_copy
DFTAttrs dft
DilateAttrs nn.dilate
Dilation2DAttrs image.dilation2d
DropoutAttrs nn.dropout
EinsumAttrs einsum
ExpandDimsAttrs expand_dims
FIFOBufferAttrs nn.fifo_buffer
FixedPointMultiplyAttrs fixed_point_multiply
GatherAttrs gather
GatherNDAttrs gather_nd
GetValidCountsAttrs vision.get_valid_counts
GlobalPool2DAttrs nn.global_max_pool2d nn.global_avg_pool2d
GridSampleAttrs image.grid_sample
GroupNormAttrs nn.group_norm
InitOpAttrs zeros ones full
InstanceNormAttrs nn.instance_norm
L2NormalizeAttrs nn.l2_normalize
LayerNormAttrs nn.layer_norm
LayoutTransformAttrs layout_transform
LeakyReluAttrs nn.leaky_relu
LRNAttrs nn.lrn
MatmulAttrs nn.matmul
MatrixSetDiagAttrs matrix_set_diag
MaxPool1DAttrs nn.max_pool1d
MaxPool2DAttrs nn.max_pool2d nn.max_pool2d_grad
MaxPool3DAttrs nn.max_pool3d
MeshgridAttrs meshgrid
MirrorPadAttrs nn.mirror_pad
MultiBoxPriorAttrs vision.multibox_prior
MultiBoxTransformLocAttrs vision.multibox_transform_loc
MultinomialAttrs random.multinomial
NLLLossAttrs nn.nll_loss
NdarraySizeAttrs ndarray_size
NonMaximumSuppressionAttrs vision.non_max_suppression
NormalAttrs random.normal
OnDeviceAttrs on_device
OneHotAttrs one_hot
PReluAttrs nn.prelu
PadAttrs nn.pad
ProposalAttrs vision.proposal
QuantizeAttrs qnn.quantize
ROIAlignAttrs vision.roi_align
ROIPoolAttrs vision.roi_pool
ReduceAttrs sum max min prod mean all any
RepeatAttrs repeat
RequantizeAttrs qnn.requantize
ReshapeAttrs reshape
Resize1DAttrs image.resize1d
Resize2DAttrs image.resize2d
Resize3DAttrs image.resize3d
ReverseAttrs reverse
ReverseSequenceAttrs reverse_sequence
ScanopAttrs cumsum cumprod
ScatterElementsAttrs scatter_elements
ScatterNDAttrs scatter_nd
SearchSortedAttrs searchsorted
SequenceMaskAttrs sequence_mask
ShapeOfAttrs shape_of
SliceLikeAttrs slice_like
SoftmaxAttrs nn.softmax nn.log_softmax nn.fast_softmax
SpaceToBatchNDAttrs nn.space_to_batch_nd
SparseConv2DAttrs nn.sparse_conv2d
SparseDenseAttrs nn.sparse_dense
SparseToDenseAttrs sparse_to_dense
SparseTransposeAttrs nn.sparse_transpose
SplitAttrs split
SqueezeAttrs squeeze
StackAttrs stack
StftAttrs stft
StridedSliceAttrs strided_slice
SubPixelAttrs nn.depth_to_space nn.space_to_depth
TakeAttrs take
ThreefryGenerateAttrs random.threefry_generate
TileAttrs tile
TopKAttrs topk
TransposeAttrs transpose
TriluAttrs trilu
UniformAttrs random.uniform
UniqueAttrs unique
UpSampling3DAttrs nn.upsampling3d
UpSamplingAttrs nn.upsampling
VarianceAttrs variance
YoloReorgAttrs vision.yolo_reorg
"""
OPERATORS: Final = {name: tuple(operators) for name, *operators in map(str.split, _ROWS.split("\n")[1:-1])}

# What a search leaves in attributes; there is none here that would read them.
_OF_SEARCHES: Final = ("auto_scheduler_rewritten_layout", "meta_schedule_original_shape")


class _ByOperator(type):
    """Classes whose objects are the attributes of certain operators."""

    operators: tuple[str, ...]

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Operator) and value.op_name in cls.operators

    def __call__(cls, **fields: Any) -> Operator:
        kept = {name: value for name, value in fields.items() if name not in _OF_SEARCHES}
        return get(cls.operators[0]).attributes(**kept)


def __getattr__(name: str) -> _ByOperator:
    operators = OPERATORS.get(name)
    if operators is None:
        near = get_close_matches(name, OPERATORS, 2)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise AttributeError(f"there are no attributes called {name!r}{hint}", name=name)
    result = _ByOperator(name, (), {"operators": operators, "__module__": __name__})
    globals()[name] = result
    return result


def make(type_key: str, fields: dict[str, object]) -> Operator:
    """The attributes that `relay.attrs.Conv2DAttrs` names."""
    result: Operator = __getattr__(type_key.rpartition(".")[2])(**fields)
    return result


def __dir__() -> list[str]:
    return sorted(OPERATORS)
