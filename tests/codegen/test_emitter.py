"""Native code computes what docs/semantics.md says: every kind of expression and statement, all types, edge values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir, te
from loopwright.evaluator import evaluate
from loopwright.ir import intrinsics
from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule import Schedule
from loopwright.script import ir as I
from loopwright.script import tir as T
from tests.agreement import assert_agreement, bits, is_nan

INTS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
NUMBERS = [*INTS, *FLOATS]

Make = Callable[..., ir.Expr]


def edge_values(dtype: str) -> np.ndarray:
    """The values where arithmetic goes wrong first."""
    kind = ir.DataType(dtype)
    if kind.is_bool:
        return np.array([False, True])
    if kind.is_int:
        wanted = [
            0,
            1,
            2,
            3,
            7,
            -1,
            -2,
            -7,
            kind.lowest,
            kind.lowest + 1,
            kind.highest,
            kind.highest - 1,
            kind.highest // 3,
        ]
        return np.array(sorted({value for value in wanted if kind.lowest <= value <= kind.highest}), kind.numpy())
    top = kind.max_value()
    tiny = {"float16": 6e-8, "bfloat16": 1e-40, "float32": 1e-45, "float64": 5e-324}[dtype]
    values = [0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 7.25, 100.0, 127.5, 255.0, 65504.0, tiny, top, np.inf, np.nan]
    with np.errstate(over="ignore"):
        return np.array([*values, *(-value for value in values)], "float64").astype(kind.numpy())


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Every edge value with every other."""
    values = edge_values(dtype)
    return np.repeat(values, len(values)), np.tile(values, len(values))


def check_all(makes: Sequence[Make], inputs: Sequence[np.ndarray], dtype: str) -> list[np.ndarray]:
    """outK[i] = makes[K](A[i], B[i], …): native code agrees with the evaluator, for scalars and for vectors of 4.

    The results of the scalars come back. One function holds all expressions: compiling is what takes the time.
    """
    padding = -len(inputs[0]) % 4
    inputs = [np.concatenate([array, np.repeat(array[:1], padding)]) for array in inputs]
    n = len(inputs[0])
    buffers = [ir.decl_buffer((n,), dtype, name=name) for name in "ABCD"[: len(inputs)]]
    outputs, loops = [], []
    for lanes in (1, 4):
        for make in makes:
            i = ir.Var("i")
            index = i if lanes == 1 else ir.Ramp(i * lanes, 1, lanes)
            value = make(*[ir.BufferLoad(buffer, [index]) for buffer in buffers])
            out = ir.decl_buffer((n,), value.dtype.element, name=f"out{len(outputs)}")
            outputs.append(out)
            loops.append(ir.For(i, 0, n // lanes, ir.ForKind.SERIAL, ir.BufferStore(out, value, [index])))
    # Checking every pair of so many outputs for overlap would be most of the code.
    function = ir.PrimFunc([*buffers, *outputs], ir.seq(loops), attrs={"tir.noalias": False})
    wanted = [np.zeros(n, out.dtype.numpy()) for out in outputs]
    evaluate(function, *inputs, *wanted)
    got = [np.zeros(n, out.dtype.numpy()) for out in outputs]
    lw.build(function)(*inputs, *got)
    for number, (a, b) in enumerate(zip(got, wanted, strict=True)):
        different = (bits(a) != bits(b)) & ~(is_nan(a) & is_nan(b))
        if different.any():
            k = int(np.argmax(different))
            given = ", ".join(str(array[k]) for array in inputs)
            raise AssertionError(f"{loops[number].body} on {dtype} {given}: native code {a[k]}, evaluator {b[k]}")
    return [array[: n - padding] for array in wanted[: len(makes)]]


def check(make: Make, inputs: Sequence[np.ndarray], dtype: str) -> np.ndarray:
    """`check_all` of one expression."""
    return check_all([make], inputs, dtype)[0]


def convert(target: str) -> Make:
    """A cast to `target`, with the lanes of its operand."""
    return lambda x: ir.Cast(ir.DataType(target).with_lanes(x.dtype.lanes), x)


# --- arithmetic ---


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_sums_products_and_extrema(dtype):
    makes = [lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, intrinsics.minimum, intrinsics.maximum]
    check_all(makes, pairs(dtype), dtype)


def test_integers_wrap_around():
    out = check(lambda x: x + x, [np.array([127, -128, 100, -100], "int8")], "int8")
    assert out.tolist() == [-2, 0, -56, 56]
    out = check(lambda x: -x, [np.array([0, 1, 255, 128], "uint8")], "uint8")
    assert out.tolist() == [0, 255, 1, 128]
    # also on the way to a result that fits
    out = check(lambda x: (x + x) // ir.const(2, x.dtype), [np.array([127, -128, 100, -100], "int8")], "int8")
    assert out.tolist() == [-1, 0, -28, 28]


DIVISIONS = [ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod]


def divided(node: type, a: int, b: int) -> int:
    """What a division gives, in exact integers."""
    quotient = a // b if node in (ir.FloorDiv, ir.FloorMod) else int(np.sign(a) * np.sign(b)) * (abs(a) // abs(b))
    return quotient if node in (ir.Div, ir.FloorDiv) else a - b * quotient


@pytest.mark.parametrize("dtype", INTS)
def test_integer_division_of_all_signs(dtype):
    a, b = pairs(dtype)
    defined = (b != 0) & ~((a == np.iinfo(a.dtype).min) & (b.astype("int64") == -1))
    a, b = a[defined], b[defined]
    for node, out in zip(DIVISIONS, check_all(DIVISIONS, [a, b], dtype), strict=True):
        assert out.tolist() == [divided(node, int(x), int(y)) for x, y in zip(a, b, strict=True)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8"])
def test_integer_division_by_literals(dtype):
    """Powers of two become shifts and masks."""
    values = edge_values(dtype)
    values = values[values != np.iinfo(dtype).min] if dtype.startswith("int") else values
    divisors = [1, 2, 3, 8, 64] + ([-1, -3, -8] if dtype.startswith("int") else [])
    cases = [(node, divisor) for node in DIVISIONS for divisor in divisors]
    makes = [lambda x, node=node, d=d: node(x, ir.const(d, x.dtype)) for node, d in cases]
    for (node, divisor), out in zip(cases, check_all(makes, [values], dtype), strict=True):
        assert out.tolist() == [divided(node, int(x), divisor) for x in values]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", FLOATS)
def test_float_division_and_remainders(dtype):
    check_all([*DIVISIONS, intrinsics.fmod, intrinsics.copysign], pairs(dtype), dtype)


@pytest.mark.parametrize("dtype", INTS)
def test_shifts_count_modulo_the_width(dtype):
    width = ir.DataType(dtype).bits
    values = edge_values(dtype)
    amounts = np.array([0, 1, width - 1, width, width + 1, 2 * width + 3], dtype)
    a, b = np.repeat(values, len(amounts)), np.tile(amounts, len(values))
    left, right = check_all([lambda x, y: x << y, lambda x, y: x >> y], [a, b], dtype)
    np.testing.assert_array_equal(left, (a << (b % width)).astype(dtype))
    np.testing.assert_array_equal(right, (a >> (b % width)).astype(dtype))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", INTS)
def test_bits(dtype):
    check_all(
        [
            lambda x, y: x & y,
            lambda x, y: x | y,
            lambda x, y: x ^ y,
            lambda x, _: ~x,
            lambda x, _: intrinsics.popcount(x),
            lambda x, _: intrinsics.clz(x),
            lambda x, _: intrinsics.abs(x),
        ],
        pairs(dtype),
        dtype,
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_extrema_with_nan_and_signed_zero(dtype):
    nan = float("nan")
    a = np.array([nan, 1.0, nan, 0.0, -0.0], "float64").astype(ir.DataType(dtype).numpy())
    b = np.array([1.0, nan, nan, -0.0, 0.0], "float64").astype(ir.DataType(dtype).numpy())
    least, most = check_all([intrinsics.minimum, intrinsics.maximum], [a, b], dtype)
    least, most = least.astype("float64"), most.astype("float64")
    assert np.isnan(least[:3]).all() and np.isnan(most[:3]).all()
    assert np.signbit(least[3:]).all() and not np.signbit(most[3:]).any()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_extrema_of_vectors_are_those_of_single_numbers(dtype):
    top, least = float(np.finfo(dtype).max), float(np.finfo(dtype).smallest_subnormal)
    numbers = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan, top, -top, least, -least], dtype)
    a, b = np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))
    A, B = te.placeholder(a.shape, dtype, name="A"), te.placeholder(a.shape, dtype, name="B")
    for combine, of_numbers in ((intrinsics.maximum, np.maximum), (intrinsics.minimum, np.minimum)):
        func = te.create_prim_func([A, B, te.compute(a.shape, lambda i: combine(A[i], B[i]), name="C")])  # noqa: B023
        sch = Schedule(func)
        sch.vectorize(sch.get_loops("C")[0])
        one, many = np.zeros_like(a), np.zeros_like(a)
        lw.build(func)(a, b, one)
        lw.build(sch.mod)(a, b, many)
        known = ~(np.isnan(a) | np.isnan(b))
        assert np.array_equal(~np.isnan(one), known) and np.array_equal(~np.isnan(many), known)
        assert one[known].tobytes() == many[known].tobytes()
        assert np.array_equal(many[known], of_numbers(a, b)[known])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", FLOATS)
def test_extrema_with_a_constant(dtype):
    numbers = [float("nan"), 0.0, -0.0, 1.0, -1.0, 2.5, float("inf"), -float("inf")]
    a = np.array(numbers, "float64").astype(ir.DataType(dtype).numpy())
    makes = []
    for limit in (0.0, -0.0, 1.0, -2.5, float("inf"), -float("inf")):
        for extremum in (intrinsics.minimum, intrinsics.maximum):
            makes.append(lambda x, f=extremum, c=limit: f(x, constant_like(x, c)))
            makes.append(lambda x, f=extremum, c=limit: f(constant_like(x, c), x))
    check_all(makes, [a], dtype)


def constant_like(x, number):
    literal = ir.const(number, x.dtype.element)
    return literal if x.dtype.lanes == 1 else ir.Broadcast(literal, x.dtype.lanes)


# --- comparison, logic, choice ---


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", [*NUMBERS, "bool"])
def test_comparisons(dtype):
    a, b = pairs(dtype)
    python = {ir.EQ: np.equal, ir.NE: np.not_equal, ir.LT: np.less, ir.LE: np.less_equal}
    python |= {ir.GT: np.greater, ir.GE: np.greater_equal}
    for node, out in zip(python, check_all(list(python), [a, b], dtype), strict=True):
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(out, python[node](a, b))


def test_logic_on_truth_values():
    a, b = pairs("bool")
    both, either, neither, differ = check_all([ir.And, ir.Or, lambda x, _: ir.Not(x), ir.NE], [a, b], "bool")
    assert both.tolist() == [False, False, False, True]
    assert either.tolist() == [False, True, True, True]
    assert neither.tolist() == [True, True, False, False]
    assert differ.tolist() == [False, True, True, False]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", [*NUMBERS, "bool"])
def test_select_and_if_then_else(dtype):
    chooses = [intrinsics.select, intrinsics.if_then_else]
    check_all([lambda x, y, choose=choose: choose(ir.LT(x, y), x, y) for choose in chooses], pairs(dtype), dtype)


# --- casts ---


@pytest.mark.one_in(3)
@pytest.mark.parametrize("source", [*NUMBERS, "bool"])
def test_casts_to_every_type(source):
    targets = [target for target in (*NUMBERS, "bool", "e4m3_float8", "e5m2_float8") if target != source]
    check_all([convert(target) for target in targets], [edge_values(source)], source)


@pytest.mark.parametrize("source", FLOATS)
def test_floats_saturate_to_integers(source):
    values = np.array([np.nan, np.inf, -np.inf, 1e4, -1e4, 2.9, -2.9], "float64").astype(ir.DataType(source).numpy())
    big = int(values.astype("float64")[3])
    for target, out in zip(INTS, check_all([convert(target) for target in INTS], [values], source), strict=True):
        low, high = ir.DataType(target).lowest, ir.DataType(target).highest
        assert out.tolist() == [0, high, low, min(big, high), max(-big, low), 2, max(-2, low)]


def test_reinterpret_keeps_the_bits():
    values = np.array([0x3F800000, 0x80000000, 0x7F800000, 1], "uint32")
    out = check(
        lambda x: intrinsics.reinterpret(ir.DataType("float32").with_lanes(x.dtype.lanes), x), [values], "uint32"
    )
    assert out.view("uint32").tolist() == values.tolist()


@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding_and_sign_functions(dtype):
    names = "floor ceil trunc round nearbyint abs sqrt isnan isinf isfinite".split()
    makes = [getattr(intrinsics, name) for name in names]
    check_all([*makes, lambda x: -x], [edge_values(dtype)], dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fma_rounds_once(dtype):
    eps = float(np.finfo(dtype).eps)
    x, z = np.array([1 + eps, 1 - eps, 1 + eps, np.inf], dtype), np.array([-1, -1, 1, np.nan], dtype)
    out = check(lambda a, b: intrinsics.fma(a, a, b), [x, z], dtype)
    assert out[0] == 2 * eps + eps * eps  # the product alone would lose its last bit


# --- loads and stores ---


def test_if_then_else_guards_a_load_outside():
    @T.prim_func
    def func(A: T.Buffer((4,), "float32"), out: T.Buffer((8,), "float32")):
        for i in range(8):
            out[i] = T.if_then_else(2 <= i and i < 6, A[i - 2], T.float32(-1))

    assert_agreement(func, [np.arange(4, dtype="float32"), np.zeros(8, "float32")])


def test_vectorized_guards_load_nothing_outside():
    @T.prim_func
    def func(A: T.Buffer((4,), "float32"), out: T.Buffer((8,), "float32")):
        for i in T.vectorized(8):
            out[i] = T.if_then_else(2 <= i and i < 6, A[i - 2], T.float32(-1))

    assert_agreement(func, [np.arange(4, dtype="float32"), np.zeros(8, "float32")])


@pytest.mark.parametrize("word", ["and", "or"])
def test_logic_guards_a_load_outside(word):
    A, index, out = (
        ir.decl_buffer((4,), "int32", "A"),
        ir.decl_buffer((6,), "int32", "I"),
        ir.decl_buffer((6,), "bool", "out"),
    )
    i = ir.Var("i")
    k = ir.BufferLoad(index, [i])
    inside = ir.And(k >= 0, k < 4)
    load = ir.BufferLoad(A, [k]) > 1
    value = ir.And(inside, load) if word == "and" else ir.Or(ir.Not(inside), load)
    func = ir.PrimFunc([A, index, out], ir.For(i, 0, 6, ir.ForKind.SERIAL, ir.BufferStore(out, value, [i])))
    indices = np.array([0, 3, -(1 << 30), 1 << 30, 2, 1], "int32")
    assert_agreement(func, [np.array([0, 1, 2, 3], "int32"), indices, np.zeros(6, bool)])


def test_a_guarded_division_does_not_fault():
    def make(x: ir.Expr) -> ir.Expr:
        zero, ten, other = (ir.const(value, x.dtype) for value in (0, 10, -1))
        return intrinsics.if_then_else(ir.NE(x, zero), ir.Div(ten, x), other) if x.dtype.lanes == 1 else x

    out = check(make, [np.array([0, 1, 7, -3], "int32")], "int32")
    assert out.tolist() == [-1, 10, 1, -3]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64", "bool", "bfloat16"])
@pytest.mark.parametrize("stride", [1, 2, 3, 4, 5, 0, -1])
def test_vector_loads_of_every_stride(dtype, stride):
    A, out = ir.decl_buffer((45,), dtype, "A"), ir.decl_buffer((8,), dtype, "out")
    load = ir.BufferLoad(A, [ir.Ramp(9, stride, 8)])
    func = ir.PrimFunc([A, out], ir.BufferStore(out, load, [ir.Ramp(0, 1, 8)]))
    a = (np.arange(45) % 2 if dtype == "bool" else np.arange(45)).astype(ir.DataType(dtype).numpy())
    assert_agreement(func, [a, np.zeros(8, a.dtype)])
    result = np.zeros(8, a.dtype)
    lw.build(func)(a, result)
    np.testing.assert_array_equal(result, a[[9 + stride * k for k in range(8)]])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["int8", "float32", "bool"])
@pytest.mark.parametrize("stride", [1, 2, 0, -1])
def test_vector_stores_of_every_stride(dtype, stride):
    A, out = ir.decl_buffer((4,), dtype, "A"), ir.decl_buffer((16,), dtype, "out")
    load = ir.BufferLoad(A, [ir.Ramp(0, 1, 4)])
    func = ir.PrimFunc([A, out], ir.BufferStore(out, load, [ir.Ramp(6, stride, 4)]))
    a = np.array([1, 0, 1, 1] if dtype == "bool" else [1, 2, 3, 4], dtype)
    assert_agreement(func, [a, np.zeros(16, dtype)])
    result = np.zeros(16, dtype)
    lw.build(func)(a, result)
    assert result[6 + 3 * stride] == a[3]  # with stride 0 the last lane wins


def test_gather_and_scatter():
    @T.prim_func
    def func(
        index: T.Buffer((8,), "int32"),
        A: T.Buffer((8,), "float32"),
        B: T.Buffer((8,), "float32"),
        C: T.Buffer((8,), "float32"),
    ):
        for i in T.vectorized(8):
            B[i] = A[index[i]]
        for i in T.vectorized(8):
            C[index[i]] = A[i]

    order = np.array([3, 1, 0, 7, 6, 2, 5, 4], "int32")
    assert_agreement(func, [order, np.arange(8, dtype="float32"), np.zeros(8, "float32"), np.zeros(8, "float32")])


@pytest.mark.parametrize("index_dtype", ["uint8", "int8", "uint16", "int64"])
def test_indices_of_every_type(index_dtype):
    """An unsigned index above half its range is no negative one, and its arithmetic may pass the signed limit."""
    A, index, out = (
        ir.decl_buffer((256,), "float32", "A"),
        ir.decl_buffer((4,), index_dtype, "I"),
        ir.decl_buffer((4,), name="out"),
    )
    i = ir.Var("i")
    k = ir.BufferLoad(index, [i]) + ir.const(27, index_dtype)
    func = ir.PrimFunc(
        [A, index, out], ir.For(i, 0, 4, ir.ForKind.SERIAL, ir.BufferStore(out, ir.BufferLoad(A, [k]), [i]))
    )
    given = np.array([0, 100, 1, 3] if index_dtype == "int8" else [0, 101, 200, 228], index_dtype)
    assert_agreement(func, [np.arange(256, dtype="float32"), given, np.zeros(4, "float32")])


def test_hashed_indices_may_wrap_below_the_remainder():
    """Only sums and products of the index itself are promised not to wrap; a value computed from data may."""

    @T.prim_func
    def func(A: T.Buffer((16,), "float32"), X: T.Buffer((8,), "int32"), out: T.Buffer((8,), "float32")):
        for i in range(8):
            out[i] = A[(X[i] * 1000003) % 13]

    x = np.array([0, 1, -1, 5000, 1 << 30, -(1 << 31), 99999, 7], "int32")
    assert_agreement(func, [np.arange(16, dtype="float32"), x, np.zeros(8, "float32")])


def test_broadcast_and_shuffle():
    A, out = ir.decl_buffer((4,), "int32", "A"), ir.decl_buffer((8,), "int32", "out")
    low = ir.BufferLoad(A, [ir.Ramp(0, 1, 2)])
    both = ir.Shuffle([low, ir.Broadcast(ir.BufferLoad(A, [3]), 2)], [3, 0, 1, 2, 1, 1, 0, 3])
    func = ir.PrimFunc([A, out], ir.BufferStore(out, both, [ir.Ramp(0, 1, 8)]))
    assert_agreement(func, [np.array([10, 20, 30, 40], "int32"), np.zeros(8, "int32")])
    result = np.zeros(8, "int32")
    lw.build(func)(np.array([10, 20, 30, 40], "int32"), result)
    assert result.tolist() == [40, 10, 20, 40, 20, 20, 10, 40]


def test_any_byte_but_zero_is_true_and_stores_write_one():
    @T.prim_func
    def func(A: T.Buffer((6,), "bool"), B: T.Buffer((6,), "bool")):
        for i in range(6):
            B[i] = A[i]

    raw = np.array([0, 1, 2, 128, 255, 0], "uint8")
    out = np.zeros(6, bool)
    lw.build(func)(raw.view(bool), out)
    assert out.view("uint8").tolist() == [0, 1, 1, 1, 1, 0]


# --- statements ---


def test_let_expressions_and_statements():
    x = ir.Var("x", "int32")

    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            twice = A[i] * 2
            A[i] = 7
            B[i] = twice + T.Let(x * x, where={x: twice - 1})

    assert_agreement(func, [np.arange(8, dtype="int32"), np.zeros(8, "int32")])
    b = np.zeros(8, "int32")
    lw.build(func)(np.arange(8, dtype="int32"), b)
    assert b.tolist() == [2 * a + (2 * a - 1) ** 2 for a in range(8)]  # the let keeps what A held


def test_a_let_expression_may_be_shared():
    def make(load: ir.Expr) -> ir.Expr:
        var = ir.Var("x", load.dtype)
        once = ir.Let(var, load * load, var + var)
        return (
            intrinsics.if_then_else(load > 0, once, ir.const(0, load.dtype)) + once if load.dtype.lanes == 1 else once
        )

    assert check(make, [np.array([1, -5, 1 << 20, 3], "int32")], "int32").tolist() == [4, 50, 0, 36]


def test_while():
    @T.prim_func
    def collatz(A: T.Buffer((6,), "int32"), steps: T.Buffer((6,), "int32")):
        for i in range(6):
            steps[i] = 0
            while A[i] != 1:
                A[i] = T.if_then_else(A[i] % 2 == 0, A[i] // 2, 3 * A[i] + 1)
                steps[i] = steps[i] + 1

    assert_agreement(collatz, [np.array([1, 2, 3, 6, 7, 27], "int32"), np.zeros(6, "int32")])


@pytest.mark.parametrize("size", [1, 16, 4096, 4097, 100_000])
def test_allocations_on_the_stack_and_in_the_workspace(size):
    @T.prim_func
    def func(A: T.Buffer((size,), "float32"), B: T.Buffer((size,), "float32")):
        for r in range(2):
            with T.block("round"):
                v = T.axis.opaque(2, r)
                C = T.alloc_buffer((size,), "float32")
                for i in range(size):
                    C[i] = A[i] + T.float32(1)
                for i in range(size):
                    B[i] = C[size - 1 - i]

    a, b = np.arange(size, dtype="float32"), np.zeros(size, "float32")
    module = lw.build(func)
    module(a, b)
    np.testing.assert_array_equal(b, a[::-1] + 1)
    assert ("lw_workspace_alloc" in module.get_source("llvm")) == (size > 4096)


def test_an_allocation_of_symbolic_size():
    @T.prim_func
    def func(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        C = T.alloc_buffer((n,), "float32")
        for i in range(n):
            C[i] = A[i]
        for i in range(n):
            B[i] = C[n - 1 - i]

    module = lw.build(func)
    for n in (0, 1, 5, 10_000):
        a, b = np.arange(n, dtype="float32"), np.zeros(n, "float32")
        module(a, b)
        np.testing.assert_array_equal(b, a[::-1])


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float16", "bfloat16", "bool"])
def test_constant_tables(dtype):
    kind = ir.DataType(dtype)
    table = (np.arange(6) % 2 if dtype == "bool" else np.arange(6) - 2).astype(kind.numpy())
    var = ir.pointer("table", "int8" if dtype == "bool" else dtype)
    view = ir.Buffer(var, dtype, (2, 3), name="table")
    out = ir.decl_buffer((3, 2), dtype, "out")
    i, j = ir.Var("i"), ir.Var("j")
    store = ir.BufferStore(out, ir.BufferLoad(view, [j, i]), [i, j])
    nest = ir.For(i, 0, 3, ir.ForKind.SERIAL, ir.For(j, 0, 2, ir.ForKind.SERIAL, store))
    func = ir.PrimFunc([out], ir.AllocateConst(var, dtype, [2, 3], table.reshape(2, 3), nest))
    assert_agreement(func, [np.zeros((3, 2), kind.numpy())])
    result = np.zeros((3, 2), kind.numpy())
    lw.build(func)(result)
    np.testing.assert_array_equal(result, table.reshape(2, 3).T)


def test_an_assertion_stops_the_call_with_its_text():
    @T.prim_func
    def func(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        for i in range(4):
            assert A[i] >= 0, "every 100% of A is positive"
            B[i] = A[i]

    module = lw.build(func)
    module(np.arange(4, dtype="int32"), np.zeros(4, "int32"))
    b = np.zeros(4, "int32")
    with pytest.raises(LoopwrightError, match="assertion failed: every 100% of A is positive") as caught:
        module(np.array([5, 6, -1, 7], "int32"), b)
    assert "test_emitter.py" in str(caught.value)
    assert b.tolist() == [5, 6, 0, 0]


def test_an_assertion_frees_the_workspace_it_leaves():
    @T.prim_func
    def func(A: T.Buffer((1,), "int32")):
        C = T.alloc_buffer((100_000,), "int32")
        C[0] = A[0]
        assert C[0] == 1, "one"
        A[0] = C[0] + 1

    module = lw.build(func)
    for _ in range(2000):  # 400 KB each: a leak would show as 800 MB
        with pytest.raises(LoopwrightError, match="one"):
            module(np.zeros(1, "int32"))
    a = np.ones(1, "int32")
    module(a)
    assert a[0] == 2


@pytest.mark.parametrize("n", [0, 1, 4, 7])
def test_unrolled_loops(n):
    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in T.unroll(n):
            B[i] = A[n - 1 - i] + B[i]

    assert_agreement(func, [np.arange(8, dtype="int32"), np.arange(8, dtype="int32")])


@pytest.mark.parametrize("n", [0, -3])
def test_loops_without_iterations(n):
    @T.prim_func
    def func(m: T.int32, B: T.Buffer((8,), "int32")):
        for i in range(m):
            B[i] = 1

    b = np.zeros(8, "int32")
    lw.build(func)(n, b)
    assert not b.any()


def test_an_early_return():
    @T.prim_func
    def first_negative(A: T.Buffer((8,), "float32")) -> T.int32:
        for i in range(8):
            if A[i] < T.float32(0):
                T.ret(i)
        T.ret(-1)

    module = lw.build(first_negative)
    a = np.ones(8, "float32")
    assert module(a) == -1 == evaluate(first_negative, a)
    a[5] = -2
    a[7] = -2
    assert module(a) == 5 == evaluate(first_negative, a)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("int8", -5), ("uint8", 200), ("int64", -(1 << 40)), ("float32", 0.5), ("float64", -2.25), ("bool", True)],
)
def test_results_of_every_type(dtype, value):
    x = ir.Var("x", dtype)
    func = ir.PrimFunc([x], ir.Evaluate(intrinsics.ret(x)), ir.PrimType(ir.DataType(dtype)))
    result = lw.build(func)(value)
    assert result == value
    assert type(result) is type(value)


# --- several functions ---


def test_functions_call_each_other():
    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            for i in range(4):
                B[i] = A[i] * T.float32(2)

        @T.prim_func
        def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            C = T.alloc_buffer((4,), "float32")
            Module.double(A.data, C.data)
            Module.double(C.data, B.data)

    a, b = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    lw.build(Module)(a, b)
    np.testing.assert_array_equal(b, a * 4)


def test_a_called_function_returns_its_value():
    @I.ir_module
    class Module:
        @T.prim_func
        def square(x: T.int32) -> T.int32:
            T.ret(x * x)

        @T.prim_func
        def main(B: T.Buffer((4,), "int32")):
            for i in range(4):
                B[i] = Module.square(i) + 1

    b = np.zeros(4, "int32")
    lw.build(Module)(b)
    assert b.tolist() == [1, 2, 5, 10]


def test_an_error_in_a_called_function_reaches_the_caller():
    @I.ir_module
    class Module:
        @T.prim_func
        def picky(x: T.int32):
            assert x < 3, "x is small"

        @T.prim_func
        def main(B: T.Buffer((4,), "int32")):
            for i in range(4):
                Module.picky(i)
                B[i] = 1

    b = np.zeros(4, "int32")
    with pytest.raises(LoopwrightError, match="x is small"):
        lw.build(Module)(b)
    assert b.tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize("name", ["sqrt", "fabs", "rint"])
def test_functions_of_the_c_library(name):
    @T.prim_func
    def func(A: T.Buffer((4,), "float64"), B: T.Buffer((4,), "float64")):
        for i in range(4):
            B[i] = T.call_pure_extern("float64", name, A[i])

    a, b = np.array([0.0, 1.5, 2.0, 27.25]), np.zeros(4)
    lw.build(func)(a, b)
    np.testing.assert_array_equal(b, getattr(np, name)(a))


def test_an_unknown_external_function_is_named():
    @T.prim_func
    def func(A: T.Buffer((4,), "float64")):
        A[0] = T.call_extern("float64", "no_such_function_anywhere", A[1])

    module = lw.build(func)  # it may be linked in when the module is exported, or loaded before the first call
    with pytest.raises(LoopwrightError, match="no_such_function_anywhere"):
        module(np.zeros(4))


def test_an_unknown_intrinsic_is_named():
    A = ir.decl_buffer((4,), "float32", "A")
    call = ir.Call(ir.DataType("float32"), ir.Op.get("tir.tvm_warp_shuffle"), (ir.BufferLoad(A, [0]),))
    with pytest.raises(
        LoopwrightError, match=r"the intrinsic tir.tvm_warp_shuffle on the llvm target is not built yet"
    ):
        lw.build(ir.PrimFunc([A], ir.BufferStore(A, call, [0])))
