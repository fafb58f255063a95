"""runs_in_lockstep: of vectorized loops in each other, the innermost one is the vector; those around it run serially.

for i in T.vectorized(4):            one i after the other
    for j in T.vectorized(8):        all j together
        …
"""

from __future__ import annotations

from loopwright.ir import For, ForKind, Node, Stmt, pre_order_visit


def runs_in_lockstep(loop: For) -> bool:
    """Whether the iterations of a loop are the lanes of vectors."""
    if loop.kind is not ForKind.VECTORIZED:
        return False
    innermost = True

    def look(node: Node) -> bool:
        nonlocal innermost
        innermost = innermost and not (isinstance(node, For) and node.kind is ForKind.VECTORIZED)
        return innermost and isinstance(node, Stmt)

    pre_order_visit(loop.body, look)
    return innermost
