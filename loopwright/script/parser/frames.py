"""What a statement stands in: the function, a block, a loop, …; and what a block has said about itself so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from loopwright.ir import Buffer, BufferRegion, Expr, IterVar, MatchBufferRegion, Stmt, Type, Var


@dataclass(slots=True)
class Frame:
    """One enclosing construct; `words` says in an error where something stands, e.g. "inside a loop"."""

    words: str


@dataclass(slots=True)
class FunctionFrame(Frame):
    """The function itself."""

    name: str = ""
    params: list[Var] = field(default_factory=list)
    buffer_map: dict[Var, Buffer] = field(default_factory=dict)
    attrs: Mapping[str, object] | None = None
    ret_type: Type | None = None
    root_allocations: list[Buffer] = field(default_factory=list)
    has_blocks: bool = False


@dataclass(slots=True)
class BlockFrame(Frame):
    """A block."""

    name: str = ""
    iter_vars: list[IterVar] = field(default_factory=list)
    iter_values: list[Expr] = field(default_factory=list)
    reads: tuple[BufferRegion, ...] | None = None
    writes: tuple[BufferRegion, ...] | None = None
    predicate: Expr | None = None
    init: Stmt | None = None
    allocations: list[Buffer] = field(default_factory=list)
    matches: list[MatchBufferRegion] = field(default_factory=list)
    annotations: Mapping[str, object] | None = None
