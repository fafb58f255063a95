"""Tasks and records to be stored, and a private PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loopwright import te
from loopwright.ir import IRModule
from loopwright.target import Target
from loopwright.tune import Record, Task

CPU, OTHER_CPU = "x86_64-linux some-cpu cores=2", "aarch64-linux another-cpu cores=4"
TRACE: list[Any] = [[["GetBlock", [], ["B", "main"], ["b0"]], ["GetLoops", ["b0"], [], ["l1"]]], [[1, [2, 4]]]]


def task(extent: int = 4, name: str = "main") -> Task:
    given = te.placeholder((extent, 5), name="A")
    made = te.compute((extent, 5), lambda i, j: given[i, j] + 1.0, name="B")
    return Task(name, IRModule({name: te.create_prim_func([given, made])}), Target("llvm -mcpu=core-avx2"))


def record(key: str = "k", seconds: float | None = 1.0, fingerprint: str = CPU, **more: Any) -> Record:
    """A measurement with that median; a failure where it is None."""
    if seconds is None:
        return Record(key, fingerprint, more.pop("trace", TRACE), error="it crashed", **more)
    return Record(key, fingerprint, more.pop("trace", TRACE), (seconds, seconds * 2, seconds / 2), **more)


def seconds(records: list[Record]) -> list[float]:
    return [each.median for each in records]


@contextmanager
def postgres_server() -> Iterator[str | None]:
    """The URL of a server: that of LOOPWRIGHT_TEST_POSTGRES, or one of our own; None where neither is there."""
    given = os.environ.get("LOOPWRIGHT_TEST_POSTGRES")
    if given:
        yield given
        return
    commands = _commands()
    if commands is None:
        yield None
        return
    as_user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []  # the server refuses to run as root
    folder = Path(tempfile.mkdtemp(prefix="loopwright-postgres-", dir="/tmp"))  # a socket's path is short
    try:
        if as_user:
            shutil.chown(folder, "postgres")
        data = folder / "data"
        run = {"check": True, "capture_output": True, "cwd": folder, "timeout": 120}
        subprocess.run([*as_user, commands / "initdb", "-D", data, "-A", "trust", "-U", "tuner", "--no-sync"], **run)
        control = [*as_user, commands / "pg_ctl", "-D", data, "-w", "-t", "60"]
        # Its output goes to a file: who waits for a pipe would wait for the server.
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        subprocess.run([*control, "-l", folder / "log", "-o", options, "start"], **run)
        try:
            yield f"postgresql+psycopg://tuner@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **run)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _commands() -> Path | None:
    """Where PostgreSQL's commands are; Debian does not have them on the path."""
    if os.name != "posix" or (os.getuid() == 0 and shutil.which("runuser") is None):
        return None
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in places:
        if all([(place / command).exists() for command in ("initdb", "pg_ctl", "postgres")]):
            return place
    return None
