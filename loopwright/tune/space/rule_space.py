"""RuleSpace: the decisions of the rules (`autosched/choices.py`) as a space; the rule's own choice comes first.

The rules run once, which gives the points and, for each, its candidates with their costs by the model. A row of the
space is a position for each point. Rows are drawn, changed and scored in numpy; one that is to be measured runs the
rules again with its decisions. A decision may lead to other points, which then take what is usual there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import log2
from typing import Any, Final

import numpy as np

from loopwright.autosched import Plan, apply
from loopwright.autosched.choices import Choices, Point, nearest
from loopwright.schedule import Schedule
from loopwright.tune.candidate import RULES, Candidate
from loopwright.tune.space.space import Batch, Floats, Integers
from loopwright.tune.task import Task

_TEMPERATURE: Final = 0.25  # a candidate that should take 25 % longer is drawn 1/e as often
_STAYS_NEAR: Final = 0.5  # of the mutations: to a candidate that differs in few fields
_NEIGHBOURS: Final = 12


class RuleSpace:
    """All that the rules could have decided for a task."""

    name = RULES

    def __init__(self, task: Task) -> None:
        self.task = task
        with Choices() as choices:
            self.plan: Plan = apply(task.mod, task.target, winograd=task.winograd)
        self.points: Sequence[Point] = [point for point in choices.points if len(point.candidates) > 1]
        self._columns = [_columns(point) for point in self.points]
        self._log_costs = [_log_costs(point) for point in self.points]
        self._chances = [_chances(costs) for costs in self._log_costs]
        self._names = tuple(dict.fromkeys([name for columns in self._columns for name in columns]))
        self._tables = [_table(columns, self._names) for columns in self._columns]
        self._near: dict[tuple[int, int], Integers] = {}

    @property
    def size(self) -> float:
        return float(np.prod([float(len(point.candidates)) for point in self.points]))

    def first(self) -> Integers:
        return np.array([point.usual for point in self.points], dtype=np.int64)

    def sample(self, count: int, random: np.random.Generator) -> Integers:
        rows = np.empty((count, len(self.points)), dtype=np.int64)
        for column, chances in enumerate(self._chances):
            rows[:, column] = random.choice(len(chances), size=count, p=chances)
        return rows

    def mutate(self, rows: Integers, random: np.random.Generator) -> Integers:
        result = rows.copy()
        if not self.points:
            return result
        changed = random.integers(len(self.points), size=len(rows))
        is_near = random.random(len(rows)) < _STAYS_NEAR
        for number, point in enumerate(changed):
            if is_near[number]:
                result[number, point] = random.choice(self._neighbours(int(point), int(rows[number, point])))
            else:
                chances = self._chances[point]
                result[number, point] = random.choice(len(chances), p=chances)
        return result

    def describe(self, rows: Integers) -> Batch:
        features = np.zeros((len(rows), len(self._names)))
        prior = np.zeros(len(rows))
        for column, (table, costs) in enumerate(zip(self._tables, self._log_costs, strict=True)):
            features += table[rows[:, column]]
            prior += costs[rows[:, column]] - costs[self.points[column].usual]
        return Batch(rows, features, self._names, prior)

    def candidate(self, row: Integers) -> Candidate:
        decisions = {
            point.key: point.candidates[position]
            for point, position in zip(self.points, row, strict=True)
            if position != point.usual
        }
        return Candidate.of(self.name, decisions)

    def row(self, candidate: Candidate) -> Integers:
        row = self.first()
        decisions = candidate.decisions
        for column, point in enumerate(self.points):
            if point.key in decisions:
                row[column] = nearest(point.candidates, decisions[point.key], point.costs)
        return row

    def schedule(self, candidate: Candidate) -> Schedule:
        return self.plan_of(candidate).schedule

    def plan_of(self, candidate: Candidate) -> Plan:
        """The candidate as a plan, which says in words what was chosen."""
        with Choices(candidate.decisions):
            return apply(self.task.mod, self.task.target, winograd=self.task.winograd)

    def _neighbours(self, point: int, position: int) -> Integers:
        """The candidates whose fields are nearest to those of one."""
        key = (point, position)
        if key not in self._near:
            table = self._tables[point]
            apart = np.abs(table - table[position]).sum(axis=1)
            order = np.argsort(apart, kind="stable")
            self._near[key] = order[order != position][:_NEIGHBOURS]
        return self._near[key]


def _columns(point: Point) -> dict[str, list[float]]:
    """The fields in which the candidates differ, as numbers: sizes by their logarithm, words as one column each."""
    label = point.key.split(".", 1)[1].split("#")[0]
    names = dict.fromkeys([name for fields in point.candidates for name in fields])
    result: dict[str, list[float]] = {}
    for name in names:
        values = [fields.get(name) for fields in point.candidates]
        if len({json.dumps(value) for value in values}) < 2:
            continue
        if all(isinstance(value, (int, float)) for value in values):
            result[f"{label}.{name}"] = [_number(value) for value in values]
        elif all(isinstance(value, list) for value in values) and len({len(value) for value in values}) == 1:  # type: ignore[arg-type]
            for position in range(len(values[0])):  # type: ignore[arg-type]
                result[f"{label}.{name}.{position}"] = [_number(value[position]) for value in values]  # type: ignore[index]
        else:
            for word in sorted({json.dumps(value) for value in values}):
                result[f"{label}.{name}={word}"] = [float(json.dumps(value) == word) for value in values]
    return result


def _number(value: Any) -> float:
    if isinstance(value, bool):
        return float(value)
    return log2(1 + abs(value)) if isinstance(value, (int, float)) else 0.0


def _table(columns: dict[str, list[float]], names: Sequence[str]) -> Floats:
    count = len(next(iter(columns.values()), [0.0]))
    return np.array([columns.get(name, [0.0] * count) for name in names], dtype=np.float64).reshape(len(names), count).T


def _log_costs(point: Point) -> Floats:
    costs = np.array(point.costs, dtype=np.float64)
    known = np.isfinite(costs) & (costs > 0)
    if not known.all():
        return np.zeros(len(costs))  # the model says nothing
    logs: Floats = np.log(costs)
    return logs


def _chances(costs: Floats) -> Floats:
    weights = np.exp(-(costs - costs.min()) / _TEMPERATURE)
    chances: Floats = weights / weights.sum()
    return chances


