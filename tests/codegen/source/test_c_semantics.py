"""Every operation in C on the values where it is easy to get wrong, bit for bit as the evaluator has it.

All operations of a test stand in one C file, which is compiled once and run under the sanitizer for undefined
behaviour.
"""

from __future__ import annotations

import functools
import itertools
import random
import shutil
from collections.abc import Callable

import numpy as np
import pytest

from loopwright import ir
from loopwright.codegen.math.table import BODIES
from loopwright.ir import intrinsics, machine_intrinsics
from loopwright.ir.operators import truncdiv, truncmod
from loopwright.target import Target
from tests.c_programs import UNDEFINED, Case, CBatch

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc here")

INTS = "int4 uint4 int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()
SMALL_FLOATS = "float16 bfloat16 e4m3_float8 e5m2_float8".split()
FLOATS = [*SMALL_FLOATS, "float32", "float64"]
MOST_PAIRS = 200
ALL = ["bool", *INTS, *FLOATS]


def edges(dtype: str) -> np.ndarray:
    """Values at and around everything special about a type."""
    element = ir.DataType(dtype)
    if element.is_bool:
        return np.array([False, True])
    if element.is_int:
        low, high = int(element.min_value()), int(element.max_value())
        near = {low, low + 1, high - 1, high, high // 2, high // 3, low // 2, low // 3, -5, -3, -1, 0, 1, 2, 3, 5, 7}
        return np.array([value for value in sorted(near) if low <= value <= high], element.numpy())
    limits = [0.5, 1, 1.5, 2.5, 127, 128, 255, 256, 32767.5, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**63, 2**64, 1e-3]
    most = float(element.max_value())
    values = [v for v in [*limits, 1e-8, 1e-40, most, most / 3, 0.1, 3.7] if v <= most]
    special = [0.0, -0.0, np.nan, *([np.inf, -np.inf] if dtype != "e4m3_float8" else [])]
    return np.array([*values, *[-v for v in values], *special], "float64").astype(element.numpy())


def pairs(dtype: str, divides: bool) -> tuple[np.ndarray, np.ndarray]:
    element, values = ir.DataType(dtype), edges(dtype)
    chosen = [
        (a, b)
        for a, b in itertools.product(values, values)
        if not (divides and element.is_int and (int(b) == 0 or (int(b) == -1 and int(a) == element.lowest)))
    ]
    if len(chosen) > MOST_PAIRS:
        chosen = random.Random(dtype).sample(chosen, MOST_PAIRS)
    return tuple(np.array([pair[side] for pair in chosen], values.dtype) for side in (0, 1))


def case(label: str, operation: Callable[..., ir.Expr], *arrays: np.ndarray) -> Case:
    """B[i] = operation(A0[i], A1[i], …)"""
    count, i = len(arrays[0]), ir.Var("i")
    dtypes = [ir.DataType(array.dtype) if array.dtype != bool else ir.DataType("bool") for array in arrays]
    inputs = [ir.decl_buffer((count,), dtype, f"A{k}") for k, dtype in enumerate(dtypes)]
    value = operation(*[ir.BufferLoad(buffer, [i]) for buffer in inputs])
    output = ir.decl_buffer((count,), value.dtype, "B")
    body = ir.For(i, 0, count, ir.ForKind.SERIAL, ir.BufferStore(output, value, [i]))
    return Case(ir.PrimFunc([*inputs, output], body), [*arrays, np.zeros(count, value.dtype.numpy())], label)


def agree(cases: list[Case], tmp_path) -> None:
    CBatch(cases, Target("c")).run(["gcc", "-O0", *UNDEFINED], tmp_path)


def test_casts(tmp_path):
    agree(
        [
            case(f"{source} to {target}", lambda x, target=target: ir.Cast(target, x), edges(source))
            for source, target in itertools.permutations(ALL, 2)
        ],
        tmp_path,
    )


OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "min": intrinsics.minimum,
    "max": intrinsics.maximum,
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: ir.EQ(a, b),
}
INT_OPERATIONS = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
    "not": lambda a, b: ~a,
    "abs": lambda a, b: intrinsics.abs(a),
    "clz": lambda a, b: intrinsics.clz(a),
    "popcount": lambda a, b: intrinsics.popcount(a),
}
DIVISIONS = {
    "div": truncdiv,
    "mod": truncmod,
    "floordiv": lambda a, b: a // b,
    "floormod": lambda a, b: a % b,
}
FLOAT_DIVISIONS = {"div": lambda a, b: a / b, "floordiv": ir.FloorDiv, "floormod": ir.FloorMod, "mod": ir.Mod}


def test_integer_arithmetic(tmp_path):
    cases = [
        case(f"{name} {dtype}", operation, *pairs(dtype, False))
        for dtype in INTS
        for name, operation in {**OPERATIONS, **INT_OPERATIONS}.items()
    ]
    cases += [
        case(f"{name} {dtype}", operation, *pairs(dtype, True))
        for dtype in INTS
        for name, operation in DIVISIONS.items()
    ]
    agree(cases, tmp_path)


def test_fixed_point_products(tmp_path):
    x, y = pairs("int32", False)
    shifts = [(31, s) for s in (0, 1, 5, 31, -1, -5, -30)] + [(0, 0), (0, 3), (15, -40), (1, 1), (30, -2)]
    cases = [
        case(f"q {q} s {s}", lambda a, b, q=q, s=s: machine_intrinsics.q_multiply_shift(a, b, q, s), x, y)
        for q, s in shifts
    ]
    x, y, left, right = (np.resize(values, len(x)) for values in (x, y, np.arange(6, dtype="int32"), y % 8))
    for shifts_left, shifts_right in itertools.product([False, True], repeat=2):
        apart = functools.partial(_per_axis, shifts_left=shifts_left, shifts_right=shifts_right)
        cases.append(case(f"per axis {shifts_left} {shifts_right}", apart, x, y, left, right))
    agree(cases, tmp_path)


def _per_axis(x: ir.Expr, y: ir.Expr, left: ir.Expr, right: ir.Expr, shifts_left: bool, shifts_right: bool) -> ir.Expr:
    return machine_intrinsics.q_multiply_shift_per_axis(
        x, y, left, right, 15, ir.const(shifts_left), ir.const(shifts_right)
    )


def test_truth_values_and_small_integers(tmp_path):
    def bits(dtype: str, name: str) -> Callable[..., ir.Expr]:
        return lambda *args: intrinsics.call_intrin(dtype, f"tir.{name}", *args)

    a, b = pairs("bool", False)
    cases = [case(name, bits("bool", name), a, b) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")]
    cases.append(case("bitwise_not", bits("bool", "bitwise_not"), a))
    cases.append(case("abs of what has no sign", bits("uint8", "abs"), edges("uint8")))
    for source, target in (("int4", "uint4"), ("uint4", "int4")):
        cases.append(case(f"{source} as {target}", lambda x, t=target: intrinsics.reinterpret(t, x), edges(source)))
    agree(cases, tmp_path)


def of_the_first(name: str) -> Callable[..., ir.Expr]:
    function = getattr(intrinsics, name)
    return lambda a, b: function(a)


def test_float_arithmetic(tmp_path):
    others = {
        **{name: of_the_first(name) for name in "sqrt floor ceil trunc round nearbyint".split()},
        **{name: of_the_first(name) for name in "isnan isinf isfinite abs".split()},
        **{name: getattr(intrinsics, name) for name in ("copysign", "fmod", "nextafter")},
        "fma": lambda a, b: intrinsics.fma(a, b, a),
        "negate": lambda a, b: -a,
    }
    cases = [
        case(f"{name} {dtype}", operation, *pairs(dtype, False))
        for dtype in FLOATS
        for name, operation in {**OPERATIONS, **FLOAT_DIVISIONS, **others}.items()
    ]
    agree(cases, tmp_path)


def test_mathematical_functions(tmp_path):
    cases = []
    rng = np.random.default_rng(0)
    for name, dtype in BODIES:
        if name in ("decode", "encode", "nextafter") or dtype not in ("float32", "float64"):
            continue
        drawn = np.concatenate([rng.standard_normal(20) * scale for scale in (0.1, 1, 30, 1e6)]).astype(dtype)
        x = np.concatenate([edges(dtype), drawn])
        function = getattr(intrinsics, name)
        arrays = (x, x[::-1].copy()) if name in ("pow", "atan2", "hypot", "fmod") else (x,)
        cases.append(case(f"{name} {dtype}", function, *arrays))
    agree(cases, tmp_path)


def test_bits_of_floats(tmp_path):
    same_width = [("float32", "int32"), ("float32", "uint32"), ("float64", "int64"), ("int64", "float64")]
    same_width += [("uint32", "float32"), ("float16", "uint16"), ("uint16", "bfloat16"), ("int8", "uint8")]
    cases = [
        case(f"bits of {source} as {target}", lambda x, t=target: intrinsics.reinterpret(t, x), _finite(source))
        for source, target in same_width
    ]
    agree(cases, tmp_path)


def _finite(dtype: str) -> np.ndarray:
    values = edges(dtype)
    return values[~np.isnan(values)] if values.dtype.kind == "f" else values
