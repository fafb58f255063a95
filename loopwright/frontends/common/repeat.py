"""Steps that run one after the other, unrolled or as a loop of the graph: Loop, Scan, the recurrent operators.

    states, rows = repeat(node, step, [h], limit)       step(turn, states) → (again, new states, outputs of this turn)

A loop of the graph is a function that calls itself at its end. Its values keep their shapes; the outputs of all turns
are the rows of tensors that are as long as the loop can be, written turn by turn. What is the same in every turn is
computed before the loop. `node` is that of the front end: it says what types are, and what is known of values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from loopwright import relay
from loopwright.frontends.common.tensors import Tensors
from loopwright.frontends.errors import ValueNeeded
from loopwright.relay.expr import Call, Expr, Function, If, Let, Tuple, TupleGetItem, Var
from loopwright.relay.types import AnyDim, Dim, TensorType, is_any, same_dim
from loopwright.relay.visitor import ExprMutator, parts, post_order

FEW: Final = 256  # nodes: a loop that is no more than this is unrolled (each turn may become kernels of its own)
MANY: Final = 1 << 16  # nodes that one which cannot be a loop of the graph may become

MOST_ROWS: Final = 1 << 28  # bytes that are set aside for the outputs of turns that there may not be

# One turn: its number and the values at its beginning; whether there is another turn (None: always), the values at its
# end, and its outputs.
Step = Callable[[Any, list[Any]], tuple[Any, list[Any], list[Any]]]


class ShapeChanges(Exception):
    """A value of a loop has another shape after a turn than before it."""

    def __init__(self, index: int, before: TensorType, after: TensorType) -> None:
        super().__init__(f"value {index} is {before} before a turn, and {after} after it")


def unrolled(node: Tensors, step: Step, states: Sequence[object], most: int) -> tuple[list[Any], list[list[Any]], bool]:
    """The turns one after the other: values at the end, outputs by turn, and whether a turn said it was the last one.

    Where it is not known whether a turn is the last one, no other follows.
    """
    values = list(states)
    outputs: list[list[Any]] = []
    for index in range(most):
        again, values, result = step(node.const(index), values)
        outputs.append(result)
        if again is None:
            continue
        answer = node.known(again)
        if answer is None:
            return values, outputs, False
        if not bool(answer.reshape(())):
            return values, outputs, True
    return values, outputs, False


@dataclass(frozen=True)
class Limit:
    """How many turns there are at most: as a size where it is known, and as a tensor to compare with."""

    size: Dim | None
    tensor: Expr | None


def repeat(
    node: Tensors, step: Step, states: Sequence[Expr], limit: Limit, begin: Expr | None = None, changing: bool = False
) -> tuple[list[Expr], list[Expr]]:
    """A loop of the graph: values at the end, and the outputs of all turns, each with an axis of turns in front.

    begin: whether there is a first turn; always, if None.
    changing: values may change their shapes. Otherwise such a value is a ShapeChanges.
    """
    index = Var("turn", TensorType((), "int64"))
    held, again, following, result = _settled(node, step, index, states, changing)
    early = again is not None or begin is not None
    rows = [_rows(node, one, limit, early) for one in result]
    buffers = [Var(f"rows{k}", row.held) for k, row in enumerate(rows)]
    written = [_written(node, row, buffer, index, one) for row, buffer, one in zip(rows, buffers, result)]
    params: list[Var] = [index]
    initial: list[Expr] = [node.const(0)]
    after: list[Expr] = [relay.add(index, node.const(1))]
    conditions: list[Expr] = []
    if limit.tensor is not None:
        conditions.append(relay.less(index, limit.tensor))
    if early:
        going = Var("going", TensorType((), "bool"))
        params.append(going)
        initial.append(node.const(True, "bool") if begin is None else begin)
        after.append(node.const(True, "bool") if again is None else again)
        conditions.append(going)
    if not conditions:
        raise node.bad("the loop never ends")
    first = len(params)
    params += [*held, *buffers]
    initial += [*states, *(row.initial for row in rows)]
    after += [*following, *written]
    condition = conditions[0] if len(conditions) == 1 else relay.logical_and(*conditions)
    loop = _loop(node, params, condition, after, initial)
    results = [TupleGetItem(loop, index) for index in range(len(params))]
    finished = [_used(node, row, buffer, results[0], early) for row, buffer in zip(rows, results[first + len(held) :])]
    return list(results[first : first + len(held)]), finished


def turns_of(
    node: Tensors, step: Step, initial: list[Any], limit: Limit, rows: int, nodes: int
) -> tuple[list[Any], list[Any]]:
    """So many turns, unrolled if they are few: values at the end, and outputs with an axis of turns in front.

    rows: how many outputs a turn has. nodes: how many nodes it is, about.
    """
    length = limit.size
    if isinstance(length, int) and length == 0:
        return initial, no_rows(node, step, initial, rows)
    if isinstance(length, int) and length * nodes <= FEW:
        states, result, _ = unrolled(node, step, initial, length)
        return states, [relay.stack([turn[k] for turn in result], axis=0) for k in range(rows)]
    try:
        return repeat(node, step, initial, limit)
    except (ShapeChanges, ValueNeeded) as error:
        if (isinstance(error, ValueNeeded) and error.sources) or not isinstance(length, int) or length * nodes > MANY:
            if isinstance(error, ValueNeeded):
                raise
            raise node.unsupported(f"a loop whose {error}") from error
    states, result, _ = unrolled(node, step, initial, length)
    return states, [relay.stack([turn[k] for turn in result], axis=0) for k in range(rows)]


def no_rows(node: Tensors, step: Step, initial: Sequence[object], rows: int) -> list[Any]:
    """The outputs of no turn at all: as one turn would make them."""
    if not rows:
        return []
    values = [Var(f"held{k}", node.type(one)) if isinstance(one, Expr) else one for k, one in enumerate(initial)]
    _, _, result = step(Var("turn", TensorType((), "int64")), values)
    return [
        relay.zeros((0, *(0 if is_any(size) else size for size in node.shape(one))), str(node.dtype(one)))
        for one in result
    ]


def at_turn(node: Tensors, x: Expr, turn: Expr, axis: int) -> Expr:
    """The slice of a tensor that a turn has; of one without any, what a slice would be like."""
    shape = node.shape(x)
    if isinstance(shape[axis], int) and shape[axis] == 0:
        return relay.zeros((*shape[:axis], *shape[axis + 1 :]), str(node.dtype(x)))
    return relay.take(x, turn, axis=axis)


def limit_of(node: Tensors, x: Expr, axis: int) -> Limit:
    """As many turns as an axis of a tensor has places."""
    length = node.shape(x)[axis]
    if isinstance(length, int):
        return Limit(length, node.const(length))
    if is_any(length):
        raise node.unsupported("a number of turns that is known only when the model runs")
    return Limit(length, relay.take(relay.shape_of(x, dtype="int64"), node.const(axis), axis=0))


def _settled(
    node: Tensors, step: Step, index: Var, states: Sequence[Expr], changing: bool
) -> tuple[list[Var], Expr | None, list[Expr], list[Expr]]:
    """Variables whose types hold before and after a turn, and one turn with them."""
    types = [node.type(state) for state in states]
    for _ in range(4):
        held = [Var(f"held{k}", of) for k, of in enumerate(types)]
        for var, state in zip(held, states):
            node.same_element(var, state)
        again, following, result = step(index, list(held))
        wider = [_wider(node, k, before, node.type(one)) for k, (before, one) in enumerate(zip(types, following))]
        if all(new is None for new in wider):
            return held, _condition(node, again), following, result
        for position, new in enumerate(wider):
            if new is not None and not changing:
                raise ShapeChanges(position, types[position], node.type(following[position]))
        types = [old if new is None else new for old, new in zip(types, wider)]
    raise node.unsupported("a value that has another shape in every turn")


def _condition(node: Tensors, again: Expr | None) -> Expr | None:
    """What says whether there is another turn; None where that is known to be so."""
    if again is None:
        return None
    result = node.known(again)
    if result is not None and bool(result.reshape(())):
        return None
    return scalar_bool(node, again)


def scalar_bool(node: Tensors, x: Expr) -> Expr:
    """A condition: one bool."""
    plain = relay.reshape(x, ()) if node.rank(x) else x
    return node.cast(plain, "bool")


def _wider(node: Tensors, index: int, before: TensorType, after: TensorType) -> TensorType | None:
    """A type that both fit; None where the one before does."""
    if before.dtype != after.dtype or len(before.shape) != len(after.shape):
        raise node.bad(f"value {index} of the loop is {before} before a turn, and {after} after it")
    sizes = [one if is_any(one) or same_dim(one, other) else AnyDim() for one, other in zip(before.shape, after.shape)]
    return TensorType(sizes, str(before.dtype)) if any(map(_is_not, sizes, before.shape)) else None


def _is_not(one: object, other: object) -> bool:
    return one is not other


# The outputs of all turns.


@dataclass(frozen=True)
class _Rows:
    held: TensorType  # while the loop runs
    initial: Expr
    fixed: bool  # as long as the loop can be, and not as it was so far


def _rows(node: Tensors, one: Expr, limit: Limit, early: bool) -> _Rows:
    of = node.type(one)
    kind = str(of.dtype)
    shape = None if limit.size is None else (limit.size, *of.shape)
    known = shape is not None and not any(is_any(size) for size in shape)
    # A limit of billions is none: the loop is meant to end early, and its rows are counted as they come.
    if shape is not None and known and not (early and _bytes(shape, of.dtype.nbytes) > MOST_ROWS):
        return _Rows(TensorType(shape, kind), relay.zeros(shape, kind), fixed=True)
    start = tuple(0 if is_any(size) else size for size in of.shape)
    return _Rows(TensorType((AnyDim(), *of.shape), kind), relay.zeros((0, *start), kind), fixed=False)


def _bytes(shape: Sequence[Dim], each: int) -> int:
    return math.prod(size for size in shape if isinstance(size, int)) * each


def _written(node: Tensors, row: _Rows, buffer: Expr, index: Var, one: Expr) -> Expr:
    if row.fixed:
        location = relay.reshape(index, (1,))
        return relay.scatter_nd(buffer, location, one)
    if any(map(is_any, node.shape(one))):
        buffer = _as_rows_of(node, buffer, one)
    return relay.concatenate([buffer, relay.expand_dims(one, axis=0)], axis=0)


def _as_rows_of(node: Tensors, buffer: Expr, one: Expr) -> Expr:
    """The rows so far; where there are none yet, none of the sizes that the first one turns out to have."""
    sizes = relay.shape_of(buffer, dtype="int64")
    first = relay.concatenate([node.const([0]), relay.shape_of(one, dtype="int64")], axis=0)
    is_empty = relay.equal(relay.strided_slice(sizes, begin=[0], end=[1]), node.const(0))
    return relay.reshape(buffer, relay.where(is_empty, first, sizes), allowzero=True)


def _used(node: Tensors, row: _Rows, buffer: Expr, turns: Expr, early: bool) -> Expr:
    """The rows of the turns that there were."""
    if not row.fixed or not early:
        return buffer
    rank = len(row.held.shape)
    sizes = relay.shape_of(buffer, dtype="int64")
    end = relay.reshape(turns, (1,))
    if rank > 1:
        end = relay.concatenate([end, relay.strided_slice(sizes, begin=[1], end=[rank])], axis=0)
    return relay.strided_slice(buffer, node.const([0] * rank), end, node.const([1] * rank))


# The function that calls itself.


def _loop(
    node: Tensors, params: Sequence[Var], condition: Expr, following: Sequence[Expr], initial: Sequence[Expr]
) -> Expr:
    itself = Var("loop")
    function = Function(list(params), If(condition, Call(itself, list(following)), Tuple(list(params))))
    moved, function = _hoisted(node, function, itself)
    whole: Expr = Let(itself, function, Call(itself, list(initial)))
    for var, value in reversed(moved):
        whole = Let(var, value, whole)
    return whole


def _hoisted(node: Tensors, function: Function, itself: Var) -> tuple[list[tuple[Var, Expr]], Function]:
    """What a loop computes anew in every turn though it is the same, as values of variables outside."""
    varies: set[Expr] = {itself, *function.params}
    everything = list(post_order(function))
    for one in everything:
        if isinstance(one, Let):
            varies.add(one.var)
        elif isinstance(one, Function):
            varies.update(one.params)
    for one in everything:
        if isinstance(one, Call) and getattr(one.attrs, "stateful", False):
            varies.add(one)
        if any(part in varies for part in parts(one)):
            varies.add(one)
    moved: dict[Expr, Var] = {}
    for one in everything:
        if one not in varies:
            continue
        for part in parts(one):
            if part not in varies and part not in moved and isinstance(part, (Call, If, TupleGetItem, Let)):
                of = node.type_of(part)
                moved[part] = Var(f"kept{len(moved)}", of)
    if not moved:
        return [], function
    replace = ExprMutator()
    replace.memo_map.update(moved)
    return [(var, value) for value, var in moved.items()], replace.apply(function)
