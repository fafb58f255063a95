"""Experience: the features of candidates that were measured, and how long they took, of all tasks of a machine.

A model learns from it what the cost model of the rules gets wrong. It is kept in the database as JSON, so that the next
search on the same machine begins with what this one found out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Final, NamedTuple

import numpy as np

from loopwright.tune.space.space import Batch, Floats

VERSION: Final = 1
_MOST_ROWS: Final = 20_000  # the oldest go first


class Row(NamedTuple):
    """A candidate that was measured."""

    task: str
    features: dict[str, float]
    prior: float  # log seconds by the model, up to a constant of the task
    log_seconds: float


class Table(NamedTuple):
    """Rows as matrices; `residual` is what the prior got wrong, as far as it differs within a task."""

    names: tuple[str, ...]
    features: Floats
    residual: Floats
    tasks: np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass
class Experience:
    """The rows so far."""

    rows: list[Row] = field(default_factory=list)

    def add(self, task: str, batch: Batch, number: int, seconds: float) -> None:
        """Candidate `number` of the batch took so long."""
        if not (isfinite(seconds) and seconds > 0):
            return
        features = {name: float(value) for name, value in zip(batch.names, batch.features[number]) if value}
        self.rows.append(Row(task, features, float(batch.prior[number]), float(np.log(seconds))))
        del self.rows[:-_MOST_ROWS]

    def table(self) -> Table | None:
        """The rows of tasks with two and more of them; None where there is nothing to learn."""
        counts: dict[str, int] = {}
        for row in self.rows:
            counts[row.task] = counts.get(row.task, 0) + 1
        rows = [row for row in self.rows if counts[row.task] > 1]
        if not rows:
            return None
        names = tuple(sorted({name for row in rows for name in row.features}))
        features = matrix([row.features for row in rows], names)
        number = {task: index for index, task in enumerate(counts)}
        tasks = np.array([number[row.task] for row in rows], dtype=np.int64)
        residual = np.array([row.log_seconds - row.prior for row in rows])
        for task in np.unique(tasks):
            of_task = tasks == task
            residual[of_task] -= residual[of_task].mean()
        return Table(names, features, residual, tasks)

    def save(self) -> bytes:
        return json.dumps({"version": VERSION, "rows": self.rows}).encode()

    @classmethod
    def load(cls, data: bytes) -> Experience:
        """The experience of such data; none where it is of another version, or damaged."""
        try:
            content = json.loads(data)
            if content["version"] != VERSION:
                return cls()
            rows = [
                Row(str(task), {str(name): float(value) for name, value in features.items()}, float(prior), float(took))
                for task, features, prior, took in content["rows"]
            ]
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls()
        return cls([row for row in rows if isfinite(row.prior) and isfinite(row.log_seconds)])


def matrix(rows: Sequence[dict[str, float]], names: Sequence[str]) -> Floats:
    """Rows by name as a matrix; what a row does not have is 0."""
    column = {name: position for position, name in enumerate(names)}
    result = np.zeros((len(rows), len(names)))
    for number, row in enumerate(rows):
        for name, value in row.items():
            if name in column:
                result[number, column[name]] = value
    return result


def aligned(batch: Batch, names: Sequence[str]) -> Floats:
    """The features of a batch in the columns of a model."""
    result = np.zeros((len(batch), len(names)))
    position = {name: column for column, name in enumerate(batch.names)}
    for column, name in enumerate(names):
        if name in position:
            result[:, column] = batch.features[:, position[name]]
    return result
