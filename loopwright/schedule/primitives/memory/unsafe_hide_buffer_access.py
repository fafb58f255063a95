"""unsafe_hide_buffer_access: a block no longer declares that it reads or writes some buffers, though it does.

    T.reads(A[vi], B[vi])              →     T.reads(B[vi])

Here `unsafe_hide_buffer_access(block, "read", [0])`. For bodies that hand pointers to calls, whose declared regions
stand in the way of a step. What is hidden is not looked at: the trace and what is built say *unproved*.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import BlockRealize
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.handles import block_key
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


def unsafe_hide_buffer_access(view: View, block: BlockRealize, buf_type: str, buf_index_array: Sequence[int]) -> Step:
    """Drop the entries at these positions from what `block` says it reads or writes."""
    if buf_type not in ("read", "write"):
        raise BadStepArgument("unsafe_hide_buffer_access", f"buf_type is {buf_type!r}", block, 'use "read" or "write"')
    regions = block.block.reads if buf_type == "read" else block.block.writes
    gone = list(buf_index_array)
    for position in gone:
        if isinstance(position, bool) or not isinstance(position, int) or not 0 <= position < len(regions):
            problem = (
                f"block {block.block.name_hint!r} {buf_type}s {len(regions)} buffers, so there is none at {position}"
            )
            raise BadStepArgument("unsafe_hide_buffer_access", problem, block)
    kept = tuple([region for position, region in enumerate(regions) if position not in gone])
    inner = block.block.with_(reads=kept) if buf_type == "read" else block.block.with_(writes=kept)
    after = view.replaced(view.block_path(block_key(block.block)), block.with_(block=inner))
    return Step(after, Proof.GIVEN, at=block)
