"""Constants and tensors made of nothing but a shape: Constant, ConstantOfShape, Range, EyeLike."""

from __future__ import annotations

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx.attributes import StoredTensor
from loopwright.frontends.onnx.element_types import of_numpy, of_proto
from loopwright.frontends.onnx.errors import UnsupportedType
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.frontends.onnx.shape_values import is_symbolic
from loopwright.ir import Expr as PrimExpr
from loopwright.ir.intrinsics import maximum
from loopwright.relay.expr import Constant, Expr
from loopwright.relay.op.sizes import divide_up, minus
from loopwright.relay.types import Dim, as_dim


@converter("Constant")
def constant(node: Node) -> Expr:
    for name in ("value", "sparse_value"):
        if name in node.attributes:
            return stored(node, node.attr(name))
    for name, dtype in (("value_float", np.float32), ("value_floats", np.float32), ("value_int", np.int64)):
        if name in node.attributes:
            return Constant(np.asarray(node.attr(name), dtype))
    if "value_ints" in node.attributes:
        return Constant(np.asarray(node.attr("value_ints"), np.int64))
    if "value_string" in node.attributes or "value_strings" in node.attributes:
        raise UnsupportedType(f"the constant of node {node.name!r}", "string", "texts are not computed with")
    raise node.bad("it has no value")


def stored(node: Node, tensor: StoredTensor) -> Expr:
    """A tensor among the attributes as a constant."""
    array = tensor.array()
    kind = of_numpy(array.dtype)
    return node.carries(Constant(kind.to_graph(array)), kind)


@converter("ConstantOfShape", since=9)
def constant_of_shape(node: Node, shape: Expr) -> Expr:
    tensor = node.attr("value", None)
    fill = np.zeros(1, np.float32) if tensor is None else tensor.array()
    kind = of_numpy(fill.dtype)
    if fill.size != 1:
        raise node.bad(f"its value has {fill.size} elements, and one is needed")
    number = Constant(kind.to_graph(fill).reshape(()))
    sizes = node.sizes_if_known(shape)
    if sizes is None:
        return node.carries(relay.full(number, shape, dtype=kind.dtype), kind)
    if any(isinstance(size, int) and size < 0 for size in sizes):
        raise node.bad(f"a size is negative: {sizes}")
    return node.carries(relay.full(number, tuple(sizes), dtype=kind.dtype), kind)


@converter("Range", since=11)
def range_(node: Node, start: Expr, limit: Expr, delta: Expr) -> Expr:
    kind = node.dtype(start)
    values = [node.known(one) for one in (start, limit, delta)]
    if all(value is not None and not is_symbolic(value) for value in values):
        first, last, step = (value.reshape(())[()] for value in values if value is not None)
        if step == 0:
            raise node.bad("its step is 0")
        count = max(int(np.ceil((np.float64(last) - np.float64(first)) / np.float64(step))), 0)
        if count * kind.nbytes > 1 << 32:
            raise node.bad(f"it would have {count:,} elements")
        locations = np.arange(count)
        return Constant((locations * step + first).astype(kind.numpy()))
    if all(value is not None for value in values) and not kind.is_float:
        # A range up to, or down from, a size with a name.
        begin, end, by = (_number(value) for value in values if value is not None)
        if isinstance(by, int) and by == 0:
            raise node.bad("its step is 0")
        if isinstance(by, int):
            length = divide_up(minus(end, begin) if by > 0 else minus(begin, end), abs(by))
            length = as_dim(maximum(length, 0))  # a call may have sizes for which it is empty
            numbers = counted(length, str(kind))
            scaled = numbers if by == 1 else relay.multiply(numbers, node.const(by, kind))
            return scaled if isinstance(begin, int) and begin == 0 else relay.add(scaled, start)
    if node.importer.dynamic and any(value is None for value in values):
        return relay.arange(*[relay.reshape(one, ()) for one in (start, limit, delta)], dtype=str(kind))
    # Symbolic values are known, but not as numbers: it is one of those that is needed.
    missing = [one for one, value in zip((limit, start, delta), (values[1], values[0], values[2])) if value is None]
    symbolic = [one for one, value in zip((start, limit, delta), values) if value is not None and is_symbolic(value)]
    raise node.importer.value_needed(node, (missing or symbolic)[0])


def counted(length: Dim, dtype: str) -> Expr:
    """0, 1, 2, … of a length that may be open: the sums of so many ones."""
    ones = relay.full(relay.const(1, dtype), (length,), dtype=dtype)
    return relay.cumsum(ones, axis=0, dtype=dtype, exclusive=True)


def _number(value: np.ndarray) -> int | PrimExpr:
    item = value.reshape(-1).tolist()[0]
    return item if isinstance(item, PrimExpr) else int(item)


@converter("EyeLike", since=9)
def eye_like(node: Node, x: Expr) -> Expr:
    kind = of_proto(node.attr("dtype")).dtype if "dtype" in node.attributes else str(node.dtype(x))
    if node.importer.dynamic and node.rank(x) == 2 and not all(isinstance(size, int) for size in node.shape(x)):
        sizes, one = relay.shape_of(x, dtype="int64"), node.const(1)
        row, column = (
            relay.arange(node.const(0), relay.take(sizes, node.const(axis), axis=0), one, dtype="int64")
            for axis in (0, 1)
        )
        shifted = relay.expand_dims(relay.add(row, node.const(node.attr("k", 0))), axis=1)
        return relay.cast(relay.equal(shifted, relay.expand_dims(column, axis=0)), kind)
    rows, columns = node.static_shape(x)
    return relay.const(np.eye(rows, columns, k=node.attr("k", 0)), kind)
