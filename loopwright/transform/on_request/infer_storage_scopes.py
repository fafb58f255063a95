"""infer_storage_scopes: memory that a kernel allocates without a scope is that of a thread, or of a block.

    for bx in T.thread_binding(4, thread="blockIdx.x"):              →    …
        B = T.decl_buffer((32,))                                              B = T.decl_buffer((32,), scope="shared")
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            C = T.decl_buffer((4,))                                               C = T.decl_buffer((4,), scope="local")

Global memory under a bound loop is fresh in each iteration. Under a loop over threads with none of that kind inside it
is a thread's own: "local". Under a loop over blocks alone it is the block's: "shared". What lies between, under a loop
over some threads and around one over others, keeps its scope. In a vector each lane has memory of its own, whatever its
scope, and one thread runs them all: "local".

Needs: allocations as statements, bound loops.  Leaves: the same program, but for scopes.
"""

from __future__ import annotations

from typing import Final

from loopwright.analysis.thread_axes import has_threads, is_block_tag, is_thread_loop, scope_of, tag_of
from loopwright.ir import (
    Allocate,
    AttrStmt,
    For,
    ForKind,
    PointerType,
    PrimFunc,
    Stmt,
    Var,
    any_statement,
    deep,
    substitute,
)
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.statements import StmtRewriter

_SHARED: Final = ("shared", "shared.dyn")


class _Infer(StmtRewriter):
    def __init__(self) -> None:
        self.tags: list[str] = []  # of the bound loops around
        self.lanes = 0  # vectorized loops around

    def _bound(self, node: For | AttrStmt) -> Stmt:
        tag = tag_of(node)
        is_vector = isinstance(node, For) and node.kind is ForKind.VECTORIZED
        self.tags += [tag] if tag else []
        self.lanes += is_vector
        result: Stmt = self.rebuild(node)
        self.lanes -= is_vector
        self.tags = self.tags[:-1] if tag else self.tags
        return result

    visit_For = visit_AttrStmt = _bound

    def visit_Allocate(self, node: Allocate) -> Stmt:
        scope = self._scope(node)
        annotation = node.buffer_var.type_annotation
        if scope and isinstance(annotation, PointerType):
            var = Var(node.buffer_var.name, PointerType(annotation.element_type, scope))
            node = node.with_(buffer_var=var, body=substitute(node.body, {node.buffer_var: var}))
        return self.rebuild(node)

    def _scope(self, node: Allocate) -> str:
        given = scope_of(node.buffer_var)
        if not self.tags or given not in ("global", *_SHARED):
            return ""
        if self.lanes:
            return "local"
        if given in _SHARED:
            return ""
        if all(map(is_block_tag, self.tags)):
            return "shared"
        return "" if any_statement(node.body, is_thread_loop) else "local"


@function_pass
@deep
def infer_storage_scopes(func: PrimFunc) -> PrimFunc:
    """Memory that a kernel allocates without a scope is that of a thread, or of a block."""
    return func.with_(body=_Infer().visit(func.body)) if has_threads(func.body) else func
