"""MobileNet-V2: all its distinct convolutions, depthwise and 1×1."""

from __future__ import annotations

from benchmarks.bench.cases import networks
from benchmarks.bench.cases.convolution import rows

CASES = rows(networks.mobilenetv2(), quick=("14² 384 depthwise, 3×3", "14² 64→384, 1×1"))
