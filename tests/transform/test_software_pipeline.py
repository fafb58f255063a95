"""software_pipeline: statements of different iterations run side by side, where their dependences allow it."""

from __future__ import annotations

import pytest

from loopwright.evaluator import evaluate
from loopwright.ir.verifier import verify
from loopwright.schedule import Schedule
from loopwright.script import from_source
from loopwright.script import tir as T
from loopwright.transform import (
    BadAnnotation,
    NotAPipeline,
    PipelineBreaksDependence,
    PipelineMismatch,
    compact_buffers,
    lower,
    software_pipeline,
)
from tests.transform.before_after import (
    PLAIN,
    check_all,
    lowered,
    same_at_every_stage,
    same_native,
    same_program,
    same_results,
)


def test_two_stages():
    @T.prim_func
    def before(A: T.Buffer((8,)), C: T.Buffer((8,))):
        for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
            B = T.decl_buffer((1,))
            B[0] = A[i] * T.float32(2)
            C[i] = B[0] + T.float32(1)

    @T.prim_func
    def after(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.decl_buffer((2, 1))
        B[0, 0] = A[0] * T.float32(2)
        for i in range(7):
            B[(i + 1) % 2, 0] = A[i + 1] * T.float32(2)
            C[i] = B[i % 2, 0] + T.float32(1)
        C[7] = B[1, 0] + T.float32(1)

    check_all(software_pipeline, before, after)


def test_one_version_is_enough_when_the_reader_runs_first():
    @T.prim_func
    def before(A: T.Buffer((8,)), C: T.Buffer((8,))):
        for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [1, 0]}):
            B = T.decl_buffer((1,))
            B[0] = A[i] * T.float32(2)
            C[i] = B[0] + T.float32(1)

    @T.prim_func
    def after(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.decl_buffer((1,))
        B[0] = A[0] * T.float32(2)
        for i in range(7):
            C[i] = B[0] + T.float32(1)
            B[0] = A[i + 1] * T.float32(2)
        C[7] = B[0] + T.float32(1)

    check_all(software_pipeline, before, after)


def test_a_buffer_of_a_double_buffer_scope_has_two_versions_where_one_would_do():
    @T.prim_func
    def before(A: T.Buffer((8,)), C: T.Buffer((8,))):
        for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [1, 0]}):
            B = T.decl_buffer((1,))
            with T.attr(B.data, "double_buffer_scope", 1):
                B[0] = A[i] * T.float32(2)
            C[i] = B[0] + T.float32(1)

    @T.prim_func
    def after(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.decl_buffer((2, 1))
        with T.attr(B.data, "double_buffer_scope", 1):
            B[0, 0] = A[0] * T.float32(2)
        for i in range(7):
            C[i] = B[i % 2, 0] + T.float32(1)
            with T.attr(B.data, "double_buffer_scope", 1):
                B[(i + 1) % 2, 0] = A[i + 1] * T.float32(2)
        C[7] = B[1, 0] + T.float32(1)

    check_all(software_pipeline, before, after)


PREDICATED = {"software_pipeline_predicated": 1}


def test_conditions_in_place_of_an_epilogue():
    @T.prim_func
    def before(A: T.Buffer((8,)), C: T.Buffer((8,))):
        for i in T.serial(
            8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [1, 0], **PREDICATED}
        ):
            B = T.decl_buffer((1,))
            B[0] = A[i] * T.float32(2)
            C[i] = B[0] + T.float32(1)

    @T.prim_func
    def after(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.decl_buffer((1,))
        B[0] = A[0] * T.float32(2)
        for i in range(8):
            C[i] = B[0] + T.float32(1)
            if i + 1 < 8:
                B[0] = A[i + 1] * T.float32(2)

    check_all(software_pipeline, before, after)


def test_blocks_and_reductions_keep_their_numbers():
    """The start value of a reduction becomes a statement of its own during lowering; it belongs to its block."""

    @T.prim_func
    def func(A: T.Buffer((16, 8)), C: T.Buffer((16, 8))):
        for i in T.serial(16, annotations={"software_pipeline_stage": [0, 0, 1], "software_pipeline_order": [0, 2, 1]}):
            with T.block("o"):
                vi = T.axis.spatial(16, i)
                B = T.alloc_buffer((8,))
                D = T.alloc_buffer((1,))
                for k in range(8):
                    with T.block("B"):
                        w = T.axis.spatial(8, k)
                        B[w] = A[vi, w]
                for k in range(8):
                    with T.block("D"):
                        w = T.axis.reduce(8, k)
                        with T.init():
                            D[0] = T.float32(0)
                        D[0] = D[0] + B[w]
                for k in range(8):
                    with T.block("C"):
                        w = T.axis.spatial(8, k)
                        C[vi, w] = D[0] + A[vi, w]

    @T.prim_func
    def after(A: T.Buffer((16, 8)), C: T.Buffer((16, 8))):
        B = T.decl_buffer((8,))
        D = T.decl_buffer((1,))
        for k in range(8):
            B[k] = A[0, k]
        D[0] = T.float32(0)
        for k in range(8):
            D[0] = D[0] + B[k]
        for i in range(15):
            for k in range(8):
                B[k] = A[i + 1, k]
            for k in range(8):
                C[i, k] = D[0] + A[i, k]
            D[0] = T.float32(0)
            for k in range(8):
                D[0] = D[0] + B[k]
        for k in range(8):
            C[15, k] = D[0] + A[15, k]

    same_program(lowered(func, compact_buffers, software_pipeline), after)
    same_at_every_stage(func)
    same_native(func, after)


SOURCE = """
@T.prim_func
def main(A: T.Buffer(({n}, 4)), C: T.Buffer(({n}, 4))):
    for i in T.serial({n}, annotations={{
        "software_pipeline_stage": {stages}, "software_pipeline_order": {orders},
        "software_pipeline_predicated": {p}}}):
        B = T.decl_buffer((4,))
        D = T.decl_buffer((4,))
        for k in range(4):
            B[k] = A[i, k] + T.float32(1)
        for k in T.vectorized(4):
            D[k] = B[3 - k] * T.float32(2)
        for k in range(4):
            C[i, k] = D[k] + A[i, k]
"""


@pytest.mark.one_in(4)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
@pytest.mark.parametrize(
    ("stages", "orders"),
    [
        ([0, 0, 0], [0, 1, 2]),
        ([0, 1, 2], [0, 1, 2]),
        ([0, 1, 2], [2, 1, 0]),
        ([0, 1, 1], [2, 0, 1]),
        ([0, 2, 3], [0, 1, 2]),
    ],
)
@pytest.mark.parametrize("predicated", [0, 1])
def test_every_length_and_shape(n, stages, orders, predicated):
    func = from_source(SOURCE.format(n=n, stages=stages, orders=orders, p=predicated))
    got = software_pipeline(func)
    assert "software_pipeline" not in got.script()
    same_results(func, got)
    same_at_every_stage(func)
    same_native(func, got)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8])
def test_a_length_known_when_the_program_runs(n):
    import numpy as np

    import loopwright

    @T.prim_func
    def func(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 4))
        C = T.match_buffer(c, (n, 4))
        for i in T.serial(n, annotations={"software_pipeline_stage": [0, 2], "software_pipeline_order": [1, 0]}):
            B = T.decl_buffer((4,))
            for k in range(4):
                B[k] = A[i, k]
            for k in range(4):
                C[i, k] = B[3 - k]

    got = software_pipeline(func)
    a = np.random.default_rng(0).random((n, 4), "float32")
    for run in (lambda *x: evaluate(func, *x), lambda *x: evaluate(got, *x), loopwright.build(got)):
        c = np.zeros((n, 4), "float32")
        run(a, c)
        np.testing.assert_array_equal(c, a[:, ::-1])


def test_a_condition_and_a_let_around_the_statements():
    @T.prim_func
    def before(A: T.Buffer((8,)), C: T.Buffer((8,)), n: T.int32):
        for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
            B = T.decl_buffer((1,))
            if i < n:
                with T.LetStmt(7 - i) as j:
                    B[0] = A[j]
                    C[j] = B[0] + T.float32(1)

    got = software_pipeline(before)
    same_results(before, got)
    same_native(before, got)


def test_views_of_memory_from_outside():
    @T.prim_func
    def before(A: T.Buffer((32,)), C: T.Buffer((8,))):
        for i in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
            B = T.decl_buffer((1,))
            rows = T.decl_buffer((8, 4), data=A.data)
            part = T.decl_buffer((4,), data=A.data, elem_offset=i * 4)
            B[0] = rows[i, 1] * T.float32(2)
            C[i] = B[0] + part[2]

    got = software_pipeline(before)
    verify(got)
    same_results(before, got)
    same_at_every_stage(before)
    same_native(before, got)


def test_a_schedule_asks_for_it():
    @T.prim_func
    def func(A: T.Buffer((16, 16)), C: T.Buffer((16, 16))):
        B = T.alloc_buffer((16, 16))
        for i, j in T.grid(16, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(16, 16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, 15 - vj] + T.float32(1)

    sch = Schedule(func)
    loop = sch.get_loops(sch.get_block("C"))[0]
    sch.compute_at(sch.get_block("B"), loop)
    sch.sink_alloc(sch.get_block("B"), "B")
    sch.annotate(loop, "software_pipeline_stage", [0, 1])
    sch.annotate(loop, "software_pipeline_order", [0, 1])
    scheduled = next(iter(sch.mod.functions.values()))
    text = lower(scheduled, PLAIN, stop_after="software_pipeline")
    assert "B = T.decl_buffer((2, 1, 16))" in next(iter(text.functions.values())).script()
    same_at_every_stage(scheduled)
    same_native(func, scheduled)


def test_async_stages_say_nothing_on_a_cpu():
    func = from_source(
        SOURCE.format(n=5, stages=[0, 1, 2], orders=[0, 1, 2], p=0).replace(
            '"software_pipeline_order"', '"software_pipeline_async_stages": [0], "software_pipeline_order"'
        )
    )
    got = software_pipeline(func)
    assert "async" not in got.script()
    same_results(func, got)


def pipeline_of(body: str, stages: object, orders: object = None, head: str = "T.serial(8, ") -> object:
    note = {"software_pipeline_stage": stages, "software_pipeline_order": orders}
    note = {key: value for key, value in note.items() if value is not None}
    text = f"@T.prim_func\ndef main(A: T.Buffer((16,)), C: T.Buffer((16,))):\n    for i in {head}annotations={note}):\n"
    return software_pipeline(from_source(text + "".join(f"        {line}\n" for line in body.splitlines())))


@pytest.mark.parametrize(
    ("body", "stages", "orders", "broken"),
    [
        # One iteration reads what the same iteration writes.
        ("A[i] = 1.0\nC[i] = A[i]", [1, 0], [0, 1], (0, 1, "the same iteration")),
        ("A[i] = 1.0\nC[i] = A[i]", [0, 0], [1, 0], (0, 1, "the same iteration")),
        # The next iteration reads what this one writes: the writer may not lag behind by more than that.
        ("C[i] = A[i]\nA[i + 1] = 2.0", [0, 1], [0, 1], (1, 0, "1 iteration later")),
        ("C[i] = A[i]\nA[i + 2] = 2.0", [0, 3], [0, 1], (1, 0, "2 iterations later")),
        # A write must not overtake a read of the old value.
        ("C[i] = A[i + 1]\nA[i] = 2.0", [2, 0], [0, 1], (0, 1, "1 iteration later")),
    ],
)
def test_what_dependences_forbid(body, stages, orders, broken):
    text = r"statement {1} needs A as statement {0} left it \({2}\)".format(*broken)
    with pytest.raises(PipelineBreaksDependence, match=text) as caught:
        pipeline_of(body, stages, orders)
    assert "has stage" in str(caught.value) and "hint: give statement" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "stages", "orders"),
    [
        ("C[i] = A[i]\nA[i + 1] = 2.0", [0, 1], [1, 0]),  # the write of iteration i runs right before its reader
        ("C[i] = A[i]\nA[i + 2] = 2.0", [0, 2], [1, 0]),
        ("C[i] = A[i]\nA[i + 8] = 2.0", [0, 5], [0, 1]),  # too far apart to meet
        ("C[i] = A[i + 1]\nA[i] = 2.0", [1, 0], [0, 1]),
        ("C[2 * i] = A[i]\nC[2 * i + 1] = A[i + 1]", [3, 0], [0, 1]),  # even and odd cells
    ],
)
def test_what_dependences_allow(body, stages, orders):
    got = pipeline_of(body, stages, orders)
    plain = from_source(
        "@T.prim_func\ndef main(A: T.Buffer((16,)), C: T.Buffer((16,))):\n    for i in range(8):\n"
        + "".join(f"        {line}\n" for line in body.splitlines())
    )
    same_results(plain, got)
    same_native(plain, got)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("first", range(0, 240, 40))
def test_what_is_accepted_keeps_every_value(first):
    """Random statements on two arrays and a private cell, random stages and orders."""
    from random import Random

    for seed in range(first, first + 40):
        random = Random(seed)
        body = []
        for _ in range(random.choice([2, 2, 3])):
            target, source = [
                "B[0]" if name == "B" else f"{name}[{random.choice(['i', 'i + 1', 'i + 2', '2 * i', '7 - i', '3'])}]"
                for name in random.choices("ABC", k=2)
            ]
            body.append(f"{target} = {source} * 0.5 + 1.0")
        if any("B[0] *" in line for line in body):
            body.insert(0, "B[0] = A[i] - 1.0")
        orders = list(range(len(body)))
        random.shuffle(orders)
        stages = [random.randrange(3) for _ in body]
        lines = "".join(f"        {line}\n" for line in ["B = T.decl_buffer((1,))", *body])
        head = "@T.prim_func\ndef main(A: T.Buffer((16,)), C: T.Buffer((16,))):\n    for i in T.serial(5{}):\n"
        note = {"software_pipeline_stage": stages, "software_pipeline_order": orders}
        try:
            got = software_pipeline(from_source(head.format(f", annotations={note}") + lines))
        except PipelineBreaksDependence:
            continue
        same_results(from_source(head.format("") + lines), got)


def test_calls_with_effects_keep_their_order():
    body = 'T.evaluate(T.call_extern("int32", "f", i))\nT.evaluate(T.call_extern("int32", "g", i))'
    with pytest.raises(PipelineBreaksDependence, match="needs the effects of its calls as statement 1 left it"):
        pipeline_of(body, [0, 1], [0, 1])


@pytest.mark.parametrize(
    ("stages", "orders", "error", "text"),
    [
        ([0], [0, 1], PipelineMismatch, "software_pipeline_stage has 1 numbers, and its body has 2 statements"),
        ([0, 1], [0, 0], PipelineMismatch, r"software_pipeline_order is \[0, 0\]"),
        ([0, 1], None, PipelineMismatch, "it has software_pipeline_stage but no software_pipeline_order"),
        (None, [0, 1], PipelineMismatch, "it has software_pipeline_order but no software_pipeline_stage"),
        (1, [0, 1], BadAnnotation, "the annotation software_pipeline_stage is 1"),
        ([0, -1], [0, 1], BadAnnotation, r"the annotation software_pipeline_stage is \[0, -1\]"),
    ],
)
def test_annotations_that_do_not_fit(stages, orders, error, text):
    with pytest.raises(error, match=text):
        pipeline_of("A[i] = 1.0\nC[i] = A[i]", stages, orders)


def test_only_serial_loops():
    with pytest.raises(NotAPipeline, match="loop i cannot run as a software pipeline") as caught:
        pipeline_of("A[i] = 1.0\nC[i] = A[i]", [0, 1], [0, 1], head="T.parallel(8, ")
    assert "it is a parallel loop" in str(caught.value)


def test_the_number_of_iterations_is_read_once():
    @T.prim_func
    def func(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32"), t: T.Buffer((2,), "int32")):
        t[0] = 8
        for i in T.serial(
            t[0], annotations={"software_pipeline_stage": [0, 0, 1], "software_pipeline_order": [0, 1, 2]}
        ):
            B = T.decl_buffer((1,), "int32")
            B[0] = A[i] * 2
            t[0] = 3
            C[i] = B[0] + 1

    same_results(func, software_pipeline(func))
    same_at_every_stage(func)
    same_native(func, software_pipeline(func))


def test_a_size_that_is_read_from_memory_may_differ_between_iterations():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32"), t: T.Buffer((1,), "int32")):
        t[0] = 1
        for i in T.serial(8, annotations={"software_pipeline_stage": [0, 0, 1], "software_pipeline_order": [0, 1, 2]}):
            B = T.decl_buffer((t[0],), "int32")
            B[i] = A[i] * 2
            t[0] = i + 2
            C[i] = B[i] + 1

    with pytest.raises(NotAPipeline, match="loop i cannot run as a software pipeline") as caught:
        software_pipeline(func)
    assert "the size of B differs between iterations" in str(caught.value)
