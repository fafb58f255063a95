"""uses: who uses what in a function, and where all uses of an expression lead.

    %0 = exp(%x);  %1 = abs(%0);  %2 = sqrt(%0);  add(%1, %2)        the uses of %0 meet in add: its post-dominator

What FuseOps decides by: each expression has a kind (`Kind` of its operator), each use has one (a broadcast operand of
the result's own shape is used element by element), and so has the way to the post-dominator: the most restrictive.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from loopwright.ir.expr import GlobalVar
from loopwright.ir.types import TupleType
from loopwright.relay.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem
from loopwright.relay.op.registry import Kind, Op
from loopwright.relay.types import TensorType, is_any, same_type
from loopwright.relay.visitor import parts

# An operator that blocks fusion on purpose, and is nothing else.
STOP = "annotation.stop_fusion"
_SCALARS = ("int32", "int64", "float32", "float64", "bool")


@dataclass(eq=False)
class Node:
    """An expression in the graph of uses."""

    expression: Expr
    index: int
    kind: int
    outside: bool = False  # something that is no kernel uses it: a result, a condition, another function
    uses: list[tuple[Node, int]] = field(default_factory=list)  # who uses it, and how
    # The post-dominator, the most restrictive way on the paths to it, and how far the end is.
    after: Node | None = None
    after_kind: int = Kind.OPAQUE
    depth: int = 1
    # The kernel it belongs to: the last of its nodes, whose fields speak for all.
    parent: Node | None = None
    group_kind: int = 0
    size: int = 1
    anchor: Node | None = None  # the one large operator of the kernel

    def group(self) -> Node:
        root = self
        while root.parent is not None:
            root = root.parent
        walk: Node = self
        while walk.parent is not None and walk.parent is not root:
            walk.parent, walk = root, walk.parent
        return root


class Uses:
    """The graph of uses of one function body, in the order of evaluation."""

    def __init__(self, body: Expr) -> None:
        self.nodes: list[Node] = []
        self.of: dict[Expr, Node] = {}
        for expression in _own_expressions(body):
            node = Node(expression, len(self.nodes), _kind(expression))
            node.group_kind = node.kind
            if node.kind == Kind.OUT_FUSABLE:
                node.anchor = node
            self.of[expression] = node
            self.nodes.append(node)
        for node in list(self.nodes):
            self._connect(node)
        if body in self.of:
            self.of[body].outside = True
        self._find_post_dominators()

    def _connect(self, node: Node) -> None:
        expression = node.expression
        fused = isinstance(expression, (Call, Tuple, TupleGetItem)) and not (
            isinstance(expression, Call) and not isinstance(expression.op, Op)
        )
        for part in parts(expression):
            used = self.of.get(part)
            if used is None:
                continue
            if fused:
                used.uses.append((node, _edge_kind(expression, part, node.kind)))
            else:
                used.outside = True

    def _find_post_dominators(self) -> None:
        for node in reversed(self.nodes):
            if node.outside or not node.uses:
                continue
            meeting: Node | None = node.uses[0][0]
            way = node.uses[0][1]
            for user, kind in node.uses[1:]:
                way = max(way, kind)
                meeting, passed = _common(meeting, user)
                way = max(way, passed)
                if meeting is None:
                    break
            if meeting is not None:
                node.after, node.after_kind, node.depth = meeting, way, meeting.depth + 1


def _common(one: Node | None, other: Node | None) -> tuple[Node | None, int]:
    """Where the ways on from two nodes meet, and the most restrictive step on the way."""
    way = 0
    while one is not other:
        if one is None or other is None:
            return None, Kind.OPAQUE
        if one.depth >= other.depth:
            way, one = max(way, one.after_kind), one.after
        else:
            way, other = max(way, other.after_kind), other.after
    return one, way


def _own_expressions(body: Expr) -> list[Expr]:
    """What the body evaluates, but for what lies inside the functions in it."""
    result: list[Expr] = []
    done: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(body, False)]
    while stack:
        expression, ready = stack.pop()
        if ready:
            result.append(expression)
            continue
        if expression in done or isinstance(expression, (Op, GlobalVar)):
            continue
        done.add(expression)
        stack.append((expression, True))
        if not isinstance(expression, Function):
            stack.extend((part, False) for part in reversed(parts(expression)))
    return result


def _kind(expression: Expr) -> int:
    if isinstance(expression, Constant):
        scalar = expression.data.ndim == 0 and str(expression.checked_type.dtype) in _SCALARS  # type: ignore[attr-defined]
        return Kind.ELEMWISE if scalar else Kind.OPAQUE
    if isinstance(expression, Tuple):
        return Kind.TUPLE
    if isinstance(expression, TupleGetItem):
        of = expression.tuple_value.checked_type
        tensors = isinstance(of, TupleType) and all(isinstance(one, TensorType) for one in of.fields)
        return Kind.INJECTIVE if tensors else Kind.OPAQUE
    if isinstance(expression, Call) and isinstance(expression.op, Op):
        if expression.op.name == STOP or expression.attrs.data_dependent:
            return Kind.OPAQUE
        kind = expression.op.get_attr("TOpPattern")
        return int(kind) if isinstance(kind, int) else Kind.OPAQUE
    return Kind.OPAQUE


def _edge_kind(user: Expr, used: Expr, kind: int) -> int:
    """How an expression is used: a broadcast operand that has the shape of the result is used element by element."""
    if kind == Kind.BROADCAST and same_shape(user.checked_type, used.checked_type):
        return Kind.ELEMWISE
    return kind


def same_shape(one: object, other: object) -> bool:
    if not isinstance(one, TensorType) or not isinstance(other, TensorType):
        return False
    if any(is_any(size) for size in (*one.shape, *other.shape)):
        return False
    return same_type(TensorType(one.shape, "float32"), TensorType(other.shape, "float32"))
