"""What is measured: one file a family, each with a list `CASES`.

Compile times are no kernels, and are measured by `compile_times.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from benchmarks.bench.case import Case

FAMILIES = "sgemm dgemm chain elementwise transpose reductions math softmax normalization scans".split()


def cases_of(family: str) -> Sequence[Case]:
    """The rows of a family."""
    found: Sequence[Case] = importlib.import_module(f"benchmarks.bench.cases.{family}").CASES
    return found
