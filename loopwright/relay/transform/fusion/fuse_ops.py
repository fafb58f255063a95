"""FuseOps: operators that run as one kernel become one function.

    %0 = nn.conv2d(%x, %w);                →    %0 = fn (%p0, %p1, %p2, Primitive=1) {
    %1 = add(%0, %b);                              nn.relu(add(nn.conv2d(%p0, %p1), %p2))
    nn.relu(%1)                                  };
                                                 %0(%x, %w, %b)

An operator has a kind (`Kind`): element-wise and injective operators join what uses them, or what they follow, as long
as every way from the one to the other stays inside the kernel. That place is the *post-dominator*: the first expression
that all uses lead to (`uses.py`). Three rounds decide, so that large operators choose their followers before the small
ones join each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from loopwright.relay.op.registry import Kind, Op
from loopwright.relay.transform.fusion.uses import STOP, Node, Uses
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.visitor import ExprMutator, bind, parts, post_order


class _Partition:
    """Which expressions are one kernel."""

    def __init__(self, uses: Uses, max_depth: int, max_args: int) -> None:
        self.uses = uses
        self.max_depth = max_depth
        self.max_args = max_args
        for round_number in range(3):
            for node in uses.nodes:
                self._consider(node, round_number)

    def _consider(self, node: Node, round_number: int) -> None:
        group = node.group()
        if group.group_kind == Kind.OPAQUE or node.after is None or node.kind == Kind.OPAQUE:
            return
        sink = node.after
        if group is sink.group() and node.kind != Kind.TUPLE:
            return
        if self._nodes_between(node, sink) + sink.group().size > self.max_depth:
            return
        if round_number == 2:
            self._into_fused_tuple(node, group, sink)
        elif group.group_kind == Kind.OUT_FUSABLE:
            if (
                round_number == 0
                and node.after_kind == Kind.ELEMWISE
                and self._all_between(node, sink, lambda kind, last: kind <= Kind.BROADCAST)
            ):
                self._merge(node, sink)
        elif group.group_kind <= Kind.BROADCAST:
            reaches = node.after_kind <= Kind.INJECTIVE or node.after_kind == Kind.COMM_REDUCE
            if reaches and self._all_between(
                node,
                sink,
                lambda kind, last: kind <= Kind.INJECTIVE or (last and kind in (Kind.COMM_REDUCE, Kind.OUT_FUSABLE)),
            ):
                self._merge(node, sink)
        elif group.group_kind in (Kind.INJECTIVE, Kind.TUPLE) and round_number == 1:
            if self._all_between(node, sink, lambda kind, last: kind <= Kind.INJECTIVE):
                self._merge(node, sink)

    def _into_fused_tuple(self, node: Node, group: Node, sink: Node) -> None:
        """What only a tuple uses joins it, where the tuple itself is part of a later kernel (concatenate)."""
        if group.group_kind > Kind.INJECTIVE or sink.kind != Kind.TUPLE or sink.group() is sink:
            return
        if sink.group().group_kind <= Kind.INJECTIVE and self._all_between(
            node, sink, lambda kind, last: last or kind <= Kind.INJECTIVE
        ):
            self._merge(node, sink)

    def _path(self, node: Node, sink: Node) -> list[Node]:
        """Every node on a way from `node` to `sink`, the first left out, the last with the rest."""
        result: list[Node] = []
        seen = {node}
        stack = [user for user, _ in node.uses]
        while stack:
            current = stack.pop()
            if current in seen:
                continue
            seen.add(current)
            result.append(current)
            if current is not sink:
                stack.extend(user for user, _ in current.uses)
        return result

    def _all_between(self, node: Node, sink: Node, allowed: Callable[[int, bool], bool]) -> bool:
        """Whether every kernel on the way may take part."""
        return all(allowed(between.group().group_kind, between is sink) for between in self._path(node, sink))

    def _nodes_between(self, node: Node, sink: Node) -> int:
        groups = {each.group() for each in [node, *self._path(node, sink)] if each is not sink}
        groups.discard(sink.group())
        return sum(group.size for group in groups)

    def _merge(self, node: Node, sink: Node) -> None:
        members = [node, *self._path(node, sink)]
        if self.max_args and len(self._outside_inputs(members)) + 1 > self.max_args:
            return
        target = sink.group()
        for member in members:
            child = member.group()
            if child is target:
                continue
            target.size += child.size
            child.parent = target
            if child.anchor is not None:
                target.anchor = child.anchor
            # A tuple inside a kernel is nothing that is computed.
            if child.group_kind != Kind.TUPLE:
                target.group_kind = max(target.group_kind, child.group_kind)

    def _outside_inputs(self, members: Sequence[Node]) -> set[Expr]:
        groups = {member.group() for member in members}
        result: set[Expr] = set()
        for node in self.uses.nodes:
            if node.group() in groups:
                for part in parts(node.expression):
                    used = self.uses.of.get(part)
                    if used is not None and used.group() not in groups:
                        result.add(part)
        return result


class _Fuse(ExprMutator):
    """Write the partition down: each kernel becomes a call of a primitive function."""

    def __init__(self, uses: Uses, settings: _Settings) -> None:
        super().__init__()
        self.uses = uses
        self.settings = settings
        self.kernels: dict[Node, _Kernel] = {}

    def visit_call(self, call: Call) -> Expr:
        if not isinstance(call.op, Op):
            return super().visit_call(call)
        if call.op.name == STOP:
            return self.visit(call.args[0])
        return self._part(call)

    def visit_tuple(self, tup: Tuple) -> Expr:
        node = self.uses.of.get(tup)
        return self._part(tup) if node is not None and node.group() is not node else super().visit_tuple(tup)

    def visit_tuple_getitem(self, get: TupleGetItem) -> Expr:
        node = self.uses.of.get(get)
        # Taking a field is no kernel of its own.
        alone = node is None or (node.group() is node and node.size == 1)
        return super().visit_tuple_getitem(get) if alone else self._part(get)

    def visit_function(self, function: Function) -> Expr:
        return function if "Primitive" in function.attrs else fuse_function(function, self.settings)

    def _part(self, expression: Expr) -> Expr:
        """The expression inside its kernel; at the last of them, the call of the kernel."""
        root = self.uses.of[expression].group()
        kernel = self.kernels.setdefault(root, _Kernel())
        inside = self._inside(expression, kernel, root)
        if root.expression is not expression:
            return inside
        return kernel.call(inside)

    def _inside(self, expression: object, kernel: _Kernel, root: Node) -> Expr:
        """The expression with its inputs: those of the kernel as they are there, others as parameters."""

        def operand(part: Expr) -> Expr:
            node = self.uses.of.get(part)
            if node is not None and node.group() is root:
                return part if isinstance(part, Constant) else self.visit(part)
            return kernel.parameter(self.visit(part), part, self.settings.link_params)

        if isinstance(expression, Call):
            return Call(
                expression.op,
                [operand(arg) for arg in expression.args],
                expression.attrs,
                expression.type_args,
                expression.span,
            )
        if isinstance(expression, Tuple):
            return Tuple([operand(part) for part in expression.fields], expression.span)
        assert isinstance(expression, TupleGetItem)
        return TupleGetItem(operand(expression.tuple_value), expression.index, expression.span)


class _Kernel:
    """A primitive function in the making."""

    def __init__(self) -> None:
        self.params: dict[Expr, Var] = {}  # what comes from outside → its parameter

    def parameter(self, value: Expr, original: Expr, link_params: bool) -> Expr:
        if link_params and isinstance(value, Constant):
            return value
        result = self.params.get(value)
        if result is None:
            result = Var(f"p{len(self.params)}", original.checked_type)
            self.params[value] = result
        return result

    def call(self, body: Expr) -> Call:
        attrs: dict[str, object] = {"Primitive": 1}
        if _only_reshapes(body):
            attrs["relay.reshape_only"] = 1
        function = Function(list(self.params.values()), body, attrs=attrs)
        return Call(function, list(self.params), span=getattr(body, "span", None))


RESHAPES = ("reshape", "expand_dims", "squeeze", "nn.batch_flatten", "contrib_reverse_reshape", "reshape_like")


def _only_reshapes(body: Expr) -> bool:
    calls = [each for each in post_order(body) if isinstance(each, Call)]
    return bool(calls) and all(isinstance(each.op, Op) and each.op.name in RESHAPES for each in calls)


@dataclass(frozen=True)
class _Settings:
    level: int
    max_depth: int
    max_args: int
    link_params: bool


def fuse_function(function: Function, settings: _Settings) -> Function:
    """The function with its operators in kernels; settings.level 0 puts each alone."""
    uses = Uses(function.body)
    if settings.level > 0:
        _Partition(uses, settings.max_depth, settings.max_args)
    body = _Fuse(uses, settings).visit(function.body)
    return (
        function
        if body is function.body
        else function.rebuilt(function.params, body, function.declared_ret_type)
    )


def FuseOps(fuse_opt_level: int = -1) -> GraphPass:
    """Put operators that can run as one kernel into one function; level 0 puts each alone."""

    def fuse(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        if "Primitive" in function.attrs:
            return function
        config = ctx.config
        settings = _Settings(
            ctx.opt_level if fuse_opt_level < 0 else fuse_opt_level,
            int(config.get("relay.FuseOps.max_depth", 256)),
            int(config.get("relay.FuseOps.max_args") or config.get("relay.FuseOps.max_function_args", 0)),
            bool(config.get("relay.FuseOps.link_params", False)),
        )
        return fuse_function(function, settings)

    return GraphPass(fuse, PassInfo(0, "FuseOps"))


class _Defuse(ExprMutator):
    def visit_call(self, call: Call) -> Expr:
        args = [self.visit(arg) for arg in call.args]
        if isinstance(call.op, Function) and "Primitive" in call.op.attrs:
            return bind(call.op.body, dict(zip(call.op.params, args, strict=True)))
        return super().visit_call(call)


def DefuseOps() -> GraphPass:
    """Take kernels apart again."""

    def defuse(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Defuse().apply(function)

    return GraphPass(defuse, PassInfo(3, "DefuseOps"))
