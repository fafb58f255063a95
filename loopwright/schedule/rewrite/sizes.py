"""Sizes: a number of a step in terms of the function's own sizes, kept as text so that traces can carry it.

    sch.split(i, [None, n // 4 + 1])        the trace holds "n // 4 + 1"; on another program, `n` is the `n` there

The text is read by the grammar of `index_map.py`, and never executed.
"""

from __future__ import annotations

from loopwright.arith import Analyzer, ConstIntBound
from loopwright.ir import Expr, PrimFunc, Var, as_expr, variables_in
from loopwright.ir.deep import deep
from loopwright.runtime.dtype import DataType
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.rewrite.index_map import quoted, read_index, tree_of


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


def size_facts(function: PrimFunc) -> Analyzer:
    """What is known of a function's sizes: no extent of a buffer is negative."""
    facts = Analyzer()
    for buffer in function.argument_buffers():
        for extent in buffer.shape:
            if isinstance(extent, Var):
                facts.update(extent, ConstIntBound(0, ConstIntBound.POS_INF))
    return facts
