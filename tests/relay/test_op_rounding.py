"""rint, and the rounding of qnn.quantize: halves to the even integer."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay
from loopwright.ir import IRModule
from loopwright.relay import interpreter
from loopwright.relay.build_module import build
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.infer_type import infer_module

HALVES = np.float32([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 8388609.0, np.inf, -np.inf, np.nan, -0.0])


def module(body: relay.Expr, x: relay.Var) -> IRModule:
    made = IRModule.from_expr(relay.Function([x], body))
    infer_module(made)
    return made


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_halves_go_to_the_even_integer(dtype):
    data = HALVES.astype(dtype)
    x = relay.var("x", shape=data.shape, dtype=dtype)
    mod = module(relay.rint(x), x)
    wanted = np.rint(data)
    np.testing.assert_array_equal(interpreter.evaluate(mod["main"], [data]), wanted)
    found = build(mod, "llvm").run([data])[0]
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


def test_integers_stay():
    x = relay.var("x", shape=(3,), dtype="int32")
    mod = module(relay.rint(x), x)
    np.testing.assert_array_equal(build(mod, "llvm").run([np.int32([1, -2, 3])])[0], [1, -2, 3])


@pytest.mark.parametrize(("rounding", "wanted"), [("TONEAREST", [1, 2, 3, -1]), ("TONEAREST_EVEN", [0, 2, 2, 0])])
def test_quantize_rounds_as_it_is_told(rounding, wanted):
    x = relay.var("x", shape=(4,), dtype="float32")
    call = relay.qnn.op.quantize(x, relay.const(1.0), relay.const(0, "int32"), rounding=rounding)
    found = interpreter.evaluate(module(call, x)["main"], [HALVES[:4]])
    np.testing.assert_array_equal(found, wanted)


def test_another_rounding_is_refused():
    x = relay.var("x", shape=(4,), dtype="float32")
    call = relay.qnn.op.quantize(x, relay.const(1.0), relay.const(0, "int32"), rounding="UPWARD")
    with pytest.raises(TypeMismatch, match="rounding is 'UPWARD'"):
        module(call, x)
