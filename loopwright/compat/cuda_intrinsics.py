"""`tvm.tir.tensor_intrin.cuda`: names of intrinsics that are not built: they can be imported, and tell when used."""

from __future__ import annotations

from loopwright.compat.stand_in import StandIn

__all__: list[str] = []

_PATH = "tir.tensor_intrin.cuda"


def __getattr__(name: str) -> StandIn:
    if name.startswith("__"):
        raise AttributeError(name)
    return StandIn(f"{_PATH}.{name}")
