"""A pass of one's own: divisions by powers of two become multiplications, which are exact and much faster.

    python examples/custom_pass.py

The pass is written once, as a function from PrimFunc to PrimFunc, and used three ways: called on a function, in a
Sequential, and inside the lowering of `build`, on a program from te and on one from a script.
"""

from __future__ import annotations

import math

import numpy as np

import loopwright as lw
from loopwright import te, tir
from loopwright.script import tir as T


@tir.transform.prim_func_pass(opt_level=0)
def multiply_instead(func: tir.PrimFunc, mod: lw.IRModule, ctx: lw.PassContext) -> tir.PrimFunc:
    """x / 8.0 becomes x * 0.125 where the reciprocal is exact."""

    def change(node: tir.Div) -> tir.PrimExpr | None:
        divisor = node.b
        if not isinstance(divisor, tir.FloatImm) or divisor.value == 0 or not math.isfinite(divisor.value):
            return None  # keep the node
        mantissa, _ = math.frexp(divisor.value)
        return node.a * (1.0 / divisor.value) if abs(mantissa) == 0.5 else None

    return func.with_body(tir.stmt_functor.ir_transform(func.body, None, change, ["tir.Div"]))


@tir.transform.prim_func_pass(opt_level=0, name="count_divisions")
class CountDivisions:
    """A pass as a class keeps what it found: how many divisions are left."""

    def __init__(self) -> None:
        self.count = 0

    def transform_function(self, func: tir.PrimFunc, mod: lw.IRModule, ctx: lw.PassContext) -> tir.PrimFunc:
        def look(node: object) -> None:
            self.count += isinstance(node, tir.Div)

        tir.stmt_functor.post_order_visit(func.body, look)
        return func


def from_te() -> tir.PrimFunc:
    A = te.placeholder((100,), name="A")
    B = te.compute((100,), lambda i: A[i] / 8.0 + A[i] / 3.0, name="B")
    return te.create_prim_func([A, B])


@T.prim_func
def from_script(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    for i in range(100):
        with T.block("B"):
            vi = T.axis.spatial(100, i)
            B[vi] = A[vi] / T.float32(8) + A[vi] / T.float32(3)


def main() -> None:
    a = np.linspace(-3, 3, 100, dtype="float32")
    for name, func in (("te", from_te()), ("script", from_script)):
        print(f"from {name}: {multiply_instead(func).script().splitlines()[-1].strip()}")
        left = CountDivisions()
        lw.transform.Sequential([multiply_instead, left])(lw.IRModule({"main": func}))
        with lw.PassContext(config={"tir.add_lower_pass": [(1, multiply_instead)]}):
            run = lw.build(func)
        b = np.empty_like(a)
        run(a, b)
        np.testing.assert_array_equal(b, a / np.float32(8) + a / np.float32(3))
        print(f"  divisions left: {left.count}; the result is numpy's, bit for bit")


if __name__ == "__main__":
    main()
