"""What LLVM is told about loops, and what it makes of them."""

from __future__ import annotations

import re

import pytest

from loopwright.build import build
from loopwright.codegen.llvm.emit_module import emit_module
from loopwright.codegen.llvm.engine import compile_text
from loopwright.script import tir as T
from loopwright.target import Target, describe
from loopwright.transform import lower

pytestmark = pytest.mark.optimized

AVX2 = Target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell")
NEON = Target("llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1")


def hints(func) -> list[list[str]]:
    """For each loop in the order of its end, the properties that LLVM is told."""
    text = emit_module(lower(func, AVX2), describe(AVX2))
    metadata = dict(re.findall(r"^(!\d+) = (?:distinct )?!{(.*)}$", text, re.MULTILINE))
    body = text[text.index("lw.body.") :]
    found = []
    for line in body.split("\n}\n")[0].splitlines():
        if line.lstrip().startswith("br ") and "label %loop" in line:
            own = re.search(r"!llvm.loop (!\d+)", line)
            items = metadata[own[1]].split(", ")[1:] if own else []
            found.append([metadata[item].split('"')[1].removeprefix("llvm.loop.") for item in items])
    return [properties for properties in found if properties]


def assembly(func, target) -> str:
    text = emit_module(lower(func, target), describe(target))
    whole = compile_text(text, target).asm()
    return whole[whole.index("lw.body.") :].split("cfi_endproc")[0]


@T.prim_func
def blocked(A: T.Buffer((64, 64)), B: T.Buffer((64, 128)), C: T.Buffer((64, 128))):
    for io, jo, k, ii, ji in T.grid(2, 2, 64, 32, 64):
        C[io * 32 + ii, jo * 64 + ji] = C[io * 32 + ii, jo * 64 + ji] + A[io * 32 + ii, k] * B[k, jo * 64 + ji]


def test_the_innermost_loop_of_a_blocked_matmul_is_vectorized_and_no_other():
    inner = ["unroll.disable", "vectorize.followup_vectorized"]
    outer = ["vectorize.enable"]
    assert hints(blocked) == [inner, outer, outer, outer, outer]


@pytest.mark.parametrize(("target", "fma"), [(AVX2, "vfmadd"), (NEON, "fmla\tv")])
def test_it_becomes_vectors_without_gathers(target, fma):
    text = assembly(blocked, target)
    assert fma in text
    assert "gather" not in text and "vinsertps" not in text


def test_a_float_sum_is_never_told_to_be_vectorized():
    @T.prim_func
    def total(A: T.Buffer((4096,)), B: T.Buffer((1,))):
        for i in range(4096):
            B[0] = B[0] + A[i]

    assert hints(total) == []
    assert "vaddss" in assembly(total, AVX2)


def test_a_value_that_flows_to_the_next_iteration_is_no_vector():
    @T.prim_func
    def scan(A: T.Buffer((4096,)), B: T.Buffer((4097,))):
        for i in range(4096):
            B[i + 1] = B[i] + A[i]

    @T.prim_func
    def swap(A: T.Buffer((4096,)), B: T.Buffer((4097,))):
        for i in range(4096):
            B[i] = B[i + 1] + A[i]

    assert hints(scan) == []
    assert hints(swap) == []


def test_lanes_far_apart_are_no_vectors():
    @T.prim_func
    def transpose(A: T.Buffer((24, 1000)), B: T.Buffer((1000, 24))):
        for i, j in T.grid(1000, 24):
            B[i, j] = A[j, i]

    assert hints(transpose) == [["vectorize.enable"], ["vectorize.enable"]]
    assert "gather" not in assembly(transpose, AVX2)


def test_a_condition_in_the_loop_is_left_to_llvm():
    @T.prim_func
    def guarded(A: T.Buffer((4096,)), B: T.Buffer((4096,))):
        for i in range(4096):
            if A[i] > 0.0:
                B[i] = A[i]

    assert hints(guarded) == []


def test_results_do_not_depend_on_the_hints():
    import numpy as np

    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype("float32") for shape in ((64, 64), (64, 128)))
    c = np.zeros((64, 128), "float32")
    build(blocked)(a, b, c)
    np.testing.assert_allclose(c, a.astype("float64") @ b, rtol=1e-4, atol=1e-4)


def test_scalable_vectors_go_two_side_by_side():
    @T.prim_func
    def product(a: T.handle, b: T.handle):
        n = T.int32()
        A, B = T.match_buffer(a, (n,)), T.match_buffer(b, (n,))
        for i in range(n):
            B[i] = A[i] * A[i]

    text = assembly(product, Target("llvm -mtriple=aarch64-linux-gnu -mattr=+sve"))
    assert len(re.findall(r"fmul\tz", text)) == 2


def test_a_loop_that_stores_lanes_one_by_one_is_not_unrolled_as_a_whole():
    @T.prim_func
    def apart(A: T.Buffer((96,)), B: T.Buffer((96 * 4,))):
        for i in range(24):
            for lane in T.vectorized(4):
                B[i * 16 + lane * 4] = A[i * 4 + lane]

    @T.prim_func
    def side_by_side(A: T.Buffer((96,)), B: T.Buffer((96,))):
        for i in range(24):
            for lane in T.vectorized(4):
                B[i * 4 + lane] = A[i * 4 + lane] + 1.0

    assert hints(apart) == [["unroll.count"]]
    assert hints(side_by_side) == []
    assert assembly(apart, NEON).count("st1") < 24


def test_a_parallel_loop_over_rows_that_lie_apart_makes_no_vectors():
    @T.prim_func
    def sums(A: T.Buffer((64, 9), "float64"), B: T.Buffer((64, 9), "float64")):
        for i in T.parallel(64):
            for j in range(8):
                B[i, j + 1] = B[i, j] + A[i, j + 1]

    target = Target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=skylake-avx512")
    text = compile_text(emit_module(lower(sums, target), describe(target)), target).asm()
    assert "vaddsd" in text
    assert "gather" not in text and "scatter" not in text


@T.prim_func
def rest(A: T.Buffer(64), B: T.Buffer(64), n: T.int64):
    for i in range(n - n // 16 * 16):
        B[n // 16 * 16 + i] = A[n // 16 * 16 + i] + 1.0


def test_what_vectors_left_over_is_not_made_vectors_again():
    assert hints(rest) == [["unroll.disable", "vectorize.enable"]]
