"""The names under which scripts know passes, and the passes of ours that do what they do.

A row with a name of ours makes `tir.transform.LoopPartition()` return that pass, and leaves it out where a context says
`disabled_pass=["tir.LoopPartition"]`. A row with an empty name is a pass that is not built: asking for it says so;
disabling it changes nothing. A new pass of ours enters here with the name it answers to.
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


def own_name(name: str) -> str:
    """Our name of the pass that `name` stands for ("tir.LoopPartition", "LoopPartition"); else `name` itself."""
    return PEER_PASSES.get(name.removeprefix("tir."), "") or name


def is_peer_name(name: str) -> bool:
    """Whether scripts know a pass of that name, built or not."""
    return name.removeprefix("tir.") in PEER_PASSES
