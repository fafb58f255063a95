"""Blocks that do not run over all values of their axes: triangles, bands, every other cell, loops of negative extents.

A step that gives such a block new loops must keep it from running where it did not run, or show that it may.
"""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.evaluator import evaluate
from loopwright.ir import PrimFunc
from loopwright.schedule import Schedule
from loopwright.schedule.errors import NotProved, NotSupported, ScheduleError, WouldChangeValues
from loopwright.schedule.primitives.compute.compute_inline import NotInlinable
from loopwright.schedule.primitives.compute.rfactor import NotFactorable
from loopwright.schedule.proof.buffer_scopes import LeavesScope
from loopwright.schedule.proof.speculative_runs import FailsInExtraRuns
from loopwright.schedule.rewrite.iteration_domain import NotOnItsOwnTerms
from loopwright.script import from_source
from tests.schedule.harness.programs import TEMPLATES, Program
from tests.schedule.steps import assert_same_numbers, check, refused


def ragged(name: str, *sizes: int):
    (template,) = [template for template in TEMPLATES if template.name == name]
    return Program(template, sizes).function


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("name", ["triangle_that_reads_within_bounds", "upper_triangles"])
def test_compute_at_keeps_a_triangle(name, depth):
    program = ragged(name, 5)
    sch = Schedule(program)
    sch.compute_at("B", sch.get_loops("C")[depth])
    check(sch, program)


def test_reverse_compute_at_keeps_a_triangle():
    program = ragged("upper_triangles", 5)
    sch = Schedule(program)
    sch.reverse_compute_at("C", sch.get_loops("B")[0])
    check(sch, program)


@pytest.mark.parametrize("depth", [0, 1])
def test_compute_at_of_a_band(depth):
    program = ragged("band_of_a_matrix", 4, 3)
    sch = Schedule(program)
    sch.compute_at("B", sch.get_loops("C")[depth])
    check(sch, program)


def test_compute_at_where_rows_may_be_empty():
    program = ragged("rows_of_negative_extents", 5, 3)
    sch = Schedule(program)
    sch.compute_at("B", sch.get_loops("C")[0])
    assert "T.where(" in sch.mod["main"].script()
    check(sch, program)


def test_transform_block_layout_keeps_a_triangle():
    program = ragged("triangle_that_reads_within_bounds", 4)
    sch = Schedule(program)
    sch.transform_block_layout("B", lambda i, j: (j, i))
    check(sch, program)


def test_transform_block_layout_of_a_band_would_read_outside():
    """No bounds of the axes, each for itself, say where a band is: its block would run beside it."""
    sch = Schedule(ragged("band_of_a_matrix", 3, 3))
    refused(sch, FailsInExtraRuns, "is outside its shape", "transform_block_layout", "B", lambda i, j: (j, i))


def test_the_size_of_a_copy_names_no_loop_of_the_block():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((6, 6), "int32"), C: T.Buffer((6, 6), "int32")):
    for i in range(6):
        for j in range(i):
            with T.block("C"):
                vi = T.axis.spatial(6, i)
                vj = T.axis.spatial(i, j)
                C[vi, vj] = A[vi, vj] + 1
""")
    problem = "the domain of axis vj of block 'C' depends on loops: i"
    refused(Schedule(program), NotSupported, problem, "reindex", "C", ("read", 0))


@pytest.mark.parametrize("sizes", [(1, 1), (1, 4), (4, 2)])
def test_blockize_starts_over_the_loops_that_bounds_name(sizes):
    program = ragged("sums_of_negative_extents", *sizes)
    sch = Schedule(program)
    sch.blockize(sch.get_loops("C")[0])
    check(sch, program)


def test_padding_where_bounds_of_axes_depend_on_loops():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((6, 6, 6), "int32"), C: T.Buffer((6,), "int32")):
    B = T.alloc_buffer((6, 6, 6), "int32")
    for i in range(6):
        for j, k in T.grid(i - 3, i - 4):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                B[vi, vj, vk] = A[vi, vj, vk] * 3
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            C[vi] = T.if_then_else(vi > 4, B[vi, 0, 0], 0)
""")
    sch = Schedule(program)
    sch.split(sch.get_loops("B")[2], [None, 4], tail="pad")
    assert "B = T.alloc_buffer((6, 6, 6)" in sch.mod["main"].script()
    check(sch, program)


def test_a_block_that_never_runs_gets_no_dimensions_of_negative_size():
    sch = Schedule(ragged("cells_of_negative_extents", 1, 4))
    sch.reindex_cache_write("C", 0, "global", lambda i, j, k: (k, j, i))
    refused(sch, NotInlinable, "one cell may belong to several iterations", "compute_inline", "C")


# --- conditions that say which updates happen, or which cells start ---------------------------------------------------

GUARDED = """
@T.prim_func
def main(X: T.Buffer((4,), "int32"), E: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 4):
        with T.block("b"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where({condition})
            with T.init():
                E[vi] = 1
            E[vi] = E[vi] + X[vk]
    for i, k in T.grid(4, 4):
        with T.block("c"):
            vi, vk = T.axis.remap("SR", [i, k])
            E[vi] = E[vi] + X[vk]
"""
CONDITIONS = [
    "k >= 4",
    "i >= 2 and k > 5",
    "(k + 1) % 2 == 2",
    "i * 4 + k < 8",
    "i < 2 or k < 0",
    "i * 0 + k >= 0",
    "i - k > 9",
]
STEPS = {
    "split i": lambda sch: sch.split(sch.get_loops("b")[0], [2, None]),
    "split k": lambda sch: sch.split(sch.get_loops("b")[-1], [2, None]),
    "split i unevenly": lambda sch: sch.split(sch.get_loops("b")[0], [None, 3]),
    "split k unevenly": lambda sch: sch.split(sch.get_loops("b")[-1], [None, 3]),
    "split k into one": lambda sch: sch.split(sch.get_loops("b")[-1], [None, 4], preserve_unit_iters=False),
    "split a loop of one": lambda sch: sch.split(sch.get_loops("b")[-1], [1, None]),
    "fuse": lambda sch: sch.fuse(*sch.get_loops("b")),
    "reorder": lambda sch: sch.reorder(*sch.get_loops("b")[::-1]),
    "merge": lambda sch: sch.merge(sch.get_loops("b")[0], sch.get_loops("c")[0]),
}


def guarded_result(program: PrimFunc) -> list[int]:
    result = np.arange(40, 44, dtype="int32")
    evaluate(program, np.arange(4, dtype="int32"), result)
    return result.tolist()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_is_same_kind_loops_after_two_steps(condition):
    """Where nothing is updated the reduction starts all the same, unless the condition names other loops too."""
    program = from_source(GUARDED.format(condition=condition))
    wanted = guarded_result(program)
    for first in STEPS.values():
        for second in STEPS.values():
            sch = Schedule(program)
            try:
                first(sch)
                second(sch)
            except ScheduleError:
                continue
            assert guarded_result(sch.mod["main"]) == wanted


def test_a_loop_of_one_iteration_ties_nothing():
    """`k_0 * N[0] + k_1` is under no condition on other loops than those of the reduction, as `k` was."""
    program = from_source("""
@T.prim_func
def main(N: T.Buffer((1,), "int32"), B: T.Buffer((4,), "int32"), D: T.Buffer((2,), "int32")):
    for k in range(N[0]):
        with T.block("b"):
            vk = T.axis.reduce(4, k)
            T.where(k * 2 != 4)
            with T.init():
                D[0] = 5
            D[0] = T.max(D[0], B[vk])
""")
    sch = Schedule(program)
    sch.split(sch.get_loops("b")[0], [1, None])
    for count in (0, 2, 3):
        result = np.full(2, 99, "int32")
        evaluate(sch.mod["main"], np.full(1, count, "int32"), np.arange(4, dtype="int32") * 3, result)
        assert result.tolist() == [max(5, *[3 * k for k in range(count) if k != 2], 0), 99]


def test_what_only_a_start_reads_is_not_staged_inside_the_reduction():
    program = from_source("""
@T.prim_func
def main(B: T.Buffer((5,), "int32"), D: T.Buffer((5,), "int32")):
    for i, k in T.grid(5, 2):
        with T.block("b"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                D[vi] = B[vi]
            D[vi] = D[vi] + vk
""")
    sch = Schedule(program)
    problem = "stage would move a use of B_stage out of the scope where B_stage lives"
    refused(sch, LeavesScope, problem, "stage", "b", sch.get_loops("b")[1], 0)
    sch.stage("b", sch.get_loops("b")[0], 0)
    check(sch, program)


def test_a_loop_of_negative_extent_beside_cells_that_are_shared():
    program = from_source("""
@T.prim_func
def main(C: T.Buffer((5,), "int32")):
    for j in range(6, 5):
        for k in range(5):
            with T.block("b"):
                vk, vj = T.axis.spatial(5, k), T.axis.reduce(7, j)
                with T.init():
                    C[vk // 2] = 3
                C[vk // 2] = C[vk // 2] * 2 + vj
""")
    sch = Schedule(program)
    refused(sch, NotSupported, "loop j may have no iterations", "fuse", *sch.get_loops("b"))


def test_reverse_compute_inline_of_a_band_would_read_outside():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((2,), "int32"), C: T.Buffer((3, 4), "int32")):
    B = T.alloc_buffer((3, 4), "int32")
    for i, j in T.grid(3, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = vi * 4 + vj
    for i, j in T.grid(3, 2):
        with T.block("C"):
            vi, vj = T.axis.spatial(3, i), T.axis.spatial(4, i + j)
            C[vi, vj] = B[vi, vj] + A[vj - vi]
""")
    refused(Schedule(program), FailsInExtraRuns, "is outside its shape", "reverse_compute_inline", "C")


def test_reverse_compute_inline_keeps_a_triangle():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((5,), "int32"), C: T.Buffer((5, 5), "int32")):
    B = T.alloc_buffer((5, 5), "int32")
    for i, j in T.grid(5, 5):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = vi * 4 + vj
    for i in range(5):
        for j in range(i):
            with T.block("C"):
                vi, vj = T.axis.spatial(5, i), T.axis.spatial(5, j)
                C[vi, vj] = B[vi, vj] + A[vi - vj - 1]
""")
    sch = Schedule(program)
    sch.reverse_compute_inline("C")
    check(sch, program)


def test_a_condition_on_a_loop_of_one_iteration_is_not_taken_for_one_on_updates():
    sch = Schedule(ragged("updates_of_some_rows", 1, 4))
    before = sch.mod["main"]
    sch.fuse(sch.add_unit_loop(sch.get_loops("C")[0]), sch.get_loops("C")[1])  # its variable is 0
    sch.fuse(*sch.get_loops("C"))
    assert_same_numbers(sch.mod["main"], before)


def test_rfactor_under_a_condition_on_a_loop_that_no_axis_is_bound_to():
    sch = Schedule(ragged("updates_of_some_rows", 1, 3))
    sch.unroll_and_jam(sch.get_loops("C")[1], 2)
    problem = "the guard i >= 1 is on loop i, which no axis of the block is bound to"
    refused(sch, NotFactorable, problem, "rfactor", sch.get_loops("C")[1], -1)


def test_extra_runs_whose_axes_have_no_bounds():
    sch = Schedule(ragged("cells_of_negative_extents", 7, 8))
    sch.split(sch.get_loops("C")[1], [None, 4, 2])
    sch.fuse(*sch.get_loops("C")[2:])
    refused(sch, NotSupported, "how far axis vj of block 'C' runs is not known", "remove_guard", "C", 0)


ROWS_OF_ROWS = """
@T.prim_func
def main(a: T.handle, N: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (n, n), "int32")
    B = T.alloc_buffer((n, n), "int32")
    for i in range(n):
        for j in range(i):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                vj = T.axis.spatial(i, {value})
                B[vi, vj] = A[vi, vj] + 1
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi, 0]
"""


@pytest.mark.parametrize("step", ["split", "remove_guard"])
def test_an_axis_without_bounds_is_not_padded(step):
    sch = Schedule(from_source(ROWS_OF_ROWS.format(value="j")))
    problem = f"{step}: how far axis vj of block 'B' runs is not known"
    if step == "split":
        refused(sch, NotSupported, problem, "split", sch.get_loops("B")[1], [None, 4], tail="pad")
    else:
        sch.split(sch.get_loops("B")[1], [None, 4])
        refused(sch, NotSupported, problem, "remove_guard", "B")


def test_a_domain_that_loops_say_and_a_value_without_bounds():
    sch = Schedule(from_source(ROWS_OF_ROWS.format(value="N[j]")))
    problem = "runs with .*, which has no bounds of its own"
    refused(sch, NotOnItsOwnTerms, problem, "compute_at", "B", sch.get_loops("C")[0])


def test_a_guard_on_a_reduction_that_shapes_other_loops_holds_for_its_start():
    """The init runs over j, so over i as well: a guard on i that it leaves out would let it set other cells."""
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(N: T.Buffer(8, "int32"), A: T.Buffer(8, "int32"), B: T.Buffer(8, "int32"), C: T.Buffer(8, "int32")):
    for i in range(1):
        for j in range(T.min(N[i], 2)):
            with T.block("B"):
                vi, vj = T.axis.spatial(8, i), T.axis.spatial(8, j)
                B[vj] = A[vj]
        for j in range(i - 1, i):
            with T.block("C"):
                vi, vj = T.axis.reduce(8, i), T.axis.spatial(8, 2 - j)
                with T.init():
                    C[vj] = 5
                C[vj] = C[vj] + A[vi]
""")
    sch = Schedule(program)
    sch.split(sch.get_loops("C")[0], [None, 3])
    for count in (0, 1, 2):
        results = []
        for version in (program, sch.mod["main"]):
            b, c = np.full(8, 99, "int32"), np.full(8, 99, "int32")
            evaluate(version, np.full(8, count, "int32"), np.arange(8, dtype="int32"), b, c)
            results.append((b.tolist(), c.tolist()))
        assert results[0] == results[1]


def test_indices_of_a_block_without_iterations_are_cached():
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer((6,), "int32"), B: T.Buffer((6,), "int32")):
    for i in range(-1):
        with T.block("B"):
            vi = T.axis.spatial(-1, i)
            B[vi // 2 + 1] = A[vi // 2 + 1]
""")
    sch = Schedule(program)
    sch.cache_index("B", "global", 0)
    check(sch, program)


def test_rows_without_updates_do_not_say_where_a_reduction_starts():
    """Rows 0 and 2 have one cell, and row 2 has no updates: it is one sum, however the rows are counted."""
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((2,), "int32")):
    for i in range(4):
        for j in range(2 - i):
            with T.block("B"):
                v0, v1 = T.axis.spatial(2, i % 2), T.axis.reduce(8, j - i + 4)
                with T.init():
                    B[v0] = v0
                B[v0] = B[v0] + A[v1]
""")
    a, b = np.arange(8, dtype="int32"), np.zeros(2, "int32")
    evaluate(program, a, b)
    assert b.tolist() == [4 + 5, 1 + 3]
    sch = Schedule(program)
    sch.split(sch.get_loops("B")[0], [2, 2])
    check(sch, program)


def test_rfactor_of_a_loop_that_begins_where_another_says():
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(3):
        for j in range(i, i + 1):
            with T.block("B"):
                v0, v1 = T.axis.spatial(8, i), T.axis.reduce(8, 0)
                with T.init():
                    B[v0] = 0
                B[v0] = B[v0] + A[v1]
""")
    sch = Schedule(program)
    with pytest.raises(NotFactorable, match="the bounds of loop j depend on loop i"):
        sch.rfactor(sch.get_loops("B")[1], 0)


def test_a_loop_that_comes_to_be_one_of_the_reduction_no_longer_holds_the_init():
    """Split, j is told from i, which then is bound to the reduction axis: the init would run though i has no values."""
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer((6,), "int32"), B: T.Buffer((6,), "int32")):
    for i in range(0):
        for j in range(i - 1, i - 1):
            with T.block("B"):
                v0, v1 = T.axis.spatial(6, 0), T.axis.reduce(6, j)
                with T.init():
                    B[v0] = 5
                B[v0] = B[v0] + A[v1]
""")
    sch = Schedule(program)
    with pytest.raises(WouldChangeValues, match=r"the caller reads B\[0\]"):
        sch.split(sch.get_loops("B")[1], [None, 2])


BEGINS_WHERE_THE_REDUCTION_SAYS = """
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        for j in range(i // 2):
            for k in T.serial(j - 1, j):
                with T.block("B"):
                    vi, vj = T.axis.remap("SR", [i, j])
                    with T.init():
                        B[vi] = 5
                    B[vi] = B[vi] + A[vi, vj]
"""


@pytest.mark.parametrize("tail", ["peel", "guard"])
def test_a_loop_that_begins_where_the_reduction_says_is_not_split_without_proof(tail):
    """Its iterations are those of the start as well; its parts begin at 0 and name the reduction no longer."""
    program = from_source(BEGINS_WHERE_THE_REDUCTION_SAYS)
    sch = Schedule(program)
    with pytest.raises(WouldChangeValues, match=r"B\[\d\]"):
        sch.split(sch.get_loops("B")[2], [None, 1], tail=tail)


STARTS_INSIDE = """
from loopwright.script import tir as T

@T.prim_func
def main(N: T.Buffer(1, "int32"), A: T.Buffer(4, "int32"), E: T.Buffer(1, "int32"), D: T.Buffer(4, "int32")):
    for k in range(1):
        C = T.decl_buffer((1,), "int32")
        with T.block("E"):
            v = T.axis.spatial(4, k)
            T.reads()
            T.writes(E[0])
            E[0] = v + 7
        if {condition}:
            with T.block("C"):
                r = T.axis.reduce(4, k)
                T.reads(A[r], E[0])
                T.writes(C[0])
                with T.init():
                    C[0] = E[0]
                C[0] = C[0] + A[r]
        if {condition}:
            with T.block("D"):
                v = T.axis.spatial(4, k)
                D[v] = C[0]
"""


@pytest.mark.parametrize("condition", ["k >= 0", "N[k] > 0"])
def test_memory_is_not_lifted_out_of_a_loop_where_the_init_reads_what_the_loop_writes(condition):
    """The init is outside of a condition on updates, but inside of its memory's allocation: it would move with that."""
    sch = Schedule(from_source(STARTS_INSIDE.format(condition=condition)))
    with pytest.raises(WouldChangeValues, match=r"E\[0\]"):
        sch.lift_alloc("C", "C")


@pytest.mark.parametrize("axis", ["1", "j - j + 1"])
def test_a_block_that_never_runs_is_not_made_to_run_out_of_bounds(axis):
    """What it computes is dead; that the loop has no iterations is said by no axis, and its new loops have some."""
    program = from_source(f"""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer((6, 6), "int32")):
    B = T.alloc_buffer((6, 6), "int32")
    for i in range(1):
        for j in range(0):
            with T.block("B"):
                v0 = T.axis.spatial(6, i)
                v1 = T.axis.reduce(6, {axis})
                with T.init():
                    B[v0, v0] = 5
                B[v0, v0] = B[v0, v0] + A[v0 - v1, v1]
""")
    sch = Schedule(program)
    problem = r"A\[-1, 1\] is outside its shape"
    refused(sch, FailsInExtraRuns, problem, "transform_block_layout", "B", lambda v0, v1: (v0, v1 // 2, v1 % 2))


def test_a_start_that_is_written_out_runs_over_loops_that_no_axis_is_bound_to():
    """For i = 2 there is none: j has no iterations, and v0 would be -1."""
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer((10, 10), "int32")):
    B = T.alloc_buffer((10, 10), "int32")
    for i in range(3):
        for j in range(3 - i - i):
            with T.block("B"):
                v0 = T.axis.spatial(10, 1 - i)
                v1 = T.axis.reduce(10, 0)
                with T.init():
                    B[v0, v0] = 5
                B[v0, v0] = B[v0, v0] + A[v0, v1]
""")
    sch = Schedule(program)
    sch.decompose_reduction("B", sch.get_loops("B")[1])
    assert "for j_init in range(3 - i - i)" in sch.mod["main"].script()
    check(sch, program)


def test_a_condition_on_updates_that_comes_to_name_no_loop_is_proved_or_refused():
    """Where i < 1, N[i] is N[0]: a condition that would keep the init away, and N[i] > 0 does not."""
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(N: T.Buffer(8, "int32"), A: T.Buffer(8, "int32"), B: T.Buffer(8, "int32")):
    for i in range(4):
        for j in range(T.max(4 - i, 0)):
            with T.block("B"):
                v, w = T.axis.reduce(8, i), T.axis.reduce(8, j + i)
                T.where(i < 1 and N[i] > 0)
                with T.init():
                    B[0] = 5
                B[0] = B[0] + A[v] + w
""")
    sch = Schedule(program)
    with pytest.raises(ScheduleError, match=r"split (would change a value|could not be proved)"):
        sch.split(sch.get_loops("B")[0], [3, None], tail="guard")


BOUND_READ_WHERE_A_LOOP_RUNS = """
from loopwright.script import tir as T

@T.prim_func
def main(N: T.Buffer(10, "int32"), A: T.Buffer((10, 10), "int32"), B: T.Buffer((10, 10), "int32"), s: T.int32):
    for j in range({outer}):
        for k in range({inner}):
            with T.block("B"):
                vj, vk = T.axis.remap("SS", [j, k])
                B[vj, vk] = A[vj, vk]
"""


@pytest.mark.parametrize("step", ["fuse", "reorder"])
@pytest.mark.parametrize(
    "inner, asked", [("T.min(N[s], 3)", r"N\[s\]"), ("10 // s", "10 // s"), ("T.min(N[N[0]], 3)", r"N\[N\[0\]\]")]
)
def test_a_bound_is_not_read_where_the_loop_around_has_no_iterations(step, inner, asked):
    """With s = 10 there is no j, and nobody asks for N[10]."""
    sch = Schedule(from_source(BOUND_READ_WHERE_A_LOOP_RUNS.format(outer="T.min(10 - s, 1)", inner=inner)))
    j, k = sch.get_loops("B")
    problem = rf"{asked}, in a bound of loop k, would be evaluated also where loop j has no iterations"
    refused(sch, NotSupported, problem, step, *((j, k) if step == "fuse" else (k, j)))


@pytest.mark.parametrize("step", ["fuse", "reorder"])
@pytest.mark.parametrize("outer, inner", [("2", "T.min(N[s], 3)"), ("s", "T.min(N[5], 3)"), ("s", "10 // T.max(s, 1)")])
def test_a_bound_that_can_be_read_anywhere_moves_out_of_a_loop(step, outer, inner):
    sch = Schedule(from_source(BOUND_READ_WHERE_A_LOOP_RUNS.format(outer=outer, inner=inner)))
    j, k = sch.get_loops("B")
    getattr(sch, step)(*((j, k) if step == "fuse" else (k, j)))


def test_rfactor_of_a_loop_of_negative_extent_is_refused():
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer((10, 10), "int32"), B: T.Buffer(10, "int32")):
    for i in range(10):
        for k in T.serial(1, 0):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + A[vi, vk]
""")
    sch = Schedule(program)
    refused(sch, NotFactorable, "loop k has no iterations: its extent is -1", "rfactor", sch.get_loops("B")[1], 0)


def test_a_split_comes_before_conditions_that_divide_by_an_extent_of_nothing():
    """The fused loop has no iterations, and its part `j` is `u_j_fused % 0`: nobody asks for it."""
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(B: T.Buffer((12, 12), "int32"), m: T.int32):
    for i in range(1):
        for u in range(1):
            for j in range(T.min(i, 5)):
                with T.block("B"):
                    v0, v1 = T.axis.spatial(12, i), T.axis.spatial(12, m - j)
                    T.where(m - j < 11)
                    B[v0, v1] = v0
""")
    sch = Schedule(program)
    sch.split(sch.fuse(*sch.get_loops("B")[1:]), [5, 1])
    result = np.full((12, 12), 9, "int32")
    evaluate(sch.mod["main"], result, 3)
    assert (result == 9).all()


def test_a_condition_that_ties_a_loop_of_one_iteration_still_names_it():
    """With m = -1 there is no j, so that nothing starts: `j_1 != 0` alone would not keep v = -1 from starting."""
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(m: T.int32, A: T.Buffer(12, "int32")):
    B = T.alloc_buffer((12,), "int32")
    for i, j in T.grid(1, T.min(m, 5)):
        with T.block("B"):
            v, w = T.axis.opaque(12, m - i), T.axis.reduce(12, j)
            T.where(i != j)
            with T.init():
                B[v] = 5
            B[v] = B[v] + A[w]
""")
    sch = Schedule(program)
    sch.split(sch.get_loops("B")[1], [1, None])
    for m in (-1, 0, 3):
        evaluate(sch.mod["main"], m, np.arange(12, dtype="int32"))


def test_a_padded_tile_whose_init_reads_what_lives_inside_is_refused():
    """The init of B1 comes before i, and reads B0, which lives in i: there is no writer to tell of."""
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer((12, 12), "int32"), B1: T.Buffer(12, "int32")):
    for i in range(1):
        B0 = T.decl_buffer((12, 12), "int32")
        with T.block("B0"):
            v = T.axis.spatial(12, i)
            B0[v, 0] = A[v, v]
        with T.block("B1"):
            v = T.axis.reduce(12, i)
            with T.init():
                B1[0] = B0[0, 0]
            B1[0] = B1[0] + A[v, v]
""")
    sch = Schedule(program)
    with pytest.raises(ScheduleError, match=r"B0\[0, 0\]"):
        sch.split(sch.get_loops("B0")[0], [None, 2], tail="pad")


def test_a_loop_that_simplifying_takes_out_of_a_reduction():
    """`i - i + m` is m: no axis is bound to i then, and the sum starts where i has an iteration."""
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer(8, "int32"), C: T.Buffer(1, "int32"), m: T.int32):
    for i in range(T.min(m, 5)):
        with T.block("C"):
            vi = T.axis.reduce(8, i - i + m)
            with T.init():
                C[0] = 5
            C[0] = C[0] + A[vi]
""")
    sch = Schedule(program)
    refused(sch, NotProved, "updated several times with the same axis values", "split", sch.get_loops("C")[0], [5, 1])


def test_a_guard_on_a_loop_of_one_iteration_outside_the_start():
    """`j >= m` says which updates happen: the start does not ask, in whichever loop it stands."""
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer(8, "int32"), C: T.Buffer(1, "int32"), m: T.int32):
    for i in range(1, 1 + T.min(m, 5)):
        for j in range(1, 2):
            with T.block("C"):
                v, vj = T.axis.spatial(1, 0), T.axis.reduce(8, m - j)
                T.where(j >= m)
                with T.init():
                    C[v] = 5
                C[v] = C[v] + A[vj]
""")
    sch = Schedule(program)
    i, j = sch.get_loops("C")
    sch.reorder(j, i)
    for m in range(4):
        results = []
        for version in (program, sch.mod["main"]):
            result = np.full(1, 99, "int32")
            evaluate(version, np.arange(8, dtype="int32"), result, m)
            results.append(result.tolist())
        assert results[0] == results[1]


def test_a_loop_that_simplifying_takes_out_of_the_data_axes():
    """`i - i + m` is m: i runs over the reduction alone then, which starts where i has no iterations, too."""
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer(20, "int32"), C: T.Buffer(12, "int32"), n: T.int32, m: T.int32):
    for i, j in T.grid(n, n):
        with T.block("C"):
            v, vj = T.axis.spatial(12, i - i + m), T.axis.reduce(20, j + i)
            with T.init():
                C[v] = 5
            C[v] = C[v] + A[vj]
""")
    sch = Schedule(program)
    with pytest.raises(ScheduleError, match="split"):
        sch.split(sch.get_loops("C")[0], [None, 3])
