"""expand_product: zero points and types taken out of a sum of products, which stays the same for every value."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright import te, tir
from loopwright.evaluator import evaluate
from loopwright.ir import PrimFunc
from loopwright.ir.verifier import verify
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.schedule.primitives.compute.expand_product import NotShiftedProduct
from loopwright.script import tir as T
from tests.schedule.steps import check_replay, refused, same_program


def product(m: int, n: int, k: int, types: tuple[str, str] = ("int8", "int8"), za: object = 0, per_channel=False):
    """C = (A - za) · (B - zb), in int32; zb is a parameter, one number a column, if so wanted."""
    A, B = te.placeholder((m, k), types[0], name="A"), te.placeholder((k, n), types[1], name="B")
    Z = te.placeholder((n,), "int32", name="Z")
    r = te.reduce_axis((0, k), "k")

    def cell(i, j):
        a, b = A[i, r].astype("int32"), B[r, j].astype("int32")
        return te.sum((a - za if za else a) * (b - Z[j] if per_channel else b), axis=r)

    C = te.compute((m, n), cell, name="C")
    return te.create_prim_func([A, B, Z, C] if per_channel else [A, B, C])


def numbers(func: PrimFunc, seed: int) -> list[np.ndarray]:
    random, made = np.random.default_rng(seed), []
    for buffer in func.argument_buffers():
        low, high = int(buffer.dtype.min_value()), int(buffer.dtype.max_value())
        shape = [int(size) for size in buffer.shape]
        if seed == 0:
            made.append(random.choice(np.array([low, high]), shape).astype(buffer.dtype.numpy()))
        else:
            made.append(random.integers(low, high, shape, endpoint=True).astype(buffer.dtype.numpy()))
    return made


def assert_same_for_all_numbers(before: PrimFunc, after: PrimFunc, native: bool = False) -> None:
    """In the evaluator, and natively if so wanted, extremes of each type included: sums wrap."""
    verify(after)
    built = loopwright.build(after) if native else None
    for seed in range(2):
        wanted, got = numbers(before, seed), numbers(before, seed)
        evaluate(before, *wanted)
        evaluate(after, *got)
        np.testing.assert_array_equal(wanted[-1], got[-1])
        if built is not None:
            again = numbers(before, seed)
            built(*again)
            np.testing.assert_array_equal(wanted[-1], again[-1])


def test_the_parts_of_a_product():
    before = product(3, 4, 5, za=3, per_channel=True)
    sch = tir.Schedule(before)
    sch.expand_product("C", ["uint8", ""])

    @T.prim_func
    def expected(
        A: T.Buffer((3, 5), "int8"),
        B: T.Buffer((5, 4), "int8"),
        Z: T.Buffer((4,), "int32"),
        C: T.Buffer((3, 4), "int32"),
    ):
        T.func_attr({"tir.noalias": True})
        A_uint8 = T.alloc_buffer((3, 5), "uint8")
        A_sum = T.alloc_buffer((3,), "int32")
        B_sum = T.alloc_buffer((4,), "int32")
        C_dot = T.alloc_buffer((3, 4), "int32")
        for ax0, ax1 in T.grid(3, 5):
            with T.block("A_uint8"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                A_uint8[v0, v1] = T.Cast("uint8", A[v0, v1]) + T.uint8(128)
        for ax0, ax1 in T.grid(3, 5):
            with T.block("A_sum"):
                v_i, v_k = T.axis.remap("SR", [ax0, ax1])
                with T.init():
                    A_sum[v_i] = 0
                A_sum[v_i] = A_sum[v_i] + T.Cast("int32", A[v_i, v_k])
        for ax0, ax1 in T.grid(4, 5):
            with T.block("B_sum"):
                v_j, v_k = T.axis.remap("SR", [ax0, ax1])
                with T.init():
                    B_sum[v_j] = 0
                B_sum[v_j] = B_sum[v_j] + T.Cast("int32", B[v_k, v_j])
        for i, j, k in T.grid(3, 4, 5):
            with T.block("C"):
                v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C_dot[v_i, v_j] = 0
                C_dot[v_i, v_j] = C_dot[v_i, v_j] + T.Cast("int32", A_uint8[v_i, v_k]) * T.Cast("int32", B[v_k, v_j])
        for ax0, ax1 in T.grid(3, 4):
            with T.block("C_combine"):
                v_i, v_j = T.axis.remap("SS", [ax0, ax1])
                C[v_i, v_j] = C_dot[v_i, v_j] - A_sum[v_i] * Z[v_j] - B_sum[v_j] * 131 + 5 * (3 * Z[v_j])

    same_program(sch.mod["main"], expected)
    assert sch.is_proved
    check_replay(sch, before)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("operands", [("int8", "int8"), ("uint8", "int8"), ("uint8", "uint8"), ("int8", "uint8")])
@pytest.mark.parametrize("types", [("", ""), ("uint8", ""), ("", "int8"), ("int8", "uint8"), ("int16", "int16")])
@pytest.mark.parametrize(("za", "per_channel"), [(0, False), (-7, False), (0, True), (200, True)])
def test_every_value_is_kept(operands, types, za, per_channel):
    before = product(2, 3, 4, operands, za, per_channel)
    sch = tir.Schedule(before)
    sch.expand_product("C", types)
    assert_same_for_all_numbers(before, sch.mod["main"], native=per_channel and "" not in types)


def test_sums_that_are_not_needed_are_not_there():
    sch = tir.Schedule(product(2, 3, 4, ("uint8", "int8"), za=9))
    sch.expand_product("C")
    names = [region.name for region in sch.mod["main"].body.block.alloc_buffers]
    assert names == ["B_sum", "C_dot"]


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 1, 1), (1, 1, 7), (2, 3, 0)])
def test_edges(shape):
    before = product(*shape, za=3, per_channel=True)
    sch = tir.Schedule(before)
    sch.expand_product("C", ["uint8", "uint8"])
    assert_same_for_all_numbers(before, sch.mod["main"])


def test_a_convolution_and_a_zero_point_that_is_added():
    X, W = te.placeholder((2, 6, 6), "uint8", name="X"), te.placeholder((3, 2, 3, 3), "int8", name="W")
    c, y, x = (te.reduce_axis((0, n), name) for n, name in ((2, "c"), (3, "y"), (3, "x")))
    cell = lambda o, i, j: te.sum(
        (X[c, i + y, j + x].astype("int32") + 5) * W[o, c, y, x].astype("int32"), axis=[c, y, x]
    )
    before = te.create_prim_func([X, W, te.compute((3, 4, 4), cell, name="C")])
    sch = tir.Schedule(before)
    sch.expand_product("C", ["int8", ""])
    assert_same_for_all_numbers(before, sch.mod["main"])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_floats_become_wider(dtype):
    A, B = te.placeholder((3, 4), dtype, name="A"), te.placeholder((4, 5), dtype, name="B")
    k = te.reduce_axis((0, 4), "k")
    cell = lambda i, j: te.sum(A[i, k].astype("float32") * B[k, j].astype("float32"), axis=k)
    before = te.create_prim_func([A, B, te.compute((3, 5), cell, name="C")])
    sch = tir.Schedule(before)
    sch.expand_product("C", ["float32", "float32"])
    random = np.random.default_rng(0)
    arrays = [
        random.standard_normal([int(n) for n in b.shape]).astype(b.dtype.numpy()) for b in before.argument_buffers()
    ]
    arrays[0][0, 0], arrays[1][3, 0], arrays[0][2] = np.inf, -np.inf, -0.0
    wanted, got = [a.copy() for a in arrays], [a.copy() for a in arrays]
    evaluate(before, *wanted)
    evaluate(sch.mod["main"], *got)
    assert wanted[2].tobytes() == got[2].tobytes()


def test_what_is_refused():
    sch = tir.Schedule(product(2, 3, 4))
    refused(sch, BadStepArgument, r"types are \['uint8'\]", "expand_product", "C", ["uint8"])
    refused(sch, BadStepArgument, "A is int8, and float32 does not hold", "expand_product", "C", ["float32", ""])
    wide = tir.Schedule(product(2, 3, 4, ("int16", "int8")))
    refused(wide, BadStepArgument, "A is int16, and uint8 does not hold", "expand_product", "C", ["uint8", ""])
    parallel = tir.Schedule(product(2, 3, 4))
    parallel.parallel(parallel.get_loops("C")[0])
    refused(parallel, NotSupported, "loop i is parallel", "expand_product", "C")
    split = tir.Schedule(product(2, 3, 4))
    split.split(split.get_loops("C")[0], [None, 2])
    refused(split, NotShiftedProduct, "does not stand alone in a nest of one loop an axis", "expand_product", "C")


def test_programs_that_are_no_such_products():
    A = te.placeholder((4, 8), "int8", name="A")
    B = te.placeholder((4, 8), "int8", name="B")
    Z = te.placeholder((8,), "int32", name="Z")
    F = te.placeholder((4, 8), name="F")
    k = te.reduce_axis((0, 8), "k")

    def scheduled(value, dtype="int32"):
        made = te.compute((4,), lambda i: te.sum(value(i), axis=k), name="C")
        return tir.Schedule(te.create_prim_func([A, B, Z, F, made]))

    moving = scheduled(lambda i: (A[i, k].astype("int32") - Z[k]) * B[i, k].astype("int32"))
    refused(moving, NotShiftedProduct, r"takes Z\[v_k\] away, which changes along the reduction", "expand_product", "C")
    alone = scheduled(lambda i: A[i, k].astype("int32"))
    refused(alone, NotShiftedProduct, "no product of two elements less their zero points", "expand_product", "C")
    floats = scheduled(lambda i: (F[i, k] - 1.0) * F[i, k])
    refused(floats, NotShiftedProduct, "no product of two elements", "expand_product", "C")
    narrow = scheduled(lambda i: Z[k].astype("int8").astype("int32") * Z[k])
    refused(narrow, NotShiftedProduct, "no product of two elements", "expand_product", "C")
    copy = te.compute((4, 8), lambda i, j: A[i, j] * B[i, j], name="C")
    sch = tir.Schedule(te.create_prim_func([A, B, copy]))
    refused(sch, NotShiftedProduct, "is no sum that starts at a constant", "expand_product", "C")
