"""Vectors of floats become integers by saturation, whether the machine's own instruction saturates or not."""

from __future__ import annotations

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir
from loopwright.codegen.llvm import saturation

pytestmark = pytest.mark.optimized

LANES = 8
INTS = "int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()


def edges(dtype: str) -> np.ndarray:
    """Every power of two and what lies beside it, halves, zeros, infinities and NaN, of both signs; whole vectors."""
    powers = 2.0 ** np.arange(-2, 66)
    some = np.concatenate([powers, powers - 0.5, powers - 1, powers + 1, [0.0, 2.9, 1e30, np.inf]]).astype(dtype)
    beside = [np.nextafter(some, np.array(end, dtype)) for end in (0, np.inf)]
    some = np.concatenate([some, *beside])
    some = np.concatenate([some, -some, np.full(1, np.nan, dtype)])
    return np.resize(some, -(-len(some) // LANES) * LANES)


def saturated(values: np.ndarray, target: str) -> np.ndarray:
    info = np.iinfo(target)
    whole = [0 if np.isnan(x) else int(np.clip(np.float64(x), -(2.0**70), 2.0**70)) for x in values]
    return np.array([min(max(x, info.min), info.max) for x in whole], target)


def casts(count: int, source: str, target: str, lanes: int) -> ir.PrimFunc:
    a, b, i = ir.decl_buffer((count,), source, "A"), ir.decl_buffer((count,), target, "B"), ir.Var("i")
    index = i if lanes == 1 else ir.Ramp(i * lanes, ir.const(1), lanes)
    value = ir.BufferLoad(a, (index,)).astype(ir.DataType(target).with_lanes(lanes))
    store = ir.BufferStore(b, value, (index,))
    return ir.PrimFunc([a, b], ir.For(i, ir.const(0), ir.const(count // lanes), ir.ForKind.SERIAL, store))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("saturates", [True, False])
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_every_edge(source, saturates, monkeypatch):
    if not saturates:  # code for machines whose conversion does not: it is right on all
        monkeypatch.setattr(saturation, "_machine_saturates", lambda emitter: False)
    values = edges(source)
    module = lw.IRModule({t: casts(len(values), source, t, LANES).with_attr("global_symbol", t) for t in INTS})
    built = lw.build(module)
    for target in INTS:
        result = np.zeros(len(values), target)
        built[target](values, result)
        np.testing.assert_array_equal(result, saturated(values, target), f"{source} to {target}")


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_every_byte_becomes_float64(dtype):
    values = np.arange(256).astype(dtype)
    result = np.zeros(256, "float64")
    lw.build(casts(256, dtype, "float64", 16))(values, result)
    np.testing.assert_array_equal(result, values.astype("float64"))


@pytest.mark.parametrize(("source", "target"), [("float32", "int32"), ("float64", "int32"), ("float64", "uint8")])
@pytest.mark.parametrize("machine", ["x86_64-unknown-linux-gnu -mcpu=haswell", "aarch64-unknown-linux-gnu"])
def test_no_lane_is_converted_alone(source, target, machine):
    text = lw.build(casts(64, source, target, LANES), target=f"llvm -mtriple={machine}").get_source("asm")
    assert not re.search(r"vcvtts[sd]2si|fcvtz[su]\s+[wx]", text)


@pytest.mark.parametrize(("source", "target"), [("float32", "uint8"), ("float32", "uint16"), ("float64", "uint8")])
def test_narrow_unsigned_integers_are_upper_bits(source, target):
    text = lw.build(casts(64, source, target, 16), target="llvm -mtriple=aarch64-unknown-linux-gnu").get_source("asm")
    factor = np.dtype(source).itemsize * 8 - np.dtype(target).itemsize * 8
    assert re.search(rf"fcvtzu\s+v.*#{factor}\b", text) and "uzp2" in text and "uqxtn" not in text
