"""Postprocs. Open `postproc.py` first, then `parallel_vectorize_unroll.py`."""

from loopwright.meta_schedule.postproc.checks import DisallowAsyncStridedMemCopy as DisallowAsyncStridedMemCopy
from loopwright.meta_schedule.postproc.checks import DisallowDynamicLoop as DisallowDynamicLoop
from loopwright.meta_schedule.postproc.checks import RewriteCooperativeFetch as RewriteCooperativeFetch
from loopwright.meta_schedule.postproc.checks import RewriteLayout as RewriteLayout
from loopwright.meta_schedule.postproc.checks import RewriteUnboundBlock as RewriteUnboundBlock
from loopwright.meta_schedule.postproc.checks import VerifyGPUCode as VerifyGPUCode
from loopwright.meta_schedule.postproc.checks import VerifyVTCMLimit as VerifyVTCMLimit
from loopwright.meta_schedule.postproc.parallel_vectorize_unroll import (
    RewriteParallelVectorizeUnroll as RewriteParallelVectorizeUnroll,
)
from loopwright.meta_schedule.postproc.postproc import Postproc as Postproc
from loopwright.meta_schedule.postproc.postproc import PyPostproc as PyPostproc
from loopwright.meta_schedule.postproc.postproc import create as create
from loopwright.meta_schedule.postproc.reduction_block import RewriteReductionBlock as RewriteReductionBlock
from loopwright.meta_schedule.postproc.tensorize import RewriteTensorize as RewriteTensorize

_CPU = [DisallowDynamicLoop, RewriteParallelVectorizeUnroll, RewriteReductionBlock, RewriteLayout]
_TENSORIZED = [*_CPU[:3], lambda: RewriteTensorize(True), RewriteLayout]
_GPU = [DisallowDynamicLoop, RewriteCooperativeFetch, RewriteUnboundBlock, *_CPU[1:3], VerifyGPUCode]
Postproc.sets = {
    "llvm": _CPU,
    **dict.fromkeys(("vnni", "avx512", "asimd", "dotprod"), _TENSORIZED),
    "cuda": _GPU,
    "cuda-tensorcore": [*_GPU, RewriteTensorize],
}
