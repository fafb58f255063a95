"""relay.op: the operators of graphs. `registry.py` says how one is declared; every other file declares some.

Start with `registry.py`, then `elementwise.py` for a table of them and `nn/` for single ones.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

from loopwright.relay.op.registry import (
    FUNCTIONS,
    Kind,
    Op,
    Operator,
    calls,
    get,
    list_op_names,
    load_all,
    make,
    register,
)
from loopwright.relay.op.registry import when_needed as _when_needed

# Every file that declares operators; loaded together, at the first use of one.
OPERATOR_FILES: Final = [
    "annotation",
    "binary",
    "creation",
    "devices",
    "elementwise",
    "image",
    "index_ranges",
    "indexing",
    "memory",
    "movement",
    "nn.activations",
    "nn.attention",
    "nn.bitserial",
    "nn.convolutions",
    "nn.losses",
    "nn.norms",
    "nn.other_convolutions",
    "nn.padding",
    "nn.pools",
    "nn.products",
    "ordering",
    "qnn.arithmetic",
    "qnn.products",
    "qnn.quantize",
    "qnn.requantize",
    "random",
    "reduce",
    "reshaping",
    "rounding",
    "shapes",
    "signal",
    "slicing",
    "sparse",
    "vision",
]


def _load_files() -> None:
    for name in OPERATOR_FILES:
        importlib.import_module(f"loopwright.relay.op.{name}")


_when_needed(_load_files)


def __getattr__(name: str) -> Any:
    """`relay.op.add`: the function users call, by the name of its operator."""
    if name.startswith("_"):
        raise AttributeError(name)
    load_all()
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    raise AttributeError(f"there is no operator {name!r}; relay.op.list_op_names() has them all")


__all__ = ["OPERATOR_FILES", "Kind", "Op", "Operator", "calls", "get", "list_op_names", "make", "register"]
