"""The checked entry of compiled functions: every bad call gets an error that names the argument and its values."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from loopwright import ir
from loopwright.codegen.llvm import make_module
from loopwright.runtime import call_errors, dlpack
from loopwright.target import host_description


def copy_rows(n: ir.Expr | int, m: ir.Expr | int, dtype: str = "float32", **buffer_options: object) -> ir.PrimFunc:
    """B[i, j] = A[i, j], already flat, with checks for two-dimensional arguments."""
    A, B = (ir.decl_buffer((n, m), dtype, name=name, **buffer_options) for name in "AB")  # type: ignore[arg-type]
    i = ir.Var("i", "int64")
    size = ir.as_expr(n).astype("int64") * ir.as_expr(m).astype("int64")
    flat_a, flat_b = (buffer.with_(shape=(size,), strides=()) for buffer in (A, B))
    body = ir.For(i, ir.const(0, "int64"), size, ir.ForKind.SERIAL, ir.BufferStore(flat_b, flat_a[i], [i]))
    return ir.PrimFunc([A, B], body, attrs={"global_symbol": "main", "tir.noalias": True})


def built(function: ir.PrimFunc):
    return make_module(ir.IRModule({function.name: function}), host_description())


@pytest.fixture(scope="module")
def copy_2x3():
    return built(copy_rows(2, 3))


def zeros(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.zeros(shape, dtype)


def test_a_right_call_runs(copy_2x3):
    a, b = np.arange(6, dtype="float32").reshape(2, 3), zeros(2, 3)
    assert copy_2x3(a, b) is None
    np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ((zeros(2, 3),), "ArgumentCountMismatch", r"main: called with 1 argument\(s\), expected 2 \[LW0110\]"),
        ((), "ArgumentCountMismatch", r"called with 0 argument\(s\), expected 2"),
        ((zeros(2, 3),) * 3, "ArgumentCountMismatch", r"called with 3 argument\(s\), expected 2"),
        ((zeros(2, 3), 5), "ArgumentKindMismatch", r"argument B \(number 2\) is not a tensor"),
        ((None, zeros(2, 3)), "ArgumentKindMismatch", r"argument A \(number 1\) is not a tensor"),
        ((zeros(6), zeros(2, 3)), "RankMismatch", r"argument A has 1 dimension\(s\), expected 2"),
        (
            (zeros(2, 3, dtype="float64"), zeros(2, 3)),
            "DtypeMismatch",
            r"argument A has element type float64, expected float32",
        ),
        (
            (zeros(2, 3), zeros(2, 3, dtype="int32")),
            "DtypeMismatch",
            r"argument B has element type int32, expected float32",
        ),
        ((zeros(3, 2), zeros(2, 3)), "ShapeMismatch", r"argument A has shape \(3, 2\), expected \(2, 3\)"),
        ((zeros(2, 3), zeros(0, 3)), "ShapeMismatch", r"argument B has shape \(0, 3\), expected \(2, 3\)"),
        (
            (zeros(3, 2).T, zeros(2, 3)),
            "StrideMismatch",
            r"argument A has strides \(1, 2\) \(in elements\), expected \(3, 1\)",
        ),
        ((zeros(2, 6)[:, ::2], zeros(2, 3)), "StrideMismatch", r"argument A has strides \(6, 2\)"),
    ],
)
def test_a_wrong_argument_is_named(copy_2x3, arguments, kind, text):
    with pytest.raises(getattr(call_errors, kind), match=text) as caught:
        copy_2x3(*arguments)
    assert "call:" in str(caught.value)
    assert "test_abi.py" in str(caught.value)  # the user's own line


def test_the_count_error_lists_the_parameters(copy_2x3):
    with pytest.raises(
        call_errors.ArgumentCountMismatch, match=r"its parameters are \(A, B\); outputs are passed like inputs"
    ):
        copy_2x3()


def test_a_stride_error_says_what_to_do(copy_2x3):
    with pytest.raises(
        call_errors.StrideMismatch, match=r"hint: pass a compact copy, for example numpy.ascontiguousarray"
    ):
        copy_2x3(zeros(3, 2).T, zeros(2, 3))


def test_strides_of_unit_axes_mean_nothing():
    module = built(copy_rows(1, 3))
    a, b = np.arange(12, dtype="float32").reshape(4, 3)[::4], zeros(1, 3)
    module(a, b)
    np.testing.assert_array_equal(b, a)


def test_overlap_with_an_output_is_refused(copy_2x3):
    memory = np.arange(9, dtype="float32")
    with pytest.raises(call_errors.OverlappingArguments, match="arguments A and B overlap in memory") as caught:
        copy_2x3(memory[:6].reshape(2, 3), memory[3:].reshape(2, 3))
    assert "B is written while A is in use" in str(caught.value)
    np.testing.assert_array_equal(memory, np.arange(9))  # nothing was touched


def test_adjacent_memory_is_no_overlap(copy_2x3):
    memory = np.arange(12, dtype="float32")
    copy_2x3(memory[:6].reshape(2, 3), memory[6:].reshape(2, 3))
    np.testing.assert_array_equal(memory, [0, 1, 2, 3, 4, 5] * 2)


def test_overlap_is_allowed_when_the_function_says_so():
    module = built(copy_rows(2, 3).with_attr("tir.noalias", False))
    memory = np.arange(6, dtype="float32").reshape(2, 3)
    module(memory, memory)
    np.testing.assert_array_equal(memory, np.arange(6).reshape(2, 3))


def test_empty_tensors_never_overlap_and_need_no_memory():
    module = built(copy_rows(0, 3))
    empty = zeros(0, 3)
    module(empty, empty)


def test_a_misaligned_argument_is_refused(copy_2x3):
    raw = np.zeros(25, "uint8")
    a = raw[1:].view("float32").reshape(2, 3)
    with pytest.raises(
        call_errors.MisalignedArgument, match=r"argument A starts at address 0x[0-9a-f]+, which is no multiple of 4"
    ):
        copy_2x3(a, zeros(2, 3))


class _OnDevice:
    """Memory that claims to be on another device."""

    def __init__(self, array: np.ndarray, device_type: int) -> None:
        self.array, self.device_type = array, device_type

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device_type, 0

    def __dlpack__(self, **_: object) -> object:
        capsule = dlpack.capsule(self.array, ir.DataType("float32"))
        pointer = dlpack._capsule_pointer(capsule, b"dltensor")
        ctypes.c_int32.from_address(pointer + 8).value = self.device_type
        return capsule


def test_another_device_is_refused(copy_2x3):
    with pytest.raises(
        call_errors.DeviceMismatch, match=r"argument A is on a device of DLPack type 10, expected the CPU \(type 1\)"
    ):
        copy_2x3(_OnDevice(zeros(2, 3), 10), zeros(2, 3))


def test_symbolic_shapes_take_their_value_from_the_first_argument():
    n, m = ir.SizeVar("n"), ir.SizeVar("m")
    module = built(copy_rows(n, m))
    for shape in ((2, 3), (1, 1), (0, 4), (7, 5)):
        a, b = np.random.default_rng(0).random(shape, dtype="float32"), zeros(*shape)
        module(a, b)
        np.testing.assert_array_equal(b, a)
    with pytest.raises(call_errors.ShapeMismatch, match=r"argument B has shape \(2, 4\), expected \(2, 3\) = \(n, m\)"):
        module(zeros(2, 3), zeros(2, 4))


def test_symbolic_strides_are_taken_from_the_argument():
    n, stride = ir.Var("n"), ir.Var("stride")
    A, B = ir.decl_buffer((n,), name="A", strides=[stride]), ir.decl_buffer((n,), name="B")
    i = ir.Var("i", "int64")
    flat_a = A.with_(shape=(n * stride,), strides=())
    store = ir.BufferStore(B, flat_a[i * stride.astype("int64")], [i])
    body = ir.For(i, ir.const(0, "int64"), n.astype("int64"), ir.ForKind.SERIAL, store)
    module = built(ir.PrimFunc([A, B], body, attrs={"global_symbol": "main"}))
    a, b = np.arange(10, dtype="float32"), zeros(5)
    module(a[::2], b)
    np.testing.assert_array_equal(b, a[::2])


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint16", "float32", "float64", "bool"])
def test_scalars_are_converted_and_checked(dtype):
    x = ir.Var("x", dtype)
    out = ir.decl_buffer((1,), dtype, name="out")
    body = ir.BufferStore(out, x, [ir.const(0, "int64")])
    module = built(ir.PrimFunc([x, out], body, attrs={"global_symbol": "main"}))
    result = np.zeros(1, dtype)
    module(1, result)
    assert result[0] == 1
    if ir.DataType(dtype).is_float:
        module(2.5, result)
        assert result[0] == 2.5
    else:
        with pytest.raises(
            call_errors.ArgumentKindMismatch, match=rf"argument x \(number 1\) is not a number of type {dtype}"
        ):
            module(2.5, result)
    if ir.DataType(dtype).is_int and ir.DataType(dtype).bits < 64:
        with pytest.raises(
            call_errors.ArgumentKindMismatch, match=f"argument x is {1 << 40}, which does not fit {dtype}"
        ):
            module(1 << 40, result)


def test_a_value_can_be_returned():
    from loopwright.ir import intrinsics

    x = ir.Var("x", "int32")
    module = built(ir.PrimFunc([x], ir.Evaluate(intrinsics.ret(x + 1)), attrs={"global_symbol": "main"}))
    assert module(41) == 42


def test_what_is_written_is_not_to_be_copied(copy_2x3):
    with pytest.raises(call_errors.StrideMismatch, match="writes it: pass a compact array and copy it back") as caught:
        copy_2x3(zeros(2, 3), zeros(3, 2).T)
    assert "ascontiguousarray" not in str(caught.value)
    with pytest.raises(call_errors.DtypeMismatch, match=r"make it as numpy.empty\(x.shape, 'float32'\)") as caught:
        copy_2x3(zeros(2, 3), zeros(2, 3, dtype="float64"))
    assert "astype" not in str(caught.value)
    with pytest.raises(call_errors.DtypeMismatch, match=r"make it as numpy\.empty"):
        copy_2x3(zeros(2, 3), np.zeros((2, 3), ">f4"))
    with pytest.raises(call_errors.DtypeMismatch, match=r"with \.astype"):
        copy_2x3(np.zeros((2, 3), ">f4"), zeros(2, 3))
