"""sharing: expressions that hold one object in many places, written with lets instead.

    x = A[i]                                     B[i] = let s = A[i] * A[i] + 1 in
    for _ in range(20):                                 let s_1 = s * s + 1 in
        x = x * x + 1                →                  …
    B[i] = x                                            s_18 * s_18 + 1

Python builds such an expression in 40 objects; as a tree, which is what every walk and the machine see, it has two
million places. Programs in which places outnumber objects by far are therefore written with lets when a function is
made, and all that follows takes time by objects. Others are left alone: small repetitions are the optimizer's.

A value moves to the innermost expression that holds all its places, and only where it is computed anyway, or where
computing it does no harm: a guarded load stays guarded. Expressions with effects are left as they are.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from loopwright.ir.buffer import BufferLoad
from loopwright.ir.deep import deep
from loopwright.ir.expr import (
    And,
    Broadcast,
    Call,
    CommReducer,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Mod,
    Or,
    ProducerLoad,
    Reduce,
    Var,
)
from loopwright.ir.node import Node
from loopwright.ir.program_size import MOST_PLACES, TooLarge
from loopwright.ir.visitor import Rewriter, has_children, uses_var

N = TypeVar("N", bound=Node)

LARGE: Final = 2000  # places of one expression; below, repetition costs nothing worth a let
REPEATED: Final = 4  # places for each object


@deep
def tree_size(expr: Expr) -> int:
    """How many places the expression has, written out as a tree."""
    return _Sizes().of(expr)


class _Sizes:
    """Tree sizes by object."""

    def __init__(self) -> None:
        self.known: dict[Node, int] = {}

    def of(self, node: Node) -> int:
        result = self.known.get(node)
        if result is not None:
            return result
        total = 1

        def add(child: Node) -> None:
            nonlocal total
            total += self.of(child) if has_children(type(child)) else 1

        node.each_child(add)
        self.known[node] = total
        return total


class _BindLarge(Rewriter):
    """Visits statements, and looks at each of their expressions as a whole."""

    def __init__(self) -> None:
        self.left = MOST_PLACES

    def rebuild(self, node: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise TooLarge("the program")
        return node.rebuild(self.visit)

    def visit_Expr(self, expr: Expr) -> Expr:
        if not has_children(type(expr)):
            return expr
        sizes = _Sizes()
        size = sizes.of(expr)
        if size >= LARGE and size >= REPEATED * len(sizes.known):
            expr = bind_shared(expr)
            size = tree_size(expr)
        if size > MOST_PLACES:
            raise TooLarge(f"an expression of type {expr.dtype}", size)
        return expr


@deep
def bind_large(root: N) -> N:
    """The statement with lets in those of its expressions that repeat themselves at length; else the same object.

    Raises TooLarge where even so it would have more than `MOST_PLACES`, written out.
    """
    result: N = _BindLarge().visit(root)
    return result


@deep
def bind_shared(expr: Expr) -> Expr:
    """The expression with a let for each object that stands in it more than once; itself when there is none."""
    return _Binding(expr).run()


class _Binding:
    def __init__(self, root: Expr) -> None:
        self.root = root
        self.order = _parents_first(root)
        self.dominator: dict[Node, Node] = {root: root}
        self.depth: dict[Node, int] = {root: 0}
        self.jump: dict[Node, Node] = {root: root}  # a dominator further up: see _meet
        self.region: dict[Node, object] = {root: root}  # what decides whether a node is computed
        self.safe: set[Node] = set()  # computed whenever their dominator is
        self.names: dict[Node, Var] = {}
        self.bound_at: dict[Node, list[Node]] = {}
        self.made: dict[Node, Node] = {}

    def run(self) -> Expr:
        if any(isinstance(node, Call) and not getattr(node.op, "is_pure", False) for node in self.order):
            return self.root
        self._place()
        if not self.names:
            return self.root
        result: Expr = self._build(self.root, top=True)
        return result

    def _place(self) -> None:
        """Where each node that stands in several places is computed once."""
        edges: dict[Node, list[tuple[Node, bool]]] = {}
        for node in self.order:
            for child, conditional in _edges(node):
                edges.setdefault(child, []).append((node, conditional))
        fails = _Hazards()
        for node in self.order[1:]:
            parents = edges[node]
            above = parents[0][0]
            for parent, _ in parents[1:]:
                above = self._meet(above, parent)
            self._put_below(node, above)
            regions = [(parent, node) if conditional else self.region[parent] for parent, conditional in parents]
            if len(set(regions)) == 1:
                self.region[node] = regions[0]
                safe = regions[0] == self.region[above]
            else:
                safe = self.region[above] in regions
                self.region[node] = self.region[above] if safe else node
            if len(parents) > 1 and _can_be_named(node) and (safe or not fails.of(node)):
                assert isinstance(node, Expr)
                self.names[node] = Var("s", node.dtype)
                self.bound_at.setdefault(above, []).append(node)

    def _put_below(self, node: Node, above: Node) -> None:
        """Enter `node` into the tree of dominators.

        Jumps are as long as skew-binary numbers say, so that one for each node suffices to get anywhere in a logarithm
        of steps: two jumps of one length on end are joined to the next.
        """
        self.dominator[node] = above
        depth, jump = self.depth, self.jump
        depth[node] = depth[above] + 1
        middle = jump[above]
        far = jump[middle]
        jump[node] = far if depth[above] - depth[middle] == depth[middle] - depth[far] else above

    def _meet(self, a: Node, b: Node) -> Node:
        """The lowest node that dominates both."""
        depth, jump, dominator = self.depth, self.jump, self.dominator
        if depth[a] < depth[b]:
            a, b = b, a
        while depth[a] > depth[b]:
            a = jump[a] if depth[jump[a]] >= depth[b] else dominator[a]
        while a is not b:  # at one depth, where jumps are equally long
            if jump[a] is jump[b]:
                a, b = dominator[a], dominator[b]
            else:
                a, b = jump[a], jump[b]
        return a

    def _build(self, node: Any, top: bool = False) -> Any:
        """`node` rebuilt, or the variable that stands for it."""
        name = self.names.get(node)
        if name is not None and not top:
            return name
        result = self.made.get(node)
        if result is None:
            result = node.rebuild(self._build)
            # Later ones are inside earlier ones: they come first.
            for value in self.bound_at.get(node, ()):
                result = self._let(node, result, value)
            self.made[node] = result
        return result

    def _let(self, at: Node, body: Any, value: Node) -> Expr:
        result = self._build(value, top=True)
        name = self.names[value]
        if isinstance(at, Let) and uses_var(value, lambda used: used is at.var):
            inside: Let = body
            return inside.with_(body=Let(name, result, inside.body))
        return Let(name, result, body)


class _Hazards:
    """Whether computing an expression where the program would not could do harm: loads, and integer divisions."""

    def __init__(self) -> None:
        self.known: dict[Node, bool] = {}

    def of(self, node: Node) -> bool:
        result = self.known.get(node)
        if result is None:
            result = isinstance(node, (BufferLoad, ProducerLoad, Reduce)) or _may_divide_by_zero(node)
            if not result:
                parts: list[Node] = []
                node.each_child(parts.append)
                for part in parts:
                    if has_children(type(part)) and self.of(part):
                        result = True
                        break
            self.known[node] = result
        return result


def _may_divide_by_zero(node: Node) -> bool:
    if not isinstance(node, (Div, Mod, FloorDiv, FloorMod)) or not node.dtype.is_int:
        return False
    divisor = node.b.value if isinstance(node.b, Broadcast) else node.b
    return not isinstance(divisor, IntImm) or divisor.value == 0


def _parents_first(root: Node) -> list[Node]:
    """Every node with children once, each after all that hold it."""
    order: list[Node] = []
    seen: set[Node] = set()

    def walk(node: Node) -> None:
        seen.add(node)
        for child, _ in _edges(node):
            if child not in seen:
                walk(child)
        order.append(node)

    walk(root)
    order.reverse()
    return order


def _edges(node: Node) -> list[tuple[Node, bool]]:
    """The children that have children themselves, and whether each is computed only under a condition."""
    result: list[tuple[Node, bool]] = []
    if isinstance(node, (And, Or)):
        parts: list[tuple[Node, bool]] = [(node.a, False), (node.b, True)]
    elif isinstance(node, Call) and node.op.name == "tir.if_then_else":
        parts = [(argument, index > 0) for index, argument in enumerate(node.args)]
    else:
        children: list[Node] = []
        node.each_child(children.append)
        parts = [(child, False) for child in children]
    for child, conditional in parts:
        # What a reduction computes belongs to its iterations: it is looked at by itself, not moved out.
        if has_children(type(child)) and not isinstance(child, (CommReducer, Reduce)):
            result.append((child, conditional))
    return result


def _can_be_named(node: Node) -> bool:
    return isinstance(node, Expr) and node.dtype.kind not in ("handle", "void") and not isinstance(node, (Let, Reduce))
