"""mark_pipelines: the statements of a loop that runs as a software pipeline are put under marks with their numbers.

    for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
        with T.block("copy"): ...        →    with T.attr("", "pipeline_statement", 0): ...
        with T.block("sum"): ...              with T.attr("", "pipeline_statement", 1): ...

The annotations count the statements that the user wrote, before the start value of a reduction becomes one more.
Needs: nothing.  Leaves: marks that `software_pipeline` reads and removes.
"""

from __future__ import annotations

from loopwright.ir import (
    Allocate,
    AttrStmt,
    Block,
    BlockRealize,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    PrimFunc,
    Rewriter,
    SeqStmt,
    Stmt,
    any_statement,
    const,
    deep,
)
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.pipeline_marks import MARK, is_mark, is_pipeline


class _MarkPipelines(Rewriter):
    def visit_For(self, loop: For) -> Stmt:
        body = _marked(loop.body) if is_pipeline(loop) else loop.body
        return loop.with_(body=self.visit(body))


def _marked(body: Stmt) -> Stmt:
    """The body of such a loop with each of its statements under a mark."""
    if isinstance(body, SeqStmt):
        if all(is_mark(part) for part in body.seq):
            return body
        return SeqStmt(tuple([AttrStmt("", MARK, const(k), part) for k, part in enumerate(body.seq)]))
    if isinstance(body, BlockRealize):
        block: Block = body.block
        # The sequence inside a block without axes; a block that computes is one statement itself.
        if isinstance(_innermost(block.body), SeqStmt) and block.init is None:
            return body.with_(block=block.with_(body=_marked(block.body)))
        return AttrStmt("", MARK, const(0), body)
    if isinstance(body, (Allocate, DeclBuffer, LetStmt)) or (isinstance(body, AttrStmt) and not is_mark(body)):
        return body.with_(body=_marked(body.body))
    if isinstance(body, IfThenElse) and body.else_case is None:
        return body.with_(then_case=_marked(body.then_case))
    return body if is_mark(body) else AttrStmt("", MARK, const(0), body)


def _innermost(body: Stmt) -> Stmt:
    while True:
        if isinstance(body, (Allocate, DeclBuffer, LetStmt, AttrStmt)):
            body = body.body
        elif isinstance(body, BlockRealize) and body.block.init is None:
            body = body.block.body
        else:
            return body


@function_pass
@deep
def mark_pipelines(func: PrimFunc) -> PrimFunc:
    """The statements of a loop that runs as a software pipeline are put under marks with their numbers."""
    if not any_statement(func.body, lambda node: isinstance(node, For) and is_pipeline(node)):
        return func
    return func.with_(body=_MarkPipelines().visit(func.body))
