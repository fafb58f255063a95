"""checked_places: kernels written as loops check the indices they read from data, and stop the call at a wrong one.

    at = checked_place(ib, "sparse_dense", "a column", column[place], size)

Kernels made of single elements (`te.compute`) cannot stop; who calls them checks their indices before
(`relay/index_checks.py`).
"""

from __future__ import annotations

from loopwright.ir import AssertStmt, Expr, Var, cast, logical_and
from loopwright.ir.ir_builder import IRBuilder
from loopwright.ir.machine_intrinsics import call_error
from loopwright.runtime.dtype import DataType

_WIDE = DataType("int64")


def checked_place(ib: IRBuilder, op: str, what: str, value: Expr, size: Expr, *, end: bool = False) -> Var:
    """`value` as an index of the type of `size`, once it is seen to lie in it; with `end`, it may be `size` as well."""
    limit = cast(size, _WIDE)
    given = ib.let("given", cast(value, _WIDE))
    last = given <= limit if end else given < limit
    text = f"{op}: {what} is %lld, and there are %lld".replace("%", "%%").replace("%%lld", "%lld")
    message = call_error("IndexOutOfRange", text, given, limit)
    condition = logical_and(given >= 0, last)
    ib.emit(lambda body: AssertStmt(condition, message, body))
    return ib.let("at", cast(given, size.dtype))
