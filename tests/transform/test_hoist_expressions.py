"""hoist_expressions: what does not change in a loop is computed before it."""

from __future__ import annotations

from loopwright.script import tir as T
from loopwright.transform import PassContext, hoist_expressions
from tests.transform.before_after import check_all, unchanged


def test_out_of_the_loops_that_do_not_change_it():
    @T.prim_func
    def before(A: T.Buffer((8, 8)), B: T.Buffer((8, 8)), a: T.float32, b: T.float32):
        for i, j in T.grid(8, 8):
            B[i, j] = A[i, j] * T.exp(a + b) + T.Cast("float32", i * 3)

    @T.prim_func
    def after(A: T.Buffer((8, 8)), B: T.Buffer((8, 8)), a: T.float32, b: T.float32):
        with T.LetStmt(T.exp(a + b)) as x:
            for i in range(8):
                with T.LetStmt(T.Cast("float32", i * 3)) as y:
                    for j in range(8):
                        B[i, j] = A[i, j] * x + y

    check_all(hoist_expressions, before, after)


def test_lets_and_branches_move_too():
    @T.prim_func
    def before(B: T.Buffer((8,)), n: T.int32):
        for i in range(8):
            with T.LetStmt(n + 1) as m:
                if n < 9:
                    B[i] = T.Cast("float32", m)

    @T.prim_func
    def after(B: T.Buffer((8,)), n: T.int32):
        with T.LetStmt(n + 1) as m:
            with T.LetStmt(n < 9) as small:
                for i in range(8):
                    if small:
                        B[i] = T.Cast("float32", m)

    check_all(hoist_expressions, before, after, again=False)
    with PassContext(config={"tir.HoistExpression": {"hoisted_let_bindings": 0, "hoisted_conditionals": 0}}):
        kept = [line.strip() for line in hoist_expressions(before).script().splitlines()]
    loop = next(k for k, line in enumerate(kept) if line.startswith("for i"))
    assert "if " in "\n".join(kept[loop:])


def test_what_may_do_harm_stays():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), n: T.int32):
        for i in range(8):
            B[i] = A[0] + 8 // n + T.call_extern("int32", "next")

    unchanged(hoist_expressions, func)


def test_what_uses_a_thread_stays_inside_its_launch():
    @T.prim_func
    def before(A: T.Buffer((8, 4), "int32"), n: T.int32):
        for i in range(8):
            tx = T.launch_thread("threadIdx.x", 4)
            A[i, tx] = tx * 3 + 1

    unchanged(hoist_expressions, before)
