"""kernel_checks: passes that change nothing and raise where a program for a device would not run.

`verify_memory`: memory of the device is touched inside launched threads only. `verify_vtcm_limit`: what is allocated in
VTCM at a time stays within a limit.
"""

from __future__ import annotations

from loopwright.analysis.queries import require_threads
from loopwright.analysis.thread_axes import scope_of
from loopwright.compat.passes.named_pass import named_pass
from loopwright.ir import Allocate, IntImm, IRModule, PrimFunc, Stmt, Visitor
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.passes import ModulePass, Pass
from loopwright.runtime.errors import LoopwrightError
from loopwright.target import Target


class TooMuchMemory(LoopwrightError, ValueError):
    """A function allocates more of a memory than there is.

    For example:

        from loopwright import tir
        from loopwright.script import tir as T

        @T.prim_func
        def f():
            A = T.decl_buffer((64,), "int8", scope="global.vtcm")
            A[0] = T.int8(0)

        tir.transform.VerifyVTCMLimit(32)(f)
    """

    code = "LW0749"

    def __init__(self, name: str, scope: str, needed: int, limit: int) -> None:
        super().__init__(f"{name} allocates {needed} bytes in {scope} at a time, and there are {limit}")


@named_pass("VerifyMemory")
def verify_memory(func: PrimFunc) -> PrimFunc:
    """Raise where memory of the device is touched outside launched threads."""
    require_threads(func)
    return func


class _Peak(Visitor):
    """Visits return how many bytes are allocated at a time."""

    def visit_Allocate(self, node: Allocate) -> int:
        inner: int = self.visit(node.body)
        if not scope_of(node.buffer_var).startswith("global.vtcm"):
            return inner
        size = node.dtype.nbytes
        for extent in node.extents:
            size *= extent.value if isinstance(extent, IntImm) else 1
        return inner + size

    def visit_Stmt(self, node: Stmt) -> int:
        return max([self.visit(child) for child in node.children() if isinstance(child, Stmt)], default=0)


def verify_vtcm_limit(limit: int | Target | None = None) -> Pass:
    """A pass that raises where a function allocates more than `limit` bytes in VTCM at a time; 0 is no limit."""

    def check(mod: IRModule, context: PassContext) -> IRModule:
        most = limit
        if most is None:
            most = int(context.config.get("tir.vtcm_capacity", 0))
        elif isinstance(most, Target):
            most = int(str(most.attrs.get("vtcm-capacity", 0)))
        for func in mod.functions.values():
            needed = _Peak().visit(func.body) if most > 0 and isinstance(func, PrimFunc) else 0
            if needed > most:
                raise TooMuchMemory(func.name, "global.vtcm", needed, most)
        return mod

    return ModulePass(check, PassInfo(0, "tir.VerifyVTCMLimit"))
