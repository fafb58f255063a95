"""compute_inline: a block's value is computed where it is read, and the block and its buffer are gone.

    for i in range(64):                          →    for i in range(64):
        with T.block("B"): B[vi] = A[vi] + 1              with T.block("C"): C[vi] = (A[vi] + 1) * 2
    for i in range(64):
        with T.block("C"): C[vi] = B[vi] * 2

The block is one store `B[f(v)] = e(v)`, where a cell belongs to one iteration v = f⁻¹(cell), and nobody else writes B:
a load of `B[g]` is `e(f⁻¹(g))`. Where iterations of a loop around both use B again, as steps of a scan do, it is the
reader's own iteration, if that is whose value it reads (`array_expansion.py`). Proved: the loads inside `e` see, where
they stand now, what they saw before. A block that nobody reads is taken out.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.analysis.dataflow import BlockKey
from loopwright.arith import Analyzer, LoadsReplaced, as_stored, interval_of
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Expr,
    For,
    IfThenElse,
    Range,
    Rewriter,
    Stmt,
    Var,
    deep,
    logical_and,
    logical_not,
    substitute,
)
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.origins import Origins
from loopwright.schedule.proof.find_mismatch import find_mismatch
from loopwright.schedule.rewrite.array_expansion import unfolded
from loopwright.schedule.rewrite.bindings import TRUE
from loopwright.schedule.rewrite.blocks import blocks_in
from loopwright.schedule.rewrite.inlining import (
    Attribution,
    Inverse,
    Origin,
    SubstituteLoads,
    inverse_of,
    loads_in_order,
    retell,
    uses_outside,
    with_fresh_regions,
)
from loopwright.schedule.rewrite.iteration_domain import IterationDomain, iteration_domain
from loopwright.schedule.rewrite.regions import facts_inside
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import Path, View
from loopwright.transform.parts.purity import is_pure


class NotInlinable(ScheduleError):
    """A block cannot be replaced by its value.

    compute_inline needs a block that is one plain store `B[f(v)] = e(v)` of a buffer allocated in the function, where
    each cell belongs to one iteration, without init, without effects, and B written by no other block.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8, 8), name="A")
        k = te.reduce_axis((0, 8), name="k")
        B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
        C = te.compute((8,), lambda i: B[i] * 2, name="C")
        sch = tir.Schedule(te.create_prim_func([A, C]))
        sch.compute_inline("B")  # a sum is no one expression
    """

    code = "LW0235"

    def __init__(self, step: str, realize: BlockRealize, problem: str) -> None:
        name = realize.block.name_hint
        super().__init__(f"{step}: block {name!r} {problem}", at=realize, fields={"block": name})


def compute_inline(view: View, block: BlockRealize) -> Step:
    """Put the value of `block` in place of every load of it."""
    path = view.block_path(block_key(block.block))
    store = the_store("compute_inline", path)
    buffer = store.buffer
    runs = iteration_domain("compute_inline", path, ())
    check_uses("compute_inline", view, block, buffer)
    inverse = inverse_of(store.indices, runs.domain)
    wide = unfolded(view, block, store, runs.domain) if inverse is None else None
    if wide is not None and find_mismatch(view.function, wide.after, buffers=wide.buffers) is None:
        view = View(wide.after)
        path = view.block_path(block_key(block.block))
        store = the_store("compute_inline", path)
        inverse = inverse_of(store.indices, runs.domain)
    if inverse is None:
        cell = store.indices[len(store.indices) - len(buffer.shape) :]  # without what unfolding added
        problem = f"writes {buffer.name}[{', '.join([str(index) for index in cell])}]"
        problem += ", where one cell may belong to several iterations"
        raise NotInlinable("compute_inline", block, problem)

    without = view.replaced(path, None)
    rewriter = _Inline(block.block, store, inverse, None if _covers(store, runs) else runs)
    body = rewriter.run(without.body)
    if rewriter.outside is not None:
        load, consumer = rewriter.outside
        read = load if wide is None else buffer.name
        problem = (
            f"does not write all of {buffer.name}, and block {consumer!r} may read {read} where it was not written"
        )
        raise NotInlinable("compute_inline", block, problem)
    added = {load.buffer: None for load in loads_in_order(store.value)}
    after = without.with_(body=body)
    origins = Origins(loads=rewriter.loads, rewritten=frozenset(rewriter.consumers))
    return Step(after, Proof.VALUES, origins, at=block, buffers=[buffer, *added])


def the_store(step: str, path: Path) -> BufferStore:
    """The one store that the block at the end of `path` is; refused when it is anything else."""
    realize = path[-1]
    assert isinstance(realize, BlockRealize)
    block = realize.block
    if len(path) == 1:
        raise NotInlinable(step, realize, "is the root block")
    if block.init is not None:
        raise NotInlinable(step, realize, "is a reduction: it has an init, and its value is no one expression")
    store = block.body
    if not isinstance(store, BufferStore) or block.alloc_buffers or block.match_buffers:
        raise NotInlinable(step, realize, "is not a single store")
    if any(index.dtype.lanes != 1 for index in store.indices):
        raise NotInlinable(step, realize, "stores several elements at once")
    if not is_pure(store.value) or not all(is_pure(index) for index in store.indices):
        raise NotInlinable(step, realize, "calls something that does more than give a value")
    if any(load.buffer.data is store.buffer.data for load in loads_in_order(store)):
        raise NotInlinable(step, realize, f"reads {store.buffer.name}, which it writes")
    return store


def check_uses(step: str, view: View, realize: BlockRealize, buffer: Buffer) -> None:
    """Nobody outside the function sees `buffer`, and nobody but the block writes it."""
    name = buffer.name
    if any(argument.data is buffer.data for argument in view.function.argument_buffers()):
        raise NotInlinable(step, realize, f"writes {name}, which the caller reads")
    if not any(buffer in block.alloc_buffers for block in blocks_in(view.function.body)):
        raise NotInlinable(step, realize, f"writes {name}, which no block allocates")
    reasons = uses_outside(view.function.body, buffer, realize.block)
    if reasons:
        raise NotInlinable(step, realize, f"cannot be put in place of the reads of {name}: {reasons[0]}")


def _covers(store: BufferStore, runs: IterationDomain) -> bool:
    """Whether the block writes every cell of its buffer; a cell read elsewhere would have no iteration behind it."""
    if runs.conditions:
        return False
    facts = Analyzer()
    domain: dict[Var, Range | tuple[Expr | int, Expr | int]] = {a: (s.low, s.high) for a, s in runs.domain.items()}
    for index, extent in zip(store.indices, store.buffer.shape, strict=True):
        ends = interval_of(index, domain, facts)
        if ends is None or not facts.can_prove_equal(ends.min_value, 0):
            return False
        if not facts.can_prove_equal(ends.max_value + 1, extent):
            return False
    return True


class _Inline(Rewriter):
    """Rewrites blocks that load the buffer; leaves the others as they are.

    `runs` is given when the block does not write all of its buffer: the value at a cell may then be computed only
    where the cell is shown to have been written, since elsewhere its own loads might be out of bounds.
    """

    def __init__(
        self,
        block: Block,
        store: BufferStore,
        inverse: Inverse,
        runs: IterationDomain | None,
    ) -> None:
        self.runs = runs
        self.outside: tuple[BufferLoad, str] | None = None  # a load that might read what was never written
        self.key, self.store, self.inverse = block_key(block), store, inverse
        self.axes = [axis.var for axis in block.iter_vars]
        self.buffer = store.buffer
        self.added = list({load.buffer: None for load in loads_in_order(store.value)})
        self.made = Attribution()
        self.loads: dict[tuple[BlockKey, int], Origin] = {}
        self.consumers: list[BlockKey] = []
        self.conditions: list[Expr] = []  # under which the statement at hand runs

    @deep
    def run(self, body: Stmt) -> Stmt:
        result: Stmt = self.visit(body)
        return result

    def visit_Block(self, block: Block) -> Block:
        inner = block.rebuild(self.visit)  # blocks inside first: their regions count in this one's
        kept = tuple([buffer for buffer in inner.alloc_buffers if buffer is not self.buffer])
        if len(kept) < len(inner.alloc_buffers):
            inner = inner.with_(alloc_buffers=kept)
        if any(load.buffer is self.buffer for load in loads_in_order(inner.body)):
            key, axes = block_key(block), [axis.var for axis in block.iter_vars]
            body = _Consumer(self, block, key, axes).visit(inner.body)
            self.loads.update(self.made.numbered(key, body))
            self.consumers.append(key)
            inner = inner.with_(body=body)
        if inner.reads and any(region.buffer is self.buffer for region in inner.reads):
            inner = with_fresh_regions(inner, self.buffer, self.added)
        return inner

    def visit_IfThenElse(self, choice: IfThenElse) -> Stmt:
        then_case = self._under(choice.condition, choice.then_case)
        other = choice.else_case
        else_case = None if other is None else self._under(logical_not(choice.condition), other)
        return choice.with_(then_case=then_case, else_case=else_case)

    def _under(self, condition: Expr, statement: Stmt) -> Stmt:
        self.conditions.append(condition)
        result: Stmt = self.visit(statement)
        self.conditions.pop()
        return result

    def visit_Expr(self, expr: Expr) -> Expr:
        return expr

    def value_at(self, cell: Sequence[Expr]) -> Expr:
        """What the inlined block writes into the cell."""
        values = self.inverse(cell)
        return retell(self.store.value, self.made, self.key, values, [values[axis] for axis in self.axes])


class _Consumer(LoadsReplaced, SubstituteLoads):
    def __init__(self, inline: _Inline, block: Block, key: BlockKey, axes: Sequence[Var]) -> None:
        super().__init__(inline.made, key, {}, axes)
        self.inline, self.block = inline, block
        self.facts = facts_inside(block)

    def replace(self, load: BufferLoad, indices: Sequence[Expr], number: int) -> Expr:
        if load.buffer is not self.inline.buffer:
            return super().replace(load, indices, number)
        if self.inline.runs is not None and not self._was_written(indices):
            self.inline.outside = load, self.block.name_hint
        return as_stored(self.inline.value_at(indices), self.facts)

    def _was_written(self, cell: Sequence[Expr]) -> bool:
        runs = self.inline.runs
        assert runs is not None
        values = self.inline.inverse(cell)
        needed = [substitute(condition, values) for condition in runs.conditions]
        for axis, span in runs.domain.items():
            needed += [span.low <= values[axis], values[axis] <= span.high]
        with self.facts.constraint_scope(logical_and(TRUE, *self.inline.conditions)):
            return all(self.facts.can_prove(condition) for condition in needed)

    def visit_For(self, loop: For) -> Stmt:
        self.facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
        rewritten: Stmt = loop.rebuild(self.visit)
        return rewritten

    def visit_Call(self, call: Call) -> Expr:
        if call.op.name != "tir.if_then_else":
            return super().visit_Call(call)
        condition, chosen, other = call.args
        condition = self.visit(condition)
        with self.facts.constraint_scope(condition):
            chosen = self.visit(chosen)
        with self.facts.constraint_scope(logical_not(condition)):
            other = self.visit(other)
        return call.with_(args=(condition, chosen, other))
