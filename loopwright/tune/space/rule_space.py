"""RuleSpace: the decisions of the rules (`autosched/choices.py`) as a space; the rule's own choice comes first.

The rules run once for each form of the program (`form.py`), which gives the points and, for each, its candidates with
their costs by the model. A row of the space is a position for each point of a form, and last the number of that form,
where there are several. Rows are drawn, changed and scored in numpy; one that is to be measured runs the rules again
with its decisions. A decision may lead to other points still, which then take what is usual there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from loopwright.autosched import Plan, apply
from loopwright.autosched.choices import Choices, Point, nearest
from loopwright.schedule import Schedule
from loopwright.tune.candidate import RULES, Candidate
from loopwright.tune.space.form import chances, forms_of
from loopwright.tune.space.space import Batch, Integers
from loopwright.tune.task import Task

_STAYS_NEAR: Final = 0.5  # of the mutations: to a candidate that differs in few fields
_CHANGES_FORM: Final = 0.1
_LEAST_CHANCE: Final = 0.1  # of a form, whatever the model says of it


class RuleSpace:
    """All that the rules could have decided for a task."""

    name = RULES

    def __init__(self, task: Task) -> None:
        self.task = task
        plans: list[Plan] = []

        def points_of(decisions: Mapping[str, Any]) -> Sequence[Point]:
            with Choices(decisions) as choices:
                plans.append(apply(task.mod, task.target, winograd=task.winograd))
            return choices.points

        self.forms, self.forks = forms_of(points_of)
        self.plan = plans[0]
        self._points = max([len(form.points) for form in self.forms])  # columns before that of the form
        self._width = self._points + int(len(self.forms) > 1)
        labels = [form.label for form in self.forms[1:]]
        names = [name for form in self.forms for name in form.names]
        self._names = tuple(dict.fromkeys([*labels, *names]))
        of_forms = chances(np.array([form.log_cost for form in self.forms]))
        self._chances = np.maximum(of_forms, _LEAST_CHANCE) / np.maximum(of_forms, _LEAST_CHANCE).sum()

    @property
    def points(self) -> Sequence[Point]:
        """Those of the rule's own form, and of the others what is at no point of these."""
        result = {point.key: point for form in reversed(self.forms) for point in form.points}
        return list(result.values())

    @property
    def size(self) -> float:
        return sum([form.size for form in self.forms])

    def first(self) -> Integers:
        return self._usual(0)

    def prepare(self) -> None:
        """All is made when the space is."""

    def openings(self) -> Integers:
        """What the rules take in each other form."""
        rows = [self._usual(number) for number in range(1, len(self.forms))]
        return np.array(rows, np.int64).reshape(len(rows), self._width)

    def sample(self, count: int, random: np.random.Generator) -> Integers:
        rows = np.zeros((count, self._width), dtype=np.int64)
        numbers = random.choice(len(self.forms), size=count, p=self._chances)
        for number, form in enumerate(self.forms):
            own = np.flatnonzero(numbers == number)
            rows[own, self._points :] = number
            for column, share in enumerate(form.chances):
                rows[own, column] = random.choice(len(share), size=len(own), p=share)
        return rows

    def mutate(self, rows: Integers, random: np.random.Generator) -> Integers:
        result = rows.copy()
        is_near = random.random(len(rows)) < _STAYS_NEAR
        changes_form = random.random(len(rows)) < (_CHANGES_FORM if len(self.forms) > 1 else 0.0)
        for number, row in enumerate(result):
            form = self.forms[self._number(row)]
            if changes_form[number]:
                result[number] = self._usual(int(random.integers(len(self.forms))))
            elif form.points:
                point = int(random.integers(len(form.points)))
                if is_near[number]:
                    result[number, point] = random.choice(form.neighbours(point, int(row[point])))
                else:
                    share = form.chances[point]
                    result[number, point] = random.choice(len(share), p=share)
        return result

    def describe(self, rows: Integers) -> Batch:
        features = np.zeros((len(rows), len(self._names)))
        prior = np.zeros(len(rows))
        where = {name: column for column, name in enumerate(self._names)}
        numbers = rows[:, -1] if len(self.forms) > 1 else np.zeros(len(rows), dtype=np.int64)
        for number in np.unique(numbers):
            form, own = self.forms[int(number)], np.flatnonzero(numbers == number)
            columns = np.array([where[name] for name in form.names], dtype=np.int64)
            prior[own] += form.log_cost
            if form.fixed:
                features[own, where[form.label]] = 1.0
            for point, (table, costs) in enumerate(zip(form.tables, form.log_costs, strict=True)):
                positions = rows[own, point]
                features[np.ix_(own, columns)] += table[positions]
                prior[own] += costs[positions] - costs[form.points[point].usual]
        return Batch(rows, features, self._names, prior)

    def candidate(self, row: Integers) -> Candidate:
        form = self.forms[self._number(row)]
        decisions = {
            point.key: point.candidates[position]
            for point, position in zip(form.points, row, strict=False)
            if position != point.usual
        }
        return Candidate.of(self.name, {**form.fixed, **decisions})

    def row(self, candidate: Candidate) -> Integers:
        decisions = candidate.decisions

        def agrees(number: int) -> int:
            fixed = self.forms[number].fixed
            return len(fixed) if all(decisions.get(key) == value for key, value in fixed.items()) else -1

        number = max(range(len(self.forms)), key=lambda number: (agrees(number), -number))
        row = self._usual(number)
        for column, point in enumerate(self.forms[number].points):
            if point.key in decisions:
                row[column] = nearest(point.candidates, decisions[point.key], point.costs)
        return row

    def schedule(self, candidate: Candidate) -> Schedule:
        return self.plan_of(candidate).schedule

    def plan_of(self, candidate: Candidate) -> Plan:
        """The candidate as a plan, which says in words what was chosen."""
        with Choices(candidate.decisions):
            return apply(self.task.mod, self.task.target, winograd=self.task.winograd)

    def _number(self, row: Integers) -> int:
        return int(row[-1]) if len(self.forms) > 1 else 0

    def _usual(self, number: int) -> Integers:
        form = self.forms[number]
        row = np.zeros(self._width, dtype=np.int64)
        row[self._points :] = number
        row[: len(form.points)] = form.usual
        return row
