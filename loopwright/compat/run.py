"""`python -m loopwright.compat.tvm script.py arguments…`: run a script as `python script.py` does, with the door open.

`sys.argv`, `sys.path[0]`, `__main__`, tracebacks and exit codes are what they are without us. `-m module` and `-c code`
work as Python's own. Python processes that the script starts (multiprocessing, subprocess) find the door open too.
"""

from __future__ import annotations

import builtins
import io
import os
import runpy
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType
from typing import NoReturn

from loopwright.compat.door import CHILDREN, install

_USAGE = "usage: python -m loopwright.compat.tvm [-m module | -c code | script.py] [arguments …]"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def main() -> None:
    """Run what the command line names; returns when it ends, unless it raises."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE, file=sys.stdout if arguments else sys.stderr)
        sys.exit(0 if arguments else 2)
    install(replace=True)
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([CHILDREN, *paths]))
    sys.path.insert(0 if sys.flags.safe_path else 1, CHILDREN)  # multiprocessing hands it on as well
    sys.excepthook = _show_without_our_frames
    first, *rest = arguments
    if first in ("-m", "-c"):
        if not rest:
            _give_up(f"argument expected for the {first} option\n{_USAGE}")
        sys.argv = ["-m" if first == "-m" else "-c", *rest[1:]]
        if first == "-m":
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            _run_as_main(compile(rest[0], "<string>", "exec"), None)
        return
    run_script(first, rest)


def run_script(path: str, arguments: list[str]) -> None:
    """Run the file as `__main__`, with `arguments` behind it in `sys.argv`."""
    location = os.path.abspath(path)
    try:
        with io.open_code(location) as file:
            source = file.read()
    except OSError as error:
        _give_up(f"can't open file {location!r}: [Errno {error.errno}] {error.strerror}")
    sys.argv = [path, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(location))  # it is the current directory, by `-m`
    _run_as_main(compile(source, location, "exec", dont_inherit=True), location)


def _run_as_main(code: object, path: str | None) -> None:
    module = ModuleType("__main__")
    module.__dict__.update(__builtins__=builtins, __annotations__={}, __spec__=None)
    if path is not None:
        module.__dict__.update(__file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path))
    sys.modules["__main__"] = module
    exec(code, module.__dict__)  # type: ignore[arg-type]


def _give_up(problem: str) -> NoReturn:
    print(f"{sys.executable}: {problem}", file=sys.stderr)
    sys.exit(2)


def _show_without_our_frames(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Python's own traceback, from the script's first line on."""
    while trace is not None and _starts_the_script(trace):
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


def _starts_the_script(trace: TracebackType) -> bool:
    file = trace.tb_frame.f_code.co_filename
    return file.startswith((_PACKAGE, "<frozen runpy>", "<frozen importlib")) or file == runpy.__file__
