"""The base of every error Loopwright raises, and the anatomy of its message.

    ShapeMismatch: main: argument B has shape (3, 4), expected (4, 4) [LW0113]      what is wrong, with the real values
      call: f(a, b) at user.py:12                                                  the user's own call
        for i in range(10):                                                         where in the user's program
      >     B[i] = A[i]
      why: …                                                                        plain words, or a witness
      hint: …                                                                       what would work
      see: …                                                                        a page, where `pages` names one

The text is put together when the message is read, not when the error is raised: a search meets thousands of
refusals and reads none of them. `error.fields` carries the same facts for programs.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import ClassVar, NamedTuple

from loopwright.runtime.shown import View, view

LONGEST_LINE = 600  # characters of a message

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = os.path.dirname(contextlib.__file__) + os.sep
# A `with` or a thread of our own runs through the standard library.
_THROUGH = tuple(_LIBRARY + file for file in ("contextlib.py", "threading.py", os.path.join("concurrent", "futures")))
_NOT_THE_USER = (_PACKAGE, "<loopwright", *_THROUGH)


class SourceLine(NamedTuple):
    """A place in the user's source; columns count from 0, `end_column` is exclusive."""

    file: str
    line: int
    column: int | None = None
    end_column: int | None = None
    text: str | None = None  # the line itself, when it cannot be read back from `file`
    last_line: int | None = None  # where what is meant ends, when that is another line

    @property
    def end_line(self) -> int:
        """The line on which what is meant ends."""
        return self.line if self.last_line is None else self.last_line

    @property
    def source_name(self) -> str:
        return self.file

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


# The script layer installs here how to show an IR node inside its program; until then a node shows as its text.
render_node: list[Callable[[object], str]] = []

# Code → the page that explains why there is such an error; empty unless a script came through `loopwright.compat`.
pages: dict[str, str] = {}


class LoopwrightError(RuntimeError):
    """An error with a stable code; `loopwright explain CODE` prints its page (the class docstring).

    Every error of Loopwright is one of its subclasses, or, where nobody would want to tell it from others, this class
    itself. The example raises `BadShape`.

    For example:

        from loopwright import te

        te.placeholder(5)
    """

    code: ClassVar[str] = "LW0001"
    codes: ClassVar[dict[str, type[LoopwrightError]]] = {}

    def __init__(
        self,
        problem: str | Callable[[], str] = "",
        *,
        asked: str | None = None,
        at: object = None,
        why: str | Callable[[], str] | None = None,
        hint: str | Callable[[], str] | None = None,
        fields: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(problem)
        self._problem, self._why, self._hint = problem, why, hint
        self.asked = asked
        self.at = at
        self.fields: Mapping[str, object] = fields or {}
        self.user_line = at if isinstance(at, SourceLine) else caller()

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "code" in cls.__dict__:
            other = LoopwrightError.codes.setdefault(cls.code, cls)
            if other.__qualname__ != cls.__qualname__:
                raise TypeError(f"error code {cls.code} belongs to both {other.__qualname__} and {cls.__qualname__}")

    @property
    def problem(self) -> str:
        """What is wrong, in one line."""
        return _text(self._problem) or ""

    @property
    def why(self) -> str | None:
        """The reason in plain words; for legality, the witness."""
        return _text(self._why)

    @property
    def hint(self) -> str | None:
        """What would work instead."""
        return _text(self._hint)

    def __str__(self) -> str:
        lines = []
        if self.asked is not None or (self.user_line is not None and not isinstance(self.at, SourceLine)):
            where = f"at {self.user_line}" if self.user_line is not None else ""
            text = self.asked or _source_text(self.user_line) or ""
            lines.append(f"  call: {text} {where}".rstrip() if text else f"  call: {where}")
        if isinstance(self.at, SourceLine):
            lines += _excerpt(self.at)
        elif self.at is not None:
            shown = render_node[0](self.at) if render_node else str(self.at)
            lines += ["    " + line if not line.startswith("  >") else line for line in shown.splitlines()]
        if self.why:
            lines.append(f"  why: {self.why}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        if self.code in pages:
            lines.append(f"  see: {pages[self.code]}")
        head = "\n".join([_cut(line) for line in self.problem.split("\n")])  # cut before the code, which stays
        return "\n".join([f"{head} [{self.code}]", *(_cut(line) for text in lines for line in text.split("\n"))])

    def show(self, style: str | None = None) -> None:
        """Show the message, with its parts set apart where the screen can do that."""
        self._sheet().show(style)

    def _repr_html_(self) -> str:
        return self._sheet().html()

    def _sheet(self) -> View:
        result: View = view("error", self)
        return result

    def _render_traceback_(self) -> list[str]:
        """What IPython prints in place of a traceback."""
        lines: list[str] = view("traceback", self)
        return lines


LoopwrightError.codes[LoopwrightError.code] = LoopwrightError


class InternalError(LoopwrightError):
    """Loopwright broke one of its own rules. This is never the user's mistake: please report it with the program.

    For example:

        from loopwright.codegen.llvm.engine import compile_text
        compile_text("this is no LLVM text", "llvm")
    """

    code = "LW0002"

    def __init__(self, problem: str, **anatomy: object) -> None:
        anatomy.setdefault("hint", "this is a bug in Loopwright: please report it together with the program")
        super().__init__(problem, **anatomy)  # type: ignore[arg-type]


class NotBuilt(LoopwrightError, NotImplementedError):
    """A feature of the language or of a peer that Loopwright does not have yet.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4, 8), "float32")):
            A[0, 0] = T.float32(1)

        loopwright.build(f).export_library("f.so", fpack_imports=print)
    """

    code = "LW0003"

    def __init__(self, feature: str, hint: str | None = None) -> None:
        super().__init__(f"{feature} is not built yet", hint=hint, fields={"feature": feature})


class DiagnosticError(LoopwrightError):
    """A program given as text or as a Python function could not be read; the message marks the place in its source.

    The subclasses say what could not be read. The example raises `UndefinedName`.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(A: T.Buffer(8)):\\n    A[0] = nonsense")
    """

    code = "LW0004"


def with_article(noun: str) -> str:
    """`noun` behind "a" or "an": an int8, a uint8, a list."""
    return f"{'an' if noun[:1].lower() in 'aeio' else 'a'} {noun}"


def is_ours(file: str) -> bool:
    """Whether code in that file is Loopwright's own, and not the user's."""
    return file.startswith(_NOT_THE_USER)


def _is_ours(frame: FrameType) -> bool:
    """The same of a running call; methods that Python wrote for a dataclass of ours have no file."""
    file = frame.f_code.co_filename
    return is_ours(file) or (file == "<string>" and str(frame.f_globals.get("__name__", "")).startswith("loopwright."))


def caller() -> SourceLine | None:
    """The innermost line of the running call that is not Loopwright's own."""
    frame = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back  # type: ignore[assignment]
    return None if frame is None else SourceLine(frame.f_code.co_filename, frame.f_lineno)


def user_call_text() -> str:
    """The line of the running call that is the user's, where it can be read back."""
    return _source_text(caller())


def user_stack_level() -> int:
    """The `stacklevel` of a warning given where this is called, for it to name the user's own line."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _is_ours(frame):
        frame, level = frame.f_back, level + 1
    return level


def _cut(line: str) -> str:
    """A line that a terminal can show; expressions of generated programs have no limit of their own."""
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}… ({len(line) - LONGEST_LINE} more characters)"


def _text(value: str | Callable[[], str] | None) -> str | None:
    return value() if callable(value) else value


def _source_text(location: SourceLine | None) -> str:
    """The user's own line, where it can be read back."""
    text = "" if location is None else (location.text or linecache.getline(location.file, location.line)).strip()
    return text if len(text) <= 100 else text[:99] + "…"


def _excerpt(location: SourceLine) -> list[str]:
    text = location.text if location.text is not None else linecache.getline(location.file, location.line)
    text = text.rstrip("\n")
    where = f"  at {location.file}:{location.line}" + (f":{location.column + 1}" if location.column is not None else "")
    if not text.strip():
        return [where]
    lines = [where, f"  > {text}"]
    if location.column is not None:
        width = max(1, (location.end_column or location.column + 1) - location.column)
        width = min(width, max(1, len(text) - location.column))
        lines.append("    " + " " * location.column + "^" * width)
    return lines
