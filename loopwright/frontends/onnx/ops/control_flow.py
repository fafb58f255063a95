"""If, Loop, Scan.

A branch that is known to be taken is the only one that is converted. Loops whose turns are few and known are unrolled,
so that what their bodies compute from the number of the turn is known as well; others become loops of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from loopwright import relay
from loopwright.frontends.common.repeat import (
    FEW,
    MANY,
    Limit,
    ShapeChanges,
    Step,
    at_turn,
    limit_of,
    no_rows,
    repeat,
    scalar_bool,
    turns_of,
    unrolled,
)
from loopwright.frontends.errors import ValueNeeded
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.frontends.onnx.shape_values import is_symbolic
from loopwright.frontends.onnx.tensors import to_array
from loopwright.frontends.onnx.values import OptionalValue, SequenceValue, Value
from loopwright.relay.expr import Expr, If, Tuple, TupleGetItem
from loopwright.relay.types import as_dim, is_any, same_dim

if TYPE_CHECKING:
    from onnx import GraphProto

_ENDLESS = 1 << 40  # a trip count that says "until the condition fails"


@converter("If", fold=False)
def if_(node: Node, condition: Expr) -> list[Value]:
    then, otherwise = node.attr("then_branch"), node.attr("else_branch")
    answer = node.known(condition)
    if answer is not None and not is_symbolic(answer):
        if answer.size != 1:
            raise node.bad(f"its condition has {answer.size} elements")
        return node.subgraph(then if bool(answer.reshape(())) else otherwise)
    branches = [node.subgraph(then), node.subgraph(otherwise)]
    if len(branches[0]) != len(branches[1]):
        raise node.bad(f"its branches have {len(branches[0])} and {len(branches[1])} outputs")
    flat = [[tensor for result in branch for tensor in _tensors(result)] for branch in branches]
    alike = all(_same_structure(one, other) for one, other in zip(*branches))
    if not alike or not all(_same_type(node, one, other) for one, other in zip(*flat)):
        sources = node.importer.sources(condition)
        if not alike or (sources and not node.importer.dynamic) or not all(map(_same_rank(node), *flat)):
            raise node.importer.value_needed(node, condition)
    chosen: Expr = If(scalar_bool(node, condition), _joined(flat[0]), _joined(flat[1]))
    count = len(flat[0])
    parts = iter([chosen] if count == 1 else [TupleGetItem(chosen, k) for k in range(count)])
    results = [_rebuilt(result, parts) for result in branches[0]]
    for one, other in zip(flat[0], (tensor for result in results for tensor in _tensors(result))):
        node.carries(other, node.element(one))
    return results


def _joined(tensors: Sequence[Expr]) -> Expr:
    return tensors[0] if len(tensors) == 1 else Tuple(list(tensors))


def _tensors(value: Value) -> list[Expr]:
    """The tensors of a value, in order."""
    if isinstance(value, OptionalValue):
        return [] if value.content is None else _tensors(value.content)
    if isinstance(value, SequenceValue):
        return [tensor for item in value.items for tensor in _tensors(item)]
    return [value]


def _rebuilt(value: Value, tensors: Iterator[Expr]) -> Value:
    """A value of the same structure, of other tensors."""
    if isinstance(value, OptionalValue):
        return value if value.content is None else OptionalValue(_rebuilt(value.content, tensors))
    if isinstance(value, SequenceValue):
        return SequenceValue([_rebuilt(item, tensors) for item in value.items], value.dtype)
    return next(tensors)


def _same_structure(one: Value, other: Value) -> bool:
    if isinstance(one, SequenceValue) and isinstance(other, SequenceValue):
        return len(one) == len(other) and all(map(_same_structure, one.items, other.items))
    if isinstance(one, OptionalValue) and isinstance(other, OptionalValue):
        if one.content is None or other.content is None:
            return one.content is other.content
        return _same_structure(one.content, other.content)
    return isinstance(one, Expr) and isinstance(other, Expr)


def _same_type(node: Node, one: Expr, other: Expr) -> bool:
    first, second = node.type(one), node.type(other)
    return (
        first.dtype == second.dtype
        and len(first.shape) == len(second.shape)
        and all(not is_any(a) and same_dim(a, b) for a, b in zip(first.shape, second.shape))
    )


def _same_rank(node: Node) -> Callable[[Expr, Expr], bool]:
    return lambda one, other: node.dtype(one) == node.dtype(other) and node.rank(one) == node.rank(other)


def size_of(graph: GraphProto) -> int:
    """The number of nodes of a graph, those of graphs inside it included."""
    total = 0
    stack = [graph]
    while stack:
        for one in stack.pop().node:
            total += 1
            for attribute in one.attribute:
                stack += [attribute.g] if attribute.HasField("g") else []
                stack += list(attribute.graphs)
    return max(total, 1)


def _shared(node: Node, graph: GraphProto) -> dict[str, Expr]:
    """The initialisers of a body: read once, and the same in every turn."""
    result: dict[str, Expr] = {}
    for tensor in graph.initializer:
        result[tensor.name] = node.importer.constant(to_array(tensor, node.importer.model.folder))
    return result


# Loop.


@converter("Loop", fold=False)
def loop(node: Node, trips: Expr | None = None, condition: Expr | None = None, *initial: Value) -> list[Value]:
    body = node.attr("body")
    count = len(initial)
    if len(body.input) != count + 2 or len(body.output) < count + 1:
        raise node.bad(f"its body has {len(body.input)} inputs and {len(body.output)} outputs for {count} values")
    rows = len(body.output) - 1 - count
    shared = _shared(node, body)
    going = node.const(True, "bool")

    def step(turn: Expr, values: list[Value]) -> tuple[Value | None, list[Value], list[Value]]:
        # A turn begins only where the condition holds: inside it is known to.
        names = dict(zip((one.name for one in body.input), [turn, going, *values]))
        again, *results = node.subgraph(body, {**shared, **names})
        return again, results[:count], results[count:]

    limit = _limit(node, trips)
    begin = None if condition is None else node.known(condition)
    if begin is not None and not bool(begin.reshape(())):
        limit, begin, condition = Limit(0, node.const(0)), None, None
    runs = condition is None or begin is not None
    nodes = size_of(body)
    if isinstance(limit.size, int) and limit.size == 0:
        return [*initial, *no_rows(node, step, initial, rows)]
    tensors = [one for one in initial if isinstance(one, Expr)]
    all_tensors = len(tensors) == count
    if runs:
        most = math.inf if limit.tensor is None else limit.size if isinstance(limit.size, int) else None
        if most is not None:
            done = _unrolled(node, step, initial, most, FEW // nodes if all_tensors else MANY // nodes)
            if done is not None:
                return _stacked(*done, rows)
    if not all_tensors:
        raise _count_needed(node, trips, condition)
    first = None if runs or condition is None else scalar_bool(node, condition)
    return _as_loop(node, step, tensors, limit, first, rows, nodes, trips, condition)


def _limit(node: Node, trips: Expr | None) -> Limit:
    """The most turns there are: known, a size with a name, found when the model runs, or without end."""
    if trips is None:
        return Limit(None, None)
    result = node.known(trips)
    tensor = node.cast(relay.reshape(trips, ()) if node.rank(trips) else trips, "int64")
    if result is None:
        return Limit(None, tensor)
    item = result.reshape(-1).tolist()[0]
    if isinstance(item, (int, float)):
        number = max(int(item), 0)
        return Limit(None, None) if number >= _ENDLESS else Limit(number, node.const(number))
    return Limit(as_dim(item), tensor)


def _unrolled(
    node: Node, step: Step, initial: Sequence[Value], most: float, allowed: int
) -> tuple[list[Value], list[list[Value]]] | None:
    """All turns one after the other; None where they are too many, or where it is not known how many there are."""
    turns = int(min(most, allowed))
    if most > allowed and most != math.inf:
        turns = 1  # a body that says itself that it runs once
    states, result, ended = unrolled(node, step, list(initial), turns)
    if ended or len(result) == most:
        return states, result
    return None


def _stacked(states: Sequence[Value], result: Sequence[Sequence[Value]], rows: int) -> list[Value]:
    return [*states, *(relay.stack([turn[k] for turn in result], axis=0) for k in range(rows))]


def _count_needed(node: Node, trips: Expr | None, condition: Expr | None) -> Exception:
    """Nothing but the number of turns helps; or nothing at all."""
    for one in (trips, condition):
        if one is not None and node.known(one) is None:
            return node.importer.value_needed(node, one)
    return node.unsupported(
        f"a loop of values that change their shapes, of more than {MANY:,} nodes or of an unknown number of turns"
    )


def _as_loop(
    node: Node,
    step: Step,
    initial: list[Expr],
    limit: Limit,
    begin: Expr | None,
    rows: int,
    nodes: int,
    trips: Expr | None,
    condition: Expr | None,
) -> list[Value]:
    """A loop of the graph; unrolled after all where its values change shapes, or its body needs to know the turn."""
    if rows and limit.size is None and not node.importer.dynamic and trips is not None and _can_know(node, trips):
        raise node.importer.value_needed(node, trips)
    try:
        states, result = repeat(node, step, initial, limit, begin)
    except (ShapeChanges, ValueNeeded) as error:
        if isinstance(error, ValueNeeded) and error.sources:
            raise
        if begin is None and isinstance(limit.size, int):
            done = _unrolled(node, step, initial, limit.size, MANY // nodes)
            if done is not None:
                return _stacked(*done, rows)
        for unknown in (trips, condition):
            if not node.importer.dynamic and unknown is not None and _can_know(node, unknown):
                raise node.importer.value_needed(node, unknown) from error
        if isinstance(error, ValueNeeded):
            raise
        states, result = repeat(node, step, initial, limit, begin, changing=True)
    return [*states, *result]


def _can_know(node: Node, x: Expr) -> bool:
    """Whether a tensor that is not known would be if the values of inputs were."""
    return node.known(x) is None and bool(node.importer.sources(x))


# Scan.


@converter("Scan", since=9, fold=False)
def scan(node: Node, *inputs: Expr) -> list[Value]:
    return _scanned(node, inputs)


def _scanned(node: Node, inputs: Sequence[Expr]) -> list[Value]:
    body = node.attr("body")
    scans = node.attr("num_scan_inputs")
    count = len(inputs) - scans
    rows = len(body.output) - count
    if scans < 1 or count < 0 or rows < 0 or len(body.input) != len(inputs):
        raise node.bad(f"its body has {len(body.input)} inputs and {len(body.output)} outputs for {len(inputs)} values")
    initial, given = list(inputs[:count]), list(inputs[count:])
    axes = _numbers(node, "scan_input_axes", scans)
    axes = [node.axis(axis, node.rank(x)) for axis, x in zip(axes, given)]
    backwards = _numbers(node, "scan_input_directions", scans)
    lengths = [node.shape(x)[axis] for x, axis in zip(given, axes)]
    for other in lengths[1:]:
        if isinstance(other, int) and isinstance(lengths[0], int) and other != lengths[0]:
            raise node.bad(f"its inputs have {lengths[0]} and {other} turns")
    longest = next((k for k, one in enumerate(lengths) if isinstance(one, int)), 0)
    data = [relay.reverse(x, axis) if back else x for x, axis, back in zip(given, axes, backwards)]
    shared = _shared(node, body)

    def step(turn: Expr, values: list[Value]) -> tuple[Value | None, list[Value], list[Value]]:
        slices = [at_turn(node, x, turn, axis) for x, axis in zip(data, axes)]
        names = dict(zip((one.name for one in body.input), [*values, *slices]))
        results = node.subgraph(body, {**shared, **names})
        return None, results[:count], results[count:]

    limit = limit_of(node, given[longest], axes[longest])
    states, result = turns_of(node, step, initial, limit, rows, size_of(body))
    outputs = _placed(
        node, result, _numbers(node, "scan_output_axes", rows), _numbers(node, "scan_output_directions", rows)
    )
    return [*states, *outputs]


def _numbers(node: Node, name: str, count: int) -> list[int]:
    given = list(node.attr(name, None) or [0] * count)
    if len(given) != count:
        raise node.bad(f"{name} is {given}, and there are {count}")
    return given


def _placed(node: Node, result: Sequence[Expr], axes: Sequence[int], backwards: Sequence[int]) -> list[Expr]:
    """The outputs of a scan with their axis of turns where it belongs, the last turn first where that is wanted."""
    placed = []
    for one, axis, back in zip(result, axes, backwards):
        rank = node.rank(one)
        where = node.axis(axis, rank)
        transposed = relay.reverse(one, 0) if back else one
        order = list(range(1, rank))
        order.insert(where, 0)
        placed.append(transposed if where == 0 else relay.transpose(transposed, axes=order))
    return placed


@converter("Scan", since=8, fold=False)
def scan_batched(node: Node, lengths: Expr | None = None, *inputs: Expr) -> list[Expr]:
    """Version 8: all inputs have a batch in front, each with a length of its own; the turns are behind it."""
    body = node.attr("body")
    scans = node.attr("num_scan_inputs")
    count = len(inputs) - scans
    if count < 0 or len(body.input) != len(inputs):
        raise node.bad(f"its body has {len(body.input)} inputs for {len(inputs)} values")
    if lengths is not None:
        raise node.unsupported("sequence_lens of version 8")
    batch, length = node.static_shape(inputs[-1])[:2]
    rows = len(body.output) - count
    backwards = _numbers(node, "directions", scans)
    shared = _shared(node, body)
    results: list[list[Value]] = []
    for index in range(batch):
        own = [relay.take(x, node.const(index), axis=0) for x in inputs]
        data = [relay.reverse(x, 0) if back else x for x, back in zip(own[count:], backwards)]

        def step(
            turn: Expr, values: list[Value], data: list[Expr] = data
        ) -> tuple[Value | None, list[Value], list[Value]]:
            names = dict(zip((one.name for one in body.input), [*values, *(at_turn(node, x, turn, 0) for x in data)]))
            result = node.subgraph(body, {**shared, **names})
            return None, result[:count], result[count:]

        states, result = turns_of(node, step, own[:count], Limit(length, node.const(length)), rows, size_of(body))
        results.append([*states, *result])
    return [relay.stack([one[k] for one in results], axis=0) for k in range(count + rows)]
