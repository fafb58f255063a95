"""resolve_matches: a matched buffer is replaced by the region that it names.

    with T.block("B"):                                  →    with T.block("B"):
        a = T.match_buffer(A[2:6], (4,))                         B[0] = A[3 + 2]
        B[0] = a[3]

`lower_blocks` does the same on its way; this pass leaves the blocks.
Needs: nothing.  Leaves: no block with matched buffers.
"""

from __future__ import annotations

from loopwright.ir import Block, BlockRealize, BufferRegion, PrimFunc, Range, Stmt, deep
from loopwright.ir.node import rewrite_tuple
from loopwright.ir.passes import function_pass
from loopwright.transform.passes.lower_blocks import LowerBlocks


class _ResolveMatches(LowerBlocks):
    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        values, predicate = rewrite_tuple(realize.iter_values, self.visit), self.visit(realize.predicate)
        return realize.with_(iter_values=values, predicate=predicate, block=self.visit(realize.block))

    def visit_Block(self, block: Block) -> Stmt:
        for match in block.match_buffers:
            self._match(block, match)
        rebuilt: Block = self.rebuild(block.with_(match_buffers=()) if block.match_buffers else block)
        return rebuilt

    def visit_BufferRegion(self, region: BufferRegion) -> BufferRegion:
        if region.buffer not in self.regions:
            return self.rebuild(region)
        parts = rewrite_tuple(region.region, self.visit)
        source, mins = self._in_source(region.buffer, tuple([part.min for part in parts]))
        extents = [part.extent for part in parts]
        ones = [Range.from_min_extent(low, 1) for low in mins[: len(mins) - len(extents)]]
        rest = [Range.from_min_extent(low, extent) for low, extent in zip(mins[len(ones) :], extents, strict=True)]
        return BufferRegion(source, (*ones, *rest))


@function_pass
@deep
def resolve_matches(func: PrimFunc) -> PrimFunc:
    """A matched buffer is replaced by the region that it names."""
    return func.with_(body=_ResolveMatches(func).visit(func.body))
