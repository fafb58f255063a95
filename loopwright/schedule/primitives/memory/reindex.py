"""reindex: a block reads (or writes) a buffer that its own axes index, copied from (or to) the real one.

    for i, r in T.grid(8, 3):                        →    for ax0, ax1 in T.grid(8, 3):
        with T.block("B"):                                    with T.block("A_reindex"):
            vi, vr = T.axis.remap("SR", [i, r])                   A_reindex[vi, vr] = A[vi * 2 + vr]
            B[vi] = B[vi] + A[vi * 2 + vr]                for i, r in T.grid(8, 3):
                                                              with T.block("B"): B[vi] = B[vi] + A_reindex[vi, vr]

The block then has the plain accesses that a matcher of tensor instructions looks for. Proved: every read sees the value
it saw before, looking through the copy.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import BlockRealize, Buffer
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.rewrite.buffers import BufferName, find_buffer, touches
from loopwright.schedule.rewrite.reindexing import Wanted, reindexed
from loopwright.schedule.step import Step
from loopwright.schedule.view import View


def reindex(view: View, block: BlockRealize, buffer: BufferName | Sequence[object]) -> Step:
    """Have `block` touch a copy of `buffer` that is indexed by the block's axes."""
    chosen, writes = side_of("reindex", block, buffer)
    name = view.fresh_block_name(f"{chosen.name}_reindex")
    return reindexed(view, "reindex", block, chosen, writes, Wanted(name, chosen.scope()))


def side_of(step: str, realize: BlockRealize, given: BufferName | Sequence[object]) -> tuple[Buffer, bool]:
    """The buffer meant by ("read", 0), ("write", 0), a name or itself, and whether it is one the block writes."""
    if isinstance(given, (list, tuple)):
        if len(given) != 2 or given[0] not in ("read", "write") or not isinstance(given[1], int):
            hint = 'write ("read", 0) or ("write", 0)'
            raise BadStepArgument(step, f"buffer is {given!r}", realize, hint)
        return find_buffer(step, realize, given[1], f"{given[0]}s"), given[0] == "write"
    if isinstance(given, (int, str, Buffer)) and not isinstance(given, bool):
        result = find_buffer(step, realize, given, "touches")
        return result, touches(realize.block.writes, result)
    raise BadStepArgument(step, f"buffer is {given!r}", realize, 'write ("read", 0), ("write", 0) or a name')
