"""argument_sizes: where a call finds the values of the variables in its arguments' shapes, strides and offsets.

    A: T.Buffer((n, m)), B: T.Buffer((n * 4 + 1,), strides=(s,))

n and m are lengths of A, s is the stride of B; if A were not there, n would be (length of B - 1) / 4. A variable that
is an entry by itself takes its value from the first argument that has it. One that stands only inside expressions is
solved for where it is the only unknown of a linear one. Every entry is checked at the call in any case, so a length
that is no multiple of 4, plus 1, is refused there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from loopwright.ir.buffer import Buffer
from loopwright.ir.expr import Add, Cast, Expr, IntImm, Mul, Sub, Var, const
from loopwright.ir.function import PrimFunc
from loopwright.ir.operators import cast
from loopwright.ir.visitor import uses_var, variables_in
from loopwright.runtime.errors import LoopwrightError


class UnknownSize(LoopwrightError, ValueError):
    """A variable in the shape, the strides or the offset of an argument whose value no argument gives.

    It is taken from the tensors: from an axis (or stride) that is the variable itself, or an expression of it that can
    be solved, such as `n * 4` or `n + 1`; not `n // 2` or `n * m`. Otherwise it must be a parameter.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def halves(a: T.handle):
            n = T.int32()
            A = T.match_buffer(a, (n // 2,), "float32")
            for i in range(n // 2):
                A[i] = T.float32(0)

        loopwright.build(halves)
    """

    code = "LW0560"

    def __init__(self, function: str, var: Var, entry: Expr | None = None) -> None:
        super().__init__(
            f"{function}: nothing gives the value of {var.name}, which an argument's shape or layout depends on",
            why=None if entry is None else lambda: f"{entry!r} cannot be solved for {var.name}",
            hint=f"make {var.name} a parameter, or the length of an axis of some argument",
            fields={"function": function, "variable": var.name},
        )


class Entry(NamedTuple):
    """One number that a tensor brings along: the length or the stride of an axis, and what it is declared to be."""

    buffer: Buffer
    part: Literal["shape", "strides"]
    axis: int
    declared: Expr


class Solution(NamedTuple):
    """`var` is (the number at `entry` - `rest`) / `scale`."""

    var: Var
    entry: Entry
    scale: int
    rest: Expr


def entries(function: PrimFunc) -> Iterator[Entry]:
    """Every length and stride of every argument."""
    for buffer in function.argument_buffers():
        for axis, extent in enumerate(buffer.shape):
            yield Entry(buffer, "shape", axis, extent)
        for axis, stride in enumerate(buffer.strides):
            yield Entry(buffer, "strides", axis, stride)


def solved_sizes(function: PrimFunc) -> list[Solution]:
    """The variables that are no entry by themselves, each with what gives its value, in an order that works.

    Raises UnknownSize where one has no solution.
    """
    known = {*function.params}
    for buffer in function.argument_buffers():
        known |= {item for item in (*buffer.shape, *buffer.strides, buffer.elem_offset) if isinstance(item, Var)}
    pending = [entry for entry in entries(function) if not isinstance(entry.declared, (Var, IntImm))]
    solutions: list[Solution] = []
    result = True
    while result:
        result = False
        for entry in pending:
            unknown = _unknown(entry.declared, known)
            linear = linear_in(entry.declared, unknown[0]) if len(unknown) == 1 else None
            if linear is not None and linear[0] != 0:
                solutions.append(Solution(unknown[0], entry, *linear))
                known.add(unknown[0])
                result = True
    for entry in pending:
        for var in _unknown(entry.declared, known):
            raise UnknownSize(function.name, var, entry.declared)
    for buffer in function.argument_buffers():
        for var in _unknown(buffer.elem_offset, known):
            raise UnknownSize(function.name, var, buffer.elem_offset)
    return solutions


def _unknown(expr: Expr, known: set[Var]) -> list[Var]:
    return [var for var in variables_in(expr) if var not in known]


def linear_in(expr: Expr, var: Var) -> tuple[int, Expr] | None:
    """`expr` as scale * var + rest, where `rest` is free of `var`; None when it has no such form."""
    if expr is var:
        return 1, const(0, expr.dtype)
    if not uses_var(expr, var.same_as):
        return 0, expr
    if isinstance(expr, Cast) and expr.dtype.is_int and expr.value.dtype.is_int:
        inner = linear_in(expr.value, var)
        return None if inner is None else (inner[0], cast(inner[1], expr.dtype))
    if not isinstance(expr, (Add, Sub, Mul)):
        return None
    a, b = linear_in(expr.a, var), linear_in(expr.b, var)
    if a is None or b is None:
        return None
    if isinstance(expr, Mul):
        if isinstance(expr.a, IntImm):
            return expr.a.value * b[0], expr.a * b[1]
        return (a[0] * expr.b.value, a[1] * expr.b) if isinstance(expr.b, IntImm) else None
    if isinstance(expr, Add):
        return a[0] + b[0], a[1] + b[1]
    return a[0] - b[0], a[1] - b[1]
