"""The values of integer expressions: a number, one number a thread, or not known.

    i % 2           0 where i is 4              a number
    tx // 128       [0, 0, …, 1, 1]             an array, with threads along its last dimension
    A[i]            None                        data: nobody knows

`Env` holds what variables are, and what the elements of local integers are that a kernel counts with. Loops of a
statement are further dimensions of the arrays, in front of the threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Buffer,
    BufferLoad,
    Call,
    Cast,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Node,
    Not,
    Or,
    Select,
    Sub,
    Var,
)

Array = NDArray[Any]  # of integers, or of booleans
Known = int | Array
Value = Known | None
_Run = Callable[["Env"], Value]


class Env:
    """What variables and the elements of counters are."""

    def __init__(self, like: Env | None = None) -> None:
        self.vars: dict[Var, Value] = {}
        self.cells: dict[Var, dict[int, Value]] = {}  # by the memory of local integers
        self._compiled: dict[Node, _Run] = like._compiled if like is not None else {}

    def value(self, expr: Expr) -> Value:
        """What the expression is."""
        run = self._compiled.get(expr)
        if run is None:
            run = self._compiled[expr] = self._compile(expr)
        return run(self)

    def _compile(self, expr: Expr) -> _Run:
        if isinstance(expr, IntImm):
            number = int(expr.value)
            return lambda env: number
        if isinstance(expr, Var):
            var = expr
            return lambda env: env.vars.get(var)
        binary = _BINARY.get(type(expr))
        if binary is not None:
            return _strict(binary, self._compile(expr.a), self._compile(expr.b))  # type: ignore[attr-defined]
        if isinstance(expr, (And, Or)):
            return _junction(isinstance(expr, And), self._compile(expr.a), self._compile(expr.b))
        if isinstance(expr, Not):
            inner = self._compile(expr.a)
            return lambda env: _negated(inner(env))
        if isinstance(expr, Cast):
            return self._compile(expr.value) if expr.dtype.kind in ("int", "uint", "bool") else _unknown
        if isinstance(expr, Select):
            return _choice(*[self._compile(part) for part in (expr.condition, expr.true_value, expr.false_value)])
        if isinstance(expr, Let):
            return self._let(expr)
        if isinstance(expr, Call):
            return self._call(expr)
        if isinstance(expr, BufferLoad):
            return self._load(expr)
        return _unknown

    def _let(self, expr: Let) -> _Run:
        var, value, body = expr.var, self._compile(expr.value), self._compile(expr.body)

        def run(env: Env) -> Value:
            env.vars[var] = value(env)
            return body(env)

        return run

    def _call(self, expr: Call) -> _Run:
        name = expr.op.name.removeprefix("tir.")
        if name in ("if_then_else", "likely"):
            parts = [self._compile(part) for part in expr.args]
            return parts[0] if name == "likely" else _choice(*parts)
        operation = _CALLS.get(name)
        if operation is None or len(expr.args) != 2 or expr.dtype.kind not in ("int", "uint"):
            return _unknown
        return _strict(operation, self._compile(expr.args[0]), self._compile(expr.args[1]))

    def _load(self, load: BufferLoad) -> _Run:
        if len(load.indices) != 1 or not is_counter(load.buffer):
            return _unknown
        data, index = load.buffer.data, self._compile(load.indices[0])

        def run(env: Env) -> Value:
            at = index(env)
            return env.cells.get(data, {}).get(at) if isinstance(at, int) else None

        return run


def is_counter(buffer: Buffer) -> bool:
    """Whether a thread may count in such memory: local integers."""
    return buffer.scope() == "local" and buffer.dtype.kind in ("int", "uint") and buffer.dtype.lanes == 1


def upper_bound(expr: Expr, env: Env) -> Value:
    """What the expression is at most; None where that is not known."""
    value = env.value(expr)
    if value is not None:
        return value
    if isinstance(expr, Cast):
        return upper_bound(expr.value, env)
    if isinstance(expr, Min):
        sides = [side for side in (upper_bound(expr.a, env), upper_bound(expr.b, env)) if isinstance(side, int)]
        return min(sides) if sides else None
    if isinstance(expr, Mul):
        for one, other in ((expr.a, expr.b), (expr.b, expr.a)):
            if isinstance(other, IntImm) and other.value >= 0:
                bound = upper_bound(one, env)
                return None if bound is None else bound * other.value
    chosen = _cases(expr)
    bounds = [upper_bound(case, env) for case in chosen]
    known = [bound for bound in bounds if isinstance(bound, int)]
    return max(known) if known and len(known) == len(chosen) else None


def _cases(expr: Expr) -> tuple[Expr, ...]:
    if isinstance(expr, Max):
        return expr.a, expr.b
    if isinstance(expr, Select):
        return expr.true_value, expr.false_value
    if isinstance(expr, Call) and expr.op.name == "tir.if_then_else":
        return expr.args[1], expr.args[2]
    return ()


# --- operations -----------------------------------------------------------------------------------------------------


def _unknown(env: Env) -> Value:
    return None


def _strict(operation: Callable[[Value, Value], Value], one: _Run, other: _Run) -> _Run:
    def run(env: Env) -> Value:
        a = one(env)
        if a is None:
            return None
        b = other(env)
        return None if b is None else operation(a, b)

    return run


def _junction(is_and: bool, one: _Run, other: _Run) -> _Run:
    """`and` and `or`: one side that decides is enough."""

    def decides(value: Value) -> bool:
        return isinstance(value, (int, np.bool_)) and bool(value) is not is_and

    def run(env: Env) -> Value:
        a = one(env)
        if decides(a):
            return a
        b = other(env)
        if decides(b):
            return b
        if a is None or b is None:
            return None
        if not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray):
            return (a and b) if is_and else (a or b)
        joined = np.logical_and(a, b) if is_and else np.logical_or(a, b)
        return joined

    return run


def _negated(value: Value) -> Value:
    if value is None:
        return None
    return np.logical_not(value) if isinstance(value, np.ndarray) else not value


def _choice(condition: _Run, then: _Run, otherwise: _Run) -> _Run:
    def run(env: Env) -> Value:
        asked = condition(env)
        if asked is None:
            return None
        if not isinstance(asked, np.ndarray):
            return then(env) if asked else otherwise(env)
        a, b = then(env), otherwise(env)
        return None if a is None or b is None else np.where(asked, a, b)

    return run


def _divided(by_floor: bool, wants_rest: bool) -> Callable[[Value, Value], Value]:
    def run(a: Value, b: Value) -> Value:
        assert a is not None and b is not None
        if isinstance(b, np.ndarray):
            if not b.all():
                return None
        elif b == 0:
            return None
        quotient = a // b
        if not by_floor:
            quotient = np.fix(np.true_divide(a, b)).astype("int64") if isinstance(quotient, np.ndarray) else int(a / b)
        return a - quotient * b if wants_rest else quotient

    return run


def _plain(operation: Callable[..., Value], on_arrays: Callable[..., Value] | None = None) -> Callable[..., Value]:
    if on_arrays is None:
        return operation
    both = on_arrays

    def run(a: Value, b: Value) -> Value:
        return both(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else operation(a, b)

    return run


_BINARY: Final[dict[type[Node], Callable[..., Value]]] = {
    Add: lambda a, b: a + b,
    Sub: lambda a, b: a - b,
    Mul: lambda a, b: a * b,
    Div: _divided(False, False),
    Mod: _divided(False, True),
    FloorDiv: _divided(True, False),
    FloorMod: _divided(True, True),
    Min: _plain(min, np.minimum),
    Max: _plain(max, np.maximum),
    EQ: lambda a, b: a == b,
    NE: lambda a, b: a != b,
    LT: lambda a, b: a < b,
    LE: lambda a, b: a <= b,
    GT: lambda a, b: a > b,
    GE: lambda a, b: a >= b,
}
_CALLS: Final[dict[str, Callable[..., Value]]] = {
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "shift_left": lambda a, b: a << b,
    "shift_right": lambda a, b: a >> b,
}
