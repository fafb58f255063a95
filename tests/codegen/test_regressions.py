"""Bugs that native code once had, each held by the smallest program that showed it."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import textwrap

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, ir, te
from loopwright.codegen.llvm import emit_module
from loopwright.ir import intrinsics
from loopwright.runtime import call_errors
from loopwright.runtime.errors import LoopwrightError
from loopwright.script import tir as T
from loopwright.target import host_description
from loopwright.transform import lower
from tests.agreement import assert_agreement

pytestmark = pytest.mark.optimized

SERIAL, PARALLEL, UNROLLED = ir.ForKind.SERIAL, ir.ForKind.PARALLEL, ir.ForKind.UNROLLED


def loop(n, body, kind=SERIAL, dtype="int32"):
    """for i in range(n): body(i)"""
    i = ir.Var("i", dtype)
    return ir.For(i, ir.const(0, dtype), ir.const(n, dtype), kind, body(i))


def run_apart(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own: it may crash, or write where it should not."""
    source = "import numpy as np\nimport loopwright as lw\nfrom loopwright import ir\n" + textwrap.dedent(program)
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120, check=False)


# --- expressions --------------------------------------------------------------------------------------------------


def test_one_variable_bound_by_two_lets_has_both_values():
    A, B = ir.decl_buffer(4, "int32", "A"), ir.decl_buffer(4, "int32", "B")
    x = ir.Var("x")
    shared = x + 1

    def body(i):
        first = ir.Let(x, A[i], shared * x)
        second = ir.Let(x, A[i] + 10, shared * x)
        return ir.BufferStore(B, first - second, [i])

    assert_agreement(ir.PrimFunc([A, B], loop(4, body)), [np.arange(4, dtype="int32"), np.zeros(4, "int32")])


def test_a_let_in_a_branch_does_not_reach_into_a_parallel_loop():
    A, B, C = (ir.decl_buffer(4, "int32", name) for name in "ABC")
    x = ir.Var("x")
    i = ir.Var("i")
    let = ir.Let(x, i * 3, x * x)
    value = intrinsics.if_then_else(A[i] > 1, ir.Let(x, A[i], x * x + A[x]), 7)
    j = ir.Var("j")
    body = ir.seq(
        [
            ir.For(i, 0, 4, SERIAL, ir.BufferStore(B, value, [i])),
            ir.For(j, 0, 4, PARALLEL, ir.BufferStore(C, ir.substitute(let, {i: j}), [j])),
        ]
    )
    function = ir.PrimFunc([A, B, C], body)
    assert_agreement(function, [np.array([0, 1, 2, 3], "int32"), np.zeros(4, "int32"), np.zeros(4, "int32")])


def test_the_64_bit_condition_of_an_index_may_wrap():
    A, X, B = ir.decl_buffer(8, "int32", "A"), ir.decl_buffer(4, "int64", "X"), ir.decl_buffer(4, "int32", "B")

    def body(i):
        wrapped = X[i] + 1
        return ir.BufferStore(B, A[intrinsics.select(wrapped > X[i], 1, 2)], [i])

    x = np.array([0, 2**63 - 1, -5, 2**63 - 1], "int64")
    function = ir.PrimFunc([A, X, B], loop(4, body))
    assert_agreement(function, [np.arange(8, dtype="int32"), x, np.zeros(4, "int32")])


def test_64_bit_data_in_an_index_may_wrap_before_it_is_cut():
    A, X, B = ir.decl_buffer(8, "int32", "A"), ir.decl_buffer(4, "int64", "X"), ir.decl_buffer(4, "int32", "B")

    def body(i):
        narrow = ((X[i] + 2) < X[i]).astype("int32") + (X[i] * 3).astype("int8").astype("int32") * 0
        return ir.BufferStore(B, A[narrow], [i])

    x = np.array([0, 2**63 - 1, -5, 2**63 - 2], "int64")
    function = ir.PrimFunc([A, X, B], loop(4, body))
    assert_agreement(function, [np.arange(8, dtype="int32"), x, np.zeros(4, "int32")])


def test_a_shift_by_a_wide_literal_counts_modulo_the_width():
    A, B = ir.decl_buffer(4, "int32", "A"), ir.decl_buffer(4, "int32", "B")
    function = ir.PrimFunc(
        [A, B],
        loop(4, lambda i: ir.BufferStore(B, intrinsics.call_intrin("int32", "tir.shift_left", A[i], 33), [i])),
    )
    assert_agreement(function, [np.arange(4, dtype="int32"), np.zeros(4, "int32")])


def test_a_vector_ramp_of_data_wraps():
    B = ir.decl_buffer(8, "int8", "B")
    ramp = ir.Ramp(ir.const(100, "int8"), ir.const(50, "int8"), 8)
    function = ir.PrimFunc([B], ir.BufferStore(B, ramp, [ir.Ramp(0, 1, 8)]))
    assert_agreement(function, [np.zeros(8, "int8")])


def test_a_guard_that_all_lanes_share_guards_their_loads():
    A, B, off = ir.decl_buffer(8, "int32", "A"), ir.decl_buffer(4, "int32", "B"), ir.Var("off")
    j = ir.Var("j")
    positive = intrinsics.if_then_else(intrinsics.all(off >= 0, off < 4, A[j + off] > 2), 1, 0)
    function = ir.PrimFunc([off, A, B], ir.For(j, 0, 4, ir.ForKind.VECTORIZED, ir.BufferStore(B, positive, [j])))
    b = np.zeros(4, "int32")
    f = lw.build(function)
    for offset, expected in ((1, [0, 0, 1, 1]), (1 << 30, [0, 0, 0, 0])):  # the second would read far outside
        f(offset, np.arange(8, dtype="int32"), b)
        assert b.tolist() == expected


@pytest.mark.parametrize("form", ["if_then_else", "and", "or"])
def test_a_guarded_vector_is_computed_on_the_lanes_that_need_it(form):
    A, B, lanes = ir.decl_buffer(8, "int32", "A"), ir.decl_buffer(8, "int32", "B"), ir.Ramp(0, 1, 8)
    quotient = ir.Div(ir.Broadcast(ir.const(8), 8), A[lanes])
    far = ir.BufferLoad(A, [A[lanes].astype("int64x8") * ir.Broadcast(ir.const(2**40, "int64"), 8)])  # only A[0] exists
    if form == "if_then_else":
        value = intrinsics.call_intrin("int32x8", "tir.if_then_else", A[lanes] != 0, quotient, far)
    elif form == "and":
        value = ir.And(A[lanes] > 1, quotient > 1).astype("int32x8")
    else:
        value = ir.Or(A[lanes] != 0, far == 0).astype("int32x8")
    assert_agreement(
        ir.PrimFunc([A, B], ir.BufferStore(B, value, [lanes])),
        [np.array([0, 1, 2, 0, 4, 5, 0, 7], "int32"), np.zeros(8, "int32")],
    )


def test_comparing_bfloat16_without_its_pass_is_an_internal_error():
    A, B = ir.decl_buffer(4, "bfloat16", "A"), ir.decl_buffer(4, "bool", "B")
    function = ir.PrimFunc([A, B], loop(4, lambda i: ir.BufferStore(B, A[i] < A[0], [i])))
    with lw.transform.PassContext(disabled_pass=["legalize_low_precision"]):
        with pytest.raises(LoopwrightError, match="bfloat16 reached code generation"):
            lw.build(function)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "e4m3_float8", "e5m2_float8", "float32", "float64"])
@pytest.mark.parametrize("lanes", [1, 4])
def test_nextafter_steps_in_its_own_type(dtype, lanes):
    number = ir.DataType(dtype).numpy()
    bits = number.itemsize * 8
    if bits == 8:
        values = np.arange(256, dtype="uint8").view(number)
        a, b = np.repeat(values, 256), np.tile(values, 256)
    else:
        some = np.random.default_rng(0).integers(0, 1 << bits, 60, dtype=f"uint{bits}").view(number)
        tiny = np.array([0, 1, 2], f"uint{bits}").view(number)
        one = np.array([1.0, 2.0, ml_dtypes.finfo(number).max, np.inf, np.nan], number)
        values = np.concatenate([some, tiny, -tiny, one, -one])
        a, b = np.repeat(values, len(values)), np.tile(values, len(values))
    n = len(a) // 4 * 4
    a, b = a[:n], b[:n]
    A, B, C = (ir.decl_buffer(n, dtype, name) for name in "ABC")

    def body(i):
        index = i if lanes == 1 else ir.Ramp(i * lanes, 1, lanes)
        value = intrinsics.nextafter(ir.BufferLoad(A, [index]), ir.BufferLoad(B, [index]))
        return ir.BufferStore(C, value, [index])

    got = np.zeros(n, number)
    lw.build(ir.PrimFunc([A, B, C], loop(n // lanes, body)))(a, b, got)
    with np.errstate(all="ignore"):
        wanted = np.where(a == b, b, np.nextafter(a, b))
    same = (got.view(f"u{bits // 8}") == wanted.view(f"u{bits // 8}")) | (np.isnan(got) & np.isnan(wanted))
    assert same.all(), (a[~same][:4], b[~same][:4], got[~same][:4], wanted[~same][:4])


# --- memory -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [4, 5000])
def test_vectors_of_three_lie_side_by_side(n):
    A, B, C = (ir.decl_buffer(n, "float32x3", name) for name in "ABC")
    i, j = ir.Var("i"), ir.Var("j")
    body = ir.seq(
        [
            ir.For(i, 0, n, SERIAL, ir.BufferStore(C, A[i] + A[i], [i])),
            ir.For(j, 0, n, SERIAL, ir.BufferStore(B, C[j] + A[j], [j])),
        ]
    )
    inner = ir.Allocate(C.data, "float32x3", [ir.const(n)], ir.const(True), ir.DeclBuffer(C, body))
    module = lw.build(ir.PrimFunc([A, B], inner))
    ll = module.get_source("llvm")
    assert "getelementptr inbounds <3 x float>" not in ll and "alloca [4 x <3 x float>]" not in ll


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int1"])
def test_small_integers_take_a_byte_each(dtype):
    A, B = ir.decl_buffer(8, "int8", "A"), ir.decl_buffer(8, "int32", "B")
    T = ir.decl_buffer(8, dtype, "T")
    i = ir.Var("i")
    whole = ir.Ramp(0, 1, 8)
    body = ir.seq(
        [
            ir.BufferStore(T, A[whole].astype(f"{dtype}x8"), [whole]),
            ir.For(i, 0, 8, SERIAL, ir.BufferStore(B, T[i].astype("int32"), [i])),
        ]
    )
    function = ir.PrimFunc([A, B], ir.Allocate(T.data, dtype, [ir.const(8)], ir.const(True), ir.DeclBuffer(T, body)))
    assert_agreement(function, [np.array([0, 1, 7, 8, 15, -1, -8, 3], "int8"), np.zeros(8, "int32")])


def test_many_small_buffers_do_not_overflow_the_stack():
    A = ir.decl_buffer(4096, "float32", "A")
    buffers = [ir.decl_buffer(4096, "float32", f"t{k}") for k in range(40)]
    chain = [A, *buffers, A]
    steps = []
    for source, target in itertools.pairwise(chain):
        steps.append(loop(4096, lambda i, source=source, target=target: ir.BufferStore(target, source[i] + 1.0, [i])))
    body = ir.seq(steps)
    for buffer in buffers:
        body = ir.Allocate(buffer.data, "float32", [ir.const(4096)], ir.const(True), ir.DeclBuffer(buffer, body))
    module = lw.build(ir.PrimFunc([A], body))
    stack = sum(4 * int(count) for count in re.findall(r"alloca \[(\d+) x float\]", module.get_source("llvm")))
    assert 16384 <= stack <= 1 << 18
    a = np.zeros(4096, "float32")
    module(a)
    assert (a == 41).all()


def test_the_size_of_a_buffer_that_overflows_is_an_error():
    done = run_apart(
        """
        n = ir.Var("n", "int64")
        A = ir.decl_buffer(1, "float32", "A")
        T = ir.decl_buffer((n, n), "float32", "T")
        i, j, zero = ir.Var("i", "int64"), ir.Var("j", "int64"), ir.const(0, "int64")
        body = ir.seq([
            ir.For(i, zero, n, ir.ForKind.SERIAL, ir.BufferStore(T, ir.const(1.0), [i, i])),
            ir.For(j, zero, n, ir.ForKind.SERIAL, ir.BufferStore(A, T[j, j], [0])),
        ])
        body = ir.Allocate(T.data, "float32", [n, n], ir.const(True), ir.DeclBuffer(T, body))
        f = lw.build(ir.PrimFunc([A, n], body))
        try:
            f(np.zeros(1, "float32"), 2**32)
        except lw.error.LoopwrightError as error:
            assert "no memory" in str(error), error
        else:
            raise SystemExit("not refused")
        f(np.zeros(1, "float32"), 100)
        """
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-800:])


# --- the entry ----------------------------------------------------------------------------------------------------


def test_percent_signs_in_names_are_only_text():
    done = run_apart(
        """
        A = ir.decl_buffer(4, "float32", "100%s%n")
        f = lw.build(ir.PrimFunc([A], ir.BufferStore(A, 1.0, [0]), attrs={"global_symbol": "f%n%s"}))
        for bad in ([], [np.zeros(5, "float32")], [np.zeros((2, 2), "float32")], [np.zeros(4, "int8")], [3]):
            try:
                f(*bad)
            except Exception as error:
                assert "f%n%s: " in str(error), error
                assert not bad or "100%s%n" in str(error), error
            else:
                raise SystemExit("not refused")
        """
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-800:])


def test_a_long_name_is_not_cut_within_a_letter():
    name = "é" * 600
    A = ir.decl_buffer(4, "float32", name)
    f = lw.build(ir.PrimFunc([A], ir.BufferStore(A, 1.0, [0])))
    with pytest.raises(call_errors.ShapeMismatch, match="main: argument éééé") as caught:
        f(np.zeros(5, "float32"))
    assert caught.value.problem == f"main: argument {name} has shape (5,), expected (4,)"


def strided(n, name):
    stride = ir.Var(f"{name}_stride")
    return ir.decl_buffer((n,), "float32", name, strides=[stride])


def test_overlap_is_found_through_negative_strides():
    A, B = strided(4, "A"), strided(4, "B")
    f = lw.build(ir.PrimFunc([A, B], loop(4, lambda i: ir.BufferStore(B, A[i], [i]))))
    memory = np.arange(8, dtype="float32")
    f(memory[3::-1], memory[:3:-1])
    assert memory.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    with pytest.raises(call_errors.OverlappingArguments, match="A and B overlap"):
        f(memory[5:1:-1], memory[:4])
    with pytest.raises(call_errors.OverlappingArguments, match="A and B overlap"):
        f(memory[:4], memory[5:1:-1])


def test_prefetching_an_input_does_not_make_it_an_output():
    A, B, C = (ir.decl_buffer(4, "float32", name) for name in "ABC")

    def body(i):
        ask = ir.Evaluate(intrinsics.call_intrin("void", "tir.prefetch", intrinsics.address_of(A[i]), 0, 3, 1))
        return ir.seq([ask, ir.BufferStore(C, A[i] + B[i], [i])])

    f = lw.build(ir.PrimFunc([A, B, C], loop(4, body)))
    a, c = np.ones(4, "float32"), np.zeros(4, "float32")
    f(a, a, c)
    assert (c == 2).all()


def test_a_negative_number_is_no_uint64():
    n, B = ir.Var("n", "uint64"), ir.decl_buffer(1, "uint64", "B")
    f = lw.build(ir.PrimFunc([n, B], ir.BufferStore(B, n, [0])))
    b = np.zeros(1, "uint64")
    f(2**63 - 1, b)
    assert b[0] == 2**63 - 1
    with pytest.raises(call_errors.ArgumentKindMismatch, match="argument n is -1, which does not fit uint64"):
        f(-1, b)


def test_a_uint64_result_that_no_int64_holds_is_refused():
    n = ir.Var("n", "uint64")
    f = lw.build(ir.PrimFunc([n], ir.Evaluate(intrinsics.ret(n + n))))
    assert f(5) == 10
    with pytest.raises(call_errors.ResultOutOfRange, match=r"the result is 2\^63 or more"):
        f(2**63 - 1)


@pytest.mark.parametrize("value", [1.00048828125 + 2.0**-40, 65519.99999, 0.1, float("nan"), float("inf"), 1e9])
def test_a_float16_argument_is_rounded_as_conversions_are(value):
    x, B = ir.Var("x", "float16"), ir.decl_buffer(1, "float16", "B")
    f = lw.build(ir.PrimFunc([x, B], ir.BufferStore(B, x, [0])))
    b = np.zeros(1, "float16")
    f(value, b)
    with np.errstate(over="ignore"):
        wanted = np.float16(np.float32(value))
    assert b[0] == wanted or (np.isnan(b[0]) and np.isnan(wanted))


def test_a_large_symbolic_tensor_has_64_bit_strides():
    n, m, k = (ir.Var(name) for name in "nmk")
    A, B = ir.decl_buffer((n, m, k), "int8", "A"), ir.decl_buffer(1, "int8", "B")
    f = lw.build(ir.PrimFunc([A, B], ir.BufferStore(B, ir.const(1, "int8"), [0]), attrs={"tir.noalias": False}))
    half, b = 1 << 16, np.zeros(1, "int8")
    f(np.lib.stride_tricks.as_strided(b, (2, half, half), (half * half, half, 1)), b)  # nothing reads so far
    assert b[0] == 1


# --- names and several functions ----------------------------------------------------------------------------------

NAMES = [
    "a b",
    'quo"te',
    "back\\slash",
    "größe",
    "名前",
    "1st",
    "dtype_names",
    "exp.f32.f32",
    "snprintf",
    "malloc",
    "a\nb",
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", NAMES)
def test_functions_may_have_any_name(name):
    A = ir.decl_buffer(4, "float32", "A")

    def body(i):
        return ir.BufferStore(A, intrinsics.exp(A[i]), [i])

    module = lw.build(ir.IRModule({name: ir.PrimFunc([A], loop(4, body, PARALLEL), attrs={"global_symbol": name})}))
    a = np.zeros(4, "float32")
    module[name](a)
    assert (a == 1).all()
    with pytest.raises(call_errors.ArgumentCountMismatch, match="called with 0 argument"):
        module[name]()


def test_parallel_loops_of_like_names_do_not_clash():
    A = ir.decl_buffer(4, "float32", "A")
    names = ["i", "i.stub", "i", "i.1", "i 1", "i_stub", "i_1", "i.1.stub", "i_1_stub"]
    steps = []
    for name in names:
        i = ir.Var(name)
        steps.append(ir.For(i, 0, 4, PARALLEL, ir.BufferStore(A, A[i] + 1.0, [i])))
    functions = {f: ir.PrimFunc([A], ir.seq(steps), attrs={"global_symbol": f}) for f in ("f", "g")}
    module = lw.build(ir.IRModule(functions))
    a = np.zeros(4, "float32")
    module["f"](a)
    module["g"](a)
    assert (a == 2 * len(names)).all()


def test_an_external_function_may_have_an_odd_name():
    B = ir.decl_buffer(1, "float64", "B")
    function = ir.PrimFunc([B], ir.BufferStore(B, intrinsics.call_pure_extern("float64", "no such; thing"), [0]))
    with pytest.raises(LoopwrightError, match="needs no such; thing, which neither"):
        lw.build(function)(np.zeros(1))


def test_narrow_arguments_of_external_functions_are_extended():
    B = ir.decl_buffer(1, "int32", "B")
    A = ir.decl_buffer(1, "int8", "A")
    value = intrinsics.call_pure_extern("int32", "abs", A[0])
    ll = lw.build(ir.PrimFunc([A, B], ir.BufferStore(B, value, [0]))).get_source("llvm")
    assert "@abs(i8 signext" in ll


def test_a_shape_symbol_that_no_argument_gives_is_a_user_error():
    n, m = ir.Var("n"), ir.Var("m")
    A = ir.decl_buffer((n * m,), "float32", "A")
    with pytest.raises(LoopwrightError, match=r"main: nothing gives the value of n, which an argument.s shape"):
        lw.build(ir.PrimFunc([A], ir.Evaluate(0)))


@T.prim_func
def signs_as_unsigned(A: T.Buffer((3,), "bool"), C: T.Buffer((2,), "float32")):
    B = T.decl_buffer((3, 3), "int16")
    for i, j in T.grid(3, 3):
        B[i, j] = T.Cast("int16", A[i]) % T.int16(7) // T.int16(-3)
    for i in range(2):
        C[i] = T.float32(1)
        for k in range(3):
            C[i] = T.Cast("float32", T.bitwise_and(T.Cast("uint64", B[i, k]), T.Cast("uint64", B[k, i]))) + C[i]


def test_minus_one_as_an_unsigned_number_stays_large():
    """LLVM's SLP vectorizer took it for a number of 32 bits."""
    a, c = np.array([True, True, True]), np.zeros(2, np.float32)
    lw.build(signs_as_unsigned)(a, c)
    np.testing.assert_array_equal(c, np.float32(3 * 2.0**64))


# --- LLVM ---------------------------------------------------------------------------------------------------------

UNROLLED_PROGRAMS = {
    "symbolic": """
        n = ir.Var("n")
        A = ir.decl_buffer((n,), "float32", "A")
        i = ir.Var("i")
        body = ir.For(i, 0, n, ir.ForKind.UNROLLED, ir.BufferStore(A, A[i] * 2.0, [i]))
        f = ir.PrimFunc([A], body)
    """,
    "long": """
        A = ir.decl_buffer((200000,), "float32", "A")
        i = ir.Var("i")
        f = ir.PrimFunc([A], ir.For(i, 0, 200000, ir.ForKind.UNROLLED, ir.BufferStore(A, A[i] * 2.0, [i])))
    """,
    "heavy": """
        A = ir.decl_buffer((2000,), "float32", "A")
        i = ir.Var("i")
        value = A[i]
        for _ in range(20): value = value * 1.5 + 1.0
        f = ir.PrimFunc([A], ir.For(i, 0, 2000, ir.ForKind.UNROLLED, ir.BufferStore(A, value, [i])))
    """,
    "nested": """
        A = ir.decl_buffer((64, 64, 64), "float32", "A")
        i, j, k = ir.Var("i"), ir.Var("j"), ir.Var("k")
        body = ir.BufferStore(A, A[i, j, k] * 2.0, [i, j, k])
        for var in (k, j, i): body = ir.For(var, 0, 64, ir.ForKind.UNROLLED, body)
        f = ir.PrimFunc([A], body)
    """,
    "around a loop": """
        n = ir.Var("n")
        A = ir.decl_buffer((4, n), "float32", "A")
        i, j = ir.Var("i"), ir.Var("j")
        body = ir.For(j, 0, n, ir.ForKind.SERIAL, ir.BufferStore(A, A[i, j] * 2.0, [i, j]))
        f = ir.PrimFunc([A], ir.For(i, 0, 4, ir.ForKind.UNROLLED, body))
    """,
    "around a call": """
        A = ir.decl_buffer((400,), "float64", "A")
        i = ir.Var("i")
        from loopwright.ir import intrinsics
        store = ir.BufferStore(A, intrinsics.erf(intrinsics.tanh(A[i])), [i])
        f = ir.PrimFunc([A], ir.For(i, 0, 400, ir.ForKind.UNROLLED, store))
    """,
    "dead": """
        A = ir.decl_buffer((4,), "float32", "A")
        i = ir.Var("i")
        f = ir.PrimFunc([A], ir.For(i, 0, 16, ir.ForKind.UNROLLED, ir.BufferStore(A, 1.0, [0])))
    """,
    "leaves": """
        A = ir.decl_buffer((16,), "int32", "A")
        i = ir.Var("i")
        from loopwright.ir import intrinsics
        leave = ir.IfThenElse(A[i] > 3, ir.Evaluate(intrinsics.ret(i)))
        f = ir.PrimFunc([A], ir.For(i, 0, 16, ir.ForKind.UNROLLED, leave))
    """,
    "parallel": """
        A = ir.decl_buffer((16, 4), "float32", "A")
        i, j = ir.Var("i"), ir.Var("j")
        inner = ir.For(j, 0, 4, ir.ForKind.PARALLEL, ir.BufferStore(A, A[i, j] + 1.0, [i, j]))
        f = ir.PrimFunc([A], ir.For(i, 0, 16, ir.ForKind.UNROLLED, inner))
    """,
    "while": """
        A = ir.decl_buffer((16,), "int32", "A")
        i = ir.Var("i")
        body = ir.While(A[i] > 3, ir.BufferStore(A, A[i] - 1, [i]))
        f = ir.PrimFunc([A], ir.For(i, 0, 16, ir.ForKind.UNROLLED, body))
    """,
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("program", UNROLLED_PROGRAMS)
def test_unrolled_loops_make_llvm_print_nothing(program):
    done = run_apart(textwrap.dedent(UNROLLED_PROGRAMS[program]) + "\nlw.build(f)\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("depth", [3000])
def test_a_long_chain_of_choices_compiles_in_linear_time_and_space(depth):
    A, B = ir.decl_buffer(4, "int32", "A"), ir.decl_buffer(4, "int32", "B")

    def body(i):
        value = A[i]
        for k in range(depth):
            value = intrinsics.if_then_else(A[i] < k, A[i] + k, value)
        return ir.BufferStore(B, value, [i])

    emit_module(lower(ir.PrimFunc([A, B], loop(4, body))), host_description())


def test_bound_buffers_are_refused_rather_than_ignored():
    A = ir.decl_buffer(4, "float32", "A")
    function = ir.PrimFunc([A], ir.BufferStore(A, 1.0, [0]))
    for make in (lw.build, lw.lower):
        with pytest.raises(LoopwrightError, match="binding tensors to buffers of one's own is not built yet"):
            make(function, binds={A: A})


def test_products_of_bytes_that_are_halved_step_by_step_are_all_added():
    """LLVM 22 takes them for one vpdpbusd, and stores its first lane alone."""
    A = te.placeholder((2, 4, 64), "uint8", name="A")
    B = te.placeholder((4, 2, 64), "int8", name="B")
    scaled = te.compute(A.shape, lambda *at: A(*at) * te.const(2, "uint8") + te.const(1, "uint8"), name="scaled")
    k = te.reduce_axis((0, 64), name="k")
    C = te.compute(
        (2, 2, 4),
        lambda j, n, d: te.sum(scaled[j, d, k].astype("int32") * B[d, n, k].astype("int32"), axis=k),
        name="C",
    )
    plan = autosched.apply(te.create_prim_func([A, B, C]), "llvm -num-cores=1")
    random = np.random.default_rng(0)
    a, b = random.integers(0, 100, (2, 4, 64)).astype("uint8"), random.integers(-50, 50, (4, 2, 64)).astype("int8")
    c = np.zeros((2, 2, 4), "int32")
    lw.build(plan.mod)(a, b, c)
    np.testing.assert_array_equal(c, np.einsum("jdk,dnk->jnd", a.astype("int64") * 2 + 1, b.astype("int64")))


@pytest.mark.parametrize("target", ["llvm", "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_three_long_integers_limited_to_a_byte(dtype, target):
    """LLVM's AArch64 back end ended the process on this vector."""
    limits = np.iinfo(dtype)
    A = te.placeholder((3,), "int64", name="A")
    limited = lambda x: te.min(te.max(x, te.const(limits.min, "int64")), te.const(limits.max, "int64"))
    B = te.compute((3,), lambda i: limited(A[i]).astype(dtype), name="B")
    sch = lw.Schedule(te.create_prim_func([A, B]))
    sch.vectorize(sch.get_loops(sch.get_block("B"))[0])
    function = lw.build(sch.mod, target)
    if target == "llvm":
        given, got = np.array([-1000, 7, 1 << 40]), np.zeros(3, dtype)
        function(given, got)
        assert got.tolist() == [limits.min, 7, limits.max]
