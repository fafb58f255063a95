"""scopes: where in a graph each expression is evaluated: in the innermost block that all its uses lie in.

A block is the body of a function, a branch of an if or the value of a clause. An expression that two branches use
belongs before the if.
"""

from __future__ import annotations

from loopwright.relay.adt import Match
from loopwright.relay.expr import Expr, Function, If
from loopwright.relay.visitor import parts, post_order


class Scope:
    """A block, and the one it lies in."""

    __slots__ = ("depth", "outer")

    def __init__(self, outer: Scope | None = None) -> None:
        self.outer = outer
        self.depth: int = 0 if outer is None else outer.depth + 1


def common(one: Scope, other: Scope) -> Scope:
    """The innermost block that both lie in."""
    while one is not other:
        if one.depth >= other.depth:
            assert one.outer is not None
            one = one.outer
        else:
            assert other.outer is not None
            other = other.outer
    return one


class Scopes:
    """The block of each expression below `root`, and the blocks that functions and branches are."""

    def __init__(self, root: Expr) -> None:
        self.of: dict[int, Scope] = {}
        self.used_elsewhere: set[int] = set()  # expressions that a block inside their own uses
        self.body: dict[int, Scope] = {}  # function → its block
        self.branches: dict[int, tuple[Scope, ...]] = {}  # if, match → their blocks
        self.root = Scope()
        self.of[id(root)] = self.root
        for expression in reversed(list(post_order(root))):
            own = self.of[id(expression)]
            if isinstance(expression, Function):
                inner = self.body[id(expression)] = Scope(own)
                for part in (*expression.params, expression.body):
                    self._use(part, inner)
            elif isinstance(expression, If):
                pair = self.branches[id(expression)] = (Scope(own), Scope(own))
                self._use(expression.cond, own)
                self._use(expression.true_branch, pair[0])
                self._use(expression.false_branch, pair[1])
            elif isinstance(expression, Match):
                self._use(expression.data, own)
                self.branches[id(expression)] = tuple(Scope(own) for _ in expression.clauses)
                for clause, inner in zip(expression.clauses, self.branches[id(expression)], strict=True):
                    for part in (*clause.lhs.variables(), clause.rhs):
                        self._use(part, inner)
            else:
                for part in parts(expression):
                    self._use(part, own)

    def _use(self, part: Expr, where: Scope) -> None:
        known = self.of.get(id(part))
        if known is None:
            self.of[id(part)] = where
            return
        if known is not where:
            self.used_elsewhere.add(id(part))
            self.of[id(part)] = common(known, where)
