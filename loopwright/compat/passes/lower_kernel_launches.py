"""lower_kernel_launches: a call of another device's function becomes a launch, or a plain call.

    mod.kernel(A)     →    T.call_packed("kernel", A, 16)      16 threads, as the kernel's launch says

A kernel that runs on the same kind of device, but for another target, is called by name (`call_extern`); one of the
same target stays as it is. A launched kernel says in `tir.kernel_launch_params` which thread extents follow its
arguments.
Needs: `split_host_device`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from loopwright.analysis.thread_axes import scope_of
from loopwright.ir import (
    Allocate,
    AttrStmt,
    Call,
    Expr,
    GlobalVar,
    IRModule,
    IterVar,
    Op,
    PrimFunc,
    Rewriter,
    StringImm,
    Var,
    collect,
    const,
    deep,
    product,
    substitute,
)
from loopwright.ir.intrinsics import call_extern
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.passes import ModulePass
from loopwright.runtime.dtype import INT32
from loopwright.target import Target

_LAUNCHED: Final = 2  # what `calling_conv` says of a kernel
_DYNAMIC_MEMORY: Final = "tir.use_dyn_shared_memory"


class _Launch(NamedTuple):
    """What follows the arguments of a kernel: names, and values in terms of its parameters."""

    names: list[str]
    values: list[Expr]


def _launch_of(kernel: PrimFunc) -> _Launch:
    extents: dict[str, Expr] = {}
    for attr in collect(kernel.body, AttrStmt):
        if attr.attr_key == "thread_extent" and isinstance(attr.node, IterVar):
            extents.setdefault(attr.node.thread_tag, attr.value)
    names, values = list(extents), list(extents.values())
    for node in collect(kernel.body, Allocate):
        if scope_of(node.buffer_var) == "shared.dyn":
            names.append(_DYNAMIC_MEMORY)
            values.append(product([const(node.dtype.nbytes, INT32), *node.extents], INT32))
    return _Launch(names, values)


class _Calls(Rewriter):
    def __init__(self, mod: IRModule, caller: Target | None) -> None:
        self.mod, self.caller = mod, caller
        self.launched: set[str] = set()
        self.called: set[str] = set()

    def visit_Call(self, call: Call) -> Expr:
        new = self.rebuild(call)
        callee = call.op
        if not isinstance(callee, GlobalVar) or callee not in self.mod:
            return new
        kernel = self.mod[callee]
        target = kernel.attrs.get("target") if isinstance(kernel, PrimFunc) else None
        if not isinstance(target, Target) or self.caller is None or str(target) == str(self.caller):
            return new
        symbol = StringImm(str(kernel.attrs.get("global_symbol", callee.name)))
        if str(target.kind) == str(self.caller.kind) or _is_cpu(target) == _is_cpu(self.caller) is True:
            self.called.add(callee.name)
            return call_extern(new.dtype, symbol.value, *new.args)
        self.launched.add(callee.name)
        values: dict[Var, object] = dict(zip(kernel.params, new.args, strict=True))
        extents = [substitute(value, values) for value in _launch_of(kernel).values]
        return Call(new.dtype, Op.get("tir.tvm_call_packed"), (symbol, *new.args, *extents))


def _is_cpu(target: Target) -> bool:
    return str(target.kind) in ("llvm", "c", "hexagon")


@deep
def _lower(mod: IRModule, _: PassContext) -> IRModule:
    launched: set[str] = set()
    called: set[str] = set()

    def calls(func: PrimFunc) -> PrimFunc:
        if not isinstance(func, PrimFunc):
            return func
        target = func.attrs.get("target")
        host = target.host or target if isinstance(target, Target) else None
        walk = _Calls(mod, host)
        body = walk.visit(func.body)
        launched.update(walk.launched)
        called.update(walk.called)
        return func.with_(body=body)

    result = mod.map_functions(calls).copy()
    for name in launched | called:
        kernel = result[name]
        attrs = {"global_symbol": str(kernel.attrs.get("global_symbol", name)), "tir.is_global_func": True}
        if name in launched:
            attrs |= {"calling_conv": _LAUNCHED, "tir.kernel_launch_params": _launch_of(kernel).names}
        result[name] = kernel.with_attrs(attrs)
    return result if launched or called else mod


lower_kernel_launches = ModulePass(_lower, PassInfo(0, "tir.LowerDeviceKernelLaunch"))
