"""Unique names: of blocks without axes, which are known by their name alone, no two have the same one.

    with T.block("C"): C[i] = A[i]             →    with T.block("C"): C[i] = A[i]
    with T.block("C"): C[i] = C[i] + 1.0            with T.block("C_1"): C[i] = C[i] + 1.0

A handle of a block with axes holds the first of them, and survives every step. Other blocks have nothing else to be
known by, so a schedule gives them names of their own when it takes a program.
"""

from __future__ import annotations

from collections import Counter

from loopwright.ir import Block, Expr, Node, PrimFunc, Rewriter, deep, pre_order_visit


@deep
def with_unique_names(function: PrimFunc) -> PrimFunc:
    """The function with other names for blocks without axes that share one; itself where none do."""
    names: Counter[str] = Counter()
    nameless: Counter[str] = Counter()  # of blocks without axes

    def look(node: Node) -> bool:
        if isinstance(node, Block):
            names[node.name_hint] += 1
            nameless[node.name_hint] += not node.iter_vars
        return not isinstance(node, Expr)

    pre_order_visit(function.body, look)
    if max(nameless.values(), default=0) < 2:
        return function
    return function.with_(body=_Rename(set(names)).visit(function.body))


class _Rename(Rewriter):
    def __init__(self, used: set[str]) -> None:
        self.taken = used
        self.met: set[str] = set()

    def visit_Block(self, block: Block) -> Block:
        name, count = block.name_hint, 1
        if not block.iter_vars and name in self.met:
            while f"{block.name_hint or 'block'}_{count}" in self.taken:
                count += 1
            name = f"{block.name_hint or 'block'}_{count}"
        if not block.iter_vars:
            self.met.add(name)
        self.taken.add(name)
        return block.with_(name_hint=name, body=self.visit(block.body))

    def visit_Expr(self, expr: Expr) -> Expr:
        return expr
