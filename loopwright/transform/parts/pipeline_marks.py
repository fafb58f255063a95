"""pipeline_marks: what `mark_pipelines` leaves on the statements of a software pipeline for `software_pipeline`."""

from __future__ import annotations

from typing import Final

from loopwright.ir import AttrStmt, Buffer, For, Stmt, Var

STAGE: Final = "software_pipeline_stage"
ORDER: Final = "software_pipeline_order"
ASYNC: Final = "software_pipeline_async_stages"
PREDICATED: Final = "software_pipeline_predicated"  # conditions in place of an epilogue
DOUBLE_BUFFER: Final = "double_buffer_scope"
MARK: Final = "pipeline_statement"


def is_pipeline(loop: For) -> bool:
    """Whether the loop's annotations ask for a software pipeline."""
    return STAGE in loop.annotations or ORDER in loop.annotations


def is_mark(statement: Stmt) -> bool:
    """Whether it is a statement under its mark."""
    return isinstance(statement, AttrStmt) and statement.attr_key == MARK


def marked_memory(mark: AttrStmt) -> Var | None:
    """The memory that a mark names, by its buffer or by its pointer."""
    return mark.node.data if isinstance(mark.node, Buffer) else mark.node if isinstance(mark.node, Var) else None
