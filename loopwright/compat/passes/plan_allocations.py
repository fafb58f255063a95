"""plan_allocations: a buffer that a block lists moves to the innermost block or loop that holds all its uses.

    B = T.alloc_buffer((8, 8))               →    for i in range(8):
    for i in range(8):                                with T.block(""):
        for j in range(8):                                T.reads(A[i, 0:8])
            with T.block("B"): ...                        T.writes(C[i, 0:8])
        for j in range(8):                                B = T.alloc_buffer((8, 8))
            with T.block("C"): ...                        for j in range(8): ...

Where that is a loop, a block without axes is put around its body. A buffer stays above a loop from one iteration to
another of which a value flows, and above the loops of opaque axes that its regions use. One that nothing uses goes.
Needs: no init (`lower_init_blocks`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from loopwright.analysis.private_memory import carries_values
from loopwright.analysis.queries import detect_buffer_access_lca, get_block_read_write_region
from loopwright.compat.passes.named_pass import named_pass
from loopwright.ir import (
    AllocateConst,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    DeclBuffer,
    For,
    IterType,
    Node,
    PrimFunc,
    Stmt,
    Var,
    Visitor,
    const,
    deep,
    uses_var,
    variables_in,
)
from loopwright.transform.parts.statements import StmtRewriter

NAMELESS: Final = ""  # of the blocks that are put in


class _Collect(Visitor):
    """The loops and blocks around every loop and block, outermost first, and the buffers that blocks list."""

    def __init__(self) -> None:
        self.around: list[For | Block] = []
        self.paths: dict[Node, tuple[For | Block, ...]] = {}
        self.homes: dict[Buffer, Block] = {}
        self.opaque: dict[Buffer, set[Var]] = {}  # loops of opaque axes that regions of the buffer use

    def visit_For(self, node: For | Block) -> None:
        self.around.append(node)
        self.paths[node] = tuple(self.around)
        self.visit(node.body)
        self.around.pop()

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        block = realize.block
        opaque = {
            axis.var: variables_in(value)
            for axis, value in zip(block.iter_vars, realize.iter_values, strict=True)
            if axis.iter_type not in (IterType.DataPar, IterType.CommReduce)
        }
        if opaque:
            for region in (*block.reads, *block.writes):
                for var, loops in opaque.items():
                    if uses_var(region, lambda used, var=var: used is var):  # type: ignore[misc]
                        self.opaque.setdefault(region.buffer, set()).update(loops)
        for buffer in block.alloc_buffers:
            self.homes[buffer] = block
        self.visit_For(block)


class _Move(StmtRewriter):
    def __init__(self, listed: Mapping[Node, Sequence[Buffer]], memory: Mapping[Var, Buffer]) -> None:
        self.listed = listed
        self.memory = dict(memory)

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        self.memory[node.buffer.data] = node.buffer
        return node.with_(body=self.visit(node.body))

    def visit_AllocateConst(self, node: AllocateConst) -> Stmt:
        return node.with_(body=self.visit(node.body))

    def visit_For(self, loop: For) -> Stmt:
        body = self.visit(loop.body)
        buffers = self.listed.get(loop)
        if buffers:
            block = Block((), (), (), NAMELESS, body, alloc_buffers=tuple(buffers))
            body = BlockRealize((), const(True), self._with_regions(block))
        return loop.with_(body=body)

    def _with_regions(self, block: Block) -> Block:
        reads, writes = get_block_read_write_region(block, self.memory)

        def outer(regions: Sequence[BufferRegion]) -> tuple[BufferRegion, ...]:
            return tuple([region for region in regions if region.buffer not in block.alloc_buffers])

        return block.with_(reads=outer(reads), writes=outer(writes))

    def visit_Block(self, block: Block) -> Block:
        for buffer in (*block.alloc_buffers, *[match.buffer for match in block.match_buffers]):
            self.memory[buffer.data] = buffer
        moved = [buffer for buffer in block.alloc_buffers if buffer not in self.listed.get(block, ())]
        rebuilt = block.with_(body=self.visit(block.body), alloc_buffers=tuple(self.listed.get(block, ())))
        inner = {*moved, *rebuilt.alloc_buffers}
        # What lives further in, or here, is no part of what this block reads and writes.
        kept = [[region for region in part if region.buffer not in inner] for part in (block.reads, block.writes)]
        if len(kept[0]) + len(kept[1]) == len(block.reads) + len(block.writes):
            return rebuilt
        return rebuilt.with_(reads=tuple(kept[0]), writes=tuple(kept[1]))


def _place(func: PrimFunc, buffer: Buffer, place: Stmt, home: Block, found: _Collect) -> For | Block:
    """Where the buffer is listed: `place`, or further out where values have to be kept."""
    path = found.paths[place]
    chosen: For | Block = path[-1]
    start = path.index(home) + 1
    kept = found.opaque.get(buffer, set())
    for level in range(start, len(path)):
        loop = path[level]
        if isinstance(loop, For) and (loop.loop_var in kept or carries_values(func, loop.loop_var, buffer)):
            chosen = path[level - 1]
            break
    return chosen


@named_pass("PlanAndUpdateBufferAllocationLocation", skips_te=True)
@deep
def plan_allocations(func: PrimFunc) -> PrimFunc:
    """A buffer that a block lists moves to the innermost block or loop that holds all its uses."""
    found = _Collect()
    found.visit(func.body)
    if not found.homes:
        return func
    places = detect_buffer_access_lca(func)
    listed: dict[Node, list[Buffer]] = {}
    for buffer, home in found.homes.items():
        place = places.get(buffer)
        if place is not None and place in found.paths:
            listed.setdefault(_place(func, buffer, place, home, found), []).append(buffer)
    memory = {buffer.data: buffer for buffer in func.argument_buffers()}
    return func.with_(body=_Move(listed, memory).visit(func.body))
