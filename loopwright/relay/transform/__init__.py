"""relay.transform: passes over graphs, one file each; `graph_pass.py` and `typed_rewrite.py` are what they share.

A pass is made by calling its name: `relay.transform.FuseOps()(mod)`. `Sequential`, `PassContext` and instruments are
those of every layer. `pipeline.py` is the list that `relay.build` runs, in its order, with the reasons; the passes
lie in folders by what they change: `types/`, `simplify/`, `layout/`, `fusion/`, `precision/`, `partition/` (for other
compilers), `devices/` (where values are) and `functions/` (calls, lets, control flow).
"""

from __future__ import annotations

import importlib
from typing import Any, Final

# Public name → file of this folder.
_FILES: Final = {
    "graph_pass": "FunctionPass GraphPass function_pass graph_pass",
    "devices.plan_devices": "PlanDevices",
    "functions.change_batch": "ChangeBatch",
    "functions.compiler_functions": "InlineCompilerFunctionsBoundTo MarkCompilerFunctionsAsExtern "
    "OutlineCompilerFunctionsWithExistingGlobalSymbols",
    "functions.annotate_used_memory": "AnnotateUsedMemory",
    "functions.dead_code_elimination": "DeadCodeElimination",
    "functions.eta_expand": "EtaExpand",
    "functions.first_order_gradient": "FirstOrderGradient gradient",
    "functions.inline": "Inline",
    "functions.lambda_lift": "LambdaLift",
    "functions.lazy_gradient_init": "LazyGradientInit",
    "functions.normal_forms": "ToANormalForm ToANormalFormExpr ToBasicBlockNormalForm ToGraphNormalForm",
    "functions.partial_evaluate": "PartialEvaluate",
    "functions.remove_unused_functions": "RemoveUnusedFunctions",
    "functions.to_cps": "ToCPS to_cps un_cps",
    "fusion.batching_ops": "BatchingOps",
    "fusion.combine_parallel_batch_matmul": "CombineParallelBatchMatmul",
    "fusion.combine_parallel_conv2d": "CombineParallelConv2D",
    "fusion.combine_parallel_dense": "CombineParallelDense",
    "fusion.fuse_attention": "FuseAttention",
    "fusion.fuse_ops": "DefuseOps FuseOps",
    "fusion.sink_reshapes": "SinkReshapes",
    "fusion.split_args": "SplitArgs",
    "layout.alter_op_layout": "AlterOpLayout register_alter_op_layout",
    "layout.choose_layouts": "ChooseLayouts",
    "layout.convert_layout": "ConvertLayout LayoutConfig",
    "partition.annotate_target": "AnnotateTarget",
    "partition.merge_compiler_regions": "MergeCompilerRegions",
    "partition.merge_composite": "MergeComposite",
    "partition.partition_graph": "PartitionGraph",
    "precision.fake_quantization.rules": "register_fake_quantization_to_integer",
    "precision.fake_quantization_to_integer": "FakeQuantizationToInteger",
    "precision.integer_products": "IntegerProducts",
    "precision.recast": "recast",
    "precision.to_mixed_precision": "ToMixedPrecision register_mixed_precision_conversion",
    "simplify.canonicalize_cast": "CanonicalizeCast",
    "simplify.canonicalize_ops": "CanonicalizeOps",
    "simplify.drop_unused_results": "DropUnusedResults",
    "simplify.eliminate_common_subexpr": "EliminateCommonSubexpr",
    "simplify.fast_math": "FastMath",
    "simplify.flatten_atrous_conv": "FlattenAtrousConv",
    "simplify.fold_constant": "FoldConstant FoldConstantExpr",
    "simplify.fold_explicit_padding": "FoldExplicitPadding",
    "simplify.fold_scale_axis": "BackwardFoldScaleAxis FoldScaleAxis ForwardFoldScaleAxis",
    "simplify.fold_transposes": "FoldTransposes",
    "simplify.legalize": "Legalize register_legalize",
    "simplify.simplify_expr": "SimplifyExpr SimplifyExprPostAlterOp",
    "simplify.simplify_fc_transpose": "SimplifyFCTranspose",
    "simplify.simplify_inference": "SimplifyInference",
    "types.bind_sizes": "BindSizes",
    "types.dynamic_to_static": "DynamicToStatic",
    "types.capture_post_dfs_index": "CapturePostDfsIndexInSpans",
    "types.annotate_spans": "AnnotateSpans",
    "types.infer_type": "InferType InferTypeLocal",
}
_HOMES = {name: f"loopwright.relay.transform.{file}" for file, names in _FILES.items() for name in names.split()}
_HOMES |= dict.fromkeys(
    "ModulePass Pass PassContext PassInfo PassInstrument Sequential module_pass PrintIR".split(),
    "loopwright.ir.transform",
)

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in _HOMES:
        from loopwright.runtime.guesses import no_attribute

        raise no_attribute("module 'loopwright.relay.transform' has no attribute", name, __all__, {})
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
