"""make_blocks_opaque: a block's axes are replaced by what they are bound to.

    for i in range(8):                       →    for i in range(8):
        with T.block("B"):                            with T.block("B"):
            vi = T.axis.spatial(8, i)                     T.reads(A[i])
            T.reads(A[vi])                                T.writes(B[i])
            T.writes(B[vi])                               B[i] = A[i]
            B[vi] = A[vi]

The block keeps its name, regions, allocations and predicate. For passes of users that want to see blocks but not axes;
`lower_blocks` goes all the way.
Needs: no init (`write_inits`).  Leaves: no block with axes.
"""

from __future__ import annotations

from loopwright.ir import Block, BlockRealize, PrimFunc, Stmt, cast, deep
from loopwright.ir.node import rewrite_tuple
from loopwright.ir.passes import function_pass
from loopwright.transform.errors import BlockStateLeft
from loopwright.transform.parts.folding import FoldingRewriter


class _MakeBlocksOpaque(FoldingRewriter):
    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        block: Block = realize.block
        if block.init is not None:
            raise BlockStateLeft(block, "an init", "write_inits")
        values = rewrite_tuple(realize.iter_values, self.visit)
        predicate = self.visit(realize.predicate)
        for axis, value in zip(block.iter_vars, values, strict=True):
            self.values[axis.var] = cast(value, axis.var.dtype)
        body: Block = self.rebuild(block.with_(iter_vars=()) if block.iter_vars else block)
        return realize.with_(iter_values=() if values else realize.iter_values, predicate=predicate, block=body)


@function_pass
@deep
def make_blocks_opaque(func: PrimFunc) -> PrimFunc:
    """A block's axes are replaced by what they are bound to."""
    return func.with_(body=_MakeBlocksOpaque().visit(func.body))
