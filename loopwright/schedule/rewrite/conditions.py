"""Conditions on the axes of a block, kept as text so that traces can carry them.

    condition_text(lambda vi, vj: vi < 3)        "lambda vi, vj: vi < 3"

Given as a callable over the axes or as such a text, which is read by the little grammar below and never
executed.
"""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from loopwright.analysis.may_fail import may_fail
from loopwright.arith import Analyzer
from loopwright.ir import BinaryExpr, Expr, Var, as_expr, logical_and, logical_not, logical_or, substitute
from loopwright.ir.deep import deep
from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.rewrite.index_map import quoted, read_index, tree_of

_COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[Expr, Expr], Expr]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def condition_text(step: str, given: Callable[..., object] | str) -> str:
    """A condition as a trace carries it."""
    if isinstance(given, str):
        names, condition = _read(step, given)
        return _text(names, condition)
    if not callable(given):
        raise BadStepArgument(step, f"expected a condition on the axes, got {given!r}", hint="write lambda vi: vi < 8")
    try:
        parameters = [Var(name) for name in inspect.signature(given).parameters]
        result = as_expr(given(*parameters))
    except LoopwrightError as error:
        hint = 'join conditions with tir.all(a, b), or give a text: "lambda vi, vj: vi < 8 and vj < 4"'
        raise BadStepArgument(step, f"the condition cannot be read: {error.problem}", hint=hint) from None
    except (TypeError, ValueError, ArithmeticError) as error:  # of the user's function
        problem = f"the condition raises {type(error).__name__}: {error}"
        raise BadStepArgument(step, problem, hint="write a function of the axes, e.g. lambda vi: vi < 8") from error
    if not result.dtype.is_bool:
        raise BadStepArgument(step, f"{result} is no condition", hint="write lambda vi: vi < 8")
    text = _text(parameters, result)
    _read(step, text)  # what the trace cannot read back is refused now, not when it is replayed
    return text


def condition_on(step: str, text: str, axes: Sequence[Expr]) -> Expr:
    """The condition at the given values of the axes."""
    names, condition = _read(step, text)
    if len(names) != len(axes):
        raise BadStepArgument(step, f"the condition takes {len(names)} axes, the block has {len(axes)}")
    return substitute(condition, {var: value.astype(var.dtype) for var, value in zip(names, axes, strict=True)})


def condition_of(step: str, text: str, values: Mapping[str, Expr]) -> Expr:
    """The condition with each of its parameters standing for what has its name."""
    names, condition = _read(step, text)
    for var in names:
        if var.name not in values:
            problem = f"the condition is about {var.name}, which is no size of the function"
            raise BadStepArgument(step, problem, hint=f"there are {', '.join(values) or 'none'}")
    return substitute(condition, {var: values[var.name].astype(var.dtype) for var in names})


def check_has_value(step: str, condition: Expr, facts: Analyzer) -> None:
    """A new condition is evaluated wherever it stands: it must have a value there."""
    risk = may_fail(condition, facts)
    if risk is not None:
        divisor = risk.b if isinstance(risk, BinaryExpr) else risk
        problem = f"the condition {condition} has no value where {risk} has none"
        raise BadStepArgument(step, problem, hint=f"ask first, e.g. {divisor} > 0 and {condition}")


def _text(names: Sequence[Var], condition: Expr) -> str:
    return f"lambda {', '.join([var.name for var in names])}: {condition!r}"


@deep
def _read(step: str, text: str) -> tuple[list[Var], Expr]:
    tree = tree_of(text)
    if not isinstance(tree, ast.Lambda):
        raise BadStepArgument(step, f"{quoted(text)} is no condition", hint='write "lambda vi, vj: vi < 8 and vj < 4"')
    names = {item.arg: Var(item.arg) for item in tree.args.args}
    return list(names.values()), _condition(step, tree.body, names)


def _condition(step: str, tree: ast.expr, names: Mapping[str, Var]) -> Expr:
    if isinstance(tree, ast.BoolOp):
        parts = [_condition(step, item, names) for item in tree.values]
        return logical_and(*parts) if isinstance(tree.op, ast.And) else logical_or(*parts)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        return logical_not(_condition(step, tree.operand, names))
    if isinstance(tree, ast.Compare):
        sides = [as_expr(read_index(step, item, names)) for item in (tree.left, *tree.comparators)]
        result = []
        for left, kind, right in zip(sides, tree.ops, sides[1:], strict=False):
            if isinstance(kind, (ast.Eq, ast.NotEq)):
                equal = left.equal(right)
                result.append(equal if isinstance(kind, ast.Eq) else logical_not(equal))
            elif type(kind) in _COMPARISONS:
                result.append(_COMPARISONS[type(kind)](left, right))
            else:
                raise BadStepArgument(step, f"{ast.unparse(tree)!r} is no comparison of numbers")
        return logical_and(*result)
    raise BadStepArgument(
        step, f"{ast.unparse(tree)!r} is no condition", hint="compare axes and numbers with < <= > >= =="
    )
