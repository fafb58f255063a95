"""software_pipeline: statements of different iterations of a loop run side by side.

    for i in T.serial(8, annotations=                        →    B = T.decl_buffer((2, 1))
            {"software_pipeline_stage": [0, 1],                   B[0, 0] = A[0] * 2          # prologue
             "software_pipeline_order": [0, 1]}):                 for i in range(7):          # body
        B = T.decl_buffer((1,))                                       B[(i + 1) % 2, 0] = A[i + 1] * 2
        B[0] = A[i] * 2                                               C[i] = B[i % 2, 0] + 1
        C[i] = B[0] + 1                                           C[7] = B[1, 0] + 1          # epilogue

A statement of stage s runs for iteration i at time i + s; statements of one time run by their order. A buffer that is
allocated in the loop gets as many versions as iterations use it at once, one of a block marked `double_buffer_scope`
two at least. Whether the statements may overlap so is proved (`pipeline_dependences.py`), or refused. With
`software_pipeline_predicated` there is no epilogue: the body runs as often as the loop did, and stages but the last
are under a condition, which is half the code where statements are long. `software_pipeline_async_stages` says nothing
on a CPU: copies are ordinary statements, finished when they are done.

Needs: no blocks; loops from 0.  Leaves: no pipeline annotations and marks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from loopwright.analysis.effects import Names, effects
from loopwright.ir import (
    Add,
    Allocate,
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    LetStmt,
    PrimFunc,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    any_node,
    collect_statements,
    const,
    deep,
    is_return,
    seq,
    uses_var,
)
from loopwright.ir.node import rewrite_tuple
from loopwright.ir.passes import function_pass
from loopwright.transform.errors import BadAnnotation, NotAPipeline, PipelineMismatch
from loopwright.transform.parts.clone_definitions import clone_definitions
from loopwright.transform.parts.flat_index import add_index, is_literal
from loopwright.transform.parts.folding import substitute_folding
from loopwright.transform.parts.pipeline_dependences import Touched, check_dependences, touched
from loopwright.transform.parts.pipeline_marks import (
    ASYNC,
    DOUBLE_BUFFER,
    MARK,
    ORDER,
    PREDICATED,
    STAGE,
    is_mark,
    is_pipeline,
    marked_memory,
)
from loopwright.transform.parts.purity import has_data
from loopwright.transform.parts.statements import StmtRewriter
from loopwright.transform.passes.write_allocations import allocated_size

KEYS: Final = (STAGE, ORDER, ASYNC, PREDICATED)


class Body(NamedTuple):
    """The body of a loop, taken apart: memory it allocates, and its statements one after the other."""

    allocations: Sequence[Allocate]
    buffers: Sequence[Buffer]
    statements: Sequence[Stmt]


def take_apart(loop: For) -> Body:
    """The allocations and the statements of a loop's body; conditions and lets around them go into each."""
    allocations: list[Allocate] = []
    buffers: list[Buffer] = []
    around: list[Callable[[Stmt], Stmt]] = []
    body = loop.body
    while True:
        if isinstance(body, Allocate):
            if body.annotations or not is_literal(body.condition, 1):
                raise NotAPipeline(loop, f"{body.buffer_var.name} is allocated under a condition", "allocate it always")
            allocations.append(body)
            body = body.body
        elif isinstance(body, DeclBuffer):
            if any(body.buffer.data is node.buffer_var for node in allocations):
                buffers.append(body.buffer)
            else:
                around.append(_with_view(body.buffer))  # of memory from outside: each statement names it for itself
            body = body.body
        elif isinstance(body, IfThenElse) and body.else_case is None and not has_data(body.condition):
            around.append(_under(body.condition))
            body = body.then_case
        elif isinstance(body, LetStmt) and not has_data(body.value):
            around.append(_with_value(body.var, body.value))
            body = body.body
        elif isinstance(body, AttrStmt) and body.attr_key != MARK:
            body = body.body
        else:
            break
    if any_node(body, is_return):
        why = "an iteration may return (T.ret) after parts of later ones ran"
        raise NotAPipeline(loop, why, "keep the loop as it is, or set a flag and return after it")
    statements = body.seq if isinstance(body, SeqStmt) else (body,)
    for wrap in reversed(around):
        statements = tuple([_inside_mark(part, wrap) for part in statements])
    return Body(allocations, buffers, statements)


def _under(condition: Expr) -> Callable[[Stmt], Stmt]:
    return lambda statement: IfThenElse(condition, statement)


def _with_view(buffer: Buffer) -> Callable[[Stmt], Stmt]:
    return lambda statement: clone_definitions(DeclBuffer(buffer, statement))


def _with_value(var: Var, value: Expr) -> Callable[[Stmt], Stmt]:
    return lambda statement: substitute_folding(statement, {var: value})


def _inside_mark(statement: Stmt, wrap: Callable[[Stmt], Stmt]) -> Stmt:
    if isinstance(statement, AttrStmt) and is_mark(statement):
        return statement.with_(body=wrap(statement.body))
    return wrap(statement)


def pipelined(
    loop: For, body: Body, stages: Sequence[int], orders: Sequence[int], names: Names, split: int = 1
) -> Stmt:
    """The loop with its statements overlapping, or an error that says why they may not.

    `names` of memory are those that the function binds. With `split`, the overlapping part is unrolled that many times,
    so that which version is used is known.
    """
    last = max(stages)
    extent = loop.extent
    if isinstance(extent, IntImm) and extent.value < max(last, 1):
        return plain(loop)  # too short to overlap
    for allocation in body.allocations:
        sizes = allocation.extents
        if any(uses_var(size, lambda used: used is loop.loop_var) or has_data(size) for size in sizes):
            name = allocation.buffer_var.name
            raise NotAPipeline(loop, f"the size of {name} differs between iterations", f"give {name} one size")
    uses = [touched(statement, names) for statement in body.statements]
    private = {allocation.buffer_var for allocation in body.allocations}
    check_dependences(loop, uses, stages, orders, private)
    versions = _versions(loop, body, uses, stages, orders, _doubled(body))
    sequence = sorted(range(len(stages)), key=lambda k: orders[k])

    written: set[int] = set()  # statements that are in the program by now: further copies define their own variables

    def at(time: Expr, active: Callable[[int], bool], end: Expr | None = None) -> list[Stmt]:
        """The statements of one time; with `end`, those whose iteration is before it."""
        parts: list[Stmt] = []
        for k in sequence:
            if active(stages[k]):
                value = _minus(time, stages[k])
                statement = clone_definitions(body.statements[k]) if k in written else body.statements[k]
                written.add(k)
                placed = _Versioned(versions, value).visit(statement)
                part = substitute_folding(placed, {loop.loop_var: value})
                parts.append(part if end is None or stages[k] == last else IfThenElse(value < end, part))
        return parts

    dtype = loop.loop_var.dtype
    parts: list[Stmt] = []
    for time in range(last):
        parts += at(const(time, dtype), lambda stage, time=time: stage <= time)  # type: ignore[misc]
    if loop.annotations.get(PREDICATED):
        parts += _main_loop(loop, extent, last, split, lambda time: seq(at(time, lambda stage: True, extent)))
        return _finished(loop, body, versions, parts, last)
    count = extent - const(last, dtype)
    parts += _main_loop(loop, count, last, split, lambda time: seq(at(time, lambda stage: True)))
    for step in range(last):
        parts += at(add_index(extent, const(step, dtype)), lambda stage, step=step: stage > step)  # type: ignore[misc]
    return _finished(loop, body, versions, parts, last)


def _finished(loop: For, body: Body, versions: Mapping[Buffer, Version], parts: Sequence[Stmt], last: int) -> Stmt:
    """The parts inside the memory they use; where there may be too few iterations to overlap, beside the plain loop."""
    extent, dtype = loop.extent, loop.loop_var.dtype
    whole = seq(parts)
    for allocation in reversed(body.allocations):
        whole = _allocated(allocation, body.buffers, versions, whole)
    if isinstance(extent, IntImm):
        return whole
    return IfThenElse(extent >= const(max(last, 1), dtype), whole, clone_definitions(plain(loop)))


def _main_loop(loop: For, count: Expr, last: int, split: int, at: Callable[[Expr], Stmt]) -> list[Stmt]:
    dtype = loop.loop_var.dtype
    rest = {key: value for key, value in loop.annotations.items() if key not in KEYS}

    def repeated(extent: Expr, first: Expr) -> Stmt | None:
        if isinstance(extent, IntImm) and extent.value <= 0:
            return None
        var = Var(loop.loop_var.name, dtype)
        body = at(add_index(add_index(var, first), const(last, dtype)))
        return For(var, const(0, dtype), extent, ForKind.SERIAL, body, annotations=rest)

    if split < 2 or not isinstance(count, IntImm):
        whole = repeated(count, const(0, dtype))
        return [] if whole is None else [whole]
    var = Var(loop.loop_var.name, dtype)
    parts: list[Stmt] = []
    if count.value >= split:
        steps = [at(add_index(var * split, const(k + last, dtype))) for k in range(split)]
        times = const(count.value // split, dtype)
        parts.append(For(var, const(0, dtype), times, ForKind.SERIAL, seq(steps), annotations=rest))
    done = count.value // split * split
    parts += [at(const(time + last, dtype)) for time in range(done, count.value)]
    return parts


def plain(loop: For) -> For:
    """The loop as it is without a pipeline."""
    rest = {key: value for key, value in loop.annotations.items() if key not in KEYS}
    return loop.with_(annotations=rest, body=_Unmark().visit(loop.body))


class _Unmark(StmtRewriter):
    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        node = self.rebuild(node)
        return node.body if is_mark(node) else node


def _doubled(body: Body) -> set[Var]:
    """Memory of blocks marked `double_buffer_scope`: two versions, also where one would do with more barriers."""
    result: set[Var] = set()
    for statement in body.statements:
        for mark in collect_statements(statement, AttrStmt):
            if mark.attr_key == DOUBLE_BUFFER:
                memory = marked_memory(mark)
                if memory is not None:
                    result.add(memory)
    return result


class Version(NamedTuple):
    """A buffer with one more dimension, and its length."""

    buffer: Buffer
    length: int


def _versions(
    loop: For,
    body: Body,
    uses: Sequence[Touched],
    stages: Sequence[int],
    orders: Sequence[int],
    doubled: Collection[Var],
) -> dict[Buffer, Version]:
    result: dict[Buffer, Version] = {}
    for allocation in body.allocations:
        data = allocation.buffer_var
        times = [(stages[k], orders[k]) for k, use in enumerate(uses) if data in use.memory()]
        if not times:
            continue
        first, last = min(times), max(times)
        # Iteration i + count starts to use a version after iteration i is done with it.
        count = last[0] - first[0] + (0 if first[1] > last[1] else 1)
        if data in doubled:
            count = max(count, 2)
        if count <= 1:
            continue
        views = [buffer for buffer in body.buffers if buffer.data is data]
        bare = any(data in use.pointers for use in uses)
        accesses = [access for use in uses for access in use.accesses if data in access.memory]
        inside = any(access.buffer not in views for access in accesses)
        if bare or inside or not all(is_literal(view.elem_offset, 0) for view in views):
            raise NotAPipeline(
                loop,
                f"iterations overlap in {data.name}, which is used through a pointer or a part of it",
                f"use {data.name} by its indices alone, or give the statements that use it one stage",
            )
        for view in views:
            result[view] = Version(_with_versions(view, count), count)
    return result


def _with_versions(buffer: Buffer, count: int) -> Buffer:
    dtype = buffer.shape[0].dtype if buffer.shape else "int32"
    strides = (allocated_size(buffer), *buffer.strides) if buffer.strides else ()
    return buffer.with_(shape=(const(count, dtype), *buffer.shape), strides=strides)


def _allocated(allocation: Allocate, buffers: Sequence[Buffer], versions: Mapping[Buffer, Version], body: Stmt) -> Stmt:
    extents = allocation.extents
    for buffer in reversed(buffers):
        if buffer.data is allocation.buffer_var:
            version = versions.get(buffer)
            body = DeclBuffer(buffer if version is None else version.buffer, body)
            if version is not None:
                new = version.buffer
                extents = (allocated_size(new),) if new.strides else new.shape
    return allocation.with_(extents=extents, body=body)


class _Versioned(Rewriter):
    """Statements of iteration `value` use its version of each buffer; marks go."""

    def __init__(self, versions: Mapping[Buffer, Version], value: Expr) -> None:
        self.versions, self.value = versions, value

    def _indices(self, version: Version, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        which = self.value % const(version.length, self.value.dtype)
        return (which, *rewrite_tuple(indices, self.visit))

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        version = self.versions.get(load.buffer)
        if version is None:
            return self.rebuild(load)
        return BufferLoad._make(version.buffer, self._indices(version, load.indices), span=load.span)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        version = self.versions.get(store.buffer)
        if version is None:
            return self.rebuild(store)
        indices = self._indices(version, store.indices)
        return BufferStore(version.buffer, self.visit(store.value), indices, span=store.span)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        node = self.rebuild(node)
        return node.body if is_mark(node) else node


def _minus(time: Expr, stage: int) -> Expr:
    """time - stage, where a time is often a sum that ends in a literal."""
    if stage == 0:
        return time
    if isinstance(time, Add) and isinstance(time.b, IntImm) and time.b.value >= stage:
        return add_index(time.a, const(time.b.value - stage, time.dtype))
    if isinstance(time, Add) and isinstance(time.b, IntImm):
        return time.a - const(stage - time.b.value, time.dtype)
    return time - const(stage, time.dtype)


def _numbers(loop: For, key: str) -> list[int]:
    given: Any = loop.annotations.get(key)
    if given is None:
        other = ORDER if key == STAGE else STAGE
        raise PipelineMismatch(loop, f"it has {other} but no {key}", f"annotate the loop with {key} too")
    wanted = "a list of numbers from 0 on, one a statement of the loop's body"
    if not isinstance(given, (list, tuple)):
        raise BadAnnotation(key, given, wanted, loop)
    numbers = [item.value if isinstance(item, IntImm) else item for item in given]
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise BadAnnotation(key, given, wanted, loop)
    return numbers


class _SoftwarePipeline(StmtRewriter):
    def __init__(self, function: PrimFunc) -> None:
        self.function = function

    @cached_property
    def names(self) -> Names:
        return effects(self.function.body).names

    def visit_For(self, loop: For) -> Stmt:
        loop = self.rebuild(loop)
        if not is_pipeline(loop):
            return loop
        if has_data(loop.extent):  # evaluated once, and asked for in prologue, body and epilogue
            count = Var(f"{loop.loop_var.name}_extent", loop.extent.dtype)
            return LetStmt(count, loop.extent, self._overlapped(loop.with_(extent=count)))
        return self._overlapped(loop)

    def _overlapped(self, loop: For) -> Stmt:
        stages, orders = _numbers(loop, STAGE), _numbers(loop, ORDER)
        if loop.kind is not ForKind.SERIAL:
            kind = loop.kind.name.lower()
            raise NotAPipeline(loop, f"it is a {kind} loop", "annotate a serial loop")
        body = _by_number(take_apart(loop))
        count = len(body.statements)
        for key, numbers in ((STAGE, stages), (ORDER, orders)):
            if len(numbers) != count:
                problem = f"{key} has {len(numbers)} numbers, and its body has {count} statement{'s' * (count != 1)}"
                raise PipelineMismatch(loop, problem, f"give {key} one number a statement")
        if sorted(orders) != list(range(count)):
            problem = f"{ORDER} is {orders}"
            raise PipelineMismatch(loop, problem, f"use each of 0 to {count - 1} once")
        return pipelined(loop, body, stages, orders, self.names)


def _by_number(body: Body) -> Body:
    """One statement a mark: what became of it during lowering belongs together."""
    if not all(is_mark(part) for part in body.statements):
        return body
    result: dict[int, list[Stmt]] = {}
    for part in body.statements:
        assert isinstance(part, AttrStmt) and isinstance(part.value, IntImm)
        result.setdefault(part.value.value, []).append(part)
    return body._replace(statements=tuple([seq(result[k]) for k in sorted(result)]))


@function_pass
@deep
def software_pipeline(func: PrimFunc) -> PrimFunc:
    """Statements of different iterations of a loop run side by side."""
    return func.with_(body=_SoftwarePipeline(func).visit(func.body))
