"""te.extern and te.extern_primfunc: statements and functions of the user's own inside a graph of tensors."""

from __future__ import annotations

import ctypes
import subprocess

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir, te, tir
from loopwright.analysis import check_program
from loopwright.evaluator import evaluate
from loopwright.ir import intrinsics
from loopwright.runtime.registry import register_func
from loopwright.script import tir as T
from tests.agreement import assert_agreement


def _random(*shape, dtype="float32"):
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(dtype)


def _run(tensors, *arrays):
    """The outputs from native code, after the evaluator agreed on every stage of lowering."""
    func = te.create_prim_func(tensors)
    check_program(func)
    outputs = [np.zeros([int(d) for d in t.shape], str(t.dtype)) for t in tensors[len(arrays) :]]
    assert_agreement(func, [*arrays, *outputs], native=False)
    evaluated = [array.copy() for array in outputs]
    evaluate(func, *arrays, *evaluated)
    lw.build(tensors)(*arrays, *outputs)
    for a, b in zip(evaluated, outputs, strict=True):
        np.testing.assert_array_equal(a, b)
    return outputs[0] if len(outputs) == 1 else outputs


def _loop(buffer_in, buffer_out, value):
    i = ir.Var("i")
    body = ir.BufferStore(buffer_out, value(buffer_in[i]), [i])
    return ir.For(i, ir.const(0), buffer_in.shape[0], ir.ForKind.SERIAL, body)


@pytest.fixture(scope="module", autouse=True)
def packed_functions():
    def matmul(a, b, c):
        np.matmul(np.from_dlpack(a), np.from_dlpack(b), out=np.from_dlpack(c))

    def split(a, low, high, n, scale):
        low.copyfrom(a.numpy()[:n] * np.float32(scale))
        high.copyfrom(a.numpy()[n:])

    register_func("test.te.matmul", matmul, override=True)
    register_func("test.te.split", split, override=True)
    register_func("test.te.seven", lambda: 7, override=True)


def _matmul():
    A, B = te.placeholder((4, 5), name="A"), te.placeholder((5, 3), name="B")
    C = te.extern(
        (4, 3), [A, B], lambda ins, outs: tir.call_packed("test.te.matmul", ins[0], ins[1], outs[0]), name="C"
    )
    return A, B, C


def test_a_packed_call_between_computes():
    A, B, C = _matmul()
    D = te.compute((4, 3), lambda i, j: C[i, j] + 1, name="D")
    a, b = _random(4, 5), _random(5, 3)
    np.testing.assert_array_equal(_run([A, B, D], a, b), a @ b + 1)


def test_several_outputs_and_scalars():
    A = te.placeholder((6,), name="A")
    low, high = te.extern(
        [(2,), (4,)],
        [A],
        lambda ins, outs: tir.call_packed("test.te.split", ins[0], outs[0], outs[1], 2, 0.5),
        name="split",
        dtype=["float32", "float32"],
    )
    a = _random(6)
    got = _run([A, low, high], a)
    np.testing.assert_array_equal(got[0], a[:2] * np.float32(0.5))
    np.testing.assert_array_equal(got[1], a[2:])
    assert [low.name, high.name] == ["split.v0", "split.v1"]


def test_a_statement_of_ones_own():
    A = te.placeholder((5,), name="A")
    B = te.extern((5,), [A], lambda ins, outs: _loop(ins[0], outs[0], lambda x: x * 2), name="B")
    C = te.extern((5,), [B], lambda ins, outs: _loop(ins[0], outs[0], intrinsics.exp), name="C")
    a = _random(5)
    out = np.zeros(5, "float32")
    evaluate(te.create_prim_func([A, C]), a, out)
    np.testing.assert_array_equal(out, np.exp((a * 2).astype("float64")).astype("float32"))
    np.testing.assert_array_equal(_run([A, B], a), a * 2)


def test_the_block_is_opaque_with_whole_regions():
    A, B, C = _matmul()
    func = te.create_prim_func([A, B, C])
    blocks = []
    ir.pre_order_visit(func.body, lambda node: blocks.append(node) if isinstance(node, ir.Block) else None)
    block = blocks[1]
    assert (block.name_hint, block.iter_vars) == ("C", ())
    shown = [(r.buffer.name, [s.extent.value for s in r.region]) for r in (*block.reads, *block.writes)]
    assert shown == [("A", [4, 5]), ("B", [5, 3]), ("C", [4, 3])]


def test_attributes():
    A, B, C = _matmul()
    op = C.op
    assert isinstance(op, te.ExternOp)
    assert op.inputs == (A, B) and op.input_tensors == [A, B]
    assert [b.name for b in (*op.input_placeholders, *op.output_placeholders)] == ["A", "B", "C"]
    assert isinstance(op.body, ir.Evaluate)
    assert isinstance(op.input_placeholders[0].elem_offset, ir.Var)
    with te.tag_scope("library"):
        assert _matmul()[2].op.tag == "library"


def test_types_are_those_of_the_inputs_or_as_given():
    A = te.placeholder((4,), "int8", name="A")
    assert te.extern((4,), [A], lambda i, o: te.const(0)).dtype == "int8"
    assert te.extern((4,), [A], lambda i, o: te.const(0), dtype="float64").dtype == "float64"
    assert te.extern([4], [A], lambda i, o: te.const(0)).shape[0].value == 4
    a, b = te.extern([(4,), (5, 6)], [A], lambda i, o: te.const(0), dtype="int32")
    assert (a.dtype, b.dtype, b.ndim) == ("int32", "int32", 2)


def test_buffers_of_ones_own_with_symbolic_strides_and_offset():
    A = te.placeholder((4, 6), name="A")
    s0, s1, n = te.var("s0"), te.var("s1"), te.var("n")
    given = tir.decl_buffer((4, n), "float32", "given", strides=[s0, s1], elem_offset=te.var("o"))
    B = te.extern(
        (3,),
        [A],
        lambda ins, outs: ir.SeqStmt(
            tuple(
                ir.BufferStore(outs[0], value.astype("float32"), [k])
                for k, value in enumerate((s0, s1, n + ins[0].elem_offset))
            )
        ),
        in_buffers=given,
        name="B",
    )
    assert _run([A, B], _random(4, 6)).tolist() == [6, 1, 6]


def test_a_flat_view_of_a_tensor():
    A = te.placeholder((2, 3), name="A")
    flat = tir.decl_buffer((6,), "float32", "flat")
    B = te.extern((6,), [A], lambda ins, outs: _loop(ins[0], outs[0], lambda x: x + 1), in_buffers=[flat], name="B")
    a = _random(2, 3)
    np.testing.assert_array_equal(_run([A, B], a), a.reshape(-1) + 1)


def test_symbolic_sizes():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.extern((n,), [A], lambda ins, outs: _loop(ins[0], outs[0], lambda x: x + 1), name="B")
    func = te.create_prim_func([A, B])
    for size in (0, 1, 7):
        a, b = _random(size), np.zeros(size, "float32")
        assert_agreement(func, [a, b], native=False)
        lw.build(func)(a, b)
        np.testing.assert_array_equal(b, a + 1)
    wide = te.create_prim_func([A, B], index_dtype_override="int64")
    a, b = _random(5), np.zeros(5, "float32")
    evaluate(wide, a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_one_statement_in_two_externs():
    A = te.placeholder((3,), name="A")
    i = ir.Var("i")

    def body(ins, outs):
        return ir.For(i, ir.const(0), ir.const(3), ir.ForKind.SERIAL, ir.BufferStore(outs[0], ins[0][i] + 1, [i]))

    B = te.extern((3,), [A], body, name="B")
    C = te.extern((3,), [B], body, name="C")
    a = _random(3)
    np.testing.assert_array_equal(_run([A, C], a), a + 1 + 1)


def test_c_functions(tmp_path):
    """From a library compiled here, and from the C library itself."""
    source, library = tmp_path / "extern.c", tmp_path / "libextern.so"
    source.write_text("void lw_test_scale(const float *a, float *b, int n, float s) { while (n--) *b++ = *a++ * s; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    A = te.placeholder((5,), name="A")
    B = te.extern(
        (5,),
        [A],
        lambda ins, outs: tir.call_extern("void", "lw_test_scale", ins[0].data, outs[0].data, 5, T.float32(3)),
        name="B",
    )
    C = te.compute((5,), lambda i: tir.call_pure_extern("float32", "fabsf", B[i]), name="C")
    a = _random(5)
    np.testing.assert_array_equal(_run([A, C], a), np.abs(a * np.float32(3)))


# --- extern_primfunc ----------------------------------------------------------------------------------------------


@T.prim_func
def add_one(A: T.Buffer((4, 5)), B: T.Buffer((4, 5))):
    for i, j in T.grid(4, 5):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)


@T.prim_func
def matmul(A: T.Buffer((4, 5)), B: T.Buffer((5, 3)), C: T.Buffer((4, 3))):
    for i, j, k in T.grid(4, 3, 5):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]


@T.prim_func
def double_in_place(A: T.Buffer((4, 5))):
    for i, j in T.grid(4, 5):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi, vj] * T.float32(2)


@T.prim_func
def any_length(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n + 1,))
    for i in range(n + 1):
        with T.block("B"):
            vi = T.axis.spatial(n + 1, i)
            B[vi] = T.if_then_else(vi < n, A[vi], T.float32(-1))


def test_functions_become_tensors():
    X, Y = te.placeholder((4, 5), name="X"), te.placeholder((5, 3), name="Y")
    once = te.extern_primfunc([X], add_one, name="once")
    twice = te.extern_primfunc([once], add_one)
    product = te.extern_primfunc([twice, Y], matmul)
    assert (once.name, twice.name, product.name) == ("once", "add_one", "matmul")
    x, y = np.round(_random(4, 5) * 8), np.round(_random(5, 3) * 8)
    np.testing.assert_array_equal(_run([X, Y, product], x, y), (x + 2) @ y)


def test_functions_that_work_in_place():
    X = te.placeholder((4, 5), name="X")
    x = _random(4, 5)
    result = te.extern_primfunc([X], double_in_place)
    np.testing.assert_array_equal(_run([X, result], x), x * 2)


def test_functions_of_symbolic_size():
    X = te.placeholder((6,), name="X")
    Y = te.extern_primfunc([X], any_length)
    assert Y.shape[0].value == 7
    x = _random(6)
    np.testing.assert_array_equal(_run([X, Y], x), np.append(x, np.float32(-1)))


@pytest.mark.parametrize(
    ("tensors", "function", "message"),
    [
        ([(5, 4)], add_one, r"tensor X0 of shape \(5, 4\) is given for A, whose dimension 0 is 4"),
        ([(4,)], add_one, r"tensor X0 of shape \(4,\) is given for A of shape \(4, 5\)"),
        ([], add_one, r"0 tensors are given, but it reads 1 \(A\) and writes B"),
        ([(4, 5)], matmul, r"1 tensor is given, but it reads 2 \(A, B\) and writes C"),
        ([(4, 5)], "add_one", r"'add_one' is no function"),
    ],
)
def test_functions_that_do_not_fit(tensors, function, message):
    given = [te.placeholder(shape, name=f"X{k}") for k, shape in enumerate(tensors)]
    with pytest.raises(te.BadExternFunction, match=message):
        te.extern_primfunc(given, function)
    with pytest.raises(AssertionError):
        te.extern_primfunc(given, function)


def test_functions_with_other_types_scalars_or_nothing_to_do():
    with pytest.raises(te.BadExternFunction, match=r"tensor X of type int32 is given for A of type float32"):
        te.extern_primfunc([te.placeholder((4, 5), "int32", name="X")], add_one)
    A, n = tir.decl_buffer((4,), name="A"), ir.Var("n")
    with pytest.raises(te.BadExternFunction, match=r"its parameter n is no buffer"):
        te.extern_primfunc([], ir.PrimFunc([A, n], ir.no_op()))
    with pytest.raises(te.BadExternFunction, match=r"it writes no buffer, so it has no output"):
        te.extern_primfunc([], ir.PrimFunc([A], ir.no_op()))


# --- refusals -----------------------------------------------------------------------------------------------------


def test_arguments():
    A, B = te.placeholder((4,), name="A"), te.placeholder((4,), "int32", name="B")
    nothing = lambda ins, outs: te.const(0)
    with pytest.raises(te.BadExternArgument, match=r"input 1 is str 'B'"):
        te.extern((4,), [A, "B"], nothing)
    with pytest.raises(te.UnknownExternType, match=r"the inputs have types float32, int32"):
        te.extern((4,), [A, B], nothing)
    with pytest.raises(te.UnknownExternType, match=r"there are no inputs"):
        te.extern((4,), [], nothing)
    with pytest.raises(te.BadExternArgument, match=r"dtype has 1 types for 2 outputs"):
        te.extern([(4,), (4,)], [A], nothing, dtype=["int8"])
    with pytest.raises(te.BufferCountMismatch, match=r"in_buffers has 2 buffers for 1 input"):
        te.extern((4,), [A], nothing, in_buffers=[tir.decl_buffer((4,))] * 2)
    with pytest.raises(RuntimeError, match=r"out_buffers has 2 buffers for 1 output"):
        te.extern((4,), [A], nothing, out_buffers=[tir.decl_buffer((4,))] * 2)
    with pytest.raises(te.BadExternBody, match=r"the function returned NoneType None"):
        te.extern((4,), [A], lambda ins, outs: None)
    with pytest.raises(te.BadExternArgument, match=r"int 3 is not a function"):
        te.extern((4,), [A], 3)
    with pytest.raises(te.BadShape, match=r"the bare number 4"):
        te.extern(4, [A], nothing)


@pytest.mark.parametrize(
    ("buffer", "message"),
    [
        ({"shape": (4, 4), "dtype": "int32"}, r"has type int32, its tensor float32"),
        ({"shape": (4, 5), "dtype": "float32"}, r"declares dimension 1 as 5, but its tensor has 4"),
        ({"shape": (4, 4), "dtype": "float32", "strides": [8, 1]}, r"declares stride 0 as 8, but its tensor has 4"),
        ({"shape": (4, 4), "dtype": "float32", "elem_offset": 2}, r"declares the offset as 2, but its tensor has 0"),
        ({"shape": (17,), "dtype": "float32"}, r"has 17 elements, its tensor 16"),
    ],
)
def test_buffers_that_do_not_describe_their_tensor(buffer, message):
    A = te.placeholder((4, 4), name="A")
    given = tir.decl_buffer(name="given", **buffer)
    B = te.extern((4,), [A], lambda ins, outs: te.const(0), in_buffers=[given])
    with pytest.raises(te.ExternBufferMismatch, match=message):
        te.create_prim_func([A, B])


def test_a_variable_that_nothing_gives():
    A, n = te.placeholder((4,), name="A"), te.var("n")
    B = te.extern((4,), [A], lambda ins, outs: ir.BufferStore(outs[0], n.astype("float32"), [0]), name="B")
    with pytest.raises(te.UndefinedVariable, match=r"B uses the variable n"):
        te.create_prim_func([A, B])
    a, b = np.zeros(4, "float32"), np.zeros(4, "float32")
    evaluate(te.create_prim_func([A, n, B]), a, 9, b)
    assert b[0] == 9


def test_bodies_from_ir_builder():
    """A prefix sum with a guard, in memory of its own."""

    def body(ins, outs):
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        running = ib.allocate("float32", (1,), name="running", scope="local")
        running[0] = 0.0
        with ib.for_range(0, ins[0].shape[0], "i") as i:
            with ib.if_scope(source[i] > 0.0):
                running[0] = running[0] + source[i]
            target[i] = running[0]
        return ib.get()

    A = te.placeholder((9,), name="A")
    B = te.compute((9,), lambda i: A[i] * 2, name="B")
    C = te.extern(B.shape, [B], body, name="C")
    D = te.extern(C.shape, [C], body, name="D")
    a = np.round(_random(9) * 8)
    once = np.cumsum(np.maximum(a * 2, 0), dtype="float32")
    np.testing.assert_array_equal(_run([A, D], a), np.cumsum(once, dtype="float32"))
