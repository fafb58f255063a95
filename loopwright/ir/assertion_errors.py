"""assertion_errors: what a failed assertion says.

    AssertStmt(n == m, StringImm("n is m"))                                           AssertionFailed: … n is m
    AssertStmt(n == m, call_error("SizesDoNotFit", "n is %lld, m is %lld", n, m))     SizesDoNotFit: n is 2, m is 3

The plain text is what programs write; `call_error` names a class of `runtime/call_errors.py` and shows numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir.expr import Call, Expr, StringImm
from loopwright.ir.op import Op
from loopwright.ir.stmt import AssertStmt


def error_of(statement: AssertStmt) -> tuple[str, str, tuple[Expr, ...]]:
    """The class of the error, its text, and, where the text is a format, the integers in it."""
    message = statement.message
    if isinstance(message, Call) and isinstance(message.op, Op) and message.op.name == "tir.call_error":
        kind, text, *values = message.args
        assert isinstance(kind, StringImm)
        assert isinstance(text, StringImm)
        return kind.value, text.value if values else shown(text.value, ()), tuple(values)
    said = message.value if isinstance(message, StringImm) else "an assertion failed"
    return "AssertionFailed", f"assertion failed: {said}", ()


def shown(text: str, values: Sequence[object]) -> str:
    """A format with values in it, as text."""
    pieces = text.replace("%%", "\0").split("%lld")
    filled = "".join(piece + str(value) for piece, value in zip(pieces, [*values, ""], strict=False))
    return filled.replace("\0", "%")
