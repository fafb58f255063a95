"""Calls with effects: no step duplicates, drops or reorders them, or has two iterations make them at once."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.analysis.effects import called_name, reaches_outside
from loopwright.evaluator import difference, evaluate_terms
from loopwright.ir import Call, PrimFunc, post_order_visit
from loopwright.schedule.errors import NotProved, WouldChangeValues
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


# --- the sequence of calls is proved to stay --------------------------------------------------------------------------


@T.prim_func
def two_kinds(A: T.Buffer((4, 3), "int32"), B: T.Buffer((4, 3), "int32"), C: T.Buffer((4, 3), "int32")):
    for i, j in T.grid(4, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2
    for i, j in T.grid(4, 3):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.call_packed("harness.next", B[vi, vj])
    for i in range(4):
        with T.block("told"):
            vi = T.axis.spatial(4, i)
            T.evaluate(T.call_packed("harness.tell", vi))


KEPT = {
    "reorder beside": lambda sch: sch.reorder(*reversed(sch.get_loops("B"))),
    "parallel beside": lambda sch: sch.parallel(sch.get_loops("B")[0]),
    "compute_at the caller": lambda sch: sch.compute_at("B", sch.get_loops("C")[0]),
    "cache_read": lambda sch: sch.cache_read("C", 0, "local"),
    "cache_write": lambda sch: sch.cache_write("C", 0, "local"),
    "split": lambda sch: sch.split(sch.get_loops("C")[0], [None, 3]),
    "fuse": lambda sch: sch.fuse(*sch.get_loops("C")),
    "unroll_and_jam": lambda sch: sch.unroll_and_jam(sch.get_loops("told")[0], 2),
    "merge with the one beside": lambda sch: sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0]),
    "blockize": lambda sch: sch.blockize(sch.get_loops("C")[1]),
    "inline": lambda sch: sch.compute_inline("B"),
}


@pytest.mark.parametrize("name", KEPT)
def test_steps_that_keep_the_calls_are_accepted(name: str) -> None:
    program = two_kinds
    if name == "inline":  # what the caller sees cannot be inlined
        program = two_kinds_with_own_memory
    sch = tir.Schedule(program)
    KEPT[name](sch)
    assert sch.is_proved
    check_replay(sch, program)
    assert difference(evaluate_terms(program), evaluate_terms(sch.mod["main"])) is None


@T.prim_func
def two_kinds_with_own_memory(A: T.Buffer((4, 3), "int32"), C: T.Buffer((4, 3), "int32")):
    B = T.alloc_buffer((4, 3), "int32")
    for i, j in T.grid(4, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2
    for i, j in T.grid(4, 3):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.call_packed("harness.next", B[vi, vj])


def test_another_order_of_calls_has_a_witness() -> None:
    sch = tir.Schedule(two_kinds)
    error = refused(sch, WouldChangeValues, "reorder", "reorder", *reversed(sch.get_loops("C")))
    assert error.why == (
        "iteration (vi=0, vj=1) of C would make its call, which has effects, after iteration (vi=3, vj=0) of C, "
        "not right after iteration (vi=0, vj=0) of C"
    )
    error = refused(sch, WouldChangeValues, "add_guard", "add_guard", "told", lambda v: v < 3)
    assert error.why == "iteration (vi=3) of told would no longer make its call, which has effects"
    refused(sch, WouldChangeValues, "transform_block_layout", "transform_block_layout", "told", lambda v: (3 - v,))


def test_threads_beside_a_call() -> None:
    sch = tir.Schedule(two_kinds)
    sch.bind(sch.get_loops("B")[0], "threadIdx.x")
    sch.cache_read("C", 0, "local")
    sch.unroll_and_jam(sch.get_loops("told")[0], 2)
    assert difference(evaluate_terms(two_kinds), evaluate_terms(sch.mod["main"])) is None
    error = refused(sch, NotProved, "bind could not be proved", "bind", sch.get_loops("told")[0], "threadIdx.x")
    assert error.why == "the order in which threads call 'harness.tell' is not followed"


def test_calls_that_data_decides_on_stay_where_they_are() -> None:
    @T.prim_func
    def decided(S: T.Buffer((4,), "int32"), A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi] + 1
        for i in range(4):
            if S[i] > 0:
                with T.block("told"):
                    vi = T.axis.spatial(4, i)
                    T.evaluate(T.call_packed("harness.tell", vi))

    sch = tir.Schedule(decided)
    sch.cache_read("C", 0, "local")  # in another nest, which makes no call
    error = refused(sch, NotProved, "add_guard", "add_guard", "told", lambda v: v < 3)
    assert error.why == 'whether block "told" makes a call with effects depends on data'


# Steps that move, merge, recompute or drop statements, or run iterations at once.
KINDS = (
    "Parallel Vectorize Bind Reorder Fuse Merge Fission ComputeAt ReverseComputeAt ComputeInline ReverseComputeInline "
    "UnrollAndJam DecomposeReduction RFactor Specialize AddGuard TransformBlockLayout TransformLayout Blockize"
).split()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("template", EFFECTS, ids=lambda template: template.name)
def test_no_step_changes_the_calls(template) -> None:
    for program in template.programs((2,)):
        site = Site(program)
        for moves in site.moves(KINDS).values():
            for step in moves:
                answer = site.ask(step)
                assert answer.outcome not in (FALSE_ACCEPTANCE, BROKEN), (str(step), answer)
