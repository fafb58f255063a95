"""byoc: marks parts of a graph for the compiler "ccompiler", to try partitioning."""

from __future__ import annotations

from loopwright.relay.expr import Call, Expr
from loopwright.relay.op.registry import Op, make
from loopwright.relay.transform.partition.annotate_target import BEGIN, END
from loopwright.relay.visitor import ExprMutator

_INSIDE = ("add", "subtract", "multiply")


class CcompilerAnnotator(ExprMutator):
    """Each product and the sums and differences that it is made of become one region; the rest stays as it is."""

    compiler = "ccompiler"

    def visit_call(self, call: Call) -> Expr:
        if not isinstance(call.op, Op) or call.op.name != "multiply":
            return super().visit_call(call)
        return make(END, self._inside(call), compiler=self.compiler)

    def _inside(self, call: Call) -> Expr:
        args = []
        for arg in call.args:
            if isinstance(arg, Call) and isinstance(arg.op, Op) and arg.op.name in _INSIDE:
                args.append(self._inside(arg))
            else:
                args.append(make(BEGIN, self.visit(arg), compiler=self.compiler))
        return Call(call.op, args, call.attrs, call.type_args, call.span)


__all__ = ["CcompilerAnnotator"]
