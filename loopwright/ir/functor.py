"""ir_transform: a rewrite that takes functions instead of a class.

    ir_transform(func.body, None, lambda node: halve(node), only_enable=["tir.For"])

Our own code writes a class (`visitor.py`), which is faster and says more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, Final

from loopwright.ir import buffer as _buffer
from loopwright.ir import expr as _expr
from loopwright.ir import stmt as _stmt
from loopwright.ir.deep import deep
from loopwright.ir.expr import Expr
from loopwright.ir.function import PrimFunc
from loopwright.ir.node import Node
from loopwright.ir.stmt import Stmt
from loopwright.ir.visitor import Rewriter
from loopwright.runtime.errors import LoopwrightError

Change = Callable[[Any], object]


class UnknownNodeName(LoopwrightError, ValueError):
    """`ir_transform` was to stop at nodes of a class that does not exist.

    For example:

        from loopwright import tir

        tir.stmt_functor.ir_transform(tir.Evaluate(0), None, lambda node: None, ["tir.Foor"])
    """

    code = "LW0529"

    def __init__(self, name: str) -> None:
        near = get_close_matches(name, [f"tir.{known}" for known in NODE_CLASSES], 3)
        super().__init__(
            f"only_enable: no node is called {name!r}",
            hint=f"did you mean {', '.join(near)}?" if near else 'names look like "tir.For"',
        )


class BadReplacement(LoopwrightError, TypeError):
    """A function given to `ir_transform` returned something that cannot replace the node it was given.

    An expression is replaced by an expression, a statement by a statement; None keeps the node.

    For example:

        from loopwright import tir

        loop = tir.For(tir.Var("i"), 0, 4, tir.ForKind.SERIAL, tir.Evaluate(0))
        tir.stmt_functor.ir_transform(loop, None, lambda node: True, ["tir.For"])
    """

    code = "LW0534"

    def __init__(self, node: Node, result: object) -> None:
        kind = "an expression" if isinstance(node, Expr) else "a statement" if isinstance(node, Stmt) else "a node"
        super().__init__(
            f"ir_transform: {type(node).__name__} is replaced by {kind}, got {type(result).__name__} {result!r}",
            hint="return None to keep the node",
        )


NODE_CLASSES: Final[dict[str, type[Node]]] = {
    name: cls
    for module in (_expr, _buffer, _stmt)
    for name, cls in vars(module).items()
    if isinstance(cls, type) and issubclass(cls, Node)
}


def node_class(name: str) -> type[Node]:
    """The node class that `tir.For` (or `For`) names; `tir.IntImm` and `IntImm` are one."""
    result = NODE_CLASSES.get(name.removeprefix("tir."))
    if result is None:
        raise UnknownNodeName(name)
    return result


class _Transform(Rewriter, memo=True):
    def __init__(self, before: Change | None, after: Change | None, only: tuple[type[Node], ...] | None) -> None:
        self.before, self.after, self.only = before, after, only

    def visit_Node(self, node: Node) -> Node:
        chosen = self.only is None or isinstance(node, self.only)
        if chosen and self.before is not None:
            result = self.before(node)
            if result is not None:
                return _checked(node, result)
        node = self.rebuild(node)
        if chosen and self.after is not None:
            result = self.after(node)
            if result is not None:
                return _checked(node, result)
        return node


def _checked(node: Node, result: object) -> Node:
    wanted = Expr if isinstance(node, Expr) else Stmt if isinstance(node, Stmt) else Node
    if not isinstance(result, wanted):
        raise BadReplacement(node, result)
    return result


@deep
def ir_transform(
    stmt: object, preorder: Change | None, postorder: Change | None, only_enable: Sequence[str] | None = None
) -> Any:
    """`stmt` with nodes replaced; a PrimFunc is changed in its body.

    `preorder(node)` comes first: what it returns, if not None, replaces the node, whose children are then left alone.
    `postorder(node)` gets the node with its children replaced; None keeps it. `only_enable` names the classes of nodes
    the functions are asked about (`["tir.For"]`); others are only walked through.
    """
    only = None if only_enable is None else tuple([node_class(name) for name in only_enable])
    walk = _Transform(preorder, postorder, only)
    if isinstance(stmt, PrimFunc):
        return stmt.with_(body=walk.visit(stmt.body))
    return walk.visit(stmt)
