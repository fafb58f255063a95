"""private_memory: a buffer that the iterations of a parallel loop share by accident is allocated in each of them.

    B = T.alloc_buffer((10,))                  →    for i in T.parallel(8):
    for i in T.parallel(8):                             B = T.decl_buffer((10,))
        for j in range(3):                              for j in range(3):
            B[i + j] = A[i + j] + 1.0                       B[i + j] = A[i + j] + 1.0
        C[i] = B[i] + B[i + 1] + B[i + 2]               C[i] = B[i] + B[i + 1] + B[i + 2]

Neighbours on the left write the same cells, which is a race, and yet each reads only what it wrote itself. A block that
lists a buffer does not say where its memory is, so this is what the left one means: privatisation. It is right where
the buffer is used in that loop only, and the source of each read is a write of the same iteration. An `Allocate` does
say where: it stays.
"""

from __future__ import annotations

from typing import Any

from loopwright.analysis.accesses import accesses_of
from loopwright.analysis.around_loop import around_loop
from loopwright.analysis.dataflow import Dataflow, Reference, dataflow_of
from loopwright.analysis.isl_flow import NotProvable
from loopwright.arith.isl import BudgetExceeded, relations, within_budget
from loopwright.ir import (
    Allocate,
    Block,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    Expr,
    For,
    MatchBufferRegion,
    Node,
    PrimFunc,
    Rewriter,
    Stmt,
    Var,
    const,
    deep,
    pre_order_visit,
)

BUDGET = 2_000_000  # isl operations to compare the iterations of reads and of their sources


@deep
def with_private_memory(function: PrimFunc, loop_var: Var, buffer: Buffer) -> PrimFunc | None:
    """The function with `buffer` allocated in each iteration of the loop; None when that may change what is read."""
    if not _is_used_inside(function, loop_var, buffer) or not _flows_inside(function, loop_var, buffer):
        return None
    return _allocated_inside(function, loop_var, buffer)


@deep
def with_own_memory(function: PrimFunc, loop_var: Var, buffer: Buffer) -> PrimFunc | None:
    """The same for memory that is one for each iteration of the loop wherever it is allocated, by its scope."""
    if not _is_used_inside(function, loop_var, buffer):
        return None
    return _allocated_inside(function, loop_var, buffer)


def _allocated_inside(function: PrimFunc, loop_var: Var, buffer: Buffer) -> PrimFunc | None:
    move = _Move(loop_var, buffer)
    body = move.visit(function.body)
    return function.with_(body=body) if move.is_done else None


def _is_used_inside(function: PrimFunc, loop_var: Var, buffer: Buffer) -> bool:
    """Whether a block outside of the loop lists the buffer, and it is used inside the loop only, by this name."""
    inside: list[Var] = []
    uses: list[bool] = []
    allocated: list[bool] = []
    is_plain = True

    def look(node: Node) -> bool:
        nonlocal is_plain
        if isinstance(node, For) and node.loop_var is loop_var:
            inside.append(loop_var)
            pre_order_visit(node.body, look)
            inside.pop()
            return False
        if isinstance(node, (BufferLoad, BufferStore)) and node.buffer.data is buffer.data:
            is_plain = is_plain and node.buffer is buffer
            uses.append(bool(inside))
        elif isinstance(node, MatchBufferRegion) and node.source.buffer.data is buffer.data:
            uses.append(bool(inside))
        elif isinstance(node, Block):
            allocated.extend([bool(inside) for item in node.alloc_buffers if item is buffer])
        elif isinstance(node, Allocate) and node.buffer_var is buffer.data:
            is_plain = False
        elif node is buffer.data:
            is_plain = False  # a pointer that goes who knows where
        return not isinstance(node, (Buffer, BufferRegion))

    pre_order_visit(function.body, look)
    return is_plain and allocated == [False] and bool(uses) and all(uses)


def _flows_inside(function: PrimFunc, loop_var: Var, buffer: Buffer) -> bool:
    """Whether each read sees nothing, or a write of its own iteration of the loop and of those around it."""
    return _flows_across(function, loop_var, buffer) is False


@deep
def carries_values(function: PrimFunc, loop_var: Var, buffer: Buffer) -> bool:
    """Whether a read surely sees a write of another iteration of the loop, or of one around it."""
    return _flows_across(function, loop_var, buffer) is True


def _flows_across(function: PrimFunc, loop_var: Var, buffer: Buffer) -> bool | None:
    """Whether a read sees a write of another iteration of the loop, or of one around it; None where nobody knows."""
    flows = dataflow_of(accesses_of(around_loop(function, loop_var)))
    if buffer.data in flows.program.unknown:
        return None  # calls know it by its address
    try:
        flow = flows.flow(buffer)
        readers, sources = [*flow.readers, *flow.updaters], [*flow.writers, *flow.updaters]

        def crosses(_: Any) -> bool:
            apart = _apart(flows, loop_var, readers, sources)
            return any(
                [
                    not relation.intersect(apart).is_empty()
                    for relation in (flow.base, flow.updates, flow.update_bases)
                    if not relation.is_empty()
                ]
            )

        return within_budget(crosses, BUDGET, flows.program.affine.largest)
    except (NotProvable, BudgetExceeded):
        return None


def _apart(flows: Dataflow, loop_var: Var, readers: list[Reference], sources: list[Reference]) -> Any:
    """Reader → source in another iteration of the loop, or of one around it."""
    result = []
    for reader in readers:
        for source in sources:
            if reader.access is None or source.access is None:
                continue  # the virtual first write: what was never written is not carried from iteration to iteration
            count = _depth(reader, loop_var)
            if count != _depth(source, loop_var):
                raise NotProvable("the loop is not around both")
            names = {dim: f"j{k}" for k, dim in enumerate(source.dims)}
            other = [
                f"{mine} != {names[its]}" for mine, its in zip(reader.dims[:count], source.dims[:count], strict=True)
            ]
            target = f"{source.tag}[{', '.join(names.values())}]"
            result.append(f"{reader.tuple_text} -> {target} : {' or '.join(other)}")
    return relations(", ".join(flows.text.parameters.values()), result)


def _depth(item: Reference, loop_var: Var) -> int:
    """How many loops an access is in, down to the one that counts with `loop_var` (or the last of its digits)."""
    assert item.access is not None
    depths = [k + 1 for k, loop in enumerate(item.access.instance.loops) if loop.of is loop_var]
    return depths[-1] if depths else 0


class _Move(Rewriter):
    """The buffer goes from the block that lists it to an allocation at the start of the loop's body."""

    def __init__(self, loop_var: Var, buffer: Buffer) -> None:
        self.loop_var, self.buffer = loop_var, buffer
        self.is_done = False

    def visit_Expr(self, expr: Expr) -> Expr:
        return expr

    def visit_For(self, loop: For) -> Stmt:
        if loop.loop_var is not self.loop_var:
            return loop.with_(body=self.visit(loop.body))
        self.is_done = True
        return loop.with_(body=self._allocate(loop.body))

    def _allocate(self, body: Stmt) -> Stmt:
        extents = self.buffer.allocated_extents()
        return Allocate(self.buffer.data, self.buffer.dtype, extents, const(True), DeclBuffer(self.buffer, body))

    def visit_Block(self, block: Block) -> Block:
        # Regions say what is seen from outside, where this memory is not any more.
        return block.with_(
            body=self.visit(block.body),
            alloc_buffers=tuple([item for item in block.alloc_buffers if item is not self.buffer]),
            reads=tuple([region for region in block.reads if region.buffer is not self.buffer]),
            writes=tuple([region for region in block.writes if region.buffer is not self.buffer]),
        )
