"""Random maps of indices, one to one or not: digits taken, dropped and used twice, sums, offsets, reversals, minima."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple


class RandomMap(NamedTuple):
    """A map as text, and what it does to the elements of a shape."""

    sizes: tuple[int, ...]
    text: str
    cells: dict[tuple[int, ...], tuple[int, ...]]

    @property
    def is_one_to_one(self) -> bool:
        """Whether no two elements share a cell."""
        return len(set(self.cells.values())) == len(self.cells)


def random_map(seed: int, names: Sequence[str] = ("i", "j")) -> RandomMap:
    """A map of one or two indices to one to three."""
    chosen = random.Random(seed)
    names = names[: chosen.randint(1, len(names))]
    sizes = tuple([chosen.randint(1, 7) for _ in names])
    results = [_index(chosen, names, 0) for _ in range(chosen.randint(1, 3))]
    if chosen.random() < 0.5:  # half of the maps use every index
        results += [name for name in names if not any([name in result for result in results])]
    return given_map(sizes, names, results)


def given_map(sizes: Sequence[int], names: Sequence[str], results: Sequence[str]) -> RandomMap:
    """A map with its results as text."""
    body = f"({', '.join(results)},)"
    cells = {}
    for point in product(*map(range, sizes)):
        cells[point] = eval(body, {"min": min, "max": max}, dict(zip(names, point, strict=True)))
    return RandomMap(tuple(sizes), f"lambda {', '.join(names)}: {body}", cells)


def _index(chosen: random.Random, names: Sequence[str], depth: int) -> str:
    name, factor = chosen.choice(names), chosen.randint(1, 5)
    kind = chosen.randrange(6 if depth > 1 else 11)
    if kind < 6:
        return [name, f"{name} // {factor}", f"{name} % {factor}"][kind // 2]
    a, b = _index(chosen, names, depth + 1), _index(chosen, names, depth + 1)
    if kind == 6:
        return f"({a}) * {factor} + {b}"
    if kind == 7:
        return f"(({a}) * {factor} + {b}) {chosen.choice(['//', '%'])} {chosen.randint(2, 5)}"
    if kind == 8:
        return f"{chosen.randint(0, 6)} - ({a})"
    if kind == 9:
        return f"{chosen.choice(['min', 'max'])}({a}, {chosen.choice([b, str(factor)])})"
    return chosen.choice([f"({a}) + {factor}", str(factor - 1)])
