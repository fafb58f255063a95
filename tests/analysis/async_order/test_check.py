"""check_async_order: which kernels are proved, what is not known, and when a build asks."""

from __future__ import annotations

import itertools
import re
from unittest.mock import patch

import pytest

import loopwright as lw
from loopwright import autosched, te
from loopwright.analysis.async_order import AsyncOrder, AsyncOrderError, NotOrdered, check_async_order
from loopwright.ir import IRModule, PrimFunc
from loopwright.runtime.description import UNPROVED
from loopwright.script import from_source
from loopwright.target import Target
from loopwright.transform.pipeline import stages
from tests.autosched.gpu import test_pipelined_scan as scans
from tests.autosched.gpu import test_tensor_gemm as matmuls
from tests.codegen.source.cuda import test_async_copies as bulk
from tests.codegen.source.cuda import test_group_copies as groups
from tests.codegen.source.cuda import test_tensor_copies as boxes
from tests.codegen.source.cuda import test_warpgroups as warpgroups
from tests.random_roles import random_roles
from tests.transform import test_specialize_warps as roles

EMULATED = "cuda -model=emulated -arch=sm_90a"


def lowered(function: PrimFunc) -> PrimFunc:
    """The function as the check sees it."""
    return next(stage for name, stage in stages(function, Target(EMULATED)) if name == "insert_barriers")


# --- what is right --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stages_", "turns"), itertools.product([1, 2, 3, 7], [1, 2, 5, 40]))
def test_roles_are_proved(stages_: int, turns: int):
    assert check_async_order(lowered(roles.program(stages_, turns))) == AsyncOrder(1, ())


@pytest.mark.parametrize("seed", range(40))
def test_random_roles_are_not_refused(seed: int):
    known = check_async_order(lowered(random_roles(seed).function()))
    assert all([re.search("small values of|no time|first iterations", doubt) for doubt in known.doubts])


def test_statements_that_share_an_expression_are_looked_at_one_by_one():
    """Lowering makes `row[0]` one node in both loops; what they do with it differs."""
    function = from_source("""
@T.prim_func
def main(N: T.Buffer(1, "int32"), A: T.Buffer((9, 64), "float16"),
         B: T.Buffer((9, 64)), C: T.Buffer((9, 64)), n: T.int32):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.serial(n, annotations={"warp_role_stages": 1}):
            row = T.decl_buffer((1,), "int32", scope="shared")
            S = T.decl_buffer((64,), "float16", scope="shared")
            with T.attr("load", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    if tx == 0:
                        row[0] = T.take_ticket(T.address_of(N[0]))
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    for k in range(2):
                        S[k * 32 + tx] = A[row[0], k * 32 + tx]
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    for k in range(2):
                        B[row[0], k * 32 + tx] = T.Cast("float32", S[63 - (k * 32 + tx)])
            with T.attr("use", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    C[row[0], tx] = T.Cast("float32", S[tx])
""")
    lw.build(function, target=EMULATED)


@pytest.mark.parametrize("text", [bulk.ring(), boxes.RING, groups.pipeline(), warpgroups.STAGES, warpgroups.IN_PLACE])
def test_kernels_by_hand_are_proved(text: str):
    assert check_async_order(lowered(from_source(text))) == AsyncOrder(1, ())


@pytest.mark.parametrize("form", warpgroups.FORMS)
def test_matmuls_of_all_layouts_are_proved(form: str):
    function = from_source(warpgroups.matmul("matmul", warpgroups.FORMS[form]))
    assert check_async_order(lowered(function)) == AsyncOrder(1, ())


@pytest.mark.parametrize(("length", "count"), [(512, 2), (513, 3), (20001, 3)])
def test_scans_are_proved(length: int, count: int):
    with patch.object(scans.parallel_scan, "scan_plan", lambda *_: scans.small("float32", count, 2)):
        module = autosched.apply(scans.program((length,), "float32"), scans.EMULATED).mod
    assert check_async_order(lowered(module["main"])) == AsyncOrder(1, ())


def matmul(m: int, n: int, k: int, *, is_transposed: bool) -> list[te.Tensor]:
    a = te.placeholder((m, k), "float16", name="A")
    b = te.placeholder((n, k) if is_transposed else (k, n), "float16", name="B")
    r = te.reduce_axis((0, k), name="r")

    def term(i: te.Var, j: te.Var) -> te.Tensor:
        return a[i, r].astype("float32") * (b[j, r] if is_transposed else b[r, j]).astype("float32")

    c = te.compute((m, n), lambda i, j: te.sum(term(i, j), axis=r), name="C")
    return [a, b, te.compute((m, n), lambda i, j: c[i, j].astype("float16"), name="D")]


@pytest.mark.parametrize("is_transposed", [True, False])
def test_matmuls_by_rule_are_proved(is_transposed: bool):
    module = autosched.apply(matmul(256, 512, 1024, is_transposed=is_transposed), "nvidia/nvidia-h200").mod
    assert check_async_order(lowered(module["main"])) == AsyncOrder(1, ())


GEMMS = ["beyond the end", "fewer columns than a tile", "batches, one of A alone", "e4m3", "blocks that stay"]


@pytest.mark.parametrize("name", [*GEMMS, "parts of the sum"])
def test_matmuls_of_odd_shapes_are_proved(name: str):
    assert check_async_order(lowered(matmuls.CASES[name].plan().mod["main"])) == AsyncOrder(1, ())


def test_of_long_loops_the_first_iterations_are_followed():
    known = check_async_order(lowered(roles.program(3, 2000)))
    assert not known.is_proved
    assert known.doubts == ("the first iterations were followed, in which all stages are filled several times",)


def test_other_kernels_are_none_of_its_business():
    text = """
@T.prim_func
def copy(A: T.Buffer(64), B: T.Buffer(64)):
    for tx in T.thread_binding(64, thread="threadIdx.x"):
        B[tx] = A[tx]
"""
    assert check_async_order(from_source(text)) == AsyncOrder(0, ())


# --- what is not known ----------------------------------------------------------------------------------------------


def test_sizes_are_tried():
    text = bulk.ring().replace("range(4)", "range(n)").replace("def ring(", "def ring(n: T.int32, ")
    (doubt,) = check_async_order(from_source(text)).doubts
    assert doubt == "small values of n were tried, and the kernel may be called with others"
    with pytest.raises(NotOrdered, match=r"S\[0, 0\]: .* at k = 2"):
        check_async_order(from_source(text.replace(bulk.WAIT_EMPTY, "T.evaluate(0)")))


def test_the_last_block_may_do_less_than_the_first():
    text = bulk.ring().replace('"blockIdx.x", 1', '"blockIdx.x", 3').replace("range(4)", "range(4 - bx)")
    assert check_async_order(from_source(text)).is_proved
    wrong = text.replace("range(4 - bx)", "range(4 - bx // 2)", 1)  # the copying warp
    with pytest.raises(AsyncOrderError):
        check_async_order(from_source(wrong))


def test_data_that_decide_are_a_doubt():
    text = bulk.ring().replace(bulk.SIGNAL, bulk.SIGNAL.replace("if tx == 32", "if A[tx - 32] > T.float32(0)"))
    (doubt,) = check_async_order(from_source(text)).doubts
    assert doubt.startswith("a condition around synchronisation, ") and doubt.endswith("before the kernel runs")


def test_copies_under_a_condition_may_happen_or_not():
    guarded = f"if A[0] > T.float32(0):\n                {bulk.COPY}"
    text = bulk.ring().replace(bulk.COPY, f"{bulk.COPY}\n            {guarded.replace('S[k % 2, 0]', 'S[k % 2, 100]')}")
    text = text.replace("T.decl_buffer((2, 100)", "T.decl_buffer((2, 200)")
    assert check_async_order(from_source(text)).is_proved
    (doubt, *_) = check_async_order(from_source(text.replace("S[k % 2, 100]", "S[1 - k % 2, 0]"))).doubts
    assert doubt.startswith("whether two accesses of S[") and "meet depends on data" in doubt


def test_unknown_indices_are_all_elements():
    text = bulk.ring().replace("S[k % 2, 100 + 31 - (j * 64 + tx)]", 'S[k % 2, T.Cast("int32", A[tx]) % 100]')
    assert check_async_order(from_source(text)).is_proved
    other = check_async_order(from_source(text.replace("S[k % 2, T", "S[1 - k % 2, T")))
    assert all([doubt.startswith("whether two accesses of S[") for doubt in other.doubts]) and other.doubts


def test_what_gets_an_address_may_touch_anything():
    text = bulk.ring().replace(bulk.ROLE, f'T.call_extern("void", "f", T.address_of(S[0, 0]))\n            {bulk.ROLE}')
    assert check_async_order(from_source(text)).doubts == ("a call gets the address of S",)


# --- builds ---------------------------------------------------------------------------------------------------------

EARLY = bulk.ring().replace(bulk.WAIT_FULL, "T.evaluate(0)")


def test_builds_refuse_with_a_witness():
    with pytest.raises(NotOrdered) as caught:
        lw.build(from_source(EARLY), target="cuda -arch=sm_90")
    message = str(caught.value)
    assert "S[0, 0] is read before anybody has written it: threads 32 to 95 read it at k = 0 [LW0840]" in message
    assert "= S[k % 2, 131 - (j * 64 + tx)]\n  why: what is there is not known" in message


def test_a_context_and_unproved_functions_do_without():
    with lw.PassContext(disabled_pass=["check_async_order"]):
        lw.build(from_source(EARLY), target="cuda -arch=sm_90")
    function = from_source(EARLY).with_attr(UNPROVED, True)
    lw.build(IRModule({"main": function}), target="cuda -arch=sm_90")
