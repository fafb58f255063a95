"""hoist_shared_memory: memory that threads share is allocated once a launch, not once an iteration.

    tx = T.launch_thread("threadIdx.x", 32)        →    tx = T.launch_thread("threadIdx.x", 32)
    for k in range(8):                                  S = T.decl_buffer((32,), scope="shared")
        S = T.decl_buffer((32,), scope="shared")        for k in range(8):
        S[tx] = A[k, tx]                                    S[tx] = A[k, tx]
        …                                                   …

An allocation gives fresh memory each time it is reached; a launch has one place for it, which every iteration uses. A
thread may then overwrite what another one still reads of the iteration before: written like this, `insert_barriers`
sees it. A size that changes between iterations becomes the largest.

Needs: no blocks, threads launched by attributes (`launch_threads`).  Leaves: no memory that threads share allocated in
a loop of a launch.
"""

from __future__ import annotations

from loopwright.analysis.thread_axes import is_per, scope_of, tag_of
from loopwright.arith import Analyzer
from loopwright.ir import (
    Allocate,
    AttrStmt,
    Expr,
    For,
    IntImm,
    LetStmt,
    PrimFunc,
    Range,
    Stmt,
    Var,
    While,
    const,
    deep,
    uses_var,
)
from loopwright.ir.passes import function_pass
from loopwright.transform.errors import LoweringError
from loopwright.transform.parts.statements import StmtRewriter


class SharedSizeVaries(LoweringError, ValueError):
    """Memory that threads share is allocated in a loop, and how much changes between iterations without a known limit.

    For example:

        from loopwright.script import tir as T
        from loopwright.transform import hoist_shared_memory, lower_blocks, write_allocations

        @T.prim_func
        def f(A: T.Buffer(32), n: T.int32):
            tx = T.launch_thread("threadIdx.x", 32)
            for k in range(n):
                S = T.decl_buffer((k + 32,), scope="shared")
                S[tx] = A[tx]
                A[tx] = S[31 - tx]

        hoist_shared_memory(lower_blocks(write_allocations(f)))
    """

    code = "LW0717"

    def __init__(self, node: Allocate, extent: Expr) -> None:
        super().__init__(
            f"hoist_shared_memory: {node.buffer_var.name} needs {extent!r} elements, which changes between iterations",
            at=node,
            hint="allocate it outside the loop, as large as it ever has to be",
        )


class _Hoist(StmtRewriter):
    def __init__(self) -> None:
        self.depth = 0  # loops between the launch and here
        self.inner: set[Var] = set()  # what they, and lets among them, bind
        self.found: dict[Var, Allocate] = {}
        self.is_launched = False
        self.facts = Analyzer()

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if not tag_of(node):
            return self.rebuild(node)
        saved = self.depth, self.inner, self.found, self.is_launched
        self.depth, self.inner, self.found, self.is_launched = 0, set(), {}, True
        body = self.visit(node.body)
        for allocation in reversed(self.found.values()):
            body = allocation.with_(body=body)
        self.depth, self.inner, self.found, self.is_launched = saved
        return node.with_(body=body)

    def visit_For(self, loop: For) -> Stmt:
        with self.facts.bound(loop.loop_var, Range.from_min_extent(loop.min, loop.extent)):
            return self._inside(loop, loop.loop_var)

    def visit_While(self, loop: While) -> Stmt:
        return self._inside(loop, None)

    def visit_LetStmt(self, let: LetStmt) -> Stmt:
        self.inner.add(let.var)
        return self.rebuild(let)

    def _inside(self, loop: For | While, var: Var | None) -> Stmt:
        self.depth += 1
        if var is not None:
            self.inner.add(var)
        body = self.visit(loop.body)
        self.depth -= 1
        return loop.with_(body=body)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        body = self.visit(node.body)
        data = node.buffer_var
        if not self.is_launched or not self.depth or is_per(scope_of(data), "threadIdx.x") or data in self.found:
            return node.with_(body=body)
        extents = tuple([self._largest(node, extent) for extent in node.extents])
        condition = const(True) if uses_var(node.condition, self.inner.__contains__) else node.condition
        self.found[data] = node.with_(extents=extents, condition=condition)
        return body

    def _largest(self, node: Allocate, extent: Expr) -> Expr:
        if not uses_var(extent, self.inner.__contains__):
            return extent
        bound = self.facts.const_int_bound(extent).max_value
        if bound >= extent.dtype.max_value():
            raise SharedSizeVaries(node, extent)
        return IntImm(extent.dtype, max(bound, 0))


@function_pass
@deep
def hoist_shared_memory(func: PrimFunc) -> PrimFunc:
    """Memory that threads share is allocated once a launch, not once an iteration."""
    return func.with_(body=_Hoist().visit(func.body))
