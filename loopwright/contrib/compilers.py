"""Running a compiler: which one, and what it said when it failed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from loopwright.runtime.errors import LoopwrightError


class NoCompiler(LoopwrightError, FileNotFoundError):
    """A program that compiles or links was needed, and is not on this machine.

    `cc.create_shared` and its like look for the compiler named by the environment variables `CXX` and `CC`, then for
    `g++`, `gcc`, `clang++`, `clang`, `c++` and `cc` on PATH. Install one, or name it with the argument `cc=`.

    For example:

        from loopwright.contrib import cc

        cc.create_shared("lib.so", ["lib.o"], cc="a-compiler-that-is-not-there")
    """

    code = "LW0032"

    def __init__(self, wanted: str, looked_for: Sequence[str]) -> None:
        super().__init__(
            f"there is no {wanted} here",
            why=f"looked for {', '.join(looked_for)} on PATH",
            hint="install one, or name it with cc=…",
            fields={"wanted": wanted, "looked_for": list(looked_for)},
        )


class CompilationFailed(LoopwrightError):
    """A compiler or linker ran and refused what it was given; the message ends with what it said.

    For example:

        import sys
        from loopwright.contrib import cc

        cc.create_executable("program", ["main.o"], cc=sys.executable)  # Python is no linker
    """

    code = "LW0033"

    def __init__(self, command: Sequence[str], status: int, said: str) -> None:
        super().__init__(
            f"{os.path.basename(command[0])} failed with status {status}",
            asked=" ".join(command),
            why=said.strip()[-4000:] or "it said nothing",
            fields={"command": list(command), "status": status, "output": said},
        )


def find_program(wanted: str, candidates: Sequence[str]) -> str:
    """The first of `candidates` that is on PATH."""
    for candidate in candidates:
        if shutil.which(candidate) is not None:
            return candidate
    raise NoCompiler(wanted, candidates)


def run(command: Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run it; what it printed, where it succeeds."""
    environment = None if env is None else {**os.environ, **env}
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=cwd, env=environment)
    except FileNotFoundError as error:
        if cwd is not None and not os.path.isdir(cwd):
            raise
        raise NoCompiler(f"program {command[0]}", [command[0]]) from error
    if done.returncode != 0:
        raise CompilationFailed(command, done.returncode, done.stdout + done.stderr)
    return done.stdout
