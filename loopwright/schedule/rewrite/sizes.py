"""Sizes: a number of a step in terms of the function's own sizes, kept as text so that traces can carry it.

    sch.split(i, [None, n // 4 + 1])        the trace holds "n // 4 + 1"; on another program, `n` is the `n` there

The text is read by the grammar of `index_map.py`, and never executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from loopwright.arith import Analyzer, ConstIntBound
from loopwright.ir import Expr, For, IntImm, PrimFunc, Var, as_expr, variables_in
from loopwright.ir.deep import deep
from loopwright.runtime.dtype import DataType
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.rewrite.index_map import quoted, read_index, tree_of

_LONGEST: Final = 1 << 40
_MOST: Final = 1 << 62


def size_variables(function: PrimFunc) -> list[Var]:
    """The whole numbers that a function is given: its parameters, and the variables in the shapes of its arguments."""
    result = {param: None for param in function.params if param.dtype.is_int}
    for buffer in function.argument_buffers():
        for extent in (*buffer.shape, *buffer.strides):
            result.update({var: None for var in variables_in(extent) if var.dtype.is_int})
    return list(result)


@deep
def read_size(step: str, text: str, function: PrimFunc, dtype: DataType) -> Expr:
    """The size that a text stands for in a function."""
    names: dict[str, Var] = {}
    for var in size_variables(function):
        if names.setdefault(var.name, var) is not var:
            raise BadStepArgument(step, f"two sizes of the function are called {var.name}, so {text!r} may mean either")
    tree = tree_of(text)
    if tree is None:
        raise BadStepArgument(step, f"{quoted(text)} is no size", hint='write "n // 4 + 1", or a number')
    return as_expr(read_index(step, tree, names)).astype(dtype)


def check_countable(step: str, function: PrimFunc, loop: For, factors: Sequence[Expr | int]) -> None:
    """All factors together, added to the iterations of the loop, fit 64 bits; no size is taken to exceed 2**40."""
    count = prod([factor.value if isinstance(factor, IntImm) else factor for factor in factors if _is_number(factor)])
    sizes = [factor for factor in factors if not _is_number(factor)]
    if sizes:
        facts = size_facts(function)
        for var in size_variables(function):
            if var.dtype.bits > 32:
                facts.update(var, ConstIntBound(-_LONGEST, _LONGEST), override=True)
        count *= prod([facts.interval(as_expr(size))[1] for size in sizes])
    if count > _MOST:
        shown = " * ".join([str(factor) for factor in factors])
        problem = f"{shown} iterations of loop {loop.loop_var.name} may be more than 64 bits can count"
        raise BadStepArgument(step, problem, loop, "choose smaller factors")


def _is_number(factor: Expr | int) -> bool:
    return isinstance(factor, int | IntImm)


def size_facts(function: PrimFunc) -> Analyzer:
    """What is known of a function's sizes: no extent of a buffer is negative."""
    facts = Analyzer()
    for buffer in function.argument_buffers():
        for extent in buffer.shape:
            if isinstance(extent, Var):
                facts.update(extent, ConstIntBound(0, ConstIntBound.POS_INF))
    return facts
