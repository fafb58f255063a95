"""stage: the window of a buffer that one iteration of a loop needs is copied next to the block, perhaps re-laid-out.

    for k0 in range(4):                           →    for k0 in range(4):
        for i, k1 in T.grid(64, 32):                       A_stage = T.allocate((8, 32, 8))
            with T.block("C"):                             for ax0, ax1 in T.grid(64, 32):
                … A[vi, vk] …                                  with T.block("A_stage"):
                                                                   A_stage[v0 // 8, v1, v0 % 8] = A[v0, o0 * 32 + v1]
                                                           for i, k1 in T.grid(64, 32):
        stage(C, k0, "A", layout=                              with T.block("C"):
              lambda i, k: (i // 8, k, i % 8))                     … A_stage[vi // 8, vk % 32, vi % 8] …

What the block reads is copied in before the statement of the loop's body that holds it; what it writes is copied out
after it; what it updates, both. The new buffer lives inside the loop, so each iteration has its own. Naming an outer
loop along which the window stands still copies once for all inner iterations. Proved: every read still sees the value
it saw before, looking through the copies. That needs no search when all that the block touches is copied in before and,
if it is written, copied back after, and nobody else works on it meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.analysis.loop_carried import Loop, carries
from loopwright.arith import Analyzer
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    For,
    IntImm,
    IterType,
    Range,
    Rewriter,
    Stmt,
    Var,
    conjuncts,
    deep,
    seq,
    substitute,
)
from loopwright.schedule.errors import BadStepArgument, NotSupported, ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.origins import Origins
from loopwright.schedule.proof.lemmas import fixed_by, is_alone_with
from loopwright.schedule.rewrite.allocations import allocate, check_visible
from loopwright.schedule.rewrite.blocks import is_leaf
from loopwright.schedule.rewrite.buffers import (
    BufferName,
    check_plain_use,
    check_scope,
    find_buffer,
    fresh_buffer,
    replaced_regions,
)
from loopwright.schedule.rewrite.copies import Indices, around_copy, copy_nest
from loopwright.schedule.rewrite.index_map import LayoutMap
from loopwright.schedule.rewrite.insertion_points import doing_in
from loopwright.schedule.rewrite.regions import facts_inside
from loopwright.schedule.rewrite.windows import Window, loops_from_axes, loops_within, region_in, window_of
from loopwright.schedule.step import BlockResult, Proof, Step
from loopwright.schedule.view import View


class WindowNotInBlock(ScheduleError):
    """The block cannot tell where the window starts: its iteration variables do not determine the loop.

    A block sees the loops around it only through its own iteration variables. Where several iterations of a loop run
    the same instances (a recomputed halo), the variables do not say which window is meant.

    For example:

        from loopwright import tir
        from loopwright.script import tir as T

        @T.prim_func
        def overlapping(A: T.Buffer(8), B: T.Buffer(8)):
            for i, j in T.grid(3, 4):
                with T.block("B"):
                    vi = T.axis.opaque(8, i * 2 + j)
                    B[vi] = A[vi]

        sch = tir.Schedule(overlapping)
        sch.stage("B", sch.get_loops("B")[0], "A", "local")  # vi = 2 belongs to i = 0 and to i = 1
    """

    code = "LW0252"

    def __init__(self, realize: BlockRealize, loop: For, buffer: Buffer, var: Var) -> None:
        super().__init__(
            f"stage: the window of {buffer.name} moves with loop {var.name}, which the iteration variables of block "
            f"{realize.block.name_hint!r} do not determine",
            at=loop,
        )


class InitOutsideWindow(ScheduleError):
    """A reduction would be staged in a window that its start value is written outside of.

    The start value is written once a cell, before the outermost loop that carries the reduction. When that loop is the
    one of the window or lies around it, the start value must be a block of its own first: then each iteration copies
    the window in, updates it, and copies it out.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8, 8), name="A")
        k = te.reduce_axis((0, 8), name="k")
        B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        i, k = sch.get_loops("B")
        sch.stage("B", k, "B", "local")
    """

    code = "LW0253"

    def __init__(self, realize: BlockRealize, loop: For, carrier: For, buffer: Buffer) -> None:
        name, over = realize.block.name_hint, carrier.loop_var.name
        super().__init__(
            f"stage: the window of {buffer.name} lives in one iteration of loop {loop.loop_var.name}, but the "
            f"reduction {name!r} goes on over loop {over}",
            at=loop,
        )


def stage(
    view: View,
    block: BlockRealize,
    loop: For,
    buffer: BufferName,
    storage_scope: str = "global",
    layout: str | None = None,
) -> Step:
    """Copy the window of `buffer` that `block` touches in one iteration of `loop` into a new buffer there."""
    # Check
    chosen = find_buffer("stage", block, buffer, "touches")
    check_scope("stage", storage_scope, block)
    loops = view.loops_of(block_key(block.block))
    if not any(item is loop for item in loops):
        problem = f"loop {loop.loop_var.name} is not around block {block.block.name_hint!r}"
        raise BadStepArgument("stage", problem, loop, "name one of get_loops(block)")
    if not is_leaf(block.block):
        raise NotSupported("stage", f"block {block.block.name_hint!r} has blocks inside", block)
    check_plain_use("stage", block, chosen)
    path = view.block_path(block_key(block.block))
    check_visible("stage", path, chosen, loop)
    position = next(k for k, statement in enumerate(path) if statement is loop)
    scope = view.scope_of(path)
    still = loops_within(path[: position + 1], scope)
    window = window_of(view, [block], chosen, scope, still)
    if not window.reads and not window.writes:
        problem = f"block {block.block.name_hint!r} declares {chosen.name}, but neither reads nor writes it"
        raise NotSupported("stage", problem, block)
    started = _is_started(block.block, chosen)
    if started:
        _check_init(view, block, loop, chosen)

    # Build: the new buffer, the copies, the block with its accesses moved to the window
    index_map = None if layout is None else LayoutMap.of(layout, "stage").for_indices(window.shape)
    if index_map is not None:
        index_map.check_rank("stage", chosen.ndim, chosen.name)
    shape = window.shape if index_map is None else index_map.shape("stage", window.shape)
    name = view.fresh_block_name(f"{chosen.name}_stage")
    staged = fresh_buffer(name, shape, chosen, storage_scope)
    origin = _origin_in_block(view, block, loop, window)

    def location(offsets: Sequence[Expr]) -> Sequence[Expr]:
        return offsets if index_map is None else index_map.at(offsets)

    around = around_copy("stage", view, scope, still, chosen)
    moved = _moved(block, window, staged, origin, location)
    copies: list[Block] = []
    before: list[Stmt] = []
    after: list[Stmt] = []
    if window.reads and not started:
        nest, result = copy_nest(name, window, around, staged, location, into_other=True)
        before.append(nest)
        copies.append(result)
    if window.writes:
        out = name if not copies else view.fresh_block_name(f"{chosen.name}_unstage")
        nest, result = copy_nest(out, window, around, staged, location, into_other=False)
        after.append(nest)
        copies.append(result)

    target = doing_in(path, position, chosen)
    inner = _with_block(path[target:], block, moved)
    group = allocate(staged, seq([*before, inner, *after]))
    transparent = (
        chosen in view.function.argument_buffers()  # so every cell that is copied holds a value
        and len(before) == 1
        and is_alone_with(block.block, chosen.data, window.writes, path[target], path[:target])
        and _keeps_apart(index_map, window.shape)
    )
    return Step(
        view.replaced(path[: target + 1], group),
        Proof.LEMMA if transparent else Proof.VALUES,
        Origins(copies=frozenset([block_key(result) for result in copies])),
        results=[BlockResult(block_key(copies[0]))],
        at=loop,
        buffers=[chosen],  # and the new one: everything else is read and written as before
    )


def _with_block(path: Sequence[Stmt], old: BlockRealize, new: BlockRealize) -> Stmt:
    """The statement at the start of `path` with the block at its end replaced."""
    if len(path) == 1:
        return new
    child = path[1]
    below = _with_block(path[1:], old, new)
    return path[0].rebuild(lambda item: below if item is child else item)


def _keeps_apart(index_map: LayoutMap | None, sizes: Sequence[Expr]) -> bool:
    """A quick yes: no two elements of the window have one place in the new buffer."""
    if index_map is None:
        return True
    fixed = fixed_by(index_map.final_indices)
    pairs = zip(index_map.initial_indices, sizes, strict=True)
    return all([var in fixed or (isinstance(size, IntImm) and size.value == 1) for var, size in pairs])


def _is_started(block: Block, buffer: Buffer) -> bool:
    """Whether the block's own init gives the buffer its values."""
    return block.init is not None and any(region.buffer is buffer for region in block.writes)


def _check_init(view: View, realize: BlockRealize, loop: For, buffer: Buffer) -> None:
    block = realize.block
    pairs = zip(block.iter_vars, realize.iter_values, strict=True)
    data = [value for axis, value in pairs if axis.iter_type != IterType.CommReduce]
    loops = view.loops_of(block_key(block))
    known = [Loop(item.loop_var, item.min, item.extent) for item in loops]
    for depth, item in enumerate(loops):
        if carries(known, depth, data, conjuncts(realize.predicate)):
            raise InitOutsideWindow(realize, loop, item, buffer)
        if item is loop:
            return


def _origin_in_block(view: View, realize: BlockRealize, loop: For, window: Window) -> tuple[Expr, ...]:
    """The first element of the window in terms of the block's iteration variables."""
    around = {item.loop_var for item in view.loops_of(block_key(realize.block))}
    needed = [var for var in window.variables() if var in around]
    known = loops_from_axes(view, realize) if needed else {}
    for var in needed:
        if var not in known:
            raise WindowNotInBlock(realize, loop, window.buffer, var)
    return tuple([substitute(low, known) for low in window.origin])


def _moved(realize: BlockRealize, window: Window, new: Buffer, origin: Sequence[Expr], offset: Indices) -> BlockRealize:
    """The block with its accesses of the window going to `new`."""
    old = window.buffer
    facts = facts_inside(realize.block)
    rewriter = _MoveAccesses(window, new, origin, offset, facts)
    block = rewriter.block(realize.block)
    reads = replaced_regions(block.reads, old, region_in(block, new, writes=False))
    writes = replaced_regions(block.writes, old, region_in(block, new, writes=True))
    return realize.with_(block=block.with_(reads=reads, writes=writes))


class _MoveAccesses(Rewriter):
    def __init__(self, window: Window, new: Buffer, origin: Sequence[Expr], location: Indices, facts: Analyzer) -> None:
        self.old, self.sizes = window.buffer, window.shape
        self.new, self.origin, self.place, self.facts = new, origin, location, facts

    @deep
    def block(self, block: Block) -> Block:
        init = None if block.init is None else self.visit(block.init)
        return block.with_(body=self.visit(block.body), init=init)

    def _indices(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple([self.facts.simplify(index) for index in self.place(self._offsets(indices))])

    def _offsets(self, indices: Sequence[Expr]) -> list[Expr]:
        offsets = []
        for index, low, size in zip(indices, self.origin, self.sizes, strict=True):
            offset = self.facts.simplify(index - low)
            # v % 8 reads better than v - v // 8 * 8, and is one division less for the proof.
            if isinstance(size, IntImm) and size.value > 1 and not isinstance(offset, (Var, IntImm)):
                rest = index % size.astype(index.dtype)
                offset = self.facts.simplify(rest) if self.facts.can_prove_equal(offset, rest) else offset
            offsets.append(offset)
        return offsets

    def visit_For(self, loop: For) -> Stmt:
        with self.facts.bound(loop.loop_var, Range.from_min_extent(loop.min, loop.extent)):
            return self.rebuild(loop)

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        load = self.rebuild(load)
        if load.buffer is not self.old:
            return load
        return BufferLoad._make(self.new, self._indices(load.indices), span=load.span)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        store = self.rebuild(store)
        if store.buffer is not self.old:
            return store
        return BufferStore(self.new, store.value, self._indices(store.indices), span=store.span)
