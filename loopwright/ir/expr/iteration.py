"""Ranges and the variables that run over them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from loopwright.ir.expr.base import Expr, OperandMismatch
from loopwright.ir.expr.literals import IntImm, Var, as_expr, const
from loopwright.ir.expr.numpy_calls import answer_numpy
from loopwright.ir.node import Node, node
from loopwright.runtime.dtype import INT32, DataType
from loopwright.runtime.errors import LoopwrightError


@node
class Range(Node):
    """The integers from `min` to `min + extent - 1`. `Range(n)` starts at 0; `Range(begin, end)` omits `end`."""

    min: Expr
    extent: Expr

    def __init__(self, begin: object, end: object = None, span: object = None) -> None:
        set_field = object.__setattr__
        if end is None:
            low, extent = const(0), as_expr(begin)
        else:
            low, extent = as_expr(begin), as_expr(end)
            if not (isinstance(low, IntImm) and low.value == 0 and low.dtype is extent.dtype):
                extent = extent - low
        if end is None and extent.dtype is not INT32:
            low = const(0, extent.dtype)
        set_field(self, "min", low)
        set_field(self, "extent", extent)
        set_field(self, "span", span)

    @staticmethod
    def from_min_extent(min: object, extent: object, span: object = None) -> Range:
        """The range of `extent` integers from `min` on."""
        return Range._make(min, extent, span=span)


class IterType(IntEnum):
    """What an iteration variable stands for; the numbers are those users' scripts know."""

    DataPar = 0
    ThreadIndex = 1
    CommReduce = 2
    Ordered = 3
    Opaque = 4
    Unrolled = 5
    Vectorized = 6
    Parallelized = 7
    Tensorized = 8


@node(binds="var")
class IterVar(Node):
    """An iteration variable: `var` runs over `dom`. Arithmetic on it is arithmetic on `var`."""

    dom: Range | None
    var: Var
    iter_type: IterType
    thread_tag: str = ""

    DataPar = IterType.DataPar
    ThreadIndex = IterType.ThreadIndex
    CommReduce = IterType.CommReduce
    Ordered = IterType.Ordered
    Opaque = IterType.Opaque
    Unrolled = IterType.Unrolled
    Vectorized = IterType.Vectorized
    Parallelized = IterType.Parallelized
    Tensorized = IterType.Tensorized

    def __init__(
        self, dom: object, var: Var | str, iter_type: int | IterType, thread_tag: str = "", span: object = None
    ) -> None:
        if dom is not None and not isinstance(dom, Range):
            if not isinstance(dom, Sequence) or len(dom) != 2:
                raise LoopwrightError(f"IterVar: the domain must be a Range or (begin, end), got {dom!r}")
            dom = Range(dom[0], dom[1])
        if isinstance(var, str):
            var = Var(var, dom.extent.dtype if dom is not None else INT32)
        elif dom is not None and var.dtype is not dom.extent.dtype:
            raise OperandMismatch("IterVar", var, dom.extent)
        set_field = object.__setattr__
        set_field(self, "dom", dom)
        set_field(self, "var", var)
        set_field(self, "iter_type", IterType(iter_type))
        set_field(self, "thread_tag", thread_tag)
        set_field(self, "span", span)

    def as_expr(self) -> Expr:
        return self.var

    __array_ufunc__ = answer_numpy

    @property
    def dtype(self) -> DataType:
        return self.var.dtype

    def astype(self, dtype: str | DataType) -> Expr:
        return self.var.astype(dtype)

    # Written out: `@node` would otherwise keep the identity of Node, and `k == 0` would quietly be False.
    def __eq__(self, other: object) -> Any:
        return self.var.__eq__(other)

    def __ne__(self, other: object) -> Any:
        return self.var.__ne__(other)

    __hash__ = Node.__hash__


def _forward_operators() -> None:
    for name in (
        "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow lshift rlshift rshift "
        "rrshift and rand or ror xor rxor lt le gt ge neg pos abs invert"
    ).split():
        dunder = f"__{name}__"

        def method(self: IterVar, *other: object, _dunder: str = dunder) -> Expr:
            result: Expr = getattr(self.var, _dunder)(*other)
            return result

        setattr(IterVar, dunder, method)


_forward_operators()
