"""Properties of a stage that scripts both read and call: double_buffer, rolling_buffer, env_threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from loopwright.ir import IterVar


class Flag:
    """A property that scripts both read and call: `s[B].double_buffer()` sets it, `if s[B].double_buffer` reads it."""

    __slots__ = ("_set", "_value")

    def __init__(self, value: bool, set_it: Callable[[], None]) -> None:
        self._value, self._set = value, set_it

    def __call__(self) -> None:
        self._set()

    def __bool__(self) -> bool:
        return self._value

    def __eq__(self, other: object) -> bool:
        return self._value == bool(other)

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return repr(self._value)


class Threads(tuple[IterVar, ...]):
    """The threads around a scan, which a call sets."""

    _set: Callable[[IterVar | Iterable[IterVar]], None]

    def __new__(cls, threads: Sequence[IterVar], set_them: Callable[[IterVar | Iterable[IterVar]], None]) -> Threads:
        result = super().__new__(cls, tuple(threads))
        result._set = set_them
        return result

    def __call__(self, threads: IterVar | Iterable[IterVar]) -> None:
        self._set(threads)
