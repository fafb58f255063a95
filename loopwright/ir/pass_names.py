"""The names under which scripts know passes, and the passes of ours that do what they do.

A row with a name of ours makes `tir.transform.LoopPartition()` return that pass, and leaves it out where a context says
`disabled_pass=["tir.LoopPartition"]`. A row with an empty name is a pass that is not built: asking for it says so;
disabling it changes nothing. A new pass of ours enters here with the name it answers to.
"""

from __future__ import annotations

from typing import Final

PEER_PASSES: Final[dict[str, str]] = {
    "AnnotateDeviceRegions": "",
    "AnnotateEntryFunc": "",
    "ApplyLayoutTransforms": "",
    "BF16ComputeLegalize": "legalize_low_precision",
    "BF16StorageLegalize": "",
    "BindTarget": "",
    "CoProcSync": "",
    "CombineContextCall": "",
    "CommonSubexprElimTIR": "",
    "CompactBufferAllocation": "",
    "ConvertBlocksToOpaque": "",
    "ConvertForLoopsToSerial": "",
    "ConvertSSA": "",
    "DecorateDeviceScope": "",
    "DefaultGPUSchedule": "",
    "ExtractPrimFuncConstants": "",
    "FP8ComputeLegalize": "legalize_low_precision",
    "FP8StorageLegalize": "",
    "FlattenBuffer": "flatten_buffers",
    "ForceNarrowIndexToInt32": "",
    "HoistExpression": "",
    "HoistIfThenElse": "",
    "InferFragment": "",
    "InjectCopyIntrin": "",
    "InjectDoubleBuffer": "",
    "InjectPTXAsyncCopy": "",
    "InjectPTXLDG32": "",
    "InjectPermutedLayout": "",
    "InjectPrefetch": "",
    "InjectRollingBuffer": "",
    "InjectSoftwarePipeline": "",
    "InjectVirtualThread": "",
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
    "LowerCustomDatatypes": "",
    "LowerDeviceKernelLaunch": "",
    "LowerDeviceStorageAccessInfo": "",
    "LowerInitBlock": "write_inits",
    "LowerIntrin": "lower_intrinsics",
    "LowerMatchBuffer": "",
    "LowerOpaqueBlock": "lower_blocks",
    "LowerTVMBuiltin": "",
    "LowerThreadAllreduce": "",
    "LowerVtcmAlloc": "",
    "LowerWarpMemory": "",
    "MakePackedAPI": "",
    "MakeUnpackedAPI": "",
    "ManifestSharedMemoryLocalStage": "",
    "MergeDynamicSharedMemoryAllocations": "",
    "NarrowDataType": "",
    "PlanAndUpdateBufferAllocationLocation": "write_allocations",
    "PointerValueTypeRewrite": "",
    "ReduceBranchingThroughOvercompute": "",
    "RemoveAssume": "",
    "RemoveNoOp": "",
    "RemoveStoreUndef": "",
    "RemoveWeightLayoutRewriteBlock": "",
    "RenormalizeSplitPattern": "",
    "RewriteUnsafeSelect": "",
    "Simplify": "simplify",
    "SkipAssert": "skip_asserts",
    "SplitHostDevice": "",
    "StorageFlatten": "",
    "StorageRewrite": "",
    "TextureFlatten": "",
    "ThreadSync": "",
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
