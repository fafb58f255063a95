"""pipeline_marks: the statements of a loop that runs as a software pipeline keep their numbers through lowering.

    for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
        with T.block("copy"): ...        →    with T.attr("", "pipeline_statement", 0): ...
        with T.block("sum"): ...              with T.attr("", "pipeline_statement", 1): ...

The annotations count the statements that the user wrote. Until blocks are gone, a statement may become several (the
start value of a reduction is one more), so each is put under a mark when lowering begins. `software_pipeline` reads
and removes the marks.
"""

from __future__ import annotations

from typing import Final

from loopwright.ir import (
    Allocate,
    AttrStmt,
    Block,
    BlockRealize,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    const,
)

STAGE: Final = "software_pipeline_stage"
ORDER: Final = "software_pipeline_order"
ASYNC: Final = "software_pipeline_async_stages"
DOUBLE_BUFFER: Final = "double_buffer_scope"
MARK: Final = "pipeline_statement"


def is_pipeline(loop: For) -> bool:
    """Whether the loop's annotations ask for a software pipeline."""
    return STAGE in loop.annotations or ORDER in loop.annotations


def mark_statements(body: Stmt) -> Stmt:
    """The body of such a loop with each of its statements under a mark."""
    if isinstance(body, SeqStmt):
        if all(is_mark(part) for part in body.seq):
            return body
        return SeqStmt(tuple([AttrStmt("", MARK, const(k), part) for k, part in enumerate(body.seq)]))
    if isinstance(body, BlockRealize):
        block: Block = body.block
        # The sequence inside a block without axes; a block that computes is one statement itself.
        if isinstance(_innermost(block.body), SeqStmt) and block.init is None:
            return body.with_(block=block.with_(body=mark_statements(block.body)))
        return AttrStmt("", MARK, const(0), body)
    if isinstance(body, (Allocate, DeclBuffer, LetStmt)) or (isinstance(body, AttrStmt) and not is_mark(body)):
        return body.with_(body=mark_statements(body.body))
    if isinstance(body, IfThenElse) and body.else_case is None:
        return body.with_(then_case=mark_statements(body.then_case))
    return body if is_mark(body) else AttrStmt("", MARK, const(0), body)


def _innermost(body: Stmt) -> Stmt:
    while True:
        if isinstance(body, (Allocate, DeclBuffer, LetStmt, AttrStmt)):
            body = body.body
        elif isinstance(body, BlockRealize) and body.block.init is None:
            body = body.block.body
        else:
            return body


def is_mark(statement: Stmt) -> bool:
    """Whether it is a statement under its mark."""
    return isinstance(statement, AttrStmt) and statement.attr_key == MARK
