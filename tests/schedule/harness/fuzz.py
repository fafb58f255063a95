"""Random programs under random schedules: the result must compute what the program computed, in every way of running.

A case is a program and at least eight steps that the engine accepted. Compared: terms where the program is small (for
all inputs at once, races included), numbers in the evaluator bit for bit, native code bit for bit, and the program that
the trace gives when it is replayed. A failing case is made small by `reduce.py`.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import prod

import numpy as np

from loopwright.analysis.thread_axes import has_threads
from loopwright.build import build
from loopwright.evaluator.errors import UninitialisedRead
from loopwright.ir import BlockRealize, PrimFunc
from loopwright.ir.structural import assert_structural_equal
from loopwright.runtime.description import UNPROVED
from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule import Schedule, Trace
from loopwright.schedule.errors import ScheduleError
from tests.agreement import Disagreement, assert_agreement
from tests.random_limits import limit_arguments, limit_function, runs
from tests.random_programs import random_arguments, random_function
from tests.schedule.harness.cases import GENERATORS, Move, Unresolved, available_kinds, places_of
from tests.schedule.harness.enumerate import ROUNDS
from tests.schedule.harness.legality import (
    ROUNDED,
    compares_by_numbers,
    first_difference,
    numbers_of,
    terms_of,
    truth,
)
from tests.schedule.harness.parametric import ParametricProgram, parametric_program
from tests.schedule.harness.programs import CONVOLUTIONS, TEMPLATES, Program, random_sketch
from tests.schedule.harness.ragged import ragged_program, threaded_program, with_lets_that_run
from tests.schedule.harness.reduce import Failing, Failure, reduced

SIZES = (1, 3, 5, 7, 8, 13)
STEPS = 8
REORDERED = 64  # roundings by which a sum of floats may differ from the same sum in another order

# Steps that say little about values come up less often; threads are not run on this machine.
_WEIGHTS = {"Annotate": 0.2, "Unannotate": 0.2, "AddUnitLoop": 0.4, "Unroll": 0.5, "StorageAlign": 0.4, "Bind": 0.0}
_WEIGHTS |= {"AddThreadLoop": 0.0, "Winograd": 4.0}  # of few programs, and only as long as they are as written
_WEIGHTS |= {"UnsafeSetDType": 0.0, "UnsafeHideBufferAccess": 0.0, "PadEinsum": 0.0, "SetAxisSeparator": 0.2}
_WEIGHTS |= {"ExpandProduct": 0.0}
# Schedules for GPUs: loops are bound, and what stays serial.
GPU_WEIGHTS = _WEIGHTS | {"Bind": 12.0, "Split": 3.0, "CacheRead": 2.0, "CacheWrite": 2.0, "ComputeAt": 2.0}
GPU_WEIGHTS |= {"Parallel": 0.0, "Winograd": 0.0, "SetScope": 2.0}


@dataclass(frozen=True)
class Seeded:
    """A program of `tests/random_programs.py`: every data type, every kind of statement; it has no smaller form.

    With `limits`, one of `tests/random_limits.py`, whose integers are near the limits of their types.
    """

    seed: int
    limits: bool = False

    @property
    def name(self) -> str:
        return f"{'limits' if self.limits else 'random'}_{self.seed}"

    def text(self, sizes: Sequence[int]) -> str:
        return str(_random_blocks(self.seed, self.limits).script())

    def smaller(self) -> Sequence[Seeded]:
        return ()


@lru_cache(maxsize=8)
def _random_blocks(seed: int, limits: bool) -> PrimFunc:
    """The first random program from `seed` on that has blocks and so can be scheduled."""
    for candidate in range(seed * 50, seed * 50 + 50):
        function = limit_function(candidate) if limits else random_function(candidate, math=False)
        if not isinstance(function.body, BlockRealize):
            continue
        if not limits:
            return function
        scalars = [param for param in function.params if param not in function.buffer_map]
        numbers = limit_arguments(function, candidate)[-len(scalars) :]
        function = function.specialize(dict(zip(scalars, numbers, strict=True)))
        if runs(function, random_arguments(function, 1)):
            return function
    raise AssertionError(f"none of 50 random programs from {seed} has blocks")


class SeededProgram(Program):
    """A random program; the function itself, not its text, is scheduled."""

    @property
    def function(self) -> PrimFunc:
        assert isinstance(self.source, Seeded)
        return _random_blocks(self.source.seed, self.source.limits)


def random_program(rng: random.Random, seed: int) -> Program:
    """A template at odd sizes, a random chain of stages, ragged loops, loops bound to threads, or every statement."""
    roll = rng.random()
    if roll < 0.1:
        return SeededProgram(Seeded(seed, rng.random() < 0.5), ())  # type: ignore[arg-type]
    if roll < 0.14:
        return Program(rng.choice(CONVOLUTIONS), (rng.choice(SIZES), rng.choice((1, 2, 5))))
    if roll < 0.25:
        return ragged_program(seed)
    if roll < 0.29:
        return parametric_program(seed)
    if roll < 0.33:
        return threaded_program(seed)
    source = rng.choice(TEMPLATES) if roll < 0.6 else random_sketch(seed)
    rank = getattr(source, "rank", 3)
    while True:
        sizes = tuple([rng.choice(SIZES) for _ in range(rank)])
        if prod(sizes) <= 300:
            return with_lets_that_run(Program(source, sizes), rng)


ONLY = {"ragged": ragged_program, "parametric": parametric_program, "threaded": threaded_program}


@dataclass
class Grown:
    """A schedule in the making."""

    program: Program
    schedule: Schedule
    moves: list[Move] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    trouble: Failure | None = None


def grow(
    program: Program,
    rng: random.Random,
    steps: int = STEPS,
    attempts: int = 60,
    weights_of: Mapping[str, float] = _WEIGHTS,
) -> Grown:
    """Ask for random steps until enough are accepted (or there is no end of refusals)."""
    grown = Grown(program, Schedule(program.function))
    kinds = available_kinds()
    weights = [weights_of.get(kind, 1.0) for kind in kinds]
    for _ in range(attempts):
        if len(grown.moves) >= steps:
            break
        (kind,) = rng.choices(kinds, weights)
        places = places_of(grown.schedule.view())
        deep = max([len(nest) for nest in places.nests], default=0) > 7
        if deep and kind in ("Split", "AddUnitLoop"):
            continue
        moves = list(GENERATORS[kind](places))
        if not moves:
            continue
        step = rng.choice(moves)
        grown.asked[kind] += 1
        trace = grown.schedule.trace
        length = len(trace.insts)
        try:
            step.apply(grown.schedule)
        except (ScheduleError, Unresolved):
            while len(trace.insts) > length:  # the questions asked for the refused step
                trace.pop()
            continue
        except Exception as error:  # the engine broke: that is a failing case of its own
            grown.moves.append(step)
            grown.trouble = Failure("broken", f"{step} raises {type(error).__name__}: {error}")
            break
        grown.accepted[kind] += 1
        grown.moves.append(step)
    return grown


# --- checking -----------------------------------------------------------------------------------------------------


FORMS = ("objects", "JSON")


def check(program: Program, moves: Sequence[Move], native: bool = True, forms: Sequence[str] = FORMS) -> Failure | None:
    """What is wrong with the program under these steps; a step that is refused raises ScheduleError."""
    sch = Schedule(program.function)
    for step in moves:
        try:
            step.apply(sch)
        except (ScheduleError, Unresolved):
            raise
        except Exception as error:
            return Failure("broken", f"{step} raises {type(error).__name__}: {error}")
    return check_schedule(program, sch, native, forms)


def check_schedule(
    program: Program, sch: Schedule, native: bool = True, forms: Sequence[str] = FORMS
) -> Failure | None:
    """The same for a schedule that is already made."""
    before, after = program.function, sch.view().function
    if isinstance(program, ParametricProgram):
        try:
            why = program.wrong_after(after)
        except LoopwrightError as error:
            return Failure("broken", f"{type(error).__name__}: {error}")
        return _wrong_replay(program, sch, forms) if why is None else Failure("parameters", why)
    within = ROUNDED if any([inst.kind.name in ROUNDS for inst in sch.trace.insts]) else 0.0
    # Programs with floats are compared on terms: a reordered sum rounds differently, and may.
    compare = _disagreement if isinstance(program, SeededProgram) else _wrong_numbers
    try:
        if within:
            wrong = _wrong_numbers(before, after, native, within)
        else:
            wrong = _wrong_terms(program, before, after) or compare(before, after, native)
        return wrong or _wrong_replay(program, sch, forms)
    except LoopwrightError as error:
        return Failure("broken", f"{type(error).__name__}: {error}")


def _wrong_terms(program: Program, before: PrimFunc, after: PrimFunc) -> Failure | None:
    if prod(program.sizes) > 150:
        return None
    expected = terms_of(before)
    real = None if expected is None else truth(expected, after)
    if real is None or real.is_right:
        return None
    if not real.is_race and compares_by_numbers(before):
        return _wrong_numbers(before, after, native=False, reordered=True)
    return Failure("race" if real.is_race else "terms", real.why)


def _wrong_numbers(
    before: PrimFunc, after: PrimFunc, native: bool, within: float = 0.0, reordered: bool = False
) -> Failure | None:
    """Do both give the same numbers (`within` of the largest; sums of floats that are `reordered` may round)?"""
    arguments = random_arguments(before, 1)
    expected = numbers_of(before, arguments)
    assert not isinstance(expected, str), expected
    got = numbers_of(after, arguments)
    if isinstance(got, str):
        return Failure("numbers", got)
    why = first_difference(before, got, expected, within, REORDERED if reordered else 0)
    if why is not None:
        return Failure("numbers", why)
    if not native or has_threads(after.body):  # a CPU has no threads
        return None
    results = [np.array(array) for array in arguments]
    try:
        build(after)(*results)
    except UninitialisedRead:  # a copy of what nobody uses
        return None
    why = first_difference(before, results, expected, within)
    return None if why is None else Failure("native", why)


def _disagreement(before: PrimFunc, after: PrimFunc, native: bool) -> Failure | None:
    """Does the scheduled program give the same bits at every stage of lowering, and natively?"""
    if not native or has_threads(after.body):
        return None
    try:
        assert_agreement(after, random_arguments(after, 1))
    except Disagreement as error:
        return Failure("stages", str(error))
    except UninitialisedRead:  # a copy of what nobody uses, which the evaluator on numbers does not run
        return None
    return None


def _wrong_replay(program: Program, sch: Schedule, forms: Sequence[str]) -> Failure | None:
    """The trace, as objects or as JSON, gives the same program; it is not proved a second time."""
    for form in forms:
        again = Schedule(program.function, enable_check=False)
        try:
            if form == "objects":
                sch.trace.apply_to_schedule(again)
            else:
                Trace.apply_json_to_schedule(json.dumps(sch.trace.as_json()), again)
            assert_structural_equal(again.mod["main"].without_attr(UNPROVED), sch.mod["main"], block_names=True)
        except Exception as error:  # any failure to replay is what is looked for
            return Failure(f"replay from {form}", f"{type(error).__name__}: {error}")
    return None


# --- the campaign -------------------------------------------------------------------------------------------------


@dataclass
class Campaign:
    """What a run of many cases found."""

    cases: int = 0
    steps: int = 0
    short: int = 0  # fewer steps than wanted were accepted
    asked: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    failing: list[Failing] = field(default_factory=list)

    def join(self, other: Campaign) -> None:
        self.cases += other.cases
        self.steps += other.steps
        self.short += other.short
        self.asked.update(other.asked)
        self.accepted.update(other.accepted)
        self.failing += other.failing


def fuzz(
    seeds: Sequence[int],
    native_every: int = 1,
    steps: int = STEPS,
    reduce_failures: bool = True,
    only: str | None = None,
) -> Campaign:
    """One case for each seed, on programs of one kind alone ("ragged", "parametric", "threaded") or on all.

    Every `native_every`-th is also built and run natively, and its trace replayed.
    """
    found = Campaign()
    for seed in seeds:
        rng = random.Random(seed)
        native = seed % native_every == 0
        grown = grow(ONLY[only](seed) if only else random_program(rng, seed), rng, steps)
        found.cases += 1
        found.steps += len(grown.moves)
        found.short += len(grown.moves) < steps
        found.asked.update(grown.asked)
        found.accepted.update(grown.accepted)
        forms = FORMS[seed // native_every % 2 :][:1] if native else ()
        failure = grown.trouble or check_schedule(grown.program, grown.schedule, native, forms)
        if failure is not None:
            failing = Failing(grown.program, tuple(grown.moves), failure)
            if reduce_failures:
                failing = reduced(failing, partial(check, native=native, forms=forms))
            found.failing.append(failing)
    return found
