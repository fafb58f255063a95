"""precompute_constants: work on constants alone is done by the compiler, and nothing else is."""

from __future__ import annotations

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright.ir import AllocateConst, For, Node, PrimFunc, assert_structural_equal, bind_constants, post_order_visit
from loopwright.ir.verifier import verify
from loopwright.script import tir as T
from loopwright.transform import PassContext, ShowAfterEach, lower, precompute_constants

ON_X86 = "x86" in lw.target.host_description().triple
ELSEWHERE = "llvm -mtriple=aarch64-linux-gnu" if ON_X86 else "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"


@T.prim_func
def packed(A: T.Buffer((4, 5)), W: T.Buffer((5, 6)), C: T.Buffer((4, 6))):
    P = T.alloc_buffer((2, 5, 3))
    for k, j in T.grid(5, 6):
        with T.block("P"):
            vk, vj = T.axis.remap("SS", [k, j])
            P[vj // 3, vk, vj % 3] = W[vk, vj]
    for i, j, k in T.grid(4, 6, 5):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * P[vj // 3, vk, vj % 3]


W = np.arange(30, dtype="float32").reshape(5, 6)


def constants(func: PrimFunc) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}

    def look(node: Node) -> None:
        if isinstance(node, AllocateConst):
            found[node.buffer_var.name] = np.asarray(node.data)

    post_order_visit(func.body, look)
    return found


def loops(func: PrimFunc) -> int:
    count = 0

    def look(node: Node) -> None:
        nonlocal count
        count += isinstance(node, For)

    post_order_visit(func.body, look)
    return count


def test_the_packed_layout_becomes_the_constant() -> None:
    done = precompute_constants(bind_constants(packed, {"W": W}))
    verify(done)

    values = W.reshape(5, 2, 3).transpose(1, 0, 2)

    @T.prim_func
    def expected(A: T.Buffer((4, 5)), C: T.Buffer((4, 6))):
        with T.block("root"):
            P_data = T.allocate_const(values, "float32", [2, 5, 3])
            P = T.decl_buffer((2, 5, 3), data=P_data)
            for i, j, k in T.grid(4, 6, 5):
                with T.block("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        C[vi, vj] = T.float32(0)
                    C[vi, vj] += A[vi, vk] * P[vj // 3, vk, vj % 3]

    assert_structural_equal(done, expected.with_attr("global_symbol", "packed"))


def test_nothing_to_do_is_the_same_object() -> None:
    assert precompute_constants(packed) is packed
    done = precompute_constants(bind_constants(packed, {"W": W}))
    assert precompute_constants(done) is done


def test_a_function_can_ask_to_be_left_alone() -> None:
    func = bind_constants(packed, {"W": W}).with_attr("precompute_constants", False)
    assert precompute_constants(func) is func
    with PassContext(disabled_pass=["precompute_constants"]):
        assert list(constants(lower(bind_constants(packed, {"W": W}))["packed"])) == ["W"]


def test_a_chain_of_work_leaves_only_its_end() -> None:
    @T.prim_func
    def chain(W: T.Buffer((8, 4), "int8"), S: T.Buffer(4), A: T.Buffer(8), C: T.Buffer((8, 4)), D: T.Buffer(4)):
        Q = T.alloc_buffer((8, 4))
        P = T.alloc_buffer((4, 8))
        R = T.alloc_buffer((4,), "int32")
        for k, j in T.grid(8, 4):
            with T.block("Q"):
                vk, vj = T.axis.remap("SS", [k, j])
                Q[vk, vj] = T.cast(W[vk, vj], "float32") * S[vj]
        for k, j in T.grid(8, 4):
            with T.block("P"):
                vk, vj = T.axis.remap("SS", [k, j])
                P[vj, vk] = Q[vk, vj]
        for j, k in T.grid(4, 8):
            with T.block("R"):
                vj, vk = T.axis.remap("SR", [j, k])
                with T.init():
                    R[vj] = 0
                R[vj] += T.cast(W[vk, vj], "int32")
        for k, j in T.grid(8, 4):
            with T.block("C"):
                vk, vj = T.axis.remap("SS", [k, j])
                C[vk, vj] = P[vj, vk] + A[vk]
        for j in T.grid(4):
            with T.block("D"):
                vj = T.axis.spatial(4, j)
                D[vj] = T.cast(R[vj], "float32") + A[vj]

    random = np.random.default_rng(1)
    w, s = random.integers(-100, 100, (8, 4)).astype("int8"), random.random(4).astype("float32")
    func = bind_constants(chain, {"W": w, "S": s})
    found = constants(precompute_constants(func))
    assert sorted(found) == ["P", "R"]
    assert np.array_equal(found["P"], (w.astype("float32") * s).T)
    assert np.array_equal(found["R"], w.astype("int32").sum(axis=0))
    a, c, d = np.ones(8, "float32"), np.zeros((8, 4), "float32"), np.zeros(4, "float32")
    lw.build(func)(a, c, d)
    assert np.array_equal(c, w.astype("float32") * s + 1) and np.array_equal(d, w.astype("int32").sum(axis=0) + 1.0)


def test_a_constant_that_is_used_elsewhere_stays() -> None:
    @T.prim_func
    def both(A: T.Buffer(6), W: T.Buffer(6), C: T.Buffer(6)):
        P = T.alloc_buffer(6)
        for i in range(6):
            with T.block("P"):
                v = T.axis.spatial(6, i)
                P[v] = W[5 - v]
        for i in range(6):
            with T.block("C"):
                v = T.axis.spatial(6, i)
                C[v] = A[v] * W[v] + P[v]

    w = np.arange(6, dtype="float32")
    found = constants(precompute_constants(bind_constants(both, {"W": w})))
    assert found["W"].tolist() == [0, 1, 2, 3, 4, 5] and found["P"].tolist() == [5, 4, 3, 2, 1, 0]


def unchanged(func: PrimFunc) -> None:
    assert precompute_constants(func) is func


def test_what_another_statement_writes_too_stays() -> None:
    @T.prim_func
    def twice(A: T.Buffer(4), W: T.Buffer(4), C: T.Buffer(4)):
        P = T.alloc_buffer(4)
        for i in range(4):
            with T.block("P"):
                v = T.axis.spatial(4, i)
                P[v] = W[v]
        for i in range(4):
            with T.block("more"):
                v = T.axis.spatial(4, i)
                P[v] = P[v] + A[v]
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(4, i)
                C[v] = P[v]

    unchanged(bind_constants(twice, {"W": np.ones(4, "float32")}))


def test_a_buffer_that_is_filled_twice_with_a_reader_between_stays() -> None:
    @T.prim_func
    def between(W: T.Buffer(4), C: T.Buffer(4), D: T.Buffer(4)):
        P = T.alloc_buffer(4)
        for i in range(4):
            with T.block("first"):
                v = T.axis.spatial(4, i)
                P[v] = W[v]
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(4, i)
                C[v] = P[v]
        for i in range(4):
            with T.block("second"):
                v = T.axis.spatial(4, i)
                P[v] = W[v] * T.float32(2)
        for i in range(4):
            with T.block("D"):
                v = T.axis.spatial(4, i)
                D[v] = P[v]

    func = bind_constants(between, {"W": np.ones(4, "float32")})
    unchanged(func)
    c, d = np.zeros(4, "float32"), np.zeros(4, "float32")
    lw.build(func)(c, d)
    assert c.tolist() == [1] * 4 and d.tolist() == [2] * 4


def test_filled_in_parts() -> None:
    @T.prim_func
    def parts(A: T.Buffer(4), W: T.Buffer(4), C: T.Buffer(8)):
        P = T.alloc_buffer(8)
        for i in range(8):
            with T.block("zeros"):
                v = T.axis.spatial(8, i)
                P[v] = T.float32(0)
        for i in range(4):
            with T.block("values"):
                v = T.axis.spatial(4, i)
                P[v * 2] = W[v]
        for i in range(8):
            with T.block("C"):
                v = T.axis.spatial(8, i)
                C[v] = P[v] + A[0]

    found = constants(precompute_constants(bind_constants(parts, {"W": np.arange(4, dtype="float32")})))
    assert found["P"].tolist() == [0, 0, 1, 0, 2, 0, 3, 0]


def test_what_depends_on_a_scalar_or_an_assertion_stays() -> None:
    @T.prim_func
    def scalar(W: T.Buffer(4), by: T.float32, C: T.Buffer(4)):
        P = T.alloc_buffer(4)
        for i in range(4):
            with T.block("P"):
                v = T.axis.spatial(4, i)
                P[v] = W[v] * by
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(4, i)
                C[v] = P[v]

    unchanged(bind_constants(scalar, {"W": np.ones(4, "float32")}))

    @T.prim_func
    def calls(A: T.Buffer(4), W: T.Buffer(4), C: T.Buffer(4)):
        P = T.alloc_buffer(4)
        for i in range(4):
            with T.block("P"):
                v = T.axis.spatial(4, i)
                P[v] = T.call_pure_extern("float32", "somewhere_else", W[v])
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(4, i)
                C[v] = P[v] + A[v]

    unchanged(bind_constants(calls, {"W": np.ones(4, "float32")}))


def test_a_large_result_of_a_small_constant_stays() -> None:
    @T.prim_func
    def spread(A: T.Buffer((1024, 1024)), W: T.Buffer(4), C: T.Buffer((1024, 1024))):
        P = T.alloc_buffer((1024, 1024))
        for i, j in T.grid(1024, 1024):
            with T.block("P"):
                vi, vj = T.axis.remap("SS", [i, j])
                P[vi, vj] = W[vj % 4]
        for i, j in T.grid(1024, 1024):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = P[vi, vj] + A[vi, vj]

    unchanged(bind_constants(spread, {"W": np.ones(4, "float32")}))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "int8", "bool"])
def test_types(dtype: str) -> None:
    @T.prim_func
    def turned(W: T.Buffer((2, 3), dtype), C: T.Buffer((3, 2), dtype)):
        P = T.alloc_buffer((3, 2), dtype)
        for i, j in T.grid(2, 3):
            with T.block("P"):
                vi, vj = T.axis.remap("SS", [i, j])
                P[vj, vi] = W[vi, vj]
        for i, j in T.grid(3, 2):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = P[vi, vj]

    w = np.array([[0, 1, 2], [3, 0, 5]]).astype(turned.argument_buffers()[0].dtype.numpy())
    func = bind_constants(turned, {"W": w})
    assert np.array_equal(constants(precompute_constants(func))["P"], w.T)
    c = np.zeros((3, 2), w.dtype)
    lw.build(func)(c)
    assert np.array_equal(c, w.T)


@T.prim_func
def powers(A: T.Buffer(64), W: T.Buffer(64), C: T.Buffer(64)):
    P = T.alloc_buffer(64)
    for i in range(64):
        with T.block("P"):
            v = T.axis.spatial(64, i)
            P[v] = T.exp(W[v])
    for i in range(64):
        with T.block("C"):
            v = T.axis.spatial(64, i)
            C[v] = P[v] + A[v]


def test_another_machine_gets_what_is_the_same_there() -> None:
    func = bind_constants(packed, {"W": W})
    with lw.target.Target(ELSEWHERE):
        assert list(constants(precompute_constants(func))) == ["P"]  # a copy is a copy everywhere
        curve = bind_constants(powers, {"W": np.linspace(-1, 1, 64, dtype="float32")})
        assert precompute_constants(curve) is curve  # its exp need not round as ours does
    assert list(constants(precompute_constants(curve))) == ["P"]
    assert lw.build(func, target=ELSEWHERE).get_source("asm")


def test_another_machine_gets_the_part_that_is_the_same_there() -> None:
    @T.prim_func
    def both(A: T.Buffer(64), W: T.Buffer(64), C: T.Buffer(64)):
        P = T.alloc_buffer(64)
        Q = T.alloc_buffer(64)
        for i in range(64):
            with T.block("Q"):
                v = T.axis.spatial(64, i)
                Q[v] = W[63 - v]
        for i in range(64):
            with T.block("P"):
                v = T.axis.spatial(64, i)
                P[v] = T.exp(Q[v])
        for i in range(64):
            with T.block("C"):
                v = T.axis.spatial(64, i)
                C[v] = P[v] + A[v]

    with lw.target.Target(ELSEWHERE):
        assert list(constants(precompute_constants(bind_constants(both, {"W": np.ones(64, "float32")})))) == ["Q"]


def test_the_bits_are_those_of_a_call() -> None:
    w = np.linspace(-20, 20, 64, dtype="float32")
    zeros, early, late = np.zeros(64, "float32"), np.zeros(64, "float32"), np.zeros(64, "float32")
    func = bind_constants(powers, {"W": w})
    lw.build(func)(zeros, early)
    lw.build(powers)(zeros, w, late)
    assert early.tobytes() == late.tobytes()


def test_c_holds_the_packed_values() -> None:
    func = bind_constants(packed, {"W": W})
    text = lw.build(func, target="c").get_source("c")
    numbers = re.search(r"static const float P\w*\[30\] = \{(.*?)\};", text, re.S)
    assert numbers is not None and " ".join(numbers[1].split()).startswith("0.0f, 1.0f, 2.0f, 6.0f, 7.0f, 8.0f")


def test_instruments_see_the_pass_once(capsys: pytest.CaptureFixture[str]) -> None:
    with PassContext(instruments=[ShowAfterEach()]):
        lower(bind_constants(packed, {"W": W}))
    assert capsys.readouterr().out.count("lower_blocks") <= 1


def test_an_empty_result() -> None:
    @T.prim_func
    def nothing(A: T.Buffer(4), W: T.Buffer((0, 3)), C: T.Buffer(4)):
        P = T.alloc_buffer((3, 0))
        for i, j in T.grid(0, 3):
            with T.block("P"):
                vi, vj = T.axis.remap("SS", [i, j])
                P[vj, vi] = W[vi, vj]
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(4, i)
                C[v] = A[v]

    c = np.zeros(4, "float32")
    lw.build(bind_constants(nothing, {"W": np.zeros((0, 3), "float32")}))(np.ones(4, "float32"), c)
    assert c.tolist() == [1] * 4


def test_lookups_are_left_to_the_call_since_they_may_lie_outside() -> None:
    @T.prim_func
    def lookup(A: T.Buffer(4), K: T.Buffer(4, "int32"), W: T.Buffer(4), C: T.Buffer(4)):
        P = T.alloc_buffer(4)
        for i in range(4):
            with T.block("P"):
                v = T.axis.spatial(4, i)
                P[v] = W[K[v]]
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(4, i)
                C[v] = P[v] + A[v]

    unchanged(bind_constants(lookup, {"K": np.array([3, 2, 1, 1 << 30], "int32"), "W": np.zeros(4, "float32")}))

    @T.prim_func
    def named(A: T.Buffer(4), K: T.Buffer(4, "int32"), W: T.Buffer(4), C: T.Buffer(4)):
        P = T.alloc_buffer(4)
        for i in range(4):
            with T.block("P"):
                v = T.axis.spatial(4, i)
                where: T.int32 = K[v]
                again: T.int32 = where + 1
                P[v] = W[again]
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(4, i)
                C[v] = P[v] + A[v]

    unchanged(bind_constants(named, {"K": np.array([3, 2, 1, 1 << 30], "int32"), "W": np.zeros(4, "float32")}))
