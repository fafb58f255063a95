"""Every step of every small program: what the engine says beside the truth.

A case is a program, the steps done so far, and a step to ask for. The engine accepts it, refuses it with a witness
(`WouldChangeValues`, `WouldRace`), refuses it for want of a proof (`NotProved`), or says that it does not apply. The
truth comes from applying the step without proof, which only this harness does.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter

from loopwright.ir import PrimFunc
from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule import InstructionKind, Schedule
from loopwright.schedule.errors import NotProved, ScheduleError, WouldChangeValues, WouldRace
from loopwright.schedule.primitives import PRIMITIVES
from tests.schedule.harness.cases import Move, Unresolved, available_kinds, moves_of
from tests.schedule.harness.legality import (
    ROUNDED,
    Terms,
    compares_by_numbers,
    disproof,
    same_numbers,
    terms_of,
    truth,
)
from tests.schedule.harness.programs import Program, template_programs
from tests.schedule.harness.ragged import ragged_program, threaded_program, with_lets_that_run

RAGGED = 8  # templates for each random program of ragged loops
THREADED = 10  # templates for each program with loops that are bound to threads
LETS = 0.3  # the share of templates that are asked about with lets added

# What can come of a case, good to bad.
ACCEPTED_RIGHT = "accepted, right"
REGROUPED = "accepted, regrouped"  # the same sums, added up in another shape
COPIES_UNDEFINED = "accepted, copies undefined"  # cells that hold nothing are copied, and the copies are not used
REFUSED_RIGHT = "refused, right"
DOES_NOT_APPLY = "does not apply"
UNKNOWN = "data decides"
FALSE_REFUSAL = "false refusal"
BROKEN = "broken"  # no ScheduleError but another exception, or a program that is not well formed
FALSE_ACCEPTANCE = "FALSE ACCEPTANCE"
OUTCOMES = (
    ACCEPTED_RIGHT,
    REGROUPED,
    COPIES_UNDEFINED,
    REFUSED_RIGHT,
    FALSE_REFUSAL,
    DOES_NOT_APPLY,
    UNKNOWN,
    BROKEN,
    FALSE_ACCEPTANCE,
)


@dataclass(frozen=True)
class Case:
    """A step asked of a program after some others."""

    program: Program
    so_far: tuple[Move, ...]
    move: Move

    def __str__(self) -> str:
        return f"{self.program.name}: {' · '.join([str(step) for step in (*self.so_far, self.move)])}"


@dataclass(frozen=True)
class Answer:
    """What came of a case: the outcome, what the engine said, and the witness of the truth."""

    outcome: str
    said: str = ""
    witness: str = ""


@dataclass
class Site:
    """A program after some steps, where cases are asked: made once, used for all of them."""

    program: Program
    so_far: tuple[Move, ...] = ()
    schedule: Schedule = field(init=False)
    unchecked: Schedule = field(init=False)
    terms: Terms | None = field(init=False)  # None when data steers the program

    def __post_init__(self) -> None:
        self.schedule = Schedule(self.program.function)
        for step in self.so_far:
            step.apply(self.schedule)
        self.unchecked = Schedule(self.function, enable_check=False)
        self.terms = terms_of(self.program.function)

    @property
    def function(self) -> PrimFunc:
        return self.schedule.view().function

    def moves(self, kinds: Sequence[str]) -> dict[str, list[Move]]:
        return moves_of(self.schedule.view(), kinds)

    def ask(self, move: Move) -> Answer:
        """The engine's answer beside the truth."""
        sch = self.schedule.copy()
        before, length = sch.view().function, len(sch.trace.insts)
        refusal: ScheduleError | None = None
        try:
            move.apply(sch)
        except (WouldChangeValues, WouldRace, NotProved) as error:
            refusal = error
        except (ScheduleError, Unresolved) as error:
            return Answer(DOES_NOT_APPLY, _said(error))
        except Exception as error:  # anything else is a bug of the engine, which the table shows
            return Answer(BROKEN, f"{type(error).__name__}: {_first_line(error)}")
        try:
            said = "" if refusal is None else _said(refusal)
        except Exception as error:  # so is a message that cannot be read
            return Answer(BROKEN, f"{type(refusal).__name__} cannot be read: {type(error).__name__}: {error}")
        if said:
            steps = [inst for inst in sch.trace.insts[length:] if not PRIMITIVES[inst.kind].is_query]
            if sch.view().function is not before or steps:
                return Answer(BROKEN, "the refused step changed the schedule", said)
            forced = self.unchecked.copy()
            try:
                move.apply(forced)
            except ScheduleError:  # the primitive itself refuses: there is no program to look at
                return Answer(DOES_NOT_APPLY, said)
            after = forced.view().function
        else:
            after = sch.view().function
        if is_unsafe(move.kind) and said:
            return Answer(UNKNOWN, said)  # it may still be refused
        if is_unsafe(move.kind):
            # Nobody proves such a step; it must say so.
            return Answer(UNKNOWN if not sch.is_proved and not sch.trace.is_proved else FALSE_ACCEPTANCE, said)
        try:
            real = None if self.terms is None else truth(self.terms, after)
            real = real or disproof(self.program.function, after)
        except LoopwrightError as error:
            if said:
                return Answer(UNKNOWN, said)  # of what nobody can run, nobody knows what it would do
            return Answer(BROKEN, f"{type(error).__name__}: {_first_line(error)}")
        if real is None:
            return Answer(UNKNOWN, said)
        first = self.program.function
        kinds = [step.kind for step in (*self.so_far, move)]
        added, rounded = any([kind in ADDS_ZEROS for kind in kinds]), any([kind in ROUNDS for kind in kinds])
        if not said and not real.is_right and not real.is_race and (added or rounded):
            if same_numbers(first, after, 4 if rounded else 16, ROUNDED if rounded else 0.0):
                return Answer(REGROUPED, "", real.why)
        if not said and not real.is_right and not real.is_race and compares_by_numbers(first):
            if same_numbers(first, after):
                return Answer(REGROUPED, "", real.why)
        if said:
            return Answer(FALSE_REFUSAL if real.legal else REFUSED_RIGHT, said, real.why)
        if real.is_regrouped or real.copies_undefined:
            return Answer(REGROUPED if real.is_regrouped else COPIES_UNDEFINED, "", real.why)
        return Answer(ACCEPTED_RIGHT if real.legal else FALSE_ACCEPTANCE, "", real.why)


def _said(error: Exception) -> str:
    if isinstance(error, ScheduleError):
        error.refusal = None  # nothing is tried instead: test_suggestions.py has cases of its own for that
    text = str(error)  # the whole message is made, as a user would see it
    return f"{type(error).__name__}: {getattr(error, 'why', None) or text.splitlines()[0]}"


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0]


ADDS_ZEROS = ("PadEinsum", "ExpandProduct")  # their sums have members that are zero: terms differ, numbers do not


ROUNDS = ("Winograd",)  # other sums, equal over the real numbers: whole numbers come out whole but for rounding


def is_unsafe(kind: str) -> bool:
    """Whether the caller vouches for the step."""
    return InstructionKind(kind).is_unsafe


# --- choosing cases -----------------------------------------------------------------------------------------------


def cases(
    seed: int,
    sizes: Sequence[int] = (1, 2, 3, 4),
    kinds: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[tuple[Site, Move]]:
    """Cases without end, even over primitives and programs; single steps and sequences of up to three."""
    rng = random.Random(seed)
    chosen = list(kinds or available_kinds())
    templates = [program for program in template_programs(sizes) if not names or program.name.split("(")[0] in names]
    ragged = len(templates) // RAGGED if not names else RAGGED * ("ragged" in names)
    threaded = len(templates) // THREADED if not names else THREADED * ("threaded" in names)
    makers: list[Callable[[], Program]] = [
        *[partial(with_lets_that_run, program, rng, LETS) for program in templates],
        *[lambda: ragged_program(rng.randrange(2**31), sizes)] * ragged,
        *[lambda: threaded_program(rng.randrange(2**31), sizes)] * threaded,
    ]
    while True:
        rng.shuffle(makers)
        for make in makers:
            site = Site(make())
            for _ in range(rng.choice((0, 0, 1, 1, 2))):
                site = after_one_step(site, rng, chosen)
            by_kind = site.moves(chosen)
            for kind in chosen:
                if by_kind[kind]:
                    yield site, rng.choice(by_kind[kind])


# Steps that change little for those after them.
_NOTES = ("Annotate", "Unannotate", "Prefetch", "StorageAlign", "Unroll")


def after_one_step(site: Site, rng: random.Random, kinds: Sequence[str]) -> Site:
    """The program after a step that the engine accepts, or as it is when a few tries found none."""
    by_kind = site.moves(kinds)
    weights = [0.2 if kind in _NOTES else 1.0 for kind in kinds]
    for _ in range(6):
        (kind,) = rng.choices(list(kinds), weights)
        moves = [] if is_unsafe(kind) else by_kind[kind]
        if moves:
            step = rng.choice(moves)
            try:
                return Site(site.program, (*site.so_far, step))
            except Exception:  # refused, or broken: both are counted where the step is asked as a case
                continue
    return site


def all_single_steps(sizes: Sequence[int], kinds: Sequence[str] | None = None) -> Iterator[tuple[Site, Move]]:
    """Every step of every template at every size, once."""
    chosen = list(kinds or available_kinds())
    for program in template_programs(sizes):
        site = Site(program)
        for moves in site.moves(chosen).values():
            for step in moves:
                yield site, step


# --- counting -----------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """How often each outcome came, by primitive; every bad case in full."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    false_acceptances: list[tuple[Case, Answer]] = field(default_factory=list)
    false_refusals: list[tuple[Case, Answer]] = field(default_factory=list)
    broken: list[tuple[Case, Answer]] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")  # seconds that the longest case took, and which one it was

    def add(self, case: Case, answer: Answer) -> None:
        self.counts.setdefault(case.move.kind, Counter())[answer.outcome] += 1
        lists = {FALSE_ACCEPTANCE: self.false_acceptances, FALSE_REFUSAL: self.false_refusals, BROKEN: self.broken}
        if answer.outcome in lists:
            lists[answer.outcome].append((case, answer))

    def join(self, other: Tally) -> None:
        for kind, counts in other.counts.items():
            self.counts.setdefault(kind, Counter()).update(counts)
        self.false_acceptances += other.false_acceptances
        self.false_refusals += other.false_refusals
        self.broken += other.broken
        self.slowest = max(self.slowest, other.slowest)

    @property
    def total(self) -> int:
        return sum([sum(counts.values()) for counts in self.counts.values()])

    def reasons(self) -> Counter[tuple[str, str]]:
        """How often each primitive refused a right step, by the kind of refusal."""
        return Counter([(case.move.kind, answer.said.split(":")[0]) for case, answer in self.false_refusals])


def run(source: Iterator[tuple[Site, Move]], limit: int) -> Tally:
    """Ask the first `limit` cases."""
    tally = Tally()
    for (site, step), _ in zip(source, range(limit), strict=False):
        case, start = Case(site.program, site.so_far, step), perf_counter()
        tally.add(case, site.ask(step))
        seconds = perf_counter() - start
        if seconds > tally.slowest[0]:
            tally.slowest = seconds, str(case)
    return tally
