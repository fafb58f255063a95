"""runs_in_lockstep: of vectorized loops in each other, the innermost one is the vector; those around it run serially.

for i in T.vectorized(4):            one i after the other
    for j in T.vectorized(8):        all j together
        …
"""

from __future__ import annotations

from loopwright.ir import For, ForKind, any_statement


def runs_in_lockstep(loop: For) -> bool:
    """Whether the iterations of a loop are the lanes of vectors."""
    if loop.kind is not ForKind.VECTORIZED:
        return False
    return not any_statement(loop.body, lambda node: isinstance(node, For) and node.kind is ForKind.VECTORIZED)
