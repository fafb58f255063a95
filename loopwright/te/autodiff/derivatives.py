"""The partial derivatives of one expression by its leaves: the elements it loads, or variables.

    exp(A[i] * B[i])     by A[i]: exp(A[i] * B[i]) * B[i]

An expression is walked from its root down, each part with the factor by which the whole changes when it does. The parts
of a choice (`if_then_else`) are asked only where they are chosen, so a factor carries the conditions it holds under.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from loopwright.ir import (
    Add,
    Call,
    Cast,
    Div,
    Expr,
    FloatImm,
    Max,
    Min,
    Mul,
    Node,
    ProducerLoad,
    Select,
    Sub,
    Var,
    const,
    logical_not,
    pre_order_visit,
)
from loopwright.ir.intrinsics import (
    cos,
    cosh,
    exp,
    log,
    pow,
    sin,
    sinh,
    sqrt,
)
from loopwright.runtime.errors import LoopwrightError

Leaf = ProducerLoad | Var
Conditions = tuple[Expr, ...]


class NotDifferentiable(LoopwrightError):
    """`te.gradient` met something that it has no derivative for.

    Sums, products, quotients, minima, maxima, choices, casts between floating-point types and the usual functions have
    one, and so have reductions with any combiner of these. Integer parts (indices, conditions) count as constants.

    For example:

        from loopwright import te
        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: te.fmod(A[i], 2.0), name="B")
        te.gradient(B, [A])
    """

    code = "LW0460"

    def __init__(self, what: str, why: str, hint: str | None = None) -> None:
        super().__init__(f"te.gradient: {what}", why=why, hint=hint)


class Partial:
    """The derivative by one leaf: the sum of `value` over `terms`, each where its conditions hold."""

    def __init__(self, leaf: Leaf) -> None:
        self.leaf = leaf
        self.terms: list[tuple[Conditions, Expr]] = []


def partials(expr: Expr, is_leaf: Callable[[Leaf], bool], factor: Expr | None = None) -> list[Partial]:
    """The derivative of `expr`, times `factor`, by each of its leaves that `is_leaf` says yes to."""
    order = _float_parts(expr)
    start = const(1, expr.dtype) if factor is None else factor
    factors: dict[Expr, dict[Conditions, Expr]] = {expr: {(): start}}
    result: list[Partial] = []
    for part in order:
        arriving = factors.pop(part, None)
        if not arriving:
            continue
        if isinstance(part, (ProducerLoad, Var)):
            if is_leaf(part):
                partial = Partial(part)
                partial.terms = list(arriving.items())
                result.append(partial)
            continue
        for child, more, rule in _rules(part, is_leaf):
            into = factors.setdefault(child, {})
            for conditions, factor in arriving.items():
                under = (*conditions, *more)
                value = rule(factor)
                known = into.get(under)
                into[under] = value if known is None else known + value
    return result


def _float_parts(expr: Expr) -> list[Expr]:
    """Every floating-point part of an expression once, each before its own parts."""
    finished: list[Expr] = []
    seen: set[Expr] = set()
    pending: list[tuple[Expr, bool]] = [(expr, False)]
    while pending:
        part, is_done = pending.pop()
        if is_done:
            finished.append(part)
            continue
        if part in seen or not part.dtype.is_float:
            continue
        seen.add(part)
        pending.append((part, True))
        if not isinstance(part, ProducerLoad):  # its indices are no floats
            pending += [(child, False) for child in part.children() if isinstance(child, Expr)]
    return finished[::-1]


Rule = Callable[[Expr], Expr]


def _rules(part: Expr, is_leaf: Callable[[Leaf], bool]) -> list[tuple[Expr, Conditions, Rule]]:
    """For each part of `part` that depends on a leaf: the condition it is chosen under, and how its factor is made."""
    rules = [item for item in _all_rules(part) if item[0].dtype.is_float and _depends(item[0], is_leaf)]
    if not rules and _depends(part, is_leaf) and not _is_flat(part):
        what = f"{part.op.name.removeprefix('tir.')}(…)" if isinstance(part, Call) else type(part).__name__
        raise NotDifferentiable(f"there is no derivative of {part!r}", f"no rule for {what} is known")
    return rules


def _all_rules(part: Expr) -> list[tuple[Expr, Conditions, Rule]]:
    if isinstance(part, Add):
        return [(part.a, (), lambda g: g), (part.b, (), lambda g: g)]
    if isinstance(part, Sub):
        return [(part.a, (), lambda g: g), (part.b, (), lambda g: -g)]
    if isinstance(part, (Mul, Div)):
        a, b = part.a, part.b
        if isinstance(part, Mul):
            return [(a, (), lambda g: _times(g, b)), (b, (), lambda g: _times(g, a))]
        return [(a, (), lambda g: g / b), (b, (), lambda g: -(_times(g, a) / (b * b)))]
    if isinstance(part, (Max, Min)):
        a, b = part.a, part.b
        first = a >= b if isinstance(part, Max) else a <= b
        zero = const(0, part.dtype)
        return [(a, (), lambda g: Select(first, g, zero)), (b, (), lambda g: Select(first, zero, g))]
    if isinstance(part, Select):
        zero, chosen = const(0, part.dtype), part.condition
        return [
            (part.true_value, (), lambda g: Select(chosen, g, zero)),
            (part.false_value, (), lambda g: Select(chosen, zero, g)),
        ]
    if isinstance(part, Cast):
        inner = part.value.dtype
        return [(part.value, (), lambda g: g.astype(inner))]
    if isinstance(part, Call):
        return _call_rules(part)
    return []


def _times(factor: Expr, value: Expr) -> Expr:
    return value if isinstance(factor, FloatImm) and factor.value == 1 else factor * value


# --- functions ------------------------------------------------------------------------------------------------------

_TWO_OVER_SQRT_PI: Final = 2 / math.sqrt(math.pi)

# d f(x) / dx from x and y = f(x).
_DERIVATIVES: Final[dict[str, Callable[[Expr, Expr], Expr]]] = {
    "exp": lambda x, y: y,
    "exp2": lambda x, y: y * math.log(2),
    "exp10": lambda x, y: y * math.log(10),
    "log": lambda x, y: 1 / x,
    "log2": lambda x, y: 1 / (x * math.log(2)),
    "log10": lambda x, y: 1 / (x * math.log(10)),
    "log1p": lambda x, y: 1 / (x + 1),
    "sqrt": lambda x, y: 0.5 / y,
    "rsqrt": lambda x, y: y * -0.5 / x,
    "sigmoid": lambda x, y: y * (1 - y),
    "tanh": lambda x, y: 1 - y * y,
    "erf": lambda x, y: exp(-(x * x)) * _TWO_OVER_SQRT_PI,
    "sin": lambda x, y: cos(x),
    "cos": lambda x, y: -sin(x),
    "tan": lambda x, y: 1 + y * y,
    "sinh": lambda x, y: cosh(x),
    "cosh": lambda x, y: sinh(x),
    "asin": lambda x, y: 1 / sqrt(1 - x * x),
    "acos": lambda x, y: -1 / sqrt(1 - x * x),
    "atan": lambda x, y: 1 / (1 + x * x),
    "asinh": lambda x, y: 1 / sqrt(x * x + 1),
    "acosh": lambda x, y: 1 / sqrt(x * x - 1),
    "atanh": lambda x, y: 1 / (1 - x * x),
    "fabs": lambda x, y: Select(x >= const(0, x.dtype), const(1, x.dtype), const(-1, x.dtype)),
}
_DERIVATIVES["abs"] = _DERIVATIVES["fabs"]

# Steps: flat wherever they have a derivative.
_FLAT: Final = frozenset(["floor", "ceil", "trunc", "round", "nearbyint"])


def _is_flat(part: Expr) -> bool:
    """Whether a part does not change with what it depends on: a step function, or a number made from integers."""
    if isinstance(part, Call):
        return _name(part) in _FLAT
    return isinstance(part, Cast) and not part.value.dtype.is_float


def _call_rules(call: Call) -> list[tuple[Expr, Conditions, Rule]]:
    name, args = _name(call), call.args
    if name in _DERIVATIVES and len(args) == 1:
        slope = _DERIVATIVES[name](args[0], call)
        return [(args[0], (), lambda g: _times(g, slope))]
    if name == "pow":
        x, y = args
        by_base, by_exponent = y * pow(x, y - 1), call * log(x)
        return [(x, (), lambda g: _times(g, by_base)), (y, (), lambda g: _times(g, by_exponent))]
    if name == "atan2":
        y, x = args
        square = x * x + y * y
        return [(y, (), lambda g: _times(g, x) / square), (x, (), lambda g: -(_times(g, y) / square))]
    if name == "hypot":
        a, b = args
        return [(a, (), lambda g: _times(g, a) / call), (b, (), lambda g: _times(g, b) / call)]
    if name == "fma":
        a, b, c = args
        return [(a, (), lambda g: _times(g, b)), (b, (), lambda g: _times(g, a)), (c, (), lambda g: g)]
    if name == "if_then_else":
        condition, chosen, other = args
        return [(chosen, (condition,), lambda g: g), (other, (logical_not(condition),), lambda g: g)]
    if name == "likely":
        return [(args[0], (), lambda g: g)]
    return []


def _name(call: Call) -> str:
    return call.op.name.removeprefix("tir.")


def _depends(expr: Expr, is_leaf: Callable[[Leaf], bool]) -> bool:
    result = False

    def look(node: Node) -> bool:
        nonlocal result
        if isinstance(node, (ProducerLoad, Var)):
            result = result or is_leaf(node)
            return not result and not isinstance(node, ProducerLoad)
        return not result and not (isinstance(node, Expr) and not node.dtype.is_float)

    pre_order_visit(expr, look)
    return result


def total(terms: Sequence[Expr]) -> Expr:
    """The sum of at least one term."""
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result
