"""InferType: every expression of a module learns its type (`checked_type`)."""

from __future__ import annotations

from typing import Final

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.passes import Pass
from loopwright.ir.types import Type
from loopwright.relay.expr import Expr, Function
from loopwright.relay.infer_type import infer, infer_module


class _InferType(Pass):
    """Find the types; the graphs themselves stay what they are."""

    def __call__(self, program: object) -> object:  # type: ignore[override]
        if isinstance(program, Function):
            return self._run(IRModule({"main": program}))["main"]  # type: ignore[dict-item]
        return super().__call__(program)  # type: ignore[call-overload]

    def transform(self, mod: IRModule, context: PassContext) -> IRModule:
        return infer_module(mod)


def InferTypeLocal(expr: Expr) -> Type:
    """The type of one expression, found from those of its parts; they and it know their types afterwards."""
    return infer(expr)


_PASS: Final = _InferType(PassInfo(0, "InferType"))


def InferType() -> Pass:
    """Find the type of everything."""
    return _PASS
