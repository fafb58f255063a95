"""Annotations: notes on blocks that mean something to more than one layer."""

from __future__ import annotations

from typing import Final

TENSORIZED: Final = "tensor_intrin"  # names the tensor intrinsic that computes the block
