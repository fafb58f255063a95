"""The rungs, one file a family: a list `RUNGS` of hand-written schedules."""

from benchmarks.loops.rungs import chain, convolution, elementwise, gemm, reduction, scan, softmax, stencil, transpose

FAMILIES = {
    "gemm": gemm.RUNGS,
    "chain": chain.RUNGS,
    "convolution": convolution.RUNGS,
    "stencil": stencil.RUNGS,
    "reduction": reduction.RUNGS,
    "transpose": transpose.RUNGS,
    "scan": scan.RUNGS,
    "softmax": softmax.RUNGS,
    "elementwise": elementwise.RUNGS,
}

__all__ = ["FAMILIES"]
