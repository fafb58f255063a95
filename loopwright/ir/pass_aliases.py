"""pass_aliases: the names under which scripts know passes of ours: "tir.LoopPartition" is partition_loops.

`compat/pass_names.py` has the table; it is loaded when a name is first looked up.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopwright.runtime.upper_layers import from_upper_layer


def aliases() -> Mapping[str, str]:
    """Our name by the peer's, which stands without "tir."; empty where we have no such pass."""
    table: Mapping[str, str] = from_upper_layer("pass names")
    return table


def own_name(name: str) -> str:
    """Our name of the pass that `name` stands for ("tir.LoopPartition", "LoopPartition"); else `name` itself."""
    return aliases().get(name.removeprefix("tir."), "") or name


def is_alias(name: str) -> bool:
    """Whether scripts know a pass of that name, built or not."""
    return name.removeprefix("tir.") in aliases()
