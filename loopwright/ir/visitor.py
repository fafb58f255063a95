"""Walking and rewriting IR: class-table visitors, rewriters, substitution.

    class _CountLoads(Visitor):                     class _Double(Rewriter):
        count = 0                                       def visit_IntImm(self, imm):
        def visit_BufferLoad(self, load):                   return const(imm.value * 2, imm.dtype)
            self.count += 1
            self.visit_children(load)

A method `visit_X` handles class X and its subclasses; classes without one are walked through. Dispatch is one lookup
by class. Variables and buffers are leaves: a walk meets a buffer where it is used and where it is declared, but does
not enter its shape; `Substitute` shows how to rewrite buffers consistently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from loopwright.ir.buffer import Buffer
from loopwright.ir.deep import deep
from loopwright.ir.expr import Expr, Var, as_expr
from loopwright.ir.node import Node, rewrite_tuple

N = TypeVar("N", bound=Node)


class _Table(dict[type, Callable[[Any, Any], Any]]):
    """Node class → method, filled on first use, nearest base class first."""

    def __init__(self, owner: type, default: str) -> None:
        super().__init__()
        self.owner, self.default = owner, default

    def __missing__(self, cls: type) -> Callable[[Any, Any], Any]:
        for base in cls.__mro__:
            method = getattr(self.owner, f"visit_{base.__name__}", None)
            if method is not None:
                break
        else:
            method = getattr(self.owner, self.default)
        self[cls] = method
        return method


class Visitor:
    """Walk a tree; `visit_X` methods look at nodes of class X and decide whether to go on into their children."""

    _table: ClassVar[_Table]

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls._table = _Table(cls, "visit_children")

    def visit(self, node: Node) -> Any:
        return self._table[type(node)](self, node)

    def visit_children(self, node: Node) -> Any:
        node.each_child(self.visit)


class Rewriter:
    """Rebuild a tree; `visit_X` returns what replaces a node of class X. Unchanged subtrees stay the same object."""

    _table: ClassVar[_Table]

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls._table = _Table(cls, "rebuild")

    def visit(self, node: Any) -> Any:
        return self._table[type(node)](self, node)

    def rebuild(self, node: Any) -> Any:
        """`node` with its children rewritten."""
        return node.rebuild(self.visit)


class BufferRewriter(Rewriter):
    """A rewriter that also enters buffers: each buffer is rewritten once, so that all its uses stay one object."""

    def __init__(self) -> None:
        self.buffers: dict[Buffer, Buffer] = {}

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        new = self.buffers.get(buffer)
        if new is None:
            data = self.visit(buffer.data)
            new = buffer.with_(
                data=data if isinstance(data, Var) else buffer.data,
                shape=rewrite_tuple(buffer.shape, self.visit),
                strides=rewrite_tuple(buffer.strides, self.visit),
                elem_offset=self.visit(buffer.elem_offset),
            )
            self.buffers[buffer] = new
        return new


class _Substitute(BufferRewriter):
    def __init__(self, values: Mapping[Var, Expr], buffers: Mapping[Buffer, Buffer]) -> None:
        super().__init__()
        self.values = values
        self.buffers.update(buffers)

    def visit_Var(self, var: Var) -> Expr:
        return self.values.get(var, var)

    def visit_Block(self, block: Node) -> Node:
        # A block defines its axes, so they are no children; but their domains may use variables from outside.
        block = block.rebuild(self.visit)
        axes = rewrite_tuple(block.iter_vars, self._axis)  # type: ignore[attr-defined]
        return block.with_(iter_vars=axes)

    def _axis(self, axis: Any) -> Any:
        return axis if axis.dom is None else axis.with_(dom=self.visit(axis.dom))


@deep
def substitute(root: N, values: Mapping[Var, Any], buffers: Mapping[Buffer, Buffer] | None = None) -> N:
    """Replace variables (also in buffer shapes) and buffers; a subtree without them comes back as the same object."""
    if not values and not buffers:
        return root
    result: N = _Substitute({var: as_expr(value) for var, value in values.items()}, buffers or {}).visit(root)
    return result


class _PostOrder(Visitor):
    def __init__(self, look: Callable[[Any], object]) -> None:
        self.look = look
        self.seen: set[int] = set()

    def visit_children(self, node: Node) -> None:
        if id(node) not in self.seen:
            self.seen.add(id(node))
            node.each_child(self.visit)
            self.look(node)


class _PreOrder(Visitor):
    def __init__(self, look: Callable[[Any], object]) -> None:
        self.look = look

    def visit_children(self, node: Node) -> None:
        if self.look(node) is not False:
            node.each_child(self.visit)


@deep
def post_order_visit(root: Node, look: Callable[[Any], object]) -> None:
    """Call `look` once on every node, children first."""
    _PostOrder(look).visit(root)


@deep
def pre_order_visit(root: Node, look: Callable[[Any], object]) -> None:
    """Call `look` on every node, parents first; where it returns False the children are left out."""
    _PreOrder(look).visit(root)


def uses_var(root: Node, test: Callable[[Var], bool]) -> bool:
    """Whether any variable that passes `test` is used in `root` (buffer shapes not entered)."""
    found = False

    def look(node: Node) -> bool:
        nonlocal found
        if isinstance(node, Var) and test(node):
            found = True
        return not found

    pre_order_visit(root, look)
    return found
