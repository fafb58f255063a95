"""specialize_warps: the parts of a loop's iterations become the work of different warps, each at its own speed.

    tx = T.launch_thread("threadIdx.x", 160)             →    tx = T.launch_thread("threadIdx.x", 160)
    for i in T.serial(n, {"warp_role_stages": 4}):            S = T.decl_buffer((4, 256), scope="shared")
        S = T.decl_buffer((256,), scope="shared")             …             # mbarriers: full and empty, of 4 slots
        with T.attr("load", "warp_role", 32):                 if tx < 32:
            if tx < 32:                                           for i in range(n):
                S[…] = A[…]                                           wait until slot i % 4 is empty
        with T.attr("add", "warp_role", 128):                         S[i % 4, …] = A[…], by a bulk copy
            if tx >= 32:                                              say that it is full
                … = S[…]                                      else:
                                                                  for i in range(n):
                                                                      wait until slot i % 4 is full
                                                                      … = S[i % 4, …]
                                                                      say that it is empty

Memory that a role fills and others read is one for each of so many iterations, and handed on by barriers in memory
(mbarriers): a reader waits before its first access until the writer has gone on behind its last one, and the writer
waits until all readers of the iteration before in that slot have. What one role alone uses is its own. So every read
comes after its write, and every overwrite after the reads before it, as in the order of the text; other memory that
two roles touch, one of them writing, is refused. Every wait is for something that comes earlier in the order of the
text, so that there is no deadlock: whatever has not happened yet, what comes first of it waits for nothing.

A copy from global memory of what lies side by side becomes a bulk copy, which no thread waits for: it arrives at the
barrier by itself. So does a box of a tensor that one thread copies. Threads of one role meet at barriers of their own
(`insert_barriers` puts them). What the roles of a nest do is in `transform/warp_roles`.

Needs: no blocks, threads launched by attributes (`launch_threads`).  Leaves: no loop of roles. For GPUs that have
barriers in memory.
"""

from __future__ import annotations

from loopwright.analysis.thread_axes import axis_of, is_thread_tag, is_virtual_tag, tag_of
from loopwright.analysis.warp_roles import STAGES, has_roles, role_of, stages_of
from loopwright.ir import AttrStmt, Expr, For, LetStmt, PrimFunc, Rewriter, Stmt, deep
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.hoist_guards import hoist_guards
from loopwright.transform.warp_roles import CannotSpecialize, Launch, in_kernel


class _Specialize(Rewriter):
    """Finds the loops of roles."""

    def __init__(self, may_alias: bool) -> None:
        self.may_alias = may_alias
        self.launch: Launch | None = None

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        tag = tag_of(node)
        if tag and not is_virtual_tag(tag):
            return self._launched(node)
        if role_of(node) is not None:
            raise CannotSpecialize("a role stands outside a loop of roles", node, f"annotate the loop with {STAGES}")
        return self.rebuild(node)

    def _launched(self, node: AttrStmt) -> Stmt:
        around = self.launch
        launch = self.launch = around or Launch(node)
        if is_thread_tag(tag_of(node)):
            launch.threads.append(node)
        is_last = not (isinstance(node.body, AttrStmt) and tag_of(node.body))
        if is_last and has_roles(node.body):
            body = hoist_guards(node.body, axis_of(launch.threads[0]).var) if launch.threads else node.body
            result: Stmt = node.with_(body=in_kernel(body, launch, self.may_alias))
        else:
            result = self.rebuild(node)
        self.launch = around
        if around is None:
            for var, value in reversed(launch.maps):
                result = LetStmt(var, value, result)
        return result

    def visit_For(self, loop: For) -> Stmt:
        if stages_of(loop) is not None and has_roles(loop.body):
            raise CannotSpecialize("no threads are launched around the loop of roles", loop, "run launch_threads first")
        return self.rebuild(loop)

    def visit_Expr(self, expr: Expr) -> Expr:
        return expr


@function_pass
@deep
def specialize_warps(func: PrimFunc) -> PrimFunc:
    """The parts of a loop's iterations become the work of different warps, each at its own speed."""
    if not has_roles(func.body):
        return func
    return func.with_(body=_Specialize(not func.attrs.get("tir.noalias", True)).visit(func.body))
