"""EvolutionarySearch: a population of decisions; the cost model says which are changed further and which are measured.

An individual is a sketch and decisions for its samples. It becomes a schedule, with all its proofs, when it is measured
or when the cost model asks for features of it, and not before.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from loopwright.ir import structural_hash
from loopwright.meta_schedule.arg_info import ArgInfo
from loopwright.meta_schedule.errors import WrongAnswer
from loopwright.meta_schedule.postproc.apply_all import finished
from loopwright.meta_schedule.search_strategy.search_strategy import MeasureCandidate, Rounds, SearchStrategy
from loopwright.schedule import Schedule, Trace
from loopwright.tune.sketches.sketch import Sketch

_EMPTY_ROUNDS: Final = 5  # without anything new: the search ends
_CHECKED: Final = 4  # of those drawn at the start: they must make schedules, or the search gives up
_UNREAD: Final = object()


class LazyCandidate(MeasureCandidate):
    """A candidate whose schedule is made when somebody looks at it; None where its decisions are refused."""

    def __init__(self, individual: Individual, search: EvolutionarySearch, args_info: Sequence[ArgInfo]) -> None:
        self._individual, self._search = individual, search
        self.args_info = list(args_info)

    @property
    def sch(self) -> Any:  # type: ignore[override]
        return self._search.schedule(self._individual)


@dataclass(eq=False)
class Individual:
    """Steps with decisions."""

    trace: Trace
    key: str
    made: Any = field(default=_UNREAD)


class EvolutionarySearch(Rounds):
    """Its settings are those of the peer."""

    def __init__(
        self,
        *,
        population_size: int = 512,
        init_measured_ratio: float = 0.2,
        init_min_unmeasured: int = 50,
        max_fail_count: int = 5,
        genetic_num_iters: int = 4,
        genetic_mutate_prob: float = 0.85,
        genetic_max_fail_count: int = 10,
        eps_greedy: float = 0.05,
    ) -> None:
        self.population_size, self.init_measured_ratio = population_size, init_measured_ratio
        self.init_min_unmeasured, self.max_fail_count = init_min_unmeasured, max_fail_count
        self.genetic_num_iters, self.genetic_mutate_prob = genetic_num_iters, genetic_mutate_prob
        self.genetic_max_fail_count, self.eps_greedy = genetic_max_fail_count, eps_greedy

    def pre_tuning(self, *args: Any, **kwargs: Any) -> None:
        super().pre_tuning(*args, **kwargs)
        seed = self._context.fork_seed()
        self._draw, self._numbers = random.Random(seed), np.random.default_rng(seed)
        self._sketches = [Sketch.of(sch) for sch in self._spaces or ()]
        self._measured: set[int] = set()
        self._seen: set[str] = set()
        self._empty = 0

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        count = self._round()
        if count <= 0:
            return None
        known = self._best_known(int(self.population_size * self.init_measured_ratio))
        drawn = self._drawn(self.population_size - len(known))
        if drawn is None:
            return None
        best = self._evolved([*known, *drawn], count)
        picks = self._picked(drawn, best, count)
        if not picks:
            self._empty += 1
            if self._empty >= _EMPTY_ROUNDS:
                return None
        made = [self.schedule(one) for one in picks]
        return [MeasureCandidate(sch, self._arguments) for sch in made if sch is not None]

    def schedule(self, individual: Individual) -> Schedule | None:
        """The schedule, proved and finished by the postprocs."""
        if individual.made is _UNREAD:
            postprocs = self._context.space_generator.postprocs or []
            seed = self._draw.randint(1, 2**31 - 1)
            individual.made = finished(self._context.mod, individual.trace, postprocs, seed)
        made: Schedule | None = individual.made
        return made

    # --- one round ---

    def _best_known(self, count: int) -> list[Individual]:
        """The fastest records of a database."""
        if self._database is None or count <= 0:
            return []
        workload = self._database.commit_workload(self._context.mod)
        return [_individual(one.trace) for one in self._database.get_top_k(workload, count)]

    def _drawn(self, count: int) -> list[Individual] | None:
        """A population drawn at random, some of which are known to make schedules; None where too few do."""
        wanted = max(count, self.init_min_unmeasured)
        checked = min(_CHECKED, wanted)
        valid: list[Individual] = []
        failures = 0
        while len(valid) < checked:
            if failures >= self.max_fail_count * checked:
                return None
            one = self._random_individual()
            if self.schedule(one) is None:
                failures += 1
            else:
                valid.append(one)
        return [*valid, *[self._random_individual() for _ in range(wanted - checked)]]

    def _random_individual(self) -> Individual:
        sketch = self._draw.choice(self._sketches)
        (row,) = sketch.draw(self._numbers, 1)
        return _individual(sketch.trace_with(sketch.decisions(row)))

    def _evolved(self, population: list[Individual], count: int) -> list[Individual]:
        """The best that some generations come upon, those not measured yet, the best first."""
        scored: dict[str, tuple[float, Individual]] = {}
        for generation in range(self.genetic_num_iters + 1):
            scores = self._scores(population)
            for score, one in zip(scores, population, strict=True):
                if one.key not in self._seen:
                    scored[one.key] = (float(score), one)
            if generation < self.genetic_num_iters:
                chances = np.maximum(scores, 1e-9)
                chosen = self._numbers.choice(len(population), self.population_size, p=chances / chances.sum())
                population = [self._changed(population[int(number)]) for number in chosen]
        return [one for _, one in sorted(scored.values(), key=lambda pair: -pair[0])][: 4 * count]

    def _changed(self, individual: Individual) -> Individual:
        mutators = self._context.space_generator.mutator_probs or {}
        if not mutators or self._draw.random() >= self.genetic_mutate_prob:
            return individual
        for _ in range(self.genetic_max_fail_count):
            (mutator,) = self._draw.choices(list(mutators), [float(share) for share in mutators.values()])
            trace = mutator.apply(individual.trace)
            if trace is not None and not isinstance(trace, Trace):
                raise WrongAnswer(mutator, ".apply", trace, "a Trace, or None")
            if trace is not None:
                return self._decided(trace)
        return individual

    def _decided(self, trace: Trace) -> Individual:
        """A mutator may leave decisions open: they are drawn."""
        missing = [number for number, one in enumerate(trace.insts) if one.kind.is_pure and "Sample" in str(one.kind)]
        if any(number not in trace.decisions for number in missing):
            return self._random_individual()
        return _individual(trace)

    def _scores(self, population: Sequence[Individual]) -> Any:
        if self._cost_model is None:
            return self._numbers.random(len(population))
        candidates = [LazyCandidate(one, self, self._arguments) for one in population]
        answer = self._cost_model.predict(self._context, candidates)
        try:
            scores = np.asarray(answer, dtype=float)
        except (TypeError, ValueError):
            scores = np.empty(0)
        if scores.shape != (len(candidates),) or np.isnan(scores).any():
            wanted = f"{len(candidates)} numbers, one for each candidate"
            raise WrongAnswer(self._cost_model, ".predict", answer, wanted)
        return np.clip(scores, 0.0, None)

    def _picked(self, drawn: Sequence[Individual], best: Sequence[Individual], count: int) -> list[Individual]:
        """Mostly the best, some at random, none twice."""
        lucky = iter(self._draw.sample(list(drawn), len(drawn)))
        good = iter(best)
        most = count - int(count * self.eps_greedy)
        picks = self._new(good, most)
        picks += self._new(lucky, count - len(picks))
        return picks + self._new(good, count - len(picks))

    def _new(self, individuals: Iterable[Individual], count: int) -> list[Individual]:
        """The first few whose programs were not measured yet."""
        found: list[Individual] = []
        if count <= 0:
            return found
        for one in individuals:
            if one.key in self._seen:
                continue
            self._seen.add(one.key)
            sch = self.schedule(one)
            if sch is None or structural_hash(sch.mod) in self._measured:
                continue
            self._measured.add(structural_hash(sch.mod))
            found.append(one)
            if len(found) == count:
                break
        return found


def _individual(trace: Trace) -> Individual:
    return Individual(trace, f"{len(trace.insts)} {[str(one.kind) for one in trace.insts[:4]]} {_decisions(trace)}")


def _decisions(trace: Trace) -> str:
    return str([(number, trace.decisions[number]) for number in sorted(trace.decisions)])


SearchStrategy.kinds["evolutionary"] = EvolutionarySearch
