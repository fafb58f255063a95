"""prefetch.py: passes prefetch the memory that others wait for, where it streams from memory, and nothing in L2."""

from __future__ import annotations

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir, topi
from loopwright.autosched import Plan
from loopwright.ir import PrimFunc
from loopwright.runtime.thread_pool import threads
from tests.autosched.same_results import check_same_bits, function, numbers, planned
from tests.autosched.test_row_group import exact_softmax, layernorm, softmax, softmax_bound

AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=4"
SAPPHIRE_RAPIDS = "llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -num-cores=4"
NEON = "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1 -num-cores=4"


def asked_for(plan: Plan) -> list[str]:
    """The addresses of all hints, in the order of the program."""
    return re.findall(r'"tir.prefetch", T.address_of\((.*?\])\)', plan.mod["main"].script())


def reduced(kind: str, *shape: int, dtype: str = "float32") -> PrimFunc:
    """Along the last axis."""
    A = te.placeholder(shape, dtype, name="A")
    k = te.reduce_axis((0, shape[-1]), name="k")
    combine = {"sum": te.sum, "max": te.max, "min": te.min}[kind]
    return function(A, te.compute(shape[:-1], lambda *i: combine(A(*i, k), axis=k), name="C"))


def mapped(n: int | tir.Var, op=te.exp, dtype: str = "float32") -> PrimFunc:
    A = te.placeholder((n,), dtype, name="A")
    return function(A, te.compute((n,), lambda i: op(A[i]), name="C"))


@pytest.mark.parametrize("target", [AVX512, NEON])
def test_a_long_softmax_asks_for_the_next_row_and_the_one_it_will_write(target: str):
    plan = planned(softmax(64, 12000), target)
    assert "the next row of A, the row of B prefetched a pass ahead" in plan.explain()
    hints = asked_for(plan)
    lines = 64 * 4 // 64 if target is AVX512 else len(hints) // 2
    assert len(hints) == 2 * lines  # a round is as many cache lines in either pass
    first, second = hints[0], hints[lines]
    assert re.fullmatch(r"B\[\w+, \w+ \* \d+\]", first)  # the computing pass: this row of the result
    assert re.fullmatch(r"A\[\w+ \+ 1, \w+ \* \d+\]", second)  # the last pass: the next row of what is read


def test_near_short_or_enormous_rows_are_not_asked_for():
    for shape in ((16, 1024), (100_000, 100), (64, 1 << 18)):
        assert asked_for(planned(softmax(*shape), AVX512)) == []


def test_operands_that_are_the_same_for_all_rows_are_not_asked_for():
    hints = asked_for(planned(layernorm(4096, 768), AVX512))
    assert {hint[0] for hint in hints} == {"A", "o"}


@pytest.mark.parametrize("shape", [(65, 9001), (3, 130, 4099)])
def test_the_next_row_asked_for_changes_no_result(shape: tuple[int, ...]):
    a = np.random.default_rng(0).standard_normal(shape).astype("float32")
    run = lw.build(softmax(*shape), autosched=True)
    got = []
    for count in (1, 2, 3):
        out = np.empty_like(a)
        with threads(count):
            run(a, out)
        got.append(out)
    assert (np.abs(got[0] - exact_softmax(a)) <= softmax_bound(a)).all()
    assert got[0].tobytes() == got[1].tobytes() == got[2].tobytes()


def test_streams_of_functions_are_asked_for_a_page_ahead():
    plan = planned(mapped(1 << 22), AVX512)
    assert "C, A prefetched 4608 bytes ahead" in plan.explain()
    assert {hint[0] for hint in asked_for(plan)} == {"A", "C"}


def test_streams_that_only_load_and_add_are_not_asked_for():
    assert asked_for(planned(mapped(1 << 22, lambda x: x * 2.0 + 1.0), SAPPHIRE_RAPIDS)) == []
    assert asked_for(planned(reduced("sum", 4096, 4096), AVX512)) == []


def test_a_maximum_asks_ahead_since_it_takes_care_of_nan_and_zeros():
    plan = planned(reduced("max", 4096, 4096), AVX512)
    assert "A prefetched 4608 bytes ahead" in plan.explain()
    assert asked_for(planned(reduced("max", 4096, 4096, dtype="int32"), AVX512)) == []  # one instruction


@pytest.mark.parametrize("op", [lambda x: x, lambda x: x + 1.0])
def test_a_copy_asks_ahead_where_hardware_does_not(op):
    assert {hint[0] for hint in asked_for(planned(mapped(1 << 20, op), AVX512))} == {"A", "C"}
    assert asked_for(planned(mapped(1 << 17, op), AVX512)) == []  # near
    for other in (SAPPHIRE_RAPIDS, NEON):
        assert asked_for(planned(mapped(1 << 20, op), other)) == []


def test_what_is_near_or_of_unknown_size_is_not_asked_for():
    assert asked_for(planned(mapped(1 << 14), AVX512)) == []
    assert asked_for(planned(reduced("max", 100, 100), AVX512)) == []
    assert asked_for(planned(mapped(tir.Var("n", "int32")), AVX512)) == []


@pytest.mark.parametrize("n", [(1 << 20) - 1, (1 << 20) + 17])
def test_hints_change_no_bit(n: int):
    check_same_bits(mapped(n), [numbers(n), numbers(n, seed=1)])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_extrema_of_large_arrays_are_exact(dtype: str):
    shape = (17, 150_001)
    a = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    out = np.empty(17, dtype)
    for kind in ("max", "min"):
        lw.build(reduced(kind, *shape, dtype=dtype), autosched=True)(a, out)
        np.testing.assert_array_equal(out, getattr(a, kind)(axis=1))


def test_products_that_are_summed_are_asked_for():
    x, v = te.placeholder((4096, 4096), name="X"), te.placeholder((4096,), name="V")
    k = te.reduce_axis((0, 4096), name="k")
    y = te.compute((4096,), lambda i: te.sum(x[i, k] * v[k], axis=k), name="Y")
    plan = planned(te.create_prim_func([x, v, y]), AVX512, may_refuse=True)
    assert "X" in {hint[0] for hint in asked_for(plan)}
    assert "packed GEMM: a reduction prefetches the matrix, which streams from memory" in plan.explain()


def layer(rows: int, inputs: int, outputs: int) -> PrimFunc:
    """A product with weights that are known when it is compiled."""
    A, W = te.placeholder((rows, inputs), name="A"), te.placeholder((outputs, inputs), name="W")
    k = te.reduce_axis((0, inputs), name="k")
    C = te.compute((rows, outputs), lambda i, j: te.sum(A[i, k] * W[j, k], axis=k), name="C")
    return function(A, W, C).with_attr("constant_params", (1,))


def image_layer(pixels: int, channels: int) -> PrimFunc:
    X = te.placeholder((1, pixels, pixels, channels), name="X")
    W = te.placeholder((3, 3, channels, channels), name="W")
    return function(X, W, topi.nn.conv(X, W, 2, 1, 1, 1, "NHWC")).with_attr("constant_params", (1,))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("program", "is_asked"),
    [
        (layer(64, 1024, 1024), True),
        (layer(64, 256, 256), True),  # few rows: the first of them is dear
        (layer(4096, 128, 128), False),  # many rows, and weights that stay near
        (layer(64, 16, 32), False),
        (image_layer(14, 512), True),
        (image_layer(56, 16), False),
    ],
)
def test_weights_are_asked_for_where_steps_would_wait_for_them(program: PrimFunc, is_asked: bool):
    plan = planned(program, AVX512.replace("-num-cores=4", "-num-cores=1"))
    assert ("weights prefetched 4608 bytes ahead: they stream from memory" in plan.explain()) == is_asked
    assert any("W" in hint for hint in asked_for(plan)) == is_asked
