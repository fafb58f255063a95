"""Random programs whose sizes are scalar parameters: what a step must keep for every value that they may have.

    def main(n: T.int32, m: T.int32, …):
        for i in range(T.min(n, 5)):
            with T.block("B0"):
                v0 = T.axis.spatial(12, i)
                T.where(i < m)
                B0[v0] = T.if_then_else(m > 0, A[v0 // m, 0], n * 1500000000)

They are `ragged.py`'s with names in the place of numbers, and with values that wrap, divide and read under conditions.
A program counts for those values of the parameters for which it means something. It is run with them, not specialized
to them: where an init stands depends on what is known of the extents of loops.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache

from loopwright.evaluator import evaluate
from loopwright.ir import PrimFunc
from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule import Schedule
from loopwright.script import from_source
from tests.random_programs import random_arguments
from tests.schedule.harness.legality import first_difference, numbers_of
from tests.schedule.harness.lets import perhaps_with_lets
from tests.schedule.harness.programs import Program
from tests.schedule.harness.ragged import Nest, Ragged, random_nests

ROOM = 12
VALUES = ((3, 2), (0, 4), (5, 0), (1, 1), (-2, 3), (4, -1), (7, 6))
_TRIES = 60

_STORED = (
    "{u} * {n}",
    "{n} - {w}",
    "{u} * 900000000 + {m}",
    "{x} * 3 // 3",
    "{x} * 1500000000 // 1500000000",
    "T.max({x} * 2000000000, {y})",
    "T.if_then_else({x} + 2000000000 > {x}, {u}, {w})",
    "T.if_then_else({n} > 0, {x} // {n}, {y})",
    "T.if_then_else({m} > 0, A[{u} // {m}, 0], 1)",
    "T.if_then_else({u} < {m}, {x}, {y} % 5)",
)


@dataclass(frozen=True)
class Parametric(Ragged):
    """Nests whose sizes are the parameters `n` and `m`."""

    rank: int = 0

    @property
    def name(self) -> str:
        return f"parametric_{self.seed}"

    def text(self, sizes: Sequence[int]) -> str:
        return self.text_of({"n": "n", "m": "m"}, ROOM, ["n: T.int32", "m: T.int32"])


class ParametricProgram(Program):
    """A program of which only those smaller ones count that mean something."""

    def smaller(self) -> Iterator[Program]:
        return (program for program in super().smaller() if meant(program.source.text(())))

    def wrong_after(self, after: PrimFunc) -> str | None:
        """What is wrong with a scheduled version for some values of the parameters."""
        before = self.function
        for values in meant(self.source.text(())):
            arguments = [*random_arguments(before, 1), *values]
            wanted, got = numbers_of(before, arguments), numbers_of(after, arguments)
            assert not isinstance(wanted, str), wanted
            why = got if isinstance(got, str) else first_difference(before, got, wanted)
            if why is not None:
                return f"n, m = {values}: {why}"
        return None


def parametric_program(seed: int) -> Program:
    """The first program from `seed` on that means something for three values of its parameters."""
    for attempt in range(_TRIES):
        rng = random.Random(f"parametric {seed} {attempt}")
        plain = random_nests(seed, rng)
        nests = tuple([_with_parameters(nest, rng) for nest in plain.nests])
        values = {field.name: getattr(plain, field.name) for field in fields(plain)}
        source = perhaps_with_lets(Parametric(**(values | {"nests": nests, "rank": 0})), rng)
        if len(meant(source.text(()))) >= 3:
            return ParametricProgram(source, ())
    raise AssertionError(f"none of {_TRIES} programs from seed {seed} means something")


def _with_parameters(nest: Nest, rng: random.Random) -> Nest:
    extents = tuple([f"T.min({extent}, 5)" if "N[" not in extent else extent for extent in nest.extents])
    value = rng.choice((nest.value, *_STORED)) if rng.random() < 0.7 else nest.value
    return replace(nest, extents=extents, value=value)


@lru_cache(maxsize=4096)
def meant(text: str) -> tuple[tuple[int, int], ...]:
    """The values of the parameters for which the program means something; none where the engine does not take it."""
    try:
        function = from_source(text)
        assert isinstance(function, PrimFunc)
        Schedule(function)
    except LoopwrightError:
        return ()
    return tuple([values for values in VALUES if _runs(function, values)])


def _runs(function: PrimFunc, values: Sequence[int]) -> bool:
    """Whether it reads no cell that holds nothing, divides by no 0 and stays inside of its buffers."""
    try:
        evaluate(function, *random_arguments(function, 1), *values)
    except LoopwrightError:
        return False
    return True
