"""Statements, memory, vectors, calls, arguments and the step hook, on hand-built programs."""

from __future__ import annotations

import doctest
import importlib

import ml_dtypes
import numpy as np
import pytest

from loopwright.evaluator import Step, evaluate
from loopwright.evaluator.errors import (
    AxisOutsideDomain,
    BadRegion,
    FailedCheck,
    OutOfBounds,
    UnboundVariable,
    UninitialisedRead,
)
from loopwright.ir import (
    LT,
    Add,
    Allocate,
    AllocateConst,
    And,
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    Broadcast,
    BufferLoad,
    BufferRealize,
    BufferRegion,
    BufferStore,
    Call,
    Cast,
    DataType,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    GlobalVar,
    IfThenElse,
    IRModule,
    IterVar,
    Let,
    LetStmt,
    MatchBufferRegion,
    Op,
    PointerType,
    PrimFunc,
    PrimType,
    Ramp,
    Range,
    Select,
    SeqStmt,
    Shuffle,
    StringImm,
    Var,
    While,
    const,
    decl_buffer,
    intrinsics,
    pointer,
)
from loopwright.runtime.call_errors import (
    ArgumentCountMismatch,
    ArgumentKindMismatch,
    DtypeMismatch,
    RankMismatch,
    ReadOnlyArgument,
    ShapeMismatch,
    StrideMismatch,
    WorkspaceExhausted,
)
from loopwright.runtime.errors import LoopwrightError, NotBuilt
from loopwright.script import from_source


def serial(var, extent, body, kind=ForKind.SERIAL):
    return For(var, const(0, var.dtype), extent, kind, body)


def f32(*values):
    return np.array(values, "float32")


# --- statements ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ForKind.SERIAL, ForKind.PARALLEL, ForKind.UNROLLED, ForKind.VECTORIZED])
def test_loops_of_every_kind(kind):
    A, B, i = decl_buffer((5,), name="A"), decl_buffer((5,), name="B"), Var("i")
    a, b = f32(1, 2, 3, 4, 5), np.zeros(5, "float32")
    evaluate(PrimFunc([A, B], serial(i, 5, BufferStore(B, A[i] * 2.0, [i]), kind)), a, b)
    assert b.tolist() == [2, 4, 6, 8, 10]


def test_thread_loops_bind_their_thread_variable():
    B, i, thread = decl_buffer((4,), "int32", name="B"), Var("i"), Var("threadIdx.x")
    axis = IterVar((0, 4), thread, IterVar.ThreadIndex, "threadIdx.x")
    loop = For(i, const(0), const(4), ForKind.THREAD_BINDING, BufferStore(B, thread + i, [i]), axis)
    b = np.zeros(4, "int32")
    evaluate(PrimFunc([B], loop), b)
    assert b.tolist() == [0, 2, 4, 6]
    launch = AttrStmt(axis, "thread_extent", const(4), BufferStore(B, thread * 3, [thread]))
    evaluate(PrimFunc([B], launch), b)
    assert b.tolist() == [0, 3, 6, 9]


def test_loop_from_a_minimum_with_a_dependent_extent():
    B, i, j = decl_buffer((4, 4), "int32", name="B"), Var("i"), Var("j")
    inner = For(j, i, const(4) - i, ForKind.SERIAL, BufferStore(B, i * 10 + j, [i, j]))
    b = np.zeros((4, 4), "int32")
    evaluate(PrimFunc([B], serial(i, 4, inner)), b)
    np.testing.assert_array_equal(b, np.triu(10 * np.arange(4)[:, None] + np.arange(4)))


def test_while_let_and_condition():
    """The Collatz steps of 6."""
    N, steps = decl_buffer((1,), "int64", name="N"), decl_buffer((1,), "int32", name="steps")
    n = Var("n", "int64")
    even = BufferStore(N, n // 2, [0])
    odd = BufferStore(N, n * 3 + 1, [0])
    turn = LetStmt(n, N[0], SeqStmt((IfThenElse((n % 2).equal(0), even, odd), BufferStore(steps, steps[0] + 1, [0]))))
    values, count = np.array([6]), np.zeros(1, "int32")
    evaluate(PrimFunc([N, steps], While(N[0] > 1, turn)), values, count)
    assert (values[0], count[0]) == (1, 8)


def test_let_expression():
    B, x = decl_buffer((1,), "int32", name="B"), Var("x")
    b = np.zeros(1, "int32")
    evaluate(PrimFunc([B], BufferStore(B, Let(x, const(7), x * x), [0])), b)
    assert b[0] == 49


def test_allocation_and_constants():
    B, i = decl_buffer((4,), name="B"), Var("i")
    data = pointer("T_data", "float32")
    T = decl_buffer((4,), name="T", data=data)
    table = pointer("table", "float32")
    K = decl_buffer((4,), name="K", data=table)
    fill = serial(i, 4, BufferStore(T, K[i] + 1.0, [i]))
    j = Var("j")
    copy = serial(j, 4, BufferStore(B, T[3 - j], [j]))
    body = Allocate(data, "float32", (const(4),), const(True), DeclBuffer(T, SeqStmt((fill, copy))))
    body = AllocateConst(table, DataType("float32"), (const(4),), f32(10, 20, 30, 40), body)
    b = np.zeros(4, "float32")
    evaluate(PrimFunc([B], body), b)
    assert b.tolist() == [41, 31, 21, 11]


def test_memory_seen_as_another_type():
    B = decl_buffer((2,), "int32", name="B")
    data = pointer("bytes", "int8")
    F, I = decl_buffer((2,), name="F", data=data), decl_buffer((2,), "int32", name="I", data=data)
    body = SeqStmt(
        (
            BufferStore(F, const(1.0, "float32"), [0]),
            BufferStore(F, const(-2.0, "float32"), [1]),
            BufferStore(B, I[0], [0]),
            BufferStore(B, I[1], [1]),
        )
    )
    b = np.zeros(2, "int32")
    evaluate(PrimFunc([B], Allocate(data, "int8", (const(8),), const(True), body)), b)
    np.testing.assert_array_equal(b.view("float32"), [1, -2])


def test_assertions_and_assumptions():
    n = Var("n")
    func = PrimFunc([n], AssertStmt(n > 0, StringImm("n must be positive"), Evaluate(intrinsics.assume(n < 10))))
    evaluate(func, 5)
    with pytest.raises(FailedCheck, match=r"^n must be positive .LW0807"):
        evaluate(func, 0)
    with pytest.raises(FailedCheck, match="what the program assumes does not hold"):
        evaluate(func, 10)


def test_ret_leaves_with_a_value():
    n, i = Var("n"), Var("i")
    found = serial(i, 100, IfThenElse(i * i >= n, Evaluate(intrinsics.ret(i))))
    assert evaluate(PrimFunc([n], found), 50) == 8
    assert evaluate(PrimFunc([n], found), 50_000_000) is None


def test_zero_size_arrays():
    n = Var("n")
    A, B, i = decl_buffer((n,), name="A"), decl_buffer((n,), name="B"), Var("i")
    evaluate(PrimFunc([A, B], serial(i, n, BufferStore(B, A[i], [i]))), f32(), f32())
    C = decl_buffer((), name="C")
    c = np.zeros((), "float32")
    evaluate(PrimFunc([C], BufferStore(C, const(3.0, "float32"), [])), c)
    assert c == 3


# --- blocks -------------------------------------------------------------------------------------------------------


def test_block_axes_and_where():
    A, B = decl_buffer((10,), name="A"), decl_buffer((10,), name="B")
    o, i, v = Var("o"), Var("i"), Var("v")
    block = Block((IterVar((0, 10), v, IterVar.DataPar),), (), (), "B", BufferStore(B, A[v] + 1.0, [v]))
    body = serial(o, 3, serial(i, 4, BlockRealize((o * 4 + i,), o * 4 + i < 10, block)))
    a, b = np.arange(10, dtype="float32"), np.zeros(10, "float32")
    evaluate(PrimFunc([A, B], body), a, b)
    np.testing.assert_array_equal(b, a + 1)
    unguarded = serial(o, 3, serial(i, 4, BlockRealize((o * 4 + i,), True, block)))
    with pytest.raises(
        AxisOutsideDomain, match=r"block 'B' runs with v=10, outside its domain 0 to 9 at o=2, i=2 .LW08"
    ):
        evaluate(PrimFunc([A, B], unguarded), a, b)


def test_each_run_of_a_block_has_its_own_memory():
    B, T = decl_buffer((3,), name="B"), decl_buffer((1,), name="T")
    i, v = Var("i"), Var("v")
    first = IfThenElse(v.equal(0), BufferStore(T, const(5.0, "float32"), [0]))
    body = SeqStmt((first, BufferStore(B, T[0], [v])))
    block = Block((IterVar((0, 3), v, IterVar.DataPar),), (), (), "B", body, alloc_buffers=(T,))
    func = PrimFunc([B], serial(i, 3, BlockRealize((i,), True, block)))
    with pytest.raises(UninitialisedRead, match=r"reads T\[0\] before anything has written it at i=1, v=1 .LW0803"):
        evaluate(func, np.zeros(3, "float32"))


def sub_buffer(strides, elem_offset=None):
    """B[4:6, 1:3] += 1 through a matched buffer."""
    B = decl_buffer((6, 5), name="B")
    part = decl_buffer((2, 2), name="part", strides=strides, elem_offset=elem_offset)
    i, j = Var("i"), Var("j")
    region = BufferRegion(B, (Range.from_min_extent(4, 2), Range.from_min_extent(1, 2)))
    inside = serial(i, 2, serial(j, 2, BufferStore(part, part[i, j] + 1.0, [i, j])))
    block = Block((), (), (), "part", inside, match_buffers=(MatchBufferRegion(part, region),))
    return PrimFunc([B], BlockRealize((), True, block))


@pytest.mark.parametrize("offset", [None, Var("offset")])
def test_match_buffer_with_symbolic_strides(offset):
    b = np.zeros((6, 5), "float32")
    evaluate(sub_buffer([Var("s0"), Var("s1")], offset), b)
    expected = np.zeros((6, 5))
    expected[4:6, 1:3] = 1
    np.testing.assert_array_equal(b, expected)


def test_match_buffer_with_wrong_strides():
    with pytest.raises(
        BadRegion, match=r"match_buffer part: it declares stride 2, but the region has stride 5 .LW0808"
    ):
        evaluate(sub_buffer(()), np.zeros((6, 5), "float32"))


# --- lockstep -----------------------------------------------------------------------------------------------------


def test_vectorized_loops_load_before_they_store():
    A, i = decl_buffer((5,), name="A"), Var("i")
    shift = serial(i, 4, BufferStore(A, A[i], [i + 1]), ForKind.VECTORIZED)
    a = f32(1, 2, 3, 4, 5)
    evaluate(PrimFunc([A], shift), a)
    assert a.tolist() == [1, 1, 2, 3, 4]
    a = f32(1, 2, 3, 4, 5)
    evaluate(PrimFunc([A], shift.with_(kind=ForKind.SERIAL)), a)
    assert a.tolist() == [1, 1, 1, 1, 1]


def test_lockstep_statement_by_statement():
    A, B = decl_buffer((4,), name="A"), decl_buffer((4,), name="B")
    i, x, k, v = Var("i"), Var("x", "float32"), Var("k"), Var("v")
    own = pointer("own", "float32")
    T = decl_buffer((1,), name="T", data=own)
    # Every lane writes A[i] before any lane reads A[3 - i].
    exchange = SeqStmt(
        (
            BufferStore(A, A[i] + 10.0, [i]),
            LetStmt(
                x,
                A[3 - i],
                Allocate(
                    own,
                    "float32",
                    (const(1),),
                    const(True),
                    SeqStmt(
                        (
                            BufferStore(T, x, [0]),
                            For(k, const(0), i, ForKind.SERIAL, BufferStore(T, T[0] + 100.0, [0])),
                            IfThenElse(i < 2, BufferStore(B, T[0], [i]), BufferStore(B, -T[0], [i])),
                        )
                    ),
                ),
            ),
        )
    )
    block = Block((IterVar((0, 4), v, IterVar.DataPar),), (), (), "C", BufferStore(B, B[v] * 2.0, [v]))
    both = SeqStmt((exchange, BlockRealize((i,), i > 0, block)))
    a, b = f32(1, 2, 3, 4), np.zeros(4, "float32")
    evaluate(PrimFunc([A, B], serial(i, 4, both, ForKind.VECTORIZED)), a, b)
    assert a.tolist() == [11, 12, 13, 14]
    assert b.tolist() == [14, 226, -424, -622]


def test_lockstep_while():
    N, i = decl_buffer((4,), "int32", name="N"), Var("i")
    body = While(N[i] < 10, BufferStore(N, N[i] * 2, [i]))
    n = np.array([1, 3, 12, 5], "int32")
    evaluate(PrimFunc([N], serial(i, 4, body, ForKind.VECTORIZED)), n)
    assert n.tolist() == [16, 12, 12, 10]


def test_statements_after_a_vectorized_loop():
    A, B, i, j = decl_buffer((4,), name="A"), decl_buffer((4,), name="B"), Var("i"), Var("j")
    vector = serial(i, 4, BufferStore(A, i.astype("float32"), [i]), ForKind.VECTORIZED)
    rest = serial(j, 4, BufferStore(B, A[j] * 2.0, [j]))
    a, b, k = np.zeros(4, "float32"), np.zeros(4, "float32"), Var("k")
    evaluate(PrimFunc([A, B], serial(k, 2, SeqStmt((vector, rest)))), a, b)
    assert b.tolist() == [0, 2, 4, 6]


# --- vectors ------------------------------------------------------------------------------------------------------


def test_vector_loads_and_stores():
    A, B = decl_buffer((16,), name="A"), decl_buffer((16,), name="B")
    i = Var("i")
    index = Ramp(i * 4, const(1), 4)
    value = BufferLoad(A, [Ramp(i * 4 + 3, const(-1), 4)]) * Broadcast(const(2.0, "float32"), 4)
    a, b = np.arange(16, dtype="float32"), np.zeros(16, "float32")
    evaluate(PrimFunc([A, B], serial(i, 4, BufferStore(B, value, [index]))), a, b)
    np.testing.assert_array_equal(b, 2 * a.reshape(4, 4)[:, ::-1].reshape(-1))


def test_vector_operations_shuffles_and_casts():
    A, B = decl_buffer((4,), "int32", name="A"), decl_buffer((4,), name="B")
    v = BufferLoad(A, [Ramp(const(0), const(1), 4)])
    big = LT(Broadcast(const(2), 4), v)
    chosen = Select(big, v, Broadcast(const(0), 4))
    mixed = Shuffle((chosen, v), tuple(const(k) for k in (3, 0, 4, 5)))
    a, b = np.array([1, 2, 3, 4], "int32"), np.zeros(4, "float32")
    evaluate(PrimFunc([A, B], BufferStore(B, Cast("float32x4", mixed), [Ramp(const(0), const(1), 4)])), a, b)
    assert b.tolist() == [4, 0, 1, 2]
    one = Shuffle((v,), (const(2),))
    C = decl_buffer((1,), "int32", name="C")
    c = np.zeros(1, "int32")
    evaluate(PrimFunc([A, C], BufferStore(C, one, [0])), a, c)
    assert c[0] == 3


def test_guarded_vector_loads_touch_only_guarded_lanes():
    A, B = decl_buffer((6,), name="A"), decl_buffer((8,), name="B")
    i = Var("i")
    index = Ramp(i * 4, const(1), 4)
    inside = LT(index, Broadcast(const(6), 4))
    zero = Broadcast(const(0.0, "float32"), 4)
    guarded = intrinsics.call_intrin("float32x4", "tir.if_then_else", inside, BufferLoad(A, [index]) * 2.0, zero)
    a, b = np.arange(6, dtype="float32"), np.ones(8, "float32")
    evaluate(PrimFunc([A, B], serial(i, 2, BufferStore(B, guarded, [index]))), a, b)
    assert b.tolist() == [0, 2, 4, 6, 8, 10, 0, 0]
    positive = And(inside, BufferLoad(A, [index]) > 2.0)
    C = decl_buffer((8,), "bool", name="C")
    c = np.zeros(8, "bool")
    evaluate(PrimFunc([A, C], serial(i, 2, BufferStore(C, positive, [index]))), a, c)
    assert c.tolist() == [False, False, False, True, True, True, False, False]


def test_vector_functions_and_halves():
    A, B = decl_buffer((8,), name="A"), decl_buffer((8,), name="B")
    whole = Ramp(const(0), const(1), 8)
    v = BufferLoad(A, [whole])
    low = Call("float32x4", Op.get("tir.vectorlow"), (v,))
    high = Call("float32x4", Op.get("tir.vectorhigh"), (v,))
    swapped = Call("float32x8", Op.get("tir.vectorcombine"), (intrinsics.sqrt(high), intrinsics.fma(low, low, low)))
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    evaluate(PrimFunc([A, B], BufferStore(B, swapped, [whole])), a, b)
    np.testing.assert_array_equal(b, np.concatenate([np.sqrt(a[4:]), a[:4] * a[:4] + a[:4]]))


def test_buffers_of_vectors():
    A, B = decl_buffer((2,), "float32x4", name="A"), decl_buffer((2,), "float32x4", name="B")
    i = Var("i")
    func = PrimFunc([A, B], serial(i, 2, BufferStore(B, A[1 - i], [i])))
    a, b = np.arange(8, dtype="float32").reshape(2, 4), np.zeros((2, 4), "float32")
    evaluate(func, a, b)
    assert b.tolist() == [[4, 5, 6, 7], [0, 1, 2, 3]]
    with pytest.raises(ShapeMismatch, match=r"argument A has shape \(2, 3\), expected a last dimension of 4"):
        evaluate(func, np.zeros((2, 3), "float32"), b)


def test_reinterpret_across_lanes():
    A, B = decl_buffer((4,), "uint8", name="A"), decl_buffer((1,), "uint32", name="B")
    v = BufferLoad(A, [Ramp(const(0), const(1), 4)])
    a, b = np.array([1, 2, 3, 4], "uint8"), np.zeros(1, "uint32")
    evaluate(PrimFunc([A, B], BufferStore(B, intrinsics.reinterpret("uint32", v), [0])), a, b)
    assert b[0] == 0x04030201
    halves = decl_buffer((2,), "uint4", name="A")
    value = intrinsics.reinterpret("uint8", BufferLoad(halves, [Ramp(const(0), const(1), 2)]))
    C = decl_buffer((1,), "uint8", name="C")
    with pytest.raises(NotBuilt, match="a reinterpret of uint4x2 as uint8, which share bytes"):
        evaluate(PrimFunc([halves, C], BufferStore(C, value, [0])), np.zeros(2, "uint8"), np.zeros(1, "uint8"))


# --- calls --------------------------------------------------------------------------------------------------------


def test_if_then_else_evaluates_one_side_only_and_select_both():
    A, B, i = decl_buffer((3,), name="A"), decl_buffer((5,), name="B"), Var("i")
    zero = const(0.0, "float32")
    guarded = serial(i, 5, BufferStore(B, intrinsics.if_then_else(i < 3, A[i], zero), [i]))
    b = np.ones(5, "float32")
    evaluate(PrimFunc([A, B], guarded), f32(1, 2, 3), b)
    assert b.tolist() == [1, 2, 3, 0, 0]
    eager = serial(i, 5, BufferStore(B, Select(intrinsics.likely(i < 3), A[i], zero), [i]))
    with pytest.raises(OutOfBounds, match=r"reads A\[3\] with shape \(3,\) at i=3 .LW0802"):
        evaluate(PrimFunc([A, B], eager), f32(1, 2, 3), b)


def test_logic_stops_early():
    A, B, i = decl_buffer((3,), name="A"), decl_buffer((5,), "bool", name="B"), Var("i")
    both = serial(i, 5, BufferStore(B, intrinsics.all(i < 3, A[i] > 1.0), [i]))
    b = np.ones(5, "bool")
    evaluate(PrimFunc([A, B], both), f32(1, 2, 3), b)
    assert b.tolist() == [False, True, True, False, False]


def test_functions_call_each_other():
    x, n = decl_buffer((4,), name="x"), Var("n")
    i, j = Var("i"), Var("j")
    add_one = PrimFunc([x], serial(i, 4, BufferStore(x, x[i] + 1.0, [i])))
    row = decl_buffer((4,), name="row")
    scale = PrimFunc([row, n], serial(j, 4, BufferStore(row, row[j] * n.astype("float32"), [j])))
    X = decl_buffer((2, 4), name="X")
    calls = SeqStmt(
        (
            Evaluate(intrinsics.call_tir(GlobalVar("add_one"), intrinsics.address_of(X[1, 0]))),
            Evaluate(intrinsics.call_tir(GlobalVar("scale"), X.data, const(3))),
        )
    )
    module = IRModule({"main": PrimFunc([X], calls), "add_one": add_one, "scale": scale})
    data = np.ones((2, 4), "float32")
    evaluate(module, data)
    assert data.tolist() == [[3] * 4, [2] * 4]
    with pytest.raises(LoopwrightError, match="the module has 2 functions: a, b"):
        evaluate(IRModule({"a": add_one, "b": scale}))
    evaluate(IRModule({"a": add_one, "b": scale}), np.ones(4, "float32"), function="a")


def test_recursion():
    n = Var("n")
    again = Call("int32", GlobalVar("factorial"), (n - 1,))
    body = IfThenElse(n <= 1, Evaluate(intrinsics.ret(const(1))), Evaluate(intrinsics.ret(again * n)))
    assert evaluate(IRModule({"factorial": PrimFunc([n], body)}), 10) == 3628800


def test_undef_takes_a_value_away():
    B, data = decl_buffer((1,), name="B"), pointer("T", "float32")
    T = decl_buffer((1,), name="T", data=data)
    nothing = Call("float32", Op.get("tir.undef"), ())
    steps = (BufferStore(T, const(1.0, "float32"), [0]), BufferStore(T, nothing, [0]), BufferStore(B, T[0], [0]))
    with pytest.raises(UninitialisedRead, match=r"reads T\[0\] before"):
        evaluate(PrimFunc([B], Allocate(data, "float32", (const(1),), const(True), SeqStmt(steps))), f32(0))


# --- types in memory ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype",
    ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
    + ["bfloat16", "bool", "e4m3_float8", "e5m2_float8"],
)
def test_copy_through_own_memory(dtype):
    number = DataType(dtype).numpy()
    A, B, T = [decl_buffer((7,), dtype, name=name) for name in "ABT"]
    i, j = Var("i"), Var("j")
    steps = SeqStmt((serial(i, 7, BufferStore(T, A[i], [i])), serial(j, 7, BufferStore(B, T[j], [j]))))
    func = PrimFunc([A, B], BlockRealize((), True, Block((), (), (), "root", steps, alloc_buffers=(T,))))
    a = np.array([0, 1, 1, 0, 1, 0, 1]).astype(number) if dtype == "bool" else np.arange(7).astype(number)
    b = np.zeros(7, number)
    evaluate(func, a, b)
    np.testing.assert_array_equal(a, b)


def test_bfloat16_travels_as_uint16():
    A, i = decl_buffer((3,), "bfloat16", name="A"), Var("i")
    a = np.array([1, 2, 3], ml_dtypes.bfloat16).view("uint16")
    evaluate(PrimFunc([A], serial(i, 3, BufferStore(A, A[i] + A[i], [i]))), a)
    assert a.view(ml_dtypes.bfloat16).tolist() == [2, 4, 6]


# --- arguments ----------------------------------------------------------------------------------------------------


def test_symbolic_shapes_and_strides():
    n, m, s = Var("n"), Var("m"), Var("s")
    A = decl_buffer((n, m), name="A", strides=[s, 1])
    B = decl_buffer((m, n * 2), name="B")
    i, j = Var("i"), Var("j")
    both = SeqStmt((BufferStore(B, A[i, j], [j, i]), BufferStore(B, A[i, j], [j, i + n])))
    func = PrimFunc([B, A], serial(i, n, serial(j, m, both)))
    a = np.arange(24, dtype="float32").reshape(4, 6)[:3, :2]
    b = np.zeros((2, 6), "float32")
    evaluate(func, b, a)
    np.testing.assert_array_equal(b, np.concatenate([a.T, a.T], axis=1))
    with pytest.raises(ShapeMismatch, match=r"main: argument B has shape \(2, 5\), expected \(\?, 6\)"):
        evaluate(func, np.zeros((2, 5), "float32"), a)
    with pytest.raises(StrideMismatch, match="argument A has stride 2 in dimension 1, expected 1"):
        evaluate(func, b, np.zeros((4, 6), "float32")[:3, ::2][:, :2])


def one_argument(dtype="float32"):
    A = decl_buffer((4,), dtype, name="A")
    return PrimFunc([A], BufferStore(A, const(1, dtype), [0]))


def test_wrong_arguments():
    func = one_argument()
    with pytest.raises(ArgumentCountMismatch, match=r"main takes 1 argument \(A\), got 2"):
        evaluate(func, f32(1), f32(1))
    with pytest.raises(ArgumentKindMismatch, match="argument A is a list, expected an array"):
        evaluate(func, [1, 2, 3, 4])
    with pytest.raises(DtypeMismatch, match="argument A has type float64, expected float32"):
        evaluate(func, np.zeros(4))
    with pytest.raises(RankMismatch, match="argument A has 2 dimensions, expected 1"):
        evaluate(func, np.zeros((4, 1), "float32"))
    with pytest.raises(ShapeMismatch, match=r"argument A has shape \(5,\), expected \(4,\)"):
        evaluate(func, np.zeros(5, "float32"))
    with pytest.raises(StrideMismatch, match="expected the compact row-major layout"):
        evaluate(func, np.zeros(8, "float32")[::2])
    with pytest.raises(StrideMismatch, match="not whole, forward steps"):
        evaluate(func, np.zeros(4, "float32")[::-1])
    frozen = np.zeros(4, "float32")
    frozen.flags.writeable = False
    with pytest.raises(ReadOnlyArgument, match="the program writes A, but its array is read-only"):
        evaluate(func, frozen)


def test_scalar_arguments():
    n, x, p = Var("n", "int8"), Var("x", "float32"), Var("p", "bool")
    assert evaluate(PrimFunc([n], Evaluate(intrinsics.ret(n + n))), np.int64(100)) == -56
    assert evaluate(PrimFunc([x], Evaluate(intrinsics.ret(x))), 0.1) == np.float32(0.1)
    assert evaluate(PrimFunc([p], Evaluate(intrinsics.ret(p))), 3) is True
    with pytest.raises(DtypeMismatch, match="argument n is 200, which does not fit int8"):
        evaluate(PrimFunc([n], Evaluate(intrinsics.ret(n))), 200)
    with pytest.raises(ArgumentKindMismatch, match="argument n is a float, expected a number of type int8"):
        evaluate(PrimFunc([n], Evaluate(intrinsics.ret(n))), 1.5)


def test_memory_layouts():
    A, B = decl_buffer((3, 2), name="A", strides=[1, 3]), decl_buffer((3, 2), name="B")
    i, j = Var("i"), Var("j")
    func = PrimFunc([A, B], serial(i, 3, serial(j, 2, BufferStore(B, A[i, j], [i, j]))))
    a, b = np.asfortranarray(np.arange(6, dtype="float32").reshape(3, 2)), np.zeros((3, 2), "float32")
    evaluate(func, a, b)
    np.testing.assert_array_equal(a, b)


def test_broadcast_buffers():
    n, s = Var("n"), Var("s")
    A = decl_buffer((n,), name="A", strides=[s], buffer_type="auto_broadcast")
    B = decl_buffer((1,), name="B")
    evaluate(PrimFunc([A, B], BufferStore(B, A[0] + s.astype("float32"), [0])), f32(5), (b := f32(0)))
    assert b[0] == 5


# --- errors -------------------------------------------------------------------------------------------------------


def test_out_of_bounds_with_a_witness():
    A, B = decl_buffer((7, 5), name="A"), decl_buffer((8, 5), name="B")
    i, j = Var("i"), Var("j")
    func = PrimFunc([A, B], serial(i, 8, serial(j, 5, BufferStore(B, A[i, j], [i, j]))))
    a, b = np.zeros((7, 5), "float32"), np.zeros((8, 5), "float32")
    with pytest.raises(
        OutOfBounds, match=r"the program reads A\[7, 0\] with shape \(7, 5\) at i=7, j=0 .LW0802"
    ) as info:
        evaluate(func, a, b)
    assert info.value.fields["indices"] == (7, 0)
    assert info.value.fields["loops"] == {"i": 7, "j": 0}
    func = PrimFunc([A, B], serial(i, 7, serial(j, 5, BufferStore(B, A[i, j], [i, j - 1]))))
    with pytest.raises(OutOfBounds, match=r"writes B\[0, -1\] with shape \(8, 5\) at i=0, j=0"):
        evaluate(func, a, b)


def test_out_of_bounds_lane():
    A = decl_buffer((6,), name="A")
    store = BufferStore(A, Broadcast(const(0.0, "float32"), 4), [Ramp(const(4), const(1), 4)])
    with pytest.raises(OutOfBounds, match=r"writes A\[6\] with shape \(6,\)"):
        evaluate(PrimFunc([A], store), np.zeros(6, "float32"))


def test_buffer_larger_than_its_memory():
    data, i = pointer("T", "float32"), Var("i")
    T = decl_buffer((100,), name="T", data=data)
    body = Allocate(data, "float32", (const(4),), const(True), serial(i, 5, BufferStore(T, const(0.0, "float32"), [i])))
    with pytest.raises(OutOfBounds, match=r"writes T\[4\] with shape \(100,\) at i=4"):
        evaluate(PrimFunc([], body))


def test_uninitialised_lane():
    data = pointer("T", "float32")
    T, B = decl_buffer((4,), name="T", data=data), decl_buffer((4,), name="B")
    whole = Ramp(const(0), const(1), 4)
    steps = SeqStmt((BufferStore(T, const(0.0, "float32"), [0]), BufferStore(B, BufferLoad(T, [whole]), [whole])))
    with pytest.raises(UninitialisedRead, match=r"reads T\[1\] before anything has written it"):
        evaluate(PrimFunc([B], Allocate(data, "float32", (const(4),), const(True), steps)), np.zeros(4, "float32"))


def test_check_false_skips_the_tests():
    data = pointer("T", "float32")
    T, B = decl_buffer((4,), name="T", data=data), decl_buffer((1,), name="B")
    body = Allocate(data, "float32", (const(4),), const(True), BufferStore(B, T[2], [0]))
    b = f32(1)
    evaluate(PrimFunc([B], body), b, check=False)
    assert b[0] == 0


def test_unbound_variable():
    B, x = decl_buffer((1,), "int32", name="B"), Var("x")
    with pytest.raises(UnboundVariable, match=r"variable x is used but nothing gives it a value .LW0805"):
        evaluate(PrimFunc([B], BufferStore(B, x, [0])), np.zeros(1, "int32"))


# --- steps --------------------------------------------------------------------------------------------------------


def test_on_step_sees_blocks_and_stores_before_they_happen():
    A, B = decl_buffer((2,), name="A"), decl_buffer((2,), name="B")
    i, v = Var("i"), Var("v")
    block = Block((IterVar((0, 2), v, IterVar.DataPar),), (), (), "B", BufferStore(B, A[v] * 3.0, [v]))
    func = PrimFunc([A, B], serial(i, 2, BlockRealize((i,), True, block)))
    b = np.zeros(2, "float32")
    seen = []

    def watch(step: Step):
        seen.append((str(step), b.tolist()))

    evaluate(func, f32(1, 2), b, on_step=watch)
    assert seen == [
        ("block B at i=0, v=0", [0, 0]),
        ("B[0] = 3.0 at i=0, v=0", [0, 0]),
        ("block B at i=1, v=1", [3, 0]),
        ("B[1] = 6.0 at i=1, v=1", [3, 0]),
    ]


def test_on_step_in_lockstep_and_vectors():
    B, i = decl_buffer((2,), name="B"), Var("i")
    steps = []
    loop = serial(i, 2, BufferStore(B, i.astype("float32"), [i]), ForKind.VECTORIZED)
    evaluate(PrimFunc([B], loop), np.zeros(2, "float32"), on_step=lambda step: steps.append(str(step)))
    vector = BufferStore(B, Broadcast(const(5.0, "float32"), 2), [Ramp(const(0), const(1), 2)])
    evaluate(PrimFunc([B], vector), np.zeros(2, "float32"), on_step=lambda step: steps.append(str(step)))
    assert steps == ["B[0] = 0.0 at i=0", "B[1] = 1.0 at i=1", "B[(0, 1)] = [5.0, 5.0]"]


def test_examples_in_the_documentation():
    module = importlib.import_module("loopwright.evaluator.evaluate")
    found = doctest.testmod(module)
    assert found.attempted > 3 and not found.failed


# --- size ---------------------------------------------------------------------------------------------------------


def test_deep_expressions():
    B = decl_buffer((1,), "int32", name="B")
    value = B[0]
    for _ in range(10_000):
        value = Add(value, const(1))
    b = np.zeros(1, "int32")
    evaluate(PrimFunc([B], BufferStore(B, value, [0])), b)
    assert b[0] == 10_000
    value = BufferLoad(B, [0])
    for _ in range(10_000):
        value = Add(const(1), value)
    evaluate(PrimFunc([B], BufferStore(B, value, [0])), b)
    assert b[0] == 20_000


def test_many_statements():
    B = decl_buffer((1,), "int32", name="B")
    stores = tuple(BufferStore(B, Add(B[0], const(1)), [0]) for _ in range(20_000))
    b = np.zeros(1, "int32")
    evaluate(PrimFunc([B], SeqStmt(stores)), b)
    assert b[0] == 20_000


@pytest.mark.parametrize("around", ["nothing", "BufferRealize", "Block"])
def test_lanes_keep_step_inside_every_statement(around):
    """A[i + 1] = A[i] + 1: every lane loads before one stores, whatever stands between the loop and the store."""
    A, B, i = decl_buffer((9,), "int32", name="A"), decl_buffer((1,), "int32", name="B"), Var("i")
    store = BufferStore(A, A[i] + 1, [i + 1])
    body = {
        "nothing": store,
        "BufferRealize": BufferRealize(B, (Range(0, 1),), const(True), store),
        "Block": Block((), (), (), "block", store),
    }[around]
    a = np.zeros(9, "int32")
    evaluate(PrimFunc([A], For(i, 0, 8, ForKind.VECTORIZED, body)), a)
    assert a.tolist() == [0] + [1] * 8


def test_a_pointer_between_two_elements():
    bytes_, words = decl_buffer((8,), "uint8", name="bytes"), decl_buffer((1,), "uint16", name="words")
    place = Var("place", PointerType(PrimType("uint16")))
    seen = decl_buffer((3,), "uint16", name="seen", data=place)
    store = BufferStore(words, seen[1], [0])
    func = PrimFunc([bytes_, words], LetStmt(place, intrinsics.address_of(bytes_[1]), DeclBuffer(seen, store)))
    found = np.zeros(1, "uint16")
    evaluate(func, np.arange(8, dtype="uint8"), found)
    assert found[0] == 0x0403  # bytes 3 and 4


@pytest.mark.parametrize("size", [1 << 50, 1 << 62, (1 << 63) - 1])
@pytest.mark.parametrize(
    "declared", ['A = T.decl_buffer((n,), "int32")', 'A = T.alloc_buffer((n,), "int32")'], ids=["decl", "alloc"]
)
def test_an_allocation_that_no_memory_holds_is_an_error_of_ours(size, declared):
    program = from_source(
        f'@T.prim_func\ndef main(O: T.Buffer((1,), "int32")):\n'
        f"    {declared.replace('n,', f'T.int64({size}),')}\n    A[0] = 3\n    O[0] = A[0]\n"
    )
    message = rf"no memory for the intermediate buffer \w+, which has {4 * size:,} bytes"
    with pytest.raises(WorkspaceExhausted, match=message):
        evaluate(program, np.zeros(1, "int32"))
