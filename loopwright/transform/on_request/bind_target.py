"""bind_target: every function knows the machine it is compiled for.

    @T.prim_func                    →    @T.prim_func
    def main(...): ...                   def main(...):
                                             T.func_attr({"target": T.target("llvm")})

A function that names its target keeps it.
"""

from __future__ import annotations

from loopwright.ir import PrimFunc
from loopwright.ir.pass_context import PassInfo
from loopwright.ir.passes import Pass, PrimFuncPass
from loopwright.target import Target


def bind_target(target: Target | str) -> Pass:
    """A pass that gives every function without a target this one."""
    chosen = Target(target)

    def change(func: PrimFunc, mod: object, context: object) -> PrimFunc:
        return func if func.attrs.get("target") is not None else func.with_attr("target", chosen)

    return PrimFuncPass(change, PassInfo(0, "bind_target"))
