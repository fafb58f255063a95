"""rolling_buffer: iterations that need overlapping rows keep them in a circular buffer, and compute only what is new.

    for i0 in range(4):                                       for i0 in range(4):
        for ax0 in range(6):                         →            for ax0 in range(6):
            with T.block("B"):  # rows 4 * i0 … + 5                   with T.block("B"):
                B[vi] = A[vi] + 1                                         T.where(i0 < 1 or 2 <= ax0)
        for i1 in range(4):                                               B[vi % 6] = A[vi] + 1
            with T.block("C"): … B[vi] … B[vi + 2]                for i1 in range(4):
                                                                      with T.block("C"): … B[vi % 6] … B[(vi + 2) % 6]

The block must already be computed at a loop of its consumers (`compute_at`). The buffer rolls along the outermost loop
whose iterations overlap, and is allocated around that loop at the latest: a reduction that was moved there has memory
of its own in each iteration. Along a loop further in whose iterations overlap in another dimension, the buffer has all
columns, and what is there is not computed again. Proved: every read sees the row it saw before; a buffer with too few
rows (`size`) is refused with the read that would find another row in place of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwright.arith import linear_coefficients
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    Expr,
    For,
    IntImm,
    IterType,
    PrimFunc,
    Stmt,
    Var,
    const,
    deep,
    logical_and,
    logical_or,
    structural_equal,
    substitute,
    uses_var,
)
from loopwright.schedule.errors import BadStepArgument, NotSupported, ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.rewrite.allocations import allocate, home_of, without_allocation
from loopwright.schedule.rewrite.blocks import is_leaf, leaves_of
from loopwright.schedule.rewrite.buffers import (
    BufferName,
    check_plain_use,
    find_buffer,
    fresh_buffer,
    replaced_regions,
    touches,
)
from loopwright.schedule.rewrite.insertion_points import common_path
from loopwright.schedule.rewrite.redirect_accesses import MovedAccesses
from loopwright.schedule.rewrite.regions import facts_under
from loopwright.schedule.rewrite.windows import accesses, loops_within, region_in, window_of
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


class NothingRolls(ScheduleError):
    """No loop around all uses of the buffer has iterations that share rows with the next one.

    A circular buffer pays where consecutive iterations of a loop need overlapping parts of a buffer that is computed in
    that loop. Move the producer there first (`compute_at`), under a loop over tiles of its consumer.

    For example:

        from loopwright import te, tir
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
        C = te.compute((8,), lambda i: B[i] * 2.0, name="C")
        sch = tir.Schedule(te.create_prim_func([A, C]))
        sch.rolling_buffer("B", 0)
    """

    code = "LW0218"

    def __init__(self, realize: BlockRealize, buffer: Buffer, loops: Sequence[For]) -> None:
        where = f"loops {', '.join([loop.loop_var.name for loop in loops])}" if loops else "no loop"
        problem = f"{where} around all uses of {buffer.name}" + (
            " have no iterations that share a part of it" if loops else ""
        )
        super().__init__(f"rolling_buffer: {problem if loops else f'there is {problem}'}", at=realize)


class _Roll(NamedTuple):
    """Along which loop and dimension, the window of one iteration, and how far it moves from one to the next."""

    loop: For
    axis: int
    origin: Expr
    rows: int
    step: int


def rolling_buffer(view: View, block: BlockRealize, write_buffer_index: BufferName, size: int | None = None) -> Step:
    """Keep what iterations share of a buffer that `block` writes in `size` rows (as many as one iteration needs)."""
    # Check
    old = find_buffer("rolling_buffer", block, write_buffer_index, "writes")
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise BadStepArgument("rolling_buffer", f"size is {size!r}", block, "give a number of rows of at least 1")
    home = home_of("rolling_buffer", view, old, block)
    check_plain_use("rolling_buffer", view.function.body, old)
    roll, *others = _rolls(view, block, old)
    rows = roll.rows if size is None else size

    # Build
    shape = [const(rows, extent.dtype) if k == roll.axis else extent for k, extent in enumerate(old.shape)]
    new = fresh_buffer(old.name, shape, old, old.scope())
    circular = _Circular(view, old, new, (roll, *others), rows)
    after = circular.apply(view.function)
    if any(statement is roll.loop for statement in home.path):
        after = _allocated_around(View(after), new, roll.loop, block)
    return Step(after, Proof.VALUES, at=roll.loop, buffers=[old, *circular.left_out])


def _rolls(view: View, realize: BlockRealize, buffer: Buffer) -> list[_Roll]:
    """The loops, outermost first, and for each a dimension of its own, in which iterations overlap."""
    scope = view.scope_of(view.block_path(block_key(realize.block)))
    siblings = view.blocks_below(scope.block.body)
    users = [item for item in siblings if touches((*item.block.reads, *item.block.writes), buffer)]
    shared = common_path([view.block_path(block_key(item.block)) for item in users])
    if len(users) < 2:
        raise NothingRolls(realize, buffer, [])
    loops = loops_within(shared, scope)
    leaves = [leaf for item in users for leaf in leaves_of(view, item)]
    result: dict[int, _Roll] = {}
    for depth, loop in enumerate(loops):
        still = loops[: depth + 1]
        window = window_of(view, leaves, buffer, scope, still)
        facts = facts_under(still, [scope])
        for axis, (origin, extent) in enumerate(zip(window.origin, window.shape, strict=True)):
            linear = linear_coefficients(origin, [loop.loop_var], facts)
            if linear is None or not isinstance(linear[0][0], IntImm) or not isinstance(extent, IntImm):
                continue
            step = linear[0][0].value
            if 0 < step < extent.value and axis not in result:
                result[axis] = _Roll(loop, axis, origin, extent.value, step)
                break
    if not result:
        raise NothingRolls(realize, buffer, loops)
    return list(result.values())


def _allocated_around(view: View, buffer: Buffer, loop: For, at: BlockRealize) -> PrimFunc:
    """The function with the buffer's memory allocated around the loop, whose iterations share rows of it."""
    home = home_of("rolling_buffer", view, buffer, at)
    inside = View(without_allocation(view, buffer, home))
    path = inside.loop_path(loop.loop_var)
    return inside.replaced(path, allocate(buffer, path[-1]))


class _Circular(MovedAccesses):
    """Accesses go to the row modulo the number of rows; blocks that write run where their row and columns are new."""

    def __init__(self, view: View, old: Buffer, new: Buffer, rolls: Sequence[_Roll], rows: int) -> None:
        super().__init__(old, new)
        self.view, self.rolls, self.rows = view, rolls, rows
        self.left_out: dict[Buffer, None] = {}  # what else is not written where the row is not new

    @deep
    def apply(self, function: PrimFunc) -> PrimFunc:
        return function.with_(body=self.visit(function.body))

    def cell(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        axis = self.rolls[0].axis
        row = indices[axis]
        return (*indices[:axis], row % const(self.rows, row.dtype), *indices[axis + 1 :])

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        block: Block = self.visit(realize.block)
        writes = any([region.buffer is self.old for region in realize.block.writes])
        if not writes or len(self.view.block_path(block_key(realize.block))) == 1:
            return realize.with_(block=block)
        self.left_out.update({region.buffer: None for region in realize.block.writes})
        moving = [_index(realize, self.old, roll.axis) for roll in self.rolls]
        block = block.with_(
            iter_vars=tuple(
                [
                    axis.with_(iter_type=IterType.Opaque) if any(axis.var is index for index in moving) else axis
                    for axis in block.iter_vars
                ]
            )
        )
        values = dict(zip([axis.var for axis in block.iter_vars], realize.iter_values, strict=True))
        path = self.view.block_path(block_key(realize.block))
        facts = facts_under(self.view.all_loops_above(path))
        predicate = realize.predicate
        for roll, index in zip(self.rolls, moving, strict=True):
            first = roll.loop.loop_var < roll.loop.min + 1
            is_new = substitute(index, values) - roll.origin >= const(roll.rows - roll.step, index.dtype)
            predicate = logical_and(predicate, logical_or(facts.simplify(first), facts.simplify(is_new)))
        return realize.with_(predicate=predicate, block=block)

    def visit_Block(self, block: Block) -> Block:
        new = block.rebuild(self.visit)
        if not any(region.buffer is self.old for region in (*block.reads, *block.writes)):
            return new
        return new.with_(
            reads=replaced_regions(block.reads, self.old, region_in(new, self.new, writes=False)),
            writes=replaced_regions(block.writes, self.old, region_in(new, self.new, writes=True)),
        )


def _index(realize: BlockRealize, buffer: Buffer, axis: int) -> Expr:
    """The one index in that dimension that a run of the block writes: its row."""
    block = realize.block
    if not is_leaf(block):
        problem = f"block {block.name_hint!r}, which writes {buffer.name}, has blocks inside"
        hint = "roll the buffer before the block is put into another one"
        raise NotSupported("rolling_buffer", problem, realize, hint)
    stores = [
        access
        for part in (block.init, block.body)
        if part is not None
        for access in accesses(part, buffer)
        if access.writes
    ]
    rows = [access.indices[axis] for access in stores]
    inner: set[Var] = {loop.loop_var for access in stores for loop in access.loops}
    if not rows or not all([structural_equal(row, rows[0]) for row in rows]) or uses_var(rows[0], inner.__contains__):
        problem = f"block {block.name_hint!r} writes several rows of {buffer.name} in one run"
        raise NotSupported("rolling_buffer", problem, realize)
    return rows[0]
