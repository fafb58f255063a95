"""Profiler: what the parts of a search take, by name.

with ms.Profiler() as profiler:
    with ms.Profiler.timeit("build"):
        ...
profiler.get()                       {"Total": 1.5, "build": 1.2}
print(profiler.table())
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from time import perf_counter
from types import TracebackType

_current: ContextVar[Profiler | None] = ContextVar("loopwright_profiler", default=None)


class Profiler:
    """Seconds by name; names inside others are added up by themselves."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._started = 0.0
        self._total: float | None = None
        self._token: Token[Profiler | None] | None = None

    def get(self) -> dict[str, float]:
        """Seconds by name."""
        total = {} if self._total is None else {"Total": self._total}
        return {**self._seconds, **total}

    def table(self) -> str:
        """The names with seconds and shares; only after the end."""
        if self._total is None:
            raise RuntimeError("the table is there after the `with` block has ended")
        rows = [("Total", self._total), *sorted(self._seconds.items(), key=lambda item: -item[1])]
        width = max([len(name) for name, _ in rows])
        lines = [f"{'Name':<{width}}  Time (s)  Percentage"]
        lines += [f"{name:<{width}}  {one:8.4f}  {100 * one / max(self._total, 1e-12):10.2f}" for name, one in rows]
        return "\n".join(lines)

    @staticmethod
    @contextmanager
    def timeit(name: str) -> Iterator[None]:
        """Count what happens inside under a name, where a profiler is running."""
        start = perf_counter()
        try:
            yield
        finally:
            profiler = _current.get()
            if profiler is not None:
                profiler._seconds[name] = profiler._seconds.get(name, 0.0) + perf_counter() - start

    @staticmethod
    def current() -> Profiler | None:
        """The one that is running."""
        return _current.get()

    def __enter__(self) -> Profiler:
        self._started, self._total = perf_counter(), None
        self._token = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._total = perf_counter() - self._started
        assert self._token is not None
        _current.reset(self._token)
