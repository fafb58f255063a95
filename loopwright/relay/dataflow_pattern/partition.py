"""partition: every place of a shape becomes a call of a function.

    nn.relu(add(%x, %y))    →    %0 = fn (%FunctionVar_0_0, %FunctionVar_0_1, PartitionedFromPattern="add_nn.relu_") {
                                   nn.relu(add(%FunctionVar_0_0, %FunctionVar_0_1))
                                 };
                                 %0(%x, %y)

Values that no part of the pattern matched, and those that a leaf of it did (a wildcard, a variable), are the arguments.
Constants that the pattern asks for stay inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from loopwright.ir.deep import deep
from loopwright.ir.expr import GlobalVar
from loopwright.relay.dataflow_pattern.groups import Group, find_groups
from loopwright.relay.dataflow_pattern.patterns import DFPattern, searches
from loopwright.relay.expr import Call, Constant, Expr, Function, If, Let, Tuple, TupleGetItem, Var
from loopwright.relay.infer_type import infer
from loopwright.relay.op.registry import Op
from loopwright.relay.types import IncompleteType
from loopwright.relay.visitor import ExprMutator, post_order
from loopwright.runtime.errors import LoopwrightError


class _Extract(ExprMutator):
    """The values of a place as the body of a function; what comes from outside becomes a parameter."""

    def __init__(self, group: Group, number: int) -> None:
        super().__init__()
        self.group = group
        self.number = number
        self.params: list[Var] = []
        self.args: list[Expr] = []

    def first(self, expression: Expr) -> tuple[Expr, ...]:
        return super().first(expression) if expression in self.group.inside else ()

    def _enter(self, expression: Expr) -> Expr:
        stays = expression in self.group.inside or expression in self.group.embedded
        if stays or isinstance(expression, (Op, Function, GlobalVar)):
            return super()._enter(expression)
        result = expression.checked_type_
        known = result is not None and not isinstance(result, IncompleteType)
        param = Var(f"FunctionVar_{self.number}_{len(self.params)}", result if known else None)
        self.params.append(param)
        self.args.append(expression)
        self.memo_map[expression] = param
        return param

    def visit_function(self, function: Function) -> Expr:
        return function

    def visit_tuple_getitem(self, get: TupleGetItem) -> Expr:
        return TupleGetItem(self.visit(get.tuple_value), get.index, get.span)  # as it was matched, tuple and all


class _Partition(ExprMutator):
    def __init__(self, groups: list[Group], attrs: Mapping[str, object]) -> None:
        super().__init__()
        self.groups = {group.root: group for group in groups}
        self.numbers = {group.root: len(groups) - 1 - k for k, group in enumerate(groups)}
        self.attrs = attrs

    def _enter(self, expression: Expr) -> Expr:
        group = self.groups.get(expression)
        if group is None:
            return super()._enter(expression)
        extract = _Extract(group, self.numbers[expression])
        body = extract.visit(expression)
        attrs = {**self.attrs, "PartitionedFromPattern": pattern_name(body)}
        result = Call(Function(extract.params, body, attrs=attrs), [self.visit(arg) for arg in extract.args])
        self.memo_map[expression] = result
        return result


def pattern_name(body: Expr) -> str:
    """What a function computes, as a name: its operators in the order they run, `nn.conv2d_add_nn.relu_`."""
    names = []
    for expression in post_order(body):
        if isinstance(expression, Call):
            op = expression.op
            of_value = "FunctionCall" if isinstance(op, Function) else "VarCall"
            names.append(op.name if isinstance(op, (Op, GlobalVar)) else of_value)
        elif isinstance(expression, TupleGetItem):
            names.append(f"TupleGetItem{expression.index}")
        elif isinstance(expression, (Tuple, If, Let)):
            names.append(type(expression).__name__)
    return "".join([f"{name}_" for name in names])


@deep
def partition(
    pattern: DFPattern,
    expr: Expr,
    attrs: Mapping[str, object] | None = None,
    check: Callable[[Expr], bool] = lambda result: True,
) -> Expr:
    """The expression with every place of the pattern's shape (and for which `check` says yes) as a call of a function.

    The functions have `attrs`, and PartitionedFromPattern, which names what they compute.
    """
    if not isinstance(expr, Constant) and any(
        getattr(part, "checked_type_", None) is None for part in post_order(expr) if not isinstance(part, GlobalVar)
    ):
        _infer_if_possible(expr)
    groups = find_groups(pattern, expr, check)
    return _Partition(groups, attrs or {}).visit(expr) if groups else expr


def _infer_if_possible(expr: Expr) -> None:
    """Types make the parameters of the functions typed; a graph that calls others cannot be typed alone."""
    try:
        infer(expr)
    except LoopwrightError:
        return


searches["partition"] = partition
