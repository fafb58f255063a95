"""reuse_buffer: two buffers that are never needed at the same time share one piece of memory.

    B = T.alloc_buffer((64,))              →     D = T.alloc_buffer((64,))
    D = T.alloc_buffer((64,))                    … D[vi] …      where B was
    … B[vi] …                                    … D[vi] …
    … D[vi] …

Here `reuse_buffer(block, "B", "D")`. Buffers of the same number of dimensions keep their indices, in the larger of the
two shapes; others are laid out flat. Proved: every read still sees the value it saw before; where one buffer is written
while a value of the other is still to be read, the step is refused with that read.
"""

from __future__ import annotations

from math import prod

from loopwright.arith.index_map import IndexMap
from loopwright.ir import (
    Allocate,
    Block,
    BlockRealize,
    Buffer,
    DeclBuffer,
    Expr,
    IntImm,
    Max,
    Node,
    Stmt,
    Var,
    collect_statements,
    const,
    pre_order_visit,
)
from loopwright.schedule.errors import BadStepArgument, ScheduleError
from loopwright.schedule.primitives.layout.transform_layout import relaid
from loopwright.schedule.rewrite.allocations import home_of, without_allocation
from loopwright.schedule.rewrite.buffers import BufferName, check_plain_use, find_buffer, fresh_buffer
from loopwright.schedule.rewrite.index_map import is_constant
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


class CannotShare(ScheduleError):
    """Two buffers cannot be one piece of memory, whatever their values do: their types, scopes or shapes differ.

    For example:

        from loopwright import te, tir
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
        C = te.compute((8,), lambda i: B[i].astype("int32"), name="C")
        D = te.compute((8,), lambda i: C[i] + 1, name="D")
        sch = tir.Schedule(te.create_prim_func([A, D]))
        sch.reuse_buffer("B", "B", "C")
    """

    code = "LW0219"

    def __init__(self, one: Buffer, other: Buffer, problem: str, at: BlockRealize) -> None:
        super().__init__(f"reuse_buffer: {one.name} and {other.name} cannot share memory: {problem}", at=at)


def reuse_buffer(view: View, block: BlockRealize, buffer: BufferName, other: str) -> Step:
    """Put a buffer that `block` touches into the memory of the allocated buffer `other`."""
    # Check
    mine = find_buffer("reuse_buffer", block, buffer, "touches")
    theirs = _allocated(view, block, other)
    if mine.data is theirs.data:
        raise BadStepArgument("reuse_buffer", f"{mine.name} is in its own memory already", block)
    home = home_of("reuse_buffer", view, mine, block)
    home_of("reuse_buffer", view, theirs, block)
    for each in (mine, theirs):
        check_plain_use("reuse_buffer", view.function.body, each)
        if each.strides:
            raise CannotShare(mine, theirs, f"{each.name} has strides of its own", block)
    around = _block_that_holds(view, theirs)
    if around is not None and any(region.buffer is mine for region in (*around.reads, *around.writes)):
        problem = f"{theirs.name} exists only inside block {around.name_hint!r}, and {mine.name} also outside"
        raise CannotShare(mine, theirs, problem, block)
    if mine.dtype != theirs.dtype:
        raise CannotShare(mine, theirs, f"one holds {mine.dtype}, the other {theirs.dtype}", block)
    if mine.scope() != theirs.scope():
        raise CannotShare(mine, theirs, f"one is in {mine.scope()} memory, the other in {theirs.scope()}", block)
    flat = mine.ndim != theirs.ndim
    if flat and not (is_constant(mine.shape) and is_constant(theirs.shape)):
        problem = f"one has {mine.ndim} dimensions, the other {theirs.ndim}, and their sizes are not constant"
        raise CannotShare(mine, theirs, problem, block)

    # Build
    if flat:
        shape: list[Expr] = [const(max(_cells(mine), _cells(theirs)))]
    else:
        shape = [_larger(a, b) for a, b in zip(mine.shape, theirs.shape, strict=True)]
    new = fresh_buffer(theirs.name, shape, theirs, theirs.scope())
    without = without_allocation(view, mine, home)
    after = relaid(without, theirs, new, _place(theirs, flat))
    after = relaid(after, mine, new, _place(mine, flat))
    return Step(after, Proof.VALUES, at=block, buffers=[mine, theirs])


def _block_that_holds(view: View, buffer: Buffer) -> Block | None:
    """The block that allocates a buffer."""
    blocks = collect_statements(view.function.body, Block)
    return next((block for block in blocks if any(own is buffer for own in block.alloc_buffers)), None)


def _allocated(view: View, at: BlockRealize, name: object) -> Buffer:
    """The allocated buffer of that name."""
    result: dict[Buffer, None] = {}

    def look(node: Node) -> bool:
        if isinstance(node, BlockRealize):
            result.update(dict.fromkeys(node.block.alloc_buffers))
        elif isinstance(node, Allocate) and isinstance(node.body, DeclBuffer):
            result[node.body.buffer] = None
        return isinstance(node, Stmt)

    pre_order_visit(view.function.body, look)
    fitting = [buffer for buffer in result if buffer.name == name]
    if len(fitting) != 1:
        names = ", ".join(sorted({buffer.name for buffer in result})) or "none"
        problem = f"{len(fitting) or 'no'} allocated buffer{'s are' if len(fitting) > 1 else ' is'} called {name!r}"
        raise BadStepArgument("reuse_buffer", problem, at, f"there are: {names}")
    return fitting[0]


def _cells(buffer: Buffer) -> int:
    return prod([extent.value for extent in buffer.shape if isinstance(extent, IntImm)])


def _larger(one: Expr, other: Expr) -> Expr:
    if isinstance(one, IntImm) and isinstance(other, IntImm):
        return one if one.value >= other.value else other
    return one if one is other else Max(one, other)


def _place(buffer: Buffer, flat: bool) -> IndexMap:
    """Where a cell of the buffer is in the shared memory."""
    indices = [Var(f"i{k}", extent.dtype) for k, extent in enumerate(buffer.shape)]
    if not flat:
        return IndexMap(tuple(indices), tuple(indices))
    location: Expr = const(0)
    for index, extent in zip(indices, buffer.shape, strict=True):
        location = location * extent + index
    return IndexMap(tuple(indices), (location,))
