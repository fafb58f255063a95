"""ResNet-18 in three dimensions: all its distinct convolutions of clips."""

from __future__ import annotations

from benchmarks.bench.cases import networks
from benchmarks.bench.cases.convolution import rows

CASES = rows(networks.resnet3d(), quick=("1×7×7 512→512, 3×3×3",))
