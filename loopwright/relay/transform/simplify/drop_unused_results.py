"""DropUnusedResults: an operator with several results computes only those that someone reads.

topk(%x, ret_type="both").0        →    topk(%x, ret_type="values")
unique(%x).0, .3                   →    unique_values(%x).0, .1

Values that are put in order without their places take half of the time, and less memory.
"""

from __future__ import annotations

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Expr, Function, TupleGetItem
from loopwright.relay.op.registry import make
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call, use_counts
from loopwright.relay.visitor import post_order

_TOPK_RESULTS = ("values", "indices")
_OF_UNIQUE_VALUES = {0: 0, 3: 1, 4: 2}  # a result of `unique` → the same one of `unique_values`


class _Drop(TypedRewrite):
    def __init__(self, mod: IRModule, root: Expr) -> None:
        super().__init__(mod)
        self.used = _used_results(root)
        self.narrowed: dict[Expr, Call] = {}

    def visit_tuple_getitem(self, get: TupleGetItem) -> Expr:
        call, used = get.tuple_value, self.used.get(get.tuple_value)
        if used is None or not isinstance(call, Call):
            return super().visit_tuple_getitem(get)
        if call.op.name == "unique":
            if call.attrs.is_sorted and used <= set(_OF_UNIQUE_VALUES):
                values = self._narrowed(call, "unique_values", {"return_counts": 4 in used})
                return TupleGetItem(values, _OF_UNIQUE_VALUES[get.index], get.span)
        elif call.attrs.ret_type == "both" and len(used) == 1:
            attrs = {**dict(call.attrs.items()), "ret_type": _TOPK_RESULTS[get.index]}
            return self._narrowed(call, call.op.name, attrs)
        return super().visit_tuple_getitem(get)

    def _narrowed(self, call: Call, name: str, attrs: dict[str, object]) -> Call:
        if call not in self.narrowed:
            result = make(name, *[self.visit(arg) for arg in call.args], **attrs)
            result.span = call.span
            self.narrowed[call] = result
        return self.narrowed[call]


def _used_results(root: Expr) -> dict[Expr, set[int]]:
    """Calls of which single results are read and nothing else, and which those are."""
    counts, read = use_counts(root), dict[Expr, list[int]]()
    for each in post_order(root):
        if isinstance(each, TupleGetItem) and is_call(each.tuple_value, "topk", "dyn.topk", "unique"):
            read.setdefault(each.tuple_value, []).append(each.index)
    return {call: set(indices) for call, indices in read.items() if counts[call] == len(indices)}


def DropUnusedResults() -> GraphPass:
    """Compute only those results of an operator that someone reads."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Drop(mod, function).apply(function)

    return GraphPass(change, PassInfo(1, "DropUnusedResults"))
