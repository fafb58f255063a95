"""Combiners: what a reduction block combines, read off its body.

    C[vi] = C[vi] + A[vi, vk]                           sum of A[vi, vk]
    m = T.max(…), s = s + …                             several fields, each with an operation of its own
    i = T.Select(v >= x, i, k); v = T.max(v, x)         argmax of (k, x)

Recognised are operations that are associative: the members of such a reduction may be combined in any grouping, and in
any order where they are commutative as well. For floating-point sums and products that changes rounding. An argmax with
`>=` names the first of equal values: it is associative, and its members keep their order. One that breaks ties by the
index is commutative; of floats it has to say what a NaN is (`analysis/combiner_laws.py` decides, for all values).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from loopwright.analysis.combiner_laws import Combiner, Undecided, absorbs, is_associative, is_commutative
from loopwright.analysis.guarded_operands import guarded_operand
from loopwright.ir import (
    Add,
    And,
    BinaryExpr,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Expr,
    FloatImm,
    IntImm,
    IterType,
    LetStmt,
    Max,
    Min,
    Mul,
    Node,
    Or,
    Rewriter,
    Select,
    SeqStmt,
    Stmt,
    Var,
    any_node,
    const,
    structural_equal,
    substitute,
)
from loopwright.ir.intrinsics import max_value, min_value
from loopwright.schedule.errors import ScheduleError

Combine = Callable[[Sequence[Expr], Sequence[Expr]], list[Expr]]


class NoReduction(ScheduleError):
    """A step works on a reduction, but the block is none: it lacks a reduction axis, or a start value.

    A reduction block has an axis made with `T.axis.reduce`, gives its cells a start value under `T.init()`, and
    combines one more value into them in its body.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8, 8), name="A")
        k = te.reduce_axis((0, 8), name="k")
        B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.decompose_reduction("B", sch.get_loops("B")[0])
        sch.rfactor(sch.get_loops("B_update")[1], 0)  # its start value is a block of its own now
    """

    code = "LW0280"

    def __init__(self, step: str, realize: BlockRealize, problem: str) -> None:
        name = realize.block.name_hint
        super().__init__(f"{step}: block {name!r} {problem}", at=realize, fields={"block": name})


class MalformedReduction(ScheduleError):
    """The init and the update of a reduction block do not fit together.

    For each field there is one store in the init and one in the body, of the same cell. With several fields the new
    values are computed first (each bound to a variable), and stored then: all of them see the old values.

    For example:

        from loopwright.schedule import Schedule
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer(8), C: T.Buffer(2)):
            for k in range(8):
                with T.block("C"):
                    vk = T.axis.reduce(8, k)
                    with T.init():
                        C[1] = 0.0
                    C[0] = C[0] + A[vk]

        sch = Schedule(f)
        sch.rfactor(sch.get_loops("C")[0], 0)
    """

    code = "LW0281"

    def __init__(self, step: str, realize: BlockRealize, problem: str, hint: str | None = None) -> None:
        name = realize.block.name_hint
        super().__init__(f"{step}: the reduction {name!r} {problem}", at=realize, hint=hint, fields={"block": name})


_KNOWN: Final = "known are +, *, min, max, and, or, bitwise operations, and argmax or argmin of (index, value)"
_TUPLES: Final = "of floats take the value with max or min, and say with isnan which index counts, as topi.argmax does"


class UnknownCombiner(ScheduleError):
    """The operation of a reduction is not known to be associative.

    Known are `+`, `*`, `min`, `max`, `and`, `or` and the bitwise operations, one for each field, and fields that are
    combined together by comparing and choosing, such as argmax of an index and a value. Whether those are associative
    is checked for all values. For floats that includes NaN, for which every comparison is false: take the value with
    `max` or `min`, and say with `isnan` which index counts.

    For example:

        from loopwright.schedule import Schedule
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer(8), C: T.Buffer(1)):
            for k in range(8):
                with T.block("C"):
                    vk = T.axis.reduce(8, k)
                    with T.init():
                        C[0] = 0.0
                    C[0] = C[0] - A[vk]

        sch = Schedule(f)
        sch.rfactor(sch.get_loops("C")[0], 0)
    """

    code = "LW0282"

    def __init__(self, step: str, realize: BlockRealize, buffer: Buffer, value: Expr) -> None:
        super().__init__(
            f"{step}: the reduction {realize.block.name_hint!r} updates {buffer.name} to {value}, which is no "
            "operation known to be associative",
            at=realize,
            why="its members would be combined in another grouping",
            hint=_TUPLES if isinstance(value, (Select, Call)) else _KNOWN,
            fields={"block": realize.block.name_hint, "buffer": buffer.name},
        )


@dataclass(frozen=True)
class Reduction:
    """What a block reduces: each update combines `operands` into the cell `indices` of `buffers`.

    `combine(a, b)` gives one value a field, and is associative; members keep their order unless it is `commutative`.
    `identity` combines to the other operand wherever the start value `inits` takes part in the end; `neutral` does so
    always, also where it stands for a member that is none.
    """

    buffers: tuple[Buffer, ...]
    indices: tuple[Expr, ...]
    operands: tuple[Expr, ...]
    combine: Combine
    identity: tuple[Expr, ...]
    neutral: tuple[Expr, ...]
    inits: tuple[Expr, ...]
    commutative: bool


def read_reduction(step: str, realize: BlockRealize) -> Reduction:
    """The reduction that a block does; raises where it is none, or not one that may be regrouped."""
    block = realize.block
    if not any(axis.iter_type == IterType.CommReduce for axis in block.iter_vars):
        raise NoReduction(step, realize, "has no reduction axis")
    if block.init is None:
        raise NoReduction(step, realize, "has no init")
    if block.alloc_buffers or block.match_buffers:
        raise NoReduction(step, realize, "has buffers of its own")
    stores = _stores(step, realize, block.body, "body")
    starts = _stores(step, realize, block.init, "init")
    _check_fields(step, realize, stores, starts)
    fields = [store.buffer for store in stores]
    result = _fieldwise(stores, fields) or _joint(stores, fields)
    if result is None:
        unknown = next((s for s in stores if _operation(s, fields) is None), stores[0])
        raise UnknownCombiner(step, realize, unknown.buffer, unknown.value)
    guarded = guarded_operand(block.body, fields, block.iter_vars)
    if guarded is not None:
        problem = f"evaluates {guarded} only where {fields[0].name} so far says so, and partial results say otherwise"
        raise MalformedReduction(step, realize, problem)
    inits = {store.buffer: store.value for store in starts}
    identity = tuple([_identity(step, realize, store, inits[store.buffer]) for store in stores])
    start = tuple([inits[field] for field in fields])
    if result.combiner is not None and not _absorbs(result.combiner, start, identity):
        problem = f"starts {fields[0].name} with {start[0]}, which changes the result when it is combined in again"
        raise MalformedReduction(step, realize, problem)
    return Reduction(
        tuple(fields),
        stores[0].indices,
        tuple(result.operands),
        result.combine,
        identity,
        tuple([_neutral(store, unit) for store, unit in zip(stores, identity, strict=True)]),
        start,
        result.commutative,
    )


def _identity(step: str, realize: BlockRealize, store: BufferStore, start: Expr) -> Expr:
    """What partial results of a field start with."""
    unit = _unit(store.value)
    if unit is not None:
        # 0 added to -0 is 0: of floats, only a sum that may start at -0 comes to it, and -0 changes no value at all.
        is_sum = isinstance(store.value, Add) and store.value.dtype.is_float
        is_safe = isinstance(start, FloatImm) and (start.value != 0 or math.copysign(1.0, start.value) > 0)
        return const(-0.0, store.value.dtype) if is_sum and not is_safe else unit
    if isinstance(start, (IntImm, FloatImm)):
        return start  # combined twice, it is the same as once
    if isinstance(store.value, _IDEMPOTENT):
        return _extreme(store.value)
    raise MalformedReduction(step, realize, f"starts {store.buffer.name} with {start}, which is no constant")


def _neutral(store: BufferStore, unit: Expr) -> Expr:
    """The unit that leaves every bit of a float as it is: 0 added to -0 is 0."""
    is_sum = isinstance(store.value, Add) and store.value.dtype.is_float
    return const(-0.0, store.value.dtype) if is_sum else unit


def _absorbs(combiner: Combiner, start: Sequence[Expr], identity: Sequence[Expr]) -> bool:
    literal = all(isinstance(value, (IntImm, FloatImm)) for value in start)
    try:
        return absorbs(combiner, start if literal else combiner.operands, identity)
    except Undecided:
        return False


# --- reading the statements ---------------------------------------------------------------------------------------


def _stores(step: str, realize: BlockRealize, body: Stmt, where: str) -> list[BufferStore]:
    """The stores of a body, with the variables it binds written out."""
    lets: dict[Var, Expr] = {}
    stored: list[BufferStore] = []

    def read(statement: Stmt) -> None:
        if isinstance(statement, LetStmt):
            if stored:
                problem = f"computes {statement.var.name} in its {where} after a field was stored"
                raise MalformedReduction(step, realize, problem, "bind all new values first, then store them")
            lets[statement.var] = substitute(statement.value, lets)
            read(statement.body)
        elif isinstance(statement, SeqStmt):
            for item in statement.seq:
                read(item)
        elif isinstance(statement, BufferStore):
            value = substitute(statement.value, lets)
            early = [store.buffer for store in stored]
            # A variable was bound before the store; a load here comes after it.
            for buffer in early:
                if _loads(statement.value, [buffer]):
                    problem = f"stores {buffer.name} before {statement.buffer.name}, whose new value loads it"
                    raise MalformedReduction(step, realize, problem, "bind all new values first, then store them")
            stored.append(statement.with_(value=value))
        else:
            problem = f"has a {type(statement).__name__} in its {where}"
            raise MalformedReduction(step, realize, problem, "write one store a field, values bound before")

    read(body)
    return stored


def _check_fields(
    step: str, realize: BlockRealize, stores: Sequence[BufferStore], starts: Sequence[BufferStore]
) -> None:
    fields = [store.buffer for store in stores]
    names = ", ".join([field.name for field in fields])
    for group, where in ((stores, "body"), (starts, "init")):
        twice = [store.buffer.name for store in group if [s.buffer for s in group].count(store.buffer) > 1]
        if twice:
            raise MalformedReduction(step, realize, f"stores {twice[0]} more than once in its {where}")
    if {store.buffer for store in starts} != set(fields):
        started = ", ".join([store.buffer.name for store in starts]) or "nothing"
        raise MalformedReduction(step, realize, f"starts {started}, but updates {names}")
    first = stores[0]
    for store in [*stores, *starts]:
        if not structural_equal(store.indices, first.indices):
            message = ", ".join([str(index) for index in store.indices])
            mine = ", ".join([str(index) for index in first.indices])
            problem = f"stores {store.buffer.name}[{message}] beside {first.buffer.name}[{mine}]"
            raise MalformedReduction(step, realize, problem, "every field has one cell, at the same indices")
        if not structural_equal(store.buffer.shape, first.buffer.shape):
            problem = f"has fields of different shapes: {first.buffer.name} and {store.buffer.name}"
            raise MalformedReduction(step, realize, problem)


def _loads(expr: Node, buffers: Sequence[Buffer]) -> bool:
    return any_node(expr, lambda node: isinstance(node, BufferLoad) and node.buffer in buffers)


# --- recognising the operation ------------------------------------------------------------------------------------


class _Found(NamedTuple):
    operands: Sequence[Expr]
    combine: Combine
    commutative: bool
    combiner: Combiner | None  # where the fields are combined together


_IDEMPOTENT: Final = (Min, Max, And, Or)
_BITWISE: Final = {"tir.bitwise_and": -1, "tir.bitwise_or": 0, "tir.bitwise_xor": 0}


def _operands(value: Expr) -> tuple[Expr, Expr] | None:
    """The two sides of an operation that is associative and commutative."""
    if isinstance(value, BinaryExpr) and isinstance(value, (Add, Mul, *_IDEMPOTENT)):
        return value.a, value.b
    if isinstance(value, Call) and value.op.name in _BITWISE:
        return value.args[0], value.args[1]
    return None


def _operation(store: BufferStore, fields: Sequence[Buffer]) -> tuple[Expr, Callable[[Expr, Expr], Expr]] | None:
    """x of `cell op x`, and the operation."""
    value, sides = store.value, _operands(store.value)
    if sides is None:
        return None
    for mine, other, swapped in ((*sides, False), (sides[1], sides[0], True)):
        if _is_cell(mine, store) and not _loads(other, fields):
            return other, partial(_rebuilt, value, swapped)
    return None


def _rebuilt(value: Expr, swapped: bool, a: Expr, b: Expr) -> Expr:
    """The same operation on others, in the order it was written in."""
    if swapped:
        a, b = b, a
    if isinstance(value, Call):
        return value.with_(args=(a, b))
    return value.with_(a=a, b=b)


def _is_cell(expr: Expr, store: BufferStore) -> bool:
    return (
        isinstance(expr, BufferLoad) and expr.buffer is store.buffer and structural_equal(expr.indices, store.indices)
    )


def _unit(value: Expr) -> Expr | None:
    """What combines to the other operand; None where the start value itself may be combined twice."""
    if _operands(value) is None or isinstance(value, _IDEMPOTENT):
        return None
    if isinstance(value, Call):
        unit = _BITWISE[value.op.name]
        dtype = value.dtype
        return const(dtype.max_value() if unit and dtype.is_unsigned else unit, dtype)
    return const(1 if isinstance(value, Mul) else 0, value.dtype)


def _extreme(value: Expr) -> Expr:
    """What never wins."""
    if isinstance(value, (And, Or)):
        return const(isinstance(value, And), value.dtype)
    if value.dtype.is_float:
        return const(float("inf") if isinstance(value, Min) else float("-inf"), value.dtype)
    return max_value(value.dtype) if isinstance(value, Min) else min_value(value.dtype)


def _fieldwise(stores: Sequence[BufferStore], fields: Sequence[Buffer]) -> _Found | None:
    """Every field has an operation of its own."""
    result = [_operation(store, fields) for store in stores]
    known = [item for item in result if item is not None]
    if len(known) < len(result):
        return None

    def combine(a: Sequence[Expr], b: Sequence[Expr]) -> list[Expr]:
        return [operation(x, y) for (_, operation), x, y in zip(known, a, b, strict=True)]

    return _Found([operand for operand, _ in known], combine, True, None)


def _joint(stores: Sequence[BufferStore], fields: Sequence[Buffer]) -> _Found | None:
    """Fields that are combined together: each keeps its own or takes its operand, as the others decide with it."""
    operands = [item for item in [_operand(store, fields) for store in stores] if item is not None]
    if len(operands) < len(stores):
        return None
    ours = [Var(f"a{k}", field.dtype) for k, field in enumerate(fields)]
    theirs = [Var(f"b{k}", field.dtype) for k, field in enumerate(fields)]
    named = _Named(fields, ours, list(zip(operands, theirs, strict=True)))
    combiner = Combiner(tuple(ours), tuple(theirs), tuple([named.visit(store.value) for store in stores]))
    try:
        if not is_associative(combiner):
            return None
        commutative = is_commutative(combiner)
    except Undecided:
        return None

    def combine(a: Sequence[Expr], b: Sequence[Expr]) -> list[Expr]:
        values = dict(zip([*ours, *theirs], [*a, *b], strict=True))
        return [substitute(result, values) for result in combiner.results]

    return _Found(operands, combine, commutative, combiner)


def _operand(store: BufferStore, fields: Sequence[Buffer]) -> Expr | None:
    """What is combined into a field: the other side of an operation, or the other choice."""
    value = store.value
    if isinstance(value, Select):
        sides = (value.true_value, value.false_value)
    elif isinstance(value, Call) and value.op.name == "tir.if_then_else":
        sides = (value.args[1], value.args[2])
    else:
        both = _operands(value)
        if both is None:
            return None
        sides = both
    for mine, other in (sides, sides[::-1]):
        if _is_cell(mine, store) and not _loads(other, fields):
            return other
    return None


class _Named(Rewriter):
    """An update as a combiner: the cells of its fields, and its operands, become variables."""

    def __init__(self, fields: Sequence[Buffer], cells: Sequence[Var], operands: Sequence[tuple[Expr, Var]]) -> None:
        self.cells = dict(zip(fields, cells, strict=True))
        self.operands = operands

    def visit_Expr(self, expr: Expr) -> Expr:
        if isinstance(expr, BufferLoad) and expr.buffer in self.cells:
            return self.cells[expr.buffer]
        for operand, var in self.operands:
            if operand.dtype is expr.dtype and structural_equal(operand, expr):
                return var
        result: Expr = self.rebuild(expr)
        return result


def update_statement(buffers: Sequence[Buffer], indices: Sequence[Expr], values: Sequence[Expr]) -> Stmt:
    """Store a new value in each field; several are computed before the first is stored."""
    if len(buffers) == 1:
        return BufferStore(buffers[0], values[0], tuple(indices))
    bound = [Var(f"v_{buffer.name}", value.dtype) for buffer, value in zip(buffers, values, strict=True)]
    body: Stmt = SeqStmt(tuple([BufferStore(b, v, tuple(indices)) for b, v in zip(buffers, bound, strict=True)]))
    for var, value in zip(reversed(bound), reversed(values), strict=True):
        body = LetStmt(var, value, body)
    return body
