"""Programs run by a Python that has imported Loopwright already: what `python program.py` does, without the start.

A documented example is a program of its own, and most of its time went into imports: a second of them for a tenth of a
second of work. `run` asks a process that has done the imports, and nothing else, to fork; the child is the program.
What the imports themselves do, and what variables of the environment say to them, is tested in a Python of its own.

    done = run([path, "argument"], cwd=folder)
    done.returncode, done.stdout, done.stderr
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

WARM = (
    "loopwright",
    "loopwright.build",
    "loopwright.relay",
    "loopwright.schedule",
    "loopwright.topi",
    "llvmlite.binding",
    "onnx",
)


def run(arguments: Sequence[str | Path], cwd: Path, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """What running Python with a program and its arguments gives."""
    server = _server()
    out, error = cwd / ".stdout", cwd / ".stderr"
    command = [str(each) for each in arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    request = {"arguments": command, "cwd": str(cwd), "timeout": timeout, "environment": environment}
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(json.dumps(request | {"out": str(out), "error": str(error)}) + "\n")
    server.stdin.flush()
    answer = server.stdout.readline()
    if not answer:
        raise RuntimeError("the process that runs documented examples has ended")
    status = json.loads(answer)
    if status is None:
        raise subprocess.TimeoutExpired(command, timeout)
    texts = [file.read_text(encoding="utf-8") for file in (out, error)]
    return subprocess.CompletedProcess(command, status, *texts)


@cache
def _server() -> subprocess.Popen[str]:
    """The process that forks; it ends when its standard input does, with this one.

    It is no child of this one, but of one that has ended: tests ask whether children are left.
    """
    root = Path(__file__).resolve().parent.parent
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    result = subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve())],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    result.wait()
    return result


def _serve() -> None:
    """Fork for each request, and answer with how the child ended."""
    for name in WARM:
        __import__(name)
    gc.freeze()  # a child does not go through what was there before it
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            return _become(request)
        print(json.dumps(_wait(child, request["timeout"])), flush=True)


def _become(request: dict[str, Any]) -> None:
    """Run the program as `python program.py` does, in this process, which ends with it."""
    os.setsid()
    os.chdir(request["cwd"])
    for name in [name for name in os.environ if name != "PYTHONPATH" and name not in request["environment"]]:
        del os.environ[name]
    os.environ.update(request["environment"])
    for number, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, request["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        (2, request["error"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = request["arguments"]
    program = sys.argv[0]
    sys.path[0] = str(Path(program).parent)
    main = type(sys)("__main__")
    main.__file__ = program
    main.__builtins__ = __builtins__  # type: ignore[attr-defined]
    sys.modules["__main__"] = main
    try:
        exec(compile(Path(program).read_bytes(), program, "exec"), main.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        # The frame of this function is not the program's.
        assert error.__traceback__ is not None
        error = error.with_traceback(error.__traceback__.tb_next)
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(1)


def _wait(child: int, timeout: float) -> int | None:
    """The exit status as `subprocess` gives it; none when time ran out and the session was killed."""
    end = time.monotonic() + timeout
    pause = 0.001
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


if __name__ == "__main__" and os.fork() == 0:
    _serve()
