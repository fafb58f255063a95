"""Attention: `sizes.py` says what it is, `loops.py` writes its loops for a CPU in the tiles of `tiles.py`.

A block that has these loops says so by an annotation (`declared.py`), so that a GPU may compute it by a kernel of its
own (`autosched/gpu/attention`).
"""

from __future__ import annotations

from loopwright.autosched.attention.declared import ATTENTION, declaration, declared_attention
from loopwright.autosched.attention.loops import attention_body
from loopwright.autosched.attention.sizes import Attention, attention_of
from loopwright.autosched.attention.tiles import AttentionTiles, choose_tiles

__all__ = [
    "ATTENTION",
    "Attention",
    "AttentionTiles",
    "attention_body",
    "attention_of",
    "choose_tiles",
    "declaration",
    "declared_attention",
]
