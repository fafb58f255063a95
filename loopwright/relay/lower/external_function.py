"""From a function that another compiler takes over to a kernel: a call of its symbol with all of its tensors.

    fn (%a, %b, Compiler="mine", global_symbol="mine_0") {…}    →    PrimFunc: call_cpacked("__tvm_ffi_mine_0", a, b, c)
"""

from __future__ import annotations

from loopwright import te
from loopwright.ir import Buffer
from loopwright.ir import Expr as PrimExpr
from loopwright.ir.machine_intrinsics import call_cpacked
from loopwright.model.kernel import SCHEDULED
from loopwright.relay.errors import CannotCompile
from loopwright.relay.expr import Function
from loopwright.relay.external import symbol_of
from loopwright.relay.lower.lower_function import Lowered, flat_types
from loopwright.relay.types import is_any, known_sizes, type_text
from loopwright.runtime.load import ENTRY_PREFIX


def lower_external(function: Function) -> Lowered:
    """The kernel that calls what another compiler makes of a function whose types are inferred."""
    symbol = symbol_of(function)
    inputs = [tensor for param in function.params for tensor in flat_types(param.checked_type)]
    outputs = flat_types(function.body.checked_type)
    for of in (*inputs, *outputs):
        if any(is_any(size) for size in of.shape):
            raise CannotCompile(f"{symbol} is for another compiler, and the sizes of {type_text(of)} are not known")
    given = [te.placeholder(known_sizes(of), of.dtype, name=f"p{k}") for k, of in enumerate(inputs)]

    def call(ins: list[Buffer], outs: list[Buffer]) -> PrimExpr:
        result: PrimExpr = call_cpacked(f"{ENTRY_PREFIX}{symbol}", *ins, *outs)
        return result

    shapes, dtypes = [known_sizes(of) for of in outputs], [str(of.dtype) for of in outputs]
    made = te.extern(shapes, given, call, name=symbol, dtype=dtypes)
    results = list(made) if isinstance(made, (list, tuple)) else [made]
    func = te.create_prim_func([*given, *results]).with_attr({"global_symbol": symbol, SCHEDULED: True})
    return Lowered(func, tuple(inputs), tuple(outputs), symbol, (str(function.attrs["Compiler"]),))
