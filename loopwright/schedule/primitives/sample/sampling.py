"""sample_perfect_tile, sample_partitioned_tile, sample_categorical: numbers drawn at random, and their decisions.

A decision is what was drawn: the factors of a tile, the position of a candidate. Given one, a sample draws nothing;
a decision that no longer fits (the program it was drawn for had another extent) is repaired, not refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import inf, prod
from random import Random
from typing import Final

from loopwright.ir import For, IntImm
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.view import View

_MOST_FACTORS: Final = 100
_LARGEST_PRIME: Final = 1 << 20  # that is looked for: no tile has a prime side beyond it
_MANY_DIVISORS: Final = 2000  # no extent below 10**9 has as many
_LARGEST_INNERMOST: Final = 1 << 20  # of such an extent


def sample_perfect_tile(
    view: View, random: Random, loop: For, n: int, max_innermost_factor: int = 16, decision: Sequence[int] | None = None
) -> tuple[list[int], list[int]]:
    """`n` factors whose product is the extent of the loop, the last at most `max_innermost_factor` (-1: any)."""
    if not 1 <= n <= _MOST_FACTORS:
        problem = "there is at least one factor" if n < 1 else f"there are at most {_MOST_FACTORS} factors"
        raise BadStepArgument("sample_perfect_tile", f"n is {n}: {problem}", loop)
    if max_innermost_factor != -1 and max_innermost_factor < 1:
        problem = f"max_innermost_factor is {max_innermost_factor}"
        raise BadStepArgument("sample_perfect_tile", problem, loop, "give a factor of at least 1, or -1 for any")
    if decision is not None and len(decision) != n:
        problem = f"the decision {list(decision)} has {len(decision)} factors, not {n}"
        raise BadStepArgument("sample_perfect_tile", problem, loop)
    if not isinstance(loop.extent, IntImm):
        # Nothing is known to be divisible: one loop of all iterations, the others of one.
        factors = [-1] + [1] * (n - 1)
        return factors, factors
    extent = loop.extent.value
    limit = max(extent, 1) if max_innermost_factor == -1 else max_innermost_factor
    if decision is None:
        factors = drawn_tile(random, extent, n, limit)
    else:
        given = [int(factor) for factor in decision]
        fits = prod(given) == extent and min(given) > 0  # what was drawn with another limit stays
        factors = given if fits else _repaired(given, extent, limit)
    return factors, factors


def sample_partitioned_tile(
    view: View,
    random: Random,
    loop: For,
    n: int,
    partition_pos: int = 0,
    innerpart_factor: int = 1,
    decision: Sequence[int] | None = None,
) -> tuple[list[int], list[int]]:
    """`n` factors whose product is the extent; those from `partition_pos` on make a multiple of `innerpart_factor`."""
    step = "sample_partitioned_tile"
    if not 1 <= n <= _MOST_FACTORS or not 0 <= partition_pos <= n or innerpart_factor < 1:
        problem = f"n is {n}, partition_pos {partition_pos} and innerpart_factor {innerpart_factor}"
        raise BadStepArgument(step, problem, loop, "give at least one factor, a position among them, and a number >= 1")
    if decision is not None and len(decision) != n:
        raise BadStepArgument(step, f"the decision {list(decision)} has {len(decision)} factors, not {n}", loop)
    if not isinstance(loop.extent, IntImm):
        factors = [-1] + [1] * (n - 1)
        return factors, factors
    extent = loop.extent.value
    inner = [size for size in _divisors(extent) if size % innerpart_factor == 0]
    inner = [size for size in inner if (partition_pos > 0 or size == extent) and (partition_pos < n or size == 1)]
    if not inner:
        problem = f"loop {loop.loop_var.name} has {extent} iterations, of which no inner part is a multiple"
        raise BadStepArgument(step, f"{problem} of {innerpart_factor}", loop)
    if decision is None:
        ways = [_ways(extent // size, partition_pos) * _ways(size, n - partition_pos) for size in inner]
        size = random.choices(inner, ways)[0]
        factors = [*_parts(random, extent // size, partition_pos), *_parts(random, size, n - partition_pos)]
    else:
        wanted = [int(factor) for factor in decision]
        result = prod(wanted[partition_pos:])
        size = min(inner, key=lambda other: (abs(other - result), other))
        factors = [*_fitted(wanted[:partition_pos], extent // size), *_fitted(wanted[partition_pos:], size)]
    return factors, factors


def _parts(random: Random, extent: int, n: int) -> list[int]:
    return drawn_tile(random, extent, n, max(extent, 1)) if n else []


def _fitted(decision: Sequence[int], extent: int) -> list[int]:
    return _repaired(decision, extent, max(extent, 1)) if decision else []


def drawn_tile(random: Random, extent: int, n: int, limit: int) -> list[int]:
    """Every tiling with the same chance: the number of ways to finish weighs each factor."""
    if prod([power + 1 for _, power in _powers(extent)]) > _MANY_DIVISORS:
        return _drawn_by_primes(random, extent, n, limit)
    factors: list[int] = []
    rest = extent
    for index in range(n - 1, 0, -1):
        choices = [factor for factor in _divisors(rest) if factors or factor <= limit]
        weights = [_ways(rest // factor, index) for factor in choices]
        factors.append(random.choices(choices, weights)[0])
        rest //= factors[-1]
    return [rest, *reversed(factors)]


def _drawn_by_primes(random: Random, extent: int, n: int, limit: int) -> list[int]:
    """The same without a list of all divisors: after the innermost factor, each prime is distributed on its own."""
    inner = [factor for factor in range(1, min(limit, _LARGEST_INNERMOST) + 1) if extent % factor == 0]
    innermost = random.choices(inner, [_ways(extent // factor, n - 1) for factor in inner])[0] if n > 1 else 1
    factors = [1] * max(n - 1, 1)
    for prime, power in _powers(extent // innermost):
        bars = sorted(random.sample(range(power + len(factors) - 1), len(factors) - 1))
        ends = [-1, *bars, power + len(factors) - 1]
        for position, (low, high) in enumerate(pairwise(ends)):
            factors[position] *= prime ** (high - low - 1)
    return [*factors, innermost] if n > 1 else factors


def _repaired(decision: Sequence[int], extent: int, limit: int) -> list[int]:
    """The decision as far as it fits, from the innermost factor outwards; the first factor takes the rest."""
    factors: list[int] = []
    rest = extent
    for wanted in reversed(decision[1:]):
        cap = wanted if factors else min(wanted, limit)
        factors.append(max([factor for factor in _divisors(rest) if factor <= max(cap, 1)]))
        rest //= factors[-1]
    return [rest, *reversed(factors)]


def _divisors(number: int) -> list[int]:
    if number == 0:
        return [1]
    result = [1]
    for factor, power in _powers(number):
        result = [one * factor**exponent for one in result for exponent in range(power + 1)]
    return sorted(result)


@lru_cache(1000)
def _powers(number: int) -> list[tuple[int, int]]:
    """The number as a product of powers of primes; what only large primes divide counts as one of them."""
    result: list[tuple[int, int]] = []
    factor = 2
    while factor * factor <= number and factor <= _LARGEST_PRIME:
        power = 0
        while number % factor == 0:
            number //= factor
            power += 1
        if power:
            result.append((factor, power))
        factor += 1
    return [*result, (number, 1)] if number > 1 else result


def _ways(number: int, parts: int) -> int:
    """How many ways there are to write a number as a product of `parts` ordered factors."""
    if parts == 0:
        return int(number == 1)
    return prod([_choose(power + parts - 1, parts - 1) for _, power in _powers(number)])


def _choose(n: int, k: int) -> int:
    return prod(range(n - k + 1, n + 1)) // prod(range(1, k + 1))


def sample_categorical(
    view: View, random: Random, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
) -> tuple[list[int], int]:
    """One of the candidates, drawn by its probability; the decision is its position."""
    if not candidates or len(candidates) != len(probs):
        problem = f"there are {len(candidates)} candidates and {len(probs)} probabilities"
        raise BadStepArgument("sample_categorical", problem, hint="give one probability for each candidate")
    if not all(0 <= probability < inf for probability in probs) or not 0 < sum(probs) < inf:
        raise BadStepArgument("sample_categorical", f"the probabilities {list(probs)} are not those of a choice")
    if decision is None:
        decision = random.choices(range(len(candidates)), [float(probability) for probability in probs])[0]
    if not 0 <= decision < len(candidates):
        problem = f"the decision {decision} is not the position of one of {len(candidates)} candidates"
        raise BadStepArgument("sample_categorical", problem)
    return [int(candidates[decision])], int(decision)
