"""Calls with effects: no step duplicates, drops or reorders them, or has two iterations make them at once."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.analysis.effects import called_name, reaches_outside
from loopwright.evaluator import difference, evaluate_terms
from loopwright.ir import Call, PrimFunc, post_order_visit
from loopwright.schedule.errors import NotProved
from loopwright.script import tir as T
from tests.schedule.harness.enumerate import BROKEN, FALSE_ACCEPTANCE, Site
from tests.schedule.harness.programs import EFFECTS
from tests.schedule.steps import check_replay, refused


@T.prim_func
def counted(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4, 8), "int32")):
    for i, j in T.grid(4, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + T.call_packed("test.next", vi)


@T.prim_func
def announced(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4, 8), "int32")):
    for i in range(4):
        for j in range(8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + 1
        with T.block("told"):
            vi = T.axis.spatial(4, i)
            T.evaluate(T.call_extern("int32", "line_done", vi))


@pytest.mark.parametrize(("program", "block", "name"), [(counted, "C", "test.next"), (announced, "told", "line_done")])
@pytest.mark.parametrize("step", ["parallel", "vectorize", "bind"])
def test_iterations_that_call_do_not_run_at_once(program: PrimFunc, block: str, name: str, step: str) -> None:
    sch = tir.Schedule(program)
    loop = sch.get_loops(block)[0]
    options = ("threadIdx.x",) if step == "bind" else ()
    error = refused(sch, NotProved, f"{step}: loop i could not be proved", step, loop, *options)
    assert f"its iterations call '{name}', which may have effects" in (error.why or "")


def test_a_loop_beside_the_call_is_free() -> None:
    sch = tir.Schedule(announced)
    sch.vectorize(sch.get_loops("C")[1])
    check_replay(sch, announced)
    assert difference(evaluate_terms(announced), evaluate_terms(sch.mod["main"])) is None


def test_a_loop_of_one_iteration_is_free() -> None:
    sch = tir.Schedule(counted)
    outer, _ = sch.split(sch.get_loops("C")[0], [1, None])
    sch.parallel(outer)
    check_replay(sch, counted)


@T.prim_func
def written_parallel(C: T.Buffer((4,), "int32")):
    for i in T.parallel(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = T.call_packed("test.next", vi)


def test_a_loop_written_as_parallel_is_held_to_the_same_rule() -> None:
    with pytest.raises(NotProved, match="Schedule: loop i could not be proved"):
        tir.Schedule(written_parallel)


def test_pure_calls_are_free() -> None:
    @T.prim_func
    def pure(A: T.Buffer(8), C: T.Buffer(8)):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = T.call_pure_extern("float32", "sinf", A[vi])

    sch = tir.Schedule(pure)
    sch.parallel(sch.get_loops("C")[0])
    check_replay(sch, pure)


def test_what_reaches_outside() -> None:
    @T.prim_func
    def calls(A: T.Buffer(8), C: T.Buffer(8)):
        for i in range(8):
            C[i] = T.exp(A[i])
            T.evaluate(T.call_packed("one", i))
            T.evaluate(T.call_extern("int32", "two", i))
            T.evaluate(T.call_pure_extern("int32", "three", i))

    found: list[str] = []

    def look(node: object) -> None:
        if isinstance(node, Call) and reaches_outside(node):
            found.append(called_name(node))

    post_order_visit(calls.body, look)
    assert found == ["'one'", "'two'"]


# Steps that move, merge, recompute or drop statements, or run iterations at once.
KINDS = (
    "Parallel Vectorize Bind Reorder Fuse Merge Fission ComputeAt ReverseComputeAt ComputeInline ReverseComputeInline "
    "UnrollAndJam DecomposeReduction RFactor Specialize AddGuard TransformBlockLayout TransformLayout Blockize"
).split()


@pytest.mark.parametrize("template", EFFECTS, ids=lambda template: template.name)
def test_no_step_changes_the_calls(template) -> None:
    for program in template.programs((2,)):
        site = Site(program)
        for moves in site.moves(KINDS).values():
            for step in moves:
                answer = site.ask(step)
                assert answer.outcome not in (FALSE_ACCEPTANCE, BROKEN), (str(step), answer)
