"""choices: the points at which a rule picks one of several candidates, and how a search picks others.

    with Choices({"0.tiles": {"mr": 4, "vectors": 3}}) as choices:
        plan = apply(program, target)
    choices.points          what could be picked at each point, what the model says of it, and what was

Without `Choices`, and at points that are not among them, a rule takes what should cost least. A decision is plain data:
the fields of the candidate. Where no candidate has them (the program was another one), the nearest is taken. The trace
gets what was picked as sampled instructions, one for each number in which the candidates of a point differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, is_dataclass
from dataclasses import fields as fields_of
from math import isfinite, log2
from types import TracebackType
from typing import Any, Final, TypeVar

from loopwright.schedule import Schedule

T = TypeVar("T")
Fields = dict[str, Any]  # of a candidate: numbers, booleans and words

_RESULTS: Final = {"cycles", "threads", "turns", "memory", "direct", "alone"}  # of pricing, not of a choice
_MOST_KEPT: Final = 4096  # candidates of a point, the cheapest ones: more are no search space but a table
_SCALARS: Final = frozenset({int, float, bool, str, type(None)})
_OTHER: Final = 8.0  # how far two words or truth values are from each other, in factors of two


@dataclass(frozen=True)
class Point:
    """A point at which something was picked."""

    key: str  # "0.tiles": of the first group of blocks
    candidates: Sequence[Fields]
    costs: Sequence[float]  # cycles by the model
    usual: int  # what the rule takes by itself
    picked: int


class Choices:
    """Decisions for the points of one run of the rules, and after it, the points."""

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        self.given = dict(given or {})
        self.points: list[Point] = []
        self._group = 0
        self._schedule: Schedule | None = None
        self._token: Token[Choices | None] | None = None

    def __enter__(self) -> Choices:
        self._token = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._token is not None
        _current.reset(self._token)

    @property
    def decisions(self) -> dict[str, Any]:
        """What was picked: given to other `Choices`, they make the same plan."""
        return {point.key: point.candidates[point.picked] for point in self.points}

    def pick(
        self,
        name: str,
        candidates: Sequence[T],
        usual: int,
        costs: Sequence[float],
        described: Sequence[Fields] | None = None,
    ) -> T:
        """The candidate that was decided on, else the usual one; `described` are their fields, where they are known."""
        if described is None:
            described = [plain_fields(candidate) for candidate in candidates]
        key = self._key(name)
        wanted = self.given.get(key)
        picked = usual if wanted is None else nearest(described, wanted, costs)
        kept = range(len(candidates))
        if len(candidates) > _MOST_KEPT:
            kept = sorted({*sorted(kept, key=costs.__getitem__)[:_MOST_KEPT], usual, picked})  # type: ignore[assignment]
        where = {index: new for new, index in enumerate(kept)}
        fields, kept_costs = [described[index] for index in kept], [costs[index] for index in kept]
        point = Point(key, fields, kept_costs, where[usual], where[picked])
        self.points.append(point)
        if self._schedule is not None:
            _write_samples(self._schedule, point)
        return candidates[picked]

    def settled(self, name: str, values: Sequence[int], usual: int) -> int:
        """The value that was picked at this point already; else one is picked."""
        key = f"{self._group}.{name}"
        for point in self.points:
            if point.key == key:
                return int(point.candidates[point.picked]["value"])
        return self.pick(name, values, usual, [0.0] * len(values))

    def _key(self, name: str) -> str:
        """The point's name, told apart from others of that name for the same blocks."""
        base = f"{self._group}.{name}"
        again = sum(point.key.split("#")[0] == base for point in self.points)
        return f"{base}#{again}" if again else base

    def forget(self, count: int) -> None:
        """Drop all but the first points: what a rule picked that was refused."""
        del self.points[count:]

    def next_group(self) -> None:
        """From now on blocks after those so far are scheduled."""
        self._group += 1

    @contextmanager
    def scheduling(self, sch: Schedule) -> Iterator[None]:
        """Write what is picked into the trace of a schedule."""
        before, self._schedule = self._schedule, sch
        try:
            yield
        finally:
            self._schedule = before


_current: ContextVar[Choices | None] = ContextVar("choices", default=None)


def current_choices() -> Choices | None:
    """Those of the search that is under way; None where rules decide alone."""
    return _current.get()


def pick(
    name: str,
    candidates: Sequence[T],
    cost: Callable[[T], float],
    order: Callable[[T], Any] | None = None,
    more: Callable[[], Iterable[T]] | None = None,
) -> T:
    """One of the candidates: that of a search, else the one that costs least (by `order`, where that says more).

    `more` are candidates that only a search takes.
    """
    usual = min(range(len(candidates)), key=lambda index: (order or cost)(candidates[index]))
    choices = _current.get()
    if choices is None:
        return candidates[usual]
    described = [plain_fields(candidate) for candidate in candidates]
    if more is not None:
        others = _others(described, more())
        candidates = [*candidates, *[candidate for candidate, _ in others]]
        described += [fields for _, fields in others]
    if len(candidates) < 2:
        return candidates[usual]
    return choices.pick(name, candidates, usual, [cost(candidate) for candidate in candidates], described)


def _others(known: Sequence[Fields], more: Iterable[T]) -> list[tuple[T, Fields]]:
    """Those of which no decision tells that they are known already, each once, with their fields."""
    seen = {repr(fields) for fields in known}  # 1 and True are two decisions
    result = []
    for candidate in more:
        fields = plain_fields(candidate)
        text = repr(fields)
        if text not in seen:
            seen.add(text)
            result.append((candidate, fields))
    return result


def option(name: str, usual: int, *others: int) -> int:
    """A number that the model says nothing about: that of a search, else the usual one.

    Asked for again for the same blocks, it is the same.
    """
    choices = _current.get()
    if choices is None:
        return usual
    values = sorted({usual, *[other for other in others if other > 0]})
    return choices.settled(name, values, values.index(usual)) if len(values) > 1 else usual


def _write_samples(sch: Schedule, point: Point) -> None:
    for name, value in point.candidates[point.picked].items():
        values = [fields.get(name) for fields in point.candidates]
        numbers = sorted({int(one) for one in values if isinstance(one, int)})  # True is 1
        if len(numbers) > 1 and all([isinstance(one, int) for one in values]):
            share = round(1 / len(numbers), 4)
            sch.sample_categorical(numbers, [share] * len(numbers), numbers.index(int(value)))


def is_chosen(name: str, cost: float, otherwise: float) -> bool:
    """Whether to do something that should take `cost` cycles, in place of what takes `otherwise`."""
    if not isfinite(otherwise):
        return True  # there is nothing else to do
    return pick(name, (True, False), lambda wanted: cost if wanted else otherwise)


@contextmanager
def alone() -> Iterator[None]:
    """Inside, rules pick by themselves: they price what they may not do in the end."""
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


def again(priced: T, decide: Callable[[], T]) -> T:
    """What was priced `alone`, now that it is to be done: a search decides about it."""
    return priced if _current.get() is None else decide()


def plain_fields(candidate: object) -> Fields:
    """What tells a candidate from others, as plain data."""
    names = _names[type(candidate)]
    if not names:
        return {"value": _plain(candidate)} if _is_plain(candidate) else {}
    result: Fields = {}
    for name in names:
        value = getattr(candidate, name)
        if type(value) in _SCALARS:
            result[name] = value
        elif _is_plain(value):
            result[name] = _plain(value)
    return result


class _Names(dict[type, tuple[str, ...]]):
    """For each type of record, the fields that tell one from others; none for what is no record."""

    def __missing__(self, kind: type) -> tuple[str, ...]:
        if is_dataclass(kind):
            names = [field.name for field in fields_of(kind)]
        else:
            names = list(getattr(kind, "_fields", ()))  # a named tuple
        self[kind] = tuple([name for name in names if name not in _RESULTS])
        return self[kind]


_names: Final = _Names()


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, (int, float, str, bool))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def nearest(candidates: Sequence[Fields], wanted: Mapping[str, Any], costs: Sequence[float]) -> int:
    """The candidate whose fields are nearest to those wanted; of several, the one that costs least."""
    equal = [index for index, fields in enumerate(candidates) if fields == wanted]
    if equal:
        return min(equal, key=lambda index: (costs[index], index))
    return min(range(len(candidates)), key=lambda index: (distance(candidates[index], wanted), costs[index], index))


def distance(first: Mapping[str, Any], second: Mapping[str, Any]) -> float:
    """How far the fields are from each other: numbers in factors of two."""
    if first == second:
        return 0.0
    names = dict.fromkeys([*first, *second])
    return sum([_apart(first.get(name), second.get(name)) for name in names])


def _apart(first: Any, second: Any) -> float:
    if first == second:
        return 0.0
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        return sum([_apart(*pair) for pair in zip(first, second, strict=True)])
    if _is_number(first) and _is_number(second):
        return abs(log2(max(abs(first), 0.5)) - log2(max(abs(second), 0.5)))
    return _OTHER


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


__all__ = [
    "Choices",
    "Point",
    "again",
    "alone",
    "current_choices",
    "distance",
    "is_chosen",
    "nearest",
    "option",
    "pick",
    "plain_fields",
]
