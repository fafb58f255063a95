"""pipeline_in_blocks: loops whose iterations overlap by stages, as blocks: a prologue, a body and an epilogue.

    for i in range(16):  # stages [0, 1]      →      with T.block():
        with T.block():                                  B = T.alloc_buffer((2, 1))
            B = T.alloc_buffer((1,))                     with T.block(): B[0, 0] = A[0]
            with T.block(): B[0] = A[i]                  with T.block():
            with T.block(): C[i] = B[0]                      for i in range(15):
                                                                 with T.block(): B[(i + 1) % 2, 0] = A[i + 1]
                                                                 with T.block(): C[i] = B[i % 2, 0]
                                                         with T.block(): C[15] = B[1, 0]

This is only a form: that the stages keep every value is checked by `software_pipeline` on the same program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from loopwright.analysis.queries import get_block_read_write_region
from loopwright.arith import Analyzer
from loopwright.ir import (
    GE,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Evaluate,
    Expr,
    For,
    ForKind,
    IntImm,
    PrimFunc,
    Range,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    collect,
    const,
    deep,
    logical_and,
    seq,
    substitute,
)
from loopwright.runtime.dtype import DataType

STAGE, ORDER = "software_pipeline_stage", "software_pipeline_order"
DOUBLE_BUFFER = "double_buffer_scope"  # of a block: what it writes has two versions at least


class OtherForm(Exception):
    """The loop is not of the form that this file writes."""


class _Part(NamedTuple):
    """One statement of the loop, when it runs, and its position among those of an iteration."""

    realize: BlockRealize
    stage: int
    order: int


class _Versioned(Rewriter):
    """Puts the version of an iteration in front of the indices of buffers that have several."""

    def __init__(self, buffers: Mapping[Buffer, Buffer], iteration: Expr, facts: Analyzer, whole: bool) -> None:
        self.buffers, self.iteration, self.facts = buffers, iteration, facts
        self.whole = whole  # regions hold all versions

    def _version(self, new: Buffer) -> Expr:
        return self.facts.simplify(self.iteration % new.shape[0])

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        load = self.rebuild(load)
        new = self.buffers.get(load.buffer)
        return load if new is None else BufferLoad(new, (self._version(new), *load.indices))

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        store = self.rebuild(store)
        new = self.buffers.get(store.buffer)
        return store if new is None else BufferStore(new, store.value, (self._version(new), *store.indices))

    def visit_BufferRegion(self, region: BufferRegion) -> BufferRegion:
        region = self.rebuild(region)
        new = self.buffers.get(region.buffer)
        if new is None:
            return region
        versions = new.shape[0]
        first = Range.from_min_extent(const(0), versions) if self.whole else None
        return BufferRegion(new, (first or Range.from_min_extent(self._version(new), const(1)), *region.region))


class _Replace(Rewriter):
    def __init__(self, old: For, new: Stmt) -> None:
        self.old, self.new = old, new

    def visit_For(self, loop: For) -> Stmt:
        if loop is self.old:
            return self.new
        result: Stmt = self.rebuild(loop)
        return result


class _WithoutPipelines(Rewriter):
    """No pipelines but one."""

    def __init__(self, kept: For) -> None:
        self.kept = kept

    def visit_For(self, loop: For) -> Stmt:
        if loop is self.kept:
            return loop
        loop = self.rebuild(loop)
        return loop.with_(annotations=_other_notes(loop)) if STAGE in loop.annotations else loop


def _other_notes(loop: For) -> dict[str, object]:
    return {key: value for key, value in loop.annotations.items() if not key.startswith("software_pipeline")}


def _pipelines(body: Stmt) -> list[For]:
    return [loop for loop in collect(body, For) if STAGE in loop.annotations]


def _overlapped(loop: For) -> BlockRealize:
    allocated, statements = _taken_apart(loop)
    stages, orders = ([int(number) for number in loop.annotations[key]] for key in (STAGE, ORDER))  # type: ignore[attr-defined]
    if len(stages) != len(statements):
        raise OtherForm
    parts = [_Part(_as_block(item), s, o) for item, s, o in zip(statements, stages, orders, strict=True)]
    versions = {buffer: _versions(buffer, parts) for buffer in allocated}
    buffers = {
        buffer: _with_versions(buffer, count) for buffer, count in versions.items() if count > 1
    }
    _check_uses(parts, buffers)
    last = max(stages)
    ordered = sorted(parts, key=lambda part: part.order)
    low, count = loop.min, loop.extent
    emit = _Emit(loop, ordered, buffers)
    pieces = [
        emit.piece(low, const(last), unrolled=True) if last else None,
        emit.piece(low + last, Analyzer().simplify(count - last), unrolled=False),
        emit.piece(low + count, const(last), unrolled=True) if last else None,
    ]
    return _block(seq([piece for piece in pieces if piece is not None]), [buffers.get(b, b) for b in allocated])


def _check_uses(parts: Sequence[_Part], buffers: Mapping[Buffer, Buffer]) -> None:
    """Buffers with versions are used by loads and stores alone, not by pointers or under another name."""
    memory = {buffer.data for buffer in buffers}
    for part in parts:
        by_pointer = any([var in memory for var in collect(part.realize, Var)])
        if by_pointer or (buffers and any([block.match_buffers for block in collect(part.realize, Block)])):
            raise OtherForm


def _taken_apart(loop: For) -> tuple[Sequence[Buffer], Sequence[Stmt]]:
    body = loop.body
    allocated: Sequence[Buffer] = ()
    if isinstance(body, BlockRealize):
        block = body.block
        if block.iter_vars or block.init is not None or block.match_buffers or block.annotations:
            raise OtherForm
        if not (isinstance(body.predicate, IntImm) and body.predicate.value):
            raise OtherForm
        allocated, body = block.alloc_buffers, block.body
    if not isinstance(body, SeqStmt) or loop.kind is not ForKind.SERIAL:
        raise OtherForm
    return allocated, body.seq


def _as_block(statement: Stmt) -> BlockRealize:
    if isinstance(statement, BlockRealize):
        if statement.block.init is not None:
            raise OtherForm
        return statement
    return _block(statement, ())


def _block(body: Stmt, allocated: Sequence[Buffer]) -> BlockRealize:
    """An opaque block around statements, with the regions that they touch."""
    block = Block((), (), (), "", body, alloc_buffers=tuple(allocated))
    reads, writes = get_block_read_write_region(block, {})
    inside = set(allocated)
    kept = [tuple([region for region in side if region.buffer not in inside]) for side in (reads, writes)]
    return BlockRealize((), const(True), block.with_(reads=kept[0], writes=kept[1]))


def _versions(buffer: Buffer, parts: Sequence[_Part]) -> int:
    """How many iterations have values in the buffer at once."""
    writers = [part for part in parts if _regions(part.realize.block.writes, buffer)]
    others = [part for part in parts if _regions((*part.realize.block.reads, *part.realize.block.writes), buffer)]
    if not writers:
        return 1
    result = max([part.stage for part in others]) - min([part.stage for part in writers]) + 1
    # One less does where all of an iteration is done with a cell before a later iteration writes it.
    if result >= 2 and not any([_is_overwritten(one, other, buffer) for one in writers for other in others]):
        result -= 1
    blocks = [block for part in writers for block in collect(part.realize, Block)]
    doubled = [block for block in blocks if DOUBLE_BUFFER in block.annotations and _regions(block.writes, buffer)]
    return 2 if doubled and result == 1 else result


def _regions(regions: Sequence[BufferRegion], buffer: Buffer) -> list[BufferRegion]:
    return [region for region in regions if region.buffer is buffer]


def _is_overwritten(writer: _Part, other: _Part, buffer: Buffer) -> bool:
    """Whether `writer` may write a cell for a later iteration before `other` touches it for an earlier one."""
    if writer.order >= other.order or writer.stage >= other.stage:
        return False
    block = other.realize.block
    touched = _regions((*block.reads, *block.writes), buffer)
    written = _regions(writer.realize.block.writes, buffer)
    return any([not _are_apart(one, two) for one in written for two in touched])


def _are_apart(one: BufferRegion, two: BufferRegion) -> bool:
    facts = Analyzer()
    return any(
        [
            facts.can_prove(a.min + a.extent <= b.min) or facts.can_prove(b.min + b.extent <= a.min)
            for a, b in zip(one.region, two.region, strict=True)
        ]
    )


def _with_versions(buffer: Buffer, count: int) -> Buffer:
    if buffer.strides:
        raise OtherForm
    data = Var(buffer.data.name, buffer.data.type_annotation)
    index = buffer.shape[0].dtype if buffer.shape else DataType("int32")
    return buffer.with_(data=data, shape=(const(count, index), *buffer.shape))


class _Emit:
    def __init__(self, loop: For, parts: Sequence[_Part], buffers: Mapping[Buffer, Buffer]) -> None:
        self.loop, self.parts, self.buffers = loop, parts, buffers
        self.last = max([part.stage for part in parts])

    def piece(self, start: Expr, count: Expr, unrolled: bool) -> Stmt:
        """The times start to start + count, as a block: each statement that runs at a time, in order."""
        loop = self.loop
        facts = Analyzer()
        is_one = isinstance(count, IntImm) and count.value == 1
        if isinstance(count, IntImm) and count.value <= 0:
            return BlockRealize((), const(True), Block((), (), (), "", Evaluate(const(0))))
        var = Var(loop.loop_var.name, loop.loop_var.dtype)
        if not is_one:
            facts.bind(var, Range.from_min_extent(const(0, var.dtype), count))
        time = facts.simplify(start if is_one else start + var)
        statements = [item for part in self.parts if (item := self._at(part, time, facts)) is not None]
        body: Stmt = seq(statements) if statements else Evaluate(const(0))
        if not is_one:
            kind = ForKind.UNROLLED if unrolled else loop.kind
            notes = {} if unrolled else _other_notes(loop)
            body = For(var, const(0, var.dtype), count, kind, body, annotations=notes)
        is_block = is_one and len(statements) == 1 and isinstance(body, BlockRealize) and _is_plain(body)
        return body if is_block else _block(body, ())

    def _at(self, part: _Part, time: Expr, facts: Analyzer) -> Stmt | None:
        """The statement at a time, for the iteration it then works on; None where there is none."""
        loop = self.loop
        iteration = facts.simplify(time - part.stage)
        conditions = []
        for condition in (iteration >= loop.min, iteration < loop.min + loop.extent):
            known = facts.simplify(condition)
            if isinstance(known, IntImm) and not known.value:
                return None
            if not isinstance(known, IntImm) and not facts.can_prove(known):
                if isinstance(known, GE) and facts.can_prove(known.a <= known.b):
                    known = known.a.equal(known.b)
                conditions.append(known)
        realize = _Versioned(self.buffers, facts.simplify(loop.loop_var - loop.min), facts, self.last > 1).visit(
            part.realize
        )
        realize = substitute(realize, {loop.loop_var: iteration})
        realize = _Simplified(facts).visit(realize)
        if conditions:
            realize = realize.with_(predicate=logical_and(realize.predicate, *conditions))
        return realize


def _is_plain(realize: BlockRealize) -> bool:
    return isinstance(realize.predicate, IntImm) and bool(realize.predicate.value) and not realize.block.iter_vars


class _Simplified(Rewriter):
    """Indices and regions in their simplest form."""

    def __init__(self, facts: Analyzer) -> None:
        self.facts = facts

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        return load.with_(indices=tuple([self.facts.simplify(self.visit(index)) for index in load.indices]))

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        indices = tuple([self.facts.simplify(self.visit(index)) for index in store.indices])
        return store.with_(value=self.visit(store.value), indices=indices)

    def visit_Range(self, span: Range) -> Range:
        return span.with_(min=self.facts.simplify(span.min), extent=self.facts.simplify(span.extent))


def _dissolved(loop: For, pieces: set[Block]) -> For:
    """The loop with prologue, body and epilogue of a pipeline inside it as statements of its own."""
    allocated, statements = _taken_apart(loop)
    if not any([isinstance(item, BlockRealize) and item.block in pieces for item in statements]):
        return loop
    flat: list[Stmt] = []
    for item in statements:
        if isinstance(item, BlockRealize) and item.block in pieces:
            allocated = [*allocated, *item.block.alloc_buffers]
            flat += item.block.body.seq if isinstance(item.block.body, SeqStmt) else [item.block.body]
        else:
            flat.append(item)
    return loop.with_(body=_block(SeqStmt(tuple(flat)), allocated))


@deep
def pipeline_in_blocks(func: PrimFunc, check: Callable[[PrimFunc], object]) -> PrimFunc:
    """The function with its pipelines as blocks, the innermost first: one counts as three statements in one around it.

    `check` is given a function with one pipeline at a time. Raises OtherForm where a loop has not the form for this.
    """
    pieces: set[Block] = set()
    while found := _pipelines(func.body):
        loop = next(item for item in found if not _pipelines(item.body))
        flat = _dissolved(loop, pieces)
        func = func.with_(body=_Replace(loop, flat).visit(func.body))
        check(func.with_(body=_WithoutPipelines(flat).visit(func.body)))
        overlapped = _overlapped(flat)
        pieces.add(overlapped.block)
        func = func.with_(body=_Replace(flat, overlapped).visit(func.body))
    return func
