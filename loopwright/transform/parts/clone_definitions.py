"""clone_definitions: a copy of a statement whose own variables and buffers are new.

A pass that writes a statement twice must not define one variable twice: passes, printer and evaluator may rely on each
definition having one place.
"""

from __future__ import annotations

from typing import TypeVar

from loopwright.ir import Stmt, deep
from loopwright.ir.clone import Cloner

S = TypeVar("S", bound=Stmt)


@deep
def clone_definitions(statement: S) -> S:
    """A copy that defines variables and buffers of its own; the same object when it defines none."""
    result: S = Cloner().visit(statement)
    return result
