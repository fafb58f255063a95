"""Where each value of a graph stands: in the innermost block that holds all its uses.

    if (%c) { f(%0) } else { g(%0) }        %0 is written before the if

Blocks are function bodies, branches and what follows a `let`. A graph binding (`%0 = …;`) only gives a value a name, so
writing it further out changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self, TypeVar

from loopwright.ir.expr import GlobalVar
from loopwright.relay.adt import Constructor, Match
from loopwright.relay.expr import Call, Constant, Expr, Function, If, Let, Var
from loopwright.relay.op.registry import Op
from loopwright.relay.visitor import parts, post_order


class Scope:
    """A block, and the one it lies in."""

    __slots__ = ("depth", "parent")

    def __init__(self, parent: Self | None = None) -> None:
        self.parent: Self | None = parent
        self.depth: int = 0 if parent is None else parent.depth + 1


S = TypeVar("S", bound=Scope)


def common_scope(one: S, other: S) -> S:
    """The innermost block that holds both."""
    while one is not other:
        if one.depth < other.depth:
            one, other = other, one
        assert one.parent is not None  # all blocks lie in the top one
        one = one.parent
    return one


class Block(Scope):
    """Values written one after the other, and last `tail`, the value of the block.

    Where the tail is a `let` that belongs to this block alone, `next` is the block that sees its variable.
    """

    __slots__ = ("next", "nodes", "tail")

    def __init__(self, parent: Block | None, tail: Expr) -> None:
        super().__init__(parent)
        self.tail = tail
        self.nodes: list[Expr] = []
        self.next: Block | None = None


class Layout:
    """The blocks of a graph."""

    def __init__(self, root: Expr) -> None:
        self.top = Block(None, root)
        self.inside: dict[Expr, list[Block]] = {}  # an if, a function or a let in the midst → its blocks
        self.in_place: set[Expr] = set()  # values written where they are used, as they are the end of a block
        self._homes: dict[Expr, Block] = {}
        self._uses: dict[Expr, int] = {}
        self.order = list(_in_order(root))
        self._lay_out(root)

    def _lay_out(self, root: Expr) -> None:
        self._use(root, self.top)
        for expression in reversed(self.order):  # users before what they use
            if not is_leaf(expression):
                self._enter(expression, self._homes[expression])
        for expression in self.order:
            if not is_leaf(expression) and expression not in self.in_place:
                self._homes[expression].nodes.append(expression)

    def _enter(self, expression: Expr, home: Block) -> None:
        """All uses of `expression` are known: say where the parts of it are used."""
        at_end = home.tail is expression and self._uses[expression] == 1
        if at_end:
            self.in_place.add(expression)
        if isinstance(expression, If):
            self._use(expression.cond, home)
            self.inside[expression] = [
                self._open(home, expression.true_branch),
                self._open(home, expression.false_branch),
            ]
        elif isinstance(expression, Match):
            self._use(expression.data, home)
            self.inside[expression] = [self._open(home, clause.rhs) for clause in expression.clauses]
        elif isinstance(expression, Function):
            self.inside[expression] = [self._open(home, expression.body)]
        elif isinstance(expression, Let):
            if not at_end:
                inner = Block(home, expression)
                self.inside[expression] = [inner]
                home = inner
            self._use(expression.value, home)
            home.next = self._open(home, expression.body)
        else:
            for part in parts(expression):
                self._use(part, home)

    def _open(self, parent: Block, tail: Expr) -> Block:
        result = Block(parent, tail)
        self._use(tail, result)
        return result

    def _use(self, expression: Expr, block: Block) -> None:
        if is_leaf(expression):
            return
        self._uses[expression] = self._uses.get(expression, 0) + 1
        known = self._homes.get(expression)
        self._homes[expression] = block if known is None else common_scope(known, block)

    def home(self, expression: Expr) -> Block:
        """The block that a value stands in; of a name or a constant, nothing is said."""
        return self._homes[expression]

    def used_once(self, expression: Expr) -> bool:
        return self._uses.get(expression) == 1


def _in_order(root: Expr) -> Iterator[Expr]:
    """Every expression once, after what it is made of; a function that is called comes right before its call."""
    entered = {root}
    stack: list[tuple[Expr, Iterator[Expr]]] = [(root, iter(_callee_last(root)))]
    while stack:
        expression, rest = stack[-1]
        for part in rest:
            if part not in entered:
                entered.add(part)
                stack.append((part, iter(_callee_last(part))))
                break
        else:
            stack.pop()
            yield expression


def _callee_last(expression: Expr) -> tuple[Expr, ...]:
    if isinstance(expression, Call) and not isinstance(expression.op, Op):
        return (*expression.args, expression.op)
    return parts(expression)


def is_leaf(expression: object) -> bool:
    """Whether an expression is written at every use: names, constants, cases."""
    return isinstance(expression, (Var, Constant, GlobalVar, Constructor))


class Scopes:
    """The block that each expression below `root` is evaluated in, names and constants too.

    A block is here the body of a function, a branch of an if or the value of a clause; a `let` begins none.
    """

    def __init__(self, root: Expr) -> None:
        self.of: dict[Expr, Scope] = {}
        self.used_elsewhere: set[Expr] = set()  # expressions that a block inside their own uses
        self.body: dict[Function, Scope] = {}  # function → its block
        self.branches: dict[Expr, tuple[Scope, ...]] = {}  # if, match → their blocks
        self.root = Scope()
        self.of[root] = self.root
        for expression in reversed(list(post_order(root))):
            own = self.of[expression]
            if isinstance(expression, Function):
                inner = self.body[expression] = Scope(own)
                for part in (*expression.params, expression.body):
                    self._use(part, inner)
            elif isinstance(expression, If):
                pair = self.branches[expression] = (Scope(own), Scope(own))
                self._use(expression.cond, own)
                self._use(expression.true_branch, pair[0])
                self._use(expression.false_branch, pair[1])
            elif isinstance(expression, Match):
                self._use(expression.data, own)
                self.branches[expression] = tuple(Scope(own) for _ in expression.clauses)
                for clause, inner in zip(expression.clauses, self.branches[expression], strict=True):
                    for part in (*clause.lhs.variables(), clause.rhs):
                        self._use(part, inner)
            else:
                for part in parts(expression):
                    self._use(part, own)

    def _use(self, part: Expr, where: Scope) -> None:
        known = self.of.get(part)
        if known is None:
            self.of[part] = where
            return
        if known is not where:
            self.used_elsewhere.add(part)
            self.of[part] = common_scope(known, where)
