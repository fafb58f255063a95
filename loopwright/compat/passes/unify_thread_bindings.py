"""unify_thread_bindings: in one kernel, all loops bound to one thread axis become one, around the kernel.

    for i in T.thread_binding(8, "blockIdx.x"):           →    for bx in T.thread_binding(8, "blockIdx.x"):
        for j in T.thread_binding(4, "threadIdx.x"): ...           for tx in T.thread_binding(4, "threadIdx.x"):
        for k in T.thread_binding(4, "threadIdx.x"): ...               ...
                                                                       ...

Launches by attribute become loops too. A loop with annotations leaves a loop of one iteration that keeps them.
"""

from __future__ import annotations

from loopwright.analysis.thread_axes import axis_of, tag_of
from loopwright.arith import Analyzer
from loopwright.compat.passes.named_pass import named_pass
from loopwright.ir import (
    AttrStmt,
    Expr,
    For,
    ForKind,
    IterType,
    IterVar,
    Node,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
    cast,
    const,
    deep,
    is_zero,
)
from loopwright.runtime.errors import LoopwrightError
from loopwright.transform.parts.folding import FoldingRewriter
from loopwright.transform.parts.statements import flat_seq


class ThreadExtentsDiffer(LoopwrightError, ValueError):
    """Loops of one kernel are bound to one thread axis, but have different extents.

    For example:

        from loopwright import tir
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((8,)), B: T.Buffer((4,))):
            for b in T.thread_binding(1, "blockIdx.x"):
                for i in T.thread_binding(8, "threadIdx.x"):
                    A[i] = T.float32(0)
                for i in T.thread_binding(4, "threadIdx.x"):
                    B[i] = T.float32(0)

        tir.transform.UnifyThreadBinding()(f)
    """

    code = "LW0747"

    def __init__(self, tag: str, first: Expr, second: Expr, at: Node) -> None:
        super().__init__(
            f"loops of one kernel are bound to {tag} with the extents {first} and {second}",
            at=at,
            hint="bind loops of one extent, or guard the shorter one",
        )


class _Unify(FoldingRewriter):
    def __init__(self) -> None:
        super().__init__()
        self.launched: dict[str, For] | None = None  # of the kernel around, by tag, in order
        self.facts = Analyzer()

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        return flat_seq(node, self.visit)

    def visit_For(self, loop: For) -> Stmt:
        if loop.kind is ForKind.THREAD_BINDING and tag_of(loop):
            return self._bound(loop, loop.min)
        return self.rebuild(loop)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if tag_of(node):
            return self._bound(node, const(0))
        return super().visit_AttrStmt(node)

    def _bound(self, node: For | AttrStmt, low: Expr) -> Stmt:
        is_outermost = self.launched is None
        launched = self.launched = {} if self.launched is None else self.launched
        tag, old, extent = axis_of(node)[0], axis_of(node).var, self.visit(axis_of(node).extent)
        first = launched.get(tag)
        if first is None:
            var = Var(tag.replace(".", "_"), old.dtype)
            axis = IterVar(None, Var("", old.dtype), IterType.ThreadIndex, tag)
            first = launched[tag] = For(var, 0, extent, ForKind.THREAD_BINDING, node, axis)
        elif not self.facts.can_prove_equal(first.extent, cast(extent, first.extent.dtype)):
            raise ThreadExtentsDiffer(tag, first.extent, extent, node)
        value = cast(first.loop_var, old.dtype)
        low = self.visit(low)
        self.values[old] = value if is_zero(low) else value + low
        body: Stmt = self.visit(node.body)
        if isinstance(node, For) and node.annotations:
            body = For(Var("var", old.dtype), 0, 1, ForKind.SERIAL, body, None, node.annotations)
        if is_outermost:
            self.launched = None
            for loop in reversed(launched.values()):
                body = loop.with_(body=body)
        return body


@named_pass("UnifyThreadBinding", skips_te=True)
@deep
def unify_thread_bindings(func: PrimFunc) -> PrimFunc:
    """In one kernel, all loops bound to one thread axis become one, around the kernel."""
    return func.with_(body=_Unify().visit(func.body))
