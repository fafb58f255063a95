"""TaskSearch: the search for one task: its spaces, what was tried, and the incumbent.

    search = TaskSearch(task, measurer, ...)
    search.start()          candidate 0, the rule's own schedule, measured alone; what a database knows races it
    search.round(8)         some candidates are proposed, built, and raced against the incumbent
    search.finish()         the incumbent against the rule once more, fresh: who loses that is not kept

The incumbent is replaced only by a candidate that won an interleaved race beyond the noise. Its seconds are those of
the rule divided by the ratios of the races it won, so that a machine that becomes slower does not look like progress.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from math import inf, sqrt
from statistics import median

import numpy as np

from loopwright.schedule import Schedule
from loopwright.tune.candidate import Candidate
from loopwright.tune.database import Database
from loopwright.tune.database.tuned import distance, fits
from loopwright.tune.measure import BuildJob, Built, Failure, Measured, Measurer
from loopwright.tune.model import CostModel, Experience
from loopwright.tune.record import Record
from loopwright.tune.space import Batch, Space
from loopwright.tune.space.space import Integers
from loopwright.tune.strategy import Strategy
from loopwright.tune.strategy.seen import Seen
from loopwright.tune.task import Task
from loopwright.tune.versions import versions
from loopwright.tune.workload import FARTHEST

_KNOWN_FIRST = 3  # records of this and of similar workloads that race at the start
_NUMBERS = re.compile(r"[0-9.]+")
_MOST_NOISE = 0.02  # that a candidate has to be faster by: on a machine that is noisier, intervals are wider anyway
_MOST_IDLE = 8  # rounds of nothing but duplicates: what is left of the space are other names for the same programs
_IN_ONE_SPACE = 16  # trials before another space is looked at, whose sketches take seconds to be made
_OTHER_SPACE = 0.25  # of the rounds after them go to the space that has not found the incumbent
_FAR_SPACE = 0.08  # the same, where the best of that space is far from the incumbent
_PROPOSED_BEFORE = 4  # candidates of a round are to be raced yet when the next round is begun: it takes to be built
_NEAR = 1.15  # times the seconds of the incumbent


@dataclass(frozen=True)
class Trial:
    """One candidate, and what became of it."""

    number: int
    candidate: Candidate
    built: Built
    measured: Measured | None  # None where it was not built
    seconds: float  # of one call, in terms of the rule's; inf where it failed
    is_best: bool  # it is the incumbent from here on

    @property
    def failure(self) -> Failure | None:
        return self.built.failure or (self.measured.failure if self.measured is not None else None)

    @property
    def is_duplicate(self) -> bool:
        """Whether it was a program that was built before: that took a moment, and counts as no trial of a budget."""
        return self.failure is not None and self.failure.kind == "duplicate"


@dataclass
class Incumbent:
    """The best schedule so far; `ratio` is how many times faster than the rule's it is."""

    candidate: Candidate
    built: Built
    ratio: float = 1.0


@dataclass
class _Round:
    """Candidates that are being built."""

    space: Space
    rows: Integers
    batch: Batch
    candidates: list[Candidate]
    builds: Generator[tuple[int, Built], None, None]


@dataclass
class TaskSearch:
    """The state of the search for one task."""

    task: Task
    measurer: Measurer
    spaces: Sequence[Space]
    strategy: Strategy
    model: CostModel
    experience: Experience
    random: np.random.Generator
    database: Database | None = None
    seed: int = 0
    on_trial: Callable[[TaskSearch, Trial], None] | None = None
    trials: list[Trial] = field(default_factory=list)
    incumbent: Incumbent | None = None
    rule_seconds: float = inf
    rule: Built | None = None
    noise: float = 0.0
    notes: list[str] = field(default_factory=list)
    is_done: bool = False
    final: Measured | None = None
    finished_at: int = -1  # how many trials there were then
    has_time: Callable[[], bool] = lambda: True  # for one candidate more
    usual: float = 0.0  # seconds that a candidate takes to be built and raced, on average
    longest_race: float = 0.0
    _idle: int = 0  # rounds in a row that built nothing new
    _ahead: _Round | None = None  # what comes next, begun while the last of a round is raced
    _seen: dict[str, Seen] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Of one call of the incumbent, in terms of the rule's."""
        return inf if self.incumbent is None else self.rule_seconds / self.incumbent.ratio

    @property
    def speed_up(self) -> float:
        """How many times faster than the rule's schedule the incumbent is."""
        return 1.0 if self.incumbent is None else self.incumbent.ratio

    @property
    def spent(self) -> int:
        """Trials, of those that built something new or failed to."""
        return sum([not trial.is_duplicate for trial in self.trials])

    @property
    def seconds_to_finish(self) -> float:
        """What the race at the end should take."""
        is_open = self.incumbent is not None and self.incumbent.built is not self.rule
        return self.longest_race if is_open and self.finished_at != len(self.trials) else 0.0

    def start(self, next_count: int = 0) -> None:
        """Measure the rule's own schedule, then race what is known of this workload and of similar ones.

        While the rule is measured, what comes next is built: what is known, or the first `next_count` candidates.
        """
        first = self.spaces[0]
        candidate = first.candidate(first.first())
        (built,) = self.measurer.build(self.task.as_called, [self._job(first, candidate)])
        if built.failure is not None:
            self._give_up(candidate, built, built.failure)
            return
        self._seen_of(first).note(first.first())
        rows = self._known_rows(first)
        known = self._begin(first, rows) if len(rows) else None
        if known is None and next_count > 0:
            self._ahead = self._propose(next_count)
        measured = self.measurer.measure_alone(self.task.as_called, built)
        if measured.failure is not None:
            if known is not None:
                known.builds.close()
            self._drop_ahead()
            self._give_up(candidate, built, measured.failure)
            return
        self.rule, self.rule_seconds = built, measured.median
        self.incumbent = Incumbent(candidate, built)
        self._note(measured)
        self._seen_of(first).note(first.first(), self.rule_seconds)
        self._learn(first, first.describe(first.first()[None]), 0, self.rule_seconds)
        if self.database is not None:
            self.database.add_workload(self.task)
        self._keep(Trial(0, candidate, built, measured, self.rule_seconds, True))
        if known is not None:
            self._try(known, max(0, next_count - len(rows)))

    def round(self, count: int, next_count: int = 0) -> list[Trial]:
        """Propose, build and race `count` candidates; none are left when the answer is empty.

        `next_count` of another round are proposed, and the first of them built, while the last ones of this are raced.
        """
        begun, self._ahead = self._ahead or self._propose(count), None
        if begun is None:
            self.is_done = True
            return []
        done = self._try(begun, next_count)
        self._idle = self._idle + 1 if all([trial.is_duplicate for trial in done]) else 0
        self.is_done = self._idle >= _MOST_IDLE
        return done

    def _propose(self, count: int) -> _Round | None:
        """Candidates of the first space that has some; their builds begin."""
        for space in self._in_turn():
            self.model.fit(self.experience)
            rows = self._openings(space)[:count]
            if not len(rows):
                rows = self.strategy.propose(space, self.model, self._seen_of(space), count, self.random)
            if len(rows):
                return self._begin(space, rows)
        return None

    def finish(self) -> Measured | None:
        """The incumbent against the rule, measured afresh; the rule comes back where it is not slower.

        Who stands then is recorded as final: that is what a build takes from the database.
        """
        self._drop_ahead()
        if self.incumbent is None or self.rule is None:
            return None
        if self.incumbent.built is not self.rule:
            self.final = self._race(self.rule, self.incumbent.built)
            self._note(self.final)
            if self.final.failure is None and self.final.is_faster:
                self.incumbent.ratio = self.final.ratio
            else:
                space = self.spaces[0]
                self.incumbent = Incumbent(space.candidate(space.first()), self.rule)
        self._record(self.incumbent.candidate, self.incumbent.built, None, self.seconds, is_final=True)
        self.finished_at = len(self.trials)
        return self.final

    # --- candidates ---

    def _begin(self, space: Space, rows: Integers) -> _Round:
        seen, batch = self._seen_of(space), space.describe(rows)
        candidates = [space.candidate(row) for row in rows]
        for row in rows:
            seen.note(row)
        jobs = [self._job(space, candidate) for candidate in candidates]
        return _Round(space, rows, batch, candidates, self.measurer.build_each(self.task.as_called, jobs))

    def _try(self, begun: _Round, next_count: int = 0) -> list[Trial]:
        done: list[Trial] = []
        with closing(begun.builds):
            self._judge_all(begun, next_count, done)
        return done

    def _judge_all(self, begun: _Round, next_count: int, done: list[Trial]) -> None:
        seen, start = self._seen_of(begun.space), time.monotonic()
        for number, built in begun.builds:
            if next_count > 0 and len(done) >= len(begun.rows) - _PROPOSED_BEFORE and self.has_time():
                self._ahead, next_count = self._propose(next_count), 0  # it knows all results but a few
            trial = self._judged(len(self.trials), begun.candidates[number], built)
            seen.note(begun.rows[number], trial.seconds)
            self._learn(begun.space, begun.batch, number, trial.seconds)
            self._keep(trial)
            done.append(trial)
            took, start = time.monotonic() - start, time.monotonic()
            self.usual += (took - self.usual) / len(self.trials)
            if not self.has_time():
                break  # the others were proposed, and are lost: the time is up

    def _drop_ahead(self) -> None:
        """End what was begun for a round that does not come; another search may propose it again."""
        if self._ahead is not None:
            self._ahead.builds.close()
            self._seen_of(self._ahead.space).forget(self._ahead.rows)
            self._ahead = None

    def _race(self, incumbent: Built, challenger: Built) -> Measured:
        start = time.monotonic()
        measured = self.measurer.race(self.task.as_called, incumbent, challenger)
        self.longest_race = max(self.longest_race, time.monotonic() - start)
        return measured

    def _judged(self, number: int, candidate: Candidate, built: Built) -> Trial:
        """The trial of a candidate: raced against the incumbent, whose place it takes where it wins."""
        assert self.incumbent is not None
        if built.failure is not None:
            return Trial(number, candidate, built, None, inf, False)
        measured = self._race(self.incumbent.built, built)
        self._note(measured)
        if measured.failure is not None or measured.ratio <= 0:
            return Trial(number, candidate, built, measured, inf, False)
        ratio, wins = measured.ratio, _is_clear(measured)
        if wins:
            # In another process memory lies elsewhere: of many candidates one is lucky once, and seldom twice.
            again = self._race(self.incumbent.built, built)
            wins = _is_clear(again)
            ratio = sqrt(ratio * again.ratio) if again.failure is None else ratio
        seconds = self.seconds / ratio
        if wins:
            self.incumbent = Incumbent(candidate, built, self.incumbent.ratio * ratio)
        return Trial(number, candidate, built, measured, seconds, wins)

    def _job(self, space: Space, candidate: Candidate) -> BuildJob:
        task = self.task

        def make() -> Schedule:
            return space.schedule(candidate)

        return BuildJob(make, task.bound)

    def _in_turn(self) -> list[Space]:
        """The spaces, the one of the incumbent first, now and then another."""
        spaces = list(self.spaces)
        if len(spaces) > 1 and self.incumbent is not None:
            leading = self.incumbent.candidate.space
            spaces.sort(key=lambda space: space.name != leading)
            if self.spent >= _IN_ONE_SPACE and self.random.random() < self._share_of(spaces[1]):
                spaces.append(spaces.pop(0))
        return spaces

    def _share_of(self, space: Space) -> float:
        """Of the rounds that a space gets, though another has the incumbent: all until something of it is measured."""
        fastest = min([seconds for seconds in self._seen_of(space).seconds.values() if seconds < inf], default=0.0)
        if not fastest:
            return 1.0
        return _OTHER_SPACE if fastest < _NEAR * self.seconds else _FAR_SPACE

    def _known_rows(self, space: Space) -> Integers:
        """What a database knows: the best of this workload, then those of similar ones, as rows of the space."""
        rows: list[Integers] = []
        if self.database is not None and len(space.first()):
            records = known_records(self.database, self.task, self.measurer.settings)
            for record in records[:_KNOWN_FIRST]:
                if record.space == space.name:
                    rows.append(space.row(Candidate(record.space, record.choices)))
        if not rows:
            return np.empty((0, len(space.first())), dtype=np.int64)
        return self._seen_of(space).new(np.array(rows, dtype=np.int64))

    def _openings(self, space: Space) -> Integers:
        rows = space.openings()
        return self._seen_of(space).new(rows) if len(rows) else rows

    # --- what is kept ---

    def _keep(self, trial: Trial) -> None:
        self.trials.append(trial)
        if trial.measured is not None or (trial.failure is not None and not trial.is_duplicate):
            self._record(trial.candidate, trial.built, trial.measured, trial.seconds)
        if self.on_trial is not None:
            self.on_trial(self, trial)

    def _record(
        self, candidate: Candidate, built: Built, measured: Measured | None, seconds: float, is_final: bool = False
    ) -> None:
        if self.database is None:
            return
        failure = built.failure or (measured.failure if measured is not None else None)
        samples: tuple[float, ...] = (seconds,) if is_final else ()
        if measured is not None and measured.seconds and seconds < inf:
            # One that did not win is not faster than the incumbent, however its few samples look.
            scale = max(seconds, self.seconds) / median(measured.seconds)
            samples = tuple([round(one * scale, 12) for one in measured.seconds[:64]])
        settings = {**self.measurer.settings, "family": self.task.family, "sizes": list(self.task.sizes)}
        settings["winograd"] = self.task.winograd
        if is_final:
            settings["final"] = True
        self.database.add(
            Record(
                self.task.key,
                self.task.fingerprint,
                built.trace_json,
                samples,
                str(failure) if failure is not None else "",
                candidate.space,
                candidate.choices,
                self.noise,
                versions()["machine"],
                versions(),
                time.time(),
                self.seed,
                settings,
            )
        )

    def _learn(self, space: Space, batch: Batch, number: int, seconds: float) -> None:
        self.experience.add(f"{self.task.key} {space.name}", batch, number, seconds)

    def _note(self, measured: Measured) -> None:
        if measured.noise:
            self.noise = measured.noise
        kind = _NUMBERS.sub("#", measured.note)
        if kind and all([_NUMBERS.sub("#", note) != kind for note in self.notes]):  # once for each kind of note
            self.notes.append(measured.note)

    def _seen_of(self, space: Space) -> Seen:
        return self._seen.setdefault(space.name, Seen())

    def _give_up(self, candidate: Candidate, built: Built, failure: Failure) -> None:
        self.is_done = True
        self.notes.append(f"the rule's own schedule cannot be measured: {failure}")
        self._keep(Trial(0, candidate, built, None, inf, False))


def _is_clear(measured: Measured) -> bool:
    """Whether it is faster beyond what the incumbent differs from itself."""
    return measured.is_faster and measured.low > 1 + min(measured.noise, _MOST_NOISE)


def known_records(database: Database, task: Task, settings: dict[str, object]) -> list[Record]:
    """Records worth trying for a task: of its workload, then of the nearest sizes of its family."""
    threads = settings.get("threads")
    cache = settings.get("cache")
    assert isinstance(threads, int)
    assert isinstance(cache, str)
    own = database.top(task.key, task.fingerprint, _KNOWN_FIRST, threads, cache)
    similar = database.similar(task.fingerprint, task.key, 1, threads, cache)
    near = [(distance(record, task.family, task.sizes), record) for record in similar]
    near = [pair for pair in near if pair[0] <= FARTHEST]
    near.sort(key=lambda pair: pair[0])
    records = [*own[:1], *[record for _, record in near]]
    return [record for record in records if fits(record, task.winograd)]
