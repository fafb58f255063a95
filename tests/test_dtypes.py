"""Every data type with every operator, and casts between all pairs: evaluator, native code and numpy agree.

One program holds all operators of a type (or all casts from it), one store each, on scalars or on vectors of some lane
count. Values are the edges of the type and random ones; for 8-bit floats all 256.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from loopwright import ir
from loopwright.codegen.llvm import make_module
from loopwright.evaluator import evaluate
from loopwright.ir import intrinsics
from loopwright.runtime.dtype import DataType, UnknownDataType
from loopwright.script import from_source
from loopwright.target import Target, describe
from loopwright.transform.pipeline import stages
from tests.agreement import assert_same, bits, is_nan, write_out_math

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # of NaN, by ml_dtypes

INTEGERS = "int1 int2 uint2 int4 uint4 int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()
FLOATS = "float16 bfloat16 e4m3_float8 e5m2_float8 float32 float64".split()
ALL = ["bool", *INTEGERS, *FLOATS]
LANES = [2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 64]
ELEMENTS = 66  # 33 lanes twice

# The check that no two of many arguments overlap takes longer to compile than all the rest.
UNCHECKED = {"tir.noalias": False}

Makers = dict[str, Callable[[ir.Expr, ir.Expr], ir.Expr]]
ARITHMETIC: Makers = {
    cls.__name__: cls for cls in (ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod, ir.Min, ir.Max)
}
COMPARISONS: Makers = {cls.__name__: cls for cls in (ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE)}
CHOICES: Makers = {
    "Select": lambda a, b: ir.Select(ir.LT(a, b), a, b),
    "if_then_else": lambda a, b: intrinsics.if_then_else(ir.LE(a, b), b, a),
}
LOGIC: Makers = {"And": ir.And, "Or": ir.Or, "Not": lambda a, b: ir.Not(a)}
BITS: Makers = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a, b: ~a,
    "shift_left": lambda a, b: a << b,
    "shift_right": lambda a, b: a >> b,
    "clz": lambda a, b: intrinsics.clz(a),
    "popcount": lambda a, b: intrinsics.popcount(a),
    "abs": lambda a, b: intrinsics.abs(a),
    "minus": lambda a, b: -a,
}
UNARY = "abs sqrt floor ceil trunc round nearbyint isnan isinf isfinite"
REAL: Makers = {
    **{name: (lambda a, b, name=name: getattr(intrinsics, name)(a)) for name in UNARY.split()},
    **{name: (lambda a, b, name=name: getattr(intrinsics, name)(a, b)) for name in ("copysign", "nextafter", "fmod")},
    "minus": lambda a, b: -a,
    "fma": lambda a, b: intrinsics.fma(a, b, b),
}


def operators(dtype: DataType) -> Makers:
    """Everything that two values of a type can do."""
    if dtype.is_bool:
        return COMPARISONS | CHOICES | LOGIC
    return ARITHMETIC | COMPARISONS | CHOICES | (BITS if dtype.is_int else REAL)


def casts(dtype: DataType) -> Makers:
    """To every other type."""
    return {to: (lambda a, b, to=to: ir.Cast(DataType(to).with_lanes(a.dtype.lanes), a)) for to in ALL}


def program(dtype: DataType, lanes: int, makers: Makers) -> ir.PrimFunc:
    """One loop over a and b that stores what each maker computes, `lanes` elements at a time."""
    size, i = ELEMENTS // lanes * lanes, ir.Var("i", "int32")
    at = i if lanes == 1 else ir.Ramp(i * lanes, ir.const(1), lanes)
    a, b = (ir.decl_buffer((size,), dtype, name) for name in "ab")
    buffers, stores = [a, b], []
    for name, make in makers.items():
        value = make(ir.BufferLoad(a, (at,)), ir.BufferLoad(b, (at,)))
        buffers.append(ir.decl_buffer((size,), value.dtype.element, name))
        stores.append(ir.BufferStore(buffers[-1], value, (at,)))
    params = [ir.Var(f"p_{buffer.name}", "handle") for buffer in buffers]
    every = stores[0] if len(stores) == 1 else ir.SeqStmt(tuple(stores))
    body = ir.For(i, ir.const(0), ir.const(size // lanes), ir.ForKind.SERIAL, every)
    return ir.PrimFunc(params, body, buffer_map=dict(zip(params, buffers, strict=True)), attrs=UNCHECKED)


def values(dtype: DataType, count: int, seed: int) -> np.ndarray:
    """Edges and random values of a type."""
    random = np.random.default_rng(seed)
    if dtype.is_bool:
        return random.integers(0, 2, count).astype(bool)
    if dtype.is_int:
        low, high = dtype.lowest, dtype.highest
        edges = [low, low + 1, -1, 0, 1, 2, 3, high - 1, high]
        kind = "int64" if low else "uint64"
        some = random.integers(low, high, count, dtype=kind, endpoint=True)
        for position in range(0, count, 2):
            some[position] = min(max(edges[int(random.integers(len(edges)))], low), high)
        return some.astype(dtype.numpy())
    if dtype.bits <= 16:
        return random.integers(0, 1 << dtype.bits, count).astype(f"u{dtype.nbytes}").view(dtype.numpy())
    edges = "0 -0 1 -1 .5 1.5 2.5 inf -inf nan 1e-45 3e38 65504 65520 448 464 465 57344 61440 127.5 128 -128.5 255.5"
    edges += " 256 7.5 -8.5 15.5 2147483647 2147483648 9223372036854775808 18446744073709551616 -9223372036854775808"
    some = random.normal(size=count) * 10.0 ** random.integers(-12, 12, count)
    some[::2] = random.choice(np.array(edges.split(), "float64"), len(some[::2]))
    with np.errstate(all="ignore"):
        return some.astype(dtype.numpy())


def arguments(function: ir.PrimFunc, dtype: DataType, divides: bool) -> list[np.ndarray]:
    """Operands and room for the results; where integers are divided, never by zero, and never the least by -1."""
    count = int(function.argument_buffers()[0].shape[0])
    a, b = values(dtype, count, 1), values(dtype, count, 2)
    if divides and dtype.is_int:
        wide = b.astype("int64")
        b = np.where(wide == 0, 1 if dtype.highest else -1, b.astype("uint64" if dtype.is_unsigned else "int64"))
        b = b.astype(dtype.numpy())
        a[(a.astype("float64") == dtype.lowest) & (b.astype("float64") == -1)] = 0
    results = [np.zeros(count, buffer.dtype.numpy()) for buffer in function.argument_buffers()[2:]]
    return [a, b, *results]


def run_everywhere(function: ir.PrimFunc, given: list[np.ndarray]) -> list[np.ndarray]:
    """The results, the same from the evaluator, from the evaluator after lowering, and from native code."""
    first = [array.copy() for array in given]
    evaluate(function, *first)
    *_, (_, lowered) = stages(function, "llvm")
    later, native = [array.copy() for array in given], [array.copy() for array in given]
    evaluate(write_out_math(lowered), *later)
    make_module(ir.IRModule({"main": lowered}), describe(Target("llvm")))(*native)
    assert_same(function, native, later, "native code", "the evaluator on the same stage")
    assert_same(function, later, first, "the evaluator after lowering", "before")
    return native


def other_lanes(dtype: str) -> int:
    """A lane count for each type, another one for the next."""
    return LANES[3 * ALL.index(dtype) % len(LANES)]


CASES = [(dtype, lanes) for dtype in ALL for lanes in (1, other_lanes(dtype))]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "lanes"), CASES)
def test_operators_agree(name, lanes):
    dtype = DataType(name)
    function = program(dtype, lanes, operators(dtype))
    results = run_everywhere(function, arguments(function, dtype, divides=True))
    check_with_numpy(function, results)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("lanes", [2, 3, 5, 7, 16, 64])
def test_every_lane_count_of_every_type(lanes):
    i, buffers, stores, given = ir.Var("i", "int32"), [], [], []
    at = ir.Ramp(i * lanes, ir.const(1), lanes)
    for name in ALL:
        dtype = DataType(name)
        a, b = (ir.decl_buffer((2 * lanes,), dtype, f"{which}_{name}") for which in "ab")
        value, other = ir.BufferLoad(a, (at,)), ir.BufferLoad(b, (at,))
        single = ir.Cast(DataType("float32").with_lanes(lanes), value)
        chosen = ir.Select(ir.LT(value, other), value, other)
        to = ir.decl_buffer((2 * lanes,), "float32", f"to_{name}")
        back = ir.decl_buffer((2 * lanes,), dtype, f"back_{name}")
        stores += [ir.BufferStore(to, single, (at,)), ir.BufferStore(b, chosen, (at,))]
        stores += [ir.BufferStore(back, ir.Cast(value.dtype, single), (at,))]
        buffers += [a, b, to, back]
        given += [values(dtype, 2 * lanes, lanes), values(dtype, 2 * lanes, lanes + 1)]
        given += [np.zeros(2 * lanes, "float32"), np.zeros(2 * lanes, dtype.numpy())]
    params = [ir.Var(f"p_{buffer.name}", "handle") for buffer in buffers]
    body = ir.For(i, ir.const(0), ir.const(2), ir.ForKind.SERIAL, ir.SeqStmt(tuple(stores)))
    map_ = dict(zip(params, buffers, strict=True))
    run_everywhere(ir.PrimFunc(params, body, buffer_map=map_, attrs=UNCHECKED), given)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "lanes"), CASES)
def test_casts_agree(name, lanes):
    dtype = DataType(name)
    function = program(dtype, lanes, casts(dtype))
    results = run_everywhere(function, arguments(function, dtype, divides=False))
    a = results[0]
    for buffer, got in zip(function.argument_buffers()[2:], results[2:], strict=True):
        want = numpy_cast(a, dtype, buffer.dtype)
        if want is not None:
            same_bits(got, want, f"cast of {dtype} to {buffer.dtype}")


def numpy_cast(a: np.ndarray, source: DataType, target: DataType) -> np.ndarray | None:
    """What numpy and ml_dtypes make of a cast; None where theirs is undefined (floats outside an integer's range)."""
    with np.errstate(all="ignore"):
        if target.is_bool:
            return a.astype("float32" if source.bits < 32 else source.numpy()) != 0
        if source.is_float and target.is_int:
            wide = a.astype("float64")
            inside = np.nan_to_num(wide, nan=0.0, posinf=np.inf, neginf=-np.inf)
            exact = [min(max(x, float(target.lowest)), float(target.highest)) for x in inside]
            whole = [min(max(int(x), target.lowest), target.highest) for x in exact]
            return np.array(whole, "int64" if target.lowest else "uint64").astype(target.numpy())
        if source.is_float or target.is_float:
            small = (source.is_float and source.bits < 32) or (target.is_float and target.bits < 32)
            wide = a.astype("int64" if source.lowest else "uint64") if not source.is_float and source.bits < 8 else a
            return (wide.astype("float32") if small else wide).astype(target.numpy())
        wide = a.astype("uint64" if source.is_unsigned else "int64")
        kept = wide.astype("uint64") & np.uint64((1 << target.bits) - 1)
        if target.lowest and target.bits < 64:
            half = np.int64(1 << (target.bits - 1))
            return ((kept.astype("int64") ^ half) - half).astype(target.numpy())
        return kept.astype("int64").astype(target.numpy()) if target.lowest else kept.astype(target.numpy())


def check_with_numpy(function: ir.PrimFunc, results: list[np.ndarray]) -> None:
    """+ - * and comparisons as numpy and ml_dtypes compute them."""
    a, b = results[:2]
    dtype = function.argument_buffers()[0].dtype
    sums = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}
    orders = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater}
    if dtype.bits < 8:
        a, b = a.astype("int8"), b.astype("int8")
        sums = {}  # of ml_dtypes' integers, which do not wrap around
    for buffer, got in zip(function.argument_buffers(), results, strict=True):
        compute = sums.get(buffer.name) or orders.get(buffer.name)
        if compute is not None:
            with np.errstate(all="ignore"):
                same_bits(got, compute(a, b), f"{buffer.name} of {dtype}")


def same_bits(got: np.ndarray, want: np.ndarray, what: str) -> None:
    """Equal bit for bit; any NaN equals any NaN, and of types below a byte only the low bits count."""
    assert got.dtype == want.dtype, what
    if DataType(got.dtype).bits < 8 and got.dtype != bool:
        got, want = got.astype("int8"), want.astype("int8")
    wrong = ~((bits(got) == bits(want)) | (is_nan(got) & is_nan(want)))
    assert not wrong.any(), f"{what}: {got[wrong][0]!r} instead of {want[wrong][0]!r}"


@pytest.mark.parametrize("dtype", ["e4m3_float8", "e5m2_float8"])
@pytest.mark.parametrize("sign", ["Add", "Mul"])
def test_all_pairs_of_float8(dtype, sign):
    a, b = ir.decl_buffer((256,), dtype, "a"), ir.decl_buffer((256,), dtype, "b")
    c = ir.decl_buffer((256, 256), dtype, "c")
    i, j = ir.Var("i", "int32"), ir.Var("j", "int32")
    value = ARITHMETIC[sign](ir.BufferLoad(a, (i,)), ir.BufferLoad(b, (j,)))
    inner = ir.For(j, ir.const(0), ir.const(256), ir.ForKind.VECTORIZED, ir.BufferStore(c, value, (i, j)))
    body = ir.For(i, ir.const(0), ir.const(256), ir.ForKind.SERIAL, inner)
    params = [ir.Var(name, "handle") for name in "xyz"]
    function = ir.PrimFunc(params, body, buffer_map=dict(zip(params, (a, b, c), strict=True)))
    *_, (_, lowered) = stages(function, "llvm")
    every = np.arange(256, dtype="uint8").view(DataType(dtype).numpy())
    got = np.zeros((256, 256), every.dtype)
    make_module(ir.IRModule({"main": lowered}), describe(Target("llvm")))(every, every, got)
    with np.errstate(all="ignore"):
        want = (every[:, None] + every) if sign == "Add" else (every[:, None] * every)
    same_bits(got, want, f"{sign} of {dtype}")


@pytest.mark.parametrize("dtype", ALL)
def test_every_type_prints_and_parses(dtype):
    function = program(DataType(dtype), 4, {"Select": CHOICES["Select"]})
    assert ir.structural_equal(from_source(function.script()), function)


@pytest.mark.parametrize("dtype", ["int3", "uint7", "int12", "int24", "uint48", "int128", "float8", "bfloat32"])
def test_other_widths_are_refused_by_name(dtype):
    with pytest.raises(UnknownDataType, match=f"unknown data type '{dtype}'"):
        DataType(dtype)
