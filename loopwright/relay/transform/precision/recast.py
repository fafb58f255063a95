"""recast: convolutions (and other operators) computed in another element type, and converted back after them.

    recast(nn.conv2d(%x, %w), "int8", "int32")    →    nn.conv2d(cast(%x, "int8"), cast(%w, "int8"), out_dtype="int32")

What the operator returned before comes back by a cast, where that differs. Operators are counted in the order in which
they are computed; `skip_layers` leaves some as they are, a negative number counting from the last.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir.types import TupleType
from loopwright.relay.analysis.operators import count_layers
from loopwright.relay.expr import Call, Expr, Function, Tuple
from loopwright.relay.infer_type import infer
from loopwright.relay.op.registry import Op, make
from loopwright.relay.types import TensorType
from loopwright.relay.visitor import ExprMutator


class _Recast(ExprMutator):
    def __init__(self, dtype: str, out_dtype: str, ops: Sequence[str], skipped: set[int]) -> None:
        super().__init__()
        self.dtype = dtype
        self.out_dtype = out_dtype
        self.ops = tuple(ops)
        self.skipped = skipped
        self.count = 0

    def visit_call(self, call: Call) -> Expr:
        if not isinstance(call.op, Op) or call.op.name not in self.ops:
            return super().visit_call(call)
        number, args = self.count, [self.visit(arg) for arg in call.args]
        self.count += 1
        if number in self.skipped:
            return Call(call.op, args, call.attrs, call.type_args, call.span)
        args = [self._converted(arg) for arg in args]
        has_own = "out_dtype" in call.attrs
        attrs = call.attrs.with_(out_dtype=self.out_dtype) if has_own else call.attrs
        result = Call(call.op, args, attrs, (), call.span)
        of = call.checked_type
        if not isinstance(of, TensorType) or of.dtype == (self.out_dtype if has_own else self.dtype):
            return result
        return make("cast", result, dtype=str(of.dtype))

    def _converted(self, arg: Expr) -> Expr:
        of = infer(arg)
        if isinstance(of, TupleType) and isinstance(arg, Tuple):
            return Tuple([self._converted(field) for field in arg.fields])
        return make("cast", arg, dtype=self.dtype)


def recast(
    expr: Expr,
    dtype: str,
    out_dtype: str,
    ops: Sequence[str] | None = None,
    skip_layers: Sequence[int] | None = None,
) -> Expr:
    """The expression with `ops` (by default nn.conv2d) on elements of `dtype`, accumulating `out_dtype`."""
    names = list(ops) if ops is not None else ["nn.conv2d"]
    infer(expr)
    layers = count_layers(expr, names)
    skipped = {number % layers for number in skip_layers or ()} if layers else set()
    result = _Recast(dtype, out_dtype, names, skipped).visit(expr)
    infer(result)
    return Function(result.params, result.body) if isinstance(result, Function) else result
