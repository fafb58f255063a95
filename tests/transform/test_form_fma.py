"""form_fma: a product and a sum become one multiply-add."""

from __future__ import annotations

import pytest

from loopwright.ir import Add, BufferStore, Call, Mul, PrimFunc, Var, decl_buffer
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
    from loopwright.ir.intrinsics import fma

    def store(what):
        C = decl_buffer((1,), name="C")
        return PrimFunc([x, y, z, u, v, C], BufferStore(C, what, [0]))

    with ARM:
        same_program(form_fma(store(value)), store(fma(*wanted)))


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
