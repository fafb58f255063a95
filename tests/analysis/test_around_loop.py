"""Around a loop: nothing stays but the loop and what holds it."""

from __future__ import annotations

from loopwright.analysis.around_loop import around_loop
from loopwright.ir import For, SeqStmt, Var, pre_order_visit
from loopwright.script import tir as T


@T.prim_func
def three(A: T.Buffer((8, 8)), B: T.Buffer((8, 8)), n: T.int32):
    for i in range(8):
        A[i, 0] = T.float32(1)
    if n > 2:
        for j in range(8):
            B[j, 0] = T.float32(2)
            for k in range(8):
                B[j, k] = A[k, j]
            B[j, 1] = T.float32(3)
    for l in range(8):
        A[l, 1] = T.float32(4)


def loop_named(name: str) -> For:
    found: list[For] = []
    pre_order_visit(
        three, lambda node: found.append(node) if isinstance(node, For) and node.loop_var.name == name else None
    )
    return found[0]


def text(name: str) -> str:
    return around_loop(three, loop_named(name).loop_var).script()


def test_the_loop_is_kept_whole():
    kept = text("j")
    assert "for j" in kept and "for k" in kept and "if n > 2" in kept and "T.float32(3)" in kept
    assert "for i" not in kept and "for l" not in kept


def test_what_is_beside_an_inner_loop_goes_too():
    kept = text("k")
    assert "for j, k in T.grid(8, 8)" in kept and "T.float32(2)" not in kept and "T.float32(3)" not in kept


def test_nothing_is_copied_that_stays():
    made = around_loop(three, loop_named("j").loop_var)
    found: list[SeqStmt] = []
    pre_order_visit(made, lambda node: found.append(node) if isinstance(node, For) else None)
    assert found[0] is loop_named("j")


def test_a_loop_that_is_not_there():
    assert around_loop(three, Var("z", "int32")) is three
