"""Progress: a line on a terminal for what takes long, nothing anywhere else."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import threading

import pytest

from loopwright.display import progress, screen


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Line:
    """A screen that a test can wait for."""

    def __init__(self) -> None:
        self.painted: list[str] = []
        self.is_erased = False
        self.seen = threading.Event()

    def paint(self, text: str) -> None:
        self.painted.append(text)
        self.seen.set()

    def erase(self) -> None:
        self.is_erased = True


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    monkeypatch.setattr(progress, "_watcher", None)
    monkeypatch.delenv("LOOPWRIGHT_PROGRESS", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def watched(monkeypatch, after=0.0):
    line = Line()
    monkeypatch.setattr(progress, "_watcher", progress.Watcher(lambda: line, after))
    return line


def test_the_library_shows_nothing_by_itself(capsys):
    with progress.task("check", 3) as task:
        task.advance("a")
    assert (task.done, str(task)) == (1, "check 1/3: a")
    assert capsys.readouterr() == ("", "")


def test_tasks_in_tasks_are_one_line(monkeypatch):
    line = watched(monkeypatch)
    with progress.task("build") as build:
        build.now("lower")
        with progress.task("passes", 2) as passes:
            passes.advance("simplify")
            assert line.seen.wait(10)
        assert not line.is_erased
    assert line.is_erased
    assert "build: lower › passes 1/2: simplify · 0:00" in line.painted


def test_quick_tasks_show_nothing(monkeypatch):
    line = watched(monkeypatch, after=60)
    with progress.task("quick"):
        pass
    assert line.painted == [] and not line.is_erased


def test_an_error_takes_the_line_away(monkeypatch):
    line = watched(monkeypatch)
    with pytest.raises(ValueError, match="wrong"), progress.task("work"):
        assert line.seen.wait(10)
        raise ValueError("wrong")
    assert line.is_erased


def test_tasks_of_several_threads(monkeypatch):
    line = watched(monkeypatch)

    def work(name):
        with progress.task(name):
            assert line.seen.wait(10)

    threads = [threading.Thread(target=work, args=(f"t{k}",)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert line.is_erased


def test_the_line_in_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    stream = Terminal()
    line = progress.TerminalLine(stream)
    line.paint("build: " + "x" * 200)
    line.erase()
    shown = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", stream.getvalue())
    assert max([len(text) for text in re.split(r"[\r\n]", shown)]) == 60
    assert "build" in stream.getvalue() and "…" in stream.getvalue()
    assert "\x1b[2K" in stream.getvalue()  # gone again


def test_never_in_a_pipe():
    with progress.shown(io.StringIO(), after=0):
        assert progress._watcher is None
    with progress.shown(Terminal(), after=0):
        assert isinstance(progress._watcher, progress.Watcher)
    assert progress._watcher is None


@pytest.mark.parametrize(("wanted", "shows"), [("1", True), ("0", False), ("", False)])
def test_the_environment_is_asked_once(monkeypatch, wanted, shows):
    monkeypatch.setattr(progress, "_watcher", progress._UNSET)
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("LOOPWRIGHT_PROGRESS", wanted)
    with progress.task("work"):
        assert isinstance(progress._watcher, progress.Watcher) == shows


def test_the_environment_can_forbid_it(monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_PROGRESS", "0")
    with progress.shown(Terminal()):
        assert progress._watcher is None


def test_a_dumb_terminal_has_no_line(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    with progress.shown(Terminal()):
        assert progress._watcher is None


def test_hide(monkeypatch):
    watched(monkeypatch)
    progress.hide()
    with progress.task("work"):
        assert progress._watcher is None


def test_the_line_under_a_notebooks_cell(monkeypatch):
    class Handle:
        def __init__(self):
            self.shown = []

        def update(self, data, raw):
            assert raw
            self.shown.append(data["text/plain"])

    handle = Handle()
    module = type(sys)("IPython.display")
    module.display = lambda data, raw, display_id: handle
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(screen, "notebook", object)
    line = progress.NotebookLine()
    line.paint("build")
    line.erase()
    assert handle.shown == ["build", ""]
    with progress.shown(io.StringIO()):
        assert isinstance(progress._watcher, progress.Watcher)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_has_no_line():
    code = (
        "import os, sys\nfrom loopwright.display import progress\n"
        "progress._watcher = progress.Watcher(lambda: None)\n"
        "pid = os.fork()\n"
        "if pid == 0: os._exit(0 if progress._watcher is None else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_what_reports_progress(monkeypatch):
    """Schedules by rule, replays, checks and builds say what they do."""
    import loopwright as lw
    from loopwright import autosched, te
    from loopwright.schedule import Schedule

    names = []

    class Noted(progress.Task):
        def __init__(self, name, total=None):
            names.append(name)
            super().__init__(name, total)

    monkeypatch.setattr(progress, "Task", Noted)
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 3.5, name="B")
    func = te.create_prim_func([A, B])
    plan = autosched.apply(func)
    plan.trace.apply_to_schedule(Schedule(func))
    monkeypatch.setenv("LOOPWRIGHT_CACHE", "0")
    lw.build(func)
    steps = [name for name in names if not name.startswith("prove ")]
    assert steps[:3] == ["schedule main", "replay", "build"]
    assert {"check", "lower"} <= set(steps) and steps != names
