"""Progress: what takes long, on one line that comes after a second and goes when it is done.

    with progress.task("check", total=40) as task:       in the library: says what is going on, prints nothing
        for block in blocks:
            task.advance(block.name)

    with progress.shown():                               by whoever has a screen: the command line, or you
        loopwright.build(large_module)
    progress.show()                                      from now on; progress.hide() ends it

The line stands on the standard error when that is a terminal, or under the cell of a notebook; never in a file or pipe.
LOOPWRIGHT_PROGRESS=1 shows it in any program, LOOPWRIGHT_PROGRESS=0 in none.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol, TextIO

from loopwright.display import screen

AFTER: Final = 1.0  # seconds that a task may take before anything is shown
_EACH: Final = 0.1  # seconds between two looks of the line
_TURNING: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Task:
    """Something that takes a while; `total` is how many parts it has, where that is known."""

    __slots__ = ("began", "doing", "done", "name", "total")

    def __init__(self, name: str, total: int | None = None) -> None:
        self.name = name
        self.total = total
        self.done = 0
        self.doing = ""
        self.began = time.monotonic()

    def now(self, doing: str) -> None:
        """Say what is done now."""
        self.doing = doing

    def advance(self, doing: str = "", parts: int = 1) -> None:
        """Say that some parts are done, and what comes now."""
        self.done += parts
        self.doing = doing

    def __str__(self) -> str:
        count = "" if self.total is None else f" {min(self.done, self.total)}/{self.total}"
        return f"{self.name}{count}{': ' * bool(self.doing)}{self.doing}"


class Painter(Protocol):
    """How the line reaches a screen."""

    def paint(self, text: str) -> None:
        """Show the line."""

    def erase(self) -> None:
        """Take it away."""


class Watcher:
    """Knows what is going on; a thread of its own shows it once that takes long."""

    def __init__(self, painter: Callable[[], Painter], after: float = AFTER) -> None:
        self._painter, self._after = painter, after
        self._tasks: list[Task] = []  # the outermost first
        self._lock = threading.Lock()
        self._over: threading.Event | None = None
        self._thread: threading.Thread | None = None

    def begin(self, task: Task) -> None:
        """A task begins."""
        with self._lock:
            self._tasks.append(task)
            if len(self._tasks) == 1:
                self._over = threading.Event()
                self._thread = threading.Thread(target=self._watch, args=(self._over,), daemon=True)
                self._thread.start()

    def end(self, task: Task) -> None:
        """A task ends; with the last one, the line goes, before anything else can be printed."""
        thread = None
        with self._lock:
            self._tasks.remove(task)
            if not self._tasks and self._over is not None:
                self._over.set()
                thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def text(self) -> str:
        """The line: the tasks, each inside the one before, and the time so far."""
        tasks = list(self._tasks)
        if not tasks:
            return ""
        seconds = int(time.monotonic() - tasks[0].began)
        return f"{' › '.join([str(task) for task in tasks])} · {seconds // 60}:{seconds % 60:02d}"

    def _watch(self, over: threading.Event) -> None:
        if over.wait(self._after):
            return
        painter = self._painter()
        while not over.wait(_EACH):
            painter.paint(self.text())
        painter.erase()


class TerminalLine:
    """The line in a terminal, which rich keeps in one place and cuts to the width."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=stream, highlight=False, no_color=not screen.has_colours(stream))
        # What the program prints is its own: rich must not send it elsewhere.
        self._live = Live(
            console=console,
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()
        self._frame = 0

    def paint(self, text: str) -> None:
        """Show the line, with a mark before it that turns."""
        from rich.text import Text

        self._frame += 1
        mark = _TURNING[self._frame % len(_TURNING)]
        self._live.update(Text(f"{mark} {text}", no_wrap=True, overflow="ellipsis"), refresh=True)

    def erase(self) -> None:
        """Take it away."""
        self._live.stop()


class NotebookLine:
    """The line under a notebook's cell."""

    def __init__(self) -> None:
        from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

        self._handle: Any = display(self._data(""), raw=True, display_id=True)

    @staticmethod
    def _data(text: str) -> dict[str, str]:
        return {"text/plain": text}

    def paint(self, text: str) -> None:
        """Show the line."""
        self._handle.update(self._data(text), raw=True)

    def erase(self) -> None:
        """Take it away."""
        self._handle.update(self._data(""), raw=True)


_UNSET: Final = object()
_watcher: Watcher | object | None = _UNSET  # unset: the environment has not been asked yet


def show(stream: TextIO | None = None, after: float = AFTER) -> None:
    """From now on, show what takes longer than `after` seconds, where there is a screen to show it on."""
    global _watcher
    _watcher = _found_screen(sys.stderr if stream is None else stream, after)


def hide() -> None:
    """From now on, show nothing."""
    global _watcher
    _watcher = None


@contextlib.contextmanager
def shown(stream: TextIO | None = None, after: float = AFTER) -> Iterator[None]:
    """Show progress meanwhile."""
    global _watcher
    before = _watcher
    show(stream, after)
    try:
        yield
    finally:
        _watcher = before


@contextlib.contextmanager
def hidden() -> Iterator[None]:
    """Show nothing meanwhile: something else has the screen."""
    global _watcher
    before, _watcher = _watcher, None
    try:
        yield
    finally:
        _watcher = before


@contextlib.contextmanager
def task(name: str, total: int | None = None) -> Iterator[Task]:
    """A task that goes on meanwhile."""
    result = Task(name, total)
    watcher = _watcher if _watcher is not _UNSET else _asked_for()
    if not isinstance(watcher, Watcher):
        yield result
        return
    watcher.begin(result)
    try:
        yield result
    finally:
        watcher.end(result)


def _asked_for() -> Watcher | None:
    """What the environment wants, found out once."""
    global _watcher
    wanted = os.environ.get("LOOPWRIGHT_PROGRESS", "") not in ("", "0")
    result = _found_screen(sys.stderr, AFTER) if wanted else None
    _watcher = result
    return result


def _found_screen(stream: TextIO, after: float) -> Watcher | None:
    if os.environ.get("LOOPWRIGHT_PROGRESS") == "0":
        return None
    if screen.notebook() is not None:
        return Watcher(NotebookLine, after)
    if not screen.is_terminal(stream) or os.environ.get("TERM") == "dumb":
        return None
    return Watcher(lambda: TerminalLine(stream), after)


# The watching thread stays behind in the parent, and two processes on one line would be none.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=hide)
