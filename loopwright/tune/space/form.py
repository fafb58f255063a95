"""Form: what the rules decide about a program in one of its forms: direct, as a GEMM, as winograd, as dot products.

A point at which rules choose between two forms leads to other points: those of the tiles of that form. So each form has
points of its own, and decisions that lead to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import log, log2
from typing import Any, Final

import numpy as np

from loopwright.autosched.choices import Point
from loopwright.tune.space.space import Floats, Integers

_TEMPERATURE: Final = 0.25  # a candidate that should take 25 % longer is drawn 1/e as often
_NEIGHBOURS: Final = 12
MOST_FORMS: Final = 6


class Form:
    """The points of one form; `fixed` leads to it, `log_cost` is what it should take beside the rule's own."""

    def __init__(self, points: Sequence[Point], fixed: Mapping[str, Any], log_cost: float) -> None:
        self.fixed, self.log_cost = dict(fixed), log_cost
        self.points = [point for point in points if len(point.candidates) > 1 and point.key not in self.fixed]
        self.columns = [_columns(point) for point in self.points]
        self.log_costs = [_log_costs(point) for point in self.points]
        self.chances = [chances(costs) for costs in self.log_costs]
        self.names = tuple(dict.fromkeys([name for columns in self.columns for name in columns]))
        self._near: dict[tuple[int, int], Integers] = {}

    @property
    def size(self) -> float:
        return float(np.prod([float(len(point.candidates)) for point in self.points]))

    @cached_property
    def usual(self) -> Integers:
        """What the rules take by themselves in this form."""
        return np.array([point.usual for point in self.points], dtype=np.int64)

    @cached_property
    def tables(self) -> list[Floats]:
        """The features of each candidate of each point."""
        return [_table(columns, self.names) for columns in self.columns]

    @property
    def label(self) -> str:
        """What distinguishes the form, for a model to learn from."""
        return ", ".join([f"{key.split('.', 1)[1]}={json.dumps(value)}" for key, value in self.fixed.items()])

    def neighbours(self, point: int, position: int) -> Integers:
        """The candidates whose fields are nearest to those of one."""
        key = (point, position)
        if key not in self._near:
            table = self.tables[point]
            apart = np.abs(table - table[position]).sum(axis=1)
            order = np.argsort(apart, kind="stable")
            self._near[key] = order[order != position][:_NEIGHBOURS]
        return self._near[key]


def forms_of(points_of: Callable[[Mapping[str, Any]], Sequence[Point]]) -> tuple[list[Form], list[Point]]:
    """The forms that rules choose between, their own first, and the points at which they do.

    `points_of` runs the rules with some decisions.
    """
    base = list(points_of({}))
    found: list[tuple[dict[str, Any], Sequence[Point], float]] = [({}, base, 0.0)]
    for fixed, points, log_cost in found:  # grows: a form may have forms
        for point in points:
            if len(found) == MOST_FORMS or point.key in fixed or not _is_yes_or_no(point):
                continue
            other = 1 - point.usual
            wanted = {**fixed, point.key: point.candidates[other]}
            if any(wanted == known for known, _, _ in found):
                continue
            reached = points_of(wanted)
            if _names(reached, point) != _names(points, point):
                found.append((wanted, reached, log_cost + _dearer(point, other)))
    keys = {key for fixed, _, _ in found for key in fixed}
    forms = [Form([one for one in points if one.key not in keys], fixed, cost) for fixed, points, cost in found]
    forks = {point.key: point for _, points, _ in reversed(found) for point in points if point.key in keys}
    return forms, list(forks.values())


def chances(costs: Floats) -> Floats:
    """How often each is drawn."""
    weights = np.exp(-(costs - costs.min()) / _TEMPERATURE)
    result: Floats = weights / weights.sum()
    return result


def _is_yes_or_no(point: Point) -> bool:
    return len(point.candidates) == 2 and all(isinstance(fields.get("value"), bool) for fields in point.candidates)


def _names(points: Sequence[Point], without: Point) -> list[tuple[str, str]]:
    return [(point.key, json.dumps(list(point.candidates))) for point in points if point.key != without.key]


def _dearer(point: Point, other: int) -> float:
    costs = point.costs[other], point.costs[point.usual]
    return max(0.0, log(costs[0] / costs[1])) if all(0 < cost < float("inf") for cost in costs) else 0.0


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
