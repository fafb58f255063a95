"""ResNet-50, version 1.5: all its distinct convolutions."""

from __future__ import annotations

from benchmarks.bench.cases import networks
from benchmarks.bench.cases.convolution import rows

CASES = rows(networks.resnet50(), quick=("56² 64→64, 3×3", "14² 1024→256, 1×1"))
