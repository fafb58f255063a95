"""Tensor copies: nests of one thread that copy a box of a tensor to shared memory, as copies of the engine (TMA).

    if thread == begin:                                        →    T.tensor_copy_async(&S[0, 0], A_map, barrier, i, k)
        for r, c in T.grid(128, 64):
            S[r, c] = T.if_then_else(i + r < m, A[i + r, k + c], 0)

The loops count through the box, each along a dimension of its own, and the box lies in shared memory row by row.
Conditions ask whether an index is inside the tensor: what is outside arrives as zeros. Loops further out stay: each of
their iterations copies a box. As a copy is there only when its barrier says so, the role touches its target nowhere
else, and the kernel stores nothing to its source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from loopwright.analysis.thread_axes import scope_of
from loopwright.arith import Analyzer, linear_coefficients
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    And,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Evaluate,
    Expr,
    FloatImm,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    Range,
    Select,
    SeqStmt,
    Stmt,
    Var,
    collect,
    const,
    logical_not,
    seq,
    substitute,
    uses_var,
)
from loopwright.ir.intrinsics import address_of
from loopwright.ir.visitor import variables_in
from loopwright.ir.tensor_copy_intrinsics import MOST_DIMENSIONS, tensor_copy_async, tensor_map, type_of_value
from loopwright.transform.parts.purity import has_data

_LONGEST: Final = 256  # elements along one dimension of a box
_MULTIPLE: Final = 16  # bytes of a row of a box


class TensorCopies(NamedTuple):
    """A role's part with tensor copies, and the maps that the host makes for them."""

    statement: Stmt
    maps: list[tuple[Var, Expr]]


def with_tensor_copies(
    statement: Stmt,
    targets: frozenset[Var],
    stored: frozenset[Var],
    thread: Expr,
    swizzles: Mapping[Var, int],
    barrier: Expr,
) -> TensorCopies:
    """The statement, with tensor copies for the nests of its first thread (whose number `thread` is 0).

    `swizzles` are those of the targets, in bytes. What the kernel has `stored` to is no source of a copy.
    """
    copies = _Copies(statement, targets, stored, thread, swizzles, barrier)
    return TensorCopies(copies.written(statement), copies.maps)


class _Box(NamedTuple):
    """The loops of a nest that count through a box, by dimension of the tensor."""

    loops: dict[int, For]
    outer: list[For]  # which copy another box in each iteration


class _Copies:
    def __init__(
        self,
        statement: Stmt,
        targets: frozenset[Var],
        stored: frozenset[Var],
        thread: Expr,
        swizzles: Mapping[Var, int],
        barrier: Expr,
    ) -> None:
        self.targets, self.stored, self.thread = targets, stored, thread
        self.swizzles, self.barrier = swizzles, barrier
        self.maps: list[tuple[Var, Expr]] = []
        accesses = [*collect(statement, BufferLoad), *collect(statement, BufferStore)]
        self.uses = Counter([access.buffer.data for access in accesses])  # type: ignore[attr-defined]

    def written(self, statement: Stmt) -> Stmt:
        if isinstance(statement, SeqStmt):
            return seq([self.written(part) for part in statement.seq])
        if not isinstance(statement, IfThenElse) or statement.else_case is not None:
            return statement
        if not Analyzer().can_prove_equal(_asked(statement.condition, self.thread), const(0)):
            return statement
        body = statement.then_case
        nests = list(body.seq) if isinstance(body, SeqStmt) else [body]
        if len(nests) == 1 and self._is_for_all(nests[0]):
            nest = nests[0]
            assert isinstance(nest, IfThenElse)
            return nest.with_(then_case=self.written(statement.with_(then_case=nest.then_case)))
        copied = [self._copied(nest) for nest in nests]
        # Lanes other than the first one do nothing in what stays, and everything in copies.
        return seq(
            [
                statement.with_(then_case=nest) if copy is None else copy
                for nest, copy in zip(nests, copied, strict=True)
            ]
        )

    def _is_for_all(self, nest: Stmt) -> bool:
        """Whether it is under a condition that all threads answer alike: it is asked first then."""
        if not isinstance(nest, IfThenElse) or nest.else_case is not None or has_data(nest.condition):
            return False
        own = set(variables_in(self.thread))
        return not uses_var(nest.condition, own.__contains__) and not collect(nest.condition, Call)

    def _copied(self, nest: Stmt) -> Stmt | None:
        loops: list[For] = []
        conditions: list[Expr] = []
        statement = nest
        while True:
            if isinstance(statement, For) and statement.kind in (ForKind.SERIAL, ForKind.UNROLLED, ForKind.VECTORIZED):
                if not isinstance(statement.extent, IntImm) or not isinstance(statement.min, IntImm):
                    return None
                loops.append(statement)
                statement = statement.body
            elif isinstance(statement, IfThenElse) and statement.else_case is None:
                conditions += _terms(statement.condition)
                statement = statement.then_case
            else:
                break
        if not isinstance(statement, BufferStore) or statement.buffer.data not in self.targets:
            return None
        value: Expr = statement.value
        while not isinstance(value, BufferLoad):
            chosen = _choice(value)
            if chosen is None:
                return None
            conditions += _terms(chosen[0])
            value = chosen[1]
        source = value.buffer
        is_read_only = scope_of(source.data) == "global" and source.data not in self.stored
        if not is_read_only or value.dtype is not statement.value.dtype or self.uses[statement.buffer.data] != 1:
            return None
        if len(source.shape) > MOST_DIMENSIONS or not _is_tensor(source):
            return None
        facts = Analyzer()
        for loop in loops:
            facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
        indices = [facts.simplify(index) for index in value.indices]
        if any([has_data(index) for index in indices]):
            return None
        if not all([_is_inside(condition, indices, source.shape, facts) for condition in conditions]):
            return None
        box = self._box(loops, indices, statement, facts)
        if box is None:
            return None
        return self._call(box, indices, statement, source)

    def _box(self, loops: list[For], indices: list[Expr], store: BufferStore, facts: Analyzer) -> _Box | None:
        """The loops of a box whose elements lie row by row at the target."""
        chosen: dict[int, For] = {}
        outer: list[For] = []
        variables = [loop.loop_var for loop in loops]
        steps = [_steps(index, variables, facts) for index in indices]
        target = _steps(_flat(store.buffer, store.indices), variables, facts)
        if target is None or None in steps:
            return None
        for at, loop in enumerate(loops):
            moved = [dim for dim, step in enumerate(steps) if step is not None and step[at] != 0]
            if loop.extent.value == 1:  # type: ignore[attr-defined]
                outer.append(loop)
            elif len(moved) == 1 and steps[moved[0]][at] == 1 and moved[0] not in chosen:  # type: ignore[index]
                chosen[moved[0]] = loop
            else:
                outer.append(loop)
        size = 1
        for dim in sorted(chosen, reverse=True):
            extent = chosen[dim].extent.value  # type: ignore[attr-defined]
            if target[loops.index(chosen[dim])] != size or extent > _LONGEST:
                return None
            size *= extent
        row = chosen.get(len(indices) - 1)
        width = row.extent.value * store.buffer.dtype.nbytes if row is not None else 0  # type: ignore[attr-defined]
        swizzle = self.swizzles.get(store.buffer.data, 0)
        if width % _MULTIPLE or width == 0 or (swizzle and width != swizzle):
            return None
        return _Box(chosen, outer)

    def _call(self, box: _Box, indices: list[Expr], store: BufferStore, source: Buffer) -> Stmt:
        first = {loop.loop_var: loop.min for loop in box.loops.values()}
        extents = [box.loops[dim].extent if dim in box.loops else const(1) for dim in range(len(indices))]
        swizzle = self.swizzles.get(store.buffer.data, 0)
        strides = [stride.astype("int64") for stride in source.effective_strides()]
        shape = [extent.astype("int64") for extent in source.shape]
        call = tensor_map(source.data, str(source.dtype), swizzle, len(shape), *shape, *strides, *extents)
        name = Var(f"{source.name}_map", type_of_value(call))
        self.maps.append((name, call))
        facts = Analyzer()
        at = tuple([facts.simplify(substitute(index, first)) for index in store.indices])
        where = [facts.simplify(substitute(index, first)).astype("int32") for index in indices]
        target = address_of(BufferLoad(store.buffer, at))
        result: Stmt = Evaluate(tensor_copy_async(target, name, self.barrier, *where))
        for loop in reversed(box.outer):
            kind = ForKind.UNROLLED if loop.kind is ForKind.VECTORIZED else loop.kind
            result = loop.with_(body=result, kind=kind)
        return result


def _asked(condition: Expr, thread: Expr) -> Expr:
    """What is 0 where the condition asks whether the thread is the first one."""
    if isinstance(condition, EQ):
        return (condition.a - condition.b) - thread
    return const(1)


def _choice(value: Expr) -> tuple[Expr, Expr] | None:
    """A condition, and the value where it holds; elsewhere it is 0."""
    if isinstance(value, Call) and value.op.name == "tir.if_then_else":
        condition, then, otherwise = value.args
    elif isinstance(value, Select):
        condition, then, otherwise = value.condition, value.true_value, value.false_value
    else:
        return None
    if _is_zero(otherwise):
        return condition, then
    return (logical_not(condition), otherwise) if _is_zero(then) else None


def _is_zero(value: Expr) -> bool:
    return isinstance(value, (IntImm, FloatImm)) and value.value == 0


def _terms(condition: Expr) -> list[Expr]:
    return [*_terms(condition.a), *_terms(condition.b)] if isinstance(condition, And) else [condition]


def _is_inside(condition: Expr, indices: list[Expr], shape: tuple[Expr, ...], facts: Analyzer) -> bool:
    """Whether the condition asks no more than that an index is at least 0, or less than the extent."""
    if isinstance(condition, (GT, GE)):
        condition = LT(condition.b, condition.a) if isinstance(condition, GT) else LE(condition.b, condition.a)
    if not isinstance(condition, (LT, LE)):
        return False
    room = condition.b - condition.a - (1 if isinstance(condition, LT) else 0)  # it asks for 0 or more
    for index, extent in zip(indices, shape, strict=True):
        for wanted in (index, extent - 1 - index):
            if facts.can_prove_equal(room, wanted.astype(room.dtype)):
                return True
    return False


def _steps(index: Expr, variables: list[Var], facts: Analyzer) -> list[int] | None:
    """How far an index moves with each of the variables; None where that is no constant."""
    linear = linear_coefficients(index, variables, facts)
    if linear is None or not all([isinstance(step, IntImm) for step in linear[0]]):
        return None
    if uses_var(linear[1], lambda var: var in variables):
        return None
    return [step.value for step in linear[0] if isinstance(step, IntImm)]


def _flat(buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    strides = buffer.effective_strides()
    result: Expr = const(0)
    for index, stride in zip(indices, strides, strict=True):
        result = result + index * stride
    return result


def _is_tensor(buffer: Buffer) -> bool:
    """Whether elements lie side by side along the last dimension, from where the memory begins."""
    last = buffer.effective_strides()[-1]
    begins = buffer.elem_offset
    return isinstance(last, IntImm) and last.value == 1 and isinstance(begins, IntImm) and begins.value == 0


__all__ = ["TensorCopies", "with_tensor_copies"]
