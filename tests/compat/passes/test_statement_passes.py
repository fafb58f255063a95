"""Passes that move conditions, measure loops and do without branches, by the names of scripts."""

from __future__ import annotations

from loopwright import tir
from loopwright.ir import For, IfThenElse, assert_structural_equal, collect
from loopwright.ir.pass_context import PassContext
from loopwright.script import tir as T
from tests.transform.before_after import same_results


def test_conditions_move_before_loops():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,)), B: T.Buffer((8,)), n: T.int32):
        for i in range(8):
            if i < 4:
                B[i] = T.if_then_else(n < 5, A[i], T.float32(0))

    @T.prim_func(private=True)
    def expected(A: T.Buffer((8,)), B: T.Buffer((8,)), n: T.int32):
        if n < 5:
            for i in range(8):
                if i < 4:
                    B[i] = A[i]
        else:
            for i in range(8):
                if i < 4:
                    B[i] = T.float32(0)

    hoisted = tir.transform.HoistExpression()(before)
    assert_structural_equal(hoisted, expected)
    same_results(before, hoisted)
    with PassContext(config={"tir.HoistExpression": {"hoisted_conditionals": 1}}):
        assert tir.transform.HoistExpression()(before) is before  # the branch alone may move, and depends on i


def test_conditions_on_threads_move_where_that_is_asked_for():
    @T.prim_func(private=True)
    def before(A: T.Buffer((4, 8))):
        t = T.launch_thread("threadIdx.x", 4)
        for i in range(8):
            if t < 3:
                A[t, i] = T.float32(1)

    assert tir.transform.HoistIfThenElse()(before) is before
    with PassContext(config={"tir.HoistIfThenElse": {"support_block_scope_hosting": True}}):
        hoisted = tir.transform.HoistIfThenElse()(before)
    assert isinstance(hoisted.body.body, IfThenElse) and isinstance(hoisted.body.body.then_case, For)


def test_conditions_of_a_block_stay_in_it():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8, 8))):
        for i, j in T.grid(8, 8):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                for k in range(1):
                    if vi < 3:
                        A[vi, vj] = T.float32(k)

    (branch,) = collect(tir.transform.HoistIfThenElse()(before).body, IfThenElse)
    assert isinstance(branch.then_case, For)


def test_loops_beside_loops_are_measured():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8, 8))):
        for i in range(8):
            for j in range(8):
                A[i, j] = T.float32(1)
        for i in range(8):
            for j in range(8):
                A[i, j] = A[i, j] * T.float32(2)

    with PassContext(config={"tir.lwp_disable_func_prof": True}):
        text = str(tir.transform.InstrumentProfileIntrinsics()(before))
    numbers = [line.strip() for line in text.splitlines() if "profile_intrinsic" in line]
    assert numbers == [f"T.{edge}_profile_intrinsic({number})" for number in (1, 3) for edge in ("start", "end")]
    with PassContext(config={"tir.instr_siblings": False, "tir.lwp_min_height": 0}):
        text = str(tir.transform.InstrumentProfileIntrinsics()(before))
    assert text.count("start_profile_intrinsic") == 5  # the function and its four loops


def test_a_branch_that_changes_nothing_goes():
    @T.prim_func(private=True)
    def before(A: T.Buffer((16,), "int32")):
        for i in range(16):
            if i < 14:
                A[i] = 1
                T.evaluate(0)
            else:
                A[i] = 1
        for i in range(16):
            if i < 14:
                A[i] = 2

    reduced = tir.transform.ReduceBranchingThroughOvercompute()(before)
    assert len(collect(reduced.body, IfThenElse)) == 1
    same_results(before, reduced)


def test_arithmetic_of_a_statement_is_shared():
    @T.prim_func(private=True)
    def before(A: T.Buffer((64,), "int32"), n: T.int32, m: T.int32):
        for i in range(8):
            A[i * 4 + (n + m)] = i * 4 + (n + m)
            A[i] = (n + m) * A[i]

    @T.prim_func(private=True)
    def expected(A: T.Buffer((64,), "int32"), n: T.int32, m: T.int32):
        cse_var_1: T.int32 = n + m
        for i in range(8):
            cse_var_2: T.int32 = i * 4 + cse_var_1
            A[cse_var_2] = cse_var_2
            A[i] = cse_var_1 * A[i]

    shared = tir.transform.CommonSubexprElimTIR(enable_cse_tir=True, identify_equiv_terms=False)(before)
    assert_structural_equal(shared, expected)
    assert "cse_var_2" in str(shared)
    assert tir.transform.CommonSubexprElimTIR(enable_cse_tir=False)(before) is before
