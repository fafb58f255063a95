"""Suggestions in refusals: each was tried and proved, is written as the user would write it, and changes nothing."""

from __future__ import annotations

from functools import partial

import pytest

from loopwright import te, tir
from loopwright.evaluator import difference, evaluate_terms
from loopwright.schedule import Schedule, ScheduleError
from loopwright.schedule.diagnose import suggestions
from loopwright.script import tir as T
from tests.schedule.harness.cases import Unresolved
from tests.schedule.harness.enumerate import cases
from tests.schedule.harness.legality import truth_about
from tests.schedule.steps import assert_same_numbers, chain, check_replay, matmul, refused

pytestmark = pytest.mark.usefixtures("with_suggestions")


def refusal(sch, _step):
    """The error of a refused step, caught where no variable but `sch` has a name for anything."""
    with pytest.raises(ScheduleError) as _caught:
        _step()
    return _caught.value


def suggested(sch, func, step, *args, **options):
    """The suggestions of a refusal. Reading them changes nothing; each one is accepted, and keeps every value."""
    refused(sch, ScheduleError, "LW02", step, *args, **options)
    state, mod, insts = sch._random.getstate(), sch.mod["main"], list(sch.trace.insts)
    error = refusal(sch, partial(getattr(sch, step), *args, **options))
    texts = error.fields["suggestions"]
    assert texts == [str(suggestion) for suggestion in error.suggestions]
    for text in texts:
        assert f"  what would work: {text} (proved)" in str(error)
    assert sch.mod["main"] is mod
    assert sch.trace.insts == insts
    assert sch._random.getstate() == state
    for suggestion in error.suggestions:
        written, applied = sch.copy(), sch.copy()
        exec(suggestion.text, {"sch": written})
        suggestion.apply(applied)
        for other in (written, applied):
            assert other.mod["main"] is not mod
            if any("decompose" in step.method for step in other.trace.insts):  # updates copied in and out are no set
                assert_same_numbers(other.mod["main"], func)
            else:
                assert difference(evaluate_terms(func), evaluate_terms(other.mod["main"], check_races=True)) is None
        check_replay(applied, func)
    return texts


# --- loop kinds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["parallel", "vectorize"])
def test_another_loop_for_a_reduction(step):
    sch = Schedule(matmul())
    found = suggested(sch, matmul(), step, sch.get_loops("C")[2])
    positions = [0, 1] if step == "parallel" else [1, 0]
    assert found == [f'sch.{step}(sch.get_loops("C")[{position}])' for position in positions]


def test_another_loop_for_bind():
    sch = Schedule(matmul())
    found = suggested(sch, matmul(), "bind", sch.get_loops("C")[2], "blockIdx.x")
    assert found[0] == 'sch.bind(sch.get_loops("C")[0], "blockIdx.x")'


@T.prim_func
def shift(A: T.Buffer(9)):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi + 1]


def test_lanes_where_threads_race():
    sch = Schedule(shift)
    assert suggested(sch, shift, "parallel", sch.get_loops("A")[0]) == ['sch.vectorize(sch.get_loops("A")[0])']


@T.prim_func
def shared_row(A: T.Buffer((6, 4)), C: T.Buffer((6, 4))):
    R = T.alloc_buffer((4,))
    for i in range(6):
        for j in range(4):
            with T.block("R"):
                vi, vj = T.axis.remap("SS", [i, j])
                R[vj] = A[vi, vj] + 1.0
        for j in range(4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = R[vj] * 2.0


def test_memory_of_its_own_for_each_iteration():
    sch = Schedule(shared_row)
    sch.parallel(sch.get_loops("R")[0])  # needs no help
    sch = Schedule(shared_row)
    found = suggested(sch, shared_row, "vectorize", sch.get_loops("R")[0])
    assert found[0] == 'sch.sink_alloc("R", "R"); sch.vectorize(sch.get_loops("R")[0])'


def test_a_symbolic_extent_is_split_into_lanes():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    func = te.create_prim_func([A, te.compute((n,), lambda i: A[i] + 1.0, name="B")])
    sch = Schedule(func)
    error = refusal(sch, partial(sch.vectorize, sch.get_loops("B")[0]))
    assert error.fields["suggestions"] == ['_, i_1 = sch.split(sch.get_loops("B")[0], [None, 8]); sch.vectorize(i_1)']


# --- shapes of nests ------------------------------------------------------------------------------------------------


@T.prim_func
def recurrence(A: T.Buffer((5, 5, 3))):
    for i, j, k in T.grid(4, 4, 3):
        with T.block("A"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            A[vi + 1, vj, vk] = A[vi, vj + 1, vk] + 1.0


def test_other_orders():
    sch = Schedule(recurrence)
    i, j, k = sch.get_loops("A")
    found = suggested(sch, recurrence, "reorder", j, i, k)
    i, j, k = (f'sch.get_loops("A")[{position}]' for position in range(3))
    assert found == [f"sch.reorder({order})" for order in (f"{i}, {k}, {j}", f"{k}, {i}, {j}")]


def test_statements_between_the_loops_are_divided_off():
    sch = Schedule(shared_row)
    i, j = sch.get_loops("C")
    assert suggested(sch, shared_row, "reorder", j, i) == []  # every row goes through the same memory

    @T.prim_func
    def func(A: T.Buffer((6, 4)), B: T.Buffer((6, 4)), C: T.Buffer((6, 4))):
        for i in range(6):
            for j in range(4):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] + 1.0
            for j in range(4):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi, vj] * 2.0

    sch = Schedule(func)
    i, j = sch.get_loops("C")
    found = suggested(sch, func, "reorder", j, i)
    first, second = 'sch.get_loops("B")[0]', 'sch.get_loops("C")[1]'
    assert found == [f"_, i_1 = sch.fission({first}); sch.reorder({second}, i_1)"]


def test_loops_brought_together_before_they_are_fused():
    sch = Schedule(matmul())
    i, j, k = sch.get_loops("C")
    found = suggested(sch, matmul(), "fuse", i, k)
    assert found[0].startswith("sch.reorder(")
    assert "; sch.fuse(" in found[0]


def test_notes_are_taken_off_first():
    sch = Schedule(matmul())
    i, j, k = sch.get_loops("C")
    sch.annotate(i, "note", 1)
    found = suggested(sch, matmul(), "split", i, [None, 2])
    loop = 'sch.get_loops("C")[0]'
    assert found == [f'sch.unannotate({loop}, "note"); sch.split({loop}, [None, 2])']
    assert suggested(sch, matmul(), "fuse", i, j)[0].startswith("sch.unannotate(")


def test_factors_that_are_too_small():
    sch = Schedule(matmul())
    assert suggested(sch, matmul(), "split", sch.get_loops("C")[0], [1, 4]) == [
        'sch.split(sch.get_loops("C")[0], [None, 4])'
    ]


def test_a_tail_that_cannot_be_peeled():
    sch = Schedule(matmul())
    found = suggested(sch, matmul(), "split", sch.get_loops("C")[2], [None, 8], tail="peel")
    assert found[0] == 'sch.split(sch.get_loops("C")[2], [None, 8])'


def reversed_rows(n=8):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[n - 1 - i] * 2.0, name="C")
    return te.create_prim_func([A, C])


def test_merging_what_runs_the_other_way_round():
    sch = Schedule(reversed_rows())
    assert suggested(sch, reversed_rows(), "merge", sch.get_loops("B")[0], sch.get_loops("C")[0]) == [
        'sch.compute_at("B", sch.get_loops("C")[0])',
        'sch.reverse_compute_at("C", sch.get_loops("B")[0])',
        'sch.compute_inline("B")',
    ]


def test_merging_further_out():
    @T.prim_func
    def func(A: T.Buffer((4, 6)), B: T.Buffer((4, 6)), C: T.Buffer((4, 6))):
        for i, j in T.grid(4, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + 1.0
        for i, j in T.grid(4, 6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, 5 - vj]

    sch = Schedule(func)
    found = suggested(sch, func, "merge", sch.get_loops("B")[1], sch.get_loops("C")[1])
    assert found[0] == 'sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])'
    found = suggested(sch, func, "merge", sch.get_loops("B")[0], sch.get_loops("C")[1])
    assert found[0] == 'sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])'


def test_dividing_elsewhere():
    @T.prim_func
    def func(A: T.Buffer(6), B: T.Buffer(6), C: T.Buffer(6)):
        S = T.alloc_buffer((1,))
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                B[vi] = A[vi]
            with T.block("S"):
                vi = T.axis.spatial(6, i)
                S[0] = A[vi]
            with T.block("C"):
                vi = T.axis.spatial(6, i)
                C[vi] = S[0]

    sch = Schedule(func)
    assert suggested(sch, func, "fission", sch.get_loops("S")[0], 2) == ['sch.fission(sch.get_loops("B")[0])']


# --- moving computation ---------------------------------------------------------------------------------------------


def test_a_place_where_the_producer_is_needed():
    sch = Schedule(chain())
    found = suggested(sch, chain(), "compute_at", "D", sch.get_loops("F")[1])
    assert found[0] == 'sch.compute_at("D", sch.get_loops("E")[0])'


def test_a_place_behind_the_producer():
    sch = Schedule(chain())
    found = suggested(sch, chain(), "reverse_compute_at", "E", sch.get_loops("D")[2])
    assert found[0] == 'sch.reverse_compute_at("E", sch.get_loops("D")[1])'


def test_a_reduction_is_moved_instead_of_inlined():
    sch = Schedule(chain())
    found = suggested(sch, chain(), "compute_inline", "D")
    assert found[0] == 'sch.compute_at("D", sch.get_loops("E")[1])'
    found = suggested(sch, chain(), "reverse_compute_inline", "E")
    assert found[0] == 'sch.reverse_compute_at("E", sch.get_loops("D")[1])'


@T.prim_func
def two_writers(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(4):
        with T.block("again"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


def test_two_writers():
    sch = Schedule(two_writers)
    for text in suggested(sch, two_writers, "compute_inline", "B"):
        assert "compute_inline" not in text


def test_a_start_value_further_out():
    sch = Schedule(matmul())
    i, j, k = sch.get_loops("C")
    sch.reorder(k, i, j)
    found = suggested(sch, matmul(), "decompose_reduction", "C", sch.get_loops("C")[1])
    assert found == ['sch.decompose_reduction("C", sch.get_loops("C")[0])']


# --- memory ---------------------------------------------------------------------------------------------------------


def test_staging_a_reduction_after_its_start_value_has_a_block():
    sch = Schedule(matmul())
    i, j, k = sch.get_loops("C")
    found = suggested(sch, matmul(), "stage", "C", k, "C")
    loops = [f'sch.get_loops("C")[{position}]' for position in range(3)]
    assert f'sch.stage("C", {loops[1]}, "C")' in found
    assert any("decompose_reduction" in text for text in found)


def test_several_writers_share_a_window():
    sch = Schedule(matmul())
    sch.decompose_reduction("C", sch.get_loops("C")[2])
    found = suggested(sch, matmul(), "cache_write", "C_update", 0, "local")
    assert 'sch.stage("C_update", sch.get_loops("C_update")[2], "C", storage_scope="local")' in found


def test_a_copy_of_an_argument_may_be_stored_anyhow():
    sch = Schedule(matmul())
    found = suggested(sch, matmul(), "set_scope", "C", 0, "local")
    assert found == ['sch.cache_write("C", 0, storage_scope="local")']
    found = suggested(sch, matmul(), "storage_align", "C", 0, 0, 8, 1)
    assert found == ['sch.cache_write("C", 0); sch.storage_align("C", 0, 0, 8, 1)']


def test_a_layout_with_room():
    sch = Schedule(chain())
    found = suggested(sch, chain(), "transform_layout", "D", ("write", 0), lambda i, j: (i // 3, j, i % 3))
    assert found[0] == 'sch.transform_layout("D", ["write", 0], lambda i, j: (i // 3, j, i % 3), pad_value=0)'


def test_a_window_in_each_iteration():
    sch = Schedule(chain())
    assert all("stage" in text for text in suggested(sch, chain(), "sink_alloc", "D", "D"))


def test_memory_is_lifted_out_of_the_way():
    sch = Schedule(shared_row)
    sch.sink_alloc("R", "R")
    i, _ = sch.get_loops("R")
    found = suggested(sch, shared_row, "fission", i)
    assert found == [] or all("lift_alloc" in text for text in found)


# --- words ----------------------------------------------------------------------------------------------------------


def test_in_the_users_own_names():
    mine = Schedule(matmul())
    rows, cols, red = mine.get_loops("C")
    loops = mine.get_loops("C")
    with pytest.raises(ScheduleError) as caught:
        mine.parallel(red)
    assert caught.value.fields["suggestions"] == ["mine.parallel(rows)", "mine.parallel(cols)"]
    del rows, cols
    with pytest.raises(ScheduleError) as caught:
        mine.parallel(red)
    assert [str(item) for item in caught.value.suggestions] == ["mine.parallel(loops[0])", "mine.parallel(loops[1])"]
    assert loops


def test_in_the_names_of_the_module_where_a_lambda_has_none():
    names = {"Schedule": Schedule, "program": matmul()}
    exec("mine = Schedule(program)\nrows, cols, red = mine.get_loops('C')\nstep = lambda: mine.parallel(red)", names)
    with pytest.raises(ScheduleError) as caught:
        names["step"]()
    assert caught.value.fields["suggestions"] == ["mine.parallel(rows)", "mine.parallel(cols)"]


def test_several_functions():
    module = tir.Schedule(matmul()).mod
    other = chain().with_attr("global_symbol", "other")
    module["other"] = other
    sch = Schedule(module)
    loops = sch.get_loops(sch.get_block("D", "other"))
    with pytest.raises(ScheduleError) as caught:
        sch.parallel(loops.pop())
    del loops
    found = caught.value.fields["suggestions"]
    assert found[0] == 'sch.parallel(sch.get_loops(sch.get_block("D", "other"))[0])'
    exec(found[0])


def test_nothing_is_tried_until_somebody_reads(monkeypatch):
    tried = []
    monkeypatch.setattr(suggestions, "alternatives", lambda asked: tried.append(asked) or iter(()))
    sch = Schedule(matmul())
    with pytest.raises(ScheduleError) as caught:
        sch.parallel(sch.get_loops("C")[2])
    assert tried == []
    assert caught.value.fields["buffer"] == "C"
    assert tried == []
    str(caught.value), str(caught.value), caught.value.suggestions
    assert len(tried) == 1


def test_the_program_as_it_was_when_it_was_refused():
    sch = Schedule(matmul())
    i, j, k = sch.get_loops("C")
    with pytest.raises(ScheduleError) as caught:
        sch.parallel(k)
    sch.parallel(i)
    sch.fuse(j, k)
    assert caught.value.fields["suggestions"] == ["sch.parallel(i)", "sch.parallel(j)"]


def test_no_more_than_the_time_there_is(monkeypatch):
    monkeypatch.setattr(suggestions, "TIME", -1.0)
    sch = Schedule(matmul())
    with pytest.raises(ScheduleError) as caught:
        sch.parallel(sch.get_loops("C")[2])
    assert caught.value.suggestions == []
    assert "what would work" not in str(caught.value)


def test_arguments_that_make_no_sense_have_hints():
    sch = Schedule(matmul())
    error = refused(sch, ScheduleError, "there is no thread axis", "bind", sch.get_loops("C")[0], "nowhere")
    assert error.suggestions == []
    assert "hint: use one of blockIdx.x" in str(error)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", [1, 2])
def test_on_many_small_programs(seed):
    """Whatever is refused, what is suggested can be done as written, and is right."""
    read = 0
    for (site, move), _ in zip(cases(seed), range(80), strict=False):
        sch = site.schedule.copy()
        try:
            move.apply(sch)
        except ScheduleError as error:
            before, length = sch.view().function, len(sch.trace.insts)
            for suggestion in error.suggestions:
                read += 1
                other = sch.copy()
                exec(suggestion.text, {"sch": other})
                real = truth_about(site.program.function, other.view().function)
                assert real is None or real.is_right, f"{site.program.name}: {move}: {suggestion}: {real.why}"
            assert sch.view().function is before
            assert len(sch.trace.insts) == length
        except Unresolved:
            continue
    assert read > 0
