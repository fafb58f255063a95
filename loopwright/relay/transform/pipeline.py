"""pipeline: the passes that `relay.build` runs over a graph, in their order.

Each can be switched off: `PassContext(disabled_pass=["FoldScaleAxis"])`. Adding a pass edits this one list. Without a
PassContext of the user's all of them run that change no result but by rounding: level 3.
"""

from __future__ import annotations

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext
from loopwright.ir.passes import Pass, Sequential
from loopwright.relay.expr import Call
from loopwright.relay.transform.fusion.combine_parallel_batch_matmul import CombineParallelBatchMatmul
from loopwright.relay.transform.fusion.combine_parallel_conv2d import CombineParallelConv2D
from loopwright.relay.transform.fusion.combine_parallel_dense import CombineParallelDense
from loopwright.relay.transform.fusion.fuse_attention import FuseAttention
from loopwright.relay.transform.fusion.fuse_ops import FuseOps
from loopwright.relay.transform.fusion.sink_reshapes import SinkReshapes
from loopwright.relay.transform.layout.alter_op_layout import AlterOpLayout
from loopwright.relay.transform.layout.choose_layouts import ChooseLayouts
from loopwright.relay.transform.precision.fake_quantization_to_integer import FakeQuantizationToInteger
from loopwright.relay.transform.precision.integer_products import IntegerProducts
from loopwright.relay.transform.simplify.canonicalize_cast import CanonicalizeCast
from loopwright.relay.transform.simplify.canonicalize_ops import CanonicalizeOps
from loopwright.relay.transform.simplify.drop_unused_results import DropUnusedResults
from loopwright.relay.transform.simplify.eliminate_common_subexpr import EliminateCommonSubexpr
from loopwright.relay.transform.simplify.fast_math import FastMath
from loopwright.relay.transform.simplify.flatten_atrous_conv import FlattenAtrousConv
from loopwright.relay.transform.simplify.fold_constant import FoldConstant
from loopwright.relay.transform.simplify.fold_explicit_padding import FoldExplicitPadding
from loopwright.relay.transform.simplify.fold_scale_axis import FoldScaleAxis
from loopwright.relay.transform.simplify.fold_transposes import FoldTransposes
from loopwright.relay.transform.simplify.legalize import Legalize
from loopwright.relay.transform.simplify.simplify_expr import SimplifyExpr, SimplifyExprPostAlterOp
from loopwright.relay.transform.simplify.simplify_inference import SimplifyInference
from loopwright.relay.transform.typed_rewrite import is_call
from loopwright.relay.transform.types.bind_sizes import BindSizes
from loopwright.relay.transform.types.dynamic_to_static import DynamicToStatic
from loopwright.relay.transform.types.infer_type import InferType


def graph_passes() -> list[Pass]:
    """What makes a graph smaller and simpler; the result is a graph of operators still."""
    return [
        InferType(),
        DynamicToStatic(),  # first: types that are known are what all others ask for
        IntegerProducts(),  # before FakeQuantizationToInteger, which would round between a product and its quantize
        FakeQuantizationToInteger(),  # before anything is folded into the numbers between dequantize and quantize
        Legalize(),
        SimplifyInference(),  # what batch_norm becomes is what the others fold and share
        FoldExplicitPadding(),  # before layouts and factors: a pad in between would stop both
        EliminateCommonSubexpr(_is_conversion_of_indices),
        CombineParallelConv2D(),  # level 4: one large product is faster than three, and slices are not free
        CombineParallelDense(to_batch=False),
        CombineParallelBatchMatmul(),
        FoldConstant(),  # before FoldScaleAxis: only of constants it is known that they are positive
        FoldScaleAxis(),
        CanonicalizeOps(),  # after it: bias_add says plainly which axis is that of the channels
        SimplifyExpr(),
        DropUnusedResults(),  # after all that may drop a user of a result
        FuseAttention(),  # after it: one reshape stands where the importers wrote three
        FlattenAtrousConv(),
        AlterOpLayout(),  # after all that looks at plain convolutions; nothing is registered unless a user does
        SinkReshapes(),  # after rewrites that look for a product and its bias; before reshapes are joined again
        ChooseLayouts(),  # whose prices are those of convolutions as they will be
        SimplifyExprPostAlterOp(),
        FastMath(),  # level 4: it is less exact
        FoldConstant(),  # the weights with their factors, and what simplifying brought together
        FoldTransposes(),  # after it: the transpose of a constant is a constant
        CanonicalizeCast(),  # last: it computes twice what is cheap, to be fused with each user
    ]


def _is_conversion_of_indices(call: Call) -> bool:
    """A conversion to int32 is cheap, and shared it would be a tensor that is written."""
    return is_call(call, "cast") and call.attrs.dtype == "int32"


def build_passes() -> list[Pass]:
    """All of it, up to kernels."""
    return [
        *graph_passes(),
        BindSizes(),  # before kernels are made: their parameters have these sizes
        FuseOps(),  # last: it decides what is one kernel, and everything before looks at single operators
        InferType(),
    ]


def optimize(mod: IRModule) -> IRModule:
    """The module as kernels that call each other."""
    context = PassContext.innermost()
    if context is None:
        with PassContext(opt_level=3):
            return optimize(mod)
    kernels = Sequential(build_passes(), name="relay.build")(mod)
    if not context.pass_enabled(FuseOps().info):
        # Nothing is joined then, but a program is made of kernels all the same: of one operator each.
        kernels = InferType()(FuseOps(fuse_opt_level=0)(kernels))
    return kernels
