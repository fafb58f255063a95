"""What is drawn: one file a family, each with a function `draw` and its distribution in the docstring.

The case of a seed and an index is the same in every process and every piece: the family is drawn first, by the weights
below, then the family draws the case, then chance decides between kernel and model where it has both.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from benchmarks.sweep.case import KERNEL, MODEL, Case, Draw
from benchmarks.sweep.sizes import pick

WEIGHTS = {
    "elementwise": 16,
    "unary": 10,
    "gemm": 12,
    "reductions": 10,
    "convolutions": 12,
    "pooling": 5,
    "rows": 9,
    "attention": 3,
    "joining": 6,
    "movement": 7,
    "indexing": 4,
    "images": 4,
    "ordering": 9,
    "graphs": 8,
    "stencils": 3,
}
FAMILIES = tuple(WEIGHTS)


def draw_of(family: str) -> Draw:
    """The function that draws a case of the family."""
    found: Draw = importlib.import_module(f"benchmarks.sweep.families.{family}").draw
    return found

PATIENCE = 20_000  # draws: the rarest operator comes once in some hundreds


def case_of(seed: int, index: int) -> Case:
    """The case of a seed and an index."""
    rng = np.random.default_rng([seed, index])
    family = pick(rng, FAMILIES, list(WEIGHTS.values()))
    case = draw_of(family)(rng)
    has_both = case.kernel is not None and bool(case.model)
    ours = pick(rng, (KERNEL, MODEL)) if has_both else KERNEL if case.kernel is not None else MODEL
    return replace(case, family=family, index=index, seed=seed, ours=ours)


class NoSuchCase(Exception):
    """Thousands of cases in a row were drawn, and none was wanted."""


def indices_of(seed: int, count: int, wanted: Callable[[Case], bool]) -> Iterator[int]:
    """The first `count` indices whose cases are wanted."""
    found, last = 0, 0
    for index in itertools.count():
        if found == count:
            return
        if wanted(case_of(seed, index)):
            found, last = found + 1, index
            yield index
        elif index - last > PATIENCE:
            raise NoSuchCase(f"of {index - last} cases in a row none is wanted: is the name one that cases have?")
