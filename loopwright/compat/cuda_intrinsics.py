"""`tvm.tir.tensor_intrin.cuda`: names of the tensor intrinsics of GPUs, none of which is built; a star import works."""

from __future__ import annotations

from loopwright.compat.stand_in import StandIn

__all__ = ["get_wmma_intrin_group"]

_PATH = "tir.tensor_intrin.cuda"

get_wmma_intrin_group = StandIn(f"{_PATH}.get_wmma_intrin_group")


def __getattr__(name: str) -> StandIn:
    if name.startswith("__"):
        raise AttributeError(name)
    return StandIn(f"{_PATH}.{name}")
