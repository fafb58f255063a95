"""Values that are known before the model runs, though not all of them are numbers.

    Shape(x) of x: (n, 3, 224, 224)      →   [n, 3, 224, 224]
    Gather(…, 0), Concat, Mul, Reshape   →   stay formulas of n

A tensor that is known is a numpy array; where sizes with names are in it, an array of objects: ints and expressions of
size variables. Operators on such arrays are few, and are those that models compute shapes with: numpy moves elements,
`relay/size_arrays.py` does arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, Final, Protocol, TypeAlias, TypeVar, overload

import numpy as np

from loopwright.ir import Expr as PrimExpr
from loopwright.relay.size_arrays import accumulated, array_of, elementwise
from loopwright.relay.types import Dim, as_dim, is_any

D = TypeVar("D")

MOST: Final = 4096  # elements of an array of sizes

Known: TypeAlias = np.ndarray
# What a rule returns: the one output, all of them, or None where it cannot say.
Outputs: TypeAlias = np.ndarray | list[np.ndarray] | None


class Asked(Protocol):
    """The node that a rule is for; `node.py` has it."""

    op: str

    @property
    def output_count(self) -> int: ...

    @overload
    def attr(self, name: str, default: None = None) -> Any: ...

    @overload
    def attr(self, name: str, default: D) -> D: ...


def is_symbolic(array: Known) -> bool:
    return array.dtype == object


def settled(array: Known) -> Known:
    """An array of objects with its expressions simplified; one of int64 where all of them turn out to be numbers."""
    sizes = [as_dim(item) if isinstance(item, PrimExpr) else item for item in array.flat]
    return array_of([None if is_any(size) else size for size in sizes], array.shape)


def objects(items: Sequence[Dim], shape: Sequence[int] | None = None) -> Known:
    out = np.empty(len(items), dtype=object)
    out[:] = list(items)
    return out.reshape(tuple(shape) if shape is not None else (len(items),))


Rule = Callable[..., Outputs]
_RULES: Final[dict[str, Rule]] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        for name in names:
            _RULES[name] = function
        return function

    return enter


def evaluate(op: str, node: Asked, inputs: Sequence[Known | None]) -> list[Known] | None:
    """The outputs of a node of known inputs, some of them sizes with names; None where there is no rule for that."""
    how = _RULES.get(op)
    if how is None or any(array is not None and array.size > MOST for array in inputs):
        return None
    result = how(node, *inputs)
    if result is None:
        return None
    listed = result if isinstance(result, list) else [result]
    arrays = [settled(array) if array.dtype == object else array for array in map(np.asarray, listed)]
    if any(array.size > MOST or any(element is None for element in array.flat) for array in arrays):
        return None
    return arrays


def _axes(node: Asked, given: Known | None) -> tuple[int, ...] | None:
    """Axes as an attribute or, later, as an input."""
    if given is not None:
        return None if is_symbolic(given) else tuple(int(axis) for axis in np.atleast_1d(given))
    listed = node.attr("axes", None)
    return None if listed is None else tuple(listed)


def _whole(array: Known) -> bool:
    return array.dtype == object or array.dtype.kind in "iu"


def _by(name: str) -> Rule:
    """Arithmetic or a comparison on the elements of all operands, one after the other."""

    def apply(node: Asked, *arrays: Known) -> Known | None:
        if not all(map(_whole, arrays)):
            return None
        return reduce(partial(elementwise, name), arrays[1:], arrays[0])

    return apply


for _op, _name in {
    "Add": "add",
    "Sub": "subtract",
    "Mul": "multiply",
    "Div": "divide",
    "Max": "maximum",
    "Min": "minimum",
    "Sum": "add",
    "Equal": "equal",
}.items():
    _RULES[_op] = _by(_name)


@rule("Identity")
def _identity(node: Asked, x: Known) -> Outputs:
    return x


@rule("Neg")
def _neg(node: Asked, x: Known) -> Outputs:
    return -x


@rule("Cast")
def _cast(node: Asked, x: Known) -> Outputs:
    return x if node.attr("to", 0) in (6, 7, 12, 13) else None  # to int32, int64, uint32, uint64


@rule("CastLike")
def _cast_like(node: Asked, x: Known, like: Known) -> Outputs:
    return x if _whole(like) else None


@rule("Unsqueeze")
def _unsqueeze(node: Asked, x: Known, axes: Known | None = None) -> Outputs:
    listed = _axes(node, axes)
    return None if listed is None else np.expand_dims(x, listed)


@rule("Squeeze")
def _squeeze(node: Asked, x: Known, axes: Known | None = None) -> Outputs:
    listed = _axes(node, axes)
    return np.squeeze(x, listed)


@rule("Gather")
def _gather(node: Asked, x: Known, indices: Known) -> Outputs:
    if is_symbolic(indices):
        return None
    return np.take(x, indices, axis=node.attr("axis", 0))


@rule("Concat")
def _concat(node: Asked, *arrays: Known) -> Outputs:
    return np.concatenate([array.astype(object) for array in arrays], axis=node.attr("axis", 0))


@rule("Slice")
def _slice(node: Asked, x: Known, *given: Known | None) -> Outputs:
    if given:
        starts, ends, axes, steps = (*given, None, None)[:4]
        if any(array is not None and is_symbolic(array) for array in (starts, ends, axes, steps)):
            return None
        first = [int(k) for k in starts] if starts is not None else []
        last = [int(k) for k in ends] if ends is not None else []
        over = [int(k) for k in axes] if axes is not None else list(range(len(first)))
        by = [int(k) for k in steps] if steps is not None else [1] * len(first)
    else:
        first, last = list(node.attr("starts")), list(node.attr("ends"))
        over, by = list(node.attr("axes", range(len(first)))), [1] * len(first)
    index = [slice(None)] * x.ndim
    for begin, end, axis, step in zip(first, last, over, by, strict=True):
        index[axis] = slice(begin, end if not (step < 0 and end < -x.shape[axis]) else None, step)
    return x[tuple(index)]


@rule("Reshape")
def _reshape(node: Asked, x: Known, shape: Known | None = None) -> Outputs:
    wanted = node.attr("shape", None) if shape is None else shape
    if wanted is None or (shape is not None and is_symbolic(shape)):
        return None
    sizes = [int(size) for size in np.asarray(wanted)]
    if not node.attr("allowzero", 0):
        sizes = [x.shape[k] if size == 0 else size for k, size in enumerate(sizes)]
    return x.reshape(sizes)


@rule("Split")
def _split(node: Asked, x: Known, split: Known | None = None) -> Outputs:
    sizes = node.attr("split", None) if split is None else split
    axis = node.attr("axis", 0)
    if sizes is None:
        return [*np.array_split(x, node.output_count, axis=axis)]
    return None if is_symbolic(np.asarray(sizes)) else [*np.split(x, np.cumsum(sizes)[:-1].astype(int), axis=axis)]


@rule("ReduceProd")
def _product(node: Asked, x: Known, axes: Known | None = None) -> Outputs:
    listed = _axes(node, axes)
    if x.ndim != 1 or listed not in (None, (0,), (-1,)):
        return None
    return array_of(accumulated("multiply", x, 1), (1,) if node.attr("keepdims", 1) else ())


@rule("Transpose", "Flatten")
def _of_a_vector(node: Asked, x: Known) -> Outputs:
    return x if x.ndim == 1 and node.op == "Transpose" else None


@rule("Expand")
def _expand(node: Asked, x: Known, shape: Known) -> Outputs:
    if is_symbolic(shape):
        return None
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(int(size) for size in shape)))


@rule("Where")
def _where(node: Asked, condition: Known, x: Known, y: Known) -> Outputs:
    return None if is_symbolic(condition) else np.where(condition, x.astype(object), y.astype(object))
