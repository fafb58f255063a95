"""relay.transform: passes over graphs, one file each; `graph_pass.py` is what they share.

A pass is made by calling its name: `relay.transform.FuseOps()(mod)`. `Sequential`, `PassContext` and instruments are
those of every layer. `pipeline.py` is the list that `relay.build` runs, in its order, with the reasons.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

from loopwright.relay.expr import Expr

# Public name → file of this folder.
_FILES: Final = {
    "graph_pass": "GraphPass function_pass graph_pass",
    "alter_op_layout": "AlterOpLayout register_alter_op_layout",
    "annotate_target": "AnnotateTarget",
    "canonicalize_cast": "CanonicalizeCast",
    "canonicalize_ops": "CanonicalizeOps",
    "bind_sizes": "BindSizes",
    "choose_layouts": "ChooseLayouts",
    "combine_parallel_batch_matmul": "CombineParallelBatchMatmul",
    "combine_parallel_conv2d": "CombineParallelConv2D",
    "combine_parallel_dense": "CombineParallelDense",
    "convert_layout": "ConvertLayout LayoutConfig",
    "dead_code_elimination": "DeadCodeElimination",
    "dynamic_to_static": "DynamicToStatic",
    "eliminate_common_subexpr": "EliminateCommonSubexpr",
    "eta_expand": "EtaExpand",
    "fake_quantization_to_integer": "FakeQuantizationToInteger",
    "fake_quantization.rules": "register_fake_quantization_to_integer",
    "fast_math": "FastMath",
    "flatten_atrous_conv": "FlattenAtrousConv",
    "fold_constant": "FoldConstant FoldConstantExpr",
    "fold_explicit_padding": "FoldExplicitPadding",
    "fold_scale_axis": "BackwardFoldScaleAxis FoldScaleAxis ForwardFoldScaleAxis",
    "fuse_attention": "FuseAttention",
    "fuse_ops": "DefuseOps FuseOps",
    "infer_type": "InferType",
    "first_order_gradient": "FirstOrderGradient gradient",
    "inline": "Inline",
    "integer_products": "IntegerProducts",
    "lambda_lift": "LambdaLift",
    "legalize": "Legalize register_legalize",
    "merge_compiler_regions": "MergeCompilerRegions",
    "merge_composite": "MergeComposite",
    "normal_forms": "ToANormalForm ToBasicBlockNormalForm ToGraphNormalForm",
    "partial_evaluate": "PartialEvaluate",
    "partition_graph": "PartitionGraph",
    "remove_unused_functions": "RemoveUnusedFunctions",
    "simplify_expr": "SimplifyExpr SimplifyExprPostAlterOp",
    "sink_reshapes": "SinkReshapes",
    "simplify_inference": "SimplifyInference",
    "to_mixed_precision": "ToMixedPrecision register_mixed_precision_conversion",
}
_HOMES = {name: f"loopwright.relay.transform.{file}" for file, names in _FILES.items() for name in names.split()}
_HOMES |= dict.fromkeys(
    "ModulePass Pass PassContext PassInfo PassInstrument Sequential module_pass PrintIR".split(),
    "loopwright.ir.transform",
)

__all__ = list(_HOMES)


def __getattr__(name: str) -> Expr:
    if name.startswith("_") or name not in _HOMES:
        from loopwright.runtime.guesses import no_attribute

        raise no_attribute("module 'loopwright.relay.transform' has no attribute", name, __all__, {})
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
