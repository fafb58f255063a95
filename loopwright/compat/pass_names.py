"""The names under which scripts know passes, and the passes of ours that do what they do.

A row with a name of ours makes `tir.transform.LoopPartition()` return that pass, and leaves it out where a context says
`disabled_pass=["tir.LoopPartition"]`. A row with an empty name is a pass that is not built: asking for it says so;
disabling it changes nothing. A new pass of ours enters here with the name it answers to. `ir/pass_aliases.py` looks
names up. Where our pass leaves another form of program than scripts expect, `PEER_FORMS` names the file of
`compat/passes` whose pass they get.
"""

from __future__ import annotations

from typing import Final

PEER_PASSES: Final[dict[str, str]] = {
    "AnnotateDeviceRegions": "",
    "AnnotateEntryFunc": "annotate_entry",
    "ApplyLayoutTransforms": "",
    "BF16ComputeLegalize": "legalize_low_precision",
    "BF16StorageLegalize": "",
    "BindTarget": "bind_target",
    "CoProcSync": "",
    "CombineContextCall": "",
    "CommonSubexprElimTIR": "common_subexpressions",
    "CompactBufferAllocation": "compact_buffers",
    "ConvertBlocksToOpaque": "make_blocks_opaque",
    "ConvertForLoopsToSerial": "convert_for_loops_to_serial",
    "ConvertSSA": "convert_ssa",
    "DecorateDeviceScope": "",
    "DefaultGPUSchedule": "",
    "ExtractPrimFuncConstants": "extract_constants",
    "FP8ComputeLegalize": "legalize_low_precision",
    "FP8StorageLegalize": "",
    "FlattenBuffer": "flatten_buffers",
    "ForceNarrowIndexToInt32": "force_narrow_index_to_int32",
    "HoistExpression": "hoist_expressions",
    "HoistIfThenElse": "hoist_if_then_else",
    "InferFragment": "",
    "InjectCopyIntrin": "",
    "InjectDoubleBuffer": "double_buffer",
    "InjectPTXAsyncCopy": "",
    "InjectPTXLDG32": "",
    "InjectPermutedLayout": "",
    "InjectPrefetch": "write_prefetches",
    "InjectRollingBuffer": "",
    "InjectSoftwarePipeline": "software_pipeline",
    "InjectVirtualThread": "inject_virtual_thread",
    "InstallDebugSpans": "",
    "InstrumentBoundCheckers": "check_bounds",
    "InstrumentProfileIntrinsics": "",
    "LegalizePackedCalls": "",
    "LiftAttrScope": "",
    "LiftThreadBinding": "",
    "LoopPartition": "partition_loops",
    "LowerAsyncDMA": "",
    "LowerAutoCopy": "",
    "LowerCrossThreadReduction": "",
    "LowerCustomDatatypes": "lower_custom_datatypes",
    "LowerDeviceKernelLaunch": "",
    "LowerDeviceStorageAccessInfo": "",
    "LowerInitBlock": "write_inits",
    "LowerIntrin": "lower_intrinsics",
    "LowerMatchBuffer": "resolve_matches",
    "LowerOpaqueBlock": "lower_blocks",
    "LowerTVMBuiltin": "",
    "LowerThreadAllreduce": "",
    "LowerVtcmAlloc": "",
    "LowerWarpMemory": "",
    "MakePackedAPI": "",
    "MakeUnpackedAPI": "",
    "ManifestSharedMemoryLocalStage": "",
    "MergeDynamicSharedMemoryAllocations": "",
    "NarrowDataType": "narrow_data_type",
    "PlanAndUpdateBufferAllocationLocation": "write_allocations",
    "PointerValueTypeRewrite": "",
    "ReduceBranchingThroughOvercompute": "",
    "RemoveAssume": "remove_assume",
    "RemoveNoOp": "remove_no_op",
    "RemoveStoreUndef": "remove_store_undef",
    "RemoveWeightLayoutRewriteBlock": "",
    "RenormalizeSplitPattern": "renormalize_splits",
    "RewriteUnsafeSelect": "rewrite_unsafe_select",
    "Simplify": "simplify",
    "SkipAssert": "skip_asserts",
    "SplitHostDevice": "",
    "StorageFlatten": "flatten_buffers",
    "StorageRewrite": "plan_storage",
    "TextureFlatten": "",
    "ThreadSync": "insert_barriers",
    "TransformMmaBufferLayout": "",
    "UnifyThreadBinding": "",
    "UnrollLoop": "unroll_loops",
    "UseAssumeToReduceBranches": "",
    "VectorizeLoop": "vectorize_loops",
    "VerifyMemory": "",
    "VerifyVTCMLimit": "",
}

PEER_FORMS: Final[dict[str, str]] = {
    "AnnotateDeviceRegions": "annotate_device_regions",
    "BF16ComputeLegalize": "promote_small_floats:promote_bfloat16",
    "BF16StorageLegalize": "promote_small_floats:store_bfloat16_as_integers",
    "CommonSubexprElimTIR": "share_expressions",
    "CompactBufferAllocation": "compact_allocations",
    "ConvertBlocksToOpaque": "statement_passes:convert_blocks_to_opaque",
    "DecorateDeviceScope": "statement_passes:decorate_device_scope",
    "FP8ComputeLegalize": "promote_small_floats:promote_float8",
    "FP8StorageLegalize": "promote_small_floats:store_float8_as_integers",
    "FlattenBuffer": "flatten_to_memory",
    "HoistExpression": "hoist_conditions:hoist_expression",
    "HoistIfThenElse": "hoist_conditions:hoist_if_then_else",
    "InjectRollingBuffer": "roll_buffers",
    "InjectSoftwarePipeline": "pipeline_blocks",
    "InstallDebugSpans": "statement_passes:install_debug_spans",
    "InstrumentProfileIntrinsics": "instrument_profile",
    "LiftAttrScope": "statement_passes:lift_attr_scope",
    "LiftThreadBinding": "statement_passes:lift_thread_binding",
    "LowerDeviceKernelLaunch": "lower_kernel_launches",
    "LowerInitBlock": "lower_init_blocks",
    "LowerOpaqueBlock": "lower_opaque_blocks",
    "LowerTVMBuiltin": "lower_packed_calls",
    "MakePackedAPI": "calling_convention:make_packed_api",
    "MakeUnpackedAPI": "calling_convention:make_unpacked_api",
    "PlanAndUpdateBufferAllocationLocation": "plan_allocations",
    "PointerValueTypeRewrite": "statement_passes:pointer_value_type_rewrite",
    "ReduceBranchingThroughOvercompute": "reduce_branches",
    "Simplify": "simplify_in_place",
    "SplitHostDevice": "split_host_device",
    "UnifyThreadBinding": "unify_thread_bindings",
    "VerifyMemory": "kernel_checks:verify_memory",
    "VerifyVTCMLimit": "kernel_checks:verify_vtcm_limit",
}

# Those of `compat/passes/device_passes.py`: they change nothing, and refuse a program with work for them.
DEVICE_PASSES: Final = (
    "CoProcSync CombineContextCall InferFragment InjectPTXAsyncCopy InjectPTXLDG32 InjectPermutedLayout "
    "InjectCopyIntrin LegalizePackedCalls LowerAsyncDMA LowerDeviceStorageAccessInfo "
    "MergeDynamicSharedMemoryAllocations "
    "LowerAutoCopy LowerThreadAllreduce LowerVtcmAlloc LowerWarpMemory ManifestSharedMemoryLocalStage "
    "RemoveWeightLayoutRewriteBlock TextureFlatten TransformMmaBufferLayout UseAssumeToReduceBranches "
    "ApplyLayoutTransforms LowerCrossThreadReduction"
).split()
