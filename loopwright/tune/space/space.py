"""Space: the candidates of a task, drawn and described in bulk, and made into schedules one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from loopwright.schedule import Schedule
from loopwright.tune.candidate import Candidate

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Candidates as rows: decisions as positions, features by name, and what the cost model says of them."""

    positions: Integers  # candidates × points
    features: Floats  # candidates × names
    names: Sequence[str]
    prior: Floats  # log of the seconds by the model, up to a constant of the task

    def __len__(self) -> int:
        return len(self.positions)


class Space(Protocol):
    """The candidates of one task."""

    name: str

    @property
    def size(self) -> float:
        """How many candidates there are, about."""

    def prepare(self) -> None:
        """Begin what takes long, beside other work: candidates will be asked for later."""

    def first(self) -> Integers:
        """The decisions to begin with, as a row of positions."""

    def openings(self) -> Integers:
        """Rows to measure first whatever a model says of them: one of each kind that it may be wrong about."""

    def sample(self, count: int, random: np.random.Generator) -> Integers:
        """Decisions drawn at random, the better ones by the model more often: a row each."""

    def mutate(self, rows: Integers, random: np.random.Generator) -> Integers:
        """For each row another one, which differs in a decision or two."""

    def describe(self, rows: Integers) -> Batch:
        """The rows with their features and prior costs."""

    def candidate(self, row: Integers) -> Candidate:
        """The decisions of a row, as plain data."""

    def row(self, candidate: Candidate) -> Integers:
        """The row of the candidate, or of the nearest one that this space has."""

    def schedule(self, candidate: Candidate) -> Schedule:
        """The candidate as a proved schedule. Raises ScheduleError where a step is refused."""
