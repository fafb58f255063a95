"""The engine's answers beside the truth, on a sample of small programs; see `benchmarks/enumerate_schedules.py`."""

from __future__ import annotations

import pytest

from loopwright.schedule import Schedule
from loopwright.schedule.errors import WouldChangeValues
from tests.campaign import programs
from tests.schedule.harness import enumerate as harness
from tests.schedule.harness.cases import (
    GENERATORS,
    BlockRef,
    LoopRef,
    Move,
    available_kinds,
    move,
    step_kinds,
)
from tests.schedule.harness.enumerate import Answer, Case, Site, cases, run
from tests.schedule.harness.legality import truth_about
from tests.schedule.harness.programs import BLOCKS, TEMPLATES, Program
from tests.schedule.harness.reduce import Failing, Failure, reduced

CASES = programs(200, 3000)
CHUNK = 100  # cases a test, so that two workers share the time evenly


@pytest.mark.parametrize("first", range(CHUNK, CHUNK + CASES, CHUNK))
def test_nothing_wrong_is_accepted(first):
    tally = run(cases(seed=first), CHUNK)
    assert tally.total == CHUNK
    if tally.false_acceptances:
        pytest.fail("\n\n".join([_smallest(case, answer) for case, answer in tally.false_acceptances[:3]]))
    if tally.broken:
        pytest.fail("\n".join([f"{case}\n    {answer.said}" for case, answer in tally.broken[:10]]))


def _smallest(case: Case, answer: Answer) -> str:
    failing = Failing(case.program, (*case.so_far, case.move), Failure("accepted, but wrong", answer.witness))
    return reduced(failing, wrongly_accepted).report()


def wrongly_accepted(program: Program, moves: tuple[Move, ...]) -> Failure | None:
    sch = Schedule(program.function)
    for step in moves:
        step.apply(sch)
    real = truth_about(program.function, sch.view().function)
    if real is None or real.is_right:
        return None
    return Failure("accepted, but wrong", real.why)


def test_every_step_of_the_table_is_asked_for():
    assert set(step_kinds()) == set(GENERATORS)
    assert available_kinds() == step_kinds()


# --- the harness itself -------------------------------------------------------------------------------------------

B, C, A = BlockRef("B"), BlockRef("C"), BlockRef("A")


def at(block: str, depth: int = 0) -> LoopRef:
    return LoopRef(block, depth)


def program(name: str, *sizes: int) -> Program:
    return Program(next(template for template in TEMPLATES if template.name == name), sizes)


RIGHT = [
    (program("chain", 4), move("Merge", loops=(at("B"), at("C")))),
    (program("from_the_right", 4), move("Vectorize", loop=at("A"))),
    (program("matmul", 2, 2, 3), move("Reorder", ordered_loops=(at("C", 2), at("C", 0)))),
    (program("diagonal_recurrence", 3, 3), move("Reorder", ordered_loops=(at("A", 1), at("A", 0)))),
    (program("flat_sum", 2, 3), move("Split", loop=at("C"), factors=(None, 4))),
    # Each iteration reads only what it wrote itself: the scratch memory is its own.
    (program("reused_scratch", 2, 2), move("Parallel", loop=at("B"))),
    (program("minus", 2, 2, 2), move("Reorder", ordered_loops=(at("C", 2), at("C", 1)))),
    (program("product_by_gains", 2, 2), move("Reorder", ordered_loops=(at("C", 1), at("C", 0)))),
    (program("largest_by_hand", 2, 2, 2), move("Reorder", ordered_loops=(at("C", 2), at("C", 0), at("C", 1)))),
    (program("sum_where_positive", 2, 3), move("Reorder", ordered_loops=(at("C", 1), at("C", 0)))),
    (program("any_of_the_largest_two", 1, 2, 2), move("Reorder", ordered_loops=(at("V", 2), at("V", 1)))),
    (program("two_sums_of_one_cell", 2, 3), move("Merge", loops=(at("first", 1), at("second", 1)))),
    (program("horner", 2, 2, 2), move("Reorder", ordered_loops=(at("C", 1), at("C", 2), at("C", 0)))),
]

WRONG = [
    (
        program("reversed_reader", 4),
        move("Merge", loops=(at("B"), at("C"))),
        "reads B[3] before anything has written it",
    ),
    (program("from_the_right", 4), move("Parallel", loop=at("A")), "iterations i=0 and i=1 both touch A[1]"),
    (program("recurrence", 3), move("Vectorize", loop=at("A")), "A[2] holds"),
    (program("skewed_recurrence", 3, 3), move("Reorder", ordered_loops=(at("A", 1), at("A", 0))), "A[2, 0] holds"),
    (program("matmul", 2, 2, 2), move("Parallel", loop=at("C", 2)), "iterations l=0 and l=1 both touch C[0, 0]"),
    (program("matmul", 2, 2, 2), move("Vectorize", loop=at("C", 2)), "C[0, 0] holds"),
    (program("last_writer_wins", 2, 2), move("Bind", loop=at("C", 1), thread_axis="threadIdx.x"), "both touch C[0]"),
    (program("reused_scratch", 2, 2), move("Fission", loop=at("B"), index=1), "C[0, 0] holds"),
    (program("squared_writer", 4), move("Parallel", loop=at("again")), "iterations i=0 and i=2 both touch C[0]"),
    (program("scatter", 4), move("Parallel", loop=at("B")), "both touch B["),
    (program("gather", 4), move("Merge", loops=(at("B"), at("C"))), "before anything has written it"),
    # Two iterations of R have the same axes and compute different values.
    (program("same_axes_other_values", 2), move("Fission", loop=at("S"), index=2), "C[0] holds"),
    # Seen from the caller, each thread of a bound loop has a C of its own, and nobody reads them all.
    (program("private_sum", 2, 2), move("Bind", loop=at("C", 1), thread_axis="blockIdx.x"), "both touch C["),
    (program("private_sum", 2, 2), move("Bind", loop=at("C", 1), thread_axis="vthread"), "both touch C["),
    (program("flat_sum", 2, 2), move("Bind", loop=at("C", 0), thread_axis="threadIdx.x"), "both touch C["),
    # Updates that do not commute are a chain, though they run over reduction axes.
    *[
        (program(name, 1, 2, 2), move("Reorder", ordered_loops=(at(block, 2), at(block, 1))), f"{cell}[0] holds")
        for name, block, cell in [
            ("horner", "C", "C"),
            ("alternating_sum", "C", "C"),
            ("last_positive", "C", "C"),
            ("saturating_sum", "C", "C"),
            ("narrow_largest", "C", "C"),
            ("sum_up_to_a_limit", "C", "C"),
            ("first_of_the_largest", "V", "I"),
            ("last_of_the_smallest", "V", "I"),
            ("value_before_its_place", "V", "I"),
            ("composed_maps", "X", "Y"),
            ("sum_of_running_sums", "S", "S"),
        ]
    ],
    # Nothing is summed, but each thread would start the cell.
    (
        program("sums_of_a_triangle", 1),
        move("AddThreadLoop", loop=at("C"), thread_axis="threadIdx.x", extent=2),
        "both touch C[0]",
    ),
    (program("sum_and_gain", 1, 2), move("Merge", loops=(at("sum", 1), at("gain", 1))), "C[0] holds"),
    (program("sum_and_largest", 1, 2), move("Merge", loops=(at("sum", 1), at("largest", 1))), "C[0] holds"),
]


def _forced(case: Program, step: Move) -> Schedule:
    sch = Schedule(case.function, enable_check=False)
    step.apply(sch)
    return sch


@pytest.mark.parametrize(("case", "step"), RIGHT, ids=lambda value: str(getattr(value, "name", value)))
def test_the_truth_about_right_steps(case, step):
    real = truth_about(case.function, _forced(case, step).view().function)
    assert real is not None and real.legal, real
    assert Site(case).ask(step).outcome == harness.ACCEPTED_RIGHT


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("case", "step", "witness"), WRONG, ids=lambda value: str(getattr(value, "name", value))[:60])
def test_the_truth_about_wrong_steps(case, step, witness):
    real = truth_about(case.function, _forced(case, step).view().function)
    assert real is not None and not real.legal
    assert witness in real.why
    assert Site(case).ask(step).outcome == harness.REFUSED_RIGHT


@pytest.mark.parametrize(
    "step",
    [
        move("Prefetch", block=BlockRef("C"), loop=at("C", 2), buffer=0, distance=1),
        move("ReadAt", loop=at("C", 2), block=BlockRef("C"), read_buffer_index=0, storage_scope="global"),
        move("Stage", block=BlockRef("C"), loop=at("C", 2), buffer=0, storage_scope="global", layout=None),
    ],
    ids=lambda step: step.kind,
)
def test_what_stands_beside_a_reduction_over_threads_changes_whose_turn_it_is(step):
    bound = move("Bind", loop=at("C", 1), thread_axis="threadIdx.x")
    chain, total = program("horner", 1, 2, 2), program("minus", 1, 2, 2)
    assert Site(chain, (bound,)).ask(step).outcome == harness.REFUSED_RIGHT
    assert Site(total, (bound,)).ask(step).outcome == harness.ACCEPTED_RIGHT


def test_a_loop_that_comes_to_carry_a_reduction_moves_its_starts():
    """Each of two rows starts the cell they share; with a loop that runs twice, all starts would come before it."""
    turned = move("Reorder", ordered_loops=(at("C", 1), at("C", 0)))
    step = move("Split", loop=at("C"), factors=(2, None), preserve_unit_iters=True, tail="guard")
    assert Site(program("starts_in_one_cell", 3, 1), (turned,)).ask(step).outcome == harness.REFUSED_RIGHT


def test_a_witness_is_found_where_isl_takes_its_set_for_empty():
    sch = Schedule(program("horner", 3, 3, 4).function)
    sch.fuse(*sch.get_loops("C"))
    with pytest.raises(WouldChangeValues, match=r"iteration \(vi=0, vj=0, vl=3\) of C reads C\[0\], but iteration"):
        sch.add_guard("C", lambda v0, v1, v2: v2 != 2)


def test_memory_of_an_iteration_inside_of_threads_is_no_race():
    case = Program(next(template for template in BLOCKS if template.name == "halo_in_a_parallel_loop"), (3, 1))
    local = move("SetScope", block=BlockRef("B"), buffer_index=0, storage_scope="local")
    step = move("AddThreadLoop", loop=at("B"), thread_axis="threadIdx.x", extent=1)
    assert Site(case, (local,)).ask(step).outcome == harness.ACCEPTED_RIGHT


def test_a_long_chain_of_choices_is_compared_link_by_link():
    """Each link names the one before it three times: written out, sixteen of them would be millions of terms."""
    case = program("first_of_the_largest", 1, 4, 4)
    step = move("Reorder", ordered_loops=(at("V", 2), at("V", 1)))
    real = truth_about(case.function, _forced(case, step).view().function)
    assert real is not None and not real.is_right


def test_chains_deeper_than_the_stack_are_compared():
    """One update is inside the next: 1,400 of them are more than the interpreter would call."""
    case = program("horner", 1, 2, 700)
    step = move("Reorder", ordered_loops=(at("C", 2), at("C", 1)))
    real = truth_about(case.function, _forced(case, step).view().function)
    assert real is not None and not real.is_right and not real.is_regrouped


def test_an_engine_without_proofs_is_found_out():
    site = Site(program("reversed_reader", 4))
    site.schedule = site.unchecked
    answer = site.ask(move("Merge", loops=(at("B"), at("C"))))
    assert answer.outcome == harness.FALSE_ACCEPTANCE
    assert "reads B[3] before anything has written it" in answer.witness


def test_a_failing_case_is_made_small():
    steps = (
        move("Annotate", block_or_loop=B, ann_key="note", ann_val=1),
        move("Merge", loops=(at("B"), at("C"))),
        move("Unroll", loop=at("B")),
    )

    def fails(case: Program, moves: tuple[Move, ...]) -> Failure | None:
        sch = Schedule(case.function, enable_check=False)
        for step in moves:
            step.apply(sch)
        real = truth_about(case.function, sch.view().function)
        return None if real is None or real.is_right else Failure("wrong", real.why)

    start = program("reversed_reader", 7)
    failure = fails(start, steps)
    assert failure is not None
    found = reduced(Failing(start, steps, failure), fails)
    assert found.program == program("reversed_reader", 2)
    assert found.moves == (move("Merge", loops=(at("B"), at("C"))),)
