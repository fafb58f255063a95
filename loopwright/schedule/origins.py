"""Origins: what a step says about the new blocks it makes, so that instances of both versions can be compared.

`proof/instance_names.py` names instances with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from loopwright.analysis.dataflow import BlockKey
from loopwright.ir import Buffer, Expr, Var

OldValues = Callable[[Sequence[Var]], Sequence[Expr]]


@dataclass(frozen=True)
class Origins:
    """What the blocks, loads and buffers of a new version stand for in the old one; what is not named stays itself.

    `copies`: blocks that copy a cell, seen through to what the cell they copy holds.
    `renamed`: a new block → the old one (`InitOf(b)` for the init of b), and its axis values in the new block's axes.
    `loads`: (new block, load number) → (old block, load number, axis values in the new block's axes); loads are
        numbered in the order of evaluation within their block.
    `rewritten`: blocks whose bodies are new, so that they may have fewer loads: `loads` says what each stands for.
    `buffers`: a new argument buffer → the old one.
    """

    copies: frozenset[BlockKey] = frozenset()
    renamed: Mapping[BlockKey, tuple[BlockKey, OldValues]] = field(default_factory=dict)
    loads: Mapping[tuple[BlockKey, int], tuple[BlockKey, int, Sequence[Expr]]] = field(default_factory=dict)
    rewritten: frozenset[BlockKey] = frozenset()
    buffers: Mapping[Buffer, Buffer] = field(default_factory=dict)
