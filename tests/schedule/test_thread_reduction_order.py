"""Turns: a step that changes who comes when in a reduction over threads."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import te
from loopwright.evaluator import evaluate
from loopwright.ir import ForKind
from loopwright.schedule import Schedule
from loopwright.schedule.errors import NotProved
from loopwright.schedule.proof.thread_reduction_order import only_turns_change, runs_alike, with_turns_proved
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View
from loopwright.script import from_source


def reduction(update: str, beside: str = "") -> View:
    """A reduction over threads and k, with something else in the loop over k or not."""
    return View(
        from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), C: T.Buffer((1,), "int32")):
    D = T.alloc_buffer((8,), "int32")
    for t in T.thread_binding(4, thread="threadIdx.x"):
        for k in range(8):
            {beside or "pass"}
            with T.block("C"):
                vt, vk = T.axis.remap("RR", [t, k])
                with T.init():
                    C[0] = 0
                C[0] = {update}
""")
    )


SUM, CHAIN = "C[0] + A[vt, vk]", "C[0] * 2 + A[vt, vk]"


@pytest.mark.parametrize("update", [SUM, CHAIN])
def test_where_turns_change_all_values_are_compared(update):
    before, after = reduction(update), reduction(update, "D[k] = 1")
    kept = Step(after.function, Proof.ORDER_KEPT, buffers=[])
    made = with_turns_proved("stage", before, kept)
    assert made.proof is Proof.VALUES and made.buffers is None
    same = Step(before.function, Proof.ORDER_KEPT, buffers=[])
    assert with_turns_proved("stage", before, same) is same


def test_a_reason_of_its_own_says_nothing_of_turns():
    after = Step(reduction(SUM, "D[k] = 1").function, Proof.GIVEN)
    assert with_turns_proved("step", reduction(SUM), after) is after
    after = Step(reduction(CHAIN, "D[k] = 1").function, Proof.GIVEN)
    with pytest.raises(NotProved, match="threads would take turns at block C in another way, and the order of its"):
        with_turns_proved("step", reduction(CHAIN), after)


@pytest.mark.parametrize(("beside", "which", "alike"), [("", 0, True), ("", 1, True), ("D[k] = 1", 0, False)])
def test_threads_that_take_turns_in_the_order_of_the_loop(beside, which, alike):
    """Of updates whose order counts; with something beside the block, threads take turns in each iteration of k."""
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), C: T.Buffer((1,), "int32")):
    D = T.alloc_buffer((8,), "int32")
    for t in range(4):
        for k in range(8):
            {beside or "pass"}
            with T.block("C"):
                vt, vk = T.axis.remap("RR", [t, k])
                with T.init():
                    C[0] = 0
                C[0] = {CHAIN}
""")
    sch = Schedule(program, enable_check=False)
    sch.bind(sch.get_loops("C")[which], "threadIdx.x")
    assert runs_alike(program, sch.mod["main"]) is alike


@pytest.mark.parametrize(("update", "beside", "alone"), [(SUM, "", True), (SUM, "D[k] = 1", False), (CHAIN, "", False)])
@pytest.mark.parametrize("is_bound", [True, False])
def test_what_stands_beside_a_block_counts(update, beside, alone, is_bound):
    """Also where the loop is bound no more: what threads did together comes in the order of the text then."""
    view = reduction(update, beside)
    loop = next(path[-1] for path in view.index.loops.values() if path[-1].loop_var.name == "t")
    if not is_bound:
        freed = loop.with_(kind=ForKind.SERIAL, thread_binding=None)
        view = View(view.replaced(view.loop_path(loop.loop_var), freed))
    assert only_turns_change(view, loop.loop_var) is alone


@pytest.mark.parametrize("update", [SUM, CHAIN])
def test_another_order_is_for_updates_that_commute(update, monkeypatch):
    """Parts of both loops are bound: threads along the second take turns at all of what the first left inside."""
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), "int32", name="A")
    i, j = te.reduce_axis((0, n), "i"), te.reduce_axis((0, m), "j")
    fold = te.comm_reducer(lambda x, y: x * (1 if update is SUM else 2) + y, lambda dtype: te.const(0, dtype))
    B = te.compute((1,), lambda _: fold(A[i, j], axis=[i, j]), name="B")
    sch = Schedule(te.create_prim_func([A, B]))
    _, i, j = sch.get_loops("B")
    parts = [sch.split(loop, [4, None])[0] for loop in (i, j)]
    sch.bind(parts[0], "threadIdx.y")
    if update is CHAIN:
        monkeypatch.setattr("loopwright.arith.isl.OPERATIONS_A_SECOND", 10**9)  # to give up takes seconds
        with pytest.raises(NotProved):
            sch.bind(parts[1], "threadIdx.x")
        return
    sch.bind(parts[1], "threadIdx.x")
    a, b = np.random.default_rng(0).integers(0, 9, (5, 9)).astype("int32"), np.zeros(1, "int32")
    evaluate(sch.mod["main"], a, b)
    assert b[0] == a.sum()


def test_parts_of_an_open_size_along_threads():
    """The index is a product of a loop and a size, which no comparison of all values takes."""
    n, m = te.var("n"), te.var("m")
    A, k = te.placeholder((n, m), name="A"), te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    sch = Schedule(te.create_prim_func([A, B]))
    i, k = sch.get_loops("B")
    part, _ = sch.split(k, [64, None])
    sch.bind(i, "blockIdx.x")
    sch.bind(part, "threadIdx.x")
    a, b = np.random.default_rng(0).integers(0, 9, (3, 100)).astype("float32"), np.zeros(3, "float32")
    evaluate(sch.mod["main"], a, b)
    assert np.array_equal(b, a.sum(1))
