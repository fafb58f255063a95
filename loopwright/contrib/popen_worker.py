"""The worker's side of `popen_pool`: read a task, run it, write what came of it; until the input ends.

Run as `python -c "…; main()" IN OUT`, with two open file numbers (`-m` would give this module a second name). A message
is its length, then a pickle. The first one says which script the parent runs, and whether it knows us as `tvm`.
"""

from __future__ import annotations

import importlib
import io
import os
import pickle
import runpy
import sys
import types
from typing import IO, Any, Final

from loopwright.runtime.errors import LoopwrightError, SourceLine

HEAD: Final = 8  # bytes of a message's length


def write_message(pipe: IO[bytes], message: bytes) -> None:
    """Send one message, now."""
    pipe.write(len(message).to_bytes(HEAD, "little") + message)
    pipe.flush()


class _Unpickler(pickle.Unpickler):
    """Finds what the parent's script defines by running it, once, under a name that is not `__main__`."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "__main__" and _parent["main"] is not None:
            if "__mp_main__" not in sys.modules:
                result = types.ModuleType("__mp_main__")
                result.__dict__.update(runpy.run_path(_parent["main"], run_name="__mp_main__"))
                sys.modules["__mp_main__"] = sys.modules["__main__"] = result
            module = "__mp_main__"
        return super().find_class(module, name)


_parent: dict[str, Any] = {"main": None, "door": False}


def _loaded(message: bytes) -> Any:
    return _Unpickler(io.BytesIO(message)).load()


class _Pickler(pickle.Pickler):
    """Sends our errors as their texts: they are made from other arguments, and may hold on to a program."""

    def reducer_override(self, value: object) -> Any:
        if isinstance(value, LoopwrightError) and type(value).__reduce__ is BaseException.__reduce__:
            texts = {"why": value.why, "hint": value.hint, "asked": value.asked}
            return _revived, (type(value), value.problem, texts, value.user_line)
        return NotImplemented


def _revived(
    kind: type[LoopwrightError], problem: str, texts: dict[str, Any], line: SourceLine | None
) -> LoopwrightError:
    error = kind.__new__(kind)
    LoopwrightError.__init__(error, problem, **texts)
    error.user_line = line
    return error


def _answer(value: object, succeeded: bool) -> bytes:
    try:
        file = io.BytesIO()
        _Pickler(file).dump((succeeded, value))
        return file.getvalue()
    except Exception as error:  # whatever a value's own pickling raises: the parent has to hear of it
        what = "result" if succeeded else "exception"
        return pickle.dumps((False, RuntimeError(f"the {what} {value!r} cannot be sent back: {error}")))


def main() -> None:
    """Serve until the parent closes the pipe."""
    with os.fdopen(int(sys.argv[1]), "rb") as tasks, os.fdopen(int(sys.argv[2]), "wb") as results:
        sys.argv[1:] = []
        first = True
        while head := tasks.read(HEAD):
            message = tasks.read(int.from_bytes(head, "little"))
            if first:
                first = False
                _parent.update(pickle.loads(message))
                if _parent["door"]:  # by its name: the door is a later layer than this one
                    importlib.import_module("loopwright.compat.door").install(replace=True)
                continue
            try:
                function, args, kwargs = _loaded(message)
                answer = _answer(function(*args, **kwargs), True)
            except BaseException as error:  # also SystemExit: a task must not end its worker in silence
                answer = _answer(error, False)
            write_message(results, answer)
