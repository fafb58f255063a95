"""PartitionGraph: each region that is marked for another compiler becomes a function of the module.

    compiler_end(f(compiler_begin(%x, "dnnl")), "dnnl")    →    @tvmgen_default_dnnl_main_0(%x)

    def @tvmgen_default_dnnl_main_0(%dnnl_0_i0, Compiler="dnnl", Primitive=1, Inline=1, …) { f(%dnnl_0_i0) }

What several ends of a region give is returned as a tuple. Constants that a region reads are inside its function, unless
`bind_constants` is off.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from loopwright.ir.deep import deep
from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.passes import ModulePass
from loopwright.ir.types import TupleType
from loopwright.relay.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from loopwright.relay.infer_type import infer_module
from loopwright.relay.transform.partition.annotate_target import BEGIN, END
from loopwright.relay.transform.typed_rewrite import is_call
from loopwright.relay.visitor import ExprMutator, parts, post_order
from loopwright.runtime.registry import get_global_func


class _Region:
    def __init__(self, compiler: str) -> None:
        self.compiler = compiler
        self.ends: list[Call] = []
        self.call: Expr | None = None
        self.number = 0  # that of the first of its marks, counted in the whole function

    def results(self) -> list[Expr]:
        """What it computes for others, each once."""
        return list(dict.fromkeys(end.args[0] for end in self.ends))


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
        if self.bind_constants and _is_constant(given):
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


def _is_constant(value: Expr) -> bool:
    """Whether it is a constant, or a tuple of them."""
    return isinstance(value, Constant) or (isinstance(value, Tuple) and all(map(_is_constant, value.fields)))


class _Partition(ExprMutator):
    def __init__(self, root: Expr, prefix: str, of: str, bind_constants: bool) -> None:
        super().__init__()
        self.prefix = prefix
        self.of = of  # the name of the function that is parted
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
        results = region.results()
        if len(results) == 1:
            return region.call
        first = sum(len(_fields_of(result)) for result in results[: results.index(call.args[0])])
        own = [TupleGetItem(region.call, first + k) for k in range(len(_fields_of(call.args[0])))]
        return Tuple(own) if isinstance(call.args[0].checked_type, TupleType) else own[0]

    def _called(self, region: _Region) -> Expr:
        number = region.number
        name = re.sub(r"[^0-9A-Za-z_]", "_", f"{self.prefix}_{region.compiler}_{self.of}_{number}")
        var = GlobalVar(name)
        inside = _Inside(region, number, self.bind_constants)
        results = [inside.visit(result) for result in region.results()]
        # Tuples among several results are taken apart.
        parts_of = [_fields_of(old, new) for old, new in zip(region.results(), results, strict=True)]
        body = results[0] if len(results) == 1 else Tuple([field for fields in parts_of for field in fields])
        attrs = {"Compiler": region.compiler, "Primitive": 1, "Inline": 1, "global_symbol": name}
        self.functions[var] = Function(inside.params, body, attrs=attrs)
        return Call(var, [self.visit(arg) for arg in inside.args])

    def visit_function(self, function: Function) -> Expr:
        return function if "Composite" in function.attrs else super().visit_function(function)


def _fields_of(result: Expr, value: Expr | None = None) -> list[Expr]:
    """The parts of `value`, which has the type of `result`: its fields where that is a tuple."""
    of = result.checked_type
    value = result if value is None else value
    return [TupleGetItem(value, k) for k in range(len(of.fields))] if isinstance(of, TupleType) else [value]


def _regions(root: Expr) -> dict[Expr, _Region]:
    """The region of each end: ends that share a value are of one."""
    owner: dict[Expr, _Region] = {}
    of: dict[Expr, _Region] = {}
    marks: dict[Expr, int] = {}
    for end in post_order(root):
        if is_call(end, BEGIN):
            marks[end] = len(marks)
        if not is_call(end, END):
            continue
        region = _Region(end.attrs.compiler)
        region.number = len(marks)
        stack, seen = [end.args[0]], set()
        while stack:
            current = stack.pop()
            if current in seen:
                continue
            seen.add(current)
            if is_call(current, BEGIN):
                region.number = min(region.number, marks[current])
                continue
            known = owner.get(current)
            if known is not None and known is not region:
                for key, value in owner.items():
                    if value is region:
                        owner[key] = known
                known.number = min(known.number, region.number)
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


def _optimized(mod: IRModule, parts_of_others: Sequence[GlobalVar | str]) -> IRModule:
    """The functions for other compilers after the passes of these: `relay.ext.<compiler>.optimize(mod)`."""
    by_compiler: dict[str, dict[str | GlobalVar, Any]] = {}
    for var in parts_of_others:
        function: Any = mod[var]
        by_compiler.setdefault(str(function.attrs["Compiler"]), {})[var] = function
    result = mod
    for compiler, functions in by_compiler.items():
        passes = get_global_func(f"relay.ext.{compiler}.optimize", allow_missing=True)
        if passes is not None:
            # Without the marks, so that passes look inside.
            open_ones: dict[str | GlobalVar, Any] = {
                var: Function(function.params, function.body, function.declared_ret_type, function.type_params)
                for var, function in functions.items()
            }
            changed = passes(IRModule(open_ones, mod.type_definitions, mod.attrs))
            result = result.copy()
            for var, function in functions.items():
                result[var] = changed[var].with_attr(function.attrs)
    return infer_module(result) if result is not mod else mod


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
            partition = _Partition(function.body, f"tvmgen_{mod_name}", var.name, bind_constants)
            body = _partitioned(partition, function.body)
            same = body is function.body
            declared = function.declared_ret_type
            changed[var] = (
                function
                if same
                else Function(function.params, body, declared, function.type_params, function.attrs, function.span)
            )
            result |= partition.functions
        if not result:
            return mod
        return _optimized(infer_module(IRModule({**changed, **result}, mod.type_definitions, mod.attrs)), list(result))

    return ModulePass(change, PassInfo(0, "PartitionGraph"))
