"""instrument_profile: loops are enclosed in intrinsics that start and end the measurement of a region.

    for i in range(8): ...           →    T.start_profile_intrinsic(1)
    for j in range(8): ...                for i in range(8): ...
                                          T.end_profile_intrinsic(1)
                                          ...

A loop's number counts all loops of the function, outermost first, after the function's own. Settings say which loops
are measured: those beside other loops (`tir.instr_siblings`), or all down to a depth (`tir.lwp_max_depth`), but none
with fewer loops inside than `tir.lwp_min_height`, and none inside a parallel loop. A target that has no code for the
intrinsics refuses them when it is built for.
"""

from __future__ import annotations

from typing import NamedTuple

from loopwright.ir import Evaluate, For, ForKind, IRModule, PrimFunc, SeqStmt, Stmt, deep, seq
from loopwright.ir.machine_intrinsics import end_profile_intrinsic, start_profile_intrinsic
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.passes import ModulePass
from loopwright.transform.parts.statements import StmtRewriter


class _Settings(NamedTuple):
    has_siblings_only: bool
    max_depth: int
    min_height: int


class _Instrument(StmtRewriter):
    def __init__(self, settings: _Settings, first: int) -> None:
        self.settings = settings
        self.next = first
        self.depth = 0
        self.is_parallel = False
        self.has_siblings = False

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        has_siblings = len([part for part in node.seq if _holds_loop(part)]) > 1
        parts = []
        for part in node.seq:
            self.has_siblings = has_siblings
            parts.append(self.visit(part))
        return seq(parts)

    def visit_For(self, loop: For) -> Stmt:
        number, has_siblings, was_parallel = self.next, self.has_siblings, self.is_parallel
        self.next += 1
        self.depth += 1
        self.has_siblings = False
        self.is_parallel = was_parallel or loop.kind is ForKind.PARALLEL
        new = loop.with_(body=self.visit(loop.body))
        self.depth -= 1
        self.is_parallel = was_parallel
        if was_parallel or _height(loop) < self.settings.min_height:
            return new
        if self.settings.has_siblings_only:
            is_wanted = has_siblings
        else:
            is_wanted = not self.settings.max_depth or self.depth < self.settings.max_depth
        return _enclosed(number, new) if is_wanted else new


def _holds_loop(part: Stmt) -> bool:
    return isinstance(part, For) or any([_holds_loop(child) for child in part.children() if isinstance(child, Stmt)])


def _height(part: Stmt) -> int:
    """How many loops are nested inside a loop."""
    inner = [_height(child) for child in part.children() if isinstance(child, Stmt)]
    below = [_height(child) + isinstance(child, For) for child in part.children() if isinstance(child, Stmt)]
    return max([*inner, *below], default=0)


def _enclosed(number: int, body: Stmt) -> Stmt:
    return seq([Evaluate(start_profile_intrinsic(number)), body, Evaluate(end_profile_intrinsic(number))])


@deep
def _instrument(mod: IRModule, context: PassContext) -> IRModule:
    settings = _Settings(
        bool(context.setting("tir.instr_siblings")),
        int(context.setting("tir.lwp_max_depth")),
        int(context.setting("tir.lwp_min_height")),
    )
    number = 0

    def change(func: PrimFunc) -> PrimFunc:
        nonlocal number
        if not isinstance(func, PrimFunc):
            return func
        own = number
        walk = _Instrument(settings, own + 1)
        body = walk.visit(func.body)
        number = walk.next
        return func.with_(body=body if context.setting("tir.lwp_disable_func_prof") else _enclosed(own, body))

    return mod.map_functions(change)


instrument_profile = ModulePass(_instrument, PassInfo(0, "tir.InstrumentProfileIntrinsics"))
