"""Which integers may wrap around: data, as opposed to indices.

An int32 or int64 computed from variables alone is an index, and counts as a mathematical integer: a program whose index
overflows is out of bounds anyway. A value that comes from memory, from a float or from an unknown call is data, and
wraps as the type says. Sums and products of data still have linear forms, since these hold modulo 2**bits too. But
dividing or comparing needs the true value, so the form must be *exact*: made of indices, or provably within the type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopwright.ir import BufferLoad, Call, Cast, Expr, IntImm, Op, ProducerLoad, Reduce, SizeVar, Var

if TYPE_CHECKING:
    from loopwright.arith.simplify import Simplifier


def is_data(s: Simplifier, e: Expr) -> bool:
    """Whether the value depends on memory, floats or unknown calls."""
    cls = type(e)
    if cls is Var or cls is SizeVar:
        return e in s.data_vars
    if cls is IntImm:
        return False
    found = s.data.get(e)
    if found is None:
        found = s.data[e] = _depends_on_data(s, e)
    return found


def _depends_on_data(s: Simplifier, e: Expr) -> bool:
    if isinstance(e, (BufferLoad, ProducerLoad, Reduce)):
        return True
    if isinstance(e, Call) and not (isinstance(e.op, Op) and e.op.is_pure and "extern" not in e.op.name):
        return True
    if isinstance(e, Cast) and not (e.value.dtype.is_int or e.value.dtype.is_bool):
        return True
    found = False

    def look(child: object) -> None:
        nonlocal found
        found = found or (isinstance(child, Expr) and is_data(s, child))

    e.each_child(look)
    return found
