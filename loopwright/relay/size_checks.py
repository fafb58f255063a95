"""size_checks: what compiling a graph assumed of open sizes, as checks of every call.

    Add(a[n, 4], b[m, 4])    →    axis 0 of input a (n) is 2, axis 0 of input b (m) is 3: Add_0 (add) needs them
                                  equal, or one of them 1

How an operator takes part. Its `infer` and its `compute` refuse sizes that are known not to fit; where that is not
known, they *assume*, and say so:

    in relay/op:  broadcast(op, a.shape, b.shape)       the shape of both; says what it assumes
                  equal_dim(a.shape[0], b.shape[0])     False: they differ, refuse them; True: they are one, or assumed
                  repeats_to, at_most, divide_exactly   the same of other relations (`op/sizes.py` has them all)
    in topi:      check_same(op, …), one_size(a, b)     the same for expressions
    anywhere:     te.assumed_sizes.assume(condition, sizes, needs)     anything else: "it at least 3", "it even"

All else follows from that. `assumptions_of(call)` collects what one call assumes. Each becomes a `Require` step of the
program (`native/program.py`): at the front of the main function where the sizes come from inputs, behind the `Bind`
that names them where values decide them, and in the branch or loop that its operator stands in. Sizes that are checked
to be equal are one size in kernels (`kernel_size_params.py`), so that their bounds can be proved.

The checks of the graph as it was given come first (`graph_checks`): they name its nodes and inputs. Those of the fused
functions follow (`function_checks`), for what passes have made of it; what an earlier one says is not said again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loopwright.arith import Analyzer
from loopwright.ir import EQ, Expr, IntImm, Or, Var, structural_equal, substitute
from loopwright.ir.types import TupleType, Type
from loopwright.ir.visitor import variables_in
from loopwright.relay.expr import Call, Constant, Function, If, TupleGetItem
from loopwright.relay.expr import Expr as GraphExpr
from loopwright.relay.expr import Var as GraphVar
from loopwright.relay.nested import Nested
from loopwright.relay.op.registry import Op
from loopwright.relay.types import Dim, TensorType, is_any, type_text
from loopwright.relay.visitor import parts, post_order
from loopwright.te import Tensor, placeholder
from loopwright.te.assumed_sizes import Assumption, collected

_known: dict[object, list[Assumption]] = {}  # layers repeat
_MOST: Final = 20_000
Name = Callable[[GraphExpr], str]  # what people call the value of an expression: "input a"


@dataclass(frozen=True, eq=False)
class SizeCheck:
    """`condition` holds of the sizes of a call; `message` says what does not fit, with `values` for its `%lld`s."""

    condition: Expr
    message: str
    values: tuple[Expr, ...] = ()
    equal: tuple[Expr, Expr] | None = None  # two sizes that are one where it holds


def assumptions_of(call: Call, *, computed: bool = False) -> list[Assumption]:
    """What a call of an operator assumes of sizes that are not numbers; `computed`: what its kernel does, too."""
    types = [arg.checked_type for arg in call.args]
    known = [*_variables_of(types), *[var for size in call.attrs.size_expressions() for var in variables_in(size)]]
    if not known:
        return []
    key = (call.attrs.key(), *map(type_text, types), *known, computed)
    if key not in _known:
        if len(_known) >= _MOST:
            _known.clear()
        with collected() as result:
            call.attrs.infer(*types)
            if computed:
                call.attrs.compute(*[_stand_in(of, f"input{k}") for k, of in enumerate(types)])
        # A size that nobody knows stands in for itself while a type is inferred; nothing can be said of it.
        _known[key] = [one for one in result if all(var in known for var in variables_in(one.condition))]
    return _known[key]


def graph_checks(function: Function) -> list[SizeCheck]:
    """The checks of all operators that run whenever the function does: not those of branches and inner functions."""
    result = [check for call in _always_run(function) for check in _checks(call, assumptions_of(call), name_of)]
    return distinct(result)


def function_checks(function: Function, args: Sequence[GraphExpr]) -> list[SizeCheck]:
    """The checks of a fused function that is called with `args`, for what is lowered."""
    outside = dict[GraphExpr, GraphExpr](zip(function.params, args, strict=True))

    def name(expression: GraphExpr) -> str:
        return name_of(outside.get(expression, expression))

    calls = _operators(function)
    return distinct(check for call in calls for check in _checks(call, assumptions_of(call, computed=True), name))


def equal_sizes(function: Function) -> list[tuple[Expr, Expr]]:
    """The pairs of sizes that the operators of a fused function need to be equal: every call of it is checked."""
    result = [one for call in _operators(function) for one in assumptions_of(call, computed=True)]
    return [(one.sizes[0], one.sizes[1]) for one in result if one.equal]


def _operators(function: Function) -> list[Call]:
    return [each for each in post_order(function.body) if isinstance(each, Call) and isinstance(each.op, Op)]


def distinct(checks: Iterable[SizeCheck], known: Iterable[SizeCheck] = ()) -> list[SizeCheck]:
    """The checks without those that follow from earlier ones, or from `known`: the same, or the same of equal sizes."""
    seen: set[frozenset[object]] = set()
    equal = EqualSizes(check.equal for check in known if check.equal is not None)
    seen.update(_key(check.condition) for check in known)
    result: list[SizeCheck] = []
    for check in checks:
        condition = equal.replaced(check.condition)
        if isinstance(condition, IntImm) and condition.value:
            continue
        key = _key(condition)
        if key in seen:
            continue
        seen.add(key)
        result.append(check)
        if check.equal is not None:
            equal.add(*check.equal)
    return result


def _key(condition: Expr) -> frozenset[object]:
    """What two conditions share that say the same, in whatever order."""
    if isinstance(condition, Or):
        return _key(condition.a) | _key(condition.b)
    sides = [condition.a, condition.b] if isinstance(condition, EQ) else [condition]
    return frozenset([frozenset((str(side), *variables_in(side)) for side in sides)])


class EqualSizes:
    """Sizes that are one number: of each set of them one stands for all. Numbers stand for variables."""

    def __init__(self, pairs: Iterable[tuple[Expr, Expr]] = ()) -> None:
        self._by_variable: dict[Var, Expr] = {}
        self._others: list[tuple[Expr, Expr]] = []  # expressions that no variable can be solved for
        for one, other in pairs:
            self.add(one, other)

    def add(self, one: Expr, other: Expr) -> None:
        """Know that two sizes are one."""
        one, other = self.replaced(one), self.replaced(other)
        if structural_equal(one, other) or (isinstance(one, IntImm) and isinstance(other, IntImm)):
            return
        for var, value in ((other, one), (one, other)):
            if isinstance(var, Var) and var not in variables_in(value):
                self._by_variable = {old: _put(held, {var: value}) for old, held in self._by_variable.items()}
                self._by_variable[var] = value
                self._others = [(_put(a, {var: value}), _put(b, {var: value})) for a, b in self._others]
                return
        self._others.append((other, one) if not isinstance(other, IntImm) else (one, other))

    def replaced(self, size: Expr) -> Expr:
        """A size, or a condition of sizes, with what stands for its parts."""
        if not self._by_variable and not self._others:
            return size
        size = _put(size, self._by_variable)
        for held, value in self._others:
            if structural_equal(size, held):
                return value
        return size

    def __bool__(self) -> bool:
        return bool(self._by_variable or self._others)


def _put(size: Expr, values: Mapping[Var, Expr]) -> Expr:
    used = {var: value.astype(var.dtype) for var, value in values.items() if var in variables_in(size)}
    return Analyzer().simplify(substitute(size, used)) if used else size


# What a message says.


def name_of(expression: GraphExpr) -> str:
    """What people call the value of an expression of a graph."""
    if isinstance(expression, GraphVar):
        return f"input {expression.name_hint}"
    if isinstance(expression, Constant):
        return "a constant"
    if isinstance(expression, TupleGetItem):
        return f"result {expression.index} of {node_of(expression.tuple_value)}"
    return f"the result of {node_of(expression)}"


def node_of(expression: GraphExpr) -> str:
    """What people call the node that computes an expression."""
    if isinstance(expression, TupleGetItem):
        expression = expression.tuple_value
    span, op = getattr(expression, "span", None), getattr(expression, "op", None)
    operator = op.name if isinstance(op, Op) else ""
    if isinstance(span, str) and span:
        return f"{span} ({operator})" if operator else span
    if operator:
        return operator
    calls = [each for each in post_order(op.body) if isinstance(each, Call)] if isinstance(op, Function) else []
    return " + ".join(call.op.name for call in calls if isinstance(call.op, Op)) or "a computation"


def _checks(call: Call, assumptions: Sequence[Assumption], name: Name) -> Iterator[SizeCheck]:
    for one in assumptions:
        said, values = _said(call, one, name)
        pair = (one.sizes[0], one.sizes[1]) if one.equal else None
        yield SizeCheck(one.condition, f"{said}: {escaped(node_of(call))} needs {escaped(one.needs)}", values, pair)


def _said(call: Call, one: Assumption, name: Name) -> tuple[str, tuple[Expr, ...]]:
    """The sizes of an assumption with where they come from, as a format, and what it shows."""
    words: list[str] = []
    values: list[Expr] = []
    used: list[tuple[int, int]] = []  # argument and axis, from the right, of the sizes before
    for size in one.sizes:
        location = _place(call, size, used)
        where = ""
        if location is not None:
            argument, axis = location
            where = f"axis {axis} of {name(argument)}"
        if isinstance(size, IntImm):
            words.append(f"{escaped(where)} is {size.value}" if where else str(size.value))
            continue
        words.append(escaped(f"{where} ({size})" if where else str(size)) + " is %lld")
        values.append(size)
    return ", ".join(words), tuple(values)


def _place(call: Call, size: Expr, used: list[tuple[int, int]]) -> tuple[GraphExpr, int] | None:
    """The argument and the axis that a size is of: best of another argument than those before, on the same axis."""
    result: list[tuple[tuple[bool, bool], tuple[int, int], GraphExpr, int]] = []
    number = 0
    for arg in call.args:
        for part, of in _tensors(arg, arg.checked_type):
            for axis, own in enumerate(of.shape):
                if _is_same(own, size):
                    right = len(of.shape) - axis
                    seen = any(number == other for other, _ in used)
                    beside = bool(used) and all(right != other for _, other in used)
                    result.append(((seen, beside), (number, right), part, axis))
            number += 1
    if not result:
        return None
    _, at, part, axis = min(result, key=lambda one: one[0])
    if at in used:
        return None
    used.append(at)
    return part, axis


def _is_same(own: Dim, size: Expr) -> bool:
    if isinstance(own, int):
        return isinstance(size, IntImm) and size.value == own
    return not is_any(own) and structural_equal(own, size)


def _tensors(expression: GraphExpr, of: Type) -> Iterator[tuple[GraphExpr, TensorType]]:
    if isinstance(of, TensorType):
        yield expression, of
    elif isinstance(of, TupleType):
        fields = getattr(expression, "fields", None)
        for k, field in enumerate(of.fields):
            yield from _tensors(fields[k] if fields is not None else TupleGetItem(expression, k), field)


def escaped(text: str) -> str:
    """`text` as part of a message."""
    return text.replace("%", "%%")


# Walking.


def _always_run(function: Function) -> Iterator[Call]:
    """The calls of operators that run whenever the body does, each after what it is made of."""
    done: set[GraphExpr] = set()
    stack: list[tuple[GraphExpr, bool]] = [(function.body, False)]
    while stack:
        each, ready = stack.pop()
        if ready:
            if isinstance(each, Call) and isinstance(each.op, Op):
                yield each
            continue
        if each in done or isinstance(each, Function):
            continue
        done.add(each)
        stack.append((each, True))
        below = (each.cond,) if isinstance(each, If) else parts(each)
        stack.extend((part, False) for part in reversed(below))


def _variables_of(types: Iterable[Type]) -> Iterator[Var]:
    for of in types:
        if isinstance(of, TensorType):
            for size in of.shape:
                if isinstance(size, Expr):
                    yield from variables_in(size)
        elif isinstance(of, TupleType):
            yield from _variables_of(of.fields)


def _stand_in(of: Type, name: str) -> Nested[Tensor]:
    if isinstance(of, TupleType):
        return [_stand_in(field, f"{name}_{k}") for k, field in enumerate(of.fields)]
    assert isinstance(of, TensorType)
    return placeholder(of.shape, of.dtype, name)
