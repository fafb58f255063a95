"""Declared attention: a block whose loops say by an annotation what they compute, so that a GPU may do it otherwise.

    with T.block("attention"):                                    {"orders": ["BHSD", …], "scale": 0.125, …}
        T.block_attr({"attention": "…"})
        …                                                         exactly the loops that are written for it

The annotation is not believed: the loops are written once more, of what it says and for the buffers of the block, and
compared with those that stand there.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Final

from loopwright.autosched.attention.loops import attention_body
from loopwright.autosched.attention.sizes import Attention, attention_of
from loopwright.autosched.attention.tiles import AttentionTiles
from loopwright.ir import Block, Buffer, PrimFunc, StringImm, structural_equal
from loopwright.runtime.dtype import DataType
from loopwright.schedule.rewrite.inline_lets import with_lets_written_out

ATTENTION: Final = "attention"  # the annotation
_FROM_SHAPES: Final = ("batch", "heads", "group", "queries", "keys", "depth", "width")
_TENSORS: Final = (3, 4)  # query, key, value; and a mask


def declaration(what: Attention, tiles: AttentionTiles) -> str:
    """The annotation of a block with the loops of `attention_body(what, tiles, …)`."""
    options = {name: value for name, value in vars(what).items() if name not in _FROM_SHAPES}
    orders, dtype = options.pop("orders"), str(options.pop("dtype"))
    return json.dumps({"orders": orders, "dtype": dtype, "options": options, "tiles": asdict(tiles)})


def declared_attention(block: Block) -> tuple[Attention, list[Buffer]] | None:
    """What the loops of a block compute, and of which tensors (the result comes last); None for any other block."""
    text = block.annotations.get(ATTENTION) if block.annotations else None
    text = text.value if isinstance(text, StringImm) else text
    if not isinstance(text, str) or block.iter_vars or block.init is not None:
        return None
    ins, outs = ([region.buffer for region in regions] for regions in (block.reads, block.writes))
    if len(ins) not in _TENSORS or len(outs) != 1:
        return None
    given = json.loads(text)
    shapes = [buffer.shape for buffer in ins[:3]]
    what = attention_of(shapes, tuple(given["orders"]), given["options"], DataType(given["dtype"]))
    body = attention_body(what, AttentionTiles(**given["tiles"]), ins, outs)
    # A schedule writes lets out, and so the block may have lost them.
    written, found = (with_lets_written_out(PrimFunc([*ins, *outs], one)).body for one in (body, block.body))
    return (what, [*ins, *outs]) if structural_equal(written, found) else None
