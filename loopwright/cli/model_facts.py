"""The facts about a model as plain data: what `--json` prints and a package's metadata hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict


class PortFacts(TypedDict):
    """An input or output; what is not a tensor has no shape."""

    name: str
    dtype: str
    shape: Sequence[int | str] | None


class ResultFacts(TypedDict):
    """A tensor that a node of a graph makes."""

    name: str
    shape: Sequence[int | str] | None


class NodeFacts(TypedDict):
    """One node of a graph."""

    name: str
    operator: str
    outputs: list[ResultFacts]


class OperatorFacts(TypedDict):
    """One operator, and the nodes that use it."""

    operator: str
    count: int
    supported: bool
    why: str | None
    nodes: list[str]


class KernelFacts(TypedDict):
    """One kernel. `flops` and `bytes_moved` are those of one call; None where it decides them."""

    name: str
    function: str
    calls: int
    flops: float | None
    bytes_moved: int | None
    code_bytes: NotRequired[int]  # once it is compiled


class MemoryFacts(TypedDict):
    """The memory that a model takes, in bytes."""

    arena: int
    lower_bound: int
    unshared: int
    constants: int
    decided_by_the_call: list[str]
