"""form_fma: a product and a sum become one multiply-add."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir import Add, BufferStore, Call, Mul, PrimFunc, Select, Var, const, decl_buffer
from loopwright.ir.intrinsics import exp, fma, if_then_else
from loopwright.schedule import Schedule
from loopwright.script import tir as T
from loopwright.transform import form_fma
from tests.transform.before_after import ARM, PLAIN, check, same_program, unchanged


def test_accumulation():
    @T.prim_func
    def before(A: T.Buffer((8,)), B: T.Buffer((8,)), C: T.Buffer((1,))):
        for k in range(8):
            C[0] = C[0] + A[k] * B[k]

    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((8,)), C: T.Buffer((1,))):
        for k in range(8):
            C[0] = T.fma(A[k], B[k], C[0])

    check(form_fma, before, after, ARM, exact=False)


x, y, z, u, v = (Var(name, "float32") for name in "xyzuv")


def negative(value):
    return value * -1.0


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (x * y + z, (x, y, z)),
        (z + x * y, (x, y, z)),
        (x * y + u * v, (x, y, u * v)),  # of two products the left one is fused
        (x * y - z, (x, y, negative(z))),
        (z - x * y, (negative(x), y, z)),
        (-(x * y) + z, (negative(x), y, z)),
        (z - x * 2.0, (negative(x), 2.0, z)),
        (z - (-x) * y, (x, y, z)),
        (x * y - u * v, (x, y, negative(u * v))),
        (x * x + 1.0, (x, x, 1.0)),
        (x * y - 1.0, (x, y, -1.0)),
    ],
)
def test_the_rules(value, wanted):
    def store(what):
        C = decl_buffer((1,), name="C")
        return PrimFunc([x, y, z, u, v, C], BufferStore(C, what, [0]))

    with ARM:
        same_program(form_fma(store(value)), store(fma(*wanted)))


@pytest.mark.parametrize("choose", [if_then_else, Select])
def test_a_product_that_is_added_under_a_condition(choose):
    C = decl_buffer((1,), name="C")
    is_inside = x < y

    def store(value):
        return PrimFunc([x, y, z, u, v, C], BufferStore(C, value, [0]))

    with ARM:
        for value in (z + choose(is_inside, u * v, const(0.0)), choose(is_inside, u * v, const(0.0)) + z):
            wanted = choose(is_inside, fma(u, v, z), z + const(0.0))
            same_program(form_fma(store(value)), store(wanted))
        # What is added to would be computed twice; what is added under the condition is no product.
        for kept in (exp(z) + choose(is_inside, u * v, const(0.0)), z + choose(is_inside, u, v * u)):
            same_program(form_fma(store(kept)), store(kept))


@pytest.mark.parametrize("size", [1, 7, 8, 13])
def test_the_cut_step_of_a_reduction_in_lanes_rounds_like_the_others(size):
    A, B = te.placeholder((size,), name="A"), te.placeholder((size,), name="B")
    k = te.reduce_axis((0, size), "k")
    C = te.compute((1,), lambda _: te.sum(A[k] * B[k], axis=k), name="C")
    sch = Schedule(te.create_prim_func([A, B, C]))
    lane = sch.split(sch.get_loops("C")[-1], [None, 4])[1]
    sch.vectorize(sch.get_loops(sch.rfactor(lane, -1))[-1])
    random = np.random.default_rng(size)
    a, b = random.standard_normal(size, dtype="float32"), random.standard_normal(size, dtype="float32")
    c = np.empty(1, "float32")
    lw.build(sch.mod)(a, b, c)
    lanes = [0.0] * 4
    for at in range(size):  # in float64, the product of two float32 numbers is exact: one rounding for a step
        lanes[at % 4] = np.float32(np.float64(a[at]) * np.float64(b[at]) + np.float64(lanes[at % 4]))
    total = np.float32(0)
    for lane_sum in lanes:
        total = np.float32(total + np.float32(lane_sum))
    rounding = np.finfo("float32").eps * np.abs(a.astype("float64") * b).sum()
    has_fma = lw.target.describe(lw.Target("llvm")).has_fma
    assert c[0] == total if has_fma else abs(c[0] - total) <= rounding


def test_a_chain_of_products():
    C = decl_buffer((1,), name="C")
    func = PrimFunc([x, y, z, C], BufferStore(C, x * y + y * z + z * x, [0]))
    with ARM:
        value = form_fma(func).body.value
    # fma(z, x, fma(x, y, y * z))
    assert isinstance(value, Call) and value.args[0] is z and isinstance(value.args[2], Call)
    assert isinstance(value.args[2].args[2], Mul)


def test_negation_alone_is_no_product():
    C = decl_buffer((1,), name="C")
    unchanged(form_fma, PrimFunc([x, z, C], BufferStore(C, z + (-x), [0])), ARM)


def test_nothing_is_fused_across_a_cast():
    @T.prim_func
    def func(A: T.Buffer((8,), "float64"), C: T.Buffer((8,))):
        for i in range(8):
            C[i] = C[i] + T.Cast("float32", A[i] * A[i])

    unchanged(form_fma, func, ARM)


def test_integers_and_small_floats_stay():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "bfloat16")):
        for i in range(8):
            A[i] = A[i] * 3 + A[i]
            B[i] = B[i] * B[i] + B[i]

    unchanged(form_fma, func, ARM)


def test_float16_rounds_twice_also_where_native():
    @T.prim_func
    def func(A: T.Buffer((8,), "float16")):
        for i in range(8):
            A[i] = A[i] * A[i] + A[i]

    unchanged(form_fma, func, ARM)


def test_without_the_instruction_nothing_changes():
    @T.prim_func
    def func(A: T.Buffer((8,))):
        for i in range(8):
            A[i] = A[i] * A[i] + A[i]

    unchanged(form_fma, func, PLAIN)


def test_a_sum_of_ten_thousand_products():
    C = decl_buffer((1,), name="C")
    total = x * y
    for _ in range(10_000):
        total = total + x * y
    with ARM:
        value = form_fma(PrimFunc([x, y, C], BufferStore(C, total, [0]))).body.value
    depth = 0
    while isinstance(value, Call):
        value, depth = value.args[2], depth + 1
    assert depth == 10_000 and not isinstance(value, Add)
