"""Arguments with symbolic shapes, strides and offsets: the evaluator and native code take and refuse the same calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopwright
from loopwright import ir
from loopwright.evaluator import evaluate
from loopwright.ir.argument_sizes import UnknownSize, solved_sizes
from loopwright.runtime.call_errors import CallError, DtypeMismatch, MisalignedArgument, ShapeMismatch, StrideMismatch
from loopwright.script import tir as T

WAYS = ["evaluator", "native"]


def runner(function: ir.PrimFunc, way: str) -> Callable[..., Any]:
    """`function` as something to call."""
    return (lambda *arguments: evaluate(function, *arguments)) if way == "evaluator" else loopwright.build(function)


def refused(function: ir.PrimFunc, arguments: list[Any], kind: type[CallError], message: str) -> None:
    """Both ways refuse the call for the same reason, naming the argument."""
    for way in WAYS:
        with pytest.raises(kind, match=message):
            runner(function, way)(*arguments)


@T.prim_func
def double_strided(a: T.handle, b: T.handle):
    n, m = T.int32(), T.int32()
    s, t = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "float32", strides=(s, t))
    B = T.match_buffer(b, (n, m), "float32")
    for i, j in T.grid(n, m):
        B[i, j] = A[i, j] * T.float32(2)


@T.prim_func
def write_strided(a: T.handle, b: T.handle):
    n, m, s = T.int64(), T.int64(), T.int64()
    A = T.match_buffer(a, (n, m), "int16")
    B = T.match_buffer(b, (n, m), "int16", strides=(s, T.int64(2)))
    for i, j in T.grid(n, m):
        B[i, j] = A[i, j] + T.int16(1)


BASE = np.arange(120, dtype="float32").reshape(10, 12)
VIEWS = {
    "compact": BASE,
    "transposed": BASE.T,
    "columns": BASE[:, 2:9:3],
    "rows": BASE[1:8:2],
    "broadcast": np.broadcast_to(BASE[0], (5, 12)),
    "column": BASE[:, 3:4],
    "empty": BASE[:0],
    "no columns": BASE[:, 4:4],
    "one": BASE[2:3, 5:6],
    "fortran": np.asfortranarray(BASE),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("view", VIEWS)
def test_views_of_numpy_go_where_strides_are_symbolic(view, way):
    given = VIEWS[view]
    out = np.zeros(given.shape, "float32")
    runner(double_strided, way)(given, out)
    np.testing.assert_array_equal(out, given * 2)


def test_torch_views_pass_without_a_copy():
    torch = pytest.importorskip("torch")
    given = torch.arange(24, dtype=torch.float32).reshape(4, 6).t()[1:5:2]
    out = torch.zeros(2, 4)
    loopwright.build(double_strided)(given, out)
    np.testing.assert_array_equal(out.numpy(), given.numpy() * 2)


@pytest.mark.parametrize("way", WAYS)
def test_results_are_written_through_strides(way):
    memory = np.full((4, 12), -1, "int16")
    given = np.arange(20, dtype="int16").reshape(4, 5)
    runner(write_strided, way)(given, memory[:, :10:2])
    np.testing.assert_array_equal(memory[:, :10:2], given + 1)
    assert (memory[:, 1::2] == -1).all()
    assert (memory[:, 10:] == -1).all()


def test_a_stride_that_is_given_is_checked():
    refused(
        write_strided,
        [np.zeros((4, 5), "int16"), np.zeros((4, 5), "int16")],
        StrideMismatch,
        r"write_strided: argument B has stride",
    )
    refused(
        write_strided,
        [np.zeros((4, 10), "int16")[:, ::2], np.zeros((4, 10), "int16")[:, ::2]],
        StrideMismatch,
        r"write_strided: argument A has strides \(10, 2\)",
    )


@T.prim_func
def shared(a: T.handle, b: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n * 2 + 1,), "float32")
    C = T.match_buffer(c, (n, n), "float32")
    for i, j in T.grid(n, n):
        C[i, j] = A[i] + B[j * 2 + 1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", [0, 1, 7])
def test_several_arguments_share_a_variable(n, way):
    a, b, c = np.arange(n, dtype="float32"), np.arange(2 * n + 1, dtype="float32"), np.zeros((n, n), "float32")
    runner(shared, way)(a, b, c)
    np.testing.assert_array_equal(c, a[:, None] + b[1::2])


def test_sizes_that_do_not_agree_name_the_argument():
    for shapes, name in (((4, 10, (4, 4)), "B"), ((4, 9, (4, 5)), "C"), ((4, 9, (3, 3)), "C")):
        arrays = [np.zeros(shape, "float32") for shape in shapes]
        refused(shared, arrays, ShapeMismatch, f"shared: argument {name} has shape")


@T.prim_func
def inside(a: T.handle, b: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n * 4,), "int32")
    B = T.match_buffer(b, (n + 2 * m - 1,), "int32")
    for i in range(n * 4):
        A[i] = n * 100 + m
    for i in range(n + 2 * m - 1):
        B[i] = m


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("n", "m"), [(0, 1), (1, 0), (3, 5)])
def test_variables_inside_expressions_are_solved_for(n, m, way):
    a, b = np.zeros(4 * n, "int32"), np.zeros(n + 2 * m - 1, "int32")
    runner(inside, way)(a, b)
    assert (a == n * 100 + m).all()
    assert (b == m).all()


def test_what_does_not_come_out_even_is_refused():
    refused(
        inside, [np.zeros(6, "int32"), np.zeros(4, "int32")], ShapeMismatch, r"argument A has shape \(6,\), expected"
    )
    refused(
        inside, [np.zeros(8, "int32"), np.zeros(4, "int32")], ShapeMismatch, r"argument B has shape \(4,\), expected"
    )


def test_what_cannot_be_solved_says_so():
    @T.prim_func
    def product(a: T.handle):
        n, m = T.int32(), T.int32()
        A = T.match_buffer(a, (n * m,), "float32")
        for i in range(n * m):
            A[i] = T.float32(0)

    for run in (lambda: loopwright.build(product), lambda: evaluate(product, np.zeros(4, "float32"))):
        with pytest.raises(UnknownSize, match=r"product: nothing gives the value of n.*") as caught:
            run()
        assert "n * m cannot be solved for n" in str(caught.value)
    assert solved_sizes(shared) == []
    assert [solution.var.name for solution in solved_sizes(inside)] == ["n", "m"]


@T.prim_func
def of_parameters(n: T.int32, m: T.int64, a: T.handle):
    A = T.match_buffer(a, (n, T.Cast("int32", m) + 1), "float64")
    for i, j in T.grid(n, T.Cast("int32", m) + 1):
        A[i, j] = T.Cast("float64", i)


@pytest.mark.parametrize("way", WAYS)
def test_scalar_parameters_are_sizes_too(way):
    a = np.zeros((3, 6))
    runner(of_parameters, way)(3, 5, a)
    np.testing.assert_array_equal(a, np.arange(3.0)[:, None].repeat(6, 1))


def test_a_parameter_that_does_not_fit_the_array():
    refused(of_parameters, [2, 5, np.zeros((3, 6))], ShapeMismatch, r"argument A has shape \(3, 6\), expected \(2,")


@T.prim_func
def rank_zero(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (), "float32")
    B = T.match_buffer(b, (), "float32")
    B[()] = A[()] + T.float32(1)


@pytest.mark.parametrize("way", WAYS)
def test_arguments_of_rank_zero(way):
    a, b = np.array(3, "float32"), np.array(0, "float32")
    runner(rank_zero, way)(a, b)
    assert b == 4


@T.prim_func
def with_offset(a: T.handle, b: T.handle):
    n, offset = T.int32(), T.int32()
    A = T.match_buffer(a, (n,), "float32", elem_offset=offset, offset_factor=4)
    B = T.match_buffer(b, (n,), "float32", elem_offset=T.int32(), offset_factor=1)
    for i in range(n):
        B[i] = A[i] + T.float32(1)


@pytest.mark.parametrize("way", WAYS)
def test_offsets_that_are_variables_take_any_array(way):
    memory = np.arange(20, dtype="float32")
    out = np.zeros(8, "float32")
    runner(with_offset, way)(memory[3:11], out)
    np.testing.assert_array_equal(out, memory[3:11] + 1)


def test_an_offset_that_is_given_must_be_the_tensors_own():
    @T.prim_func
    def fixed(a: T.handle):
        A = T.match_buffer(a, (4,), "float32", elem_offset=2)
        for i in range(4):
            A[i] = T.float32(1)

    refused(
        fixed,
        [np.zeros(4, "float32")],
        StrideMismatch,
        r"fixed: argument A starts 0 bytes into its memory, expected 8",
    )


@T.prim_func
def aligned(a: T.handle):
    A = T.match_buffer(a, (4,), "float32", align=32)
    for i in range(4):
        A[i] = T.float32(1)


def test_an_alignment_that_is_asked_for_is_checked():
    memory = np.zeros(64, "float32")
    start = -(memory.__array_interface__["data"][0] // 4) % 8
    for way in WAYS:
        runner(aligned, way)(memory[start : start + 4])
    assert memory.sum() == 4
    refused(aligned, [memory[start + 1 : start + 5]], MisalignedArgument, "no multiple of 32")


@pytest.mark.parametrize("way", WAYS)
def test_64_bit_sizes(way):
    @T.prim_func
    def long(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, T.int64(3)), "float32")
        B = T.match_buffer(b, (n * T.int64(3),), "float32")
        for i, j in T.grid(n, T.int64(3)):
            B[i * T.int64(3) + j] = A[i, j]

    a, b = np.arange(15, dtype="float32").reshape(5, 3), np.zeros(15, "float32")
    runner(long, way)(a, b)
    np.testing.assert_array_equal(b, a.reshape(-1))


def test_programs_with_solved_variables_are_read_back():
    from loopwright.script import from_source

    for function in (inside, shared, with_offset, double_strided):
        ir.assert_structural_equal(from_source(function.script()), function)


@T.prim_func
def chosen(A: T.Buffer((4,), "float32"), flag: T.bool):
    A[0] = T.if_then_else(flag, T.float32(1), T.float32(2))


def test_truth_values_of_numpy():
    built, array = loopwright.build(chosen), np.zeros(4, "float32")
    for flag, wanted in ((np.bool_(True), 1), (np.bool_(False), 2), (True, 1)):
        built(array, flag)
        assert array[0] == wanted


@pytest.mark.parametrize("dtype", ["longdouble", "clongdouble"])
def test_numbers_of_a_size_of_their_own_are_refused(dtype):
    with pytest.raises(DtypeMismatch, match=r"argument number 1 has element type .*, which no function takes"):
        loopwright.build(chosen)(np.zeros(4, dtype), True)
