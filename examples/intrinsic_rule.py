"""Operators of one's own, and rules that say how to compute an operator.

    python examples/intrinsic_rule.py

`softsign` is new: a rule writes it as arithmetic. `cubic_root` is new as well: a rule calls the C library. `exp` is
Loopwright's own: a rule with a higher level replaces it by the C library's, for comparison. Each works from te and from
a script, vectorized or not, since rules run early in lowering.
"""

from __future__ import annotations

import numpy as np

import loopwright as lw
from loopwright import ir, te, tir
from loopwright.script import tir as T

# Naming an attribute of an operator makes it. Pure calls may be moved, shared and vectorized.
ir.register_op_attr("tir.softsign", "TCallEffectKind", tir.CallEffectKind.Pure)
ir.register_op_attr("tir.cubic_root", "TCallEffectKind", tir.CallEffectKind.Pure)


@ir.register_intrin_lowering("tir.softsign", target="default")
def softsign_rule(call: tir.Call) -> tir.PrimExpr:
    """For every target: x / (1 + |x|)."""
    (x,) = call.args
    return x / (tir.abs(x) + 1.0)


@ir.register_intrin_lowering("tir.cubic_root", target="llvm")
def cubic_root_rule(call: tir.Call) -> tir.PrimExpr | None:
    """On CPUs by LLVM: the C library has it for float32; None says that the rule does not apply."""
    return tir.call_pure_extern("float32", "cbrtf", *call.args) if call.dtype == "float32" else None


def libm_exp_rule(call: tir.Call) -> tir.PrimExpr | None:
    """The C library's exp in place of ours."""
    return tir.call_pure_extern("float32", "expf", *call.args) if call.dtype == "float32" else None


def softsign(x: tir.PrimExpr) -> tir.PrimExpr:
    return tir.call_intrin(x.dtype, "tir.softsign", x)


def from_te() -> tir.PrimFunc:
    A = te.placeholder((100,), name="A")
    B = te.compute((100,), lambda i: softsign(tir.call_intrin("float32", "tir.cubic_root", A[i])), name="B")
    return te.create_prim_func([A, B])


@T.prim_func
def from_script(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    for i_0 in range(25):
        for i_1 in T.vectorized(4):
            with T.block("B"):
                vi = T.axis.spatial(100, i_0 * 4 + i_1)
                B[vi] = T.call_intrin("float32", "tir.softsign", T.call_intrin("float32", "tir.cubic_root", A[vi]))


def main() -> None:
    a = np.linspace(-8, 8, 100, dtype="float32")
    roots = np.cbrt(a.astype("float64"))
    exact = roots / (1 + np.abs(roots))
    for name, func in (("te", from_te()), ("script", from_script)):
        b = np.empty_like(a)
        lw.build(func)(a, b)
        error = np.abs(b - exact).max() / 2**-24
        assert error < 4, error
        print(f"from {name}: within {error:.1f} units of the last place of 1")
    print(lw.lower(from_te(), target="llvm")["main"].script().splitlines()[-1].strip())

    A = te.placeholder((100,), name="A")
    func = te.create_prim_func([A, te.compute((100,), lambda i: tir.exp(A[i]), name="B")])
    ours = lw.lower(func, target="llvm")["main"].script().splitlines()[-1].strip()
    op = ir.Op.get("tir.exp")
    ir.register_intrin_lowering("tir.exp", target="llvm", f=libm_exp_rule, level=99)
    print(f"{ours}  →  {lw.lower(func, target='llvm')['main'].script().splitlines()[-1].strip()}")
    op.reset_attr("llvm.FLowerIntrin")


if __name__ == "__main__":
    main()
