"""PartitionGraph: each region that is marked for another compiler becomes a function of the module.

    compiler_end(f(compiler_begin(%x, "dnnl")), "dnnl")    →    @tvmgen_default_dnnl_main_0(%x)

    def @tvmgen_default_dnnl_main_0(%dnnl_0_i0, Compiler="dnnl", Primitive=1, Inline=1, …) { f(%dnnl_0_i0) }

What several ends of a region give is returned as a tuple. Constants that a region reads are inside its function, unless
`bind_constants` is off.
"""

from __future__ import annotations

from typing import Any

from loopwright.ir.deep import deep
from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.passes import ModulePass
from loopwright.relay.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from loopwright.relay.infer_type import infer_module
from loopwright.relay.transform.partition.annotate_target import BEGIN, END
from loopwright.relay.transform.typed_rewrite import is_call
from loopwright.relay.visitor import ExprMutator, parts, post_order


class _Region:
    def __init__(self, compiler: str) -> None:
        self.compiler = compiler
        self.ends: list[Call] = []
        self.call: Expr | None = None


class _Inside(ExprMutator):
    """A region as the body of a function: what enters it is a parameter."""

    def __init__(self, region: _Region, number: int, bind_constants: bool) -> None:
        super().__init__()
        self.region = region
        self.number = number
        self.bind_constants = bind_constants
        self.params: list[Var] = []
        self.args: list[Expr] = []

    def first(self, expression: Expr) -> tuple[Expr, ...]:
        return () if is_call(expression, BEGIN) else super().first(expression)

    def visit_call(self, call: Call) -> Expr:
        if not is_call(call, BEGIN):
            return super().visit_call(call)
        given = call.args[0]
        if isinstance(given, Constant) and self.bind_constants:
            return given
        for param, arg in zip(self.params, self.args, strict=True):
            if arg is given:
                return param
        param = Var(f"{self.region.compiler}_{self.number}_i{len(self.params)}", given.checked_type)
        self.params.append(param)
        self.args.append(given)
        return param

    def visit_function(self, function: Function) -> Expr:
        return function


class _Partition(ExprMutator):
    def __init__(self, root: Expr, prefix: str, bind_constants: bool) -> None:
        super().__init__()
        self.prefix = prefix
        self.bind_constants = bind_constants
        self.functions: dict[GlobalVar, Function] = {}
        self.regions = _regions(root)

    def first(self, expression: Expr) -> tuple[Expr, ...]:
        return () if is_call(expression, END) else super().first(expression)

    def visit_call(self, call: Call) -> Expr:
        if not is_call(call, END):
            return super().visit_call(call)
        region = self.regions[call]
        if region.call is None:
            region.call = self._called(region)
        if len(region.ends) == 1:
            return region.call
        return TupleGetItem(region.call, next(k for k, end in enumerate(region.ends) if end is call))

    def _called(self, region: _Region) -> Expr:
        number = len(self.functions)
        name = f"{self.prefix}_{region.compiler}_main_{number}"
        # Its number is taken before what it reads is looked at, which may hold regions of its own.
        var = GlobalVar(name)
        self.functions[var] = None  # type: ignore[assignment]
        inside = _Inside(region, number, self.bind_constants)
        results = [inside.visit(end.args[0]) for end in region.ends]
        body = results[0] if len(results) == 1 else Tuple(results)
        attrs = {"Compiler": region.compiler, "Primitive": 1, "Inline": 1, "global_symbol": name}
        self.functions[var] = Function(inside.params, body, attrs=attrs)
        return Call(var, [self.visit(arg) for arg in inside.args])

    def visit_function(self, function: Function) -> Expr:
        return function if "Composite" in function.attrs else super().visit_function(function)


def _regions(root: Expr) -> dict[Expr, _Region]:
    """The region of each end: ends that share a value are of one."""
    owner: dict[Expr, _Region] = {}
    of: dict[Expr, _Region] = {}
    for end in post_order(root):
        if not is_call(end, END):
            continue
        region = _Region(end.attrs.compiler)
        stack, seen = [end.args[0]], set()
        while stack:
            current = stack.pop()
            if current in seen or is_call(current, BEGIN):
                continue
            seen.add(current)
            known = owner.get(current)
            if known is not None and known is not region:
                for key, value in owner.items():
                    if value is region:
                        owner[key] = known
                region = known
            owner[current] = region
            stack.extend(part for part in parts(current) if not isinstance(part, (Function, Var, Constant)))
        region.ends.append(end)
        of[end] = region
    return of


@deep
def _partitioned(partition: _Partition, body: Expr) -> Expr:
    """Regions follow each other, and so do the calls of this walk."""
    return partition.visit(body)


def PartitionGraph(mod_name: str = "default", bind_constants: bool = True) -> ModulePass:
    """Make functions of the module of the regions that are marked."""

    def change(mod: IRModule, context: PassContext) -> IRModule:
        infer_module(mod)
        changed: dict[str | GlobalVar, Any] = {}
        result: dict[str | GlobalVar, Any] = {}
        for var, function in mod.items():
            if not isinstance(function, Function) or "Compiler" in function.attrs:
                changed[var] = function
                continue
            partition = _Partition(function.body, f"tvmgen_{mod_name}", bind_constants)
            body = _partitioned(partition, function.body)
            same = body is function.body
            changed[var] = (
                function
                if same
                else Function(
                    function.params, body, function.ret_type, function.type_params, function.attrs, function.span
                )
            )
            result |= partition.functions
        return infer_module(IRModule({**changed, **result}, mod.type_definitions, mod.attrs)) if result else mod

    return ModulePass(change, PassInfo(0, "PartitionGraph"))
