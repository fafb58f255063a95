"""reverse_compute_inline: a block is folded into the block that makes what it reads.

    for i in range(64):                          →    for i in range(64):
        with T.block("B"): B[vi] = A[vi] + 1              with T.block("B"): C[vi] = (A[vi] + 1) * 2
    for i in range(64):
        with T.block("C"): C[vi] = B[vi] * 2

The producer is one store `B[f(v)] = x(v)`, to a cell that tells v, read by this block alone, always at one cell g(u),
which tells the iteration u; so iteration v of the producer does the work of u = g⁻¹(f(v)), where there is such a u: a
guard is added where the producer makes more than is used. Proved: every load sees what it saw before, and every cell
gets the value it got.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from loopwright.arith import LoadsReplaced, as_stored
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    IfThenElse,
    Rewriter,
    Stmt,
    Var,
    conjuncts,
    deep,
    logical_and,
    reads_memory,
    structural_equal,
    substitute,
)
from loopwright.ir.operators import cast
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.origins import Origins
from loopwright.schedule.primitives.compute.compute_inline import check_uses, the_store
from loopwright.schedule.proof.speculative_runs import check_speculative_runs
from loopwright.schedule.rewrite.bindings import TRUE, bound_first
from loopwright.schedule.rewrite.inlining import (
    Attribution,
    SubstituteLoads,
    inverse_of,
    loads_in_order,
    retell,
    with_fresh_regions,
)
from loopwright.schedule.rewrite.iteration_domain import IterationDomain, iteration_domain
from loopwright.schedule.rewrite.regions import Span, facts_inside
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View

STEP = "reverse_compute_inline"


class NotFoldable(ScheduleError):
    """A block cannot be folded into the block that makes what it reads.

    reverse_compute_inline needs a producer that is one plain store, each iteration to a cell of its own, whose result
    is read by this block alone and by each iteration at one cell, from which the iteration can be told.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        C = te.compute((4,), lambda i: B[i // 2], name="C")
        sch = tir.Schedule(te.create_prim_func([A, C]))
        sch.reverse_compute_inline("C")
    """

    code = "LW0236"

    def __init__(self, realize: BlockRealize, problem: str, hint: str | None = None) -> None:
        name = realize.block.name_hint
        super().__init__(f"{STEP}: block {name!r} {problem}", at=realize, hint=hint, fields={"block": name})


def reverse_compute_inline(view: View, block: BlockRealize) -> Step:
    """Fold `block` into the producer of what it reads."""
    path = view.block_path(block_key(block.block))
    store = the_store(STEP, path)
    producer = _producer(view, block)
    if view.scope_of(path) is not view.scope_of(view.block_path(block_key(producer.block))):
        name = producer.block.name_hint
        raise NotFoldable(block, f"stands in another block than {name!r}, which makes what it reads")
    plain, guarded = _without_guard(producer)
    produced = the_store(STEP, (*view.block_path(block_key(producer.block))[:-1], plain))
    buffer = produced.buffer
    check_uses(STEP, view, producer, buffer)
    _check_sole_reader(view, block, producer, buffer)
    cell = _cell_read(block, store, buffer)
    runs = iteration_domain(STEP, path, (), exact=True)
    inverse = inverse_of(cell, runs.domain)
    if inverse is None:
        text = f"{buffer.name}[{', '.join([str(index) for index in cell])}]"
        raise NotFoldable(block, f"reads {text}: one cell may belong to several iterations")
    _check_made_once(block, producer, produced)

    # The producer's iteration v does the work of the consumer's iteration `values`.
    values = inverse(produced.indices)
    guards = _guards(producer, runs, cell, produced, values)
    fold = _Fold(block.block, producer.block, store, produced, values, [*guarded, *guards.inside])
    new = producer.with_(block=fold.block(), predicate=logical_and(producer.predicate, *guards.outside))
    without = View(view.replaced(path, None))
    folded = without.replaced(without.block_path(block_key(producer.block)), new)
    after = folded.with_(body=_without_buffer(folded.body, buffer))
    if not runs.is_exact:
        check_speculative_runs(STEP, after, [block_key(producer.block)], block)
    axes = [axis.var for axis in producer.block.iter_vars]
    origins = Origins(
        renamed={block_key(producer.block): (block_key(block.block), _values_at(axes, fold.old_axes))},
        loads=fold.made.numbered(block_key(producer.block), new.block.body),
        rewritten=frozenset([block_key(producer.block)]),
    )
    touched = {load.buffer: None for load in [*loads_in_order(store), *loads_in_order(produced)]}
    return Step(after, Proof.VALUES, origins, at=block, buffers=list({**touched, buffer: None, store.buffer: None}))


def _producer(view: View, block: BlockRealize) -> BlockRealize:
    """The block to fold into: the last one, other than an input, that makes something the block reads."""
    read = {region.buffer.data: region.buffer for region in block.block.reads}
    arguments = {buffer.data for buffer in view.function.argument_buffers()}
    result: list[BlockRealize] = []
    for path in view.index.blocks.values():
        realize = path[-1]
        assert isinstance(realize, BlockRealize)
        if realize is block or len(path) == 1:
            continue
        if any(region.buffer.data in read and region.buffer.data not in arguments for region in realize.block.writes):
            result.append(realize)
    if not result:
        raise NotFoldable(block, "reads nothing that another block makes in a buffer of the function's own")
    producer = result[-1]
    if producer.block.init is not None:
        name = producer.block.name_hint
        raise NotFoldable(block, f"reads the result of a reduction, block {name!r}, complete only at its end")
    return producer


def _check_sole_reader(view: View, block: BlockRealize, producer: BlockRealize, buffer: Buffer) -> None:
    for path in view.index.blocks.values():
        realize = path[-1]
        assert isinstance(realize, BlockRealize)
        if realize is block or realize is producer:
            continue
        if any(load.buffer is buffer for load in loads_in_order(realize.block.body)):
            problem = f"is not the only one that reads {buffer.name}: block {realize.block.name_hint!r} does as well"
            raise NotFoldable(block, problem)


def _cell_read(block: BlockRealize, store: BufferStore, buffer: Buffer) -> Sequence[Expr]:
    loads = [load for load in loads_in_order(store) if load.buffer is buffer]
    if not loads:
        raise NotFoldable(block, f"says that it reads {buffer.name}, but does not")
    for load in loads[1:]:
        if not structural_equal(load.indices, loads[0].indices, map_free_vars=False):
            problem = f"reads {buffer.name} at several cells: {loads[0]} and {load}"
            raise NotFoldable(block, problem)
    return loads[0].indices


def _check_made_once(block: BlockRealize, producer: BlockRealize, produced: BufferStore) -> None:
    """Of two iterations that make a cell, each would do the work of the one that reads it; it sees one of them."""
    domain = {
        axis.var: Span(axis.dom.min, axis.dom.min + axis.dom.extent - 1)
        for axis in producer.block.iter_vars
        if axis.dom is not None
    }
    if inverse_of(produced.indices, domain) is None:
        name, buffer = producer.block.name_hint, produced.buffer.name
        hint = f"use reverse_compute_at, or give each iteration a cell of {buffer}"
        raise NotFoldable(block, f"reads a cell of {buffer} that several iterations of block {name!r} write", hint)


def _without_guard(producer: BlockRealize) -> tuple[BlockRealize, list[Expr]]:
    """The producer without the condition that an earlier fold has left in its body, and that condition."""
    body = producer.block.body
    if not isinstance(body, IfThenElse) or body.else_case is not None or reads_memory(body.condition):
        return producer, []
    return producer.with_(block=producer.block.with_(body=body.then_case)), conjuncts(body.condition)


class _Guards(NamedTuple):
    inside: Sequence[Expr]  # on the axes of the producer
    outside: Sequence[Expr]  # on its loops: what reads memory


def _guards(
    producer: BlockRealize,
    runs: IterationDomain,
    cell: Sequence[Expr],
    produced: BufferStore,
    values: Mapping[Var, Expr],
) -> _Guards:
    """When the folded block stores, beside when the producer did: when there is an iteration of the consumer for it."""
    facts = facts_inside(producer.block)
    wanted: list[Expr] = []
    for var, span in runs.domain.items():
        low, end = cast(span.low, var.dtype), facts.simplify(cast(span.high, var.dtype) + 1)
        wanted += [low <= values[var], values[var] < end]
    wanted += [substitute(condition, values) for condition in runs.conditions]
    # Axes were told from some of the indices; the others must agree.
    for mine, result in zip(cell, produced.indices, strict=True):
        there = facts.simplify(substitute(mine, values))
        if not facts.can_prove_equal(there, result):
            wanted.append(there.equal(cast(result, there.dtype)))
    bound = {axis.var: value for axis, value in zip(producer.block.iter_vars, producer.iter_values, strict=True)}
    guards = [bound_first(facts.simplify(guard)) for guard in wanted]
    kept = [guard for guard in guards if not facts.can_prove(guard)]
    return _Guards(
        [guard for guard in kept if not reads_memory(guard)],
        [substitute(guard, bound) for guard in kept if reads_memory(guard)],
    )


class _Fold:
    """The producer's block with the consumer's store in it."""

    def __init__(
        self,
        consumer: Block,
        producer: Block,
        store: BufferStore,
        produced: BufferStore,
        values: Mapping[Var, Expr],
        guards: Sequence[Expr],
    ) -> None:
        self.consumer, self.producer, self.store, self.produced = consumer, producer, store, produced
        self.values, self.guards = values, guards
        self.old_axes = [values[axis.var] for axis in consumer.iter_vars]
        self.made = Attribution()

    def block(self) -> Block:
        folded = _FoldedStore(self, block_key(self.consumer), self.values, self.old_axes)
        body = folded.run(self.store)
        if self.guards:
            body = IfThenElse(logical_and(TRUE, *self.guards), body)
        new = self.producer.with_(body=body)
        return with_fresh_regions(new, self.produced.buffer, (), writes=True)

    def value(self) -> Expr:
        """What the producer stored."""
        axes = [axis.var for axis in self.producer.iter_vars]
        value = retell(self.produced.value, self.made, block_key(self.producer), {}, axes)
        return as_stored(value, facts_inside(self.producer))


class _FoldedStore(LoadsReplaced, SubstituteLoads):
    def __init__(self, fold: _Fold, key: object, values: Mapping[Var, Expr], axes: Sequence[Expr]) -> None:
        super().__init__(fold.made, key, values, axes)  # type: ignore[arg-type]
        self.fold = fold
        self.facts = facts_inside(fold.producer)

    @deep
    def run(self, store: BufferStore) -> Stmt:
        result: Stmt = self.visit(store)
        return result

    def replace(self, load: BufferLoad, indices: Sequence[Expr], number: int) -> Expr:
        if load.buffer is self.fold.produced.buffer:
            return self.fold.value()
        return super().replace(load, indices, number)


def _values_at(axes: Sequence[Var], values: Sequence[Expr]) -> Callable[[Sequence[Var]], Sequence[Expr]]:
    """The old block's axis values, given variables for the new block's axes."""

    def at(variables: Sequence[Var]) -> Sequence[Expr]:
        return [substitute(value, dict(zip(axes, variables, strict=True))) for value in values]

    return at


class _WithoutBuffer(Rewriter):
    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer

    def visit_Block(self, block: Block) -> Block:
        block = block.rebuild(self.visit)
        if self.buffer not in block.alloc_buffers:
            return block
        return block.with_(alloc_buffers=tuple([b for b in block.alloc_buffers if b is not self.buffer]))

    def visit_Expr(self, expr: Expr) -> Expr:
        return expr


@deep
def _without_buffer(body: Stmt, buffer: Buffer) -> Stmt:
    result: Stmt = _WithoutBuffer(buffer).visit(body)
    return result
