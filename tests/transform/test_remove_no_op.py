"""remove_no_op: what changes nothing goes."""

from __future__ import annotations

from loopwright.script import tir as T
from loopwright.transform import remove_no_op
from tests.transform.before_after import check, check_all, unchanged


def test_memory_that_nobody_reads():
    @T.prim_func
    def before(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.decl_buffer((8,))
        D = T.decl_buffer((8,))
        for i in range(8):
            D[i] = A[i]
            B[i] = D[i] + T.float32(1)
            C[i] = A[i]

    @T.prim_func
    def after(A: T.Buffer((8,)), C: T.Buffer((8,))):
        for i in range(8):
            C[i] = A[i]

    check_all(remove_no_op, before, after)


def test_loops_branches_and_stores_of_a_cell_into_itself():
    @T.prim_func
    def before(A: T.Buffer((8,)), C: T.Buffer((8,)), n: T.int32):
        for i in range(8):
            A[i] = A[i]
        for i in range(0):
            C[i] = A[i]
        for i in range(8):
            if i < n:
                T.evaluate(0)
            else:
                C[i] = A[i]
        if n < 3:
            for i in range(8):
                C[i] = C[i]
        while False:
            C[0] = A[0]

    @T.prim_func
    def after(A: T.Buffer((8,)), C: T.Buffer((8,)), n: T.int32):
        for i in range(8):
            if not i < n:
                C[i] = A[i]

    check_all(remove_no_op, before, after)


def test_lets_and_constants_that_nobody_uses():
    @T.prim_func
    def before(A: T.Buffer((8,)), n: T.int32):
        with T.LetStmt(n + 1) as m:
            A[0] = T.float32(1)

    @T.prim_func
    def after(A: T.Buffer((8,)), n: T.int32):
        A[0] = T.float32(1)

    check_all(remove_no_op, before, after)


def test_a_constant_that_is_only_declared():
    @T.prim_func
    def before(A: T.Buffer((8,), "int32")):
        K = T.allocate_const([1, 2], "int32", [2])
        K_1 = T.decl_buffer((2,), "int32", data=K)
        A[0] = 1

    @T.prim_func
    def after(A: T.Buffer((8,), "int32")):
        A[0] = 1

    check_all(remove_no_op, before, after)


def test_effects_stay():
    @T.prim_func
    def before(A: T.Buffer((8,), "int32")):
        B = T.decl_buffer((8,), "int32")
        for i in range(8):
            B[i] = T.call_extern("int32", "next")
        if T.call_extern("int32", "ask") > 0:
            T.evaluate(0)
        T.evaluate(A[0] + 1)

    @T.prim_func
    def after(A: T.Buffer((8,), "int32")):
        for _ in range(8):
            T.evaluate(T.call_extern("int32", "next"))
        T.evaluate(T.call_extern("int32", "ask") > 0)

    check(remove_no_op, before, after, values=False)


def test_what_is_read_later_or_handed_on_stays():
    @T.prim_func
    def func(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.decl_buffer((8,))
        D = T.decl_buffer((8,))
        B[0] = A[0]
        D[0] = A[0]
        C[0] = B[0]
        T.evaluate(T.call_extern("int32", "touch", D.data))
        assert A[0] < T.float32(3), "too large"
        A[1] = A[2]

    unchanged(remove_no_op, func)


@T.prim_func
def through_a_pointer(A: T.Buffer((16,), "float32")):
    p: T.handle("float32") = A.data
    C = T.Buffer((16,), data=p)
    C[0] = T.float32(1)


def test_a_pointer_that_is_only_stored_through_is_kept():
    unchanged(remove_no_op, through_a_pointer)
