"""check_thread_extents: loops bound to one thread axis have one length.

The threads of a block are there for all loops of the kernel: an axis has as many threads as the first loop says, and a
second loop with another length would have threads without an iteration, or iterations without a thread.
"""

from __future__ import annotations

from loopwright.analysis.thread_axes import axis_of, has_threads, is_virtual_tag, tag_of
from loopwright.analysis.warp_roles import role_name_of, role_of
from loopwright.arith import Analyzer
from loopwright.ir import AttrStmt, Expr, For, IntImm, Node, PrimFunc, Stmt, Visitor, deep
from loopwright.runtime.errors import LoopwrightError

Bound = For | AttrStmt


class ThreadExtentMismatch(LoopwrightError, ValueError):
    """Two loops of one kernel are bound to the same thread axis, but have different numbers of iterations.

    An axis such as `threadIdx.x` has one length for the whole kernel (everything under the outermost bound loop). Split
    one of the loops so that the part that is bound has as many iterations as the other, or bind it to another axis.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer(64), B: T.Buffer(64)):
            for bx in T.thread_binding(1, thread="blockIdx.x"):
                for i in T.thread_binding(64, thread="threadIdx.x"):
                    A[i] = T.float32(1)
                for j in T.thread_binding(32, thread="threadIdx.x"):
                    B[j] = T.float32(2)

        loopwright.build(f)
    """

    code = "LW0833"

    def __init__(self, first: Bound, second: Bound) -> None:
        one, other = axis_of(first), axis_of(second)
        super().__init__(
            f"loops {one.var.name} and {other.var.name} are both bound to {one.tag}, but have {one.extent} and "
            f"{other.extent} iterations",
            at=second,
            why=f"{one.tag} has one number of threads in the whole kernel",
            hint=extent_hint(first, second),
            fields={"axis": one.tag, "extents": (str(one.extent), str(other.extent))},
        )


def extent_hint(first: Bound, second: Bound) -> str:
    """What a beginner can do about loops of different lengths on one axis."""
    one, other = axis_of(first), axis_of(second)
    if isinstance(one.extent, IntImm) and isinstance(other.extent, IntImm):
        small, large = sorted([one, other], key=lambda axis: axis.extent.value)  # type: ignore[attr-defined]
        return (
            f"split {large.var.name} into [None, {small.extent}] and bind its inner part, or bind {large.var.name} to "
            "another axis"
        )
    return "split one of them so that the bound parts are equally long, or bind it to another axis"


@deep
def find_mismatch_of_extents(root: Stmt, certain: bool = True) -> tuple[Bound, Bound] | None:
    """The first two loops of one kernel that are bound to one axis with different extents.

    Those that are `certain` to differ, that is; or those that are not known to be equal.
    """
    walk = _Walk(certain)
    walk.visit(root)
    return walk.found


def check_thread_extents(function: PrimFunc) -> None:
    """Raise ThreadExtentMismatch when an axis would have two lengths."""
    if has_threads(function.body):
        result = find_mismatch_of_extents(function.body)
        if result is not None:
            raise ThreadExtentMismatch(*result)


class _Walk(Visitor):
    def __init__(self, certain: bool) -> None:
        self.certain = certain
        self.known: dict[str, Bound] | None = None  # of the kernel around
        self.roles: dict[str, dict[str, Bound]] = {}  # of its roles
        self.found: tuple[Bound, Bound] | None = None

    def visit_For(self, loop: For) -> None:
        name = role_name_of(loop)
        if name is None:
            self._bound(loop)
        else:
            self._in_role(name, loop)

    def visit_AttrStmt(self, launch: AttrStmt) -> None:
        role = role_of(launch)
        if role is None:
            self._bound(launch)
        else:
            self._in_role(role.name, launch)

    def _in_role(self, name: str, node: Bound) -> None:
        """Each role has threads of its own."""
        around = self.known
        self.known = None if around is None else self.roles.setdefault(name, {})
        if isinstance(node, For):
            self._bound(node)
        else:
            self.visit(node.body)
        self.known = around

    def _bound(self, node: Bound) -> None:
        tag = tag_of(node)
        if not tag:
            self.visit(node.body)
            return
        outermost = self.known is None
        if self.known is None:
            self.known = {}
        if not is_virtual_tag(tag):
            other = self.known.setdefault(tag, node)
            if self.found is None and other is not node and self._differ(axis_of(other).extent, axis_of(node).extent):
                self.found = other, node
        self.visit(node.body)
        if outermost:
            self.known = None
            self.roles.clear()

    def _differ(self, one: Expr, other: Expr) -> bool:
        if isinstance(one, IntImm) and isinstance(other, IntImm):
            return one.value != other.value
        return not self.certain and not Analyzer().can_prove_equal(one, other)

    def visit_Expr(self, _: Node) -> None:
        """Expressions hold no loops."""

    visit_Buffer = visit_BufferRegion = visit_MatchBufferRegion = visit_IterVar = visit_Range = visit_Expr
