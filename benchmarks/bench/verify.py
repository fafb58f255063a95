"""Correct before timed: our kernel against float64, on its shape and boundary shapes, and bit for bit with itself."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.bench import ours
from benchmarks.bench.case import Array, Bounded, Case, Problem
from benchmarks.bench.peers import Contender

_BLOCK = 1 << 16  # elements compared at a time: what stays in the cache is compared many times faster


class Wrong(Exception):
    """A kernel whose result is outside its bound, or changes from run to run."""


@dataclass
class Checked:
    """What was found out about a correct kernel."""

    worst: float  # the greatest error, as a share of what is allowed
    digest: str  # of the results' bits
    boundary: list[str] = field(default_factory=list)


def check(module: Any, problem: Problem, thread_counts: Sequence[int], reference: Sequence[Bounded]) -> Checked:
    """Run the kernel twice with every number of threads; raises Wrong."""
    from loopwright.runtime import threads

    contender = ours.contender(module, problem)
    first: list[Array] = []
    for count in thread_counts:
        for run in (1, 2):
            for out in contender.results():
                poison(out)
            with threads(count):
                contender.run()
            results = contender.results()
            if not first:
                first = [x.copy() for x in results]
                worst = require_within(results, reference)
            elif not all([_same_bits(x, y) for x, y in zip(first, results)]):
                first_count = thread_counts[0]
                raise Wrong(f"the bits changed: run {run} on {count} threads differs from the first on {first_count}")
    return Checked(worst, _digest(first))


def _digest(results: Sequence[Array]) -> str:
    made = hashlib.blake2b(digest_size=8)
    for x in results:
        made.update(_bytes(x).data)
    return made.hexdigest()


def check_boundary(case: Case, thread_counts: Sequence[int], most: int, done: set[Any]) -> list[str]:
    """Check the row's boundary shapes, at most so many, each once in this process (`done`); raises Wrong."""
    checked = []
    for shape in case.boundary[:most]:
        text = "×".join(map(str, shape))
        key = (case.make, shape)
        if key not in done:
            problem = case.make(*shape)
            try:
                check(ours.build(problem.program()), problem, thread_counts, problem.reference())
            except Wrong as error:
                raise Wrong(f"on the boundary shape {text}: {error}") from error
            done.add(key)
        checked.append(text)
    return checked


def require_within(results: Sequence[Array], reference: Sequence[Bounded]) -> float:
    """The greatest error as a share of the bound; raises Wrong where an element is outside."""
    worst = 0.0
    for number, (result, (exact, allowed)) in enumerate(zip(results, reference)):
        if result.size == 0:
            continue
        share = _shares(result, exact, allowed)
        at = int(np.argmax(share))
        greatest = float(share.flat[at])
        if not greatest <= 1:
            place = tuple(map(int, np.unravel_index(at, result.shape)))
            bound = float(np.broadcast_to(np.asarray(allowed), result.shape).flat[at])
            right = f"{exact.flat[at]!r} ± {bound:.3g}"
            raise Wrong(f"output {number} at {list(place)} is {result.flat[at]!r}, but should be {right}")
        worst = max(worst, greatest)
    return worst


def peer_share(contender: Contender, reference: Sequence[Bounded]) -> float:
    """A peer's greatest error as a share of what ours is allowed; a large one shows that it computes something else.

    It may be somewhat above 1, since the bound is for our algorithm; the first million elements tell enough.
    """
    worst = 0.0
    for result, (exact, allowed) in zip(contender.results(), reference):
        first = slice(0, 1 << 20)
        bounds = np.broadcast_to(np.asarray(allowed, "float64"), exact.shape).reshape(-1)[first]
        share = _shares(np.asarray(result).reshape(-1)[first], exact.reshape(-1)[first], bounds)
        worst = max(worst, float(np.max(share, initial=0.0)))
    return worst


def _shares(result: Array, exact: Array, allowed: Array | float) -> Array:
    """Each element's error over its bound: 0 where both are zero, infinity where there is none or a NaN."""
    shares = np.empty(result.shape)
    bounds = np.broadcast_to(np.asarray(allowed, "float64"), result.shape).reshape(-1)
    flat_result, flat_exact, flat_shares = result.reshape(-1), exact.reshape(-1), shares.reshape(-1)
    for start in range(0, result.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        got, right = flat_result[part].astype(exact.dtype), flat_exact[part]
        same = (got == right) | (np.isnan(got) & np.isnan(right))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(same, 0.0, np.abs(got - right) / bounds[part])
        flat_shares[part] = np.where(np.isnan(share), np.inf, share)
    return shares


def poison(out: Array) -> None:
    """Fill an output with what no kernel leaves there, so that an element never written is found."""
    _bytes(out).fill(0xA5)


def _same_bits(x: Array, y: Array) -> bool:
    return np.array_equal(_bytes(x), _bytes(y))


def _bytes(x: Array) -> Array:
    return x.reshape(-1).view("uint8")
