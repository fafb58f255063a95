"""ir_builder: what it builds, as text and as results; what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.ir.function import NotAParameter
from loopwright.ir.ir_builder import ElseWithoutIf, NotAStatement, ScopeOpen, StoreMismatch, UnknownLoopKind
from loopwright.ir.verifier import verify


def lines(stmt: tir.Stmt) -> list[str]:
    return stmt.script().splitlines()


def test_loops_branches_lets_and_allocations():
    n = tir.SizeVar("n")
    A, B = tir.decl_buffer((n,), name="A"), tir.decl_buffer((n,), name="B")
    ib = tir.ir_builder.create()
    a, b = ib.buffer_ptr(A), ib.buffer_ptr(B)
    with ib.for_range(0, n, "i") as i:
        total = ib.allocate("float32", 1, name="total", scope="local")
        k = ib.allocate("int32", (1,), name="k")
        total[0] = 0
        k[0] = 0
        with ib.while_loop(k[0] < i):
            total[0] += a[i]
            k[0] += 1
        with ib.if_scope(ib.likely(i % 2 == 0)):
            b[i] = total[0] * 2.0
        with ib.else_scope():
            x = ib.let("x", total[0] + 1.0)
            b[i] = x
    func = tir.PrimFunc([A, B], ib.get())
    verify(func)
    text = func.script()
    for part in (
        "while k[0] < i:",
        "if T.likely(i % 2 == 0):",
        "x: T.float32 = total[0] + T.float32(1)",
        'scope="local"',
    ):
        assert part in text
    for size in (0, 1, 7):
        x = np.arange(size, dtype="float32")
        y = np.empty_like(x)
        lw.build(func)(x, y)
        sums = x * np.arange(size, dtype="float32")
        np.testing.assert_array_equal(y, np.where(np.arange(size) % 2 == 0, sums * 2, sums + 1))


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("serial", "range(4)"),
        ("parallel", "T.parallel(4)"),
        ("vectorize", "T.vectorized(4)"),
        ("unroll", "T.unroll(4)"),
    ],
)
def test_kinds_of_loops(kind, word):
    ib = tir.ir_builder.create()
    with ib.for_range(0, 4, kind=kind) as i:
        ib.emit(i)
    assert lines(ib.get())[-2] == f"for i in {word}:"


@pytest.mark.parametrize(
    ("begin", "end", "text"), [(2, 7, "T.serial(2, 7)"), (0, 0, "range(0)"), (5, 5, "T.serial(5, 5)")]
)
def test_bounds_of_loops(begin, end, text):
    ib = tir.ir_builder.create()
    with ib.for_range(begin, end) as i:
        ib.emit(i)
    assert lines(ib.get())[-2] == f"for i in {text}:"


def test_a_loop_counts_in_the_wider_type():
    ib = tir.ir_builder.create()
    with ib.for_range(0, tir.Var("n", "int64")) as i:
        assert i.dtype == "int64"
    with ib.for_range(0, 4, dtype="int64") as i:
        assert i.dtype == "int64"


def test_one_index_into_several_dimensions_counts_elements():
    A = tir.decl_buffer((3, 4), name="A")
    ib = tir.ir_builder.create()
    a = ib.buffer_ptr(A)
    a[7] = a[1, 2] + 1.0
    assert lines(ib.get())[-1] == "A[1, 3] = A[1, 2] + T.float32(1)"


def test_vector_memory_is_indexed_by_vectors():
    ib = tir.ir_builder.create()
    v = ib.allocate("float32x4", 2, name="v")
    v[1] = 2.0
    assert "v[1] = T.Broadcast(T.float32(2), 4)" in ib.get().script()


def test_attributes_assertions_and_scopes_reach_to_the_end_of_their_scope():
    ib = tir.ir_builder.create()
    with ib.new_scope():
        ib.scope_attr("compute", "pragma_mine", 1)
        ib.emit(tir.Evaluate(tir.call_extern("int32", "inside")))
    ib.assert_(tir.Var("n") > 0, "n must be positive")
    ib.emit(tir.call_extern("int32", "outside"))
    text = ib.get().script()
    assert text.index("pragma_mine") < text.index("inside") < text.index("n must be positive") < text.index("outside")


def test_pointers_are_parameters():
    ib = tir.ir_builder.create()
    p = ib.pointer("float32", "p")
    p[3] = 1.0
    func = tir.PrimFunc([p], ib.get())
    verify(func)
    assert lines(func)[3:] == [
        'def main(p: T.handle("float32")):',
        "    p_1 = T.Buffer((1,), data=p)",
        "    p_1[3] = T.float32(1)",
    ]
    assert func.params[0] is p.asobject().data and not func.buffer_map


def test_memory_of_a_builder_is_a_buffer_and_stands_for_its_pointer():
    A = tir.decl_buffer((4,), name="A")
    ib = tir.ir_builder.create()
    a, b = ib.buffer_ptr(A), ib.allocate("float32", 4, name="b")
    assert a.asobject() is A and b.asobject().shape[0].value == 4
    ib.emit(tir.call_extern("int32", "f", b.asobject().access_ptr("r"), b))
    ib.emit(tir.Evaluate(a[0]))
    func = tir.PrimFunc([a], ib.get())
    verify(func)
    assert func.argument_buffers() == [A]
    assert 'T.tvm_access_ptr(T.type_annotation("float32"), b.data, 0, 4, 1), b.data)' in func.script()


@pytest.mark.parametrize("given", [3, "A", tir.Var("n") + 1, te.placeholder((4,), name="A")])
def test_what_is_no_parameter(given):
    with pytest.raises(NotAParameter, match="takes variables and buffers as parameters, but one is"):
        tir.PrimFunc([given], tir.Evaluate(0))


def test_get_empties_the_builder_and_nothing_is_a_statement():
    ib = tir.ir_builder.create()
    ib.emit(tir.Evaluate(5))
    assert isinstance(ib.get(), tir.Evaluate)
    assert ib.get().value.value == 0


def test_errors_name_what_is_wrong():
    ib = tir.ir_builder.create()
    with pytest.raises(ElseWithoutIf, match="else_scope follows an if_scope"):
        with ib.else_scope():
            pass
    with pytest.raises(ScopeOpen, match=r"get\(\) inside 1 scope"):
        with ib.for_range(0, 4):
            ib.get()
    with pytest.raises(UnknownLoopKind, match="no loop is of kind 'simd'"):
        with ib.for_range(0, 4, kind="simd"):
            pass
    with pytest.raises(NotAStatement, match="emit takes a statement"):
        ib.emit("x = 1")
    out = ib.allocate("float32", 4, name="out")
    for wrong in (tir.Var("k"), tir.Var("h", "float16"), tir.Broadcast(1.0, 4)):
        with pytest.raises(ValueError, match=f"out holds float32, but a value of type {wrong.dtype}"):
            out[0] = wrong
    assert issubclass(StoreMismatch, ValueError)
    with ib.if_scope(tir.Var("c") > 0):
        ib.emit(tir.Evaluate(1))
    with ib.else_scope():
        ib.emit(tir.Evaluate(2))
    with pytest.raises(ElseWithoutIf):
        with ib.else_scope():  # it has one
            pass


def test_an_error_inside_a_scope_leaves_the_builder_usable():
    ib = tir.ir_builder.create()
    with pytest.raises(ZeroDivisionError):
        with ib.for_range(0, 4), ib.if_scope(tir.Var("c") > 0):
            raise ZeroDivisionError
    ib.emit(tir.Evaluate(3))
    assert ib.get().value.value == 3
