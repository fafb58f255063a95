"""Combiners: what a reduction block combines, read off its body.

    C[vi] = C[vi] + A[vi, vk]                           sum of A[vi, vk]
    m = T.max(…), s = s + …                             several fields, each with an operation of its own
    i = T.Select(v >= x, i, k); v = T.Select(…, v, x)   argmax of (k, x)

Recognised are operations that are associative and commutative: the members of such a reduction may be combined in any
grouping. For floating-point sums and products that changes rounding, and of equal values an argmax with `>=` may name
another one: a reduction axis says that the order does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
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
    Select,
    SeqStmt,
    Stmt,
    Var,
    const,
    logical_and,
    logical_or,
    pre_order_visit,
    structural_equal,
    substitute,
)
from loopwright.ir.intrinsics import if_then_else, max_value, min_value
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


class UnknownCombiner(ScheduleError):
    """The operation of a reduction is not known to be associative and commutative.

    Known are `+`, `*`, `min`, `max`, `and`, `or` and the bitwise operations, one for each field, and argmax and argmin
    of an index and a value (`>=` or `<=`, or a strict comparison that takes the smaller index of equal values).

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
            "operation known to be associative and commutative",
            at=realize,
            why="its members would be combined in another grouping",
            hint="known are +, *, min, max, and, or, bitwise operations, and argmax or argmin of (index, value)",
            fields={"block": realize.block.name_hint, "buffer": buffer.name},
        )


@dataclass(frozen=True)
class Reduction:
    """What a block reduces: each update combines `operands` into the cell `indices` of `buffers`.

    `combine(a, b)` gives one value a field; `identity` combines to the other operand wherever the start value `inits`
    takes part in the end.
    """

    buffers: tuple[Buffer, ...]
    indices: tuple[Expr, ...]
    operands: tuple[Expr, ...]
    combine: Combine
    identity: tuple[Expr, ...]
    inits: tuple[Expr, ...]


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
    inits = {store.buffer: store.value for store in starts}
    fields = [store.buffer for store in stores]
    found = _fieldwise(stores, fields) or _arg_extreme(stores, fields)
    if found is None:
        unknown = next((s for s in stores if _operation(s, fields) is None), stores[0])
        raise UnknownCombiner(step, realize, unknown.buffer, unknown.value)
    operands, combine, units = found
    identity = []
    for store, unit in zip(stores, units, strict=True):
        start = inits[store.buffer]
        if unit is not None:
            identity.append(unit)
        elif isinstance(start, (IntImm, FloatImm)):
            identity.append(start)  # combined twice, it is the same as once
        elif isinstance(store.value, _IDEMPOTENT):
            identity.append(_extreme(store.value))
        else:
            raise MalformedReduction(step, realize, f"starts {store.buffer.name} with {start}, which is no constant")
    return Reduction(
        tuple(fields),
        stores[0].indices,
        tuple(operands),
        combine,
        tuple(identity),
        tuple([inits[field] for field in fields]),
    )


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
            told = ", ".join([str(index) for index in store.indices])
            mine = ", ".join([str(index) for index in first.indices])
            problem = f"stores {store.buffer.name}[{told}] beside {first.buffer.name}[{mine}]"
            raise MalformedReduction(step, realize, problem, "every field has one cell, at the same indices")
        if not structural_equal(store.buffer.shape, first.buffer.shape):
            problem = f"has fields of different shapes: {first.buffer.name} and {store.buffer.name}"
            raise MalformedReduction(step, realize, problem)


def _loads(expr: Node, buffers: Sequence[Buffer]) -> bool:
    found = False

    def look(node: Node) -> bool:
        nonlocal found
        found = found or (isinstance(node, BufferLoad) and node.buffer in buffers)
        return not found

    pre_order_visit(expr, look)
    return found


# --- recognising the operation ------------------------------------------------------------------------------------

Found = tuple[list[Expr], Combine, list[Expr | None]]

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
    if isinstance(value, _IDEMPOTENT):
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


def _fieldwise(stores: Sequence[BufferStore], fields: Sequence[Buffer]) -> Found | None:
    """Every field has an operation of its own."""
    found = [_operation(store, fields) for store in stores]
    if any(item is None for item in found):
        return None
    known = [item for item in found if item is not None]

    def combine(a: Sequence[Expr], b: Sequence[Expr]) -> list[Expr]:
        return [operation(x, y) for (_, operation), x, y in zip(known, a, b, strict=True)]

    return [operand for operand, _ in known], combine, [_unit(store.value) for store in stores]


def _arg_extreme(stores: Sequence[BufferStore], fields: Sequence[Buffer]) -> Found | None:
    """An index and a value: the greatest (or least) value, and the index that came with it."""
    if len(stores) != 2:
        return None
    for index, value in ((0, 1), (1, 0)):
        first, second = _choice(stores[index], fields), _choice(stores[value], fields)
        if first is None or second is None or first[2] is not second[2]:
            continue
        (condition, i, keeps_true), (again, x, _) = first, second
        if not structural_equal(condition, again):
            continue
        cells: tuple[Expr, Expr] = (
            BufferLoad(stores[index].buffer, stores[index].indices),
            BufferLoad(stores[value].buffer, stores[value].indices),
        )
        better = _better(condition, cells, (i, x), keeps_true)
        if better is None:
            continue
        compare, choose = better, Select if isinstance(stores[index].value, Select) else if_then_else

        def combine(
            a: Sequence[Expr],
            b: Sequence[Expr],
            index: int = index,
            value: int = value,
            compare: Callable[..., Expr] = compare,
            choose: Callable[..., Expr] = choose,
        ) -> list[Expr]:
            keep = compare(a[index], a[value], b[index], b[value])
            return [choose(keep, x, y) for x, y in zip(a, b, strict=True)]

        return [i, x] if index == 0 else [x, i], combine, [None, None]
    return None


def _choice(store: BufferStore, fields: Sequence[Buffer]) -> tuple[Expr, Expr, bool] | None:
    """Condition, the new operand, and whether the cell is kept where the condition holds."""
    value = store.value
    if isinstance(value, Select):
        condition, yes, no = value.condition, value.true_value, value.false_value
    elif isinstance(value, Call) and value.op.name == "tir.if_then_else":
        condition, yes, no = value.args
    else:
        return None
    if _is_cell(yes, store) and not _loads(no, fields):
        return condition, no, True
    if _is_cell(no, store) and not _loads(yes, fields):
        return condition, yes, False
    return None


def _better(
    condition: Expr, cells: tuple[Expr, Expr], operands: tuple[Expr, Expr], keeps_true: bool
) -> Callable[[Expr, Expr, Expr, Expr], Expr] | None:
    """The comparison (i, v, j, w) under which (i, v) is kept."""
    (i, v), (j, w) = cells, operands
    if not keeps_true:
        (i, v), (j, w) = (j, w), (i, v)
    # `condition` says when (i, v) wins over (j, w).
    for strict, loose in ((GT, GE), (LT, LE)):
        if _compares(condition, loose, v, w):
            if keeps_true:
                return lambda i, v, j, w, loose=loose: loose(v, w)  # type: ignore[misc]
            continue  # of equal values the later one wins: not what `>=` says
        if _compares(condition, strict, v, w) and not keeps_true:
            return lambda i, v, j, w, loose=loose: loose(v, w)  # type: ignore[misc]
        if not isinstance(condition, Or):
            continue
        for one, two in ((condition.a, condition.b), (condition.b, condition.a)):
            if not (_compares(one, strict, v, w) and isinstance(two, And)):
                continue
            for same, less in ((two.a, two.b), (two.b, two.a)):
                if _compares(same, EQ, v, w) and (_compares(less, LT, i, j) or _compares(less, LE, i, j)):
                    return lambda i, v, j, w, strict=strict: logical_or(  # type: ignore[misc]
                        strict(v, w), logical_and(EQ(v, w), LT(i, j))
                    )
    return None


_MIRRORED: Final = {GT: LT, LT: GT, GE: LE, LE: GE, EQ: EQ}


def _compares(condition: Expr, kind: type[BinaryExpr], a: Expr, b: Expr) -> bool:
    """Whether the condition is `a kind b`, written from either side."""
    if isinstance(condition, kind) and structural_equal(condition.a, a) and structural_equal(condition.b, b):
        return True
    mirrored = _MIRRORED[kind]  # type: ignore[index]
    return isinstance(condition, mirrored) and structural_equal(condition.a, b) and structural_equal(condition.b, a)


def update_statement(buffers: Sequence[Buffer], indices: Sequence[Expr], values: Sequence[Expr]) -> Stmt:
    """Store a new value in each field; several are computed before the first is stored."""
    if len(buffers) == 1:
        return BufferStore(buffers[0], values[0], tuple(indices))
    bound = [Var(f"v_{buffer.name}", value.dtype) for buffer, value in zip(buffers, values, strict=True)]
    body: Stmt = SeqStmt(tuple([BufferStore(b, v, tuple(indices)) for b, v in zip(buffers, bound, strict=True)]))
    for var, value in zip(reversed(bound), reversed(values), strict=True):
        body = LetStmt(var, value, body)
    return body
