"""Alignment: what blocks ask for with `buffer_dim_align` stays with the buffer that it is about.

    with T.block("B"):                          →    with T.block("B"):              cache_write(B, 0, "local")
        T.block_attr({"buffer_dim_align":                B_local[vi, vj] = …
            [[0, 0, 8, 1]]})                         with T.block("B_local"):
        B[vi, vj] = …                                    T.block_attr({"buffer_dim_align": [[0, 0, 8, 1]]})
                                                         B[v0, v1] = B_local[v0, v1]

The annotation names a buffer by its position among those that its block writes. A step that has the block write another
buffer hands it on to a block that still writes the old one. Where none does, the buffer itself was replaced:
the annotation is about the new one then, and is dropped if that has not as many dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from loopwright.ir import Block, BlockRealize, Buffer, PrimFunc, Rewriter, deep
from loopwright.schedule.handles import BlockKey, block_key
from loopwright.schedule.rewrite.blocks import is_leaf
from loopwright.schedule.step import Step
from loopwright.schedule.view import View

ALIGN_KEY: Final = "buffer_dim_align"
Requests = list[list[int]]


def requests_of(block: Block) -> Requests | None:
    """What a block asks for: [buffer, axis, factor, offset] each. None where the annotation is no such list."""
    result: Any = block.annotations.get(ALIGN_KEY, ())
    try:
        requests = [[int(number) for number in request] for request in result]
    except (TypeError, ValueError):
        return None
    return requests if all([len(request) == 4 and request[0] >= 0 for request in requests]) else None


def with_alignment(view: View, step: Step) -> Step:
    """The step with every request for the alignment of a buffer at a block that writes that buffer."""
    before = _blocks(view)
    known = [request for block in before.values() for request in _named(block)]
    if not known:
        return step
    after = _blocks(View(step.after))
    written = {buffer for block in after.values() for buffer in _written(block)}
    changed: dict[BlockKey, Requests] = {}
    lost: list[tuple[Buffer, list[int]]] = []
    for key, block in after.items():
        old, requests = before.get(key), requests_of(block)
        if not requests or (old is not None and old.annotations.get(ALIGN_KEY) != block.annotations[ALIGN_KEY]):
            continue  # no requests, or those of this very step
        kept: Requests = []
        here = _written(block)
        for position, *request in requests:
            if old is None:  # a new block with the annotations of another one
                kept += [[position, *request]] if position < len(here) and (here[position], request) in known else []
                continue
            if position >= len(old.writes):
                kept.append([position, *request])  # about no buffer: the build tells
                continue
            buffer = old.writes[position].buffer
            if buffer in here:
                kept.append([here.index(buffer), *request])
            elif buffer in written:
                lost.append((buffer, request))
            elif position < len(here) and here[position].ndim == buffer.ndim:
                kept.append([position, *request])
        if kept != requests:
            changed[key] = kept
    for buffer, request in lost:
        writers = [key for key, block in after.items() if buffer in _written(block)]
        key = next((item for item in writers if is_leaf(after[item])), writers[0])
        requests = changed.get(key, requests_of(after[key]))
        if requests is not None:
            changed[key] = [*requests, [_written(after[key]).index(buffer), *request]]
    return replace(step, after=_annotated(step.after, changed)) if changed else step


def _blocks(view: View) -> dict[BlockKey, Block]:
    result = {key: path[-1] for key, path in view.index.blocks.items()}
    return {key: realize.block for key, realize in result.items() if isinstance(realize, BlockRealize)}


def _written(block: Block) -> list[Buffer]:
    return [region.buffer for region in block.writes]


def _named(block: Block) -> list[tuple[Buffer, list[int]]]:
    """The requests of a block, with the buffers themselves."""
    written = _written(block)
    return [(written[position], request) for position, *request in requests_of(block) or () if position < len(written)]


class _Annotate(Rewriter):
    def __init__(self, requests: Mapping[BlockKey, Requests]) -> None:
        self.requests = requests

    def visit_Block(self, block: Block) -> Block:
        block = self.rebuild(block)
        requests = self.requests.get(block_key(block))
        if requests is None:
            return block
        others = {key: value for key, value in block.annotations.items() if key != ALIGN_KEY}
        return block.with_(annotations={**others, ALIGN_KEY: requests} if requests else others)


@deep
def _annotated(function: PrimFunc, requests: Mapping[BlockKey, Requests]) -> PrimFunc:
    return function.with_(body=_Annotate(requests).visit(function.body))
