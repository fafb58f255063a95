"""MergeCompilerRegions: neighbours of one compiler become one region.

    compiler_end(g(compiler_begin(compiler_end(f(compiler_begin(%x))))))    →    compiler_end(g(f(compiler_begin(%x))))

Not where something of another compiler stands between two parts of a region on another way: the region would have to
run before and after it.
"""

from __future__ import annotations

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Expr, Function
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.partition.annotate_target import BEGIN, END
from loopwright.relay.transform.typed_rewrite import is_call
from loopwright.relay.visitor import ExprMutator, parts, post_order


class _Regions:
    """Which marked values are one region: each is the group of what a compiler_end closes."""

    def __init__(self, root: Expr) -> None:
        self.order = list(post_order(root))
        self.group = {each: k for k, each in enumerate(self.order)}  # everything alone at first
        for each in self.order:
            if is_call(each, END):
                # The marks belong to what they mark.
                self._join(each, each.args[0])
                for part in parts(each.args[0]):
                    if is_call(part, BEGIN):
                        self._join(part, each.args[0])
        for each in self.order:
            if is_call(each, BEGIN) and is_call(each.args[0], END) and _same(each, each.args[0]):
                self._try(each.args[0], each)

    def _join(self, one: Expr, other: Expr) -> None:
        old, new = self.group[one], self.group[other]
        if old != new:
            for key, value in self.group.items():
                if value == old:
                    self.group[key] = new

    def _edges(self) -> dict[int, set[int]]:
        edges: dict[int, set[int]] = {}
        for each in self.order:
            for part in parts(each):
                if part in self.group and self.group[part] != self.group[each]:
                    edges.setdefault(self.group[part], set()).add(self.group[each])
        return edges

    def _try(self, producer: Expr, consumer: Expr) -> None:
        one, other = self.group[producer], self.group[consumer]
        if one == other:
            return
        edges = self._edges()
        # A way from the one to the other that leaves both would become a circle.
        stack = [group for group in edges.get(one, ()) if group != other]
        seen: set[int] = set()
        while stack:
            current = stack.pop()
            if current == other:
                return
            if current not in seen:
                seen.add(current)
                stack.extend(edges.get(current, ()))
        self._join(producer, consumer)

    def are_one(self, producer: Expr, consumer: Expr) -> bool:
        return self.group[producer] == self.group[consumer]


def _same(one: Call, other: Call) -> bool:
    return bool(one.attrs.compiler == other.attrs.compiler)


class _Merge(ExprMutator):
    def __init__(self, regions: _Regions) -> None:
        super().__init__()
        self.regions = regions

    def visit_call(self, call: Call) -> Expr:
        if is_call(call, BEGIN) and is_call(call.args[0], END) and self.regions.are_one(call.args[0], call):
            return self.visit(call.args[0].args[0])
        return super().visit_call(call)


def MergeCompilerRegions() -> GraphPass:
    """Join neighbours of one compiler."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        body = _Merge(_Regions(function.body)).visit(function.body)
        if body is function.body:
            return function
        return function.rebuilt(function.params, body, function.declared_ret_type)

    return GraphPass(change, PassInfo(0, "MergeCompilerRegions"))
