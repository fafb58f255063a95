"""Buffers: where elements lie, what slices mean, how many indices there must be."""

from __future__ import annotations

import pytest

from loopwright import ir
from loopwright.arith import Analyzer
from loopwright.ir import const
from loopwright.ir.buffer import DEFAULT_ALIGNMENT, BadBufferMemory, BadBufferShape, WrongIndexCount
from loopwright.ir.intrinsics import address_of
from loopwright.runtime.errors import LoopwrightError


def text(expr: ir.Expr) -> str:
    return repr(Analyzer().simplify(expr))


def test_defaults():
    A = ir.decl_buffer((2, 3))
    assert (A.name, A.dtype, A.ndim, A.strides, A.scope()) == ("buffer", "float32", 2, (), "global")
    assert (A.data.name, A.data.dtype, A.data_alignment) == ("buffer", "handle", DEFAULT_ALIGNMENT)
    assert int(A.elem_offset) == 0
    assert ir.decl_buffer(5).ndim == 1
    assert ir.decl_buffer(()).ndim == 0
    assert ir.decl_buffer((4,), scope="shared").scope() == "shared"
    assert ir.decl_buffer((4,), "bool").data.type_annotation.element_type.dtype == "int8"
    assert ir.decl_buffer((ir.Var("n", "int64"),)).elem_offset.dtype == "int64"


def test_an_offset_factor_makes_an_offset_variable():
    A = ir.decl_buffer((4,), name="A", offset_factor=8)
    assert isinstance(A.elem_offset, ir.Var) and A.elem_offset.name == "A_elem_offset"
    assert A.offset_factor == 8


def test_offsets_of_elements():
    i, j, n = ir.Var("i"), ir.Var("j"), ir.Var("n")

    def offset(buffer, *indices):
        return ", ".join([text(one) for one in buffer.offset_of(indices)])

    assert offset(ir.decl_buffer((4, n)), i, j) == "i * n + j"
    assert offset(ir.decl_buffer((2, 3, 4)), 1, i, 2) == "i * 4 + 14"
    assert offset(ir.decl_buffer((4, 8), strides=[1, 4]), i, j) == "i + j * 4"
    assert offset(ir.decl_buffer((4,), elem_offset=100), i) == "i + 100"
    assert offset(ir.decl_buffer(())) == "0"
    assert offset(ir.decl_buffer((2, 3, 4), axis_separators=[2]), 1, i, 2) == "i + 3, 2"
    assert offset(ir.decl_buffer((4, n)), i // n, i % n) == "i"
    assert [int(stride) for stride in ir.decl_buffer((2, 3, 4)).effective_strides()] == [12, 4, 1]


@pytest.mark.parametrize(
    ("shape", "indices", "message", "hint"),
    [
        ((2, 3), 1, "A has 2 dimensions, but 1 index was given", "write A[i, j]"),
        ((2,), 3, "A has 1 dimension, but 3 indices were given", "write A[i]"),
        ((), 1, "A has 0 dimensions, but 1 index was given", "write A[()]"),
        ((2, 2), 0, "A has 2 dimensions, but 0 indices were given", "write A[i, j]"),
    ],
)
def test_a_wrong_number_of_indices(shape, indices, message, hint):
    A = ir.decl_buffer(shape, name="A")
    given = tuple([const(0)] * indices)
    for use in (
        lambda: A[given],
        lambda: A.offset_of(given),
        lambda: ir.BufferLoad(A, given),
        lambda: ir.BufferStore(A, const(0.0), given),
    ):
        with pytest.raises(WrongIndexCount, match=rf"{message} \[LW0505\]") as caught:
            use()
        assert f"hint: {hint}" in str(caught.value)


def test_indexing_reads_an_element():
    A, i = ir.decl_buffer((4, 4), "int8", name="A"), ir.Var("i")
    load = A[i, 2]
    assert isinstance(load, ir.BufferLoad) and load.dtype == "int8" and load.buffer is A
    assert isinstance(ir.decl_buffer((4,))[0], ir.BufferLoad)
    assert isinstance(ir.decl_buffer(())[()], ir.BufferLoad)
    assert A[[i, 1]].indices[0] is i


def test_slices_are_regions():
    A, i = ir.decl_buffer((8, 9), name="A"), ir.Var("i")
    region = A[i : i + 4, 3]
    assert isinstance(region, ir.BufferRegion)
    assert [(text(r.min), text(r.extent)) for r in region.region] == [("i", "4"), ("3", "1")]
    assert [(text(r.min), text(r.extent)) for r in A[:, 2:].region] == [("0", "8"), ("2", "7")]


def test_slices_with_a_step_are_vectors():
    A = ir.decl_buffer((8, 9), name="A")
    load = A[3, 1:9:2]
    assert isinstance(load, ir.BufferLoad) and load.dtype == "float32x4"
    assert isinstance(load.indices[1], ir.Ramp)
    assert (load.indices[1].lanes, int(load.indices[1].stride)) == (4, 2)
    assert A[3, 1:8:1].dtype == "float32x7"
    assert A[3, 1:2:1].dtype == "float32"  # one lane is no vector
    assert A[3, 0:9:4].dtype == "float32x3"  # rounded up
    with pytest.raises(LoopwrightError, match="A: a vector slice needs a constant length"):
        A[3, 0 : ir.Var("n") : 1]
    for step in (0, ir.const(0), ir.Var("n")):
        with pytest.raises(LoopwrightError, match="A: the step of a vector slice is a constant other than 0, got "):
            A[3, 0:8:step]
    assert A[3, 0 : 8 : ir.const(2)].dtype == "float32x4"


def test_vector_loads():
    A, i = ir.decl_buffer((8, 16), "int8", name="A"), ir.Var("i")
    load = A.vload([i, 4], "int8x8")
    assert load.dtype == "int8x8" and load.indices[1].lanes == 8
    assert A.vload([i, 4]).dtype == "int8"
    assert ir.BufferLoad(A, [ir.Ramp(0, 1, 4), i]).dtype == "int8x4"


def test_with_makes_a_new_buffer():
    A = ir.decl_buffer((4,), name="A")
    assert A.with_(shape=A.shape, data=A.data) is A
    B = A.with_(shape=(const(2), const(2)))
    assert B is not A and B.data is A.data and B.ndim == 2 and A.ndim == 1


def test_flattened():
    n = ir.Var("n")
    assert text(ir.decl_buffer((4, n)).get_flattened_buffer().shape[0]) == "n * 4"
    assert text(ir.decl_buffer((4, 3), strides=[8, 1]).get_flattened_buffer().shape[0]) == "32"
    A = ir.decl_buffer((4, 3))
    assert A.get_flattened_buffer().data is A.data
    flat = ir.decl_buffer((12,))
    assert flat.get_flattened_buffer() is flat


@pytest.mark.parametrize(
    ("dim", "message"),
    [
        (-1, r"buffer A: dimension 1 of the shape is -1 \[LW0515\]"),
        (2.5, "buffer A: dimension 1 of the shape is of type float32"),
        ("n", "buffer A: dimension 1 of the shape is a text, 'n'"),
    ],
)
def test_bad_shapes(dim, message):
    with pytest.raises(BadBufferShape, match=message):
        ir.decl_buffer((2, dim), name="A")


def test_a_buffer_is_no_sequence():
    with pytest.raises(TypeError, match="buffer A cannot be iterated over") as caught:
        list(ir.decl_buffer((4,), name="A"))
    assert "hint: loop over its indices, as in for i in range(n), and use A[i]" in str(caught.value)


def test_memory_is_a_pointer_variable():
    A = ir.decl_buffer((16,), "int32", name="A")
    with pytest.raises(BadBufferMemory, match=r"buffer X: its data is T.address_of\(A\[4\]\), which is no pointer"):
        ir.decl_buffer((4,), "int32", name="X", data=address_of(A[4]))
    with pytest.raises(BadBufferMemory, match="buffer X: its data is 1, which is no pointer variable"):
        ir.decl_buffer((4,), "int32", name="X", data=1)
