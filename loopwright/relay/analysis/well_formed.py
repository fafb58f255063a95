"""well_formed: whether every variable is bound once, and used only where it means something.

    let %x = 1; %x                  well formed
    (let %x = 1; %x) + %x           not: the second %x stands outside of its let

Variables that nothing binds are free, and may stand anywhere.
"""

from __future__ import annotations

from loopwright.ir.function import IRModule
from loopwright.relay.blocks import Block, Layout, is_leaf
from loopwright.relay.blocks import Scopes as BlocksOf
from loopwright.relay.expr import Expr, Function, If, Let, Var
from loopwright.relay.graph_functions import graph_functions
from loopwright.relay.visitor import parts


def well_formed(expr: Expr) -> bool:
    """Whether an expression, or every graph function of a module, binds each variable once and uses it in its scope."""
    if isinstance(expr, IRModule):
        functions: list[Expr] = list(graph_functions(expr).values())
        return all(well_formed(function) for function in functions)
    return is_leaf(expr) or not Scopes(expr).problems


class Scopes:
    """Where each variable of a graph means something; `problems` says in words what is wrong."""

    def __init__(self, root: Expr) -> None:
        self.layout = Layout(root)
        self.problems: list[str] = []
        self._scopes: dict[Var, list[Block]] = {}
        for expression in self.layout.order:
            if isinstance(expression, Function):
                for param in expression.params:
                    self._bind(param, self.layout.inside[expression])
            elif isinstance(expression, Let):
                self._bind_let(expression)
        for expression in self.layout.order:
            if not is_leaf(expression):
                self._check(expression)

    def _bind(self, var: Var, scopes: list[Block]) -> None:
        if var in self._scopes:
            self.problems.append(f"%{var.name_hint} is bound twice")
        self._scopes[var] = scopes

    def _bind_let(self, let: Let) -> None:
        inside = self.layout.inside.get(let)
        before = inside[0] if inside else self.layout.home(let)
        assert before.next is not None  # a let has a body
        scopes = [before.next]
        if isinstance(let.value, Function):  # which may call itself
            scopes += self.layout.inside[let.value]
        self._bind(let.var, scopes)

    def _check(self, expression: Expr) -> None:
        for part, block in self._uses(expression):
            scopes = self._scopes.get(part) if isinstance(part, Var) else None
            if scopes is not None and not any(_within(block, scope) for scope in scopes):
                assert isinstance(part, Var)
                self.problems.append(f"%{part.name_hint} is used outside of its scope")

    def _uses(self, expression: Expr) -> list[tuple[Expr, Block]]:
        """What the expression uses, with the block in which it does; what it binds is no use."""
        home = self.layout.home(expression)
        inside = self.layout.inside.get(expression, [])
        if isinstance(expression, Function):
            return [(expression.body, inside[0])]
        if isinstance(expression, If):
            return [(expression.cond, home), (expression.true_branch, inside[0]), (expression.false_branch, inside[1])]
        if isinstance(expression, Let):
            before = inside[0] if inside else home
            assert before.next is not None
            return [(expression.value, before), (expression.body, before.next)]
        return [(part, home) for part in parts(expression)]


def _within(block: Block | None, scope: Block) -> bool:
    while block is not None and block.depth >= scope.depth:
        if block is scope:
            return True
        block = block.parent
    return False


def check_basic_block_normal_form(expr: Expr) -> bool:
    """Whether every value is used in its own block only, or has a name where blocks inside that one use it."""
    return all(map(is_leaf, BlocksOf(expr).used_elsewhere))
