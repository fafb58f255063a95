"""split_host_device: the statements of a device become a function of their own, which the host calls.

    def main(n: T.int32):                        →    def main(n: T.int32):
        T.attr(T.target("cuda"), "target", 0)             mod.main_kernel(n)
        ...                                           def main_kernel(n: T.int32): ...

What the statements use and do not define becomes parameters. A kernel that runs on a CPU returns an error code.
Needs: `annotate_device_regions`.  Leaves: no `target` attribute in bodies.
"""

from __future__ import annotations

from loopwright.analysis.queries import undefined_vars
from loopwright.compat.passes.annotate_device_regions import without_host
from loopwright.ir import (
    AssertStmt,
    AttrStmt,
    Call,
    Evaluate,
    GlobalVar,
    IRModule,
    LetStmt,
    PrimFunc,
    PrimType,
    Stmt,
    StringImm,
    Var,
    const,
    deep,
    no_op,
    seq,
    substitute,
)
from loopwright.ir.intrinsics import ret
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.passes import ModulePass
from loopwright.runtime.dtype import INT32, VOID
from loopwright.target import Target
from loopwright.transform.parts.statements import StmtRewriter

_ON_CPU = ("llvm", "c", "hexagon", "ext_dev")  # whose kernels say how they ended


class _Split(StmtRewriter):
    def __init__(self, name: str, taken: set[str]) -> None:
        self.name, self.taken = name, taken
        self.kernels: dict[str | GlobalVar, PrimFunc] = {}

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key != "target" or not isinstance(node.node, Target):
            return self.rebuild(node)
        return self._call(without_host(node.node), node.body)

    def _call(self, device: Target, body: Stmt) -> Stmt:
        used = sorted(undefined_vars(body), key=lambda var: (var.dtype != "handle", var.name))
        fresh = {var: Var(var.name, var.type_annotation if var.dtype == "handle" else var.dtype) for var in used}
        body = substitute(body, fresh)
        is_cpu = str(device.kind) in _ON_CPU
        name, count = f"{self.name}_kernel", 0
        while name in self.taken:
            count += 1
            name = f"{self.name}_kernel_{count}"
        self.taken.add(name)
        attrs = {"target": device, "tir.noalias": const(True), "tir.is_global_func": True}
        if is_cpu:
            body = seq([body, Evaluate(ret(0))])
        kernel = PrimFunc(list(fresh.values()), body, PrimType(INT32) if is_cpu else None, attrs=attrs)
        callee = GlobalVar(name)
        self.kernels[callee] = kernel
        if not is_cpu:
            return Evaluate(Call(VOID, callee, tuple(used)))
        error = Var("kernel_error_code", "int32")
        message = StringImm("Error executing compute kernel")
        return LetStmt(error, Call(INT32, callee, tuple(used)), AssertStmt(error.equal(0), message, no_op()))


@deep
def _split(mod: IRModule, _: PassContext) -> IRModule:
    """The statements of a device become a function of their own, which the host calls."""
    changed: dict[str | GlobalVar, PrimFunc] = {}
    kernels: dict[str | GlobalVar, PrimFunc] = {}
    taken = {var.name for var in mod}
    for var, func in mod.functions.items():
        if not isinstance(func, PrimFunc):
            continue
        split = _Split(str(func.attrs.get("global_symbol", var.name)), taken)
        body = split.visit(func.body)
        if split.kernels:
            changed[var] = func.with_(body=body)
            kernels.update(split.kernels)
    if not kernels:
        return mod
    result = mod.copy()
    result.update({**changed, **kernels})
    return result


split_host_device = ModulePass(_split, PassInfo(0, "tir.SplitHostDevice"))
