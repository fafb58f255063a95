"""Sequences and optionals: SequenceConstruct, SequenceAt, SplitToSequence, SequenceMap, Optional …

They exist while the model is imported, and not in the graph: a sequence is a list of expressions, an optional is
there or is not. So the length of a sequence is known, and places in it have to be. (A place that is not known is still
read, where all elements have one type: from a stack of them.)
"""

from __future__ import annotations

from loopwright import relay
from loopwright.frontends.onnx.element_types import of_proto
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.ops.indexing import counted_from_front
from loopwright.frontends.onnx.ops.movement import sliced, split_dynamic
from loopwright.frontends.onnx.registry import converter
from loopwright.frontends.onnx.values import OptionalValue, SequenceValue, Value
from loopwright.relay.expr import Expr, require_expr
from loopwright.relay.types import same_dim

MOST_PARTS = 1 << 16  # elements of a sequence that a tensor is split into


def content(node: Node, value: Value) -> Value:
    """What an optional holds; other values as they are."""
    if isinstance(value, OptionalValue):
        if value.content is None:
            raise node.bad("the optional it is given is empty")
        return content(node, value.content)
    return value


def sequence(node: Node, value: Value) -> SequenceValue:
    result = content(node, value)
    if not isinstance(result, SequenceValue):
        raise node.bad("a sequence is needed, and not a tensor")
    return result


def _place(node: Node, position: Expr, count: int) -> int:
    """A place in a sequence, counted from the front."""
    location = int(node.scalar(position))
    if not -count <= location < count:
        raise node.bad(f"place {location} is outside a sequence of {count}")
    return location + count if location < 0 else location


@converter("SequenceEmpty", since=11)
def sequence_empty(node: Node) -> SequenceValue:
    return SequenceValue([], of_proto(node.attr("dtype", 1)).dtype)


@converter("SequenceConstruct", since=11)
def sequence_construct(node: Node, *items: Value) -> SequenceValue:
    if not items:
        raise node.bad("there is nothing to make a sequence of", hint="SequenceEmpty makes one without elements")
    return SequenceValue(items, str(node.dtype(require_expr(items[0], "a tensor"))))


@converter("SequenceLength", since=11)
def sequence_length(node: Node, given: Value) -> Expr:
    return node.const(len(sequence(node, given)))


@converter("SequenceAt", since=11)
def sequence_at(node: Node, given: Value, position: Expr) -> Value:
    result = sequence(node, given)
    if node.known(position) is None and _alike(node, result):
        location = counted_from_front(node, relay.reshape(position, ()), len(result))
        return relay.take(relay.stack(list(result.items), axis=0), location, axis=0)
    return result.items[_place(node, position, len(result))]


def _alike(node: Node, result: SequenceValue) -> bool:
    """Whether the elements are tensors of one shape and type."""
    tensors = [item for item in result.items if isinstance(item, Expr)]
    if not tensors or len(tensors) != len(result):
        return False
    first = node.type(tensors[0])
    return all(
        node.dtype(item) == first.dtype
        and len(node.shape(item)) == len(first.shape)
        and all(map(same_dim, node.shape(item), first.shape))
        for item in tensors
    )


@converter("SequenceInsert", since=11)
def sequence_insert(node: Node, given: Value, tensor: Value, position: Expr | None = None) -> SequenceValue:
    result = sequence(node, given)
    location = len(result) if position is None else int(node.scalar(position))
    if not -len(result) <= location <= len(result):
        raise node.bad(f"place {location} is outside a sequence of {len(result)}")
    items = list(result.items)
    items.insert(location + len(result) if location < 0 else location, tensor)
    return SequenceValue(items, str(node.dtype(require_expr(tensor, "a tensor"))))


@converter("SequenceErase", since=11)
def sequence_erase(node: Node, given: Value, position: Expr | None = None) -> SequenceValue:
    result = sequence(node, given)
    if not result.items:
        raise node.bad("the sequence has no element to take out")
    location = len(result) - 1 if position is None else _place(node, position, len(result))
    return SequenceValue([*result.items[:location], *result.items[location + 1 :]], result.dtype)


@converter("ConcatFromSequence", since=11)
def concat_from_sequence(node: Node, given: Value) -> Expr:
    result = sequence(node, given)
    if not result.items:
        raise node.bad("the sequence has nothing to put together")
    first = require_expr(result.items[0], "a tensor")
    axis, new = node.attr("axis"), bool(node.attr("new_axis", 0))
    axis = node.axis(axis, node.rank(first) + new)
    if new:
        return relay.stack(list(result.items), axis=axis)
    return first if len(result) == 1 else relay.concatenate(list(result.items), axis=axis)


@converter("SplitToSequence", since=11)
def split_to_sequence(node: Node, x: Expr, split: Expr | None = None) -> SequenceValue:
    """Parts of given sizes, of one size (the last one smaller), or single slices, without their axis at keepdims=0."""
    axis = node.axis(node.attr("axis", 0), node.rank(x))
    size = node.shape(x)[axis]
    if split is not None and node.rank(split) == 1 and node.importer.dynamic and node.known(split) is None:
        return SequenceValue(split_dynamic(node, x, axis, split), str(node.dtype(x)))
    if not isinstance(size, int):
        raise node.sizes_needed(f"the size {size} of axis {axis} is no number", [size])
    if split is None:
        lengths = [1] * size
    elif node.rank(split) == 0:
        one = int(node.scalar(split))
        if one < 1:
            raise node.bad(f"a part has {one} elements")
        lengths = [min(one, size - start) for start in range(0, size, one)]
    else:
        lengths = node.ints(split)
        if any(one < 0 for one in lengths) or sum(lengths) != size:
            raise node.bad(f"parts {lengths} do not make up the size {size} of axis {axis}")
    if len(lengths) > MOST_PARTS:
        raise node.unsupported(f"a sequence of {len(lengths):,} tensors")
    parts = []
    start = 0
    for length in lengths:
        part = sliced(node, x, [start], [start + length], [axis], [1])
        if split is None and not node.attr("keepdims", 1):
            part = relay.squeeze(part, axis=[axis])
        parts.append(part)
        start += length
    return SequenceValue(parts, str(node.dtype(x)))


@converter("SequenceMap", since=17)
def sequence_map(node: Node, first: Value, *others: Value) -> list[SequenceValue]:
    """A graph applied to each element; inputs that are tensors are the same for all of them."""
    leading = sequence(node, first)
    given = [leading, *others]
    body = node.attr("body")
    if len(body.input) != len(given):
        raise node.bad(f"its graph has {len(body.input)} inputs, and {len(given)} are given")
    count = len(leading)
    for one in given:
        if isinstance(one, SequenceValue) and len(one) != count:
            raise node.bad(f"sequences of {count} and {len(one)} elements are given")
    results: list[list[Value]] = [[] for _ in body.output]
    for index in range(count):
        inputs = [one.items[index] if isinstance(one, SequenceValue) else one for one in given]
        for result, answer in zip(results, node.subgraph(body, dict(zip((one.name for one in body.input), inputs)))):
            result.append(answer)
    kinds = [of_proto(one.type.tensor_type.elem_type).dtype for one in body.output]
    return [SequenceValue(result, kind) for result, kind in zip(results, kinds)]


@converter("Optional", since=15)
def optional(node: Node, value: Value | None = None) -> OptionalValue:
    return OptionalValue(value)


@converter("OptionalHasElement", since=15)
def optional_has_element(node: Node, value: Value | None = None) -> Expr:
    there = value is not None and not (isinstance(value, OptionalValue) and value.content is None)
    return node.const(there, "bool")


@converter("OptionalGetElement", since=15)
def optional_get_element(node: Node, value: Value) -> Value:
    return content(node, value)
