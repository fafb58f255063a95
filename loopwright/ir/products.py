"""Products of sizes: Python integers as long as they are numbers, and 64 bits where 32 may not hold them.

product([4, n, 2])            n * 8 is 4 * n * 2, of n's type
product([65536, 65536])       T.int64(4294967296)
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from loopwright.ir.expr import Expr, IntImm, as_expr, const
from loopwright.ir.operators import cast
from loopwright.runtime.dtype import INT32, INT64, DataType
from loopwright.runtime.errors import LoopwrightError


class TooManyElements(LoopwrightError, OverflowError):
    """The product of some sizes does not fit 64 bits, which is as many elements as a program can count.

    For example:

        from loopwright import te, tir

        A = te.placeholder((1 << 40, 1 << 40), "int8", name="A")
        sch = tir.Schedule(te.create_prim_func([A, te.compute(A.shape, lambda i, j: A[i, j], name="B")]))
        sch.fuse(*sch.get_loops("B"))
    """

    code = "LW0569"

    def __init__(self, sizes: Iterable[object]) -> None:
        shown = " × ".join([str(size) for size in sizes])
        super().__init__(
            f"{shown} is more than 64 bits can count",
            hint="sizes are multiplied exactly: the result has to fit int64, so use smaller ones",
        )


def product(sizes: Iterable[object], dtype: str | DataType = INT32) -> Expr:
    """The product of sizes, at least of type `dtype`; int64 where a literal factor needs it."""
    factors = [as_expr(size) for size in sizes]
    literal = prod([factor.value for factor in factors if isinstance(factor, IntImm)])
    widest = DataType(dtype)
    for factor in factors:
        if factor.dtype.bits > widest.bits:
            widest = factor.dtype
    if not widest.lowest <= literal <= widest.highest:
        widest = INT64
    if literal == 0 or len(factors) == 0:
        return const(literal, widest)
    if not widest.lowest <= literal <= widest.highest:
        raise TooManyElements(factors)
    total = cast(factors[0], widest)
    for factor in factors[1:]:
        total = total * cast(factor, widest)
    return total
