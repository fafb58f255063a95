"""Which integers may wrap around: data, as opposed to indices.

An int32 or int64 computed from variables alone is an index: index arithmetic is exact, whatever its type
(docs/semantics.md). A value that comes from memory, from a float or from an unknown call is data, and what is computed
from it wraps as the type says; an index that meets data there counts by its low bits. Sums and products of data still
have linear forms, since these hold modulo 2**bits too. But dividing or comparing needs the true value, so the form must
be *exact*: made of indices, or provably within the type.
"""

from __future__ import annotations

from loopwright.arith.engine import Engine
from loopwright.ir import (
    BinaryExpr,
    BufferLoad,
    Call,
    Cast,
    Expr,
    IntImm,
    Op,
    ProducerLoad,
    Reduce,
    Select,
    SizeVar,
    Var,
)


def is_data(s: Engine, e: Expr) -> bool:
    """Whether the value depends on memory, floats or unknown calls."""
    cls = type(e)
    if cls is Var or cls is SizeVar:
        return e in s.data_vars
    if cls is IntImm:
        return False
    result = s.data.get(e)
    if result is None:
        if isinstance(e, BinaryExpr):
            result = is_data(s, e.a) or is_data(s, e.b)
        else:
            operands = computed_from(e)
            result = operands is None or any([is_data(s, operand) for operand in operands])
        s.data[e] = result
    return result


def computed_from(e: Expr) -> list[Expr] | None:
    """The operands of which one has to be data for `e` to be; None where `e` is data by itself.

    A choice is what it chooses from: that its condition reads memory changes no number.
    """
    if isinstance(e, (BufferLoad, ProducerLoad, Reduce)):
        return None
    if isinstance(e, Select):
        return [e.true_value, e.false_value]
    if isinstance(e, Call):
        if not (isinstance(e.op, Op) and e.op.is_pure and "extern" not in e.op.name):
            return None
        if e.op.name == "tir.reinterpret":  # bits, whatever they stood for
            return None
        return list(e.args[1:] if e.op.name == "tir.if_then_else" else e.args)
    if isinstance(e, Cast) and not (e.value.dtype.is_int or e.value.dtype.is_bool):
        return None
    operands: list[Expr] = []
    e.each_child(lambda child: operands.append(child) if isinstance(child, Expr) else None)
    return operands


def holds_data(e: Expr) -> bool:
    """Whether memory, a float or an unknown call takes part in a number; variables count as indices."""
    pending, seen = [e], {e}  # each object once: a part may be shared by exponentially many places
    while pending:
        operands = computed_from(pending.pop())
        if operands is None:
            return True
        for operand in operands:
            if operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return False
