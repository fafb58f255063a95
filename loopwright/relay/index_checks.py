"""index_checks: indices that come from data are looked at before the kernel runs that trusts them.

    gather(%x, %i)    →    launch index_range(%i)         the least and the greatest index, one pass over the indices
                           require -1 < least, greatest < n
                           launch gather(%x, %i)

Which indices an operator trusts it says itself (`op/index_ranges.py`). In a fused function the indices may be computed
by the kernel itself: then what computes them is computed once more, for their range. Constants are looked at here and
now, and become checks of sizes. Indices that `checked_indices` gives are in range, and not looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from loopwright.arith import Analyzer
from loopwright.ir import Expr, IntImm, as_expr, const
from loopwright.ir.types import TupleType, Type
from loopwright.relay.expr import Call, Constant, Function, Var
from loopwright.relay.expr import Expr as GraphExpr
from loopwright.relay.infer_type import infer
from loopwright.relay.op.index_ranges import IndexRange, input_at
from loopwright.relay.op.registry import Op, Operator, get
from loopwright.relay.size_checks import Name, SizeCheck, escaped, name_of, node_of
from loopwright.relay.types import Dim, TensorType, same_dims
from loopwright.relay.value_ranges import value_range
from loopwright.relay.visitor import bind, post_order
from loopwright.runtime.call_errors import IndexOutOfRange

Sizes = tuple[Dim, ...]  # of the axes that indices are known to lie in, in their order


@dataclass(frozen=True, eq=False)
class IndexCheck:
    """The range of the indices that an operator of a fused function trusts, and what it must be.

    `function` takes the parameters `params` of the fused function and gives the least and the greatest indices; `rules`
    say for each of its entries how many elements there are, and what to say of an index that is none of them.
    """

    function: Function
    params: tuple[Var, ...]
    rules: tuple[IndexRule, ...]


@dataclass(frozen=True, eq=False)
class IndexRule:
    """Entry `entry` of a range lies within `size`; the messages show the index and the size."""

    entry: int
    size: Expr
    from_end: bool
    below: str
    above: str


def ranges_of(call: Call) -> list[IndexRange]:
    """The indices that a call of an operator trusts."""
    say = getattr(call.attrs, "index_ranges", None)
    return [] if say is None else say(*[arg.checked_type for arg in call.args])


def index_checks(
    function: Function, args: Sequence[GraphExpr], in_range: Callable[[GraphExpr], Sizes | None]
) -> tuple[list[IndexCheck], list[SizeCheck]]:
    """What is to be checked before a fused function is called with `args`: of indices it computes, and of constants.

    `in_range` says of its parameters within which sizes they were checked to lie.
    """
    given = dict[GraphExpr, GraphExpr](zip(function.params, args, strict=True))

    def name(expression: GraphExpr) -> str:
        return name_of(given.get(expression, expression))

    result: list[IndexCheck] = []
    known: list[SizeCheck] = []
    for call in post_order(function.body):
        if not isinstance(call, Call) or not isinstance(call.op, Op):
            continue
        for ranges in _by_tensor(ranges_of(call)):
            indices = input_at(call.args, ranges[0].indices)
            sizes = tuple(each.size(input_at([arg.checked_type for arg in call.args], each.data)) for each in ranges)
            checked = checked_sizes(indices) or in_range(indices)
            if (checked is not None and same_dims(checked, sizes)) or _is_within(value_range(indices), sizes):
                continue
            rules = tuple(_rule(call, each, size, name) for each, size in zip(ranges, sizes, strict=True))
            outside = given.get(indices, indices)
            if isinstance(outside, Constant):
                known += _of_constant(outside, ranges[0], rules)
            else:
                result.append(_measured(function, indices, ranges[0], rules))
    return result, known


def checked_sizes(expression: GraphExpr) -> Sizes | None:
    """Within which sizes the elements of an expression were checked to lie; index tuples may have been turned round."""
    while isinstance(expression, Call) and isinstance(expression.op, Op) and expression.op.name == "transpose":
        (expression,) = expression.args
    if not isinstance(expression, Call) or not isinstance(expression.op, Op):
        return None
    if expression.op.name != "checked_indices":
        return None
    of = expression.args[1].checked_type
    assert isinstance(of, TensorType)
    return tuple(expression.attrs.sizes(of))


def _is_within(reach: tuple[float, float] | None, sizes: Sequence[Dim]) -> bool:
    return reach is not None and all(isinstance(size, int) and 0 <= reach[0] <= reach[1] < size for size in sizes)


def _by_tensor(ranges: Sequence[IndexRange]) -> Iterator[list[IndexRange]]:
    """The ranges, those of one index tensor together."""
    groups: dict[object, list[IndexRange]] = {}
    for each in ranges:
        groups.setdefault((each.indices, each.along, each.ignored), []).append(each)
    yield from groups.values()


def _rule(call: Call, range_: IndexRange, size: Dim, name: Name) -> IndexRule:
    indices, data = (input_at(call.args, location) for location in (range_.indices, range_.data))
    what = f"axis {range_.axis} of {name(data)}" if range_.axis is not None else name(data)
    length = "has %lld elements" if range_.axis is None else "is %lld"
    said = f"{escaped(name(indices))} holds the index %lld, and {escaped(what)} {length}: {escaped(node_of(call))}"
    below = " counts negative indices from its end, and no farther" if range_.from_end else " counts from 0 here"
    return IndexRule(range_.entry, as_expr(size), range_.from_end, said + below, said + " has no such element")


def _measured(function: Function, indices: GraphExpr, range_: IndexRange, rules: tuple[IndexRule, ...]) -> IndexCheck:
    used = {each for each in post_order(indices) if isinstance(each, Var)}
    params = [param for param in function.params if param in used]
    fresh = [Var(param.name_hint, param.checked_type) for param in params]
    given = bind(indices, dict(zip(params, fresh, strict=True)))
    op = get("index_range")
    body = Call(op, [given], op.attributes(along=range_.along, ignored=range_.ignored))
    result = Function(fresh, body, attrs={"Primitive": 1})
    infer(result)
    return IndexCheck(result, tuple(params), rules)


def _of_constant(indices: Constant, range_: IndexRange, rules: Sequence[IndexRule]) -> Iterator[SizeCheck]:
    """Checks of sizes that indices which never change ask for."""
    attrs = get("index_range").attributes(along=range_.along, ignored=range_.ignored)
    least, greatest = attrs.reference(np.asarray(indices.data))
    for rule in rules:
        low, high = int(least[rule.entry]), int(greatest[rule.entry])
        if low > high:  # no index at all
            continue
        for index, message in ((low, rule.below), (high, rule.above)):
            number = const(index, "int64")
            size = rule.size.astype("int64")
            holds = size > number if index >= 0 else size >= -number if rule.from_end else const(False)
            condition = Analyzer().simplify(holds)
            if not (isinstance(condition, IntImm) and condition.value):
                yield SizeCheck(condition, message, (number, size))


def require_in_range(attrs: Operator, inputs: Sequence[object]) -> None:
    """Raise IndexOutOfRange unless the indices among the inputs of an operator, which are arrays, lie in range."""
    say = getattr(attrs, "index_ranges", None)
    if say is None:
        return
    for each in say(*[_type_of(value) for value in inputs]):
        data, indices = input_at(inputs, each.data), input_at(inputs, each.indices)
        size = data.size if each.axis is None else data.shape[each.axis]
        measure = get("index_range").attributes(along=each.along, ignored=each.ignored)
        low, high = (int(one[each.entry]) for one in measure.reference(np.asarray(indices)))
        wrong = high if high >= size else low if low < (-size if each.from_end else 0) else None
        if wrong is not None and low <= high:
            where = "all elements of the data" if each.axis is None else f"axis {each.axis} of the data"
            raise IndexOutOfRange(f"{attrs.op_name}: an index is {wrong}, and {where} has size {size}")


def _type_of(value: object) -> Type:
    if isinstance(value, (list, tuple)):
        return TupleType(tuple(_type_of(item) for item in value))
    array = np.asarray(value)
    return TensorType(array.shape, array.dtype.name)
