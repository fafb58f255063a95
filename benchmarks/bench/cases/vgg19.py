"""VGG-19: all its distinct convolutions, each 3×3."""

from __future__ import annotations

from benchmarks.bench.cases import networks
from benchmarks.bench.cases.convolution import rows

CASES = rows(networks.vgg19(), quick=("14² 512→512, 3×3",))
