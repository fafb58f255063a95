"""What is measured: one file a family, each with a list `CASES`.

Compile times are no kernels, and are measured by `compile_times.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from benchmarks.bench.case import Case

KERNELS = "sgemm dgemm chain elementwise transpose reductions math softmax normalization scans".split()
NETWORKS = "resnet50 vgg19 mobilenetv2 resnet3d".split()
LOW_PRECISION = "low_precision resnet50_int8".split()
FAMILIES = [*KERNELS, *NETWORKS, *LOW_PRECISION]
GROUPS = {"kernels": KERNELS, "networks": NETWORKS, "low": LOW_PRECISION}  # names for several families


def cases_of(family: str) -> Sequence[Case]:
    """The rows of a family."""
    found: Sequence[Case] = importlib.import_module(f"benchmarks.bench.cases.{family}").CASES
    return found
