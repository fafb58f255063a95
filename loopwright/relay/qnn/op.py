"""relay.qnn.op: the functions that make calls of operators on quantized tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopwright.relay.expr import Expr
from loopwright.relay.namespaces import Namespace
from loopwright.relay.op.qnn.requantize import requantize_config

__all__ = ["requantize_config"]

_operators = Namespace("qnn")

if not TYPE_CHECKING:  # mypy would believe in every name

    def __getattr__(name: str) -> Expr:
        return getattr(_operators, name)


def __dir__() -> list[str]:
    return sorted([*__all__, *dir(_operators)])
